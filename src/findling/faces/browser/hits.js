// Hits as elements of the page. Whatever comes from a document becomes text, never markup.

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function hitElement(state, hit, number) {
  const { passage } = hit;
  const lines = snippet(state.index, passage, state.wanted);
  const opener = element("button", { type: "button", className: "opener", "aria-expanded": "false" }, titleOf(passage));
  const score = element("span", { className: "score", title: "score, 0 to 1" }, hit.score.toFixed(2));
  const made = element(
    "li",
    { className: "hit" },
    element("h3", {}, opener, state.answer.asked.kind === "browse" ? "" : score),
    whereElement(state.index, passage, placeOf(lines, passage)),
    linesElement(lines),
  );
  opener.id = `hit-${number}`;
  opener.addEventListener("click", () => toggle(state, made, opener, hit));
  return made;
}

function titleOf(passage) {
  const { title, path, rid, name } = passage.resource;
  return title || name || path || rid;
}

function whereElement(index, passage, place) {
  const { resource } = passage;
  const heading = passage.heading.split("\n").filter((one) => one && one !== resource.title).join(" › ");
  const day = resource.updated ? new Date(resource.updated * 1000).toISOString().slice(0, 10) : "";
  const source = resource.path || resource.rid;
  const parts = [source === titleOf(passage) ? "" : source, place, heading, resource.author ?? "", day];
  const spans = parts.filter(Boolean).map((part) => element("span", {}, part));
  if (resource.type !== "file") spans.unshift(element("span", {}, resource.type));
  if (resource.successor !== undefined) {
    const later = successors(index, resource).at(-1);
    spans.push(element("span", { className: "old" }, `superseded by ${later.title || later.rid}`));
  }
  return element("p", { className: "where" }, ...spans);
}

function linesElement(lines) {
  const made = element("div", { className: lines.some((line) => line.number) ? "lines" : "lines unnumbered" });
  let place = "";
  for (const line of lines) {
    if (line.place && line.place !== place) made.append(element("div", { className: "place" }, line.place));
    place = line.place;
    const number = element("span", { className: "number" }, line.number ? String(line.number) : "");
    made.append(element("div", { className: "line" }, number, element("span", { className: "text" }, ...marked(line))));
  }
  return made;
}

function marked(line) {
  const parts = [];
  let at = 0;
  for (const [start, end] of line.marks) {
    parts.push(line.text.slice(at, start), element("mark", {}, line.text.slice(start, end)));
    at = end;
  }
  parts.push(line.text.slice(at));
  return parts;
}

function toggle(state, made, opener, hit) {
  const opened = made.querySelector(".opened");
  opener.setAttribute("aria-expanded", String(!opened));
  if (opened) {
    opened.remove();
    made.querySelector(".lines").replaceWith(linesElement(snippet(state.index, hit.passage, state.wanted)));
    return;
  }
  made.querySelector(".lines").replaceWith(linesElement(allLines(state.index, hit.passage, state.wanted)));
  made.append(openedElement(state, hit));
}

function openedElement(state, hit) {
  const { passage } = hit;
  const made = element("div", { className: "opened" }, documentElement(state.index, passage.resource));
  if (state.answer.leaves.length && hit.points !== undefined) made.append(receiptElement(state, hit));
  if (passage.related?.length) {
    made.append(element("h4", {}, "Related passages, by meaning"), relatedElement(state, passage.related));
  }
  return made;
}

function documentElement(index, resource) {
  const button = element("button", { type: "button", className: "link", "aria-expanded": "false" }, "Show the whole document");
  const made = element("div", {}, button);
  button.addEventListener("click", () => {
    const shown = made.querySelector("pre");
    button.textContent = shown ? "Show the whole document" : "Hide the whole document";
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) shown.remove();
    else made.append(element("pre", { tabIndex: 0 }, index.text.slice(resource.begin, resource.end)));
  });
  return made;
}

function relatedElement(state, related) {
  return element("ul", {}, ...related.map(({ passage, cosine }) => relatedItem(state, passage, cosine)));
}

function relatedItem(state, passage, cosine) {
  const opener = element("button", { type: "button", className: "link", "aria-expanded": "false" }, titleOf(passage));
  const heading = passage.heading.split("\n").at(-1);
  const about = [passage.resource.path, heading, `cosine ${cosine.toFixed(2)}`].filter(Boolean).join(" · ");
  const item = element("li", {}, opener, element("span", { className: "quiet" }, ` ${about}`));
  opener.addEventListener("click", () => {
    const shown = item.querySelector(".lines");
    opener.setAttribute("aria-expanded", String(!shown));
    if (shown) shown.remove();
    else item.append(linesElement(allLines(state.index, passage, state.wanted)));
  });
  return item;
}

function receiptElement(state, hit) {
  const rows = receiptOf(state.index, state.answer, hit).map((part) => {
    const found = part.fields.map((field) => `${field.name} ×${field.count} (${field.forms.slice(0, 6).join(", ")})`);
    if (part.isNamed) found.push("the file is called so");
    const word = part.kind === "phrase" ? `“${part.text}”` : part.text + (part.kind === "prefix" ? "*" : "");
    const asked = part.typed && part.typed !== part.text ? `${part.typed} → ${word}` : word;
    return tableRow("td", asked, found.join("; ") || "not here", part.points === undefined ? "0" : part.points.toFixed(3));
  });
  const sum = tableRow("td", "sum", `of at most ${state.answer.ceiling.toFixed(3)} by words in the text`, hit.points.toFixed(3));
  const half = (state.answer.ceiling / 2).toFixed(3);
  const made = `${hit.points.toFixed(3)} / (${hit.points.toFixed(3)} + ${half})`;
  const factor = hit.factor === 1 ? "" : ` × ${hit.factor.toFixed(3)}, superseded`;
  const table = element(
    "table",
    {},
    element("thead", {}, tableRow("th", "Word", "Found in", "Points")),
    element("tbody", {}, ...rows, sum, tableRow("td", "score", made + factor, hit.score.toFixed(4))),
  );
  return element("div", { className: "receipt" }, element("h4", {}, "Why it is here"), table);
}

function tableRow(kind, ...cells) {
  return element("tr", {}, ...cells.map((cell) => element(kind, kind === "th" ? { scope: "col" } : {}, cell)));
}
