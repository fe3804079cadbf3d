"""BM25 over postings: the entries that a query of the algebra finds, with their scores.

The arithmetic is that of tantivy: lengths of one byte, k1 1.2, b 0.75. A phrase is one term that is as rare as all of
its words. Sums follow the order of the clauses, so that a score depends on nothing but the entry and the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from findling.domain.backends import STANDARD_B, STANDARD_K1
from findling.ranking.postings_algebra import (
    AllPart,
    AnyTermPart,
    BeginningPart,
    BestPart,
    BoostPart,
    ConstantPart,
    EveryPart,
    NumbersPart,
    Part,
    RangePart,
    RowPart,
    SumPart,
    TermPart,
)

__all__ = [
    "LENGTHS",
    "Matches",
    "TermPostings",
    "idf",
    "matches",
    "quantised",
    "shares_of",
]

Entries: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = NDArray[np.float64]


def _lengths() -> NDArray[np.int64]:
    """The lengths that a byte stands for: exact below 40, then in steps of an eighth of the next power of two."""
    least = 24
    values = [*range(least)]
    for code in range(256 - least):
        steps, shift = code & 7, (code >> 3) - 1
        values.append(least + (steps if shift < 0 else (steps | 8) << shift))
    return np.array(values, np.int64)


LENGTHS = _lengths()
"""The length that each byte stands for."""


def quantised(lengths: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Lengths as bytes, rounded down to those that a byte stands for."""
    codes: NDArray[np.uint8] = (np.searchsorted(LENGTHS, lengths, "right") - 1).astype(np.uint8)
    return codes


class TermPostings(Protocol):
    """The postings of the entries in sight. Entries are numbers below `slots`, of which `entries` are in sight."""

    slots: int
    entries: int

    def every(self) -> Entries:
        """All entries in sight, in order."""

    def total(self, field: str) -> int:
        """The number of terms in a field of all entries."""

    def norms(self, field: str) -> NDArray[np.uint8]:
        """The length of a field in each slot, as a byte."""

    def term(self, field: str, term: str) -> tuple[Entries, NDArray[np.integer]]:
        """The entries with a term, in order, and how often each has it."""

    def shares(self, field: str, term: str) -> tuple[Entries, Scores]:
        """The entries with a term, in order, and in each the share of the most that it can score."""

    def places(self, field: str, term: str, is_wanted: NDArray[np.bool_]) -> tuple[Entries, NDArray[np.integer]]:
        """The wanted entries with a term, in order, each as often as it has it, and where; by slot, all in sight."""

    def frequency(self, field: str, term: str) -> int:
        """The number of entries with a term."""

    def begun(self, field: str, prefix: str) -> Sequence[str]:
        """The terms of a field that begin so, in order; some may be in no entry in sight."""

    def column(self, name: str) -> NDArray[np.int64]:
        """A number of each slot: `cid`, `turn` or `updated`; the least number stands for none."""


class Matches(NamedTuple):
    """Entries in order, with their scores."""

    entries: Entries
    scores: Scores


def idf(frequency: int, entries: int) -> float:
    """The rarity of a term."""
    return math.log(1 + (entries - frequency + 0.5) / (frequency + 0.5))


def shares_of(field: str, entries: Entries, counts: NDArray[np.integer], postings: TermPostings) -> Scores:
    """The shares of the most that a term can score, in entries that have it so often."""
    usual = max(postings.total(field), 1) / postings.entries  # 0 is damage
    scores: Scores = _factor(usual)[postings.norms(field)[entries]]
    scores += counts
    np.divide(counts, scores, out=scores)
    return scores


@lru_cache(maxsize=64)
def _factor(usual: float) -> Scores:
    """By each length, the number of repetitions that count half, where a length is usual."""
    return STANDARD_K1 * (1 - STANDARD_B + STANDARD_B * LENGTHS.astype(np.float64) / usual)


def matches(part: Part, postings: TermPostings) -> Matches:
    """The entries that match, with scores of 32 bits, which is what tantivy gives."""
    found = _Scorer(postings).found(part, 1.0)
    return Matches(found.entries, found.scores.astype(np.float32).astype(np.float64))


_NO_ENTRIES = np.zeros(0, np.int64)
_NOTHING = Matches(_NO_ENTRIES, np.zeros(0))
_FEWER = 16
"""From so many times fewer entries on, to look each up takes less time than to mark the others."""

_SPARSE = 4
"""From so many times fewer entries than slots on, to merge lists takes less time than to mark them and look for marks:
27 µs against 75 for 4,400 entries in 50,000 slots."""

_SPAN = 32
"""Bits of a position beside its entry."""


class _Scorer:
    """Finds entries in one state of the postings."""

    def __init__(self, postings: TermPostings) -> None:
        self._postings = postings
        self._marked = np.zeros(postings.slots, np.bool_)
        self._rank = np.zeros(postings.slots, np.int64)

    def found(self, part: Part, boost: float) -> Matches:
        """The entries that match a part, with scores that count so much."""
        if isinstance(part, TermPart):
            return self._term(part, boost)
        if isinstance(part, BoostPart):
            return self.found(part.part, boost * part.boost)
        if isinstance(part, SumPart):
            return self._union([self.found(one, boost) for one in part.parts])
        if isinstance(part, BestPart):
            return self._best([self._clauses(one, boost) for one in part.parts], part.share)
        if isinstance(part, AllPart):
            return self._all(part, boost)
        if isinstance(part, RowPart):
            return self._row(part, boost)
        entries = self._entries(part)
        return Matches(entries, np.full(len(entries), boost * part.score if isinstance(part, ConstantPart) else boost))

    def _entries(self, part: Part) -> Entries:
        """The entries that match a part, whatever they score."""
        postings = self._postings
        if isinstance(part, TermPart):
            return postings.term(part.field, part.term)[0]
        if isinstance(part, AnyTermPart):
            return self._any([postings.term(part.field, term)[0] for term in dict.fromkeys(part.terms)])
        if isinstance(part, BeginningPart):
            terms = postings.begun(part.field, part.prefix)
            return self._any([postings.term(part.field, term)[0] for term in terms])
        if isinstance(part, EveryPart):
            return _NO_ENTRIES if part.is_empty else postings.every()
        if isinstance(part, (NumbersPart, RangePart)):
            return self._numbered(part)
        if isinstance(part, (BoostPart, ConstantPart)):
            return self._entries(part.part)
        if isinstance(part, (SumPart, BestPart)):
            return self._any([self._entries(one) for one in part.parts])
        if isinstance(part, AllPart) and part.musts:
            entries = self._common([self._entries(one) for one in part.musts])
            return self._without(entries, [self._entries(one) for one in part.nots])
        return self.found(part, 1.0).entries

    def _numbered(self, part: NumbersPart | RangePart) -> Entries:
        every = self._postings.every()
        numbers = self._postings.column(part.column)[every]
        if isinstance(part, NumbersPart):
            return every[np.isin(numbers, np.array(part.numbers, np.int64))]
        is_given = numbers > np.iinfo(np.int64).min
        return every[is_given & (numbers >= part.first) & (numbers < part.end)]

    def _term(self, part: TermPart, boost: float) -> Matches:
        entries, shares = self._postings.shares(part.field, part.term)
        if not len(entries):
            return _NOTHING
        weight = idf(self._postings.frequency(part.field, part.term), self._postings.entries)
        return Matches(entries, shares * (weight * boost * (STANDARD_K1 + 1)))

    def _clauses(self, part: Part, boost: float) -> list[Matches]:
        """The matches whose sum is that of a part, without empty ones."""
        while isinstance(part, BoostPart):
            boost, part = boost * part.boost, part.part
        parts = part.parts if isinstance(part, SumPart) else (part,)
        return [found for one in parts if len((found := self.found(one, boost)).entries)]

    def _union(self, parts: Sequence[Matches]) -> Matches:
        """The entries of all parts, with the sum of their scores."""
        parts = [part for part in parts if len(part.entries)]
        if len(parts) < 2:
            return parts[0] if parts else _NOTHING
        entries = self._ranked(parts)
        return Matches(entries, self._summed(parts, len(entries)))

    def _best(self, sums: Sequence[Sequence[Matches]], share: float) -> Matches:
        """The entries of all sums, with the best of them and a share of the others."""
        sums = [parts for parts in sums if parts]
        if len(sums) < 2:
            return self._union(sums[0]) if sums else _NOTHING
        # One rank for all: an array of zeros for each form of a word takes less time than entries of its own.
        entries = self._ranked([part for parts in sums for part in parts])
        total, best = np.zeros(len(entries)), np.zeros(len(entries))
        for parts in sums:
            own = self._summed(parts, len(entries))
            total += own
            np.maximum(best, own, out=best)
        return Matches(entries, best + (total - best) * share)

    def _ranked(self, parts: Sequence[Matches]) -> Entries:
        """The entries of all parts, with the place of each among them as its rank."""
        entries = self._any([part.entries for part in parts])
        self._rank[entries] = np.arange(len(entries))
        return entries

    def _summed(self, parts: Sequence[Matches], size: int) -> Scores:
        """By rank, the sum of the scores of the parts."""
        total = np.zeros(size)
        for part in parts:
            total[self._rank[part.entries]] += part.scores
        return total

    def _all(self, part: AllPart, boost: float) -> Matches:
        if not part.musts:
            found = self._union([self.found(one, boost) for one in part.shoulds])
            return self._at(found, self._without(found.entries, [self._entries(one) for one in part.nots]))
        musts = [self.found(one, boost) for one in part.musts]
        entries = self._common([one.entries for one in musts])
        entries = self._without(entries, [self._entries(one) for one in part.nots])
        scores = np.zeros(len(entries))
        for must in musts:
            scores += self._at(must, entries).scores
        for should in (self.found(one, boost) for one in part.shoulds):
            kept = self._common([should.entries, entries])
            scores[np.searchsorted(entries, kept)] += self._at(should, kept).scores
        return Matches(entries, scores)

    def _at(self, found: Matches, entries: Entries) -> Matches:
        """The scores of some of the entries."""
        if len(found.entries) == len(entries):
            return found
        return Matches(entries, found.scores[np.searchsorted(found.entries, entries)])

    def _any(self, lists: Sequence[Entries]) -> Entries:
        lists = [one for one in lists if len(one)]
        if len(lists) < 2:
            return lists[0] if lists else _NO_ENTRIES
        if sum(map(len, lists)) * _SPARSE < len(self._marked):
            merged = np.concatenate(lists)
            merged.sort(kind="stable")  # it merges lists that are in order
            is_new = np.ones(len(merged), np.bool_)
            np.not_equal(merged[1:], merged[:-1], out=is_new[1:])
            return merged[is_new]
        for one in lists:
            self._marked[one] = True
        entries = np.flatnonzero(self._marked)
        self._marked[entries] = False
        return entries

    def _common(self, lists: Sequence[Entries]) -> Entries:
        entries, *others = sorted(lists, key=len)
        for other in others:
            if len(entries) * _FEWER < len(other):
                entries = entries[other[np.searchsorted(other[:-1], entries)] == entries]
                continue
            self._marked[other] = True
            entries = entries[self._marked[entries]]
            self._marked[other] = False
        return entries

    def _without(self, entries: Entries, lists: Sequence[Entries]) -> Entries:
        for one in lists:
            self._marked[one] = True
            entries = entries[~self._marked[entries]]
            self._marked[one] = False
        return entries

    # Words in a row

    def _row(self, part: RowPart, boost: float) -> Matches:
        words: list[tuple[int, Sequence[str]]] = []
        for offset, word in part.words:
            longer = self._postings.begun(part.field, word.prefix) if isinstance(word, BeginningPart) else (word,)
            words.append((offset, longer))
        keys = self._keys(part.field, words, part.slop)
        if not len(keys):
            return _NOTHING
        owners = keys >> _SPAN
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        counts = np.diff(firsts, append=len(owners))
        frequencies = [self._postings.frequency(part.field, form) for _, forms in words for form in forms]
        worth = sum(idf(frequency, self._postings.entries) for frequency in frequencies if frequency)
        entries = owners[firsts]
        return Matches(
            entries, shares_of(part.field, entries, counts, self._postings) * (worth * boost * (STANDARD_K1 + 1))
        )

    def _keys(self, field: str, words: Sequence[tuple[int, Sequence[str]]], slop: int) -> Entries:
        """Beginnings of the row, each an entry and a position in one number; with slop, those of its first word."""
        common = self._common(
            [self._any([self._postings.term(field, form)[0] for form in forms]) for _, forms in words]
        )
        # Even without a common entry the positions are asked for: a tier that fetches them does so at once.
        self._marked[common] = True
        rows = [self._standing(field, forms, offset) for offset, forms in words]
        self._marked[common] = False
        keys, *others = rows if slop else sorted(rows, key=len)
        for other in others:
            at = np.searchsorted(other, keys - slop)
            at[at == len(other)] = -1
            keys = keys[np.abs(other[at] - keys) <= slop] if len(other) else _NO_ENTRIES
        return keys

    def _standing(self, field: str, forms: Sequence[str], offset: int) -> Entries:
        """Beginnings of rows that have one of the forms at an offset, in marked entries."""
        found = []
        for form in forms:
            entries, positions = self._postings.places(field, form, self._marked)
            # 2 ** 30 keeps what begins before the first word from running into the entry before.
            found.append((entries << _SPAN) + positions.astype(np.int64) + ((1 << 30) - offset))
        if len(found) < 2:
            return found[0] if found else _NO_ENTRIES
        return np.sort(np.concatenate(found))
