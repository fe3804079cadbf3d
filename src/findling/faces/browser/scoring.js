// What each part of a query finds and scores: BM25 over the text fields, as findling's keyword leg counts.

// Names in capitals that no script declares are findling's own: the export writes them above this.

// A leaf with what it finds (passage → points), the most it can score, and the forms of each of its terms.
function evaluated(index, leaf) {
  const asked = { ...leaf, forms: new Map(), row: [] };
  if (leaf.kind === "word") return wordLeaf(index, asked);
  if (leaf.kind === "term") return termLeaf(index, asked);
  if (leaf.kind === "phrase") return rowLeaf(index, asked, phraseTerms(leaf.text), false);
  const begun = prefixTerms(leaf.text);
  if (begun.length > 1) return rowLeaf(index, asked, begun, true);
  return formsLeaf(index, asked, begun[0], begunForms(index, begun[0]));
}

// What a word counts that is said so often in a query.
function repeated(times) {
  return ((REPEATED_K + 1) * times) / (REPEATED_K + times);
}

// The same leaf, counting so much.
function said(leaf, weight) {
  if (weight === 1) return leaf;
  const found = new Map([...leaf.found].map(([passage, points]) => [passage, points * weight]));
  return { ...leaf, found, ceiling: leaf.ceiling * weight };
}

function wordLeaf(index, asked) {
  const given = wordTerms(asked.text, index.stopWords);
  const lesser = pairWeights(phraseTerms(asked.text), index.functionWords);
  const parts = distinct(given).map((term) => {
    const weight = repeated(given.filter((other) => other === term).length) * (lesser.get(term) ?? 1);
    return said(formsLeaf(index, { forms: asked.forms }, term, inflectedForms(index, term)), weight);
  });
  asked.found = joined(parts.map((part) => part.found), 1);
  asked.ceiling = mostOfWord(distinct(given), parts);
  const row = phraseTerms(asked.text);
  if (row.length > 1 && isCompound(asked.text)) {
    asked.row = row;
    const body = index.fields.filter((field) => field.name === "body");
    for (const [passage, points] of rowScores(index, row, false, body)) {
      asked.found.set(passage, (asked.found.get(passage) ?? 0) + IN_A_ROW * points);
    }
  }
  return withNamedFile(index, asked);
}

// The weights of those pairs of a word that say less than others: the rules of findling.text.analysis.word_parts.
function pairWeights(row, lists) {
  const weights = new Map();
  row.forEach((term, at) => {
    const [first, last, more] = [...term];
    if (!last || more || !isUnspaced(first)) return;
    const isEnd = at > 0 && row[at + 1]?.[0] !== last;
    const weight = pairWeight(first, last, isEnd, lists);
    if (weight < 1) weights.set(term, weight);
  });
  return weights;
}

function pairWeight(first, last, isEnd, { koreanPairs, koreanEndings, chineseSigns }) {
  const kana = [first, last].filter((sign) => sign >= "\u3040" && sign <= "\u309f").length;
  if (kana) return kana === 2 ? KANA : BESIDE_KANA;
  if (first >= "\uac00" && first <= "\ud7af") {
    return koreanPairs.includes(first + last) || (isEnd && koreanEndings.includes(last)) ? KOREAN : 1;
  }
  return chineseSigns.includes(first) || chineseSigns.includes(last) ? CHINESE : 1;
}

// The most a word can score. A run without spaces that shares no pair with the index is one unknown word.
function mostOfWord(terms, parts) {
  const sum = (some) => some.reduce((total, part) => total + part.ceiling, 0);
  const pairs = parts.filter((_, at) => isUnspaced([...terms[at]][0]));
  const words = parts.filter((_, at) => !isUnspaced([...terms[at]][0]));
  const isHeld = pairs.some((part) => part.found.size);
  return sum(words) + (isHeld ? sum(pairs) : Math.max(0, ...pairs.map((part) => part.ceiling)));
}

function termLeaf(index, asked) {
  const row = rowTerms(asked.text);
  if (row.length < 2) return withNamedFile(index, formsLeaf(index, asked, row[0], inflectedForms(index, row[0])));
  const last = row.at(-1);
  rowLeaf(index, asked, row, [...last].length === 1 && isUnspaced(last));
  const whole = wholeIdentifier(asked.text);
  if (whole && index.termNumber.has(whole)) {
    asked.forms.set(whole, [whole]);
    asked.found = joined([asked.found, formScores(index, [[whole, 1]])], 0);
  }
  return withNamedFile(index, asked);
}

function formsLeaf(index, asked, term, { scored, rest }) {
  asked.forms.set(term, [...scored.map(([form]) => form), ...rest]);
  asked.found = formScores(index, scored, rest);
  asked.ceiling = most(index, worthOf(index, scored));
  return asked;
}

function rowLeaf(index, asked, row, isBegun) {
  asked.row = row;
  for (const [at, term] of row.entries()) {
    const isLast = isBegun && at === row.length - 1;
    asked.forms.set(term, isLast ? begunTerms(index, term) : index.termNumber.has(term) ? [term] : []);
  }
  const single = row.length === 1 && index.termNumber.has(row[0]) ? [[row[0], 1]] : [];
  asked.found = row.length === 1 ? formScores(index, single) : rowScores(index, row, isBegun, index.fields);
  asked.ceiling = most(index, rowWorth(index, row, isBegun, index.fields[0]));
  return asked;
}

function withNamedFile(index, asked) {
  const name = asked.text.replace(/(?::\d{1,9}){1,2}:?$/, "").replace(/^\/+|\/+$/g, "").toLowerCase();
  const gain = (asked.text.includes(".") ? NAMED_FILE : NAMED_STEM) * asked.ceiling;
  asked.named = new Set();
  for (const { first, count } of index.named.get(name) ?? []) {
    for (let passage = first; passage < first + count; passage++) {
      if (!asked.found.has(passage)) continue;
      asked.found.set(passage, asked.found.get(passage) + gain);
      asked.named.add(passage);
    }
  }
  return asked;
}

// The forms of a word that the index holds: [form, weight], and those too rare to be scored one by one.
function inflectedForms(index, term) {
  if ([...term].length === 1 && isUnspaced(term)) return begunForms(index, term);
  // The forms of a short word are its own affair: being is a form of be, but whoever asks for be means be.
  const formClass = term.length > 2 ? index.classOf.get(term) : undefined;
  let forms = index.classes.get(formClass) ?? (index.termNumber.has(term) ? [term] : []);
  if (!forms.length && index.language === "english" && /^[a-z]{3,}$/.test(term)) {
    const stem = stemOf(term);
    forms = begunTerms(index, sharedBeginning(term, stem)).filter((word) => stemOf(word) === stem);
  }
  return weighed(index, forms, term);
}

function begunForms(index, prefix) {
  return weighed(index, begunTerms(index, prefix), prefix);
}

function weighed(index, forms, typed) {
  const frequent = forms.map((form) => [form, spreadOf(index, form)]).sort((a, b) => b[1] - a[1]);
  const scored = new Set(frequent.slice(0, MOST_FORMS).map(([form]) => form));
  if (forms.includes(typed)) scored.add(typed);
  return {
    scored: [...scored].map((form) => [form, form === typed ? 1 : INFLECTED]),
    rest: forms.filter((form) => !scored.has(form)),
  };
}

function sharedBeginning(term, stem) {
  let shared = 0;
  while (shared < stem.length && term[shared] === stem[shared]) shared++;
  if (shared === stem.length && "iey".includes(stem.at(-1)) && stem.length > 2) shared--;
  return term.slice(0, Math.max(shared, 2));
}

// All forms count as one word, of which the best is worth most: a rare form weighs no more than the word itself.
function formScores(index, forms, rest = []) {
  const worth = worthOf(index, forms);
  const found = forms.map(([form, weight]) => {
    const scores = new Map();
    const isAdded = !isUnspaced([...form][0]);
    for (const [name, places] of postingsOf(index, form)) {
      const field = fieldNamed(index, name);
      const isMain = field === index.fields[0];
      const tells = isMain ? worth * weight : idf(index, places.size) * (isAdded ? 1 : UNADDED);
      for (const [passage, count] of places) {
        const points = field.weight * tells * saturation(index, field, passage, count);
        const before = scores.get(passage) ?? 0;
        scores.set(passage, isAdded ? before + points : Math.max(before, points));
      }
    }
    return scores;
  });
  if (rest.length) {
    const rare = new Map();
    for (const form of rest) {
      for (const places of postingsOf(index, form).values()) {
        for (const passage of places.keys()) rare.set(passage, RARE_FORM * worth);
      }
    }
    found.push(rare);
  }
  return joined(found, OTHER_FORMS);
}

// A row counts as one word that is as rare as all of its words together.
function rowScores(index, row, isBegun, fields) {
  const found = new Map();
  for (const field of fields) {
    const worth = field.weight * rowWorth(index, row, isBegun, isBegun ? index.fields[0] : field);
    const mayStand = rowTest(row);
    for (const passage of inAllOf(index, row, isBegun, field.name)) {
      const text = fieldText(index, field.name, index.list[passage]);
      const count = mayStand(text) ? countRows(terms(text), row, isBegun) : 0;
      if (!count) continue;
      const points = worth * (isBegun ? 1 : saturation(index, field, passage, count));
      found.set(passage, (found.get(passage) ?? 0) + points);
    }
  }
  return found;
}

function inAllOf(index, row, isBegun, field) {
  const each = row.map((term, at) => {
    const forms = isBegun && at === row.length - 1 ? begunTerms(index, term) : [term];
    return new Set(forms.flatMap((form) => [...(postingsOf(index, form).get(field)?.keys() ?? [])]));
  });
  each.sort((a, b) => a.size - b.size);
  return [...each[0]].filter((passage) => each.every((passages) => passages.has(passage)));
}

// Whether a row may stand in a text: a glance that spares the analysis of most texts. It is for plain
// words only; an identifier is followed by its own parts, which stand nowhere a second time.
function rowTest(row) {
  const isNested = row.some((term, at) => {
    const next = row[at + 1];
    return next !== undefined && next !== term && (next.startsWith(term) || term.startsWith(next));
  });
  if (isNested || !row.every((term) => IS_ASCII.test(term))) return () => true;
  const escaped = row.map((term) => term.replace(/[+#]/g, "\\$&"));
  // A word never ends between two digits; between letters it may, as in getUser.
  const pattern = new RegExp(escaped.join("(?:[^A-Za-z0-9]+|(?<![0-9])|(?![0-9]))"), "i");
  return (text) => pattern.test(text) || (!IS_ASCII.test(text) && (HAS_UNDECOMPOSED.test(text) || pattern.test(unmarked(text))));
}

function unmarked(text) {
  return text.normalize("NFKD").replace(/[\p{M}\p{Cf}]+/gu, "");
}

function countRows(given, row, isBegun) {
  let count = 0;
  const last = row.length - 1;
  for (let at = 0; at + last < given.length; at++) {
    const stands = row.every((term, step) =>
      isBegun && step === last ? given[at + step].startsWith(term) : given[at + step] === term,
    );
    if (stands) count++;
  }
  return count;
}

function rowWorth(index, row, isBegun, field) {
  return row.reduce((sum, term, at) => {
    const isLast = isBegun && at === row.length - 1;
    const spread = isLast
      ? begunForms(index, term).scored.reduce((all, [form]) => all + spreadOf(index, form), 0)
      : (postingsOf(index, term).get(field.name)?.size ?? 0);
    return sum + idf(index, spread);
  }, 0);
}

function worthOf(index, forms) {
  return idf(index, forms.reduce((sum, [form]) => sum + spreadOf(index, form), 0));
}

// In how many passages a term stands in the body.
function spreadOf(index, term) {
  return postingsOf(index, term).get(index.fields[0].name)?.size ?? 0;
}

function idf(index, spread) {
  const within = Math.min(spread, index.passages);
  return Math.log(1 + (index.passages - within + 0.5) / (within + 0.5));
}

function saturation(index, field, passage, count) {
  const usual = lengthOf(field, index.list[passage]) / field.average;
  return ((STANDARD_K1 + 1) * count) / (count + STANDARD_K1 * (1 - STANDARD_B + STANDARD_B * usual));
}

function most(index, worth) {
  return worth * (STANDARD_K1 + 1) * Math.max(...index.fields.map((field) => field.weight));
}

function fieldNamed(index, name) {
  return index.fields.find((field) => field.name === name);
}

// What one of the parts has found, with the best points and a share of the others.
function joined(parts, share) {
  if (parts.length === 1) return parts[0];
  const best = new Map();
  const sums = new Map();
  for (const part of parts) {
    for (const [passage, points] of part) {
      if (!(best.get(passage) >= points)) best.set(passage, points);
      sums.set(passage, (sums.get(passage) ?? 0) + points);
    }
  }
  for (const [passage, points] of best) best.set(passage, points + share * (sums.get(passage) - points));
  return best;
}

// What a person may have meant by a word that nobody wrote: the likeliest first.
function spelledNearly(index, term) {
  const isLettered = (term.match(/\p{L}/gu) ?? []).length >= FEWEST_LETTERS;
  if (!isLettered || [...term].some(isUnspaced)) return [];
  const most = term.length <= LONGEST_OF_ONE_EDIT ? 1 : 2;
  const digits = term.replace(/\D/g, "");
  const letters = [...term].sort().join("");
  const signs = signsOf(term);
  const close = [];
  for (const word of index.vocabulary) {
    if (Math.abs(word.length - term.length) > most) continue;
    // An edit takes away one letter at most and brings in one: a look at those spares most of the words.
    const others = signsOf(word);
    if (bits(signs & ~others) > most || bits(others & ~signs) > most) continue;
    const distance = edits(term, word, most);
    if (distance <= most && word.replace(/\D/g, "") === digits) close.push([word, distance]);
  }
  const rank = ([word, distance]) => [
    word[0] !== term[0],
    distance,
    [...word].sort().join("") !== letters,
    -spreadOf(index, word),
  ];
  return close.map((one) => [one, rank(one)]).sort((a, b) => compared(a[1], b[1])).map(([[word]]) => word);
}

// The letters of a word, one bit each; some share one.
function signsOf(word) {
  let signs = 0;
  for (let at = 0; at < word.length; at++) signs |= 1 << (word.charCodeAt(at) & 31);
  return signs;
}

function bits(signs) {
  let count = 0;
  for (; signs; signs &= signs - 1) count++;
  return count;
}

function compared(a, b) {
  const at = a.findIndex((value, place) => value !== b[place]);
  return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
}

// How many letters to add, leave out, change or swap with their neighbour; `most + 1` stands for everything beyond.
function edits(a, b, most) {
  let before = [];
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(changed, row[j] + 1, next[j - 1] + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    if (Math.min(...next) > most) return most + 1;
    before = row;
    row = next;
  }
  return Math.min(row[b.length], most + 1);
}
