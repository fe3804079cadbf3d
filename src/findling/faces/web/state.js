// What the page shows, as its address says it. Everything here is pure.

import { isDay } from "./dates.js";

const VIEWS = ["search", "themes", "glossary", "status"];
const MODES = ["hybrid", "keyword", "semantic"];
export const TABS = ["text", "why", "graph"];

/** Properties by which answers can be narrowed, and what people call them. */
export const FACETS = { type: "Type", ext: "Extension", path: "Folder", author: "Author", tag: "Tag" };

const START = Object.freeze({
  view: "search",
  q: "",
  mode: "hybrid",
  workspace: "",
  filters: Object.freeze({}),
  from: "",
  to: "",
  theme: "",
  hit: "",
  tab: "text",
});

/** Stands for every workspace, in the place of the name of one. */
export const ALL = "*";

const APART = "\u001f";

/** The name of a hit in a state: its id, with its workspace where that is another one. */
export const keyOf = (hit) => (hit.workspace ? hit.workspace + APART + hit.id : hit.id);

/** The state with the workspace and the id of its hit. */
export function located(state) {
  const [workspace, id] = state.hit.split(APART);
  return id === undefined ? state : { ...state, workspace, hit: id };
}

/** The state that an address stands for; what it does not understand it leaves out. */
export function stateOf(address) {
  const given = new URL(address, "http://localhost/").searchParams;
  const one = (name, allowed) => (allowed.includes(given.get(name)) ? given.get(name) : START[name]);
  const day = (name) => (isDay(given.get(name) ?? "") ? given.get(name) : "");
  const filters = {};
  for (const name of Object.keys(FACETS)) {
    const values = [...new Set(given.getAll(name).filter(Boolean))];
    if (values.length) filters[name] = values;
  }
  return settled({
    view: one("view", VIEWS),
    q: given.get("q") ?? "",
    mode: one("mode", MODES),
    workspace: given.get("workspace") ?? "",
    filters,
    from: day("from"),
    to: day("to"),
    theme: given.get("theme") ?? "",
    hit: given.get("hit") ?? "",
    tab: one("tab", TABS),
  });
}

/** A state without the theme, where it asks for something else. */
export function settled(state) {
  return state.theme && (state.q.trim() || isNarrowed(state)) ? { ...state, theme: "" } : state;
}

/** The address of a state, with no word more than it needs. */
export function addressOf(state) {
  const query = new URLSearchParams();
  const put = (name) => state[name] !== START[name] && query.set(name, state[name]);
  put("view");
  put("q");
  for (const name of Object.keys(FACETS)) for (const value of state.filters[name] ?? []) query.append(name, value);
  for (const name of ["from", "to", "theme", "mode", "workspace", "hit"]) put(name);
  if (state.hit) put("tab");
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

/** Take a value into a filter, or out of it. */
export function toggled(state, name, value) {
  const before = state.filters[name] ?? [];
  const values = before.includes(value) ? before.filter((one) => one !== value) : [...before, value];
  const { [name]: _, ...others } = state.filters;
  return { ...state, filters: values.length ? { ...others, [name]: values } : others, hit: "", tab: "text" };
}

/** A query with a name as a phrase, or without it again. */
export function withName(q, name) {
  const phrase = phraseOf(name);
  return hasName(q, name) ? q.replace(phrase, "").replace(/\s+/g, " ").trim() : `${q.trim()} ${phrase}`.trim();
}

export const hasName = (q, name) => q.includes(phraseOf(name));

const phraseOf = (name) => `"${name.replaceAll('"', " ").trim()}"`;

/** Limit it to one year, or no longer. */
export function toggledYear(state, year) {
  const [from, to] = [`${year}-01-01`, `${year}-12-31`];
  const isChosen = state.from === from && state.to === to;
  return { ...state, from: isChosen ? "" : from, to: isChosen ? "" : to, hit: "", tab: "text" };
}

export const isNarrowed = (state) => Boolean(Object.keys(state.filters).length || state.from || state.to);

/** Without any filter. */
export const widened = (state) => ({ ...state, filters: {}, from: "", to: "", hit: "", tab: "text" });

/** Whether there is anything to look for. */
export const isAsked = (state) => Boolean(state.q.trim() || state.theme || isNarrowed(state));

/** What a search depends on, as one text: states with the same question have the same. */
export const questionOf = (state) => addressOf({ ...state, view: "search", hit: "", tab: "text" });
