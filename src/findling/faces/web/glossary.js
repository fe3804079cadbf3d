// The glossary queue: words that may mean the same, to be approved or rejected by the owner.

import { ask, isAborted } from "./api.js";
import { byId, fill, h, warning } from "./dom.js";
import { counted, visible } from "./texts.js";

// How each was found.
const SOURCES = {
  acronym: "An acronym that is written out",
  also: "A text says that both are one",
  translation: "A text gives both languages",
  variant: "Two spellings of a word",
  "co-occurrence": "Rare words that stand in the same places",
  model: "Suggested by the language model",
};

const DOWN = ["j", "ArrowDown"];
const UP = ["k", "ArrowUp"];

/** The view. `say` has something read out, `onTrouble` takes what keeps an answer away. */
export function makeGlossary({ say, onTrouble }) {
  let workspace = "";

  async function load(state) {
    workspace = state.workspace;
    byId("glossary").setAttribute("aria-busy", "true");
    try {
      const { pending, trouble } = await queueOf(workspace);
      const list = pending.length ? h("ol", { class: "queue" }, pending.map(item)) : emptyQueue();
      fill(byId("candidates"), trouble ? warning(trouble.what, trouble.fix) : "", list);
      tellSize(pending.length);
    } catch (error) {
      if (!isAborted(error)) refuse(error);
    } finally {
      byId("glossary").removeAttribute("aria-busy");
    }
  }

  function refuse(error) {
    tellSize(0);
    if (error.kind !== "problem") onTrouble(error);
    else if (error.status === 403) fill(byId("candidates"), h("p", { class: "empty" }, "Only the owner decides here."));
    else fill(byId("candidates"), warning(error.message, error.hint));
  }

  function item(candidate) {
    const { id, surface, group, snippet, source } = candidate;
    const button = (verdict, label, key) =>
      h(
        "button",
        {
          type: "button",
          class: verdict,
          data: { verdict },
          "aria-label": `${label}: ${surface} for ${group}`,
          on: { click: (event) => decide(candidate, verdict, event.currentTarget.closest("li")) },
        },
        label,
        h("kbd", { "aria-hidden": "true" }, key),
      );
    const middle = h("span", { class: "quiet" }, " may mean the same as ");
    return h(
      "li",
      { class: "candidate", data: { id } },
      h("p", { class: "pair" }, h("bdi", {}, visible(surface)), middle, h("bdi", {}, visible(group))),
      snippet ? h("blockquote", { dir: "auto" }, visible(snippet)) : "",
      h("p", { class: "source" }, SOURCES[source] ?? source),
      h("div", { class: "decisions" }, button("approve", "Approve", "a"), button("reject", "Reject", "r")),
    );
  }

  async function decide({ id, surface, group }, verdict, element) {
    if (element.dataset.busy) return;
    element.dataset.busy = "yes";
    try {
      const path = `/v1/glossary/candidates/${encodeURIComponent(id)}/${verdict}`;
      await ask(path, { method: "POST", query: { workspace } });
    } catch (error) {
      delete element.dataset.busy;
      if (error.kind === "problem") element.append(warning(error.message, error.hint, { role: "alert" }));
      else onTrouble(error);
      return;
    }
    const approved = `${surface} now finds ${group}, and the other way round`;
    say(verdict === "approve" ? approved : `${surface} will not be suggested for ${group} again`);
    takeOut(element);
  }

  function takeOut(element) {
    const next = element.nextElementSibling ?? element.previousElementSibling;
    element.remove();
    tellSize(document.querySelectorAll(".candidate").length);
    if (next) {
      next.querySelector("button").focus();
      return;
    }
    fill(byId("candidates"), emptyQueue());
    byId("glossary-title").focus();
  }

  /** Keys: a approves, r rejects, arrows or j and k move. Tells whether the key meant something. */
  function key(name) {
    const items = [...document.querySelectorAll(".candidate")];
    const verdict = { a: "approve", r: "reject" }[name];
    const step = DOWN.includes(name) ? 1 : UP.includes(name) ? -1 : 0;
    if (!items.length || (!verdict && !step)) return false;
    const at = items.findIndex((one) => one.contains(document.activeElement));
    const to = items[at < 0 ? 0 : Math.min(items.length - 1, Math.max(0, at + step))];
    if (verdict) to.querySelector(`[data-verdict="${verdict}"]`).click();
    else {
      to.querySelector("button").focus({ preventScroll: true });
      to.scrollIntoView({ block: "nearest" });
    }
    return true;
  }

  return { load, key };
}

/** What waits; whoever may write has new texts looked through first. */
async function queueOf(workspace) {
  try {
    return await ask("/v1/glossary/refill", { method: "POST", query: { workspace } });
  } catch (error) {
    if (error.status !== 403) throw error;
  }
  return ask("/v1/glossary/candidates", { query: { workspace } });
}

function tellSize(count) {
  const told = `${counted(count, "suggestion")} ${count === 1 ? "waits" : "wait"} for a decision.`;
  byId("queue-size").textContent = count ? told : "";
}

function emptyQueue() {
  const command = h("code", {}, "findling glossary add auth authentication sign-in");
  const about = "Suggestions come from your texts: acronyms that are written out, and two spellings of one word.";
  return h(
    "div",
    { class: "empty" },
    h("p", {}, "Nothing waits for a decision."),
    h("p", { class: "quiet" }, `${about} Words of your own go in with `, command, "."),
  );
}
