// The HTTP API, and what can go wrong on the way to it.

import { ALL } from "./state.js";

const TOKEN = "findling-token";
const MOST_TRIES = 3;
const LONGEST_WAIT_S = 5;

/** Why there is no answer. `kind`: `offline` (nobody answers), `token` (one is needed), `problem` (it says why). */
class Trouble extends Error {
  constructor(kind, message, { hint = "", code = "", status = 0 } = {}) {
    super(message);
    Object.assign(this, { kind, hint, code, status });
  }
}

/** Ask the API; gives what it answers, as data. Raises Trouble, or AbortError when `signal` says so. */
export async function ask(path, { query = {}, body, method = body ? "POST" : "GET", signal } = {}) {
  for (let tries = 1; ; tries += 1) {
    const response = await send(path, query, body, method, signal);
    if (response.ok) return response.status === 204 ? {} : await read(response);
    const wait = Number(response.headers.get("retry-after"));
    const isBusy = [429, 503].includes(response.status) && wait > 0 && wait <= LONGEST_WAIT_S;
    if (!isBusy || tries === MOST_TRIES) throw await troubleOf(response);
    await pause(wait * 1000, signal);
  }
}

/** The path of an id in an address; the slashes in it stay what they are. */
export const pathOf = (id) => id.split("/").map(encodeURIComponent).join("/");

/** Keep a token until the browser is closed; an empty one forgets it. */
export function keepToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

export const hasToken = () => Boolean(sessionStorage.getItem(TOKEN));

export const isAborted = (error) => error.name === "AbortError";

/** Wait; raises AbortError when `signal` says so. */
function pause(milliseconds, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      fail(new DOMException("no longer wanted", "AbortError"));
    });
  });
}

async function send(path, { workspace, ...query }, body, method, signal) {
  const address = new URL(path, location.origin);
  // Only a search asks all workspaces, by its scope.
  if (workspace && workspace !== ALL) query.workspace = workspace;
  if (body?.workspace === ALL) body = { ...body, workspace: "" };
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== "") address.searchParams.append(name, one);
  }
  const headers = { accept: "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  try {
    return await fetch(address, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    throw isAborted(error) ? error : new Trouble("offline", "findling does not answer");
  }
}

async function read(response) {
  try {
    return await response.json();
  } catch (error) {
    throw isAborted(error) ? error : new Trouble("offline", "the answer of findling broke off");
  }
}

async function troubleOf(response) {
  const { status } = response;
  let told;
  try {
    told = await response.json();
  } catch (error) {
    if (isAborted(error)) throw error;
    // Something between findling and this page has answered.
    return new Trouble(status >= 500 ? "offline" : "problem", `the server answers ${status}`, { status });
  }
  const { detail = `the server answers ${status}`, hint = "", code = "" } = told;
  return new Trouble(status === 401 ? "token" : "problem", String(detail), { hint, code, status });
}
