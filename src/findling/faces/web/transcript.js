// The text of a document: its lines with their numbers, the passage that was found, and what matched in it.

import { h } from "./dom.js";
import { charactersBefore, linesBox, marked, merged, sliced, visible } from "./texts.js";

const BLOCK = 200;
const COLUMNS = 60;
const MOST_FRAMES = 20;
const STILL_FRAMES = 3;

/**
 * A fetched text with its passage set off. `passage` is where that stands in the whole text of the document, in
 * characters; the receipt of the hit tells where in the passage its matches are.
 */
export function textElement(document_, passage, hit) {
  const { line_start: first, line_end: last } = document_;
  const [start, end] = passage.map((at) => at - document_.start);
  const rows = rowsOf(document_.text, [start, end], hit?.rid === document_.rid ? matchesOf(hit, start) : []);
  const isPart = rows.some((row) => row.text.trim() && !isWithin(row));
  // Rows of an extracted text are no lines of its file: only those have a number that the hit knows one of.
  const known = new Map((hit?.lines ?? []).filter((line) => line.text.trim()).map((line) => [line.text, line.number]));
  const isPlain = rows.length === last - first + 1;
  const numberOf = (row, place) => (first && (isPlain ? first + place : known.get(row.text))) || 0;
  const box = linesBox(first ? last : 0);
  for (let at = 0; at < rows.length; at += BLOCK) {
    const some = rows.slice(at, at + BLOCK);
    const lines = some.map((row, place) => lineElement(row, numberOf(row, at + place), isPart));
    const block = h("div", { class: "block" }, lines);
    // How high it will be, about: it is laid out when it comes into view.
    const height = some.reduce((sum, row) => sum + Math.max(1, Math.ceil(row.text.length / COLUMNS)), 0);
    block.style.containIntrinsicHeight = `auto ${height}lh`;
    box.append(block);
  }
  return box;
}

/** Scroll to what matched, in the best line if that is known; without any match, to the passage. */
export function revealIn(body, panel, line) {
  const best = `[data-line="${line}"]`;
  const wanted = [`${best} mark`, "mark", ".passage", best, ".within"];
  const target = wanted.map((selector) => panel.querySelector(selector)).find(Boolean);
  if (target) scrollTo(target, body);
}

// Again while it moves: blocks that come into view turn out higher or lower than they were taken for.
function scrollTo(target, body) {
  let [frames, still] = [0, 0];
  const step = () => {
    if (!target.isConnected || !target.checkVisibility()) return;
    const before = body.scrollTop;
    const top = target.getBoundingClientRect().top - body.getBoundingClientRect().top + before;
    body.scrollTop = Math.max(0, top - body.clientHeight / 3);
    still = Math.abs(body.scrollTop - before) < 2 ? still + 1 : 0;
    frames += 1;
    if (still < STILL_FRAMES && frames < MOST_FRAMES) requestAnimationFrame(step);
  };
  step();
}

/** Where a hit matches, in a text in which its passage begins at `start`. */
function matchesOf(hit, start) {
  const spans = hit.receipt.matches.filter((match) => match.field === "body").flatMap((match) => match.spans);
  return merged(spans).map(([from, to]) => [from + start, to + start]);
}

/** The lines of a text, each with the part of it that is in the passage, and its matches. */
function rowsOf(text, passage, spans) {
  const rows = [];
  let [at, next] = [0, 0];
  // Lines with their ends, as files have them.
  for (const whole of text.match(/[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$/g) ?? []) {
    const size = charactersBefore(whole, whole.length);
    const within = ([from, to]) => [Math.max(0, from - at), Math.min(size, to - at)];
    while (next < spans.length && spans[next][1] <= at) next += 1;
    const marks = [];
    for (let one = next; one < spans.length && spans[one][0] < at + size; one += 1) marks.push(within(spans[one]));
    rows.push({ text: whole.replace(/[\r\n]+$/, ""), inside: within(passage), marks });
    at += size;
  }
  return rows;
}

const isTouched = ({ inside: [from, to] }) => from < to;

/** Whether all of a line is in the passage, but for blanks around it. */
function isWithin(row) {
  const { text, inside: [from, to] } = row;
  return isTouched(row) && !sliced(text, 0, from).trim() && !sliced(text, to).trim();
}

function lineElement(row, line, isPart) {
  const isAll = isPart && isWithin(row);
  const content = isPart && !isAll && isTouched(row) ? partlyMarked(row) : marked(row.text, row.marks);
  return h(
    "div",
    { class: isAll ? "line within" : "line", data: line ? { line } : {} },
    line > 0 && h("span", { class: "number" }, String(line)),
    h("span", { class: "text", dir: "auto" }, content),
  );
}

function partlyMarked({ text, inside: [from, to], marks }) {
  const own = marks.map(([start, end]) => [start - from, end - from]);
  const passage = h("span", { class: "passage" }, marked(sliced(text, from, to), own));
  return [visible(sliced(text, 0, from)), passage, visible(sliced(text, to))];
}
