"""The truth store in one SQLite file: log mode, one writer, any number of readers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import FindlingError
from findling.domain.ports import Change, SkippedPath
from findling.domain.queries import Filters
from findling.domain.resources import Document, Fingerprint, Resource, StoredChunk, StoredText
from findling.stores.rows import (
    FINGERPRINT_COLUMNS,
    RESOURCE_COLUMNS,
    Row,
    skipped_row,
    to_resource,
    to_skipped,
    to_visibility,
)
from findling.stores.sqlite import schema
from findling.stores.sqlite.connections import Connections, StoreErrors, connect, connect_readonly, fit_cache, rows_in
from findling.stores.sqlite.loads import load_chunks, load_counts, load_documents, load_resources, load_texts
from findling.stores.sqlite.records import SqliteRecords
from findling.stores.sqlite.vectors import SqliteVectors
from findling.stores.validation import batched

if TYPE_CHECKING:
    from findling.domain.permissions import Right

_DOCUMENTS_PER_BATCH = 16
"""The documents that `changes` holds at a time: with files of 2 MB, 32 MB."""


_MOST_MET = 2_000
"""Resources of one state that are kept, 2 MB: the best passages of two questions are often of the same files."""


class SqliteStore(SqliteRecords, SqliteVectors, AbstractContextManager["SqliteStore"]):
    """Implements `TruthStore`, which says what each method does; threads may share it."""

    def __init__(self, path: Path, connections: Connections, header: schema.StoreHeader) -> None:
        self._path = path
        self._has_sums = header.format >= schema.SUMS_FORMAT
        self._inode = "coalesce(inode, 0)" if self._has_sums else "0"
        self._connections = connections
        self._errors = connections.errors
        self._frontiers = {}
        self._counted = -1, 0
        self._met: tuple[int, dict[int, Resource]] = -1, {}

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        readonly: bool = False,
        way_back: Callable[[], str] | None = None,
        before_migration: Callable[[], None] = lambda: None,
    ) -> Self:
        """Open the store at `path`; create it (mode 0600) and migrate it as needed unless it is read-only.

        `way_back` names the command for a damaged store. Raises NotIndexedError for a missing store to be read,
        FormatError for one that is too new, StoreDamagedError for a file that is no store, and ReadOnlyError when the
        file cannot be written.
        """
        path = Path(path)
        with StoreErrors(path, way_back, reads=True):
            if not readonly and not path.exists():
                from findling.stores.filesystem import create_private

                create_private(path)
            connection = connect_readonly(path) if readonly else connect(path)
            try:
                header = schema.prepare(connection, str(path), readonly=readonly, before=before_migration)
            except BaseException:
                connection.close()
                raise
        return cls(path, Connections(path, connection, readonly=readonly, way_back=way_back), header)

    @property
    def format(self) -> int:
        return self._header().format

    def seq(self) -> int:
        row = self._connections.row("SELECT seq FROM header")
        return self._header().seq if row is None else int(row[0])  # without a header, that is an error

    def pinned(self) -> Self:
        return self

    def log_floor(self) -> int:
        return self._header().log_floor

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert the documents, then delete the resources, in one transaction.

        Raises InvalidValueError for a document that cannot be kept, DiskFullError, LockedError and ReadOnlyError; then
        nothing has been written.
        """
        from findling.stores.sqlite.writes import delete_resource, put_document

        changes: list[Change] = []
        with self._connections.writing() as connection:
            fit_cache(connection)
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
        from findling.stores.change_log import follow
        from findling.stores.sqlite.writes import load_changes

        def read(position: int) -> tuple[int, list[Change]]:
            with self._connections.reading() as connection:
                latest = schema.read_header(connection).seq
                return latest, load_changes(connection, since, position, _DOCUMENTS_PER_BATCH)

        header = self._header()
        span = header.seq, header.log_floor
        return follow(str(self._path), f"the change log of {self._path}", since, span, read)

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        with self._connections.reading() as connection:
            return load_chunks(connection, cids, has_sums=self._has_sums)

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        with self._connections.reading() as connection:
            (state,) = connection.execute("SELECT seq FROM header").fetchone() or (-1,)
            of_state, known = self._met
            known = known if of_state == state >= 0 else {}
            found = load_resources(connection, cids, known)
            self._met = (state, known) if len(known) <= _MOST_MET else (-1, {})
            return found

    def document(self, rid: str) -> Document | None:
        with self._connections.reading() as connection:
            found = connection.execute("SELECT id FROM resources WHERE rid = ?", (rid,)).fetchone()
            return None if found is None else load_documents(connection, found)[found[0]][0]

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        of_type = "SELECT rid FROM resources WHERE ?1 IS NULL OR type = ?1 ORDER BY rid"
        return (rid for (rid,) in self._all(of_type, type))

    def resources(self) -> Iterator[Resource]:
        return map(self._resource, self._all(f"SELECT {RESOURCE_COLUMNS} FROM resources ORDER BY rid"))

    def documents(self, numbers: Iterable[int]) -> Iterator[tuple[int, Document]]:
        for batch in batched(sorted(set(numbers)), _DOCUMENTS_PER_BATCH):
            with self._connections.reading() as connection:
                found = load_documents(connection, batch)
            yield from ((number, found[number][0]) for number in batch if number in found)

    def texts(self, numbers: Iterable[int]) -> Iterator[StoredText]:
        for batch in batched(numbers, _DOCUMENTS_PER_BATCH):
            with self._connections.reading() as connection:
                found = load_texts(connection, batch)
            yield from (found[number] for number in batch if number in found)

    def chunk_spans(self, numbers: Collection[int]) -> list[tuple[int, int, int, int]]:
        spans = 'SELECT resource, cid, start, "end" FROM chunks WHERE resource IN ({}) ORDER BY start, cid'
        with self._connections.glancing() as connection:
            return list(rows_in(connection, spans, numbers))

    def rights(self, since: int = 0, *, among: Collection[int] | None = None) -> list[Right]:
        if among is not None:
            found = [row for part in batched(sorted(among), 500) for row in self._rights(_listed(part))]
            return [right for right in found if right.seq > since]
        # The sign keeps SQLite from walking all resources in order, 2 ms of 20,000, instead of the few latest ones.
        return self._rights(f"WHERE seq > {since:d} ORDER BY +id" if since else "ORDER BY id")

    def right_to(self, rid: str) -> Right | None:
        return next(iter(self._rights("WHERE rid = ?", rid)), None)

    def chunk_ids(self) -> set[int]:
        return {cid for (cid,) in self._all("SELECT cid FROM chunks")}

    def fingerprints(self) -> dict[str, Fingerprint]:
        rows = self._all(f"SELECT path, size, mtime_ns, digest, {self._inode} FROM resources {_OF_FILES}")
        return {path: Fingerprint(*fingerprint) for path, *fingerprint in rows}

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        rows = [(*fingerprint, path) for path, fingerprint in fingerprints.items()]
        if not rows:
            return
        with self._connections.writing() as connection, self._errors:
            connection.executemany(f"UPDATE resources SET ({FINGERPRINT_COLUMNS}) = (?,?,?,?) WHERE path = ?", rows)

    def stamps(self) -> list[tuple[str, int, int, int]]:
        return self._all(f"SELECT path, size, mtime_ns, {self._inode} FROM resources {_OF_FILES}")

    def set_folders(self, folders: Mapping[str, int]) -> None:
        if dict(self.folders()) == folders:
            return
        with self._connections.writing() as connection, self._errors:
            connection.execute("DELETE FROM folders")
            connection.executemany("INSERT INTO folders VALUES (?, ?)", folders.items())

    def folders(self) -> list[tuple[str, int]]:
        return self._all("SELECT path, mtime_ns FROM folders")

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        rows = [skipped_row(entry) for entry in skipped]
        if sorted(self._all("SELECT * FROM skipped")) == sorted(rows):
            return
        with self._connections.writing() as connection, self._errors:
            connection.execute("DELETE FROM skipped")
            connection.executemany("INSERT INTO skipped VALUES (?, ?, ?, ?, ?)", rows)

    def skipped(self) -> list[SkippedPath]:
        with self._connections.reading() as connection:
            return [to_skipped(row) for row in connection.execute("SELECT * FROM skipped ORDER BY path")]

    def refusals(self) -> dict[str, SkippedPath]:
        return {entry.path: entry for entry in self.skipped() if entry.size or entry.changed_ns}

    def matching(self, filters: Filters) -> list[int]:
        from findling.stores.sqlite.filters import find_matching

        with self._connections.reading() as connection:
            return find_matching(connection, filters)

    def has_items(self) -> bool:
        return bool(self._all("SELECT 1 FROM resources WHERE path = '' LIMIT 1"))

    def counts(self) -> dict[str, int]:
        with self._connections.reading() as connection:
            return load_counts(connection)

    def made_counts(self) -> dict[str, int]:
        with self._connections.reading() as connection:
            counts = dict(connection.execute("SELECT type, count(*) FROM resources WHERE type != 'file' GROUP BY type"))
            for name, table in (("relation", "relations"), ("term", "glossary")):
                (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                if count:
                    counts[name] = counts.get(name, 0) + count
        return counts

    def get_meta(self, key: str) -> str | None:
        row = self._connections.row("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        if self.get_meta(key) == value:
            return  # a transaction costs a sync of the disk
        with self._connections.writing() as connection, self._errors:
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def glossary_version(self) -> int:
        return int(self.get_meta(schema.GLOSSARY_VERSION) or 0)

    def relations_version(self) -> int:
        return int(self.get_meta(schema.RELATIONS_VERSION) or 0)

    def integrity(self) -> list[str]:
        from findling.stores.sqlite.integrity import find_problems

        with self._connections.reading() as connection:
            return find_problems(connection)

    def refuse_writes(self, why: FindlingError) -> None:
        """Have every write raise this error: the store is read-only because it cannot be written."""
        self._connections.refusal = why

    def close(self) -> None:
        self._connections.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _all(self, query: str, *values: Any) -> list[Any]:
        """All rows of one query, in one state of the store."""
        with self._connections.glancing() as connection:
            return connection.execute(query, values).fetchall()

    def _resource(self, row: Row) -> Resource:
        with self._connections.read_errors:
            return to_resource(row)

    def _rights(self, which: str, *values: str) -> list[Right]:
        from findling.domain.permissions import Right

        decoded = cache(to_visibility)
        rows: list[Row] = self._all(f"SELECT id, seq, rid, path, visibility FROM resources {which}", *values)
        return [Right(number, seq, rid, path, decoded(visibility)) for number, seq, rid, path, visibility in rows]

    def _header(self) -> schema.StoreHeader:
        with self._connections.glancing() as connection:
            return schema.read_header(connection)


_OF_FILES = "WHERE path != '' AND size IS NOT NULL"


def _listed(numbers: Iterable[int]) -> str:
    return f"WHERE id IN ({','.join(map(str, map(int, numbers)))}) ORDER BY id"
