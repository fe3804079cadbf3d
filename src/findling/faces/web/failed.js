// The files that could not be read, or not all of them: why, and what helps.

import { h, table } from "./dom.js";
import { number, visible } from "./texts.js";

// By the reason that findling gives for a file: the command, and what to do with the file first.
const REMEDIES = {
  crashed: ["", "findling index --rebuild"],
  damaged: ["Open it and save it again, then ", "findling index"],
  encrypted: ["Save it without a password, then ", "findling index"],
  killed: ["", "findling index"],
  "no-text": ["Have its scanned pages recognised, then ", "findling index"],
  "out-of-memory": ["", "findling config set index.max_memory 4GB"],
  "read-in-part": ["If a limit was met: ", "findling config set index.max_text 64MB"],
  "too-large": ["", "findling config set index.max_file_size 64MB"],
  "too-slow": ["", "findling config set index.max_seconds 300"],
  unreadable: ["Let yourself read it, then ", "findling index"],
};

/** All of them, as `/v1/failed` lists them. */
export function failedElement(failed) {
  if (!failed.length) return "";
  const row = ({ path, reason, detail }) => ({ cells: [h("bdi", {}, visible(path)), reason, remedy(reason, detail)] });
  const listed = table("failed", ["File", "Reason", "What is wrong, and what helps"], failed.map(row));
  const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Files that could not be read" };
  const title = `Could not be read, or not all of it (${number(failed.length)})`;
  return h("section", {}, h("h3", {}, title), h("div", region, listed));
}

function remedy(reason, detail) {
  const told = detail ? h("span", { class: "detail" }, detail) : "";
  if (!(reason in REMEDIES)) return told;
  const [first, command] = REMEDIES[reason];
  return [told, h("span", { class: "remedy" }, first, h("code", { class: "fix" }, command))];
}
