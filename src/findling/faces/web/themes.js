// Themes: groups of passages that name the same things, as a way to look around without a question.

import { ask, isAborted } from "./api.js";
import { byId, fill, h, warning } from "./dom.js";
import { addressOf, stateOf, withName } from "./state.js";
import { counted, number, visible } from "./texts.js";

const MOST = 50;
const IN_TITLE = 3;
const DOWN = ["j", "ArrowDown"];
const UP = ["k", "ArrowUp"];

/** The view. `onTrouble` takes what keeps an answer away. */
export function makeThemes({ onTrouble }) {
  let calls = new AbortController();

  async function load({ workspace }) {
    calls.abort();
    calls = new AbortController();
    const { signal } = calls;
    byId("themes").setAttribute("aria-busy", "true");
    try {
      const answer = await ask("/v1/themes", { query: { limit: MOST, workspace }, signal });
      const notes = answer.degraded.map(({ what, fix }) => warning(what, fix));
      const list = h("ol", { class: "themes" }, answer.themes.map((theme) => item(theme, workspace)));
      const isEmpty = !answer.themes.length && !notes.length;
      fill(byId("theme-list"), notes, isEmpty ? h("p", { class: "empty" }, "No two documents name the same thing.") : list);
      byId("theme-count").textContent = told(answer);
    } catch (error) {
      if (isAborted(error)) return;
      byId("theme-count").textContent = "";
      fill(byId("theme-list"), warning(error.message, error.hint));
      if (error.kind !== "problem") onTrouble(error);
    } finally {
      if (!signal.aborted) byId("themes").removeAttribute("aria-busy");
    }
  }

  /** Keys: arrows or j and k move. Tells whether the key meant something. */
  function key(name) {
    const links = [...document.querySelectorAll("#theme-list .open-theme")];
    const step = DOWN.includes(name) ? 1 : UP.includes(name) ? -1 : 0;
    if (!links.length || !step) return false;
    const at = links.findIndex((one) => one.closest("li").contains(document.activeElement));
    const to = links[Math.min(links.length - 1, Math.max(0, at + step))];
    to.focus({ preventScroll: true });
    to.closest("li").scrollIntoView({ block: "nearest" });
    return true;
  }

  return { load, key };
}

function told({ themes, total }) {
  if (!themes.length) return "";
  return themes.length < total ? `The largest ${number(themes.length)} of ${counted(total, "theme")}.` : `${counted(total, "theme")}.`;
}

function item({ id, names, summary, resources, passages }, workspace) {
  const start = { ...stateOf("/"), workspace };
  const title = names.slice(0, IN_TITLE).map((one) => one.name).join(", ");
  const size = [counted(resources, "document"), counted(passages, "passage")];
  const nameLink = (one) => {
    const href = addressOf({ ...start, q: withName("", one.name) });
    const label = `Search for ${one.name}, in ${counted(one.resources, "document")}`;
    return h("li", {}, h("a", { href, data: { state: "" }, "aria-label": label }, h("bdi", {}, visible(one.name))));
  };
  const open = { class: "open-theme", href: addressOf({ ...start, theme: id }), data: { state: "" } };
  return h(
    "li",
    { class: "theme" },
    h("h3", {}, h("a", open, h("bdi", {}, visible(title)))),
    h("p", { class: "where" }, size.map((part) => h("span", {}, part))),
    summary ? h("blockquote", { dir: "auto" }, visible(summary)) : "",
    h("ul", { class: "theme-names", "aria-label": "Names" }, names.map(nameLink)),
  );
}
