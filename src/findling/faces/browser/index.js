// The index of this page, read from the letters it was written in. See pipelines/export/browser_index.py for its form.

const KNOWN_FORMAT = 1;
const FREE_LENGTHS = 24;

async function openIndex() {
  const [texts, packed] = await Promise.all([inflated("findling-texts"), inflated("findling-index")]);
  const size = new DataView(packed.buffer, packed.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(packed.subarray(4, 4 + size)));
  if (header.format !== KNOWN_FORMAT) throw new Error(`this page holds an index of format ${header.format}`);
  const sections = {};
  let at = 4 + size;
  for (const [name, length] of Object.entries(header.sections)) {
    sections[name] = packed.subarray(at, at + length);
    at += length;
  }
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(texts);
  return makeIndex(header, sections, text);
}

async function inflated(id) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the page: it needs one of 2023 or later");
  }
  const element = document.getElementById(id);
  const letters = element.textContent.trim();
  element.remove(); // what is unpacked need not be kept twice
  const stream = new Blob([bytesOf(letters)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function bytesOf(letters) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(letters);
  return Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
}

class Numbers {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  next() {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }

  nextSigned() {
    const value = this.next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

function makeIndex(header, sections, text) {
  const index = {
    ...header,
    text,
    vocabulary: sections.terms.length ? new TextDecoder().decode(sections.terms).split("\n") : [],
    stopWords: new Set(header.stopWords),
    sentenceWords: new Set(header.sentenceWords),
  };
  readPassages(index, sections.passages);
  readLengths(index, sections.lengths);
  readTerms(index, sections.postings);
  readRelated(index, sections.related);
  index.named = filesByName(index.resources);
  return index;
}

function readPassages(index, bytes) {
  const numbers = new Numbers(bytes);
  index.list = [];
  for (const [number, resource] of index.resources.entries()) {
    const count = numbers.next();
    const begin = numbers.next();
    Object.assign(resource, { number, first: index.list.length, count, begin, end: begin + numbers.next() });
    resource.title ??= "";
    resource.path ??= "";
    resource.tags ??= [];
    let start = begin;
    let line = 0;
    for (let ordinal = 0; ordinal < count; ordinal++) {
      start += numbers.nextSigned();
      const passage = { number: index.list.length, resource, ordinal, start, end: start + numbers.next() };
      line += numbers.nextSigned();
      passage.line = line;
      passage.lastLine = line + numbers.next();
      passage.heading = index.strings[numbers.next()];
      passage.places = Array.from({ length: numbers.next() }, () => ({
        start: numbers.next(),
        label: index.strings[numbers.next()],
        line: numbers.next(),
      }));
      index.list.push(passage);
    }
  }
}

function readLengths(index, bytes) {
  let at = 0;
  for (const field of index.fields) {
    const size = field.ofPassages ? index.list.length : index.resources.length;
    field.lengths = bytes.subarray(at, at + size);
    at += size;
  }
}

function readTerms(index, bytes) {
  const numbers = new Numbers(bytes);
  index.termNumber = new Map();
  index.classOf = new Map();
  index.classes = new Map();
  index.postingsAt = new Uint32Array(index.vocabulary.length);
  index.postingsBytes = bytes;
  index.decoded = new Map();
  for (const [number, term] of index.vocabulary.entries()) {
    const formClass = numbers.next();
    const size = numbers.next();
    index.termNumber.set(term, number);
    index.postingsAt[number] = numbers.at;
    numbers.at += size;
    if (formClass) {
      index.classOf.set(term, formClass);
      index.classes.has(formClass) ? index.classes.get(formClass).push(term) : index.classes.set(formClass, [term]);
    }
  }
}

function readRelated(index, bytes) {
  const numbers = new Numbers(bytes);
  if (!bytes.length) return;
  for (const passage of index.list) {
    passage.related = Array.from({ length: numbers.next() }, () => ({
      passage: index.list[numbers.next()],
      cosine: numbers.next() / 100,
    }));
  }
}

function filesByName(resources) {
  const named = new Map();
  for (const resource of resources) {
    if (!resource.path) continue;
    const parts = resource.path.toLowerCase().split("/");
    const name = parts.at(-1);
    for (const given of new Set([name, name.split(".")[0], parts.slice(-2).join("/")])) {
      named.has(given) ? named.get(given).push(resource) : named.set(given, [resource]);
    }
  }
  return named;
}

const MOST_DECODED = 2000;

// Field → passage → how often the term stands there; what is said of a resource holds for each of its passages.
function postingsOf(index, term) {
  const number = index.termNumber.get(term);
  if (number === undefined) return new Map();
  let found = index.decoded.get(number);
  if (found === undefined) {
    found = decodePostings(index, index.postingsAt[number]);
    if (index.decoded.size > MOST_DECODED) index.decoded.clear();
    index.decoded.set(number, found);
  }
  return found;
}

function decodePostings(index, at) {
  const numbers = new Numbers(index.postingsBytes, at);
  const mask = numbers.next();
  const found = new Map();
  for (const [bit, field] of index.fields.entries()) {
    if (!(mask & (1 << bit))) continue;
    const counts = new Map();
    let entry = 0;
    for (let left = numbers.next(); left > 0; left--) {
      const gap = numbers.next();
      entry += Math.floor(gap / 2);
      const count = gap % 2 ? numbers.next() : 1;
      if (field.ofPassages) {
        counts.set(entry, count);
      } else {
        const { first, count: passages } = index.resources[entry];
        for (let passage = first; passage < first + passages; passage++) counts.set(passage, count);
      }
    }
    found.set(field.name, counts);
  }
  return found;
}

// The terms of the vocabulary that begin so, in order.
function begunTerms(index, prefix) {
  const { vocabulary } = index;
  let low = 0;
  let high = vocabulary.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    vocabulary[middle] < prefix ? (low = middle + 1) : (high = middle);
  }
  let end = low;
  while (end < vocabulary.length && vocabulary[end].startsWith(prefix)) end++;
  return vocabulary.slice(low, end);
}

function lengthOf(field, passage) {
  const code = field.lengths[field.ofPassages ? passage.number : passage.resource.number];
  if (code < FREE_LENGTHS) return code;
  const beyond = code - FREE_LENGTHS;
  const shift = (beyond >> 3) - 1;
  return FREE_LENGTHS + (shift < 0 ? beyond & 7 : ((beyond & 7) | 8) * 2 ** shift);
}

function textOf(index, passage) {
  return index.text.slice(passage.start, passage.end);
}

function fieldText(index, field, passage) {
  if (field === "body") return textOf(index, passage);
  if (field === "heading") return passage.heading;
  if (field === "tags") return passage.resource.tags.join(" ");
  if (field === "name") return passage.resource.name || passage.resource.path.split("/").at(-1);
  return passage.resource[field] ?? "";
}
