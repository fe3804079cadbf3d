"""Segments of an exact leg: for every trigram the resources that hold it, as few bytes as possible.

A trigram is known by 32 bits of a hash. Two that share them give a candidate too many, never one too few. The lists of
a segment lie in blocks by the first bits of the hash: a question fetches 4 kB for each of its trigrams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.domain.errors import CorruptError
from findling.domain.queries import Required
from findling.text.query.patterns import coded, fold, trigram_form

__all__ = [
    "SegmentBlocks",
    "TrigramPostings",
    "block_of",
    "holders",
    "matching",
    "merged",
    "packed",
    "text_trigrams",
    "trigram_hashes",
    "unpacked",
]

_BLOCK_BYTES = 4_096
"""Bytes of a block about, by which the number of blocks is chosen."""

_MOST_BITS = 16
_PLACES, _GAPS, _BITS = 0, 1, 2
"""Forms of a list: places of resources in 4 bytes, gaps between them, or a bit for each resource of the segment."""

_STEP = 255
"""A byte of gaps that leads on without a resource."""


class TrigramPostings(NamedTuple):
    """Hashes of trigrams and places of the resources that hold them, in the order of both."""

    hashes: NDArray[np.uint32]
    places: NDArray[np.uint32]

    @classmethod
    def of(cls, entries: Sequence[NDArray[np.uint32]]) -> TrigramPostings:
        """Those of resources, each given by the hashes of its trigrams."""
        places = np.repeat(np.arange(len(entries), dtype=np.uint32), [len(one) for one in entries])
        hashes = np.concatenate([np.empty(0, np.uint32), *entries])
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], places[order])


class SegmentBlocks(NamedTuple):
    """The lists of a segment in blocks; the first `bits` bits of a hash are the number of its block."""

    bits: int
    blocks: list[bytes]


def text_trigrams(text: str) -> NDArray[np.uint32]:
    """The hashes of all trigrams of a text."""
    form = trigram_form(fold(text))
    return _hashes(np.frombuffer(f"{form} ".encode("utf-32-le") if form else b"", "<u4").reshape(-1, 4)[:, :3])


def trigram_hashes(required: Required) -> dict[str, int]:
    """The hashes of the trigrams of a question."""
    asked = sorted({trigram for clause in required.clauses for one in clause for trigram in one})
    letters = np.frombuffer("".join(map(coded, asked)).encode("utf-32-le"), "<u4").reshape(-1, 3)
    return {trigram: int(hash_) for trigram, hash_ in zip(asked, _hash(letters).tolist(), strict=True)}


def _hashes(letters: NDArray[np.uint32]) -> NDArray[np.uint32]:
    hashes = np.sort(_hash(letters))
    is_new = np.ones(len(hashes), np.bool_)
    is_new[1:] = hashes[1:] != hashes[:-1]
    return hashes[is_new]


def _hash(letters: NDArray[np.uint32]) -> NDArray[np.uint32]:
    first, second, third = letters.astype(np.uint64).T
    mixed = (first << np.uint64(42) | second << np.uint64(21) | third) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    hashes: NDArray[np.uint32] = (mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(32)).astype(np.uint32)
    return hashes


def block_of(hash_: int, bits: int) -> int:
    """The block of a trigram."""
    return hash_ >> (32 - bits)


def packed(postings: TrigramPostings, size: int) -> SegmentBlocks:
    """The lists of a segment of `size` resources, each in the form that takes the fewest bytes."""
    hashes, places = postings
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    starts = np.flatnonzero(is_first)
    keys, counts = hashes[starts], np.diff(np.append(starts, len(hashes)))
    lists = np.repeat(np.arange(len(starts)), counts)
    gaps = places.astype(np.int64)
    gaps[1:] -= np.where(is_first[1:], 0, places[:-1].astype(np.int64) + 1)
    steps = gaps // _STEP + 1
    costs = np.stack([4 * counts, _sums(steps, starts), np.full(len(starts), -(-size // 8))])
    forms = costs.argmin(axis=0)
    lengths = costs.min(axis=0)
    ends = np.cumsum(lengths)
    data = np.full(int(ends[-1]) if len(ends) else 0, _STEP, np.uint8)
    begins = ends - lengths

    chosen = forms[lists] == _GAPS
    within = np.cumsum(steps) - np.repeat(np.cumsum(steps)[starts] - steps[starts], counts)
    data[(begins[lists] + within - 1)[chosen]] = (gaps % _STEP)[chosen]

    chosen = forms[lists] == _PLACES
    at = (begins[lists] + 4 * (np.arange(len(places)) - starts[lists]))[chosen]
    for byte in range(4):
        data[at + byte] = places[chosen] >> 8 * byte & 255
    for one in np.flatnonzero(forms == _BITS).tolist():
        marks = np.zeros(size, np.bool_)
        marks[places[starts[one] : starts[one] + counts[one]]] = True
        data[begins[one] : ends[one]] = np.packbits(marks, bitorder="little")

    bits = min(max((len(data) + 9 * len(keys)) // _BLOCK_BYTES, 1).bit_length(), _MOST_BITS)
    bounds = np.searchsorted(
        keys.astype(np.uint64), np.arange((1 << bits) + 1, dtype=np.uint64) << np.uint64(32 - bits)
    )
    blocks = []
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        head = np.array([high - low], "<u4").tobytes(), keys[low:high].astype("<u4").tobytes()
        body = lengths[low:high].astype("<u4").tobytes(), forms[low:high].astype("<u1").tobytes()
        blocks.append(b"".join((*head, *body, data[begins[low] : ends[high - 1]].tobytes())) if high > low else b"")
    return SegmentBlocks(bits, blocks)


class _ListBlock(NamedTuple):
    keys: NDArray[np.uint32]
    lengths: NDArray[np.int64]
    forms: NDArray[np.uint8]
    data: NDArray[np.uint8]


def _read(block: bytes) -> _ListBlock:
    count = int(np.frombuffer(block, "<u4", 1)[0]) if block else 0
    try:
        keys = np.frombuffer(block, "<u4", count, 4 if count else 0)
        lengths = np.frombuffer(block, "<u4", count, 4 + 4 * count if count else 0).astype(np.int64)
        forms = np.frombuffer(block, "<u1", count, 4 + 8 * count if count else 0)
        data = np.frombuffer(block, "<u1", -1, 4 + 9 * count) if count else np.empty(0, np.uint8)
    except ValueError as error:
        raise _damaged(str(error)) from error
    if len(data) != lengths.sum():
        raise _damaged("a block has another length than its lists")
    return _ListBlock(keys, lengths, forms, data)


def holders(block: bytes, hash_: int, size: int) -> NDArray[np.bool_]:
    """Marks those of the `size` resources of a segment that hold a trigram. Raises CorruptError."""
    keys, lengths, forms, data = _read(block)
    marks = np.zeros(size, np.bool_)
    at = int(np.searchsorted(keys, np.uint32(hash_)))
    if at == len(keys) or keys[at] != hash_:
        return marks
    begin = int(lengths[:at].sum())
    one = data[begin : begin + int(lengths[at])]
    # As `_places` does for many lists: a question takes 2 ms less.
    if forms[at] == _BITS:
        return np.unpackbits(one, count=size, bitorder="little").view(np.bool_)
    if forms[at] == _GAPS:
        places = np.cumsum(one, dtype=np.int64)[one != _STEP]
        places += np.arange(len(places))
    else:
        places = one.view("<u4").astype(np.int64)
    if len(places) and places[-1] >= size:
        raise _damaged("a list leads to a resource that is not there")
    marks[places] = True
    return marks


def unpacked(blocks: Iterable[bytes], size: int) -> TrigramPostings:
    """The postings of a segment, in the order of its blocks. Raises CorruptError."""
    hashes, places = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    for block in blocks:
        keys, lengths, forms, data = _read(block)
        lists, found = _places(forms, lengths, data, size)
        order = np.argsort(lists, kind="stable")
        hashes.append(keys[lists[order]])
        places.append(found[order].astype(np.uint32))
    return TrigramPostings(np.concatenate(hashes), np.concatenate(places))


def _places(
    forms: NDArray[np.uint8], lengths: NDArray[np.int64], data: NDArray[np.uint8], size: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The places of all lists, form by form, each with the number of its list."""
    begins = np.cumsum(lengths) - lengths
    owners = np.repeat(np.arange(len(forms)), lengths)
    form_of = forms[owners]

    raw = data[form_of == _PLACES].view("<u4").astype(np.int64)
    raw_lists = owners[form_of == _PLACES][::4]

    steps, step_lists = data[form_of == _GAPS].astype(np.int64), owners[form_of == _GAPS]
    sums, is_place = np.cumsum(steps), steps != _STEP
    gap_lists = step_lists[is_place]
    found = sums[is_place] + np.arange(len(gap_lists))
    # What came before the first of each list belongs to others.
    is_first = np.ones(len(step_lists), np.bool_)
    is_first[1:] = step_lists[1:] != step_lists[:-1]
    before = (sums - steps + np.cumsum(is_place) - is_place)[is_first]
    found -= np.repeat(before, np.diff(np.append(np.flatnonzero(np.diff(gap_lists, prepend=-1)), len(gap_lists))))

    bit_lists = np.flatnonzero(forms == _BITS)
    marked = [
        np.flatnonzero(np.unpackbits(data[begins[one] : begins[one] + lengths[one]], count=size, bitorder="little"))
        for one in bit_lists.tolist()
    ]
    lists = [raw_lists, gap_lists, *(np.full(len(some), one) for one, some in zip(bit_lists, marked, strict=True))]
    return np.concatenate(lists), np.concatenate([raw, found, *marked])


def merged(parts: Iterable[tuple[TrigramPostings, NDArray[np.bool_]]]) -> TrigramPostings:
    """The postings of several segments one after the other, without the resources that are not to be kept."""
    keys, first = [np.empty(0, np.uint64)], 0
    for (hashes, places), keep in parts:
        ranks = np.cumsum(keep) - 1 + first
        own = keep[places]
        keys.append(hashes[own].astype(np.uint64) << np.uint64(32) | ranks[places[own]].astype(np.uint64))
        first += int(np.count_nonzero(keep))
    every = np.sort(np.concatenate(keys))
    return TrigramPostings(
        (every >> np.uint64(32)).astype(np.uint32), (every & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    )


def matching(required: Required, marks: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Marks the resources that hold what is required, given those that hold each trigram."""
    clauses = [
        np.logical_or.reduce([np.logical_and.reduce([marks[trigram] for trigram in one]) for one in clause])
        for clause in required.clauses
    ]
    return np.asarray(np.logical_and.reduce(clauses), np.bool_)


def _sums(values: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    return np.add.reduceat(values, starts) if len(starts) else np.empty(0, np.int64)


def _damaged(why: str) -> CorruptError:
    return CorruptError(f"the exact leg cannot be read: {why}", hint="findling doctor --repair")
