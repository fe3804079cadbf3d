"""The words a keyword leg holds: in which fields, how often, in which forms, and which are spelled nearly alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.budgets import current_budget
from findling.domain.plans import FIELDS
from findling.stores.keyword.scoring import INFLECTED
from findling.stores.keyword.segment_files import Statistics
from findling.text.analysis.scripts import is_unspaced
from findling.text.analysis.stemming import forms_prefix, same_stem

if TYPE_CHECKING:
    from findling.text.analysis.spelling import Spellings

__all__ = ["Form", "Forms", "KeywordWords", "begins_longer_terms"]

_MOST_FORMS = 24
"""Forms of one word that are scored, the frequent ones first."""

_MOST_KNOWN = 200
"""Forms of one word that are named, for receipts and highlights."""

_VOCABULARY_WINDOW = 4000
"""Words of the vocabulary looked at for the forms of one word; short stems have many neighbours."""


class Form(NamedTuple):
    """A way in which a word stands in the index: how often in the main field, in which fields, at which weight."""

    text: str
    frequency: int
    fields: tuple[str, ...]
    weight: float = 1.0


class Forms(NamedTuple):
    """The forms of a word that are scored, these and other frequent ones as `known`, and whether there are `more`."""

    scored: list[Form]
    known: tuple[str, ...]
    more: bool = False


class KeywordWords:
    """Answers from one state of the index."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._entries = statistics.entries
        self._all: list[tuple[str, int]] | None = None
        self._spellings: Spellings | None = None

    def frequency(self, field: str, term: str) -> int:
        """The frequency of a term in a field; deleted chunks count until tantivy merges them away."""
        return self._statistics.frequency(field, term)

    def fields(self, term: str, fields: Sequence[str]) -> tuple[str, ...]:
        """Those of the fields in which a term stands."""
        return tuple(field for field in fields if self._statistics.frequency(field, term))

    def idf(self, frequency: int) -> float:
        """The rarity of a word of this frequency."""
        # tantivy counts deleted chunks in a term's frequency until it merges them away, but not among all chunks.
        frequency = min(frequency, self._entries)
        return math.log(1 + (self._entries - frequency + 0.5) / (frequency + 0.5))

    def spread(self, forms: Iterable[Form]) -> int:
        """The frequency of the forms as one word."""
        return min(self._entries, sum(form.frequency for form in forms))

    def inflected(self, term: str, fields: Sequence[str]) -> Forms:
        """The forms of a word; of one character of an unspaced script, the terms that begin with it.

        The first field is the main one, whose frequencies count.
        """
        if begins_longer_terms(term):
            standing = self._begun(term, fields)
            found = _main_counts(standing)
        elif len(term) > 2 and term.isalpha():
            standing = self._begun(forms_prefix(term), fields, _VOCABULARY_WINDOW)
            nearby = _main_counts(standing)
            found = {form: nearby[form] for form in same_stem(term, [*nearby])}
        else:
            standing, found = {}, {}
        if term not in found and self.fields(term, fields):
            found[term] = self.frequency(fields[0], term)
        return self._forms(found, [*_frequent(found, _MOST_FORMS), term], fields, {term: 1.0}, standing)

    def begun(self, prefix: str, fields: Sequence[str]) -> Forms:
        """The words that begin so."""
        standing = self._begun(prefix, fields)
        found = _main_counts(standing)
        return self._forms(found, [*_frequent(found, _MOST_FORMS), prefix], fields, {prefix: 1.0}, standing)

    def close(self, term: str, distance: int, fields: Sequence[str]) -> tuple[Forms, list[str]]:
        """The words within so many edits, of which the nearest are scored, and all of them."""
        near = current_budget().once((self, term, distance), lambda: self._near(term, distance))
        weights = {word: INFLECTED**edits for word, _, edits in near}
        found = {word: self.frequency(fields[0], word) for word in weights if self.fields(word, fields)}
        return self._forms(found, [*found][:_MOST_FORMS], fields, weights, {}), [*found]

    def spellings(self) -> Spellings:
        """The vocabulary by the lengths of its words, made at the first call."""
        from findling.text.analysis.spelling import Spellings

        if self._spellings is None:
            self._spellings = Spellings(self.vocabulary())
        return self._spellings

    def beginnings(self, prefix: str, field: str, most: int) -> list[str]:
        """Regular expressions for the words of a field that begin so, each for at most so many of them."""
        words = [word for word, _ in self._statistics.begun(field, prefix)]
        if len(words) <= most:
            return [f"{re.escape(prefix)}.*"] if words else []
        longer = sorted({word[: len(prefix) + 1] for word in words if word != prefix})
        groups = [group for beginning in longer for group in self.beginnings(beginning, field, most)]
        return [re.escape(prefix), *groups] if prefix in words else groups

    def vocabulary(self, prefix: str = "") -> list[tuple[str, int]]:
        """The words of all text fields that begin so, each with its largest number of chunks in one field."""
        if prefix:
            return [(word, min(count, self._entries)) for word, count in self._begun_anywhere(prefix).items()]
        if self._all is None:
            self._all = [(word, min(count, self._entries)) for word, count in self._begun_anywhere("").items()]
        return self._all

    def _near(self, term: str, distance: int) -> list[tuple[str, int, int]]:
        """The words within so many edits, as long as the budget lets them be compared; then the word as it is."""
        spellings = self.spellings()
        compared = spellings.compared(term, distance)
        left_out = "the query has many words in any spelling: some were looked for as they are written"
        is_paid = current_budget().take("compared", compared, left_out) == compared
        return spellings.close(term, distance if is_paid else 0)

    def _begun_anywhere(self, prefix: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for field in FIELDS:
            for word, count in self._statistics.begun(field, prefix):
                if found.get(word, 0) < count:
                    found[word] = count
        return found

    def _begun(self, prefix: str, fields: Sequence[str], limit: int | None = None) -> dict[str, dict[str, int]]:
        """By field, the words that begin so with their frequencies."""
        return {field: dict(self._statistics.begun(field, prefix, limit)) for field in fields}

    def _forms(
        self,
        found: Mapping[str, int],
        best: Iterable[str],
        fields: Sequence[str],
        weights: Mapping[str, float],
        standing: Mapping[str, Mapping[str, int]],
    ) -> Forms:
        """The best of the words that were found; `standing` lists the words of fields, as far as it goes."""

        def stands(word: str, field: str) -> bool:
            known = standing.get(field)
            # A list that was cut off says nothing of a word that is not in it.
            if known is None or (word not in known and len(known) >= _VOCABULARY_WINDOW):
                return bool(self.frequency(field, word))
            return word in known

        scored = [
            Form(
                word,
                found[word],
                tuple([field for field in fields if stands(word, field)]),
                weights.get(word, INFLECTED),
            )
            for word in dict.fromkeys(best)
            if word in found
        ]
        known = dict.fromkeys([*(form.text for form in scored), *_frequent(found, _MOST_KNOWN)])
        return Forms(scored, tuple(known), len(scored) < len(found))


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
