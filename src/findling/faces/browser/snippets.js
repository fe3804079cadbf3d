// The lines of a passage that show best why it was found.

const SNIPPET_LINES = 3;
const LONGEST_LINE = 400;
const LEAD = 60;
const SMALL = 100; // characters for each line: a passage of no more than all of them is shown whole
const SAID = 0.2; // the share that counts of words in a title or heading, which stands above the hit anyway

const WRAPPED = 45; // characters from which a line may go on in the next one, as in text/analysis/lines.py
const MARKS = "-*+|>#=~`•·:$@<.{}/";
const MARKED_WORDS = /^(`(?!``)|\*{1,2}[^\s*]|:[\w.:+-]+:`|<http)/; // which go on with a sentence

// Up to three consecutive lines that hold most of the query, and the rest of their sentences:
// { number, place, start, end, marks }.
function snippet(index, passage, wanted) {
  const text = textOf(index, passage);
  const said = new Set([passage.resource.title, ...passage.heading.split("\n")].filter(Boolean).map(plainLine));
  const lines = linesOf(text);
  const spans = matchingSpans(text, wanted).map(([start, end, found]) => ({
    start,
    end,
    terms: found.map((form) => wanted.get(form)),
  }));
  for (const span of spans) {
    const line = lines[lineOf(lines, span.start)];
    const isSaid = said.has(plainLine(text.slice(line.start, line.end)));
    span.weigh = (term) => (index.stopWords.has(term) ? 0.01 : term.length) * (isSaid ? SAID : 1);
  }
  const isSmall = text.length <= SMALL * SNIPPET_LINES;
  const [top, bottom] = isSmall ? trimmed(text, lines, 0, lines.length) : bestWindow(text, lines, spans);
  return lines.slice(top, bottom).map((line, at) => shownLine(text, line, top + at, spans, passage, LONGEST_LINE));
}

// All lines of a passage.
function allLines(index, passage, wanted) {
  const text = textOf(index, passage);
  const spans = matchingSpans(text, wanted).map(([start, end]) => ({ start, end, terms: [] }));
  return linesOf(text).map((line, at) => shownLine(text, line, at, spans, passage, Infinity));
}

// What a reader of the file calls the place of the best line: `line 12`, `p. 3`, `slide 4`.
function placeOf(lines, passage) {
  const best = lines.reduce((most, line) => (line.marks.length > (most?.marks.length ?? -1) ? line : most), null);
  if (best?.place) return best.place;
  if (best?.number) return `line ${best.number}`;
  return passage.line && !passage.places.length ? `line ${passage.line}` : "";
}

function linesOf(text) {
  const lines = [];
  let start = 0;
  for (const match of text.matchAll(/\r\n|\n|\r/g)) {
    lines.push({ start, end: match.index });
    start = match.index + match[0].length;
  }
  lines.push({ start, end: text.length });
  return lines;
}

function lineOf(lines, offset) {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    lines[middle].start <= offset ? (low = middle) : (high = middle - 1);
  }
  return low;
}

function bestWindow(text, lines, spans) {
  const isBlank = (at) => !text.slice(lines[at].start, lines[at].end).trim();
  let top;
  if (spans.length) {
    const numbers = spans.map((span) => lineOf(lines, span.start));
    top = Math.max(Math.min(numbers[bestRun(spans, numbers, SNIPPET_LINES)], lines.length - SNIPPET_LINES), 0);
  } else {
    top = Math.max(lines.findIndex((_, at) => !isBlank(at)), 0);
  }
  return wholeSentences(text, lines, ...trimmed(text, lines, top, Math.min(top + SNIPPET_LINES, lines.length)));
}

// The lines from `top` to `bottom` with those in which their first and their last sentence stand, as far as 400
// characters reach.
function wholeSentences(text, lines, top, bottom) {
  const plain = (at) => (lines[at] ? text.slice(lines[at].start, lines[at].end).trim() : "");
  const goesOn = (at) => {
    const [line, next] = [plain(at).replace(/["')\]*_`”’]+$/, ""), plain(at + 1)];
    const isWrapped = line.length >= WRAPPED && line.split(" ").length > 5 && !/[.!?:;。！？]$/.test(line);
    return isWrapped && next !== "" && (!MARKS.includes(next[0]) || MARKED_WORDS.test(next));
  };
  const hasRoom = (first, last) => lines[last].end - lines[first].start <= LONGEST_LINE;
  while (goesOn(bottom - 1) && hasRoom(top, bottom)) bottom++;
  while (goesOn(top - 1) && hasRoom(top - 1, bottom - 1)) top--;
  return [top, bottom];
}

function trimmed(text, lines, top, bottom) {
  const isBlank = (at) => !text.slice(lines[at].start, lines[at].end).trim();
  while (bottom - top > 1 && isBlank(bottom - 1)) bottom--;
  while (bottom - top > 1 && isBlank(top)) top++;
  return [top, bottom];
}

// A line without the signs that make a heading or an entry of a list of it.
function plainLine(text) {
  return text.replace(/^[#=*\-_> \t]+|[#=*\-_> \t]+$/g, "").toLowerCase().split(/\s+/).join(" ");
}

// The span that begins the best stretch of this width: the weightiest distinct terms, then most matches.
function bestRun(spans, places, width) {
  let best = 0;
  let bestWeight = 0;
  let bestCount = 0;
  let after = 0;
  for (let first = 0; first < places.length; first++) {
    while (after < spans.length && places[after] < places[first] + width) after++;
    const worth = new Map();
    for (const span of spans.slice(first, after)) {
      for (const term of span.terms) worth.set(term, Math.max(worth.get(term) ?? 0, span.weigh(term)));
    }
    const weight = [...worth.values()].reduce((sum, each) => sum + each, 0);
    if (weight > bestWeight || (weight === bestWeight && after - first > bestCount)) {
      [best, bestWeight, bestCount] = [first, weight, after - first];
    }
  }
  return best;
}

function shownLine(text, line, at, spans, passage, longest) {
  const inside = spans.filter((span) => span.start < line.end && span.end > line.start);
  const [start, end] = shownPart(line, inside, longest).map((cut) => outsideOfPair(text, cut));
  const before = start > line.start ? "…" : "";
  const marks = [];
  for (const span of inside) {
    const from = Math.max(span.start, start) - start + before.length;
    const to = Math.min(span.end, end) - start + before.length;
    const last = marks.at(-1);
    if (last && from < last[1]) last[1] = Math.max(last[1], to);
    else if (from < to) marks.push([from, to]);
  }
  const shown = before + text.slice(start, end) + (end < line.end ? "…" : "");
  return { ...placed(passage, line, at), text: shown, marks };
}

function shownPart(line, spans, longest) {
  if (line.end - line.start <= longest) return [line.start, line.end];
  let start = line.start;
  if (spans.length) {
    const places = spans.map((span) => Math.max(span.start, line.start));
    const best = places[bestRun(spans, places, longest - LEAD)];
    start = Math.max(Math.min(best - LEAD, line.end - longest), line.start);
  }
  return [start, Math.min(start + longest, line.end)];
}

// A cut never falls between the two halves of a character.
function outsideOfPair(text, cut) {
  return /[\udc00-\udfff]/.test(text[cut] ?? "") && /[\ud800-\udbff]/.test(text[cut - 1] ?? "") ? cut - 1 : cut;
}

function placed(passage, line, at) {
  if (!passage.places.length) return { number: passage.line + at, place: "" };
  let place = passage.places[0];
  for (const one of passage.places) if (one.start <= line.end) place = one;
  return { number: place.line, place: place.label };
}
