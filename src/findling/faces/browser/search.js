// Searching: from what was typed to an answer with hits, counts, notes and receipts.

const LITTLE = 5; // with fewer hits than that, related passages are named as well
const MOST_RELATED = 5;
const SHORTEST_BEGINNING = 3;

// Of a query that is one name or number, the passages that hold the whole, if there are some.
function holdingName(index, asked, passing) {
  const [name] = asked.plain;
  if (asked.kind !== "any" || asked.plain.length !== 1 || !/[_\d]|[a-z][A-Z]/.test(name)) return passing;
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const whole = new RegExp(`(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])`, name === name.toLowerCase() ? "iu" : "u");
  const holding = passing.filter(([passage]) => whole.test(textOf(index, index.list[passage])));
  return holding.length ? holding : passing;
}

function search(index, query) {
  const asked = parseQuery(query, index);
  const answer = { query, asked, leaves: [], demanded: [], hits: [], total: 0, documents: 0, notes: [...asked.notes] };
  Object.assign(answer, { unknown: [], suggestions: [], related: [], facets: { type: [], ext: [] } });
  if (asked.kind === "empty") return withReasonForNothing(answer, index, new Map());
  const matched = asked.kind === "browse" ? everything(index) : byWords(index, asked, answer);
  exclude(index, asked, answer, matched);
  const passing = holdingName(
    index,
    asked,
    [...matched].filter(([passage]) => passes(index.list[passage].resource, asked.filters)),
  );
  answer.facets = facetsOf(index, asked, matched);
  answer.hits = asked.kind === "browse" ? latest(index, passing) : ranked(index, answer, passing);
  answer.total = answer.hits.length;
  answer.documents = new Set(answer.hits.map((hit) => hit.passage.resource)).size;
  answer.related = relatedTo(answer);
  return withReasonForNothing(answer, index, matched);
}

function byWords(index, asked, answer) {
  const kind = asked.kind === "any" ? "word" : "term";
  const words = asked.words.map(({ text, times }) => said(mended(index, { kind, text }, answer), repeated(times)));
  const others = [...asked.phrases, ...asked.prefixes].map((leaf) => evaluated(index, leaf));
  answer.leaves = [...words, ...others];
  answer.ceiling = answer.leaves.reduce((sum, leaf) => sum + leaf.ceiling, 0);
  for (const leaf of others) {
    for (const [term, forms] of leaf.forms) if (!forms.length) answer.unknown.push(term);
  }
  const demanded = asked.isProse ? [] : others;
  const required = asked.kind === "any" ? demanded : answer.leaves;
  answer.demanded = required;
  const sums = joined([new Map(), ...answer.leaves.map((leaf) => leaf.found)], 1);
  return new Map([...sums].filter(([passage]) => required.every((leaf) => leaf.found.has(passage))));
}

// A word that nobody wrote is read as the beginning of one, or as the one it is an edit away from; and this is said.
function mended(index, leaf, answer) {
  const made = evaluated(index, leaf);
  if ([...made.forms.values()].some((forms) => forms.length)) return made;
  const row = phraseTerms(leaf.text);
  answer.unknown.push(leaf.text);
  if (row.length !== 1 || !/^\p{L}+$/u.test(row[0])) return made;
  if (row[0].length >= SHORTEST_BEGINNING && begunTerms(index, row[0]).length) {
    answer.unknown.pop();
    return { ...evaluated(index, { kind: "prefix", text: row[0] }), typed: leaf.text };
  }
  const [nearest] = spelledNearly(index, row[0]);
  if (!nearest) return made;
  const word = nearest;
  const isApplied = word[0] === row[0][0]; // the first letter is seldom mistyped
  answer.suggestions.push({ term: leaf.text, word, isApplied });
  return isApplied ? { ...evaluated(index, { ...leaf, text: word }), typed: leaf.text } : made;
}

function exclude(index, asked, answer, matched) {
  for (const leaf of asked.without) {
    const { found } = evaluated(index, leaf);
    if (!found.size) {
      const spelled = leaf.kind === "phrase" ? `"${leaf.text}"` : leaf.text;
      answer.notes.push(`-${spelled} excludes nothing: nothing says so`);
    }
    for (const passage of found.keys()) matched.delete(passage);
  }
}

function everything(index) {
  return new Map(index.list.map((passage) => [passage.number, 0]));
}

function latest(index, passing) {
  const firsts = new Map();
  for (const [number] of passing) {
    const passage = index.list[number];
    if (!firsts.has(passage.resource)) firsts.set(passage.resource, passage);
  }
  const time = (passage) => passage.resource.updated ?? -Infinity;
  return [...firsts.values()]
    .sort((a, b) => (time(a) === time(b) ? a.number - b.number : time(b) - time(a)))
    .map((passage) => ({ passage, points: 0, score: 1, factor: 1 }));
}

function ranked(index, answer, passing) {
  const hits = passing.map(([number, points]) => ({
    passage: index.list[number],
    points,
    score: points > 0 ? points / (points + answer.ceiling / 2) : 0,
    factor: 1,
  }));
  demote(index, hits);
  return hits.sort((a, b) => b.score - a.score || a.passage.number - b.passage.number);
}

// What was superseded stands at half its score, and below what supersedes it.
function demote(index, hits) {
  const best = new Map();
  for (const { passage, score } of hits) best.set(passage.resource, Math.max(best.get(passage.resource) ?? 0, score));
  const replaced = [...best.keys()].filter((resource) => resource.successor !== undefined);
  const chains = new Map(replaced.map((resource) => [resource, successors(index, resource)]));
  replaced.sort((a, b) => chains.get(a).length - chains.get(b).length);
  for (const resource of replaced) {
    const later = chains.get(resource).filter((one) => best.has(one)).map((one) => best.get(one) * BELOW);
    best.set(resource, Math.min(best.get(resource) * SUPERSEDED, ...later));
  }
  for (const hit of hits) {
    if (!chains.has(hit.passage.resource) || !hit.score) continue;
    const score = Math.min(hit.score * SUPERSEDED, best.get(hit.passage.resource));
    hit.factor = score / hit.score;
    hit.score = score;
  }
}

function successors(index, resource) {
  const chain = [];
  while (resource.successor !== undefined) {
    resource = index.resources[resource.successor];
    if (chain.includes(resource)) break;
    chain.push(resource);
  }
  return chain;
}

// Of each type and extension how many passages match, as if nothing were asked of it yet: what a click would lead to.
function facetsOf(index, asked, matched) {
  const facets = {};
  for (const name of ["type", "ext"]) {
    const others = asked.filters.filter((filter) => filter.name !== name || filter.isNegative);
    const counts = new Map();
    for (const number of matched.keys()) {
      const { resource } = index.list[number];
      const value = name === "ext" ? extensionOf(resource.path) : resource.type;
      if (value && passes(resource, others)) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    facets[name] = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }
  return facets;
}

// Where words find little: what is near to the hits by meaning, as it was when the page was made.
function relatedTo(answer) {
  if (answer.asked.kind === "browse" || answer.total >= LITTLE) return [];
  const known = new Set(answer.hits.map((hit) => hit.passage));
  const near = new Map();
  for (const hit of answer.hits) {
    for (const { passage, cosine } of hit.passage.related ?? []) {
      if (!known.has(passage)) near.set(passage, Math.max(near.get(passage) ?? 0, cosine));
    }
  }
  return [...near]
    .filter(([passage]) => passes(passage.resource, answer.asked.filters))
    .sort((a, b) => b[1] - a[1] || a[0].number - b[0].number)
    .slice(0, MOST_RELATED)
    .map(([passage, cosine]) => ({ passage, cosine }));
}

function withReasonForNothing(answer, index, matched) {
  const { asked } = answer;
  if (answer.total || !answer.query.trim()) return answer;
  if (asked.kind === "empty") {
    answer.notes.push("there is no letter, digit or emoji to search for");
  } else if (matched.size) {
    answer.notes.push(`${counted(matched.size, "passage")} would match without the filters`);
  } else if (answer.demanded.length > 1 && answer.demanded.every((leaf) => leaf.found.size)) {
    answer.notes.push("each of these occurs, but no passage has all of them");
  }
  return answer;
}

// Why a hit is where it is: what each word found in which field, how often, and what that was worth.
function receiptOf(index, answer, hit) {
  return answer.leaves.map((leaf) => {
    const fields = [];
    for (const field of index.fields) {
      let count = 0;
      const forms = new Set();
      for (const form of new Set([...leaf.forms.values()].flat())) {
        const times = postingsOf(index, form).get(field.name)?.get(hit.passage.number) ?? 0;
        count += times;
        if (times) forms.add(form);
      }
      if (count) fields.push({ name: field.name, count, forms: [...forms] });
    }
    const points = leaf.found.get(hit.passage.number);
    const isNamed = leaf.named?.has(hit.passage.number) ?? false;
    return { text: leaf.text, typed: leaf.typed, kind: leaf.kind, points, isNamed, fields: points === undefined ? [] : fields };
  });
}

// Every form that is to be marked in a text, with the term it stands for.
function wantedForms(answer) {
  const wanted = new Map();
  for (const leaf of answer.leaves) {
    for (const [term, forms] of leaf.forms) {
      for (const form of forms) if (form === term || !wanted.has(form)) wanted.set(form, term);
    }
  }
  return wanted;
}

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
