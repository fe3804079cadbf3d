// Elements of the page. Whatever comes from a document becomes text or an attribute, never markup.

/** Make an element. Properties: `class`, `on` (event → function), `data` (name → value), or attributes. */
export function h(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, react] of Object.entries(value)) made.addEventListener(event, react);
    else if (key === "data") Object.assign(made.dataset, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...present(children));
  return made;
}

/** A table of rows, each named by its first cell. */
export function table(kind, heads, rows) {
  const head = heads.length ? h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))) : "";
  const cell = (content, place) => {
    if (content instanceof HTMLTableCellElement) return content;
    return place ? h("td", {}, content) : h("th", { scope: "row" }, content);
  };
  const body = rows.map(({ cells = [], kind: rowKind }) => h("tr", { class: rowKind }, cells.map(cell)));
  return h("table", { class: kind }, head, h("tbody", {}, body));
}

/** What is wrong, and the command that mends it. */
export function warning(what, fix = "", properties = {}) {
  return h("p", { class: "note warning", ...properties }, what, fix ? [" ", h("code", { class: "fix" }, fix)] : "");
}

const present = (children) => children.flat(Infinity).filter((child) => child || child === 0);

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Show an element or hide it. */
export function show(element, visible = true) {
  element.hidden = !visible;
}

/** Put children in the place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/**
 * Have a list show these items with as little change as possible: what stays the same stays the same element, so that
 * neither focus nor place on the screen is lost. `keyOf` tells items apart, `signOf` tells whether one has changed.
 */
export function reconcile(list, items, { keyOf, signOf, make }) {
  const shown = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("[data-key]").dataset.key : "";
  let at = list.firstElementChild;
  for (const [place, item] of items.entries()) {
    const key = keyOf(item);
    const sign = signOf(item, place);
    let element = shown.get(key);
    shown.delete(key);
    if (!element || element.findlingSign !== sign) {
      const made = make(item, place);
      made.dataset.key = key;
      made.findlingSign = sign;
      if (element === at && element) at = element.nextElementSibling;
      element?.remove();
      element = made;
    }
    if (element === at) at = at.nextElementSibling;
    else list.insertBefore(element, at);
  }
  for (const left of shown.values()) left.remove();
  if (focused && !list.contains(document.activeElement)) {
    const again = [...list.children].find((child) => child.dataset.key === focused);
    again?.querySelector("a, button")?.focus({ preventScroll: true });
  }
}

/** Have a text copied; tells whether that was possible. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// On other hosts than this machine, and without TLS, browsers have no clipboard but this.
function copyBySelection(text) {
  const box = h("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" });
  const before = document.activeElement;
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  before?.focus?.({ preventScroll: true });
  return done;
}
