// What a person types, as what is asked: words to rank by, phrases and words that must or must not be there, filters.

// Of the table that the export writes, the page filters by these kinds of what it holds of a resource; findling by all.
const KINDS = ["text", "texts", "names", "ending", "path"];
const FILTERS = new Map(
  PROPERTIES.filter((one) => KINDS.includes(one.kind) && !one.attribute.includes(".")).map((one) => [one.name, one]),
);
const TOKEN = /(-?)(?:([A-Za-z]{2,20}):(?=[^\s:/\\0-9]))?((?:"[^"]*(?:"|$)|[^\s"])+)/g;
const QUOTED = /^"([^"]*)("?)(\*?)$/;

function parseQuery(text, index) {
  const asked = { words: [], phrases: [], prefixes: [], without: [], filters: [], notes: [], plain: [] };
  asked.isProse = isProse(text, index);
  asked.isJoined = false;
  const operates = !asked.isProse && !isInCapitals(text);
  let isExcluded = false;
  for (const [raw, minus, name, value] of text.replace(/[“”„]/g, '"').matchAll(TOKEN)) {
    if (operates && (raw === "NOT" || raw === "AND")) {
      isExcluded = raw === "NOT";
      asked.isJoined ||= raw === "AND";
      continue;
    }
    const isSign = asked.isProse && /^\d/.test(value); // the dash of a number in a sentence
    const isNegative = isExcluded !== (minus === "-" && !isSign);
    isExcluded = false;
    const field = (name ?? "").toLowerCase();
    if (FILTERS.has(field)) {
      addFilter(asked, field, value, isNegative);
    } else if (field) {
      asked.notes.push(unknownFilter(field, value));
      addText(asked, `${name} ${value}`.replace(/"/g, ""), false, isNegative);
    } else {
      addText(asked, value, true, isNegative);
    }
  }
  if (asked.isProse) for (const { text: quoted } of asked.phrases) addText(asked, quoted, false, false);
  asked.kind = kindOf(asked);
  if (asked.kind !== "empty" && !asked.isJoined) dropEmptyWords(asked, index);
  return asked;
}

function unknownFilter(field, value) {
  const known = [...FILTERS.keys()].map((one) => `${one}:`).join(", ");
  const why = PROPERTIES.some((one) => one.name === field) ? `this page has no ${field}:` : `there is no filter ${field}:`;
  return `${field}:${value} is read as words: ${why}, only ${known}`;
}

function addFilter(asked, name, value, isNegative) {
  const values = (value.match(/"[^"]*"?|[^",]+/g) ?? []).map((one) => one.replace(/"/g, "").trim()).filter(Boolean);
  if (!values.length) {
    asked.notes.push(`${name}: takes a value right after the colon`);
    return;
  }
  const before = asked.filters.find((one) => FILTERS.get(name).single && one.name === name && one.isNegative === isNegative);
  if (before) before.values.push(...values);
  else asked.filters.push({ name, values, isNegative });
}

function addText(asked, value, mayOperate, isNegative) {
  const quoted = mayOperate && QUOTED.exec(value);
  if (mayOperate && /^(OR|NEAR(\/\d+)?|\|)$/.test(value)) {
    asked.notes.push(`${value} is not understood on this page and is left out`);
    return;
  }
  if (quoted) {
    if (!quoted[2]) asked.notes.push("a quote that is never closed runs to the end");
    if (!phraseTerms(quoted[1]).length) return;
    const leaf = quoted[3] ? { kind: "prefix", text: quoted[1] } : { kind: "phrase", text: quoted[1] };
    if (isNegative) asked.without.push(leaf);
    else (quoted[3] ? asked.prefixes : asked.phrases).push(leaf);
    return;
  }
  for (const raw of value.replace(/"/g, " ").split(/\s+/)) addWord(asked, raw, mayOperate, isNegative);
}

function addWord(asked, raw, mayOperate, isNegative) {
  if (/^[()]|[()]$|~\d?$/.test(raw) && !/\w\(\w*\)$/.test(raw)) {
    const sign = raw.includes("~") ? "~" : "( )";
    asked.notes.push(`${sign} is not understood on this page and is left out`);
    raw = raw.replace(/^[()]+|[()]+$|~\d?$/g, "");
  }
  const stem = raw.replace(/\*+$/, "");
  if (mayOperate && stem !== raw && prefixTerms(stem).join("").length > 1) {
    (isNegative ? asked.without : asked.prefixes).push({ kind: "prefix", text: stem });
  } else if (rowTerms(stem).length) {
    if (isNegative) asked.without.push({ kind: "term", text: stem });
    else {
      asked.plain.push(stem);
      const said = saidAs(stem);
      const before = asked.words.find((word) => saidAs(word.text) === said);
      if (before) before.times++;
      else asked.words.push({ text: stem, times: 1 });
    }
  }
}

// Words are told apart by their terms, whatever their spelling: a word counts as often as it is said.
function saidAs(text) {
  return [isCompound(text), ...rowTerms(text)].join(" ");
}

// As in findling: words rank, a quote demands its own words and a dash excludes its own; only AND asks for all of it.
function kindOf(asked) {
  const wants = asked.words.length + asked.phrases.length + asked.prefixes.length;
  if (!wants) return asked.filters.length || asked.without.length ? "browse" : "empty";
  return asked.isJoined ? "all" : "any";
}

// A sentence demands nothing, whatever its quotes: they rank.
function isProse(text, index) {
  const words = text.replace(/(^|\s)-("[^"]*"?|\D\S*)/g, " ").replace(/"[^"]*"/g, " x ").trim().toLowerCase().split(/\s+/);
  if (words.length < 6 && !(words.length > 2 && /[?？؟]$/.test(words.at(-1)))) return false;
  return words.some((word) => index.sentenceWords.has(word.replace(/^[.,;:!¿¡]+|[.,;:!¿¡]+$/g, "")));
}

function isInCapitals(text) {
  const words = text.split(/\s+/).filter((word) => /^\p{L}+$/u.test(word) && !/^(AND|NOT|OR)$/.test(word));
  return words.length > 0 && words.every((word) => word === word.toUpperCase() && word !== word.toLowerCase());
}

function dropEmptyWords(asked, index) {
  const empty = emptyWords(asked.plain, index.functionWords);
  const left = asked.plain.filter((_, at) => !empty[at]).map(saidAs);
  const telling = asked.words
    .map((word) => ({ ...word, times: left.filter((said) => said === saidAs(word.text)).length }))
    .filter(({ times }) => times);
  if (telling.length || asked.phrases.length || asked.prefixes.length) asked.words = telling;
}

// For each word, whether it says nothing of what is asked: the rules of findling.text.analysis.stemming.py.
function emptyWords(words, lists) {
  const rows = words.map(phraseTerms);
  const language = questionLanguage(words, rows, lists);
  const [small, requests] = lists.languages[language].map((some) => new Set(some));
  const lower = words.map((word) => word === word.toLowerCase() && word !== word.toUpperCase());
  const isName = (word, isFirst) => {
    if (word.length < 2 || !lower.some(Boolean)) return false;
    if (word === word.toUpperCase() && word !== word.toLowerCase()) return true;
    const isTitle = language === "english" && !isFirst && word[0] !== word[0].toLowerCase();
    const low = lower.filter(Boolean).length;
    return isTitle && !lists.articles.includes(word.toLowerCase()) && 2 * low > lower.length - 1;
  };
  const empty = [];
  let isBegin = true; // `how do I What are`: a capital behind words of a request begins the question
  for (const [at, row] of rows.entries()) {
    const isFirst = isBegin && !(at && rows[at - 1].join() === "the");
    const isCut = row.length > 1 && !/^[\p{L}\p{N}]+$/u.test(words[at]);
    const isSmall = (term) => small.has(term) || (isCut && [...term].length === 1);
    const isOther = words[at].includes("`") || isAnotherByAccents(words[at], lists.accented[language]);
    empty.push(row.length > 0 && row.every(isSmall) && !isOther && !isName(words[at], isFirst));
    isBegin &&= empty[at] || row.every((term) => requests.has(term));
  }
  for (let at = requestEnd(rows, empty, requests, lists); at > 0; at--) empty[at - 1] = true;
  return empty;
}

function questionLanguage(words, rows, lists) {
  const votes = {};
  const own = {};
  const seen = new Set();
  for (const [at, row] of rows.entries()) {
    const word = words[at].normalize("NFC").replaceAll("\u2019", "'");
    if (seen.has(word) || !isPlainlyWritten(word)) continue;
    seen.add(word);
    const owners = Object.keys(lists.letters).filter((one) => lists.letters[one].some((letter) => word.includes(letter)));
    for (const one of owners) votes[one] = (votes[one] ?? 0) + 1;
    for (const term of row) {
      const isCut = [...term].length === 1 && word !== term && !word.toLowerCase().startsWith(`${term}'`);
      if (isCut || lists.alsoEnglish.includes(term)) continue;
      const languages = Object.keys(lists.languages).filter(
        (one) =>
          (!owners.length || owners.includes(one)) &&
          lists.languages[one][0].includes(term) &&
          !isAnotherByAccents(word, lists.accented[one]),
      );
      const isTelling = lists.asking.includes(term) || (row.length === 1 && !isAscii(word));
      for (const one of languages) {
        votes[one] = (votes[one] ?? 0) + (isTelling ? 2 : 1);
        own[one] = (own[one] ?? 0) + 1 / languages.length;
      }
    }
  }
  const isBetter = (one, other) =>
    (votes[one] ?? 0) > (votes[other] ?? 0) || (votes[one] === votes[other] && (own[one] ?? 0) > (own[other] ?? 0));
  const best = Object.keys(lists.languages).reduce((known, one) => (isBetter(one, known) ? one : known));
  return (votes[best] ?? 0) > Math.max(votes.english ?? 0, 1) ? best : "english";
}

// Neither code nor a product: no digits, and capitals at its beginning or all over; signs may stand before it.
function isPlainlyWritten(word) {
  const isUpper = word === word.toUpperCase() && word !== word.toLowerCase();
  const rest = word.replace(/^\P{L}*\p{L}?/u, "");
  return (isUpper || rest === rest.toLowerCase()) && !/\p{Nd}/u.test(word);
}

// Whether accents were typed that no small word of the language has.
function isAnotherByAccents(word, accented) {
  const parts = accented.length && !isAscii(word) ? word.toLowerCase().normalize("NFC").match(/[\p{L}\p{N}_]+/gu) : [];
  return (parts ?? []).some((part) => !isAscii(part) && !accented.includes(part));
}

function isAscii(text) {
  return /^[\x00-\x7f]*$/.test(text);
}

function requestEnd(rows, empty, requests, lists) {
  let end = 0;
  for (const [at, row] of rows.entries()) {
    if (empty[at]) end = row.every((term) => lists.articles.includes(term)) ? end : at + 1;
    else if (!row.every((term) => requests.has(term))) break;
    else if (at === end && row.every((term) => lists.orders.includes(term)) && empty[at + 1]) end = at + 1;
  }
  return end;
}

// Which resources pass the filters, in the meaning that findling gives to each.
function passes(resource, filters) {
  return filters.every((filter) => filter.values.some((value) => holds(resource, filter.name, value)) !== filter.isNegative);
}

function holds(resource, name, value) {
  const lower = value.toLowerCase();
  const { attribute, kind } = FILTERS.get(name);
  const held = resource[attribute] ?? "";
  if (name === "lang" && resource.languages?.includes(lower)) return true;
  if (kind === "path") return liesAt(held.toLowerCase(), lower.replace(/\\/g, "/"));
  if (kind === "ending") return hasExtension(held, lower.replace(/^\*/, ""));
  if (kind === "texts") return held.some((one) => one.toLowerCase() === lower);
  if (kind === "names") return isSubset(terms(value), new Set(terms(held)));
  return held.toLowerCase() === lower;
}

function hasExtension(path, extension) {
  const dotted = extension.startsWith(".") ? extension : `.${extension}`;
  return path.split("/").at(-1).toLowerCase().slice(1).endsWith(dotted);
}

function extensionOf(path) {
  const name = path.split("/").at(-1).toLowerCase();
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot + 1) : "";
}

function liesAt(path, place) {
  if (!/[*?]/.test(place)) return place.startsWith("/") ? path.startsWith(place.slice(1)) : path.includes(place);
  let rest = `/${path}/`;
  const pieces = `/${place.replace(/^\//, "")}/`.split(/\*+/);
  for (const [number, piece] of pieces.entries()) {
    const at = findPiece(rest, piece, number === 0 && place.startsWith("/"));
    if (at < 0) return false;
    rest = rest.slice(at + piece.length);
  }
  return true;
}

function findPiece(text, piece, isAnchored) {
  for (let at = 0; at + piece.length <= text.length; at++) {
    if (piece.split("").every((letter, step) => letter === "?" || letter === text[at + step])) return at;
    if (isAnchored) break;
  }
  return -1;
}

function isSubset(some, all) {
  return some.length > 0 && some.every((one) => all.has(one));
}
