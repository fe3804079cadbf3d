"""From the leaves of a query tree to queries of an engine: words in all their forms, rows, beginnings, near spellings.

Every leaf scores as one word does under BM25, whatever it consists of, so that the leaves of a tree can be added up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tantivy import Occur, Query, Schema

from findling.domain.backends import STANDARD_K1, Scoring
from findling.domain.budgets import current_budget
from findling.domain.errors import InvalidValueError
from findling.domain.plans import FIELDS
from findling.domain.queries import SPELLING, Fuzzy, Near, Phrase, Prefix, Same, Term, Word
from findling.stores.keyword.term_weights import (
    IN_A_ROW,
    NAMED_FILE,
    NAMED_STEM,
    OTHER_FORMS,
    UNADDED,
    Form,
    Forms,
    KeywordWords,
    begins_longer_terms,
    is_added,
    most_of_word,
    repeated,
)
from findling.text.analysis.analysis import is_compound, phrase_terms, prefix_terms, row_terms, terms, word_terms

RARE_FORM = 0.1
"""Weight of a form that is too rare to be scored by itself, as a share of the word's."""

_MOST_EXPANSIONS = 16_000
"""Words that one place of a row may stand for; tantivy refuses more than 16,384."""

_MOST_REMEMBERED = 5_000
"""Leaves that are kept for one state of the index, 2 KB each: one query of 256 KB has 40,000 words."""

_MOST_SLOP = 1 << 20
"""No chunk has as many words; tantivy takes 32 bits."""


class ScoredQuery(NamedTuple):
    """A query (None when nothing can match) and the most it can score."""

    query: Query | None
    ceiling: float = 0.0

    def said(self, weight: float) -> ScoredQuery:
        """The same, counting so much."""
        if weight == 1.0:
            return self
        query = None if self.query is None else Query.boost_query(self.query, weight)
        return ScoredQuery(query, self.ceiling * weight)


Memory = dict[tuple[object, ...], tuple[ScoredQuery, dict[str, tuple[str, ...]]]]
"""Leaves met before, under which weights, with their queries and known forms; good for one state of the index."""


Named = Callable[[str, float], Query | None]
"""A query for the file that a text names, at a score; None if there is none."""


class Leaves:
    """Builds the leaves of one tree, and gathers the `forms` of the terms that they ask for."""

    def __init__(
        self,
        schema: Schema,
        words: KeywordWords,
        named: Named,
        scoring: Scoring,
        memory: Memory,
    ) -> None:
        unknown = scoring.weights.keys() - set(FIELDS)
        if unknown:
            raise InvalidValueError(f"no text field {min(unknown)!r}", hint=f"one of {', '.join(FIELDS)}")
        self.forms: dict[str, tuple[str, ...]] = {}
        self._schema = schema
        self._words = words
        self._named = named
        self._scoring = scoring
        self._memory = memory
        self._weights = {field: weight for field in FIELDS if (weight := scoring.weights.get(field, 0.0))}

    def aside(self) -> Leaves:
        """Leaves of the same tree whose terms nobody asks for."""
        return Leaves(self._schema, self._words, self._named, self._scoring, self._memory)

    def part(self, leaf: Word | Term | Phrase | Prefix | Fuzzy | Near) -> ScoredQuery:
        """The query for one leaf. Raises InvalidValueError for a field that does not exist."""
        if isinstance(leaf, Word):
            return self._word(leaf)
        if isinstance(leaf, Near):
            return self._near(leaf)
        weights = self._weights_in(leaf.field)
        if not weights:
            return ScoredQuery(None)
        if isinstance(leaf, Term):
            return self._meant(leaf, weights)
        if isinstance(leaf, Phrase):
            return self._row(phrase_terms(leaf.text), weights)
        words = prefix_terms(leaf.text)
        if not words:
            return ScoredQuery(None)
        if isinstance(leaf, Fuzzy):
            return self._fuzzy(words[0], leaf.distance, weights)
        return self._begun_row(words, f"{words[-1]}*", weights) if len(words) > 1 else self._prefix(words[0], weights)

    def _weights_in(self, field: str) -> dict[str, float]:
        """The fields to look into, the main one first. One that is asked for by its name counts in any case."""
        if not field:
            return self._weights
        if field not in FIELDS:
            raise InvalidValueError(f"no text field {field!r}", hint=f"one of {', '.join(FIELDS)}")
        return {field: self._weights.get(field, 1.0)}

    def _word(self, leaf: Word) -> ScoredQuery:
        """Any term of the word; of a compound such as MAX_VALUE or node.js best all of them in a row."""
        text = leaf.text
        words = phrase_terms(text)
        given = Counter(word_terms(text)) if self._weights else {}
        lesser = _lesser(words)
        parts = {
            term: self._term(term, self._weights, leaf.language).said(repeated(times) * lesser.get(term, 1.0))
            for term, times in given.items()
        }
        ceiling = most_of_word((term, part.ceiling, part.query is not None) for term, part in parts.items())
        queries = [part.query for part in parts.values() if part.query is not None]
        if len(words) > 1 and queries and "body" in self._weights and is_compound(text):
            in_a_row = Query.phrase_query(self._schema, "body", [*words])
            boost = IN_A_ROW * self._weights["body"] * self._words.scale("body", words)
            queries.append(Query.boost_query(in_a_row, boost))
        return self._with_named_file(ScoredQuery(sum_of(queries), ceiling), text)

    def _meant(self, leaf: Term, weights: Mapping[str, float]) -> ScoredQuery:
        row = row_terms(leaf.text)
        if len(row) < 2:
            part = self._term(row[0], weights, leaf.language) if row else ScoredQuery(None)
        elif begins_longer_terms(row[-1]):
            part = self._begun_row(row, row[-1], weights)
        else:
            part = self._row(row, weights)
            if (whole := _whole(leaf.text)) and self._words.fields(whole, [*weights]):
                part = _better(part, self._row([whole], weights))
        return part if leaf.field else self._with_named_file(part, leaf.text)

    def _with_named_file(self, part: ScoredQuery, text: str) -> ScoredQuery:
        """The same, but a file that the text names gains by it."""
        share = NAMED_FILE if "." in text else NAMED_STEM
        named = self._named(text, share * part.ceiling)
        if part.query is None or named is None:
            return part
        return part._replace(query=Query.boolean_query([(Occur.Must, part.query), (Occur.Should, named)]))

    def _term(self, term: str, weights: Mapping[str, float], language: str) -> ScoredQuery:
        prefix = term if begins_longer_terms(term) else ""
        return self._once(
            (term, language, *weights.items()),
            lambda aside: aside._any_form(
                term, aside._words.inflected(term, [*weights], language), weights, prefix=prefix
            ),
        )

    def _prefix(self, prefix: str, weights: Mapping[str, float]) -> ScoredQuery:
        return self._once(
            ("begun", prefix, *weights.items()),
            lambda aside: aside._any_form(
                f"{prefix}*", aside._words.beginning(prefix, [*weights]), weights, prefix=prefix
            ),
        )

    def _once(self, key: tuple[object, ...], made: Callable[[Leaves], ScoredQuery]) -> ScoredQuery:
        """The part that is made, or was made for the same key before: a search builds its tree up to six times."""
        found = self._memory.get(key)
        if found is None:
            aside = self.aside()
            found = made(aside), aside.forms
            if len(self._memory) >= _MOST_REMEMBERED:
                self._memory.clear()
            self._memory[key] = found
        part, forms = found
        for term, known in forms.items():
            self._note(term, known)
        return part

    def _fuzzy(self, word: str, distance: int, weights: Mapping[str, float]) -> ScoredQuery:
        forms, words = self._words.close(word, distance, [*weights])
        return self._any_form(f"{word}~", forms, weights, words=words)

    def _any_form(
        self, name: str, forms: Forms, weights: Mapping[str, float], *, prefix: str = "", words: Sequence[str] = ()
    ) -> ScoredQuery:
        """The forms as one word, by its name. Those not scored one by one have the prefix or are among the words."""
        self._note(name, forms.known)
        worth = self._words.idf(self._words.spread(form for form in forms.scored if form.is_own))
        queries = []
        for form in forms.scored:
            # All forms count as one word: a rare form must not weigh more than the word itself.
            boost = worth / self._words.idf(form.frequency) if form.frequency else 1.0
            if not form.is_own:  # a frequent part says less than the compound
                boost = min(boost, 1.0)
            queries.append(self._in_fields(form, weights, boost * form.weight))
        rest: list[Query] = []
        if forms.more and prefix:
            rest = [Query.regex_query(self._schema, field, f"{re.escape(prefix)}.*") for field in weights]
        elif forms.more:
            rest = [Query.term_set_query(self._schema, field, words) for field in weights if words]
        queries += [Query.const_score_query(query, RARE_FORM * worth) for query in rest]
        return ScoredQuery(best_of(queries, OTHER_FORMS), self._most(worth, weights))

    def _in_fields(self, form: Form, weights: Mapping[str, float], main_boost: float) -> Query:
        main = next(iter(weights))
        is_one_word = is_added(form.text)
        clauses = []
        for field in form.fields:
            query = Query.term_query(self._schema, field, form.text, index_option="freq")
            boost = weights[field] * (main_boost if field == main else 1.0 if is_one_word else UNADDED)
            boost *= self._words.scale(field, (form.text,))
            clauses.append(query if boost == 1.0 else Query.boost_query(query, boost))
        return (sum_of(clauses) if is_one_word else best_of(clauses, 0.0)) or Query.empty_query()

    def _row(self, words: Sequence[str], weights: Mapping[str, float]) -> ScoredQuery:
        """All words in a row in one field, as they are."""
        fields = self._fields_of_all(words, weights)
        ceiling = self._most(self._worth(words, weights), weights)
        if not fields or not words:
            return ScoredQuery(None, ceiling)
        if len(words) == 1:
            return ScoredQuery(self._in_fields(Form(words[0], 0, fields), weights, 1.0), ceiling)
        queries = []
        for field in fields:
            in_a_row = Query.phrase_query(self._schema, field, [*words])
            queries.append(Query.boost_query(in_a_row, weights[field] * self._words.scale(field, words)))
        return ScoredQuery(sum_of(queries), ceiling)

    def _begun_row(self, words: Sequence[str], last: str, weights: Mapping[str, float]) -> ScoredQuery:
        """All words in a row in one field, the last of which may be longer; `last` is its name."""
        key = ("begun", *words, last, *weights.items())
        return self._once(key, lambda aside: aside._made_begun_row(words, last, weights))

    def _made_begun_row(self, words: Sequence[str], last: str, weights: Mapping[str, float]) -> ScoredQuery:
        *first, prefix = words
        fields = self._fields_of_all(first, weights)
        forms = self._words.beginning(prefix, [*weights])
        self._note(last, forms.known)
        worth = self._worth(first, weights) + self._words.idf(self._words.spread(forms.scored))
        queries = []
        for field in fields:
            for group in self._words.beginnings(prefix, field, _MOST_EXPANSIONS):
                query = Query.regex_phrase_query(self._schema, field, [*map(re.escape, first), group])
                # tantivy would add up the rarity of each of the expansions.
                queries.append(Query.const_score_query(query, weights[field] * worth))
        return ScoredQuery(sum_of(queries), self._most(worth, weights))

    def _fields_of_all(self, words: Iterable[str], weights: Mapping[str, float]) -> tuple[str, ...]:
        """The fields in which all of the words stand, each of which is asked for as it is."""
        fields = tuple(weights)
        for word in words:
            standing = self._words.fields(word, [*weights])
            self._note(word, (word,) if standing else ())
            fields = tuple(field for field in fields if field in standing)
        return fields

    def _near(self, leaf: Near) -> ScoredQuery:
        """Both words in the body, scored as they are anywhere, where they stand near each other.

        tantivy counts a phrase with slop from the word on that is rarer in a segment: such a score would depend on
        which chunks share a segment. Whether it matches does not.
        """
        weights = self._weights_in("body")
        parts = [self._meant(Term(word, "body"), weights) for word in (leaf.first, leaf.second)]
        first, second = self._ways(leaf.first), self._ways(leaf.second)
        distance = max(0, leaf.distance)
        pairs = list(dict.fromkeys((*product(first, second), *product(second, first))))
        rows = _granted_rows(leaf, pairs, distance)
        close = []
        for one, other in pairs[:rows]:
            if _is_one_row(one, other):
                slop = min(distance, _MOST_SLOP)
                close.append(Query.phrase_query(self._schema, "body", [*one, *other], slop=slop))
            else:
                gaps = range(min(distance + 1, max(1, rows // len(pairs))))
                close += [Query.phrase_query(self._schema, "body", _apart(one, other, gap)) for gap in gaps]
        ceiling = sum(part.ceiling for part in parts)
        queries = [part.query for part in parts if part.query is not None]
        if len(queries) < len(parts) or not close:
            return ScoredQuery(None, ceiling)
        among = Query.const_score_query(sum_of(close) or Query.empty_query(), 0.0)
        return ScoredQuery(Query.boolean_query([(Occur.Must, query) for query in (among, *queries)]), ceiling)

    def _ways(self, text: str) -> list[tuple[str, ...]]:
        """The rows in which a word stands in the body."""
        row = row_terms(text)
        if not row:
            return []
        *first, last = row
        forms = [form.text for form in self._words.inflected(last, ["body"]).scored]
        if first and not begins_longer_terms(last):
            forms = [form for form in forms if form == last]
        whole = _whole(text) if first else ""
        return [(*first, form) for form in forms] + ([(whole,)] if self._words.frequency("body", whole) else [])

    def _worth(self, words: Iterable[str], weights: Mapping[str, float]) -> float:
        """The summed rarity of words in the main field."""
        main = next(iter(weights))
        return sum(self._words.idf(self._words.frequency(main, word)) for word in words)

    def _most(self, worth: float, weights: Mapping[str, float]) -> float:
        return worth * (STANDARD_K1 + 1) * max(weights.values())

    def _note(self, term: str, forms: Iterable[str]) -> None:
        self.forms[term] = tuple(dict.fromkeys((*self.forms.get(term, ()), *forms)))


def _lesser(words: Sequence[str]) -> dict[str, float]:
    """The weights of the terms of a word that say less than others; words have none."""
    if all(map(is_added, words)):
        return {}
    from findling.text.analysis.word_parts import pair_weights  # which scripts without spaces need

    return pair_weights(words)


def _whole(text: str) -> str:
    """The term of an identifier as a whole: `getUserName` → `getusername`; empty for anything else."""
    given = terms(text)
    return given[0] if len(given) > 1 and not is_compound(text) and all(map(str.isascii, given)) else ""


_EDIT = 0.5
"""Share of a word that each edit of a correction leaves unsaid. An answer has no more than .57 by a word that one edit
corrects, .5 by a relative that two make (passeport, passwort), where both had .67. Weighing the word less instead took
.002 of NDCG@10 from xquad-de and xquad-x-de-en."""


def unsaid(node: Same) -> float:
    """The factor of a ceiling by which a correction is worth less than what was typed."""
    if node.group != SPELLING:
        return 1.0
    from findling.text.analysis.spelling import edits  # which only a correction needs

    typed, other = ("".join(phrase_terms(word.text)) for word in node.nodes if isinstance(word, Word | Term | Phrase))
    return 1 + _EDIT * edits(typed, other, 3)


def _apart(one: Sequence[str], other: Sequence[str], gap: int) -> list[str | tuple[int, str]]:
    """Two rows with a gap between them."""
    return [*enumerate(one), *enumerate(other, len(one) + gap)]


def sum_of(queries: Sequence[Query]) -> Query | None:
    if len(queries) < 2:
        return queries[0] if queries else None
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def _better(one: ScoredQuery, other: ScoredQuery) -> ScoredQuery:
    queries = [part.query for part in (one, other) if part.query is not None]
    return ScoredQuery(best_of(queries, 0.0), max(one.ceiling, other.ceiling))


def best_of(queries: Sequence[Query], tie: float) -> Query | None:
    if len(queries) < 2:
        return queries[0] if queries else None
    return Query.disjunction_max_query(queries, tie)


def _granted_rows(leaf: Near, pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], distance: int) -> int:
    """Rows that the budget grants: one for each pair, or one for each distance where a pair needs that."""
    each = 1 if all(_is_one_row(one, other) for one, other in pairs) else distance + 1
    left_out = "not all words near each other were looked for, or at smaller distances"
    budget = current_budget()
    return budget.once(leaf, lambda: budget.take("rows", each * len(pairs), left_out))


def _is_one_row(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a phrase with slop says it all: that is for all of its words, and lets a word stand next to itself."""
    return len(one) == len(other) == 1 and one != other
