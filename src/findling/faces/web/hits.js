// Hits: what was found, where it stands, and the lines that show why.

import { miniBar } from "./bars.js";
import { dayOf } from "./dates.js";
import { h, reconcile } from "./dom.js";
import { keyOf } from "./state.js";
import { charactersBefore, counted, linesBox, marked, nameOf, shortName, visible } from "./texts.js";

/** Have the list show these hits. `linkTo(id, tab)` gives the address at which one is opened. */
export function showHits(list, hits, linkTo, { isBrowsing = false } = {}) {
  reconcile(list, hits, {
    keyOf,
    signOf: (hit) => JSON.stringify([hit, isBrowsing]),
    make: (hit) => hitElement(hit, isBrowsing),
  });
  point(list, linkTo);
}

/** Neighbours by meaning: shorter, as they do not match. */
export function showRelated(list, hits, linkTo) {
  reconcile(list, hits, {
    keyOf,
    signOf: (hit) => JSON.stringify(hit),
    make: (hit) => {
      const first = linesElement(shownLines(hit).slice(0, 1));
      return h("li", { class: "hit slim" }, h("h3", {}, titleLink(hit)), whereElement(hit), first);
    },
  });
  point(list, linkTo);
}

/** Mark the hit that is opened, in every list. */
export function markOpened(id) {
  for (const hit of document.querySelectorAll(".hit")) {
    const isOpened = hit.dataset.key === id;
    hit.classList.toggle("opened", isOpened);
    const link = hit.querySelector(".open");
    if (isOpened) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

/** Lines with their numbers and matches, below the name of their page or sheet. */
function linesElement(lines) {
  const last = Math.max(0, ...lines.map((line) => line.number));
  const made = linesBox(last);
  let place = "";
  for (const line of lines) {
    if (line.place && line.place !== place) made.append(h("div", { class: "place" }, line.place));
    place = line.place;
    made.append(
      h(
        "div",
        { class: "line" },
        last > 0 && h("span", { class: "number" }, line.number ? String(line.number) : ""),
        h("span", { class: "text", dir: "auto" }, marked(line.text, line.spans)),
      ),
    );
  }
  return made;
}

/** Have every link of a list lead to its hit from here: hits that stay outlast the question they were found by. */
function point(list, linkTo) {
  for (const link of list.querySelectorAll("a[data-hit]")) {
    link.href = linkTo(link.dataset.hit, link.dataset.tab ?? "text");
  }
}

const titleLink = (hit) => h("a", { class: "open", data: { hit: keyOf(hit) } }, h("bdi", {}, visible(nameOf(hit))));

function hitElement(hit, isBrowsing) {
  const score = hit.score.toFixed(2);
  const why = h(
    "a",
    { class: "why", data: { hit: keyOf(hit), tab: "why" }, title: "Why it is here", "aria-label": `Score ${score}: why` },
    miniBar(hit.receipt),
    h("span", {}, score),
  );
  return h(
    "li",
    { class: "hit" },
    h("h3", {}, titleLink(hit), isBrowsing ? "" : why),
    whereElement(hit),
    chatElement(hit) ?? linesElement(shownLines(hit)),
    passagesElement(hit),
  );
}

function whereElement(hit) {
  const { place } = hit;
  const isSaid = (text) => place === text || place.startsWith(`${text}, `) || place.endsWith(`, ${text}`);
  // The heading of a passage of a chat is who speaks in it, and when.
  const headings = hit.type === "chat" && place ? [] : hit.symbol ? [hit.symbol] : hit.heading;
  const heading = headings.filter((one) => one && one !== hit.title && !isSaid(one)).join(" › ");
  const day = hit.at ? dayOf(hit.at) : "";
  const source = hit.path || hit.rid;
  const line = place || (hit.line > (hit.path ? 0 : 1) ? `line ${hit.line}` : "");
  const successor = hit.receipt?.superseded_by?.at(-1);
  const parts = [
    hit.workspace && h("bdi", { class: "workspace", title: visible(hit.workspace) }, visible(shortName(hit.workspace))),
    hit.type === "file" ? null : h("span", { class: "badge" }, hit.type),
    source === nameOf(hit) ? null : h("bdi", { class: "path" }, visible(source)),
    line,
    heading && h("bdi", {}, visible(heading)),
    hit.author && !isSaid(hit.author) && h("bdi", {}, visible(hit.author)),
    day && !place.includes(day) && h("time", { datetime: day }, day),
    successor && h("span", { class: "old" }, `superseded by ${successor}`),
  ].filter(Boolean);
  return h("p", { class: "where" }, parts.map((part) => h("span", {}, part)));
}

/** A message with those before and after it. */
function chatElement(hit) {
  if (!hit.around.length) return null;
  // Neighbours that stand in the same passage may be shown as its lines.
  const isShown = (line) => hit.lines.some((own) => own.place === line.place && own.text === line.text);
  const around = hit.around.filter((line) => !isShown(line));
  const before = around.filter((line) => line.number < 0);
  const after = around.filter((line) => line.number >= 0);
  const quiet = (line, at, lines) => {
    const isNext = line.place && lines[at - 1]?.number !== line.number;
    const { text, spans } = spoken(line);
    return h("p", { class: "around", dir: "auto" }, isNext && h("b", {}, `${line.place} `), marked(text, spans));
  };
  return h("div", { class: "chat" }, before.map(quiet), linesElement(shownLines(hit)), after.map(quiet));
}

const shownLines = (hit) => (hit.type === "chat" ? hit.lines.map(spoken) : hit.lines);

/** A line of a chat without the `[time] name: ` that its place says already, unless something matched there. */
function spoken(line) {
  const found = /^(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d)\] )?([^:<>[\]\n]{1,64}): /.exec(line.text);
  if (!found || !line.place) return line;
  const [prefix, time, name] = found;
  const size = charactersBefore(prefix, prefix.length);
  const isSaid = time ? line.place.endsWith(time) : line.place === name;
  if (!isSaid || line.spans.some(([start]) => start < size)) return line;
  const spans = line.spans.map(([start, end]) => [start - size, end - size]);
  return { ...line, text: line.text.slice(prefix.length), spans };
}

function passagesElement(hit) {
  if (!hit.passages.length) return null;
  const links = hit.passages.map((one) => {
    const place = one.place || (one.line_start ? `lines ${one.line_start}–${one.line_end}` : "passage");
    const file = one.rid === hit.rid ? "" : `${one.rid.replace(/^file:/, "")} `;
    return h("a", { data: { hit: one.id } }, file + place);
  });
  const listed = links.flatMap((link, place) => [place ? ", " : "", link]);
  return h("p", { class: "passages" }, `${counted(links.length, "more passage")}: `, listed);
}
