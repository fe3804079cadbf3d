// The receipt of a hit: every part of its score, what moved it, what matched, and how the question was read.

import { bar, legBar, legName } from "./bars.js";
import { h, table } from "./dom.js";
import { milliseconds, number, percent, visible } from "./texts.js";

/** The receipt of a hit; each of the three may be missing. */
export function receiptElement({ hit, answer, explanation }) {
  const sections = [];
  if (explanation && !explanation.found) sections.push(absence(explanation));
  if (hit) sections.push(scoreSection(hit.receipt), wordsSection(hit.receipt), historySection(hit.receipt));
  if (explanation) sections.push(legsSection(explanation), filtersSection(explanation));
  sections.push(questionSection(answer ?? explanation), timingsSection(answer));
  return h("div", { class: "receipt" }, sections);
}

/** Names with what they are, those without anything left out. */
export function facts(listed) {
  const shown = listed.filter(([, value]) => value);
  return h("dl", { class: "facts" }, shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function section(title, ...children) {
  return h("section", {}, h("h4", {}, title), ...children);
}

// A bar for each kind of evidence: the score is the best one, times whatever moved the hit.
function scoreSection(receipt) {
  if (!receipt.parts.length) return null;
  const rows = receipt.parts.map((part) => {
    const isEvidence = part.evidence > 0 || part.measure === "BM25" || part.measure === "cosine";
    const [value, told] = isEvidence ? [part.evidence, part.evidence.toFixed(4)] : [part.value, "ranks"];
    return scoreRow(legName(part.leg), partDetail(part), legBar(part.leg, value), told);
  });
  let score = Math.max(...receipt.parts.map(({ evidence }) => evidence));
  if (rows.length > 1 || receipt.steps.length) {
    rows.push(scoreRow("Evidence", "the best one, before anything moved it", bar(score, "by-sum"), score.toFixed(4)));
  }
  for (const { name, factor, reason } of receipt.steps) {
    score *= factor;
    const value = factor === 1 ? "moved" : `× ${factor.toFixed(3)}`;
    rows.push(scoreRow(name, reason, bar(score, factor < 1 ? "by-less" : "by-more"), value));
  }
  const final = receipt.final_score;
  rows.push({ ...scoreRow("Score", "from 0 to 1", bar(final, "by-final"), final.toFixed(4)), kind: "final" });
  return section("Score", table("score-table", [], rows));
}

function scoreRow(name, detail, shown, value) {
  return { cells: [[name, h("small", {}, detail)], h("td", { class: "bar-cell" }, shown), valueCell(value)] };
}

const valueCell = (value) => h("td", { class: "value" }, value);

// A leg that brings a hit behind the others, such as the graph, has evidence and no rank.
function partDetail({ leg, rank, raw, measure, evidence, why, normalised, weight }) {
  if (!rank && !evidence) return "not found by this";
  const remark = why && `, ${visible(why)}${leg === "semantic" ? " vectors" : ""}`;
  const measured = `${measure} ${raw.toFixed(measure === "BM25" ? 2 : 3)}${remark}`;
  if (!rank) return measured;
  return `rank ${number(rank)}, ${measured}; ranks the hit by ${normalised.toFixed(3)} × ${weight.toFixed(3)}`;
}

function wordsSection({ matches, missing, aliases }) {
  const rows = matches.map(({ term, field, forms, count }) => ({
    cells: [term, field, forms.join(", "), valueCell(`× ${count}`)],
  }));
  for (const term of missing) {
    rows.push({ kind: "missing", cells: [term, h("td", { colspan: "3" }, "is not in this passage")] });
  }
  const others = aliases.map(({ typed, alias, count, group }) => {
    const origin = h("small", {}, ` glossary: ${group}`);
    return h("li", {}, h("b", {}, typed), " also means ", h("b", {}, alias), ` × ${count}`, origin);
  });
  if (!rows.length && !others.length) {
    return section("Words", h("p", { class: "quiet" }, "No word of the question is here: it was found by meaning."));
  }
  const list = others.length ? h("ul", { class: "aliases" }, others) : "";
  return section("Words", rows.length ? table("words", ["Word", "Where", "As", "Times"], rows) : "", list);
}

function historySection({ supersedes, superseded_by: successors }) {
  if (!supersedes.length && !successors.length) return null;
  const line = (label, ids) => (ids.length ? h("p", {}, `${label} `, h("code", {}, ids.join(", "))) : "");
  return section("History", line("Superseded by", successors), line("Supersedes", supersedes));
}

function absence({ reasons, rank, shown }) {
  const place = rank ? `It is hit ${number(rank)}; the answer shows ${number(shown)}.` : "It is not in the answer.";
  return section("Not in the answer", h("p", {}, place), h("ul", {}, reasons.map((reason) => h("li", {}, reason))));
}

function legsSection({ legs }) {
  if (!legs.length) return null;
  const told = ({ found, rank, total, score, least }) => {
    if (found) return `rank ${number(rank)} of ${number(total)}, ${score.toFixed(3)}`;
    return least ? `not found; it takes ${least}` : "not found";
  };
  return section("Found by", facts(legs.map((leg) => [legName(leg.leg), told(leg)])));
}

function filtersSection({ filters }) {
  if (!filters.length) return null;
  return section("Filters", facts(filters.map(([name, passes]) => [name, passes ? "passes" : "leaves it out"])));
}

function questionSection(answer) {
  if (!answer) return null;
  const { plan = {}, meaning = {} } = answer;
  const { model, speed, coverage = 0, reranker, sent_to: hosts = [] } = meaning;
  const listed = [
    ["Read as", answer.understood_as],
    ["Because", plan.because],
    ["Asked", plan.legs?.map(legName).join(" and ")],
    ["Weighed", plan.weighing && `${plan.weighing.alpha} for meaning: ${plan.weighing.because}`],
    ["Route", plan.route?.kind && `${plan.route.kind}: ${(plan.route.reasons ?? []).join("; ")}`],
    ["Model", model && `${model}, ${speed} vectors, ${percent(coverage)} read`],
    ["Reranked by", reranker],
    ["Sent to", [hosts].flat().join(", ")],
    ["Quality", answer.quality && `${answer.quality} (${answer.strategy})`],
    ["Answered by", answer.served_by],
  ];
  return section("How the question was read", facts(listed), planElement(plan));
}

function planElement(plan) {
  if (!Object.keys(plan).length) return "";
  const text = JSON.stringify(plan, null, 2);
  return h("details", {}, h("summary", {}, "The whole plan"), h("pre", { tabindex: "0" }, text));
}

function timingsSection(answer) {
  const times = Object.entries(answer?.timings_ms ?? {});
  if (!times.length) return null;
  const most = Math.max(...times.map(([, value]) => value), 1e-9);
  const rows = times.map(([name, value]) => ({
    cells: [name, h("td", { class: "bar-cell" }, bar(value / most, "by-time")), valueCell(milliseconds(value))],
  }));
  return section("Time", table("score-table times", [], rows));
}
