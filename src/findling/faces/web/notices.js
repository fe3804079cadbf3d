// What is to be said about an answer: what was made of the question, what was missing, what may have been meant.

import { h, warning } from "./dom.js";

/** Everything that an answer says about itself, most useful first. `linkTo` gives the address of another query. */
export function noticesOf(answer, linkTo) {
  return [
    ...suggestions(answer.did_you_mean, linkTo),
    unknown(answer),
    ...answer.degraded.map(({ what, fix }) => warning(sentence(what), fix)),
    ...scope(answer.scope),
    // The page asks for facets by itself: nobody wonders how many names there are.
    ...answer.notes.filter((note) => !note.startsWith("facet ")).map((note) => h("p", { class: "note" }, sentence(note))),
  ].filter(Boolean);
}

/** What keeps an answer away, and the next step. */
export function troubleNotice({ message, hint, code }) {
  if (code === "not-indexed") return warning("Nothing has been indexed here yet.", hint || "findling index");
  return warning(sentence(message), hint);
}

// One line for each way to ask instead, however many words of it differ.
function suggestions(found, linkTo) {
  return [...new Set(found.map((one) => one.query))].map((query) => {
    const words = found.filter((one) => one.query === query);
    const link = h("a", { href: linkTo(query), class: "suggestion", data: { query } }, query);
    if (!words.some((one) => one.applied)) return h("p", { class: "note" }, "Did you mean ", link, "?");
    const typed = words.flatMap(({ term }, place) => [place ? ", " : "", quoted(term)]);
    return h("p", { class: "note" }, "Nothing here holds ", typed, ". Searched for ", link, " as well.");
  });
}

function unknown({ unknown_terms: terms, did_you_mean: suggested }) {
  const left = terms.filter((term) => !suggested.some((one) => one.term === term));
  if (!left.length) return null;
  const words = left.flatMap((term, place) => [place ? ", " : "", quoted(term)]);
  return h("p", { class: "note" }, "Nothing here holds ", words, ".");
}

function scope(found) {
  const parts = Object.entries(found ?? {}).filter(([, value]) => (Array.isArray(value) ? value.length : value));
  if (!parts.length) return [];
  const told = parts.map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return [h("p", { class: "note" }, "The project file limits searches: ", h("code", {}, told.join("; ")))];
}

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");

const quoted = (term) => h("bdi", {}, `“${term}”`);
