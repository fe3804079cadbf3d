// The results: how much was found, what is to be said about it, and the hits.

import { hasToken } from "./api.js";
import { byId, fill, h, show } from "./dom.js";
import { showHits, showRelated } from "./hits.js";
import { noticesOf, troubleNotice } from "./notices.js";
import { isAsked, isNarrowed, widened } from "./state.js";
import { counted, milliseconds, visible } from "./texts.js";

const BY = { keyword: "by words", semantic: "by meaning", hybrid: "by words and meaning", graph: "by shared names" };

/** Show an answer in the place of the one before. `linkTo(id, tab)` and `linkToQuery(text)` give addresses. */
export function showAnswer(state, answer, { isQuick = false, linkTo, linkToQuery, widen }) {
  const isBrowsing = answer.reading === "browse";
  const isFound = answer.hits.length > 0;
  const count = countOf(state, answer);
  show(byId("theme-line"), Boolean(state.theme));
  fill(byId("theme-names"), state.theme ? visible(answer.understood_as.replace(/^the theme/, "Theme:")) : "");
  byId("count").textContent = count;
  if (!isQuick) byId("announce").textContent = isFound ? count : "Nothing was found";
  showStage(isQuick ? true : undefined, answer);
  fill(byId("notices"), isAsked(state) ? noticesOf(answer, linkToQuery) : []);
  showHits(byId("hits"), answer.hits, linkTo, { isBrowsing });
  showHits(byId("relaxed-hits"), answer.relaxed, linkTo);
  show(byId("relaxed"), answer.relaxed.length > 0);
  showRelated(byId("related-hits"), answer.related, linkTo);
  show(byId("related"), answer.related.length > 0);
  show(byId("more"), Boolean(answer.next_cursor) && !isQuick);
  show(byId("recent"), isFound);
  show(byId("nothing"), !isFound);
  if (!isFound) fill(byId("nothing"), isAsked(state) ? nothingElement(state, answer, widen) : emptyElement(state));
  byId("results").removeAttribute("aria-busy");
}

/** What is going on: `true` a quick answer, `false` the whole one is asked for, `undefined` it is there. */
export function showStage(isQuick, answer) {
  const stage = byId("stage");
  const isAsking = isQuick !== undefined;
  stage.classList.toggle("asking", isAsking);
  if (isAsking) {
    byId("results").setAttribute("aria-busy", "true");
    if (answer) stage.textContent = "first look";
    return;
  }
  byId("results").removeAttribute("aria-busy");
  stage.textContent = answer ? told(answer) : "";
}

/** Nothing can be shown. */
export function clearResults() {
  for (const id of ["hits", "relaxed-hits", "related-hits", "count", "notices"]) fill(byId(id));
  for (const id of ["relaxed", "related", "more", "nothing", "welcome", "theme-line"]) show(byId(id), false);
}

/** Why nothing can be shown, and what to do. */
export function showTrouble(error) {
  fill(byId("notices"), troubleNotice(error));
  byId("announce").textContent = error.message;
}

function countOf(state, answer) {
  if (!isAsked(state)) return "";
  if (!answer.hits.length) return "";
  const shown = counted(answer.hits.length, "hit");
  const weaker = answer.weaker ? `, ${counted(answer.weaker, "weaker passage")} left out` : "";
  const least = answer.total_is_exact ? "" : "at least ";
  return (answer.total > answer.hits.length ? `${shown} of ${least}${counted(answer.total, "passage")}` : shown) + weaker;
}

function told(answer) {
  const time = Object.values(answer.timings_ms ?? {}).reduce((sum, value) => sum + value, 0);
  const latest = answer.hits.length ? "latest first" : "";
  const by = answer.reading === "browse" ? latest : BY[answer.strategy] ?? answer.strategy;
  return [by, answer.meaning?.reranker ? "reranked" : "", time ? milliseconds(time) : ""].filter(Boolean).join(" · ");
}

/** Nothing was asked for, and nothing is there: how to take something in. */
function emptyElement({ workspace }) {
  const within = /^[\w.-]+$/.test(workspace) ? ` --workspace ${workspace}` : "";
  const ways = [
    ["findling index", within ? "the files of its folder, if it has one" : "the files of the folder"],
    ["findling chats import FILE", "an export of chats"],
    ["findling add FILE", "decisions, notes and other items, as JSON"],
  ];
  return [
    h("p", {}, h("b", {}, hasToken() ? "Nothing is in here yet that this token may see." : "Nothing is in here yet.")),
    h("p", { class: "quiet" }, "These take something in:"),
    h("dl", { class: "ways" }, ways.map(([command, what]) =>
      h("div", {}, h("dt", {}, h("code", { class: "fix" }, `${command}${within}`)), h("dd", {}, what)),
    )),
  ];
}

function nothingElement(state, answer, widen) {
  const offers = [];
  if (isNarrowed(state)) offers.push(offer("Search without the filters", () => widen(widened(state))));
  if (state.mode !== "hybrid") {
    offers.push(offer("Search by words and meaning", () => widen({ ...state, mode: "hybrid" })));
  }
  return [
    h("p", {}, h("b", {}, "Nothing was found.")),
    h("p", { class: "quiet" }, adviceOn(state.q, answer)),
    offers.length ? h("p", { class: "actions" }, offers) : "",
  ];
}

function adviceOn(query, { reading, strategy }) {
  if (strategy === "graph") return "It shares no names with others, or none that they still have.";
  const isSearchable = /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(query);
  if (query.trim() && !isSearchable) return "Type a word, or the beginning of one.";
  if (reading === "browse") return "There is nothing here that passes these filters.";
  const words = query.trim().split(/\s+/).filter((word) => !/^-?\w+:/.test(word));
  return `Try ${words.length > 1 ? "fewer words, " : ""}another word for the same, or only its beginning: config*.`;
}

const offer = (label, act) => h("button", { type: "button", class: "plain", on: { click: act } }, label);
