"""The words a keyword leg holds, in which fields and forms and how often, and the weights by which it counts them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import tantivy

from findling.domain.budgets import current_budget
from findling.domain.plans import COMPOUNDING, FIELDS
from findling.stores.keyword.segment_files import DamageGuard
from findling.text.analysis.scripts import is_unspaced
from findling.text.analysis.stemming import forms_prefix, held_languages, same_stem, stems_apart, table_forms

if TYPE_CHECKING:
    from findling.text.analysis.spelling import Spellings

INFLECTED = 0.8
"""Weight of a form that differs from what was typed: better than 1 on all seven development sets, by .001 to .007."""

OTHER_FORMS = 0.2
"""Share of the weaker forms of a word beside its best form: 1 would reward a chunk for saying a word in many ways.
NDCG@10 on SciFact, a development set: 0 .686, 0.2 .691, 0.4 .687, 0.6 .682, plain sum .663."""

IN_A_ROW = 0.5
"""Weight of a compound found as it was typed, besides that of its terms."""

NAMED_FILE, NAMED_STEM = 1.5, 0.3
"""Gain of a file that the query names, with and without its extension, as a share of all the word can score:
argparse.py means that file, not the one that mentions it most."""


PAD = "¤"
"""The term that a body is padded with; no text gives it."""

UNADDED = 2.0
"""Weight of the lesser fields, as a multiple, for pairs of characters. A pair in the title is no word: its points are
not added to those of the body, the better of both counts. NDCG@10 on the first 400 questions of jsquad, a development
set: added .912, the better one .923; one field for everything, the reference, .924. For words adding is better:
hotpotqa .811 against .782, cacm .516 against .449."""

REPEATED_K = 8.0
"""Pace at which repetitions of a word in a query wear off: said twice it counts 1.8, said four times 3."""


def is_added(term: str) -> bool:
    """Whether a term counts in all its fields together, as words do."""
    return term[0].isascii() or not is_unspaced(term[0])


def most_of_word(terms: Iterable[tuple[str, float, bool]]) -> float:
    """The most that a word can score: of its terms, the most each can, and whether any chunk holds it.

    A run without spaces that shares no pair with the index is one unknown word. Counted by its 19 pairs, a Chinese
    question would drown the English name that it asks for.
    """
    words, known, unknown = 0.0, 0.0, list[float]()
    for term, most, is_held in terms:
        if is_added(term):
            words += most
        else:
            known += most if is_held else 0.0
            unknown += [] if is_held else [most]
    return words + (known + sum(unknown) if known else max(unknown, default=0.0))


def repeated(times: int) -> float:
    """The weight of a word that is said so often in a query."""
    return (REPEATED_K + 1) * times / (REPEATED_K + times)


MOST_FORMS = 24
"""Forms of one word that are scored, the frequent ones first."""

_PART, _LONGER = 0.7, 0.5
"""Weights of a part of a compound, and of a compound that begins with a word. NDCG@10 on the headings of a German, a
Norwegian, a Dutch and a Swedish handbook: without both .313, .281, .327, .248; .5 and .4 .319, .289, .332, .259; .7 and
.5 .320, .289, .335, .261."""

_SHORT, _ADDED = 4, 3
"""Letters of a word that begins too many others, and of what follows it in an inflected form at most."""

_MOST_KNOWN = 200
"""Forms of one word that are named, for receipts and highlights."""

_VOCABULARY_WINDOW = 4000
"""Words of the vocabulary looked at for the forms of one word; short stems have many neighbours."""


class Form(NamedTuple):
    """A way in which a word stands in the index: how often in the main field, in which fields, at which weight.

    A part of a compound is not the word's own form: its frequency says nothing of how rare the word is.
    """

    text: str
    frequency: int
    fields: tuple[str, ...]
    weight: float = 1.0
    is_own: bool = True


class Forms(NamedTuple):
    """The forms of a word that are scored, these and other frequent ones as `known`, and whether there are `more`."""

    scored: list[Form]
    known: tuple[str, ...]
    more: bool = False


class LiveIndex(NamedTuple):
    """One state of an index in which dead entries count in no average.

    tantivy takes it to have `weighed` entries when it weighs a term; 0 where nothing is dead, and it counts right.
    """

    searcher: tantivy.Searcher
    weighed: int = 0


_MOST_COUNTED = 3_000
"""Words of one walk whose living entries are counted, 30 ms; of more of them, dead entries count as well."""

_MOST_FREQUENCIES = 20_000
"""Frequencies that are kept for one state of the index, 3 MB: an answer asks three times for those of its words."""


class SegmentStatistics:
    """The vocabulary of one state of a tantivy index. Every question may raise CorruptError."""

    def __init__(
        self, live: LiveIndex, schema: tantivy.Schema, reading: DamageGuard, forms: bytes | None = None
    ) -> None:
        self._searcher, self._weighed = live
        self._schema = schema
        self._reading = reading
        self._frequencies: dict[tuple[str, str], int] = {}
        self._table = forms
        with reading:
            self.entries = self._searcher.num_docs

    def frequency(self, field: str, term: str) -> int:
        """The frequency of a term in a field."""
        if (found := self._frequencies.get((field, term))) is None:
            with self._reading:
                found = self._searcher.doc_freq(field, term)
                if found and self._weighed:
                    found = self._living(field, term)
            self.note(field, term, found)
        return found

    def scale(self, field: str, terms: Sequence[str]) -> float:
        """The rarity of terms as one, as a share of what tantivy takes it for, which counts dead entries."""
        if not self._weighed:
            return 1.0
        with self._reading:
            taken = sum(_idf(self._searcher.doc_freq(field, term), self._weighed) for term in terms)
        return sum(_idf(self.frequency(field, term), self.entries) for term in terms) / taken

    def _living(self, field: str, term: str) -> int:
        """The number of living entries with a term: 10 µs, and 0.1 ms for 10,000 of them."""
        query = tantivy.Query.term_query(self._schema, field, term, index_option="basic")
        return int(getattr(self._searcher.search(query, 1), "count", 0) or 0)  # missing in type stubs

    def note(self, field: str, term: str, frequency: int) -> None:
        """Keep a frequency that a walk has given, so that nobody asks for it."""
        if len(self._frequencies) >= _MOST_FREQUENCIES:
            self._frequencies.clear()
        self._frequencies[field, term] = frequency

    def begun(self, field: str, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        """The terms of a field that begin so, in order, each with its frequency."""

        def walk() -> list[tuple[str, int]]:
            with self._reading:
                found = self._searcher.terms_with_prefix(field, prefix, limit=limit)
            if not prefix:
                return [pair for pair in found if pair[0] != PAD]
            if not self._weighed or len(found) > _MOST_COUNTED:
                return found
            counted = [(term, living) for term, _ in found if (living := self.frequency(field, term))]
            return sorted(counted, key=lambda pair: (-pair[1], pair[0]))  # as tantivy orders them

        # One letter begins thousands of terms, and a row that ends with it asks for them twice.
        return current_budget().once((self, field, prefix, limit), walk)

    def related(self, term: str, fields: Sequence[str], language: str) -> dict[str, dict[str, int]]:
        """By field, the terms with the stem of a term and others around them, in order, with their frequencies."""
        prefix = forms_prefix(term, language)
        if self._table is None or (stems_apart(language) and term[0] <= "z"):
            return {field: dict(self.begun(field, prefix, _VOCABULARY_WINDOW)) for field in fields}
        words = [word for word in table_forms(self._table, term) if word.startswith(prefix)]
        ask = self.frequency if self._weighed else self._searcher.doc_freq
        with self._reading:
            return {field: {word: found for word in words if (found := ask(field, word))} for field in fields}

    def words(self) -> Collection[str]:
        """The terms of all text fields, nearly in order: those of the main field come first."""
        found: dict[str, int] = {}
        with self._reading:
            for field in FIELDS:
                found.update(self._searcher.terms_with_prefix(field, ""))
        return found


class KeywordWords(SegmentStatistics):
    """The words of one state of the index, in their forms and spellings."""

    _spellings: Spellings | None = None
    _languages: tuple[str, ...] | None = None

    def fields(self, term: str, fields: Sequence[str]) -> tuple[str, ...]:
        """Those of the fields in which a term stands."""
        return tuple(field for field in fields if self.frequency(field, term))

    def idf(self, frequency: int) -> float:
        """The rarity of a word of this frequency."""
        return _idf(min(frequency, self.entries), self.entries)

    def spread(self, forms: Iterable[Form]) -> int:
        """The frequency of the forms as one word."""
        return min(self.entries, sum(form.frequency for form in forms))

    def inflected(self, term: str, fields: Sequence[str], language: str = "") -> Forms:
        """The forms of a word; of one character of an unspaced script, the terms that begin with it.

        The first field is the main one, whose frequencies count.
        """
        compounds: dict[str, float] = {}
        standing: Mapping[str, Mapping[str, int]] = {}
        found: dict[str, int] = {}
        if begins_longer_terms(term):
            standing = self._begun(term, fields)
            found = _main_counts(standing)
        elif len(term) > 2 and term.isalpha():
            spoken = (language,) if language else self.languages()
            near = [self.related(term, fields, each) for each in spoken]
            standing = {field: dict(chain.from_iterable(each[field].items() for each in near)) for field in fields}
            nearby = _main_counts(standing)
            found = {form: nearby[form] for each in spoken for form in same_stem(term, [*nearby], each)}
            if not COMPOUNDING.isdisjoint(spoken):
                compounds = self._compounds(term, nearby.keys() - found.keys(), fields[0])
        if term not in found and self.fields(term, fields):
            found[term] = self.frequency(fields[0], term)
        others = {word: self.frequency(fields[0], word) for word in compounds if word not in found}
        best = [*_frequent(found, MOST_FORMS), term, *_frequent(others, MOST_FORMS)]
        return self._forms(found | others, best, fields, {**compounds, term: 1.0}, {} if others else standing, others)

    def _compounds(self, term: str, nearby: Iterable[str], field: str) -> dict[str, float]:
        """The parts of a compound, and the compounds that begin with a word, with their weights."""
        least = len(term) + _ADDED + 1 if len(term) > _SHORT else math.inf
        longer = [word for word in nearby if len(word) >= least and word.startswith(term)]
        from findling.text.analysis.word_parts import compound_parts  # which most languages do not need

        parts = compound_parts(term, lambda word: self.frequency(field, word))
        return dict.fromkeys(longer, _LONGER) | dict.fromkeys(parts, _PART)

    def languages(self) -> tuple[str, ...]:
        """The languages that the index holds, the first one most."""
        if self._languages is None:
            self._languages = held_languages(lambda word: self.frequency("body", word), self.entries)
        return self._languages

    def beginning(self, prefix: str, fields: Sequence[str]) -> Forms:
        """The words that begin so."""
        standing = self._begun(prefix, fields)
        found = _main_counts(standing)
        return self._forms(found, [*_frequent(found, MOST_FORMS), prefix], fields, {prefix: 1.0}, standing)

    def close(self, term: str, distance: int, fields: Sequence[str]) -> tuple[Forms, list[str]]:
        """The words within so many edits, of which the nearest are scored, and all of them."""
        near = current_budget().once((self, term, distance), lambda: self._near(term, distance))
        weights = {word: INFLECTED**edits for word, _, edits in near}
        found = {word: self.frequency(fields[0], word) for word in weights if self.fields(word, fields)}
        return self._forms(found, [*found][:MOST_FORMS], fields, weights, {}), [*found]

    def spellings(self) -> Spellings:
        """The vocabulary by the lengths of its words, made at the first call."""
        from findling.text.analysis.spelling import Spellings

        if self._spellings is None:
            self._spellings = Spellings(self._begun_anywhere(""))
        return self._spellings

    def beginnings(self, prefix: str, field: str, most: int) -> list[str]:
        """Regular expressions for the words of a field that begin so, each for at most so many of them."""
        words = [word for word, _ in self.begun(field, prefix)]
        if len(words) <= most:
            return [f"{re.escape(prefix)}.*"] if words else []
        longer = sorted({word[: len(prefix) + 1] for word in words if word != prefix})
        groups = [group for beginning in longer for group in self.beginnings(beginning, field, most)]
        return [re.escape(prefix), *groups] if prefix in words else groups

    def vocabulary(self, prefix: str = "") -> Iterable[tuple[str, int]]:
        """The words of all text fields that begin so, each with its largest number of chunks in one field."""
        return self._begun_anywhere(prefix) if prefix else self.spellings()

    def _near(self, term: str, distance: int) -> list[tuple[str, int, int]]:
        """The words within so many edits, as long as the budget lets them be compared; then the word as it is."""
        spellings = self.spellings()
        compared = spellings.compared(term, distance)
        left_out = "the query has many words in any spelling: some were looked for as they are written"
        is_paid = current_budget().take("compared", compared, left_out) == compared
        return spellings.close(term, distance if is_paid else 0)

    def _begun_anywhere(self, prefix: str) -> list[tuple[str, int]]:
        found: dict[str, int] = {}
        for field in FIELDS:
            for word, count in self.begun(field, prefix):
                if found.get(word, 0) < count:
                    found[word] = count
        return [(word, min(count, self.entries)) for word, count in found.items()]

    def _begun(self, prefix: str, fields: Sequence[str]) -> dict[str, dict[str, int]]:
        """By field, the words that begin so with their frequencies."""
        return {field: dict(self.begun(field, prefix)) for field in fields}

    def _forms(
        self,
        found: Mapping[str, int],
        best: Iterable[str],
        fields: Sequence[str],
        weights: Mapping[str, float],
        standing: Mapping[str, Mapping[str, int]],
        others: Collection[str] = (),
    ) -> Forms:
        """The best of the words that were found; `standing` lists the words of fields, as far as it goes.

        Of them the `others` are no forms of the word itself.
        """

        # A list that was cut off says nothing of a word that is not in it.
        listed = {field: known for field, known in standing.items() if len(known) < _VOCABULARY_WINDOW}
        scored = [
            Form(
                word,
                found[word],
                tuple(
                    [
                        field
                        for field in fields
                        if (word in listed[field] if field in listed else self.frequency(field, word))
                    ]
                ),
                weights.get(word, INFLECTED),
                word not in others,
            )
            for word in dict.fromkeys(best)
            if word in found
        ]
        for form in scored:
            if form.frequency:  # else a list of terms that was cut off may lack it
                self.note(fields[0], form.text, form.frequency)
        known = dict.fromkeys([*(form.text for form in scored), *_frequent(found, _MOST_KNOWN)])
        return Forms(scored, tuple(known), len(scored) < len(found))


def _idf(frequency: int, entries: int) -> float:
    return math.log(1 + (entries - frequency + 0.5) / (frequency + 0.5))


def _main_counts(standing: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Word → its frequency in the first field, 0 for those that stand in others only."""
    main, *others = standing.values()
    found = dict(main)
    for other in others:
        for word in other:
            found.setdefault(word, 0)
    return found


def begins_longer_terms(term: str) -> bool:
    """Whether a term is one character of an unspaced script, which is the beginning of any of its bigrams."""
    return len(term) == 1 and is_unspaced(term)


def _frequent(found: Mapping[str, int], most: int) -> list[str]:
    return sorted(found, key=lambda word: -found[word])[:most]


def scored(
    searcher: tantivy.Searcher, hits: Sequence[tuple[float | None, tantivy.DocAddress]], wanted: Iterable[int]
) -> dict[int, float]:
    """The scores of the wanted chunks among some hits."""
    cids = searcher.fast_field_values("cid", [address for _, address in hits]) if hits else []
    hit_of = dict(zip(cids, hits, strict=True))
    return {cid: hit_of[cid][0] or 0.0 for cid in wanted if cid in hit_of}


def place_of(hit: tuple[float | None, tantivy.DocAddress]) -> float:
    """The key that orders hits. Without a word to rank by the latest come first, and what has no time comes last."""
    return math.inf if hit[0] is None else -hit[0]
