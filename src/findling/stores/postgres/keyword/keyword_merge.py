"""Joining small segments: those of one size become one, without the entries that are dead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from findling.domain.plans import FIELDS
from findling.ranking.postings_scoring import Entries
from findling.stores.keyword.posting_segments import INDEXED, MOST_ENTRIES, PostingRow, SegmentHead, pack_field
from findling.stores.postgres.keyword.keyword_tables import StoredSegment, term_of

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

__all__ = ["join_heads", "join_rows", "to_join"]

_AT_ONCE = 8
"""Segments of one size that are joined: an entry is then written once for each size, of which there are five."""

_MOST_DEAD = 0.5
"""Share of dead entries at which a segment is written anew."""


def to_join(segments: Sequence[StoredSegment]) -> list[StoredSegment]:
    """The segments to join now, in order; none where all is well."""
    alive = {one.number: _alive(one) for one in segments}
    sizes: dict[int, list[StoredSegment]] = {}
    for one in segments:
        if one.dead is not None and alive[one.number] <= len(one.head) * (1 - _MOST_DEAD):
            return [one]
        sizes.setdefault(int(np.log(max(alive[one.number], 8)) / np.log(_AT_ONCE)), []).append(one)
    for same in (sizes[size] for size in sorted(sizes)):
        if len(same) >= _AT_ONCE:
            chosen, room = [], MOST_ENTRIES
            for one in sorted(same, key=lambda one: alive[one.number]):
                if alive[one.number] <= room:
                    chosen.append(one)
                    room -= alive[one.number]
            if len(chosen) > 1:
                return sorted(chosen, key=lambda one: one.number)
    return []


def join_heads(segments: Sequence[StoredSegment]) -> SegmentHead:
    """The living entries of segments, one after the other."""
    kept = [slice(None) if one.dead is None else ~one.dead for one in segments]
    heads = [one.head for one in segments]
    cids, numbers, turns, updated = (
        np.concatenate([getattr(head, column)[own] for head, own in zip(heads, kept, strict=True)])
        for column in ("cids", "numbers", "turns", "updated")
    )
    lengths = {
        field: np.concatenate([head.lengths[field][own] for head, own in zip(heads, kept, strict=True)])
        for field in FIELDS
    }
    return SegmentHead(cids, numbers, turns, updated, lengths)


def join_rows(
    connection: Connection, ws: int, unit: int, segments: Sequence[StoredSegment]
) -> Iterator[tuple[int, str, PostingRow]]:
    """The rows of the living entries of segments, in order."""
    moved, first = {}, 0
    for one in segments:
        alive = np.ones(len(one.head), np.bool_) if one.dead is None else ~one.dead
        moved[one.number] = np.where(alive, np.cumsum(alive) - 1 + first, -1)
        first += int(np.count_nonzero(alive))
    found = connection.cursor(binary=True).execute(
        "SELECT field, term, whole, segment, df, docs, tfs, positions FROM findling.keyword_postings"
        " WHERE ws = %s AND unit = %s AND segment = ANY(%s) ORDER BY field, term, segment",
        (ws, unit, [*moved]),
    )
    for field, rows in groupby(found, itemgetter(0)):
        for term, row in _join_field(INDEXED[field], [*rows], moved):
            yield field, term, row


def _join_field(
    field: str, rows: Sequence[tuple[int, str, str | None, int, int, bytes, bytes, bytes]], moved: dict[int, Entries]
) -> Iterator[tuple[str, PostingRow]]:
    terms: dict[str, int] = {}
    ids = np.array([terms.setdefault(term_of(key, whole), len(terms)) for _, key, whole, *_ in rows], np.int64)
    dfs = np.array([row[4] for row in rows], np.int64)
    steps = _flat([row[5] for row in rows], dfs)
    # A row whose entries take a byte each lists steps between them, else the entries themselves.
    is_near = np.repeat(np.array([len(row[5]) == row[4] for row in rows]), dfs)
    docs = np.where(is_near, _summed(np.where(is_near, steps, 0), dfs), steps)
    tfs = np.ones(len(docs), np.int64)
    positions = np.zeros(len(docs), np.int64)
    if field in FIELDS:
        tfs = np.maximum(_flat([row[6] for row in rows], dfs), 1)
        ends = np.cumsum(dfs)
        sums = np.cumsum(tfs)[ends - 1]
        positions = _summed(_flat([row[7] for row in rows], np.diff(sums, prepend=0)), tfs)
    places = np.concatenate([moved[one] for one in moved])
    bases = dict(zip(moved, np.cumsum([0, *map(len, moved.values())])[:-1].tolist(), strict=True))
    own_bases = np.repeat(np.array([bases[row[3]] for row in rows], np.int64), dfs)
    entries = places[own_bases + docs]
    is_alive = entries >= 0
    is_kept = np.repeat(is_alive, tfs)
    tokens = np.repeat(np.repeat(ids, dfs), tfs)[is_kept]
    yield from pack_field([*terms], tokens, np.repeat(entries, tfs)[is_kept], positions[is_kept], field)


def _flat(lists: Sequence[bytes], counts: Entries) -> Entries:
    """The numbers of packed lists one after the other, zeros for those of an empty list."""
    numbers = np.zeros(int(counts.sum()), np.int64)
    widths = np.array([len(data) for data in lists], np.int64) // np.maximum(counts, 1)
    for width, kind in ((1, "<u1"), (2, "<u2"), (4, "<u4")):
        own = widths == width
        if own.any():
            data = b"".join([data for data, is_own in zip(lists, own.tolist(), strict=True) if is_own])
            numbers[np.repeat(own, counts)] = np.frombuffer(data, kind)
    return numbers


def _summed(steps: Entries, counts: Entries) -> Entries:
    """Running sums of lists one after the other, each from its own beginning."""
    if not len(steps):
        return steps
    sums = np.cumsum(steps)
    firsts = np.cumsum(counts) - counts
    before = (sums - steps)[firsts]
    summed: Entries = sums - np.repeat(before, counts)
    return summed


def _alive(segment: StoredSegment) -> int:
    return len(segment.head) - (0 if segment.dead is None else int(np.count_nonzero(segment.dead)))
