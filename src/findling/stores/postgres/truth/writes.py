"""Change many resources in a handful of statements, in the caller's transaction; and read the change log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from findling.domain.ports import Change
from findling.domain.resources import Document
from findling.stores.change_log import to_change
from findling.stores.postgres.server.arrays import bigints, booleans, byteas, floats, integers, texts
from findling.stores.postgres.truth.reads import load_documents, one_of, prefixed
from findling.stores.postgres.truth.values import (
    body_of,
    escape,
    hash_of,
    plain_chunk,
    plain_resource,
    stored_chunk,
    stored_resource,
    unescape,
)
from findling.stores.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    FINGERPRINT_COLUMNS,
    RESOURCE_COLUMNS,
    Row,
    chunk_row,
    dropped_chunks,
    fingerprint_row,
    row_sum,
)
from findling.stores.validation import check_document, predecessor

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

_DOCUMENTS_PER_BATCH = 500
_CHARACTERS_PER_BATCH = 4_000_000
"""The documents that are written at once: 4 MB of text, three times in memory."""

_CHANGES_PER_BATCH = 256

_FEW = 100
"""Rows up to which any way is a good one."""

_RESOURCES = (
    "WITH revived AS (DELETE FROM findling.deleted WHERE ws = %s AND rid_hash = ANY(%s))"
    f" INSERT INTO findling.resources (ws, number, rid_hash, {RESOURCE_COLUMNS}, {FINGERPRINT_COLUMNS}, supersedes,"
    " supersedes_hash, characters, seq, sum) SELECT %s, * FROM unnest(" + ", ".join(["%s"] * 22) + ")"
)
_RESOURCE_ARRAYS = (
    bigints, byteas, *[texts] * 8, floats, floats, texts, bigints, bigints, byteas, bigints, texts, byteas, integers,
    bigints, bigints,
)  # fmt: skip
_BODIES = "INSERT INTO findling.bodies (ws, number, digest, is_escaped, text) SELECT %s, * FROM unnest(%s, %s, %s, %s)"
_CHUNKS = (
    f"INSERT INTO findling.chunks (ws, {CHUNK_COLUMNS}, sum, resource, seq)"
    " SELECT %s, * FROM unnest(" + ", ".join(["%s"] * 12) + ")"
)
_CHUNK_ARRAYS = (bigints, byteas, *[integers] * 5, texts, texts, bigints, bigints, bigints)
_DROPPED = (
    "INSERT INTO findling.dropped (ws, cid, rid_hash, seq) SELECT %s, * FROM unnest(%s, %s, %s)"
    " ON CONFLICT (ws, cid) DO UPDATE SET rid_hash = excluded.rid_hash, seq = excluded.seq"
)
_DELETED = "INSERT INTO findling.deleted (ws, rid_hash, rid, seq) SELECT %s, * FROM unnest(%s, %s, %s)"
_FINGERPRINTS = (
    "UPDATE findling.resources r SET size = u.size, mtime_ns = u.mtime_ns, digest = u.digest, inode = u.inode"
    " FROM unnest(%s, %s, %s, %s, %s) AS u(number, size, mtime_ns, digest, inode) WHERE r.ws = %s"
    " AND r.number = u.number"
)
_COVERED = """UPDATE findling.models m SET covered = covered + d.difference FROM (
    SELECT v.model, sum(u.difference) AS difference FROM unnest(%s, %s) AS u(digest, difference)
    JOIN findling.vectors v ON v.ws = %s AND v.digest = u.digest GROUP BY v.model) d
    WHERE m.ws = %s AND m.id = d.model"""


@dataclass
class Counters:
    """The latest numbers of a workspace, which the caller holds locked; the caller writes them back."""

    seq: int
    number: int
    estimated: int = 0
    """Resources of all workspaces, as far as the server's planner knows."""

    def has_outgrown(self, changes: int) -> bool:
        """Whether a write of so many changes makes most of what is there unknown to the planner.

        It would choose poor ways then: 13 s for a join of 50,000 chunks that takes 20 ms.
        """
        return self.number > 2 * self.estimated + _FEW and 4 * changes > self.estimated


@dataclass
class _Batch:
    """Rows to be deleted and rows to be put in, in that order."""

    gone: list[int] = field(default_factory=list)
    gone_bodies: list[int] = field(default_factory=list)
    gone_chunks: list[int] = field(default_factory=list)
    lost_wishes: list[int] = field(default_factory=list)
    deleted: list[Row] = field(default_factory=list)
    resources: list[Row] = field(default_factory=list)
    bodies: list[Row] = field(default_factory=list)
    chunks: list[Row] = field(default_factory=list)
    dropped: list[Row] = field(default_factory=list)
    fingerprints: list[Row] = field(default_factory=list)
    passages: Counter[bytes] = field(default_factory=Counter)
    """Digest → chunks more that have it."""

    def drop(self, rid_hash: bytes, cids: Iterable[int], seq: int) -> None:
        self.dropped.extend((cid, rid_hash, seq) for cid in cids)

    def write(self, connection: Connection, ws: int) -> None:
        """Carry everything out, in one round trip."""
        with connection.pipeline():
            for statement, values in self._statements(ws):
                connection.execute(statement, values)

    def _statements(self, ws: int) -> Iterator[tuple[str, Sequence[object]]]:
        for table, column, numbers in (
            ("resources", "number", self.gone),
            ("bodies", "number", self.gone_bodies),
            ("chunks", "cid", self.gone_chunks),
            ("wanted", "cid", self.lost_wishes),
        ):
            if numbers:
                yield f"DELETE FROM findling.{table} WHERE ws = %s AND {column} = ANY(%s)", (ws, bigints(numbers))
        if self.deleted:
            hashes, rids, seqs = zip(*self.deleted, strict=True)
            yield "DELETE FROM findling.accesses WHERE ws = %s AND rid_hash = ANY(%s)", (ws, byteas(hashes))
            yield _DELETED, (ws, byteas(hashes), texts(rids), bigints(seqs))
        if self.resources:
            columns = _columns(self.resources, _RESOURCE_ARRAYS)
            yield _RESOURCES, (ws, columns[1], ws, *columns)
        for statement, rows, arrays in (
            (_BODIES, self.bodies, (bigints, byteas, booleans, texts)),
            (_CHUNKS, self.chunks, _CHUNK_ARRAYS),
            (_DROPPED, self.dropped, (bigints, byteas, bigints)),
        ):
            if rows:
                yield statement, (ws, *_columns(rows, arrays))
        if self.fingerprints:
            yield _FINGERPRINTS, (*_columns(self.fingerprints, (bigints, bigints, bigints, byteas, bigints)), ws)
        if differing := {digest: count for digest, count in self.passages.items() if count}:
            yield _COVERED, (byteas(differing), integers(differing.values()), ws, ws)


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents in groups that fit into memory; none holds two of one resource."""
    batch: list[Document] = []
    rids: set[str] = set()
    characters = 0
    for document in documents:
        rid = document.resource.rid
        if batch and (rid in rids or len(batch) == _DOCUMENTS_PER_BATCH or characters > _CHARACTERS_PER_BATCH):
            yield batch
            batch, rids, characters = [], set(), 0
        batch.append(document)
        rids.add(rid)
        characters += len(document.text)
    if batch:
        yield batch


def put_documents(connection: Connection, ws: int, documents: Sequence[Document], counters: Counters) -> list[Change]:
    """Insert or update documents of different resources; those equal to the stored ones make no change."""
    for document in documents:
        check_document(document)
    hashes = [hash_of(document.resource.rid) for document in documents]
    # An empty workspace has nothing to compare with.
    stored = _stored_resources(connection, ws, hashes) if counters.number else {}
    chunks = _stored_chunks(connection, ws, [row[0] for row in stored.values()])
    batch = _Batch()
    changes: list[Change | None] = []
    for document, rid_hash in zip(documents, hashes, strict=True):
        known = stored.get(rid_hash)
        if known is None:
            changes.append(_insert(batch, document, rid_hash, counters))
        else:
            changes.append(_update(batch, document, rid_hash, known, chunks[known[0]], counters))
    batch.write(connection, ws)
    return [change for change in changes if change is not None]


def delete_resources(connection: Connection, ws: int, rids: Sequence[str], counters: Counters) -> list[Change]:
    """Delete resources; those that are not there make no change."""
    hashes = {hash_of(rid): rid for rid in rids}
    rows = connection.ask(
        "SELECT rid_hash, number FROM findling.resources WHERE ws = %s AND rid_hash = ANY(%s)", (ws, byteas(hashes))
    )
    numbers: dict[bytes, int] = dict(rows.fetchall())
    chunks = _stored_chunks(connection, ws, numbers.values())
    batch, changes = _Batch(), []
    for rid_hash, rid in hashes.items():
        if rid_hash not in numbers:
            continue
        counters.seq += 1
        number = numbers[rid_hash]
        rows_of = chunks[number]
        batch.gone.append(number)
        batch.gone_bodies.append(number)
        batch.gone_chunks += rows_of
        batch.lost_wishes += rows_of
        batch.deleted.append((rid_hash, escape(rid), counters.seq))
        batch.drop(rid_hash, rows_of, counters.seq)
        batch.passages.subtract(row[1] for row in rows_of.values())
        changes.append(Change(counters.seq, rid, tuple(sorted(rows_of)), frozenset(), None))
    batch.write(connection, ws)
    return changes


def load_changes(connection: Connection, ws: int, since: int, position: int) -> list[Change]:
    """The next changes after `position` for a leg that has absorbed `since`."""
    next_ones = "FROM findling.{} WHERE ws = %s AND seq > %s ORDER BY seq LIMIT %s"
    found = f"(SELECT seq, number, rid_hash, rid, characters {next_ones.format('resources')})"
    values: tuple[int, ...] = ws, position, _CHANGES_PER_BATCH
    if since:  # a leg that starts from nothing has nothing to drop
        found += f" UNION ALL (SELECT seq, NULL, rid_hash, rid, 0 {next_ones.format('deleted')})"
        values *= 2
    ordered = f"SELECT * FROM ({found}) AS found ORDER BY seq LIMIT %s"
    rows = connection.ask(ordered, (*values, _CHANGES_PER_BATCH)).fetchall()
    rows = rows[: _fitting(row[-1] for row in rows)]
    documents = load_documents(connection, ws, [row[1] for row in rows if row[1] is not None])
    drops = _load_drops(connection, ws, [row[2] for row in rows], since) if since else {}
    return [
        to_change((seq, number, unescape(rid)), drops.get(rid_hash, ()), documents, since)
        for seq, number, rid_hash, rid, _ in rows
    ]


def _insert(batch: _Batch, document: Document, rid_hash: bytes, counters: Counters) -> Change:
    counters.seq += 1
    counters.number += 1
    seq, number = counters.seq, counters.number
    batch.resources.append(_resource_values(document, stored_resource(document.resource), rid_hash, number, seq))
    batch.bodies.append((number, *body_of(document.text)))
    batch.chunks += [_chunk_values(row, number, seq) for row in map(chunk_row, document.chunks)]
    batch.passages.update([chunk.digest for chunk in document.chunks])
    cids = frozenset([chunk.cid for chunk in document.chunks])
    return Change(seq, document.resource.rid, (), cids, document, number)


def _update(
    batch: _Batch, document: Document, rid_hash: bytes, known: Row, stored: Mapping[int, Row], counters: Counters
) -> Change | None:
    number, text_digest, *others = known
    fingerprint, metadata = tuple(others[:4]), plain_resource(others[4:])
    resource, body = stored_resource(document.resource), body_of(document.text)
    rows = {chunk.cid: chunk_row(chunk) for chunk in document.chunks}
    if (
        body.digest == text_digest
        and metadata == resource
        and {cid: row[:CHUNK_WIDTH] for cid, row in stored.items()} == rows
    ):
        if fingerprint != fingerprint_row(document.fingerprint):
            batch.fingerprints.append((number, *fingerprint_row(document.fingerprint)))
        return None
    counters.seq += 1
    seq = counters.seq
    batch.gone.append(number)
    batch.resources.append(_resource_values(document, resource, rid_hash, number, seq))
    if body.digest != text_digest:
        batch.gone_bodies.append(number)
        batch.bodies.append((number, *body))
    dropped = dropped_chunks(stored, rows, all_of_them=metadata != resource)
    for cid, row in rows.items():
        before = stored.get(cid)
        added_at = seq if before is None or cid in dropped else before[CHUNK_WIDTH]
        if before is None or before != (*row, added_at):
            batch.chunks.append(_chunk_values(row, number, added_at))
            batch.passages[row[1]] += 1
            if before is not None:
                batch.gone_chunks.append(cid)
                batch.passages[before[1]] -= 1
    vanished = [cid for cid in stored if cid not in rows]
    batch.gone_chunks += vanished
    batch.lost_wishes += vanished
    batch.passages.subtract(stored[cid][1] for cid in vanished)
    batch.drop(rid_hash, dropped, seq)
    added = frozenset(cid for cid in rows if cid not in stored or cid in dropped)
    return Change(seq, document.resource.rid, tuple(sorted(dropped)), added, document, number)


def _resource_values(document: Document, resource: Row, rid_hash: bytes, number: int, seq: int) -> Row:
    replaced = predecessor(document.resource)
    return (
        number,
        rid_hash,
        *map(escape, resource[:6]),
        *resource[6:],
        *fingerprint_row(document.fingerprint),
        None if replaced is None else escape(replaced),
        None if replaced is None else hash_of(replaced),
        len(document.text),
        seq,
        row_sum(resource),
    )


def _chunk_values(row: Row, number: int, seq: int) -> Row:
    return (*stored_chunk(row), row_sum(row), number, seq)


def _columns(rows: Sequence[Row], arrays: Sequence[Any]) -> list[bytes]:
    return [array(column) for array, column in zip(arrays, zip(*rows, strict=True), strict=True)]


def _stored_resources(connection: Connection, ws: int, hashes: Sequence[bytes]) -> dict[bytes, Row]:
    """Hash of the id → number, digest of the text, fingerprint, and the columns of the resource."""
    columns = f"r.rid_hash, r.number, b.digest, {prefixed('r', FINGERPRINT_COLUMNS)}, {prefixed('r', RESOURCE_COLUMNS)}"
    rows = connection.ask(
        f"SELECT {columns} FROM findling.resources r"
        f" LEFT JOIN {one_of('bodies', 'b', 'r.ws', 'r.number')}"
        " WHERE r.ws = %s AND r.rid_hash = ANY(%s)",
        (ws, byteas(hashes)),
    )
    return {row[0]: row[1:] for row in rows}


def _stored_chunks(connection: Connection, ws: int, numbers: Iterable[int]) -> dict[int, dict[int, Row]]:
    """Number → id → the columns of a chunk and the change that added it."""
    listed = list(numbers)
    found: dict[int, dict[int, Row]] = {number: {} for number in listed}
    if listed:
        rows = connection.ask(
            f"SELECT resource, {CHUNK_COLUMNS}, seq FROM findling.chunks WHERE ws = %s AND resource = ANY(%s)",
            (ws, bigints(listed)),
        )
        for number, *columns, seq in rows:
            found[number][columns[0]] = (*plain_chunk(columns), seq)
    return found


def _load_drops(connection: Connection, ws: int, hashes: Sequence[bytes], since: int) -> dict[bytes, list[int]]:
    rows = connection.ask(
        "SELECT rid_hash, cid FROM findling.dropped WHERE ws = %s AND rid_hash = ANY(%s) AND seq > %s ORDER BY cid",
        (ws, byteas(hashes), since),
    )
    drops: dict[bytes, list[int]] = {}
    for rid_hash, cid in rows:
        drops.setdefault(rid_hash, []).append(cid)
    return drops


def _fitting(sizes: Iterable[int]) -> int:
    """The number of documents that fit into memory at once, one at least."""
    total = 0
    count = 0
    for size in sizes:
        total += size
        if count and total > _CHARACTERS_PER_BATCH:
            break
        count += 1
    return count
