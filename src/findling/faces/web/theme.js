// Light or dark: as the system has it, or as was chosen. Not a module: it has to run before anything is painted.

(() => {
  const KEY = "findling-theme";
  const NAMES = { auto: "as the system has it", light: "light", dark: "dark" };
  const root = document.documentElement;

  function chosen() {
    try {
      const kept = localStorage.getItem(KEY);
      return kept in NAMES ? kept : "auto";
    } catch {
      return "auto";
    }
  }

  function apply(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  }

  function choose(theme) {
    apply(theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The browser keeps nothing for this page; the choice holds until it is closed.
    }
  }

  apply(chosen());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      const theme = root.dataset.theme ?? "auto";
      button.dataset.theme = theme;
      button.setAttribute("aria-label", `Colours: ${NAMES[theme]}`);
      button.title = `Colours: ${NAMES[theme]}`;
    };
    label();
    button.addEventListener("click", () => {
      const order = Object.keys(NAMES);
      choose(order[(order.indexOf(root.dataset.theme ?? "auto") + 1) % order.length]);
      label();
    });
  });
})();
