"""Segments of postings: entries with their terms, packed into bytes that any table can hold.

A segment has at most 65,536 entries and never changes. Numbers are packed in the fewest bytes that hold the largest
one of a list, so that numpy reads them without a loop.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.domain.plans import FIELDS
from findling.ranking.postings_scoring import Entries, quantised
from findling.stores.keyword.entries import PreparedResource
from findling.stores.keyword.term_weights import PAD

__all__ = [
    "INDEXED",
    "MOST_ENTRIES",
    "NEVER",
    "PostingRow",
    "SegmentBuilder",
    "SegmentHead",
    "pack_field",
    "packed",
    "row_counts",
    "row_entries",
    "row_positions",
    "unpacked",
]

INDEXED = (*FIELDS, "author", "defines", "scope")
"""The fields of an entry in their order; that of the stored numbers of fields."""

MOST_ENTRIES = 1 << 16
"""Entries of a segment: their numbers take two bytes."""

NEVER = np.iinfo(np.int64).min
"""The time of an entry that has none."""

_WIDTHS = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))


class PostingRow(NamedTuple):
    """One term of a field in a segment: `df` entries, how often each has it, and where.

    `tfs` are empty where each has it once, `positions` in fields that nobody asks for rows of words.
    """

    df: int
    docs: bytes
    tfs: bytes
    positions: bytes


class SegmentHead:
    """The entries of a segment: ids, resources, turns, times, and the lengths of their text fields."""

    def __init__(
        self,
        cids: NDArray[np.int64],
        numbers: NDArray[np.int64],
        turns: NDArray[np.int64],
        updated: NDArray[np.int64],
        lengths: Mapping[str, NDArray[np.integer]],
    ) -> None:
        self.cids, self.numbers, self.turns, self.updated = cids, numbers, turns, updated
        self.lengths = lengths
        self._norms: dict[str, NDArray[np.uint8]] = {}

    def __len__(self) -> int:
        return len(self.cids)

    def norms(self, field: str) -> NDArray[np.uint8]:
        """The lengths of a field as bytes."""
        if (norms := self._norms.get(field)) is None:
            norms = self._norms[field] = quantised(self.lengths[field])
        return norms


class SegmentBuilder:
    """Gathers entries for one segment, in one pass over their terms."""

    def __init__(self) -> None:
        self._columns = [array("q") for _ in range(4)]
        self._terms = {field: defaultdict[str, int](count().__next__) for field in INDEXED}
        self._tokens = {field: array("I") for field in INDEXED}
        self._lengths = {field: array("I") for field in INDEXED}

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def weight(self) -> int:
        """The number of terms of all entries."""
        return sum(map(len, self._tokens.values()))

    def add(self, prepared: PreparedResource) -> None:
        """Take in the entries of a resource."""
        number, updated, common, rows = prepared
        at = NEVER if updated is None else updated
        shared = {name: [self._terms[name][term] for term in text.split()] for name, text in common}
        for cid, turn, body, heading, defines, *sentence in rows:
            for column, value in zip(self._columns, (cid, number, turn, at), strict=True):
                column.append(value)
            own = {"body": body, "heading": heading, "defines": defines}
            for field in INDEXED:
                text = own.get(field, "")
                term_ids = [*map(self._terms[field].__getitem__, text.split())] if text else shared.get(field, [])
                if field == "description" and sentence:
                    term_ids = [*term_ids, *map(self._terms[field].__getitem__, sentence[0].split())]
                self._tokens[field].extend(term_ids)
                self._lengths[field].append(len(term_ids))

    def head(self) -> SegmentHead:
        """The entries."""
        cids, numbers, turns, updated = (np.array(column, np.int64) for column in self._columns)
        lengths = {field: np.array(self._lengths[field], np.uint32) for field in FIELDS}
        return SegmentHead(cids, numbers, turns, updated, lengths)

    def rows(self) -> Iterator[tuple[int, str, PostingRow]]:
        """The rows by field, then by term in the order of its bytes."""
        for number, field in enumerate(INDEXED):
            lengths = np.array(self._lengths[field], np.int64)
            docs = np.repeat(np.arange(len(lengths)), lengths)
            positions = np.arange(len(docs)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            terms = [*self._terms[field]]
            for term, row in pack_field(terms, np.array(self._tokens[field], np.int64), docs, positions, field):
                yield number, term, row


def pack_field(
    terms: Sequence[str], tokens: Entries, docs: Entries, positions: Entries, field: str
) -> Iterator[tuple[str, PostingRow]]:
    """The rows of a field in the order of terms; `tokens` are numbers of terms, with the entry and position of each.

    Tokens of one term come in the order of entries, then of positions.
    """
    if not len(tokens):
        return
    order = np.argsort(tokens, kind="stable")
    tokens, docs, positions = tokens[order], docs[order], positions[order]
    is_new = np.ones(len(tokens), np.bool_)
    is_new[1:] = (tokens[1:] != tokens[:-1]) | (docs[1:] != docs[:-1])
    firsts = np.flatnonzero(is_new)
    pair_terms, pair_docs = tokens[firsts], docs[firsts]
    is_new_term = np.diff(pair_terms, prepend=-1) != 0
    starts = np.flatnonzero(is_new_term)
    has_rows = field in FIELDS
    steps = _NumberLists(_gaps(pair_docs, is_new_term), starts)
    numbers = _NumberLists(pair_docs, starts)
    tfs = _NumberLists(np.diff(firsts, append=len(tokens)), starts)
    places = _NumberLists(_gaps(positions, is_new), firsts[starts])
    ids = pair_terms[starts].tolist()
    bounds = [*starts.tolist(), len(firsts)]
    token_bounds = [*firsts[starts].tolist(), len(tokens)]
    for at in sorted(range(len(ids)), key=lambda at: terms[ids[at]]):
        start, end = bounds[at], bounds[at + 1]
        if terms[ids[at]] == PAD:
            continue
        # Small steps take a byte each; entries far from each other take two as they are.
        own = steps.cut(at, start, end) if steps.most[at] < 256 else numbers.cut(at, start, end, least=1)
        often = tfs.cut(at, start, end) if has_rows and tfs.most[at] > 1 else b""
        where = places.cut(at, token_bounds[at], token_bounds[at + 1]) if has_rows else b""
        yield terms[ids[at]], PostingRow(end - start, own, often, where)


class _NumberLists:
    """Lists of numbers one after the other, as bytes of several widths to cut pieces from; `most` is by list."""

    def __init__(self, values: Entries, starts: Entries) -> None:
        self._values = values
        self._bytes: dict[int, bytes] = {}
        self.most = np.maximum.reduceat(values, starts).tolist()

    def cut(self, at: int, start: int, end: int, least: int = 0) -> bytes:
        """The numbers of a list in the fewest bytes that hold the largest of them."""
        most = self.most[at]
        width = max(least, 0 if most < 1 << 8 else 1 if most < 1 << 16 else 2)
        if (pool := self._bytes.get(width)) is None:
            pool = self._bytes[width] = self._values.astype(_WIDTHS[width]).tobytes()
        return pool[start << width : end << width]


def _gaps(values: Entries, is_first: NDArray[np.bool_]) -> Entries:
    """The steps between values; the first ones of each list as they are."""
    gaps = np.diff(values, prepend=0)
    gaps[is_first] = values[is_first]
    return gaps


def packed(numbers: NDArray[np.integer]) -> bytes:
    """Numbers in the fewest bytes that hold the largest of them."""
    most = int(numbers.max()) if len(numbers) else 0
    return numbers.astype(_WIDTHS[0 if most < 1 << 8 else 1 if most < 1 << 16 else 2]).tobytes()


def unpacked(data: bytes, size: int) -> NDArray[np.integer]:
    """So many numbers that were packed."""
    return np.frombuffer(data, _WIDTHS[{1: 0, 2: 1, 4: 2}[len(data) // size]]) if size else np.zeros(0, np.uint8)


def row_entries(row: PostingRow) -> NDArray[np.integer]:
    """The entries of a row, in order."""
    if len(row.docs) == row.df:
        return np.frombuffer(row.docs, np.uint8).astype(np.int64).cumsum()
    return np.frombuffer(row.docs, "<u2")


def row_counts(row: PostingRow) -> NDArray[np.integer]:
    """By entry, how often it has the term."""
    return unpacked(row.tfs, row.df) if row.tfs else np.ones(row.df, np.uint8)


def row_positions(row: PostingRow, counts: NDArray[np.integer], kept: Entries) -> NDArray[np.integer]:
    """The positions in those of the entries whose places in the row are kept, one after the other."""
    if not row.tfs:
        return unpacked(row.positions, row.df)[kept]
    ends = np.cumsum(counts, dtype=np.int64)
    steps, own = unpacked(row.positions, int(ends[-1])), counts[kept].astype(np.int64)
    starts, before = ends[kept] - own, np.cumsum(own) - own
    chosen = steps[np.repeat(starts - before, own) + np.arange(int(own.sum()))]
    summed = np.cumsum(chosen, dtype=np.int64)
    positions: Entries = summed - np.repeat(summed[before] - chosen[before], own)
    return positions
