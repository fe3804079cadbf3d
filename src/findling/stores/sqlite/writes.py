"""Change one resource in the tables and the change log, in the caller's transaction; and read the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from findling.domain.ports import Change
from findling.domain.resources import Document
from findling.stores.change_log import to_change
from findling.stores.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    FINGERPRINT_COLUMNS,
    RESOURCE_COLUMNS,
    Row,
    chunk_row,
    dropped_chunks,
    fingerprint_row,
    resource_row,
    resource_sum,
    row_sum,
    text_sum,
)
from findling.stores.sqlite.loads import load_documents
from findling.stores.validation import check_document, predecessor

_INSERT_CHUNK = f"INSERT INTO chunks ({CHUNK_COLUMNS}, sum, resource, seq) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"

_PUT_BODY = "INSERT OR REPLACE INTO bodies (id, text, sum) VALUES (?, ?, ?)"

_WRITTEN = f"{RESOURCE_COLUMNS}, sum, {FINGERPRINT_COLUMNS}, supersedes, characters, seq"
_MARKS = ",".join("?" * (_WRITTEN.count(",") + 1))
_INSERT_RESOURCE = f"INSERT INTO resources ({_WRITTEN}) VALUES ({_MARKS}) ON CONFLICT (rid) DO NOTHING"
_STORED = f"SELECT id, {FINGERPRINT_COLUMNS}, {RESOURCE_COLUMNS} FROM resources WHERE rid = ?"


def put_document(connection: sqlite3.Connection, document: Document, seq: int) -> Change | None:
    """Insert or update a document as change `seq`; `None` when the stored one is equal."""
    check_document(document)
    resource = resource_row(document.resource)
    # No question whether it is there: a first run has thousands of files, and none of them is.
    inserted = connection.execute(_INSERT_RESOURCE, _written(document, resource, seq))
    if inserted.rowcount:
        return _inserted(connection, document, inserted.lastrowid or 0, seq)
    stored = connection.execute(_STORED, resource[:1]).fetchone()
    id_, fingerprint, metadata = stored[0], stored[1:5], stored[5:]
    new_fingerprint = fingerprint_row(document.fingerprint)
    rows = {chunk.cid: chunk_row(chunk) for chunk in document.chunks}
    stored_rows: dict[int, Row] = {
        row[0]: row for row in connection.execute(f"SELECT {CHUNK_COLUMNS}, seq FROM chunks WHERE resource = ?", (id_,))
    }
    same_text = connection.execute("SELECT 1 FROM bodies WHERE id = ? AND text = ?", (id_, document.text)).fetchone()
    if same_text and metadata == resource and {cid: row[:CHUNK_WIDTH] for cid, row in stored_rows.items()} == rows:
        if fingerprint != new_fingerprint:
            connection.execute(
                f"UPDATE resources SET ({FINGERPRINT_COLUMNS}) = (?,?,?,?) WHERE id = ?", (*new_fingerprint, id_)
            )
        return None
    if not same_text:
        connection.execute(_PUT_BODY, (id_, document.text, text_sum(document.text)))
    connection.execute(
        f"UPDATE resources SET ({_WRITTEN}) = ({_MARKS}) WHERE id = ?", (*_written(document, resource, seq), id_)
    )
    dropped = dropped_chunks(stored_rows, rows, all_of_them=metadata != resource)
    _replace_chunks(connection, id_, stored_rows, rows, dropped, seq)
    _log_drops(connection, document.resource.rid, dropped, seq)
    added = frozenset(cid for cid in rows if cid not in stored_rows or cid in dropped)
    return Change(seq, document.resource.rid, tuple(sorted(dropped)), added, document, id_)


def delete_resource(connection: sqlite3.Connection, rid: str, seq: int) -> Change | None:
    """Delete a resource as change `seq`; `None` when it is not there."""
    found = connection.execute("SELECT id FROM resources WHERE rid = ?", (rid,)).fetchone()
    if found is None:
        return None
    dropped = {cid for (cid,) in connection.execute("SELECT cid FROM chunks WHERE resource = ?", found)}
    connection.execute("DELETE FROM chunks WHERE resource = ?", found)
    connection.execute("DELETE FROM bodies WHERE id = ?", found)
    connection.execute("DELETE FROM resources WHERE id = ?", found)
    connection.execute("DELETE FROM accesses WHERE rid = ?", (rid,))
    connection.execute("INSERT INTO deleted (rid, seq) VALUES (?, ?)", (rid, seq))
    _log_drops(connection, rid, dropped, seq)
    return Change(seq, rid, tuple(sorted(dropped)), frozenset(), None)


def _inserted(connection: sqlite3.Connection, document: Document, id_: int, seq: int) -> Change:
    """The change of a resource that was just inserted, with its body and its chunks."""
    rid = document.resource.rid
    connection.execute("DELETE FROM deleted WHERE rid = ?", (rid,))
    connection.execute(_PUT_BODY, (id_, document.text, text_sum(document.text)))
    connection.executemany(_INSERT_CHUNK, [(*row, row_sum(row), id_, seq) for row in map(chunk_row, document.chunks)])
    return Change(seq, rid, (), frozenset([chunk[0] for chunk in document.chunks]), document, id_)


def _written(document: Document, resource: Row, seq: int) -> Row:
    """The values of `_WRITTEN`."""
    fingerprint, replaced = fingerprint_row(document.fingerprint), predecessor(document.resource)
    return (*resource, resource_sum(resource), *fingerprint, replaced, len(document.text), seq)


def _replace_chunks(
    connection: sqlite3.Connection,
    id_: int,
    stored: Mapping[int, Row],
    rows: Mapping[int, Row],
    dropped: set[int],
    seq: int,
) -> None:
    gone = [(id_, cid) for cid in stored if cid not in rows]
    connection.executemany("DELETE FROM chunks WHERE resource = ? AND cid = ?", gone)
    updates = []
    for cid, row in rows.items():
        before = stored.get(cid)
        if before is None:
            continue
        after = (*row, seq if cid in dropped else before[CHUNK_WIDTH])
        if after != before:
            updates.append((*after[1:], row_sum(row), id_, cid))
    connection.executemany(
        'UPDATE chunks SET (digest, ordinal, start, "end", line_start, line_end, heading, places, seq, sum)'
        " = (?,?,?,?,?,?,?,?,?,?)"
        " WHERE resource = ? AND cid = ?",
        updates,
    )
    connection.executemany(
        _INSERT_CHUNK, [(*row, row_sum(row), id_, seq) for cid, row in rows.items() if cid not in stored]
    )


def _log_drops(connection: sqlite3.Connection, rid: str, cids: Iterable[int], seq: int) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO dropped (cid, rid, seq) VALUES (?, ?, ?)", [(cid, rid, seq) for cid in cids]
    )


def load_changes(connection: sqlite3.Connection, since: int, position: int, limit: int) -> list[Change]:
    """The next `limit` changes after `position` for a leg that has absorbed `since`."""
    # A leg that starts from nothing has nothing to drop.
    tombstones = "" if since == 0 else "UNION ALL SELECT seq, NULL, rid FROM deleted WHERE seq > :position"
    rows = connection.execute(
        f"SELECT seq, id, rid FROM resources WHERE seq > :position {tombstones} ORDER BY seq LIMIT :limit",
        {"position": position, "limit": limit},
    ).fetchall()
    documents = load_documents(connection, [id_ for _, id_, _ in rows if id_ is not None])
    return [to_change(row, _drops(connection, row[2], since) if since else (), documents, since) for row in rows]


def _drops(connection: sqlite3.Connection, rid: str, since: int) -> tuple[int, ...]:
    rows = connection.execute("SELECT cid FROM dropped WHERE rid = ? AND seq > ? ORDER BY cid", (rid, since))
    return tuple([cid for (cid,) in rows])
