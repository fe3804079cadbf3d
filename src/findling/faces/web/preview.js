// The preview: a passage in its surroundings or the whole document, with what matched, and the receipt beside it.

import { ask, isAborted, pathOf } from "./api.js";
import { dayOf } from "./dates.js";
import { byId, copy, fill, h, show } from "./dom.js";
import { receiptElement } from "./receipt.js";
import { parametersOf } from "./search.js";
import { charactersBefore, citation, marked, merged, nameOf, visible } from "./texts.js";

const AROUND = 12;
const BLOCK = 200;
const GONE = "This passage is not in the index: it has changed, or is gone, since the link was made.";

/** The pane. `go(changes)` leads to another state, `say` has something read out, `onTrouble` takes what goes wrong. */
export function makePreview({ go, say, onTrouble }) {
  let calls = new AbortController();
  let shown = {};

  byId("close-preview").addEventListener("click", () => go({ hit: "", tab: "text" }));
  for (const tab of ["text", "why"]) byId(`tab-${tab}`).addEventListener("click", () => go({ tab }));
  byId("copy").addEventListener("click", () => copyCitation());
  byId("whole").addEventListener("click", () => showWhole());

  async function copyCitation() {
    if (!shown.citation) return;
    const done = await copy(shown.citation);
    say(done ? `Copied ${shown.citation}` : `The browser does not allow copying: ${shown.citation}`);
  }

  /** Show what the state says, with what is known of it from the answer. */
  async function update(state, answer) {
    show(byId("preview"), Boolean(state.hit));
    document.documentElement.toggleAttribute("data-preview", Boolean(state.hit));
    if (!state.hit) {
      calls.abort();
      shown = {};
      return;
    }
    for (const tab of ["text", "why"]) {
      byId(`tab-${tab}`).setAttribute("aria-selected", String(state.tab === tab));
      byId(`tab-${tab}`).tabIndex = state.tab === tab ? 0 : -1;
      show(byId(`panel-${tab}`), state.tab === tab);
    }
    const key = JSON.stringify([state.workspace, state.hit, state.q, answer?.timings_ms]);
    if (shown.key === key) return;
    calls.abort();
    calls = new AbortController();
    const isSame = shown.id === state.hit && shown.workspace === state.workspace;
    shown = { key, id: state.hit, workspace: state.workspace, document: isSame ? shown.document : undefined };
    await load(state, answer, calls.signal);
  }

  async function load(state, answer, signal) {
    const known = knownHit(answer, state.hit);
    byId("preview").setAttribute("aria-busy", "true");
    try {
      const [document_, own] = await Promise.all([
        shown.document ?? fetched(state.hit, state.workspace, signal, AROUND),
        explained(state, known, signal),
      ]);
      if (signal.aborted) return;
      Object.assign(shown, { document: document_, hit: own.hit, lines: own.lines });
      showHead(document_, own);
      showText(document_, own.hit ?? own.lines);
      fill(byId("panel-why"), receiptElement({ ...own, answer: known.hit ? answer : undefined }));
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

  function showText(document_, hit) {
    const panel = byId("panel-text");
    const element = textElement(document_, hit);
    fill(panel, document_.text.trim() ? element : h("p", { class: "quiet" }, "There is no text in it."));
    const line = hit?.line ? panel.querySelector(`[data-line="${hit.line}"]`) : null;
    const target = line ?? panel.querySelector("mark, .within");
    const body = byId("preview-body");
    body.scrollTop = target ? Math.max(0, offsetIn(target, body) - body.clientHeight / 3) : 0;
  }

  async function showWhole() {
    const { signal } = calls;
    try {
      const document_ = await fetched(shown.document.rid, shown.workspace, signal);
      if (signal.aborted) return;
      shown.document = document_;
      show(byId("whole"), false);
      showText(document_, shown.hit ?? shown.lines);
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
  }

  return { update, copyCitation, showWhole };
}

/** What the answer knows of a hit: itself, one of its neighbours, or a further passage of a hit. */
function knownHit(answer, id) {
  const hits = [...(answer?.hits ?? []), ...(answer?.related ?? [])];
  return { hit: hits.find((hit) => hit.id === id) };
}

/** The hit with its receipt: from the answer, or why it is not in there; without a question, where it stands. */
async function explained(state, known, signal) {
  if (known.hit) return known;
  if (!state.q.trim()) return { lines: await fetched(state.hit, state.workspace, signal) };
  const explanation = await ask("/v1/explain", { query: { ...parametersOf(state), id: state.hit }, signal });
  return { hit: explanation.hit ?? undefined, explanation };
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

function textElement(document_, hit) {
  const first = document_.line_start;
  const spans = hit?.receipt ? spansIn(document_, hit) : [];
  const [top, bottom] = hit?.line_start ? [hit.line_start, hit.line_end] : [0, 0];
  const isPart = !(first === top && document_.line_end === bottom);
  const blocks = [];
  let at = 0;
  let next = 0;
  for (const [place, text] of linesOf(document_.text).entries()) {
    if (place % BLOCK === 0) blocks.push(h("div", { class: "block" }));
    const size = charactersBefore(text, text.length);
    while (next < spans.length && spans[next][1] <= at) next += 1;
    const own = [];
    for (let one = next; one < spans.length && spans[one][0] < at + size; one += 1) {
      own.push([Math.max(0, spans[one][0] - at), Math.min(size, spans[one][1] - at)]);
    }
    const line = first + place;
    const isWithin = isPart && first && line >= top && line <= bottom;
    const content = h("span", { class: "text", dir: "auto" }, marked(text.replace(/[\r\n]+$/, ""), own));
    const numbered = first ? h("span", { class: "number" }, String(line)) : "";
    const properties = { class: isWithin ? "line within" : "line", data: first ? { line } : {} };
    blocks.at(-1).append(h("div", properties, numbered, content));
    at += size;
  }
  return h("div", { class: first ? "lines" : "lines unnumbered" }, blocks);
}

/** Lines with their ends, as files have them. */
const linesOf = (text) => text.match(/[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$/g) ?? [];

/**
 * Where the matches of a hit stand in a text that holds its passage. The receipt counts from the beginning of the
 * passage, wherever that is; the lines of the hit, found again in the text, tell where.
 */
function spansIn(document_, hit) {
  const { text } = document_;
  const matches = merged(hit.receipt.matches.filter((match) => match.field === "body").flatMap((match) => match.spans));
  const anchors = hit.lines.flatMap((line) => {
    const start = lineStart(document_, line);
    return start < 0 ? [] : merged(line.spans).map(([from, to]) => [charactersBefore(text, start) + from, to - from]);
  });
  let best = { agreed: 0, base: 0 };
  for (const [position, length] of anchors.slice(0, 3)) {
    for (const [from, to] of matches) {
      if (to - from !== length || position < from) continue;
      const base = position - from;
      const starts = new Set(matches.map((match) => match[0] + base));
      const agreed = anchors.filter(([place]) => starts.has(place)).length;
      if (agreed > best.agreed) best = { agreed, base };
    }
  }
  if (best.agreed) return matches.map(([from, to]) => [from + best.base, to + best.base]);
  return merged(anchors.map(([place, length]) => [place, place + length]));
}

function lineStart({ text, line_start: first }, line) {
  if (line.number && first) {
    let at = 0;
    const lines = linesOf(text);
    for (let place = 0; place < line.number - first; place += 1) at += lines[place]?.length ?? 0;
    if (text.startsWith(line.text, at)) return at;
  }
  return line.text.trim() ? text.indexOf(line.text) : -1;
}

function offsetIn(element, container) {
  return element.getBoundingClientRect().top - container.getBoundingClientRect().top + container.scrollTop;
}
