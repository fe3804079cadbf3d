// The page: what its address says is shown, and whatever is done leads to another address.

import { ask, isAborted } from "./api.js";
import { watchConnection } from "./connection.js";
import { byId, fill, show } from "./dom.js";
import { showFacets } from "./facets.js";
import { makeGlossary } from "./glossary.js";
import { markOpened } from "./hits.js";
import { listenToKeys } from "./keys.js";
import { makePreview } from "./preview.js";
import { clearResults, showAnswer, showStage, showTrouble } from "./results.js";
import { makeSearcher } from "./search.js";
import { addressOf, ALL, isAsked, questionOf, settled, stateOf, TABS } from "./state.js";
import { makeStatus } from "./status.js";
import { shortName } from "./texts.js";
import { makeThemes } from "./themes.js";

const NARROW = matchMedia("(max-width: 64rem)");
const TOAST_MS = 5000;
const MAINS = { search: "search", themes: "themes", glossary: "glossary", status: "state" };

let state = stateOf(location.href);
let answer;
let isTyping = false;
let toastTimer;
const withGraph = new Set();

const connection = watchConnection((message) => {
  say(message);
  refresh();
});
const searcher = makeSearcher({ onAnswer, onTrouble: onSearchTrouble, onAsking: showStage });
const preview = makePreview({ go: (changes) => go({ ...state, ...changes }), say, onTrouble });
const glossary = makeGlossary({ say, onTrouble });
const themes = makeThemes({ onTrouble });
const status = makeStatus({ say, onTrouble, onChanged });

/** Go to another state: `replace` leaves the one before out of the history, `typed` waits until somebody pauses. */
function go(next, { replace = false, typed = false } = {}) {
  const before = state;
  state = settled(next);
  const address = addressOf(state);
  if (addressOf(before) !== address) history[replace ? "replaceState" : "pushState"](null, "", address);
  follow(before, typed);
}

function follow(before, typed = false) {
  showState();
  if (before.view !== state.view || before.workspace !== state.workspace) enterView(before);
  const isOther = questionOf(before) !== questionOf(state) || (before.view !== state.view && !answer);
  if (state.view === "search" && isOther) {
    if (typed) searcher.typed(state);
    else searcher.now(state);
  }
  updatePreview(before);
}

/** Everything that the state alone decides. */
function showState() {
  const box = byId("query");
  if (box.value !== state.q) box.value = state.q;
  const subject = state.view === "search" ? state.q.trim() || (state.theme && "theme") : state.view;
  document.title = subject ? `${subject} – findling` : "findling";
  for (const [view, id] of Object.entries(MAINS)) show(byId(id), state.view === view);
  for (const link of document.querySelectorAll("[data-view]")) {
    link.href = addressOf({ ...stateOf("/"), view: link.dataset.view, workspace: state.workspace });
    if (link.closest("nav") && link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const radio of document.querySelectorAll("#modes input")) radio.checked = radio.value === state.mode;
  if (byId("workspace").value !== state.workspace) byId("workspace").value = state.workspace;
  show(byId("welcome"), !isAsked(state));
  showThemesLink();
}

function showThemesLink() {
  const isThere = withGraph.has(state.workspace) || state.view === "themes" || state.theme;
  show(byId("themes-link"), Boolean(isThere));
}

function enterView(before) {
  status.load(state);
  loadView();
  if (before.view === state.view) return;
  if (state.view === "search") byId("query").focus({ preventScroll: true });
  else byId(`${MAINS[state.view]}-title`).focus();
}

function loadView() {
  if (state.view === "glossary") glossary.load(state);
  if (state.view === "themes") themes.load(state);
}

function updatePreview(before) {
  const isOpen = state.view === "search" && state.hit;
  preview.update(isOpen ? state : { ...state, hit: "" }, answer);
  markOpened(state.hit);
  if (isOpen && !before.hit && NARROW.matches) byId("preview-title").focus({ preventScroll: true });
}

/** Ask again for everything that is shown. */
function refresh() {
  showWorkspaces();
  status.load(state);
  loadView();
  if (state.view === "search" || state.view === "status") searcher.now(state);
  if (state.hit) preview.update(state, answer);
}

// Answers

const links = {
  linkTo: (id, tab) => addressOf({ ...state, hit: id, tab }),
  linkToQuery: (q) => addressOf({ ...state, q, hit: "" }),
  widen: (next) => go(next),
};

function onAnswer(asked, found, isQuick) {
  answer = isQuick ? { ...found, facets: answer?.facets ?? {} } : found;
  if (!isQuick) isTyping = false;
  showAnswer(asked, answer, { isQuick, ...links });
  if (!isQuick) showFacets(asked, answer.facets, (next) => go(next));
  // Names are counted where there is a graph.
  if (Object.keys(answer.facets.entity ?? {}).length) withGraph.add(asked.workspace);
  showThemesLink();
  updatePreview(state);
  document.documentElement.dataset.ready = "yes";
}

function onSearchTrouble(error, isQuick) {
  document.documentElement.dataset.ready = "yes";
  showStage(undefined);
  if (error.kind !== "problem") onTrouble(error);
  else if (!isQuick) {
    answer = undefined;
    clearResults();
    showTrouble(error);
  }
}

/** The index has changed: what is shown may have, too. */
function onChanged() {
  if (state.view === "themes") themes.load(state);
  if (state.view !== "search") answer = undefined;
  else if (!isTyping) searcher.now(state);
}

function onTrouble(error) {
  if (error.kind === "offline") connection.lost();
  else if (error.kind === "token") connection.askForToken();
  else say(error.message);
}

async function showMore() {
  const button = byId("more");
  const last = answer.hits.at(-1)?.id;
  button.disabled = true;
  try {
    const next = await searcher.more(state, answer.next_cursor);
    const known = new Set(answer.hits.map((hit) => hit.id));
    const hits = [...answer.hits, ...next.hits.filter((hit) => !known.has(hit.id))];
    answer = { ...answer, hits, next_cursor: next.next_cursor };
    showAnswer(state, answer, links);
    markOpened(state.hit);
    const titles = [...document.querySelectorAll("#hits .open")];
    titles[titles.findIndex((link) => link.dataset.hit === last) + 1]?.focus();
  } catch (error) {
    if (!isAborted(error)) onTrouble(error);
  } finally {
    button.disabled = false;
  }
}

/** Have something shown for a while, and read out. */
function say(message) {
  clearTimeout(toastTimer);
  byId("said").textContent = message;
  toastTimer = setTimeout(() => fill(byId("said")), TOAST_MS);
}

async function showWorkspaces() {
  try {
    const { workspaces } = await ask("/v1/workspaces");
    const labelOf = (one) => one.label || one.name;
    const served = workspaces.find((one) => one.is_default);
    const names = workspaces.filter((one) => !one.is_default).map(labelOf);
    if (![ALL, "", ...names].includes(state.workspace)) names.push(state.workspace);
    const first = new Option((served && shortName(labelOf(served))) || "served here", "");
    fill(byId("workspace"), first, new Option("All", ALL), names.map((name) => new Option(shortName(name), name)));
    byId("workspace").value = state.workspace;
    show(byId("chooser"), names.length > 0);
  } catch (error) {
    onTrouble(error);
  }
}

// What can be done

const page = {
  get view() {
    return state.view;
  },
  focusBox() {
    if (state.view !== "search") go({ ...state, view: "search" });
    byId("query").focus();
    byId("query").select();
  },
  submit() {
    isTyping = false;
    searcher.submitted(state);
  },
  clear() {
    go({ ...state, q: "", hit: "", tab: "text" }, { replace: isTyping, typed: true });
  },
  move(by) {
    const titles = [...document.querySelectorAll("#search .open")].filter((link) => link.offsetParent);
    if (!titles.length) return false;
    const focused = document.activeElement.closest?.(".hit")?.dataset.key ?? state.hit;
    const at = titles.findIndex((link) => link.dataset.hit === focused);
    if (at + by < 0) {
      byId("query").focus();
      return true;
    }
    const link = titles[Math.min(titles.length - 1, at + by)];
    link.focus({ preventScroll: true });
    link.closest(".hit").scrollIntoView({ block: "nearest" });
    if (state.hit && !NARROW.matches) go({ ...state, hit: link.dataset.hit }, { replace: true });
    return true;
  },
  open: () => openHit("text"),
  explain: () => openHit("why"),
  around: () => openHit("graph"),
  copy() {
    if (!state.hit) return false;
    preview.copyCitation();
    return true;
  },
  whole() {
    if (!state.hit || byId("whole").hidden) return false;
    preview.showWhole();
    return true;
  },
  otherTab(by) {
    const tab = TABS[(TABS.indexOf(state.tab) + by + TABS.length) % TABS.length];
    go({ ...state, tab }, { replace: true });
    byId(`tab-${tab}`).focus();
    return true;
  },
  closePreview() {
    if (state.view !== "search" || !state.hit) return false;
    const id = state.hit;
    go({ ...state, hit: "", tab: "text" });
    const titles = [...document.querySelectorAll(".hit .open")];
    titles.find((link) => link.dataset.hit === id)?.focus({ preventScroll: true });
    return true;
  },
  glossaryKey: (key) => glossary.key(key),
  themesKey: (key) => themes.key(key),
};

function openHit(tab) {
  const id = document.activeElement.closest?.(".hit")?.dataset.key ?? state.hit;
  if (!id) return false;
  go({ ...state, hit: id, tab });
  return true;
}

function listen() {
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  byId("query").addEventListener("input", (event) => {
    const view = state.view === "search" ? state : { ...state, view: "search" };
    go({ ...view, q: event.target.value, hit: "", tab: "text" }, { replace: isTyping, typed: true });
    isTyping = true;
  });
  const change = (id, changes) => {
    const react = ({ target }) => go({ ...state, ...changes(target.value), hit: "", tab: "text" });
    byId(id).addEventListener("change", react);
  };
  change("modes", (mode) => ({ view: "search", mode }));
  change("workspace", (workspace) => ({ workspace, filters: {}, from: "", to: "", theme: "" }));
  for (const name of ["from", "to"]) change(name, (day) => ({ [name]: day }));
  byId("more").addEventListener("click", showMore);
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  document.addEventListener("click", followLink);
  window.addEventListener("popstate", () => {
    const before = state;
    state = stateOf(location.href);
    isTyping = false;
    follow(before);
  });
  listenToKeys(page);
  if (NARROW.matches) byId("facet-box").open = false;
}

/** Links of the page lead to its states; with a key held down, the browser opens them elsewhere. */
function followLink(event) {
  const link = event.target.closest?.("a[data-hit], a[data-view], a[data-state], a.suggestion");
  const isElsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!link || isElsewhere || event.defaultPrevented) return;
  event.preventDefault();
  if (link.dataset.hit) go({ ...state, hit: link.dataset.hit, tab: link.dataset.tab ?? "text" });
  else if (link.dataset.view || link.dataset.state !== undefined) go({ ...stateOf(link.href) });
  else {
    go({ ...state, q: link.dataset.query, hit: "" });
    byId("query").focus();
  }
}

listen();
showState();
showFacets(state, {}, (next) => go(next));
if (state.view === "search" && !state.hit && !NARROW.matches) byId("query").focus();
preview.update(state.view === "search" ? state : { ...state, hit: "" }, undefined);
refresh();
if (state.view !== "search") document.documentElement.dataset.ready = "yes";
