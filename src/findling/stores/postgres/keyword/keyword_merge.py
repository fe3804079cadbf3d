"""Joining small segments: those of one size become one, without the entries that are dead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from findling.domain.plans import FIELDS
from findling.ranking.postings_scoring import Entries
from findling.stores.keyword.posting_segments import (
    INDEXED,
    MOST_ENTRIES,
    PostingRow,
    SegmentHead,
    pack_field,
    unpacked,
)
from findling.stores.postgres.keyword.keyword_tables import StoredSegment
from findling.stores.postgres.keyword.posting_blocks import flat_docs, flat_numbers, summed

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

__all__ = ["join_heads", "join_rows", "to_join", "with_dead"]

_AT_ONCE = 8
"""Segments of one size that are joined: an entry is then written once for each size, of which there are five."""

_LARGE = 1_024
"""Entries from which a segment is felt by questions: each fetches and decodes blocks of its own, 1 ms in all."""

_LARGE_AT_ONCE = 3
"""Large segments that are joined at least, once the smaller ones outweigh the largest."""

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
    large = sorted((one for one in segments if alive[one.number] >= _LARGE), key=lambda one: alive[one.number])
    for end in range(len(large), _LARGE_AT_ONCE - 1, -1):
        *smaller, largest = (alive[one.number] for one in large[:end])
        if sum(smaller) >= largest and sum(smaller) + largest <= MOST_ENTRIES:
            return sorted(large[:end], key=lambda one: one.number)
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


def with_dead(segments: Sequence[StoredSegment]) -> list[StoredSegment]:
    """A segment with a dead entry."""
    return [one for one in segments if one.dead is not None][:1]


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
    fields: dict[int, list[tuple[int, tuple[bytes, ...]]]] = {}
    for one in segments:
        found = connection.cursor(binary=True).execute(
            "SELECT terms, dfs, sizes, docs, tfs, positions FROM findling.keyword_blocks"
            " WHERE ws = %s AND unit = %s AND segment = %s ORDER BY block",
            (ws, unit, one.number),
        )
        for field, block in zip(one.directory.fields(), found, strict=True):
            fields.setdefault(field, []).append((one.number, block))
    for field in sorted(fields):
        for term, row in _join_field(INDEXED[field], fields.pop(field), moved):
            yield field, term, row


def _join_field(
    field: str, blocks: Sequence[tuple[int, tuple[bytes, ...]]], moved: dict[int, Entries]
) -> Iterator[tuple[str, PostingRow]]:
    terms: dict[str, int] = {}
    ids, dfs, sizes, bases = list[int](), list[Entries](), list[Entries](), list[int]()
    base = dict(zip(moved, np.cumsum([0, *map(len, moved.values())])[:-1].tolist(), strict=True))
    for segment, block in blocks:
        own = block[0].decode("utf-8", "surrogatepass").split("\n")
        ids += [terms.setdefault(term, len(terms)) for term in own]
        dfs.append(unpacked(block[1], len(own)).astype(np.int64))
        sizes.append(unpacked(block[2], 3 * len(own)).astype(np.int64).reshape(-1, 3))
        bases += [base[segment]] * len(own)
    counts, lengths = np.concatenate(dfs), np.concatenate(sizes)
    docs, often, where = (b"".join([block[column] for _, block in blocks]) for column in (3, 4, 5))
    entries = np.concatenate([*moved.values()])[
        flat_docs(docs, lengths[:, 0], counts) + np.repeat(np.array(bases, np.int64), counts)
    ]
    tfs = np.ones(len(entries), np.int64)
    positions = np.zeros(len(entries), np.int64)
    if field in FIELDS:
        tfs = np.maximum(flat_numbers(often, lengths[:, 1], counts), 1)
        totals = np.diff(np.cumsum(tfs)[np.cumsum(counts) - 1], prepend=0)
        positions = summed(flat_numbers(where, lengths[:, 2], totals), tfs)
    is_kept = np.repeat(entries >= 0, tfs)
    tokens = np.repeat(np.repeat(np.array(ids, np.int64), counts), tfs)[is_kept]
    yield from pack_field([*terms], tokens, np.repeat(entries, tfs)[is_kept], positions[is_kept], field)


def _alive(segment: StoredSegment) -> int:
    return len(segment.head) - (0 if segment.dead is None else int(np.count_nonzero(segment.dead)))
