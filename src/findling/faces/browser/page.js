// The page: search as you type, facets, keys, and a link for every query.

const PAUSE_MS = 90;
const SHOWN_AT_ONCE = 10;
const MOST_FACETS = 8;

const part = (id) => document.getElementById(id);
const state = { index: null, answer: null, wanted: new Map(), shown: 0 };

async function start() {
  const box = part("query");
  try {
    state.index = await openIndex();
  } catch (error) {
    part("status").textContent = `The index of this page cannot be read: ${error.message}.`;
    return;
  }
  part("about").textContent = aboutText(state.index);
  box.disabled = false;
  listen(box);
  window.findling = { search: (query) => summary(query), terms, stem: stemOf };
  followLink();
  if (!box.value) box.focus();
  document.documentElement.dataset.ready = "yes";
}

function listen(box) {
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => ask(box.value), PAUSE_MS);
  });
  box.form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    if (state.answer?.query !== box.value) ask(box.value);
    openers()[0]?.click();
    openers()[0]?.focus();
  });
  part("more").addEventListener("click", () => {
    const first = state.shown;
    showMore();
    openers()[first]?.focus();
  });
  window.addEventListener("hashchange", followLink);
  document.addEventListener("keydown", onKey);
}

function followLink() {
  const query = new URLSearchParams(location.hash.slice(1)).get("q") ?? "";
  if (state.answer?.query === query) return;
  part("query").value = query;
  ask(query);
}

function ask(query) {
  const started = performance.now();
  state.answer = search(state.index, query);
  state.wanted = wantedForms(state.answer);
  const spent = performance.now() - started;
  history.replaceState(null, "", query.trim() ? `#${new URLSearchParams({ q: query })}` : "#");
  document.title = query.trim() ? `${query.trim()} – ${state.index.title}` : state.index.title;
  part("status").textContent = statusText(state.answer, spent);
  part("advice").replaceChildren(...advice(state.answer));
  part("facets").replaceChildren(...facetButtons(state.answer));
  part("hits").replaceChildren();
  state.shown = 0;
  showMore();
  showRelated(state.answer.related);
  part("welcome").hidden = Boolean(query.trim());
}

function showMore() {
  const { hits } = state.answer;
  const next = hits.slice(state.shown, state.shown + SHOWN_AT_ONCE);
  part("hits").append(...next.map((hit, at) => hitElement(state, hit, state.shown + at)));
  state.shown += next.length;
  part("more").hidden = state.shown >= hits.length;
  part("more").textContent = `Show more of ${(hits.length - state.shown).toLocaleString("en")}`;
}

function showRelated(related) {
  part("related").hidden = !related.length;
  part("related").querySelector("ul").replaceChildren(...related.map((one) => relatedItem(state, one.passage, one.cosine)));
}

function statusText(answer, spent) {
  const { index } = state;
  if (!answer.query.trim()) return `${counted(index.resources.length, "document")}, ${counted(index.passages, "passage")}`;
  if (!answer.total) return "Nothing found";
  if (answer.asked.kind === "browse") return `${counted(answer.total, "document")}, the latest first`;
  const found = `${counted(answer.total, "passage")} in ${counted(answer.documents, "document")}`;
  return `${found}, ${Math.max(1, Math.round(spent))} ms`;
}

function advice(answer) {
  const said = [];
  for (const { term, word, isApplied } of answer.suggestions) {
    const button = element("button", { type: "button", className: "link" }, word);
    button.addEventListener("click", () => replaceQuery(respelled(answer.query, term, word)));
    const before = isApplied ? `Nobody wrote “${term}”. Searched for ` : `Nobody wrote “${term}”. Did you mean `;
    said.push(element("p", {}, before, button, isApplied ? " instead." : "?"));
  }
  const told = new Set(answer.suggestions.map((one) => one.term));
  const silent = [...new Set(answer.unknown)].filter((term) => !told.has(term));
  if (silent.length) said.push(element("p", {}, `Nobody wrote ${silent.map((term) => `“${term}”`).join(", ")} here.`));
  said.push(...answer.notes.map((note) => element("p", {}, `${note[0].toUpperCase()}${note.slice(1)}.`)));
  if (!answer.total && answer.query.trim()) {
    said.push(element("p", { className: "quiet" }, "This page knows words only. A synonym, or fewer words, may find more."));
  }
  return said;
}

function respelled(query, term, word) {
  return query.split(/(\s+)/).map((one) => (one.toLowerCase() === term.toLowerCase() ? word : one)).join("");
}

function facetButtons(answer) {
  return ["type", "ext"].flatMap((name) => {
    const values = answer.facets[name];
    const chosen = answer.asked.filters.filter((filter) => filter.name === name && !filter.isNegative);
    const isChosen = (value) => chosen.some((filter) => filter.values.some((one) => one.replace(/^\*?\./, "") === value));
    if (values.length < 2 && !chosen.length) return [];
    return values.slice(0, MOST_FACETS).map(([value, count]) => {
      const number = element("span", { className: "count" }, ` ${count.toLocaleString("en")}`);
      const pressed = String(isChosen(value));
      const label = name === "ext" ? `.${value}` : value;
      const button = element("button", { type: "button", "aria-pressed": pressed, title: `${name}:${value}` }, label, number);
      button.dataset.filter = `${name}:${value}`;
      button.addEventListener("click", () => replaceQuery(withFacet(answer.query, name, value, pressed === "true")));
      return button;
    });
  });
}

function withFacet(query, name, value, isOn) {
  const filter = new RegExp(`(^|\\s)${name}:(?:"[^"]*"?|[^\\s"])+`, "gi");
  const rest = query.replace(filter, " ").replace(/\s+/g, " ").trim();
  return isOn ? rest : `${rest} ${name}:${/\s/.test(value) ? `"${value}"` : value}`.trim();
}

function replaceQuery(query) {
  part("query").value = query;
  ask(query);
  part("query").focus();
}

function openers() {
  return [...document.querySelectorAll("#hits .opener")];
}

function onKey(event) {
  const box = part("query");
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const isTyping = document.activeElement === box;
  if (event.key === "/" && !isTyping) {
    box.focus();
    box.select();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (!move(event.key === "ArrowDown" ? 1 : -1)) return;
  } else if (event.key === "Escape") {
    leave(box, isTyping);
  } else {
    return;
  }
  event.preventDefault();
}

function move(step) {
  const all = openers();
  const here = document.activeElement.closest?.(".hit");
  const at = here ? all.indexOf(here.querySelector(".opener")) : -1;
  if (document.activeElement.matches("pre") || (at < 0 && document.activeElement !== part("query") && step < 0)) return false;
  if (at + step < 0) part("query").focus();
  else all[at + step]?.focus();
  return all.length > 0;
}

function leave(box, isTyping) {
  const opener = document.activeElement.closest?.(".hit")?.querySelector('.opener[aria-expanded="true"]');
  if (opener) {
    opener.click();
    opener.focus();
  } else if (isTyping) {
    replaceQuery("");
  } else {
    box.focus();
  }
}

function aboutText(index) {
  const holds = `${counted(index.resources.length, "document")} as of ${index.created}`;
  return `${holds}. Made with findling. The search runs in this page; nothing is sent anywhere.`;
}

// For programs: what a search finds, as plain data.
function summary(query) {
  const answer = search(state.index, query);
  const hits = answer.hits.map(({ passage, score, points }) => {
    const { rid, path } = passage.resource;
    return { rid, path: path || "", line: passage.line, score, points };
  });
  return { hits, total: answer.total, notes: answer.notes, suggestions: answer.suggestions, unknown: answer.unknown };
}

start();
