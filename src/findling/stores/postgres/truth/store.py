"""The truth store in PostgreSQL: one writer of a workspace at a time, any number of readers, on any host."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Self, TypeVar

from findling.domain.errors import ReplacedError
from findling.domain.ports import Change, SkippedPath
from findling.domain.queries import Filters
from findling.domain.resources import Document, Fingerprint, Resource, StoredChunk, StoredText
from findling.stores.change_log import follow
from findling.stores.postgres.server.arrays import bigints, byteas, texts
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.formats import newest_format
from findling.stores.postgres.server.migrations import check_format, create_workspace
from findling.stores.postgres.server.places import PostgresPlace, parse_place
from findling.stores.postgres.truth.reads import load_chunks, load_documents, load_resources, load_texts
from findling.stores.postgres.truth.values import escape, hash_of, plain_resource, unescape
from findling.stores.postgres.truth.vectors import PostgresKeptVectors
from findling.stores.postgres.truth.writes import (
    Counters,
    batches,
    delete_resources,
    load_changes,
    put_documents,
)
from findling.stores.rows import FINGERPRINT_COLUMNS, RESOURCE_COLUMNS, to_resource, to_visibility
from findling.stores.validation import batched

if TYPE_CHECKING:
    from findling.domain.permissions import Right

_T = TypeVar("_T")

_DOCUMENTS_PER_BATCH = 64
"""The documents that a reader holds at a time: with files of 2 MB, 128 MB."""

_DELETIONS_PER_BATCH = 1000

_KEPT_CHANGES = 1_000
"""Changes that the log reaches back at least; or as many as there are resources, since a new leg reads as much.

With 10,000 it was two thirds of all live rows after 300 files were rewritten 20 times: 11 of 16 MB.
"""


class PostgresStore(PostgresKeptVectors, AbstractContextManager["PostgresStore"]):
    """Implements `TruthStore`, which says what each method does; threads may share it."""

    def __init__(self, connections: PostgresConnections, format_: int, *, is_frozen: bool = False) -> None:
        self._connections, self._is_frozen = connections, is_frozen
        self._format = format_
        self._frontiers = {}
        self._totals = -1, (0, 0, 0)
        """A change, and the numbers of resources, chunks and characters after it."""
        self._resources = sys.maxsize
        """About how many there were at the latest write: whoever has not written trims no log."""
        self._met, self._known = dict[int, StoredChunk](), dict[int, Resource]()
        self._stamps: tuple[object, list[tuple[str, int, int, int]]] = None, []
        """Files of the state that nobody else could change then."""

    @classmethod
    def open(cls, place: PostgresPlace | str, *, readonly: bool = False) -> Self:
        """Open the workspace of a place. `create` makes one.

        Raises NotIndexedError for a workspace that is not there, FormatError for a database that is too new,
        ReadOnlyError for one that has to be migrated first, and StoreDamagedError for a schema that is not ours.
        """
        connections = PostgresConnections(place, readonly=readonly)
        with ExitStack() as undo:
            undo.callback(connections.close)
            if connections.find_workspace() is None or connections.format != newest_format():
                with connections.session() as connection, connections.errors:
                    connections.format = check_format(connection, connections.place, readonly=readonly)
            # Raises where there is none.
            connections.know(connections.ws, connections.format, store_id=connections.noted.get("store_id"))
            undo.pop_all()
        return cls(connections, connections.format)

    @classmethod
    def create(cls, place: PostgresPlace | str) -> Self:
        """Open the workspace of a place, made and brought to our format as needed."""
        create_workspace(parse_place(place))
        return cls.open(place)

    @contextmanager
    def frozen(self) -> Iterator[PostgresStore]:
        """The store as it is now, for as long as the block takes; it can only be read."""
        with self._connections.frozen() as connections:
            yield PostgresStore(connections, self._format, is_frozen=True)

    @property
    def connections(self) -> PostgresConnections:
        """The connections, for legs that lie beside the truth."""
        return self._connections

    @property
    def format(self) -> int:
        return self._format

    def seq(self) -> int:
        return self._header()[0]

    def pinned(self) -> PostgresStore:
        other = copy(self)
        other._state, other._met, other._known, other._stamps = self.state(), {}, {}, (None, [])
        return other

    def log_floor(self) -> int:
        return self._header()[1]

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert the documents, then delete the resources, in one transaction.

        Raises InvalidValueError for a document that cannot be kept, DiskFullError, LockedError, ReadOnlyError, and
        WorkspaceError for a server that is away; then nothing has been written.
        """
        changes: list[Change] = []
        ws, errors, before = self._connections.ws, self._connections.errors, self._held
        with self._connections.writing() as connection:
            counters = Counters(*connection.counted)
            for batch in batches(documents):
                with errors:
                    changes += put_documents(connection, ws, batch, counters)
            for rids in batched(deleted_rids, _DELETIONS_PER_BATCH):
                with errors:
                    changes += delete_resources(connection, ws, rids, counters)
            with errors:
                connection.execute(
                    "UPDATE findling.workspaces SET seq = %s, number = %s WHERE ws = %s",
                    (counters.seq, counters.number, ws),
                )
        self._hold(before, lambda state: state._replace(seq=counters.seq))
        has_outgrown = counters.has_outgrown(len(changes))
        self._resources = counters.number if has_outgrown else counters.estimated
        if has_outgrown:
            self._connections.analyze("resources", "bodies", "chunks")
        return changes

    def changes(self, since: int) -> Iterator[Change]:
        shown, ws = self._connections.place.shown, self._connections.ws

        def read(position: int) -> tuple[int, list[Change]]:
            with self._connections.reading() as connection:
                found = connection.ask("SELECT seq FROM findling.workspaces WHERE ws = %s", (ws,)).fetchone()
                return found[0] if found else 0, load_changes(connection, ws, since, position)

        return follow(shown, f"the log of {shown}", since, self._header(), read)

    def trim_log(self, absorbed: int) -> int:
        """Forget the changes up to `absorbed`; return how many entries went. The caller holds the write lock.

        A leg that has absorbed less starts from nothing the next time.
        """
        ws = self._connections.ws
        with self._connections.writing() as connection, self._connections.errors:
            floor = min(absorbed, connection.counted[0])
            tables = [f"DELETE FROM findling.{table} WHERE ws = %s AND seq <= %s" for table in ("dropped", "deleted")]
            gone = sum(connection.execute(table, (ws, floor)).rowcount for table in tables)
            connection.execute(
                "UPDATE findling.workspaces SET log_floor = greatest(log_floor, %s) WHERE ws = %s", (floor, ws)
            )
        return gone

    def forget_old_changes(self) -> int:
        """Trim a log that is twice as long as it need be, and drop vectors that no chunk uses; returns what went."""
        (seq, floor), kept = self._header(), max(_KEPT_CHANGES, self._resources)
        return self.trim_log(seq - kept) + self.drop_unused_vectors() if seq - floor > 2 * kept else 0

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        return self._once(self._met, load_chunks, cids)

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        return self._once(self._known, load_resources, cids)

    def _once(self, known: dict[int, _T], load: Callable[..., dict[int, _T]], cids: Sequence[int]) -> dict[int, _T]:
        """Values by chunk; a pinned store keeps those that it has read, as the steps of an answer ask for the same."""
        if self._state is None:
            return load(self._connections, cids)
        if missing := [cid for cid in cids if cid not in known]:
            known |= load(self._connections, missing)
        return {cid: known[cid] for cid in cids if cid in known}

    def document(self, rid: str) -> Document | None:
        rows = self._all("SELECT number FROM findling.resources WHERE ws = %s AND rid_hash = %s", hash_of(rid))
        return next((document for _, document in self.documents([number for (number,) in rows])), None)

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        of_type = "" if type is None else " AND type = %s"
        values = () if type is None else (escape(type),)
        rows = self._all(f"SELECT rid FROM findling.resources WHERE ws = %s{of_type}", *values)
        return iter(sorted(unescape(rid) for (rid,) in rows))

    def resources(self) -> Iterator[Resource]:
        rows = self._all(f"SELECT {RESOURCE_COLUMNS} FROM findling.resources WHERE ws = %s")
        with self._connections.read_errors:
            return iter(sorted((to_resource(plain_resource(row)) for row in rows), key=lambda resource: resource.rid))

    def documents(self, numbers: Iterable[int]) -> Iterator[tuple[int, Document]]:
        for batch in batched(sorted(set(numbers)), _DOCUMENTS_PER_BATCH):
            with self._connections.reading() as connection:
                found = load_documents(connection, self._connections.ws, batch)
            yield from ((number, found[number][0]) for number in batch if number in found)

    def texts(self, numbers: Iterable[int]) -> Iterator[StoredText]:
        for batch in batched(numbers, _DOCUMENTS_PER_BATCH):
            found = load_texts(self._connections, batch)
            yield from (found[number] for number in batch if number in found)

    def chunk_spans(self, numbers: Collection[int]) -> list[tuple[int, int, int, int]]:
        spans = 'SELECT resource, cid, start, "end" FROM findling.chunks WHERE ws = %s AND resource = ANY(%s)'
        return self._all(f"{spans} ORDER BY start, cid", bigints(numbers))

    def rights(self, since: int = 0, *, among: Collection[int] | None = None) -> list[Right]:
        if among is None:
            return self._rights("seq > %s ORDER BY number", since)
        return self._rights("seq > %s AND number = ANY(%s) ORDER BY number", since, bigints(among))

    def right_to(self, rid: str) -> Right | None:
        return next(iter(self._rights("rid_hash = %s", hash_of(rid))), None)

    def chunk_ids(self) -> set[int]:
        return {cid for (cid,) in self._all("SELECT cid FROM findling.chunks WHERE ws = %s")}

    def fingerprints(self) -> dict[str, Fingerprint]:
        rows = self._all(f"SELECT path, size, mtime_ns, digest, coalesce(inode, 0) {_OF_FILES}")
        return {unescape(path): Fingerprint(*fingerprint) for path, *fingerprint in rows}

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        if not fingerprints:
            return
        sizes, times, digests, inodes = zip(*fingerprints.values(), strict=True)
        with self._connections.writing() as connection, self._connections.errors:
            connection.execute(
                f"UPDATE findling.resources r SET ({FINGERPRINT_COLUMNS}) = (u.size, u.mtime_ns, u.digest, u.inode)"
                " FROM unnest(%s, %s, %s, %s, %s) AS u(path, size, mtime_ns, digest, inode)"
                ' WHERE r.ws = %s AND "left"(r.path, 500) = "left"(u.path, 500) AND r.path = u.path',
                (
                    texts(map(escape, fingerprints)),
                    bigints(sizes),
                    bigints(times),
                    byteas(digests),
                    bigints(inodes),
                    self._connections.ws,
                ),
            )

    def stamps(self) -> list[tuple[str, int, int, int]]:
        known = self.known()
        if known is None or self._stamps[0] is not known:
            rows = self._all(f"SELECT {_STAMP} {_OF_FILES}")
            self._stamps = known, [(unescape(path), *stamp) for path, *stamp in rows]
        return self._stamps[1]

    def set_folders(self, folders: Mapping[str, int]) -> None:
        if dict(self.folders()) != folders:
            columns = texts(map(escape, folders)), bigints(folders.values())
            self._exchange("folders", "path, mtime_ns", *columns)

    def folders(self) -> list[tuple[str, int]]:
        asked, ws = "SELECT path, 0, mtime_ns, -1 FROM findling.folders WHERE ws = %s", self._connections.ws
        if self._state is None:
            rows = self._connections.rows(asked, (ws,))
        else:  # whoever looks whether a state is that of the disk asks for its files next
            rows = self._connections.rows(f"{asked} UNION ALL SELECT {_STAMP} {_OF_FILES}", (ws, ws))
            self._stamps = self._state, [(unescape(path), *stamp) for path, *stamp in rows if stamp[2] >= 0]
        return [(unescape(path), mtime_ns) for path, _, mtime_ns, inode in rows if inode < 0]

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        entries = sorted(skipped)
        if self.skipped() != entries:
            *names, sizes, times = zip(*entries, strict=True) if entries else [()] * 5
            columns = *(texts(map(escape, column)) for column in names), bigints(sizes), bigints(times)
            self._exchange("skipped", "path, reason, detail, size, mtime_ns", *columns)

    def skipped(self) -> list[SkippedPath]:
        rows = self._all("SELECT path, reason, detail, size, mtime_ns FROM findling.skipped WHERE ws = %s")
        return sorted(
            SkippedPath(unescape(path), unescape(reason), unescape(detail), size, mtime_ns)
            for path, reason, detail, size, mtime_ns in rows
        )

    def refusals(self) -> dict[str, SkippedPath]:
        return {entry.path: entry for entry in self.skipped() if entry.size or entry.changed_ns}

    def matching(self, filters: Filters) -> list[int]:
        from findling.stores.postgres.truth.filters import find_matching

        return find_matching(self._connections, filters)

    def has_items(self) -> bool:
        return bool(self._all("SELECT FROM findling.resources WHERE ws = %s AND \"left\"(path, 500) = '' LIMIT 1"))

    def counts(self) -> dict[str, int]:
        counted_at, totals = self._totals
        # A search with a leg that is behind asks, and counting takes 15 ms of 50,000 chunks.
        seq, skipped, chunks, others = self._connections.row(
            "SELECT w.seq, (SELECT count(*) FROM findling.skipped s WHERE s.ws = w.ws), CASE WHEN w.seq <> %s"
            " THEN (SELECT count(*) FROM findling.chunks c WHERE c.ws = w.ws) END, CASE WHEN w.seq <> %s"
            " THEN (SELECT ARRAY[count(*), coalesce(sum(characters), 0)::bigint] FROM findling.resources r"
            " WHERE r.ws = w.ws) END FROM findling.workspaces w WHERE w.ws = %s",
            (counted_at, counted_at, self._connections.ws),
        ) or (-1, 0, 0, (0, 0))
        if seq != counted_at:
            totals = others[0], chunks, others[1]
            self._totals = seq, totals
        return dict(zip(("resources", "chunks", "characters", "skipped"), (*totals, skipped), strict=True))

    def made_counts(self) -> dict[str, int]:
        ws = self._connections.ws
        rows = self._connections.rows(
            "SELECT type, count(*) FROM findling.resources WHERE ws = %s AND type <> 'file' GROUP BY type"
            " UNION ALL SELECT 'relation', count(*) FROM findling.relations WHERE ws = %s"
            " UNION ALL SELECT 'term', count(*) FROM findling.glossary WHERE ws = %s",
            (ws, ws, ws),
        )
        counts: dict[str, int] = {}
        for name, count in rows:
            if count:
                counts[unescape(name)] = counts.get(unescape(name), 0) + count
        return counts

    def integrity(self) -> list[str]:
        from findling.stores.postgres.truth.integrity import find_problems

        with self._connections.reading() as connection:
            return find_problems(connection, self._connections.ws)

    def close(self) -> None:
        self._connections.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _exchange(self, table: str, names: str, *columns: bytes) -> None:
        """Put other rows in the place of all rows of a table."""
        ws, marks = self._connections.ws, ", ".join(["%s"] * len(columns))
        insert = f"INSERT INTO findling.{table} (ws, {names}) SELECT %s, * FROM unnest({marks})"
        with self._connections.writing() as connection, self._connections.errors:
            connection.execute(f"DELETE FROM findling.{table} WHERE ws = %s", (ws,))
            connection.execute(insert, (ws, *columns))

    def _rights(self, which: str, *values: object) -> list[Right]:
        from findling.domain.permissions import Right

        decoded = cache(to_visibility)
        rows = self._all(
            f"SELECT number, seq, rid, path, visibility FROM findling.resources WHERE ws = %s AND {which}", *values
        )
        return [
            Right(number, seq, unescape(rid), unescape(path), decoded(visibility))
            for number, seq, rid, path, visibility in rows
        ]

    def _header(self) -> tuple[int, int]:
        """The number of the latest change, and the floor of the log."""
        if (known := self.known()) is not None:
            return known[:2]
        found = self._connections.row(
            "SELECT seq, log_floor FROM findling.workspaces WHERE ws = %s", (self._connections.ws,)
        )
        if found is None:
            raise ReplacedError(f"{self._connections.place.shown} was removed by another process", hint="ask again")
        return found[0], found[1]


_STAMP = "path, size, mtime_ns, coalesce(inode, 0)"
_OF_FILES = "FROM findling.resources WHERE ws = %s AND path <> '' AND size IS NOT NULL"
