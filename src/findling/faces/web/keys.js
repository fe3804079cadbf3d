// Keys: what each does, and where. A key with Ctrl, Alt or Meta is left to the browser. Those of a single character can
// be switched off: whoever speaks to their machine, or slips, would set them off unawares.

import { byId } from "./dom.js";

const KEPT = "findling-keys";

/** `page` says what there is to do: see the functions that are called on it. */
export function listenToKeys(page) {
  prepareSwitch();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (react(page, event)) event.preventDefault();
  });
}

function react(page, event) {
  if (event.key === "Escape") return escape(page, event.target);
  return isText(event.target) ? inBox(page, event) : anywhere(page, event);
}

function escape(page, target) {
  if (page.closePreview()) return true;
  if (target === byId("query")) {
    if (!target.value) return false;
    page.clear();
    return true;
  }
  if (page.view === "search") byId("query").focus();
  return true;
}

function inBox(page, event) {
  if (event.target !== byId("query")) return false;
  if (event.key === "ArrowDown") return page.move(1);
  if (event.key === "Enter") {
    page.submit();
    return true;
  }
  return false;
}

function anywhere(page, event) {
  const { key, target } = event;
  if (key.length === 1 && !byId("letters").checked) return false;
  // Arrows choose among radio buttons.
  if (target.matches?.("input[type=radio]") && key.startsWith("Arrow")) return false;
  if (key === "/") {
    page.focusBox();
    return true;
  }
  if (key === "?") {
    byId("help").showModal();
    return true;
  }
  if (target.closest?.("[role=tablist]") && ["ArrowLeft", "ArrowRight"].includes(key)) {
    return page.otherTab(key === "ArrowLeft" ? -1 : 1);
  }
  if (page.view === "glossary") return page.glossaryKey(key);
  if (page.view === "themes") return page.themesKey(key);
  if (page.view !== "search") return false;
  // Where something scrolls by itself, the arrows are its own.
  const inPane = target.closest?.("#preview");
  if (key === "j" || (key === "ArrowDown" && !inPane)) return page.move(1);
  if (key === "k" || (key === "ArrowUp" && !inPane)) return page.move(-1);
  const actions = { o: page.open, e: page.explain, g: page.around, c: page.copy, f: page.whole };
  return actions[key]?.() ?? false;
}

function prepareSwitch() {
  const box = byId("letters");
  const apply = () => {
    document.documentElement.dataset.keys = box.checked ? "on" : "off";
  };
  try {
    box.checked = localStorage.getItem(KEPT) !== "off";
  } catch {
    // The browser keeps nothing for this page: the keys are as they come.
  }
  box.addEventListener("change", () => {
    apply();
    try {
      if (box.checked) localStorage.removeItem(KEPT);
      else localStorage.setItem(KEPT, "off");
    } catch {
      // The choice holds until the page is closed.
    }
  });
  apply();
}

function isText(element) {
  return element.matches?.("textarea, select, input:not([type=radio])") ?? false;
}
