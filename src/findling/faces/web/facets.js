// Facets: how many of the matches have which property, and narrowing an answer by them.

import { byId, fill, h, show } from "./dom.js";
import { FACETS, hasName, isNarrowed, toggled, toggledYear, widened, withName } from "./state.js";
import { number, visible } from "./texts.js";

const MOST_SHOWN = 8;
const opened = new Set();

/** Show the values with their counts. `go(state)` is called with what a choice leads to. */
export function showFacets(state, facets, go) {
  const again = () => showFacets(state, facets, go);
  const groups = Object.entries(FACETS).map(([name, title]) => {
    const values = valuesOf(facets[name], state.filters[name] ?? []);
    return group(name, title, values, (value) => go(toggled(state, name, value)), again);
  });
  const year = state.from.slice(0, 4);
  const isYear = year && state.from === `${year}-01-01` && state.to === `${year}-12-31`;
  const years = valuesOf(facets.year, isYear ? [year] : []).sort((one, other) => other.value.localeCompare(one.value));
  groups.push(group("year", "Year of change", years, (value) => go(toggledYear(state, value)), again));
  const chosen = Object.keys(facets.entity ?? {}).filter((name) => hasName(state.q, name));
  const named = (name) => go({ ...state, q: withName(state.q, name), hit: "", tab: "text" });
  groups.push(group("entity", "Names", valuesOf(facets.entity, chosen), named, again));
  const focused = document.activeElement?.dataset?.facet;
  fill(byId("facet-groups"), groups);
  if (focused) buttonOf(focused)?.focus({ preventScroll: true });
  for (const name of ["from", "to"]) {
    if (document.activeElement !== byId(name)) byId(name).value = state[name];
  }
  show(byId("widen"), isNarrowed(state));
  byId("widen").onclick = () => go(widened(state));
  const count = Object.values(state.filters).flat().length + (state.from || state.to ? 1 : 0);
  byId("filter-count").textContent = count ? ` (${count})` : "";
}

/** The values of one property, and chosen ones that nothing has any more. */
function valuesOf(counts, chosen) {
  const found = Object.entries(counts ?? {});
  const values = found.map(([value, count]) => ({ value, count, isChosen: chosen.includes(value) }));
  const missing = chosen.filter((value) => !(value in (counts ?? {})));
  return [...missing.map((value) => ({ value, count: 0, isChosen: true })), ...values];
}

const buttonOf = (facet) => [...document.querySelectorAll("[data-facet]")].find((one) => one.dataset.facet === facet);

function group(name, title, values, choose, again) {
  if (!values.length) return null;
  const all = opened.has(name);
  const shown = values.filter((one, place) => all || one.isChosen || place < MOST_SHOWN);
  const toggle = () => {
    if (all) opened.delete(name);
    else opened.add(name);
    again();
  };
  return h(
    "section",
    { class: "facet", "aria-labelledby": `facet-${name}` },
    h("h3", { id: `facet-${name}` }, title),
    h("ul", {}, shown.map((one) => h("li", {}, valueButton(name, one, choose)))),
    values.length > MOST_SHOWN ? moreButton(name, values.length, all, toggle) : "",
  );
}

function valueButton(name, { value, count, isChosen }, choose) {
  return h(
    "button",
    {
      type: "button",
      "aria-pressed": isChosen ? "true" : "false",
      data: { facet: `${name}:${value}` },
      on: { click: () => choose(value) },
    },
    h("bdi", { class: "value" }, visible(value)),
    h("span", { class: "count" }, number(count)),
  );
}

function moreButton(name, count, isOpen, toggle) {
  const properties = { type: "button", class: "link", "aria-expanded": isOpen ? "true" : "false" };
  const label = isOpen ? "fewer" : `all ${number(count)}`;
  return h("button", { ...properties, data: { facet: `${name}…` }, on: { click: toggle } }, label);
}
