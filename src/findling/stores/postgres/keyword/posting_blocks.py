"""Blocks of postings: neighbouring terms of a field in one row of a table.

A row for each term would take 170 bytes besides its postings, three times the text of a workspace of short chunks. A
frequent term has a block of its own. The directory of a segment knows the first term of each block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.ranking.postings_scoring import Entries
from findling.stores.keyword.posting_segments import INDEXED, MOST_ENTRIES, PostingRow, packed, unpacked

__all__ = ["BlockDirectory", "PackedBlock", "PostingBlock", "flat_docs", "flat_numbers", "pack_blocks", "summed"]

_MOST_BYTES, _MOST_POSITIONS = 2_000, 6_000
"""Bytes of a block, and of the positions beside them. PostgreSQL keeps rows below 2,000 in one piece."""

_FIELDS = {field: number for number, field in enumerate(INDEXED)}


class PackedBlock(NamedTuple):
    """A block as its table holds it. `sizes` are those of the entries, counts and positions of each term."""

    terms: bytes
    dfs: bytes
    sizes: bytes
    docs: bytes
    tfs: bytes
    positions: bytes


def pack_blocks(rows: Iterable[tuple[int, str, PostingRow]]) -> Iterator[tuple[int, str, PackedBlock]]:
    """The blocks of rows that come by field and term: the field of each, its first term, and itself."""
    waiting: list[tuple[int, str, PostingRow]] = []
    size = places = 0
    for field, term, row in rows:
        own = len(term) + 5 + len(row.docs) + len(row.tfs)
        size, places = size + own, places + len(row.positions)
        if waiting and (waiting[0][0] != field or size > _MOST_BYTES or places > _MOST_POSITIONS):
            yield _pack_block(waiting)
            waiting, size, places = [], own, len(row.positions)
        waiting.append((field, term, row))
    if waiting:
        yield _pack_block(waiting)


def _pack_block(rows: Sequence[tuple[int, str, PostingRow]]) -> tuple[int, str, PackedBlock]:
    own = [row for _, _, row in rows]
    sizes = [size for row in own for size in (len(row.docs), len(row.tfs), len(row.positions))]
    # No term holds white space; halves of surrogate pairs are kept as they are.
    terms = "\n".join([term for _, term, _ in rows]).encode("utf-8", "surrogatepass")
    block = PackedBlock(
        terms,
        packed(np.array([row.df for row in own])),
        packed(np.array(sizes)),
        b"".join([row.docs for row in own]),
        b"".join([row.tfs for row in own]),
        b"".join([row.positions for row in own]),
    )
    return rows[0][0], rows[0][1], block


_keys = count()


class BlockDirectory:
    """The blocks of a segment by field and first term. They are numbered in that order."""

    def __init__(self, blocks: Iterable[tuple[int, str]]) -> None:
        self.key = next(_keys)
        """A number that no other directory of this process has, whatever server it is from."""
        self.wanted = 0
        """Blocks that were asked for while the vocabulary was not at hand."""
        self._firsts: dict[int, list[str]] = {}
        self._bases: dict[int, int] = {}
        for number, (field, first) in enumerate(blocks):
            self._bases.setdefault(field, number)
            self._firsts.setdefault(field, []).append(first)

    def __len__(self) -> int:
        return sum(map(len, self._firsts.values()))

    @classmethod
    def read(cls, data: bytes) -> BlockDirectory:
        """The directory that was written."""
        lines = data.decode("utf-8", "surrogatepass").split("\n") if data else []
        return cls((int(line[0]), line[1:]) for line in lines)

    def written(self) -> bytes:
        """The directory as bytes; the number of a field is one digit."""
        lines = [f"{field}{first}" for field, firsts in self._firsts.items() for first in firsts]
        return "\n".join(lines).encode("utf-8", "surrogatepass")

    def fields(self) -> list[int]:
        """The field of each block."""
        return [field for field, firsts in self._firsts.items() for _ in firsts]

    def block(self, field: str, term: str) -> int | None:
        """The block in which a term stands if it does anywhere."""
        at = bisect_right(self._firsts.get(_FIELDS[field], []), term) - 1
        return None if at < 0 else self._bases[_FIELDS[field]] + at

    def blocks(self, field: str, prefix: str) -> range:
        """The blocks in which terms stand that begin so."""
        firsts = self._firsts.get(_FIELDS[field])
        if not firsts:
            return range(0)
        base = self._bases[_FIELDS[field]]
        last = bisect_left(firsts, f"{prefix}\U0010ffff") if prefix else len(firsts)
        return range(base + max(bisect_right(firsts, prefix) - 1, 0), base + last)


_NO_ENTRIES = (None, None, None, None)


class PostingBlock:
    """A block that was fetched: with its frequencies, with its entries (level 1), with its positions (level 2).

    Terms are looked for in their bytes: to split them takes longer than all that a question asks of most blocks.
    """

    def __init__(self, terms: bytes, dfs: bytes, entries: Sequence[bytes | None] = _NO_ENTRIES) -> None:
        sizes, *data = entries
        self.level = 0 if sizes is None else 1 if data[-1] is None else 2
        self._given = terms, dfs
        self._terms = b"\n%b\n" % terms
        self._sizes = sizes or b""
        self._data = [one or b"" for one in data]
        self.size = 2 * len(terms) + len(dfs) + len(self._sizes) + sum(map(len, self._data)) + 800

    def extended(self, entries: Sequence[bytes | None]) -> PostingBlock:
        """The block with entries that were fetched for it: their sizes, themselves, counts and positions."""
        return PostingBlock(*self._given, entries)

    def find(self, term: str) -> int | None:
        """The place of a term."""
        at = self._terms.find(b"\n%b\n" % term.encode("utf-8", "surrogatepass"))
        return None if at < 0 else self._terms.count(b"\n", 0, at)

    def begun(self, prefix: str) -> tuple[slice, list[str]]:
        """The places of the terms that begin so, and these terms."""
        wanted = b"\n" + prefix.encode("utf-8", "surrogatepass")
        last = self._terms.rfind(wanted, 0, -1)
        if last < 0:
            return slice(0), []
        first = self._terms.find(wanted)
        terms = self._terms[first + 1 : self._terms.index(b"\n", last + 1)].decode("utf-8", "surrogatepass").split("\n")
        place = self._terms.count(b"\n", 0, first)
        return slice(place, place + len(terms)), terms

    def frequencies(self, places: slice) -> list[int]:
        """The number of entries of each of the terms at some places."""
        found: list[int] = self._dfs[places].tolist()
        return found

    def row(self, at: int) -> PostingRow:
        """The postings of the term at a place, as far as they were fetched."""
        df = int(self._dfs[at])
        if len(self._dfs) == 1 or not self.level:
            return PostingRow(df, *self._data)
        firsts, ends = self._bounds[at : at + 2]
        return PostingRow(df, *[one[i:j] for one, i, j in zip(self._data, firsts, ends, strict=True)])

    def counts(self, sight: NDArray[np.bool_]) -> list[int]:
        """By term, the number of its entries in sight."""
        dfs = self._dfs.astype(np.int64)
        seen = sight[flat_docs(self._data[0], self._lengths()[:, 0].astype(np.int64), dfs)]
        counts: list[int] = np.add.reduceat(seen.astype(np.int64), np.cumsum(dfs) - dfs).tolist()
        return counts

    @cached_property
    def _dfs(self) -> NDArray[np.integer]:
        dfs = unpacked(self._given[1], self._terms.count(b"\n") - 1)
        if (most := int(dfs.max())) > MOST_ENTRIES:  # before anything takes so much memory
            raise ValueError(f"a term is in {most:,} entries of a segment")
        return dfs

    @cached_property
    def _bounds(self) -> list[list[int]]:
        return [[0, 0, 0], *self._lengths().cumsum(axis=0, dtype=np.int64).tolist()]

    def _lengths(self) -> NDArray[np.integer]:
        return unpacked(self._sizes, 3 * len(self._dfs)).reshape(-1, 3)


def flat_docs(data: bytes, sizes: Entries, dfs: Entries) -> Entries:
    """The entries of rows one after the other."""
    numbers = flat_numbers(data, sizes, dfs)
    # A row whose entries take a byte each lists steps between them, else the entries themselves.
    is_near = np.repeat(sizes == dfs, dfs)
    entries: Entries = np.where(is_near, summed(np.where(is_near, numbers, 0), dfs), numbers)
    return entries


def flat_numbers(data: bytes, sizes: Entries, counts: Entries) -> Entries:
    """The numbers of packed lists one after the other, zeros for those of an empty list."""
    numbers = np.zeros(int(counts.sum()), np.int64)
    pieces = np.frombuffer(data, np.uint8)
    for width, kind in ((1, "<u1"), (2, "<u2"), (4, "<u4")):
        own = (sizes == width * counts) & (counts > 0)
        if own.any():
            numbers[np.repeat(own, counts)] = pieces[np.repeat(own, sizes)].view(kind)
    return numbers


def summed(steps: Entries, counts: Entries) -> Entries:
    """Running sums of lists one after the other, each from its own beginning."""
    if not len(steps):
        return steps
    sums = np.cumsum(steps)
    firsts = np.cumsum(counts) - counts
    running: Entries = sums - np.repeat((sums - steps)[firsts], counts)
    return running
