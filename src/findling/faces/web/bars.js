// Bars for scores. Their widths are set as properties: the policy of the page allows no style in its markup.

import { h } from "./dom.js";

/** What each leg is called, and the colour of its bars. */
const LEGS = { keyword: ["Words", "by-words"], semantic: ["Meaning", "by-meaning"], graph: ["Graph", "by-other"] };

const legOf = (name) => LEGS[name] ?? [name, "by-other"];

export const legName = (name) => legOf(name)[0];

/** The score as a bar, divided as the legs have ranked the hit. */
export function miniBar(receipt) {
  const { parts, final_score: score } = receipt;
  const found = parts.filter((part) => part.value > 0);
  const sum = found.reduce((total, part) => total + part.value, 0);
  const segments = found.map((part) => segment((score * part.value) / sum, legOf(part.leg)[1]));
  if (!segments.length) segments.push(segment(score, "by-other"));
  return h("span", { class: "bar mini", "aria-hidden": "true" }, segments);
}

/** One bar, of a value from 0 to 1. */
export function bar(value, kind) {
  return h("span", { class: "bar", "aria-hidden": "true" }, segment(value, kind));
}

/** The bar of a leg. */
export const legBar = (leg, value) => bar(value, legOf(leg)[1]);

/** How far something has come, from 0 to 1. */
export function progressBar(share, label) {
  const bounds = { "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100) };
  const properties = { class: "bar progress", role: "progressbar", "aria-label": label, ...bounds };
  return h("span", properties, segment(share, "by-words"));
}

function segment(value, kind) {
  const made = h("span", { class: kind });
  made.style.inlineSize = width(value);
  return made;
}

const width = (value) => `${(Math.min(1, Math.max(0, value)) * 100).toFixed(2)}%`;
