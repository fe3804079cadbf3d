// The state of the index: what it holds, how far indexing and reading have come, and what could not be read.

import { ask, hasToken, isAborted, keepToken } from "./api.js";
import { progressBar } from "./bars.js";
import { ago, momentOf } from "./dates.js";
import { byId, fill, h, show, warning } from "./dom.js";
import { failedElement } from "./failed.js";
import { facts } from "./receipt.js";
import { counted, duration, milliseconds, number, percent, size } from "./texts.js";

const WORKING_MS = 1000;
const RESTING_MS = 15000;

/** The view, and the sign in the head of the page while there is work. `onChanged`: the index is another one now. */
export function makeStatus({ say, onTrouble, onChanged }) {
  let timer;
  let state;
  let wasWorking = false;
  let known = {};
  let turn = 0;

  async function load(next) {
    state = next;
    clearTimeout(timer);
    turn += 1;
    const own = turn;
    const query = { workspace: state.workspace };
    try {
      const status = await ask("/v1/status", { query });
      const isShown = state.view === "status" && status.is_indexed;
      const failed = isShown ? await ask("/v1/failed", { query }) : undefined;
      if (own === turn) took(status, failed?.failed_paths);
    } catch (error) {
      if (isAborted(error) || own !== turn) return;
      if (error.kind === "problem") refuse(error);
      else onTrouble(error);
    }
  }

  function took(status, failed) {
    const work = workOf(status);
    showSign(work);
    show(document.querySelector('nav [data-view="glossary"]'), "is_indexed" in status);
    byId("held").textContent = `${counted(status.resources, "document")}, ${counted(status.chunks, "passage")}`;
    if (state.view === "status") {
      const parts = [workElement(work), numbersElement(status), aboutElement(status), daemonElement(status)];
      showBody([...parts, failed ? failedElement(failed) : "", actions(status, work)]);
    }
    if (wasWorking && !work.length) say("The index is up to date");
    wasWorking = work.length > 0;
    const { workspace } = state;
    const held = JSON.stringify([status.resources, status.chunks, status.seq]);
    if (known.workspace === workspace && known.held !== held) onChanged();
    known = { workspace, held };
    again(work.length || status.is_indexed === false ? WORKING_MS : RESTING_MS);
  }

  function refuse(error) {
    showSign([]);
    byId("held").textContent = "";
    if (state.view === "status") showBody(warning(error.message, error.hint));
    again(RESTING_MS);
  }

  // Nobody looks at a page that is hidden; it asks again as soon as somebody does.
  function again(wait) {
    timer = setTimeout(() => (document.hidden ? again(WORKING_MS) : load(state)), wait);
  }

  function actions(status, work) {
    const isIndexing = work.some((one) => one.kind === "index");
    const mayIndex = "is_indexed" in status && !isIndexing;
    return h(
      "p",
      { class: "actions" },
      mayIndex ? button("index-now", "Index now", startIndexing) : "",
      hasToken() ? button("forget-token", "Forget the token", forgetToken) : "",
    );
  }

  async function startIndexing(event) {
    event.currentTarget.disabled = true;
    try {
      await ask("/v1/index", { body: state.workspace ? { workspace: state.workspace } : {} });
      wasWorking = true;
    } catch (error) {
      if (error.kind === "problem") say(error.message);
      else onTrouble(error);
    }
    await load(state);
  }

  function forgetToken() {
    keepToken("");
    location.reload();
  }

  return { load };
}

/** What is being done now: indexing, or a model reading. Each with its share from 0 to 1, if that is known. */
export function workOf({ indexing, meaning }) {
  const found = [];
  if (indexing?.state === "running") {
    const { done, total, seconds_left: left } = indexing;
    const detail = total ? `${number(done)} of ${counted(total, "file")}` : "looking for files";
    found.push({ kind: "index", name: "Indexing", share: total ? done / total : undefined, detail: detail + ends(left) });
  }
  if (meaning?.refining && meaning.of) {
    const detail = `${meaning.model} has read ${number(meaning.read)} of ${counted(meaning.of, "passage")}`;
    const share = meaning.read / meaning.of;
    found.push({ kind: "read", name: "Reading for meaning", share, detail: detail + ends(meaning.seconds_left) });
  }
  return found;
}

const ends = (left) => (left ? `, ${duration(left)} left` : "");

function showSign(work) {
  show(byId("work"), work.length > 0);
  const told = ({ name, share }) => (share === undefined ? `${name} …` : `${name} ${percent(share)}`);
  byId("work").textContent = work.map(told).join(", ");
}

/** Show all of it anew, and leave the focus where it was. */
function showBody(...parts) {
  const focused = byId("status-body").contains(document.activeElement) ? document.activeElement.id : "";
  fill(byId("status-body"), parts);
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

const button = (id, label, act) => h("button", { type: "button", class: "plain", id, on: { click: act } }, label);

function workElement(work) {
  return work.map(({ name, share, detail }) => {
    const told = h("p", {}, h("b", {}, name), h("span", { class: "quiet" }, ` ${detail}`));
    return h("div", { class: "work" }, told, share === undefined ? "" : progressBar(share, name));
  });
}

function numbersElement({ resources, chunks, characters, size_bytes: bytes }) {
  const told = [
    [number(resources), "documents"],
    [number(chunks), "passages"],
    [characters === undefined ? "" : number(characters), "characters"],
    [bytes === undefined ? "" : size(bytes), "on disk"],
  ].filter(([value]) => value);
  const items = told.map(([value, name]) => h("li", {}, h("b", {}, value), h("span", {}, name)));
  return h("ul", { class: "numbers" }, items);
}

function aboutElement(status) {
  if (status.is_indexed === false) return warning("Nothing has been indexed here yet.", "findling index");
  if (!status.is_indexed) return null;
  const { meaning, indexing, indexed_at: moment } = status;
  const behind = status.seq - status.keyword_seq;
  const skipped = Object.entries(status.skipped ?? {}).map(([reason, count]) => `${reason} ${number(count)}`);
  const failure = indexing?.state === "failed" ? `${indexing.error.detail}; ${indexing.error.hint}` : "";
  return h(
    "section",
    {},
    h("h3", {}, "Index"),
    facts([
      ["Folder", h("code", {}, status.root)],
      ["Kept in", h("code", {}, status.home)],
      ["Indexed", moment ? h("time", { title: momentOf(moment) }, ago(moment)) : "never"],
      ["Latest run", failure && `failed: ${failure}`],
      ["Words", behind ? `${counted(behind, "change")} behind` : "up to date"],
      ["Meaning", meaningText(meaning)],
      ["Left out", skipped.join(", ")],
      ["Problems", meaning?.problems?.join("; ")],
    ]),
  );
}

function meaningText(meaning) {
  if (!meaning) return "";
  const share = meaning.of ? meaning.read / meaning.of : 1;
  const parts = meaning.instant ? ["instant vectors of all passages"] : [];
  if (meaning.model) parts.push(`${meaning.model} has read ${percent(share)}`);
  if (meaning.sent_to) parts.push(`text is sent to ${meaning.sent_to}`);
  if (meaning.reranker && meaning.reranker !== "none") parts.push(`reranked by ${meaning.reranker}`);
  if (meaning.withheld) parts.push(`${number(meaning.withheld)} kept private`);
  if (meaning.waiting) parts.push(meaning.waiting);
  const told = parts.join("; ") || "words only";
  const canReadOn = meaning.model && share < 1 && !meaning.refining && !meaning.withheld;
  return canReadOn ? [`${told}; `, h("code", {}, "findling refine"), " reads the rest"] : told;
}

function daemonElement({ daemon }) {
  if (!daemon) return null;
  const { total_queries: questions, cache_hits: kept = 0, avg_latency_ms: average, p99_latency_ms: slow } = daemon;
  const loaded = Object.entries(daemon.legs ?? {}).filter(([, isLoaded]) => isLoaded);
  const times = `${milliseconds(average)} on average, ${milliseconds(slow)} at most for 99 of 100`;
  return h(
    "section",
    {},
    h("h3", {}, "Daemon"),
    facts([
      ["Up for", duration(daemon.uptime_s ?? 0)],
      ["Questions", `${number(questions)} answered, ${number(kept)} of them from the cache`],
      ["Time", questions ? times : ""],
      ["Loaded", loaded.map(([name]) => name).join(", ")],
      ["Waiting", daemon.queue_depth ? counted(daemon.queue_depth, "question") : ""],
      ["Incomplete", daemon.degraded_total ? counted(daemon.degraded_total, "answer") : ""],
    ]),
  );
}
