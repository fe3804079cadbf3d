"""The truth store in one SQLite file: log mode, one writer, any number of readers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import InvalidValueError, LockedError
from findling.domain.ports import Change, SkippedPath, VectorRow
from findling.domain.queries import Filters
from findling.domain.resources import Document, Fingerprint, Resource, StoredChunk
from findling.stores.sqlite import schema
from findling.stores.sqlite import vectors as sqlite_vectors
from findling.stores.sqlite.connections import Connections
from findling.stores.sqlite.files import StoreErrors, connect, connect_readonly
from findling.stores.sqlite.reads import (
    batched,
    load_changes,
    load_chunks,
    load_documents,
    load_resources,
    load_skipped,
)
from findling.stores.sqlite.records import SqliteRecords
from findling.stores.sqlite.rows import FINGERPRINT_COLUMNS, RESOURCE_COLUMNS, skipped_row, to_resource, to_visibility
from findling.stores.sqlite.vectors import Frontier

if TYPE_CHECKING:
    from findling.domain.permissions import Right

__all__ = ["SqliteStore"]

_DOCUMENTS_PER_BATCH = 16
"""How many documents `changes` holds at a time: with files of 2 MB, 32 MB."""

_VECTORS_PER_BATCH = 1024
"""How many vectors `vector_rows` holds at a time: at 768 bytes each, less than 1 MB."""


class SqliteStore(SqliteRecords):
    """Implements `TruthStore`; may be shared between threads."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        header: schema.Header,
        *,
        readonly: bool,
        way_back: Callable[[], str] | None = None,
    ) -> None:
        self._path = path
        self._feature = header.feature
        self._inode = "coalesce(inode, 0)" if header.format >= schema.SUMS_FORMAT else "0"
        self._connections = Connections(path, connection, readonly=readonly, way_back=way_back)
        self._errors = self._connections.errors
        self._frontiers: dict[str, Frontier] = {}

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        readonly: bool = False,
        way_back: Callable[[], str] | None = None,
        before_migration: Callable[[], None] = lambda: None,
    ) -> Self:
        """Open the store at `path`, which is created (mode 0600) and migrated as needed unless it is read-only.

        `way_back` tells what to run when it turns out to be damaged. Raises NotIndexedError for a store to be read that
        is not there, FormatError for one that is too new, StoreDamagedError for a file that is no store, and
        ReadOnlyError when the file cannot be written.
        """
        path = Path(path)
        with StoreErrors(path, way_back, reads=True):
            if not readonly:
                from findling.stores.filesystem import create_private

                create_private(path)
            connection = connect_readonly(path) if readonly else connect(path)
            try:
                header = schema.prepare(connection, str(path), readonly=readonly, before=before_migration)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, header, readonly=readonly, way_back=way_back)

    @property
    def format(self) -> int:
        """The layout on disk."""
        return self._header().format

    @property
    def outdated(self) -> bool:
        """Whether a rebuild would add something that this version of findling can make use of."""
        return self._feature < schema.FEATURE

    def seq(self) -> int:
        """The number of the latest change; 0 for an empty store."""
        return self._header().seq

    def log_floor(self) -> int:
        """A leg that has absorbed less than this cannot catch up from `changes` and starts from nothing."""
        return self._header().log_floor

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert the documents, then delete the resources, in one transaction.

        A fingerprint that differs is recorded but is no change. Raises InvalidValueError for a document that cannot
        be kept, DiskFullError, LockedError and ReadOnlyError; in each case nothing has been written.
        """
        from findling.stores.sqlite.writes import delete_resource, put_document

        changes: list[Change] = []
        with self._connections.writing() as connection:
            (seq,) = connection.execute("SELECT seq FROM header").fetchone()
            for document in documents:
                with self._errors:
                    change = put_document(connection, document, seq + len(changes) + 1)
                if change is not None:
                    changes.append(change)
            for rid in deleted_rids:
                with self._errors:
                    change = delete_resource(connection, rid, seq + len(changes) + 1)
                if change is not None:
                    changes.append(change)
            with self._errors:
                connection.execute("UPDATE header SET seq = ?", (seq + len(changes),))
        return changes

    def changes(self, since: int) -> Iterator[Change]:
        """What a leg that has absorbed `since` still has to apply. A leg that starts from 0 holds nothing to drop.

        Raises InvalidValueError when the log no longer reaches back to `since`, and LockedError when the store is
        written meanwhile: a leg must see one state of it.
        """
        header = self._header()
        if 0 < since < header.log_floor:
            raise InvalidValueError(
                f"the change log of {self._path} starts at {header.log_floor} and does not reach back to {since}",
                hint="clear the leg and start from 0",
            )
        return self._changes(since, header.seq)

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        """The chunks that exist among `cids`, in their order."""
        with self._connections.reading() as connection:
            return load_chunks(connection, cids)

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        """The resources of those chunks that exist among `cids`, without a look at any text."""
        with self._connections.reading() as connection:
            return load_resources(connection, cids)

    def document(self, rid: str) -> Document | None:
        """One resource with its text and chunks."""
        with self._connections.reading() as connection:
            found = connection.execute("SELECT id FROM resources WHERE rid = ?", (rid,)).fetchone()
            return None if found is None else load_documents(connection, found)[found[0]].document

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        """All resource ids in order, or those of one type, as they are at the time of the call."""
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT rid FROM resources WHERE ?1 IS NULL OR type = ?1 ORDER BY rid", (type,)
            ).fetchall()
        return (rid for (rid,) in rows)

    def resources(self) -> Iterator[Resource]:
        """All resources in the order of their ids, as they are at the time of the call."""
        with self._connections.reading() as connection:
            rows = connection.execute(f"SELECT {RESOURCE_COLUMNS} FROM resources ORDER BY rid").fetchall()
        return self._resources(rows)

    def documents(self, numbers: Iterable[int]) -> Iterator[tuple[int, Document]]:
        """The documents of those resources that exist among `numbers`, in order of their numbers."""
        for batch in batched(sorted(set(numbers)), _DOCUMENTS_PER_BATCH):
            with self._connections.reading() as connection:
                found = load_documents(connection, batch)
            yield from ((number, found[number].document) for number in batch if number in found)

    def rights(self, since: int = 0) -> list[Right]:
        """What decides who may see each resource that was changed after `since`, in order of their numbers."""
        from findling.domain.permissions import Right

        decoded = cache(to_visibility)
        with self._connections.reading() as connection, self._errors:
            changed = f"WHERE seq > {since:d}" if since else ""  # without it they come in order, and need no sorting
            rows = connection.execute(f"SELECT id, seq, rid, path, visibility FROM resources {changed} ORDER BY id")
            found = rows.fetchall()
        return [Right(number, seq, rid, path, decoded(visibility)) for number, seq, rid, path, visibility in found]

    def right_to(self, rid: str) -> Right | None:
        """The same for one resource, without a look at its text."""
        from findling.domain.permissions import Right

        with self._connections.reading() as connection, self._errors:
            row = connection.execute(
                "SELECT id, seq, rid, path, visibility FROM resources WHERE rid = ?", (rid,)
            ).fetchone()
        if row is None:
            return None
        number, seq, _, path, visibility = row
        return Right(number, seq, rid, path, to_visibility(visibility))

    def chunk_ids(self) -> set[int]:
        """Every chunk id, for checks of a leg."""
        with self._connections.reading() as connection:
            return {cid for (cid,) in connection.execute("SELECT cid FROM chunks")}

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Path → fingerprint of every resource that has a path and a fingerprint."""
        with self._connections.reading() as connection:
            columns = f"path, size, mtime_ns, digest, {self._inode}"
            rows = connection.execute(f"SELECT {columns} FROM resources WHERE path != '' AND size IS NOT NULL")
            return {path: Fingerprint(*fingerprint) for path, *fingerprint in rows}

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        """Record new fingerprints for resources (by path) whose content has not changed."""
        rows = [(*fingerprint, path) for path, fingerprint in fingerprints.items()]
        with self._connections.writing() as connection, self._errors:
            connection.executemany(f"UPDATE resources SET ({FINGERPRINT_COLUMNS}) = (?,?,?,?) WHERE path = ?", rows)

    def stamps(self) -> list[tuple[str, int, int, int]]:
        """Path, size, time of change and inode of the same resources, as plain rows."""
        with self._connections.reading() as connection:
            return connection.execute(
                f"SELECT path, size, mtime_ns, {self._inode} FROM resources WHERE path != '' AND size IS NOT NULL"
            ).fetchall()

    def set_folders(self, folders: Mapping[str, int]) -> None:
        """Replace the list of folders that were walked."""
        with self._connections.writing() as connection, self._errors:
            connection.execute("DELETE FROM folders")
            connection.executemany("INSERT INTO folders VALUES (?, ?)", folders.items())

    def folders(self) -> list[tuple[str, int]]:
        """The folders that were walked in the latest run."""
        with self._connections.reading() as connection:
            return connection.execute("SELECT path, mtime_ns FROM folders").fetchall()

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        """Replace the list of paths that were left out."""
        rows = [skipped_row(entry) for entry in skipped]
        with self._connections.writing() as connection, self._errors:
            connection.execute("DELETE FROM skipped")
            connection.executemany("INSERT INTO skipped VALUES (?, ?, ?, ?, ?)", rows)

    def skipped(self) -> list[SkippedPath]:
        """The paths that were left out of the latest run, ordered by path."""
        with self._connections.reading() as connection:
            return load_skipped(connection)

    def refusals(self) -> dict[str, SkippedPath]:
        """Path → entry of the files that were opened and refused."""
        with self._connections.reading() as connection:
            return {entry.path: entry for entry in load_skipped(connection) if entry.size or entry.changed_ns}

    def matching(self, filters: Filters) -> list[int]:
        """The numbers of all resources that pass the filters, in no order."""
        from findling.stores.sqlite.filters import find_matching

        with self._connections.reading() as connection:
            return find_matching(connection, filters)

    def has_items(self) -> bool:
        """Whether it holds a resource without a path."""
        with self._connections.reading() as connection:
            return connection.execute("SELECT 1 FROM resources WHERE path = '' LIMIT 1").fetchone() is not None

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        """Keep vectors by the digest of the chunks they were made from; what is there stays.

        Needs no write lock of the workspace. Raises LockedError when others write for longer than `patience_s`, and
        InvalidValueError for vectors that have not the length of those that are there; then none is kept.
        """
        if vectors:
            with self._connections.writing(patience_s) as connection, self._errors:
                sqlite_vectors.insert_vectors(connection, model, vectors)

    def vectors(self, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors that exist among `digests`."""
        with self._connections.reading() as connection:
            return sqlite_vectors.load_vectors(connection, model, digests)

    def vector_rows(self, model: str, since: int) -> Iterator[VectorRow]:
        """The vectors put in after mark `since`, in order, one row for each chunk that has the digest by then."""
        reached: int | None = since
        while reached is not None:
            with self._connections.reading() as connection:
                rows, reached = sqlite_vectors.load_vector_rows(connection, model, reached, _VECTORS_PER_BATCH)
            yield from rows

    def unembedded(self, model: str, limit: int, *, skip: Container[bytes] = ()) -> list[StoredChunk]:
        """Up to `limit` chunks without a vector whose digest is not in `skip`, one for each digest.

        Those that searches wanted come first, the others in the order of resources and text.
        """
        with self._connections.reading() as connection:
            known = self._frontiers.get(model)
            cids, self._frontiers[model] = sqlite_vectors.find_unembedded(connection, model, limit, skip, known)
            return list(load_chunks(connection, cids).values())

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        """Note that a search would have liked vectors for these chunks, the first of them most of all.

        Raises LockedError when others write for longer than `patience_s`.
        """
        wishes = list(cids)
        if wishes:
            with self._connections.writing(patience_s) as connection, self._errors:
                sqlite_vectors.add_wishes(connection, wishes)

    def coverage(self, model: str) -> tuple[int, int]:
        """How many chunks have a vector, and how many there are."""
        with self._connections.reading() as connection:
            return sqlite_vectors.count_covered(connection, model)

    def models(self) -> dict[str, int]:
        """Model → how many vectors are kept of it."""
        with self._connections.reading() as connection:
            return sqlite_vectors.count_vectors(connection)

    def damaged_vectors(self) -> int:
        """How many vectors are not what was put in; every one is looked at."""
        with self._connections.reading() as connection:
            return len(sqlite_vectors.find_damaged(connection))

    def drop_vectors(self, model: str | None = None) -> int:
        """Forget the vectors of one model, or with `None` those that no chunk has use for; tells how many."""
        with self._connections.writing() as connection, self._errors:
            if model is None:
                return sqlite_vectors.drop_unused(connection)
            return sqlite_vectors.drop_model(connection, model)

    def compact(self, absorbed: int) -> None:
        """Forget the part of the change log that every leg has absorbed, and give unused space back.

        Raises DiskFullError when there is no room for that; the log is forgotten all the same.
        """
        from findling.stores.sqlite.vacuum import compact_store

        with self._connections.exclusive():
            compact_store(self._path, absorbed)

    def integrity(self) -> list[str]:
        """What is wrong with the store, one sentence each; empty when it is healthy."""
        from findling.stores.sqlite.integrity import find_problems

        with self._connections.reading() as connection:
            return find_problems(connection)

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _resources(self, rows: list[tuple[Any, ...]]) -> Iterator[Resource]:
        for row in rows:
            with self._connections.read_errors:
                resource = to_resource(row)
            yield resource

    def _header(self) -> schema.Header:
        with self._connections.reading() as connection:
            return schema.read_header(connection)

    def _changes(self, since: int, latest: int) -> Iterator[Change]:
        position = since
        while True:
            # A transaction per batch: a slow leg must not keep the log from being merged.
            with self._connections.reading() as connection:
                if schema.read_header(connection).seq != latest:
                    raise LockedError(
                        f"{self._path} was written while its changes were being read",
                        hint="hold the write lock while a leg catches up",
                    )
                batch = load_changes(connection, since, position, _DOCUMENTS_PER_BATCH)
            if not batch:
                return
            yield from batch
            position = batch[-1].seq
