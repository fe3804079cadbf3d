// The graph around a hit: a drawing of its names and of the documents that share them, and the same as a list.

import { h } from "./dom.js";
import { citation, counted, nameOf, visible } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 720;
const HEIGHT = 420;
const MOST = 8;
const LONGEST = 22;
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/**
 * The names and documents of an answer. `linkTo(id)` gives the address of a document's passage, `linkToName(name)` that
 * of a search for a name.
 */
export function graphElement({ names, documents, degraded }, hit, links) {
  const notes = degraded.map(({ what, fix }) => h("p", { class: "note warning" }, `${what}: ${fix}`));
  if (!names.length && !documents.length) {
    return h("div", { class: "graph" }, notes.length ? notes : h("p", { class: "quiet" }, "It names nothing."));
  }
  return h("div", { class: "graph" }, notes, drawing(names, documents, hit, links), list(names, documents, links));
}

function list(names, documents, links) {
  const nameItem = (one) =>
    h("li", {}, nameLink(one.name, links), h("small", {}, ` ${plain(one.passage.text)}`));
  const documentItem = (one) =>
    h("li", {}, documentLink(one.passage, links), h("small", {}, ` by ${plain(one.names.join(", "))}`));
  return h(
    "div",
    {},
    names.length ? [h("h4", {}, "Names"), h("ul", { class: "graph-names" }, names.map(nameItem))] : "",
    documents.length
      ? [h("h4", {}, "Documents with the same names"), h("ul", { class: "graph-documents" }, documents.map(documentItem))]
      : "",
  );
}

const nameLink = (name, { linkToName, queryOf }) =>
  h("a", { class: "suggestion", href: linkToName(name), data: { query: queryOf(name) } }, h("bdi", {}, visible(name)));

const documentLink = (passage, { linkTo }) =>
  h("a", { href: linkTo(passage.id), data: { hit: passage.id, tab: "graph" } }, h("bdi", {}, visible(nameOf(passage))));

/** The hit, its names around it, and outside the documents that share one. */
function drawing(names, documents, hit, links) {
  const ring = names.slice(0, MOST);
  const rankOf = (one) => ring.findIndex(({ name }) => one.names.includes(name));
  const outer = documents.slice(0, MOST).sort((one, other) => rankOf(one) - rankOf(other));
  const centre = [WIDTH / 2, HEIGHT / 2];
  const at = (share, radius) => {
    const angle = 2 * Math.PI * share - Math.PI / 2;
    return [centre[0] + Math.cos(angle) * radius * 1.5, centre[1] + Math.sin(angle) * radius];
  };
  const placeOf = new Map(ring.map((one, place) => [one.name, at(place / ring.length, 95)]));
  const lines = [...placeOf.values()].map((place) => line(centre, place));
  const nodes = ring.map((one) => {
    const link = svg("a", { href: links.linkToName(one.name), class: "suggestion graph-name" });
    link.dataset.query = links.queryOf(one.name);
    return node(link, placeOf.get(one.name), one.name, `search for ${one.name}`);
  });
  outer.forEach((one, place) => {
    const own = at((place + 0.5) / outer.length, 180);
    const shared = one.names.filter((name) => placeOf.has(name));
    lines.push(...(shared.length ? shared.map((name) => line(placeOf.get(name), own)) : [line(centre, own)]));
    const link = svg("a", { href: links.linkTo(one.passage.id), class: "graph-document" });
    Object.assign(link.dataset, { hit: one.passage.id, tab: "graph" });
    nodes.push(node(link, own, nameOf(one.passage), `open ${citation(one.passage)}`));
  });
  const middle = node(svg("g", { class: "graph-hit" }), centre, nameOf(hit), nameOf(hit));
  const told = `${counted(ring.length, "name")} and ${counted(outer.length, "document")} around ${plain(nameOf(hit))}`;
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": told, class: "drawing" });
  box.append(...lines, middle, ...nodes);
  return box;
}

function node(element, [x, y], label, told) {
  const shown = plain(label);
  const short = shown.length > LONGEST ? `${[...shown].slice(0, LONGEST - 1).join("")}…` : shown;
  const text = svg("text", { x: x.toFixed(1), y: (y + 16).toFixed(1), "text-anchor": "middle", direction: "ltr" });
  text.textContent = short;
  const title = svg("title", {});
  title.textContent = shown;
  element.setAttribute("aria-label", plain(told));
  element.append(title, svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: "6" }), text);
  return element;
}

function line([x1, y1], [x2, y2]) {
  const ends = { x1, y1, x2, y2 };
  return svg("line", Object.fromEntries(Object.entries(ends).map(([name, value]) => [name, value.toFixed(1)])));
}

function svg(name, properties) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  return made;
}

/** A text in which marks that turn others round can be seen. */
const plain = (text) => text.replace(TURNING, (mark) => `U+${mark.codePointAt(0).toString(16).toUpperCase()}`);
