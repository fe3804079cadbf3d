// Words, numbers and marked texts as people read them.

import { h } from "./dom.js";

const NUMBERS = new Intl.NumberFormat("en");
const UNITS = ["B", "KB", "MB", "GB", "TB"];

export const number = (value) => NUMBERS.format(value);

/** `1 passage`, `2 passages`. */
export const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

export const percent = (share) => `${Math.floor(share * 100)} %`;

export function size(bytes) {
  const step = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  return `${step && value < 100 ? value.toFixed(1) : Math.round(value)} ${UNITS[step]}`;
}

export function milliseconds(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/**
 * A text with spans marked. Spans count characters as Python does: a character beyond the first 65,536 is one of
 * them, but two units of a string here.
 */
export function marked(text, spans) {
  const parts = [];
  const at = unitsOf(text);
  let done = 0;
  for (const [start, end] of merged(spans)) {
    const [from, to] = [at(start), at(end)];
    parts.push(visible(text.slice(done, from)), h("mark", {}, visible(text.slice(from, to))));
    done = to;
  }
  parts.push(visible(text.slice(done)));
  return parts;
}

/** A text whose marks that turn others round can be seen: with them, a name can be made to look like another one. */
export function visible(text) {
  const parts = text.split(/([\u202a-\u202e\u2066-\u2069])/);
  return parts.map((part, place) => (place % 2 ? h("span", { class: "control" }, codeOf(part)) : part));
}

const codeOf = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase()}`;

/** Spans in order, those that overlap made one. */
export function merged(spans) {
  const found = [];
  for (const [start, end] of [...spans].sort((one, other) => one[0] - other[0] || one[1] - other[1])) {
    const last = found.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else if (start < end) found.push([start, end]);
  }
  return found;
}

/** Characters → units of the string; asked in rising order. */
function unitsOf(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (character) => character;
  let [characters, units] = [0, 0];
  return (character) => {
    if (character < characters) [characters, units] = [0, 0];
    while (characters < character && units < text.length) {
      units += text.codePointAt(units) > 0xffff ? 2 : 1;
      characters += 1;
    }
    return units;
  };
}

/** Units of the string → characters. */
export function charactersBefore(text, units) {
  const before = text.slice(0, units);
  return /[\ud800-\udbff]/.test(before) ? [...before].length : units;
}

/** A part of a text, counted in characters. */
export function sliced(text, start, end) {
  return /[\ud800-\udbff]/.test(text) ? [...text].slice(start, end).join("") : text.slice(start, end);
}

/** An element for lines, with room for the number of the last one; 0 when they have no numbers. */
export function linesBox(last) {
  const made = h("div", { class: last ? "lines" : "lines unnumbered" });
  if (last) made.style.setProperty("--digits", String(Math.max(3, String(last).length)));
  return made;
}

/** What a hit, a passage or a document is called. */
export function nameOf({ title, path, rid }) {
  return title || path || rid;
}

/** `notes.md:12`, or what stands for it in documents without lines: what is pasted to say where something is. */
export function citation({ path, rid, line, place }) {
  const source = path || rid;
  if (place) return `${source} (${place})`;
  return line > (path ? 0 : 1) ? `${source}:${line}` : source;
}

/** The end of a path, or a name as it is. */
export const shortName = (name) => (name.includes("/") ? name.split("/").slice(-2).join("/") : name);
