// Text into terms: the same analysis that made the index. What `terms` gives here is what it gives there.


// Scripts written without spaces between words, and Hangul, whose particles are glued to the noun.
const UNSPACED =
  "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005\\u3040-\\u30ff\\u31f0-\\u31ff" +
  "\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}\\uac00-\\ud7af";
const EMOJI =
  "⌚⌛⌨⏏⏩-⏳⏸-⏺" +
  "☀-☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸-☺♀♂♈-♓♟♠♣♥♦♨♻♾♿⚒-⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰-⛵⛷-⛺⛽" +
  "✂✅✈-✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣❤➕-➗➰➿⬛⬜⭐⭕" +
  "\\u{1f004}\\u{1f0cf}\\u{1f170}\\u{1f171}\\u{1f17e}\\u{1f17f}\\u{1f18e}\\u{1f191}-\\u{1f19a}" +
  "\\u{1f300}-\\u{1f3fa}\\u{1f400}-\\u{1f64f}\\u{1f680}-\\u{1f6ff}\\u{1f7e0}-\\u{1f7f0}" +
  "\\u{1f90c}-\\u{1f9ff}\\u{1fa70}-\\u{1faff}";
const FLAG = "\\u{1f1e6}-\\u{1f1ff}";
const DRAWN = "\\p{Cf}\\p{Me}\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}"; // how a character is drawn is not part of it
const SIGNED_NAME =
  "(?<![A-Za-z0-9])(?:[A-Za-z]{1,12}\\+\\+(?![A-Za-z+])[A-Za-z0-9]*|[A-Za-z]{1,2}#(?![A-Za-z0-9#]))";

const IS_ASCII = /^[\0-\x7f]*$/;
const IS_UNSPACED = new RegExp(`^[${UNSPACED}]`, "u");
const ASCII_RUN = /[A-Za-z0-9+#]+/g;
const DRAWN_MARK = new RegExp(`[${DRAWN}]`, "gu");
const ONE_EMOJI = new RegExp(`[${EMOJI}]`, "gu");
const RUN = new RegExp(`[\\p{L}\\p{N}\\p{M}+#${FLAG}${EMOJI}]+`, "gu");
const RUN_PART = new RegExp(`[${UNSPACED}]+|[${FLAG}]{2}|[^${UNSPACED}${FLAG}]+`, "gu");
const WORD = new RegExp(`${SIGNED_NAME}|[^+#]+`, "g");
const SIGNED = /^([A-Za-z]+)(\+\+|#)([A-Za-z0-9]*)$/;
const SUBWORD = /[A-Z]{2,}[a-z]?[0-9]+|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+/g;
const LETTERS_OR_DIGITS = /[A-Z]?[a-z]+|[A-Z]+|[0-9]+/g;
const OPTIONAL_MARK =
  /(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]/g;
const UNDECOMPOSED = {
  ß: "ss", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", æ: "ae", œ: "oe", ı: "i", ς: "σ",
  ẞ: "SS", Ø: "O", Ł: "L", Đ: "D", Ð: "D", Þ: "Th", Æ: "Ae", Œ: "Oe",
};
const UNDECOMPOSED_LETTER = new RegExp(`[${Object.keys(UNDECOMPOSED).join("")}]`, "g");
const HAS_UNDECOMPOSED = new RegExp(UNDECOMPOSED_LETTER.source);
const POSSESSIVE = /(?<=[\p{L}\p{N}_+#])['’]s$/iu;
const ANY_EMOJI = `[${EMOJI}][\\ufe0e\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]*`;
const PLACE = new RegExp(
  `${SIGNED_NAME}|(?<unspaced>[${UNSPACED}]+)|[${FLAG}]{2}|${ANY_EMOJI}(?:\\u200d${ANY_EMOJI})*` +
    `|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}\\u00ad\\u200c\\u200d\\ufe00-\\ufe0f])+`,
  "gu",
);

const remembered = new Map();
const MOST_REMEMBERED = 50000;

function terms(text) {
  return runs(text).flatMap(termsOfRun);
}

function isUnspaced(character) {
  return IS_UNSPACED.test(character);
}

// The terms that stand in a row wherever the text stands, whatever follows it.
function phraseTerms(text) {
  const row = fromSign(text);
  const last = row.at(-1);
  const isTail = row.length > 1 && [...last].length === 1 && row.at(-2).endsWith(last) && isUnspaced(last);
  return isTail ? row.slice(0, -1) : row;
}

// The terms of which any will do when a word ranks.
function wordTerms(word, stopWords) {
  const row = phraseTerms(word.replace(POSSESSIVE, ""));
  const telling = row.length > 1 ? row.filter((term) => !stopWords.has(term)) : row;
  return telling.length ? telling : row;
}

// The terms of a word that stand in a row wherever it is written, an identifier also as `get_user` or `get user`.
function rowTerms(word) {
  word = word.replace(POSSESSIVE, "");
  const row = phraseTerms(word);
  const first = row.length ? fromSign(words(word)[0]) : [];
  return hasWhole(first) ? row.slice(1) : row;
}

function prefixTerms(text) {
  const given = fromSign(text);
  return words(text).length === 1 && hasWhole(given) ? given.slice(0, 1) : given;
}

function isCompound(word) {
  return words(word).length > 1;
}

// The term of an identifier as a whole: `getUserName` → `getusername`; empty for anything else.
function wholeIdentifier(text) {
  const given = terms(text);
  return given.length > 1 && !isCompound(text) && given.every((term) => IS_ASCII.test(term)) ? given[0] : "";
}

// The words of the text that give a wanted term: [start, end, terms], in order.
function matchingSpans(text, wanted) {
  const spans = [];
  if (IS_ASCII.test(text)) {
    for (const run of text.matchAll(ASCII_RUN)) {
      for (const [start, end] of wordSpans(run[0])) {
        const found = distinct(termsOfRun(run[0].slice(start, end))).filter((term) => wanted.has(term));
        if (found.length) spans.push([run.index + start, run.index + end, found]);
      }
    }
    return spans;
  }
  for (const piece of text.matchAll(/\S+/g)) {
    const found = distinct(terms(piece[0])).filter((term) => wanted.has(term));
    if (found.length) spans.push(...placesOf(found, piece[0], piece.index));
  }
  return spans;
}

function placesOf(found, raw, offset) {
  const spans = [];
  for (const [start, end, isTerm] of places(raw)) {
    const word = raw.slice(start, end);
    const given = isTerm ? [word.normalize("NFKC")] : terms(word);
    const wanted = distinct(given).filter((term) => found.includes(term));
    if (wanted.length) spans.push([offset + start, offset + end, wanted]);
  }
  // Words that normalisation changes beyond recognition, such as 5㎏, are shown with what they touch.
  const isComplete = found.every((term) => spans.some((span) => span[2].includes(term)));
  return isComplete ? spans : [[offset, offset + raw.length, found]];
}

function places(raw) {
  return [...raw.matchAll(PLACE)].flatMap((place) => {
    if (!place.groups.unspaced) return [[place.index, place.index + place[0].length, false]];
    const letters = [...place[0]];
    let at = place.index;
    return letters.map((letter, number) => {
      const start = at;
      at += letter.length;
      return [start, at + (letters[number + 1] ?? "").length, true];
    });
  });
}

function runs(text) {
  if (IS_ASCII.test(text)) return text.match(ASCII_RUN) ?? [];
  const plain = text.normalize("NFKC").replace(DRAWN_MARK, "").replace(ONE_EMOJI, " $& ");
  return plain.match(RUN) ?? [];
}

function words(text) {
  return runs(text).flatMap((run) => wordSpans(run).map(([start, end]) => run.slice(start, end)));
}

function wordSpans(run) {
  if (!run.includes("+") && !run.includes("#")) return [[0, run.length]];
  return [...run.matchAll(WORD)].map((word) => [word.index, word.index + word[0].length]);
}

function termsOfRun(run) {
  let given = remembered.get(run);
  if (given === undefined) {
    given = IS_ASCII.test(run) ? wordsOf(run).flatMap(identifierTerms) : unicodeTerms(run);
    if (remembered.size > MOST_REMEMBERED) remembered.clear();
    remembered.set(run, given);
  }
  return given;
}

function wordsOf(run) {
  return wordSpans(run).map(([start, end]) => run.slice(start, end));
}

function identifierTerms(word) {
  if (!word || word.length > LONGEST_WORD) return [];
  const whole = word.toLowerCase();
  if (!/^[A-Za-z]+$/.test(word)) {
    const signed = SIGNED.exec(word);
    if (signed) return signedTerms(signed[1], signed[2], signed[3]);
    if (whole.match(/[a-z]+|[0-9]+/g).length > MOST_ALTERNATIONS) return [whole];
  }
  const parts = [];
  for (const subword of word.match(SUBWORD)) {
    parts.push(subword.toLowerCase());
    if (/[A-Za-z]/.test(subword) && /[0-9]/.test(subword)) {
      parts.push(...subword.match(LETTERS_OR_DIGITS).map((piece) => piece.toLowerCase()));
    }
  }
  return parts[0] === whole ? parts : [whole, ...parts];
}

function signedTerms(name, sign, version) {
  const signed = name.toLowerCase() + sign;
  const parts = [...identifierTerms(name), signed, ...identifierTerms(version)];
  return version ? [signed + version.toLowerCase(), ...parts] : parts;
}

function unicodeTerms(run) {
  return run.match(RUN_PART).flatMap((part) => (isUnspaced(part) ? pairs(part) : wordsOf(part).flatMap(spacedTerms)));
}

function pairs(part) {
  const letters = [...part];
  return letters.map((letter, at) => letter + (letters[at + 1] ?? ""));
}

function spacedTerms(word) {
  const bare = word.normalize("NFD").replace(OPTIONAL_MARK, "");
  const plain = bare.replace(UNDECOMPOSED_LETTER, (letter) => UNDECOMPOSED[letter]);
  if (IS_ASCII.test(plain)) return identifierTerms(plain);
  const folded = plain.toLowerCase().replace(/ς/g, "σ").normalize("NFC");
  return [...folded].length <= LONGEST_WORD ? [folded] : [];
}

function fromSign(text) {
  const row = terms(text);
  const first = words(text)[0] ?? "";
  if (!first.endsWith("++") && !first.endsWith("#")) return row;
  return row.slice(row.findIndex((term) => term.endsWith("++") || term.endsWith("#")));
}

function hasWhole(given) {
  return given.length > 1 && IS_ASCII.test(given[0]) && given[0].startsWith(given[1]);
}

function distinct(values) {
  return values.length < 2 ? values : [...new Set(values)];
}
