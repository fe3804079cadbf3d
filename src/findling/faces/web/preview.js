// The preview: a passage in its surroundings or the whole document, with what matched, and the receipt beside it.

import { ask, isAborted, pathOf } from "./api.js";
import { dayOf } from "./dates.js";
import { byId, copy, fill, h, show } from "./dom.js";
import { graphElement } from "./graph.js";
import { receiptElement } from "./receipt.js";
import { parametersOf } from "./search.js";
import { addressOf, located, TABS, withName } from "./state.js";
import { citation, nameOf, visible } from "./texts.js";
import { revealIn, textElement } from "./transcript.js";

const AROUND = 12;
const MOST_AROUND = 8;
const GONE = "This passage is not in the index: it has changed, or is gone, since the link was made.";

/** The pane. `go(changes)` leads to another state, `say` has something read out, `onTrouble` takes what goes wrong. */
export function makePreview({ go, say, onTrouble }) {
  let calls = new AbortController();
  let shown = {};

  byId("close-preview").addEventListener("click", () => go({ hit: "", tab: "text" }));
  for (const tab of TABS) byId(`tab-${tab}`).addEventListener("click", () => go({ tab }));
  byId("copy").addEventListener("click", () => copyCitation());
  byId("whole").addEventListener("click", () => showWhole());

  async function copyCitation() {
    if (!shown.citation) return;
    const done = await copy(shown.citation);
    say(done ? `Copied ${shown.citation}` : `The browser does not allow copying: ${shown.citation}`);
  }

  /** Show what the state says, with what is known of it from the answer. */
  async function update(asked, answer) {
    const state = located(asked);
    show(byId("preview"), Boolean(state.hit));
    document.documentElement.toggleAttribute("data-preview", Boolean(state.hit));
    if (!state.hit) {
      calls.abort();
      shown = {};
      return;
    }
    for (const tab of TABS) {
      byId(`tab-${tab}`).setAttribute("aria-selected", String(state.tab === tab));
      byId(`tab-${tab}`).tabIndex = state.tab === tab ? 0 : -1;
      show(byId(`panel-${tab}`), state.tab === tab);
    }
    const key = JSON.stringify([state.workspace, state.hit, state.q, answer?.timings_ms]);
    if (shown.key === key) {
      if (shown.tab !== state.tab) reveal();
      shown.tab = state.tab;
      await showGraph(state, calls.signal);
      return;
    }
    calls.abort();
    calls = new AbortController();
    const isSame = shown.id === state.hit && shown.workspace === state.workspace;
    const kept = isSame ? { document: shown.document, named: shown.named } : {};
    shown = { key, id: state.hit, workspace: state.workspace, tab: state.tab, ...kept };
    await load(state, answer, calls.signal);
  }

  async function load(state, answer, signal) {
    const known = knownHit(answer, state);
    byId("preview").setAttribute("aria-busy", "true");
    try {
      const [document_, own] = await Promise.all([
        shown.document ?? fetched(state.hit, state.workspace, signal, AROUND),
        explained(state, known, signal),
      ]);
      const named = shown.named ?? placeOf(document_);
      const passage = await passageOf(own.hit, state, named, signal);
      if (signal.aborted) return;
      Object.assign(shown, { document: document_, named, hit: own.hit, passage });
      showHead(document_, own);
      showText();
      fill(byId("panel-why"), receiptElement({ ...own, answer: known.hit ? answer : undefined }));
      await showGraph(state, signal);
    } catch (error) {
      if (isAborted(error)) return;
      showMissing(error, state);
      if (error.kind !== "problem") onTrouble(error);
    } finally {
      if (!signal.aborted) byId("preview").removeAttribute("aria-busy");
    }
  }

  function showHead(document_, own) {
    const line = own.hit?.line || own.lines?.line_start || 0;
    shown.citation = citation({ ...document_, line, place: own.hit?.place || document_.place });
    fill(byId("preview-title"), h("bdi", {}, visible(nameOf(document_))));
    fill(byId("preview-where"), h("bdi", {}, visible(shown.citation)));
    fill(byId("preview-facts"), factsOf(document_));
    show(byId("copy"));
    show(byId("whole"), !document_.is_whole);
  }

  /** Ask for what is around the hit, once it is wanted. */
  async function showGraph(state, signal) {
    if (state.tab !== "graph" || !shown.document || shown.around === state.hit) return;
    shown.around = state.hit;
    fill(byId("panel-graph"));
    try {
      const query = { of: state.hit, limit: MOST_AROUND, workspace: state.workspace };
      const found = await ask("/v1/related", { query, signal });
      if (!signal.aborted) fill(byId("panel-graph"), graphElement(found, shown.document, linksFrom(state)));
    } catch (error) {
      shown.around = undefined;
      if (isAborted(error)) return;
      fill(byId("panel-graph"), h("p", { class: "note warning" }, error.message));
      if (error.kind !== "problem") onTrouble(error);
    }
  }

  function showText() {
    const { document: document_, passage, hit } = shown;
    const isEmpty = !document_.text.trim();
    const nothing = h("p", { class: "quiet" }, "There is no text in it.");
    fill(byId("panel-text"), isEmpty ? nothing : textElement(document_, passage, hit));
    reveal();
  }

  function reveal() {
    const panel = byId("panel-text");
    const body = byId("preview-body");
    body.scrollTop = 0;
    if (!panel.hidden) revealIn(body, panel, shown.hit?.line ?? 0);
  }

  async function showWhole() {
    const { signal } = calls;
    try {
      // The passage, too: the document may have changed since it was opened.
      const [document_, own] = await Promise.all([
        fetched(shown.document.rid, shown.workspace, signal),
        fetched(shown.hit?.id ?? shown.id, shown.workspace, signal),
      ]);
      if (signal.aborted) return;
      Object.assign(shown, { document: document_, passage: placeOf(own), named: placeOf(own) });
      show(byId("whole"), false);
      showText();
      byId("preview-body").focus({ preventScroll: true });
      say("The whole document is shown");
    } catch (error) {
      if (!isAborted(error)) onTrouble(error);
    }
  }

  function showMissing(error, state) {
    shown.key = undefined;
    fill(byId("preview-title"), error.status === 404 ? "No longer there" : "It cannot be shown");
    fill(byId("preview-where"), state.hit);
    fill(byId("preview-facts"));
    show(byId("copy"), false);
    show(byId("whole"), false);
    const told = error.status === 404 ? GONE : error.message;
    fill(byId("panel-text"), h("p", { class: "note warning" }, told));
    fill(byId("panel-why"), h("p", { class: "quiet" }, told));
    fill(byId("panel-graph"), h("p", { class: "quiet" }, told));
  }

  return { update, copyCitation, showWhole };
}

/** Where the names and documents around a hit lead to. */
function linksFrom(state) {
  const queryOf = (name) => withName("", name);
  return {
    queryOf,
    linkTo: (id) => addressOf({ ...state, hit: id, tab: "graph" }),
    linkToName: (name) => addressOf({ ...state, q: queryOf(name), hit: "", tab: "text" }),
  };
}

/** What the answer knows of a hit: itself, one of its neighbours, or a further passage of a hit. */
function knownHit(answer, { hit: id, workspace }) {
  const hits = [...(answer?.hits ?? []), ...(answer?.relaxed ?? []), ...(answer?.related ?? [])];
  return { hit: hits.find((hit) => hit.id === id && (hit.workspace || workspace) === workspace) };
}

/** The hit with its receipt: from the answer, or why it is not in there; without a question, where it stands. */
async function explained(state, known, signal) {
  if (known.hit) return known;
  if (!state.q.trim()) return { lines: await fetched(state.hit, state.workspace, signal) };
  const explanation = await ask("/v1/explain", { query: { ...parametersOf(state), id: state.hit }, signal });
  return { hit: explanation.hit ?? undefined, explanation };
}

/** Where the passage that a name means stands in the whole text of its document: start and end in characters. */
const placeOf = ({ start, passage }) => passage.map((at) => start + at);

/** The same of a hit, which may be another passage than was asked for: the best one of a document, or of its group. */
async function passageOf(hit, { hit: id, workspace }, named, signal) {
  return hit && hit.id !== id ? placeOf(await fetched(hit.id, workspace, signal)) : named;
}

function fetched(id, workspace, signal, lines) {
  return ask(`/v1/fetch/${pathOf(id)}`, { query: { workspace, lines }, signal });
}

function factsOf(document_) {
  const { type, author, tags, updated_at: updated, superseded_by: successors } = document_;
  return [
    type === "file" ? null : h("span", { class: "badge" }, type),
    author ? h("bdi", {}, visible(author)) : null,
    updated ? h("time", { datetime: dayOf(updated) }, dayOf(updated)) : null,
    tags.length ? visible(tags.join(", ")) : null,
    successors.length ? h("span", { class: "old" }, `superseded by ${successors.at(-1)}`) : null,
  ]
    .filter(Boolean)
    .map((part) => h("span", {}, part));
}
