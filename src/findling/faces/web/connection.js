// Whether findling can be reached, and who asks: what to say when it stops, and going on when it is back.

import { ask, hasToken, keepToken } from "./api.js";
import { byId, show } from "./dom.js";

const WAITS_MS = [1000, 1000, 2000, 3000, 5000];

/** `onBack` is called when there is an answer again, or another token. */
export function watchConnection(onBack) {
  let timer;
  let tries = 0;
  let isOffline = false;

  async function look() {
    clearTimeout(timer);
    try {
      await ask("/healthz");
    } catch (error) {
      if (error.kind === "offline") {
        again();
        return;
      }
    }
    isOffline = false;
    document.documentElement.removeAttribute("data-offline");
    show(byId("offline"), false);
    onBack("findling answers again");
  }

  function again() {
    timer = setTimeout(look, WAITS_MS[Math.min(tries, WAITS_MS.length - 1)]);
    tries += 1;
  }

  byId("retry").addEventListener("click", look);
  window.addEventListener("online", () => isOffline && look());
  document.addEventListener("visibilitychange", () => isOffline && !document.hidden && look());
  prepareTokenDialog(() => onBack("The token is taken"));

  return {
    get isOffline() {
      return isOffline;
    },
    /** Nobody answers. Says so, and looks again and again. */
    lost() {
      if (isOffline) return;
      isOffline = true;
      tries = 0;
      document.documentElement.dataset.offline = "yes";
      show(byId("offline"));
      again();
    },
    /** A token is needed, or another one. */
    askForToken,
  };
}

function askForToken() {
  const dialog = byId("token-dialog");
  if (dialog.open) return;
  const problem = hasToken() ? "That token is not accepted: it is unknown, revoked or too old." : "";
  byId("token-problem").textContent = problem;
  keepToken("");
  byId("token").value = "";
  dialog.showModal();
}

function prepareTokenDialog(onToken) {
  const dialog = byId("token-dialog");
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const token = byId("token").value.trim();
    if (!token) return;
    keepToken(token);
    dialog.close();
    onToken();
  });
  byId("token-cancel").addEventListener("click", () => dialog.close());
}
