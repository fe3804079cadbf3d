// Asking: a quick answer while somebody types, the whole one when they pause.

import { ask, isAborted, pathOf } from "./api.js";
import { nextDay } from "./dates.js";
import { ALL, FACETS, questionOf } from "./state.js";

const QUICK_AFTER_MS = 120;
const WHOLE_AFTER_MS = 500;
const PAGE = 20;

/**
 * Answers come through `onAnswer(state, answer, isQuick)`, what keeps them away through `onTrouble(error, isQuick)`.
 * Only the latest question is answered: what was asked before is called off.
 */
export function makeSearcher({ onAnswer, onTrouble, onAsking }) {
  let timers = [];
  let calls = new AbortController();
  let asked = 0;
  let latest = {};

  function begin(state) {
    timers.forEach(clearTimeout);
    timers = [];
    calls.abort();
    calls = new AbortController();
    asked += 1;
    latest = { turn: asked, signal: calls.signal, question: questionOf(state), isAsked: false, isWhole: false };
    return latest;
  }

  async function run(state, round, isQuick) {
    if (round.isWhole) return;
    round.isAsked ||= !isQuick;
    onAsking(isQuick);
    try {
      const answer = await answerTo(state, round.signal, isQuick);
      if (round.turn !== asked || round.isWhole) return;
      round.isWhole = !isQuick;
      onAnswer(state, answer, isQuick);
    } catch (error) {
      if (!isQuick) round.isAsked = false;
      if (!isAborted(error) && round.turn === asked) onTrouble(error, isQuick);
    }
  }

  return {
    /** Somebody types: answer soon, and in full once they pause. */
    typed(state) {
      const round = begin(state);
      timers = [
        setTimeout(() => run(state, round, true), QUICK_AFTER_MS),
        setTimeout(() => run(state, round, false), WHOLE_AFTER_MS),
      ];
    },
    /** Answer at once, and in full. */
    now(state) {
      return run(state, begin(state), false);
    },
    /** The same, unless the whole answer is there or under way. */
    submitted(state) {
      const isAsked = latest.isAsked && latest.question === questionOf(state);
      return isAsked ? undefined : run(state, begin(state), false);
    },
    /** The next page of an answer. */
    async more(state, cursor) {
      const page = state.workspace === ALL ? { offset: Number(cursor) } : { cursor };
      return withNext(state, await ask("/v1/search", { body: { ...bodyOf(state), ...page }, signal: calls.signal }));
    },
  };
}

function answerTo(state, signal, isQuick) {
  if (state.theme) return themeAnswer(state, signal);
  return isQuick ? quickAnswer(state, signal) : wholeAnswer(state, signal);
}

/** The best passages of a theme. */
function themeAnswer({ theme, workspace }, signal) {
  return ask(`/v1/themes/${pathOf(theme)}`, { query: { limit: PAGE, workspace }, signal });
}

function quickAnswer(state, signal) {
  return ask("/v1/search", { body: { ...bodyOf(state), quick: true }, signal });
}

/** The answer with its facets. Values beside chosen ones are counted without these. */
async function wholeAnswer(state, signal) {
  const names = [...Object.keys(FACETS), "year", "entity"];
  const chosen = [...Object.keys(state.filters), ...(state.from || state.to ? ["year"] : [])];
  const [answer, ...others] = await Promise.all([
    ask("/v1/search", { body: { ...bodyOf(state), facets: names }, signal }),
    ...chosen.map((name) => {
      const body = { ...bodyOf(without(state, name)), facets: [name], limit: 1, quick: true };
      return ask("/v1/search", { body, signal });
    }),
  ]);
  const facets = { ...answer.facets };
  chosen.forEach((name, place) => {
    facets[name] = others[place].facets[name];
  });
  return withNext(state, { ...answer, facets });
}

/** The answer of all workspaces has no cursor: its next page begins at an offset. */
function withNext(state, answer) {
  const next = state.workspace === ALL && answer.hits.length === PAGE ? answer.plan.offset + PAGE : 0;
  return next ? { ...answer, next_cursor: String(next) } : answer;
}

function without(state, name) {
  if (name === "year") return { ...state, from: "", to: "" };
  const { [name]: _, ...filters } = state.filters;
  return { ...state, filters };
}

/** The request that a state stands for. */
function bodyOf(state) {
  const body = { query: state.q.trim(), limit: PAGE, filters: filtersOf(state), patient: true };
  if (state.workspace === ALL) body.scope = "all";
  else if (state.workspace) body.workspace = state.workspace;
  if (state.mode !== "hybrid") body.mode = state.mode;
  return body;
}

/** The same, as it stands in an address. */
export function parametersOf(state) {
  const mode = state.mode === "hybrid" ? "" : state.mode;
  return { q: state.q.trim(), ...filtersOf(state), workspace: state.workspace, mode };
}

// Days are those of UTC, as the years of the facets and the dates of hits are.
function filtersOf({ filters, from, to }) {
  return { ...filters, ...(from && { after: `${from}T00:00:00Z` }), ...(to && { before: `${nextDay(to)}T00:00:00Z` }) };
}
