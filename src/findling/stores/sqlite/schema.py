"""The layout of the SQLite file: its version numbers, its tables, and the forward-only migrations between formats.

Three numbers stand in the header. `format` is the layout on disk. `feature` is that of the content: a store with a
lower one works, but a rebuild would add something. `min_reader` is the lowest format that a reader must know.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from findling.domain.errors import FormatError, NotIndexedError, ReadOnlyError, StoreDamagedError
from findling.domain.resources import Resource
from findling.stores.sqlite.connections import BUSY_SECONDS, transaction
from findling.stores.validation import predecessor

APPLICATION_ID = 0x46444C47
"""`FDLG` in the SQLite header distinguishes a store from any other database."""

FEATURE = 1


class Migration(NamedTuple):
    """One step from the format before; `min_reader` is the lowest format that can still read the result.

    Readers can do without a step that is `optional`: without it, its content is empty or slower to find.
    """

    statements: Sequence[str]
    min_reader: int = 1
    optional: bool = False
    finish: Callable[[sqlite3.Connection], None] = lambda connection: None


class StoreHeader(NamedTuple):
    """The one row that describes a store. Its first three columns never change, so that any version can read them."""

    format: int
    feature: int
    min_reader: int
    seq: int
    log_floor: int


def prepare(
    connection: sqlite3.Connection,
    name: str,
    *,
    readonly: bool,
    migrations: Sequence[Migration] | None = None,
    before: Callable[[], None] = lambda: None,
) -> StoreHeader:
    """Bring the store called `name` to our format; call `before` first when it has content.

    Raises StoreDamagedError for a foreign database, FormatError for one that is too new. A read-only store raises
    NotIndexedError when it is empty and ReadOnlyError when it has to be migrated first.
    """
    steps = MIGRATIONS if migrations is None else migrations
    # One transaction, or the mark of a store that is just being created would be missed and its tables found.
    with transaction(connection, "BEGIN"):
        header = _find_header(connection, name)
    if header is not None:
        _check_readable(header, name, readonly=readonly, ours=len(steps))
        if header.format >= len(steps) or (readonly and all(step.optional for step in steps[header.format :])):
            return header
    if readonly:
        if header is None:
            raise NotIndexedError(f"{name} is empty", hint="findling index PATH")
        raise ReadOnlyError(
            f"{name} has format {header.format} and must be brought to format {len(steps)} before it can be read",
            hint="run `findling index` once as a user who may write it",
        )
    if header is not None:
        before()
    return _migrate(connection, name, steps)


def read_header(connection: sqlite3.Connection) -> StoreHeader:
    """The header of a store. Raises StoreDamagedError when it is not there."""
    row = connection.execute("SELECT format, feature, min_reader, seq, log_floor FROM header").fetchone()
    if row is None:
        raise StoreDamagedError("the index has lost its header", hint="findling index --rebuild")
    return StoreHeader(*row)


def is_older(connection: sqlite3.Connection, format_: int) -> bool:
    """Whether a store that we may read but not migrate lacks what a format has added."""
    return read_header(connection).format < format_


def sum_column(connection: sqlite3.Connection) -> str:
    """The column of checksums, `NULL` in a store that has none."""
    return "NULL" if is_older(connection, SUMS_FORMAT) else "sum"


def _find_header(connection: sqlite3.Connection, name: str) -> StoreHeader | None:
    """The header, or `None` in an empty database."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id == APPLICATION_ID:
        return read_header(connection)
    if application_id != 0 or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise StoreDamagedError(f"{name} is a database of another program", hint="choose another folder for the index")
    return None


def _check_readable(header: StoreHeader, name: str, *, readonly: bool, ours: int) -> None:
    # A newer format that our readers still understand may hold what our writer would not keep up to date.
    if header.min_reader > ours or (header.format > ours and not readonly):
        raise FormatError(
            f"{name} has format {header.format}, this findling knows formats up to {ours}",
            hint="upgrade findling: `pip install --upgrade findling`",
        )


def _migrate(connection: sqlite3.Connection, name: str, steps: Sequence[Migration]) -> StoreHeader:
    _switch_to_log(connection)
    with transaction(connection, "BEGIN IMMEDIATE"):
        # Read again: another process may have finished the same work while we waited for the lock.
        header = _find_header(connection, name)
        for number in range(header.format if header else 0, len(steps)):
            for statement in steps[number].statements:
                connection.execute(statement)
            steps[number].finish(connection)
            connection.execute("UPDATE header SET format = ?, min_reader = ?", (number + 1, steps[number].min_reader))
            connection.execute(f"PRAGMA user_version = {number + 1}")
        return read_header(connection)


def _switch_to_log(connection: sqlite3.Connection) -> None:
    # WAL is a lasting property of the file and cannot be set inside a transaction. Two that set it at once would wait
    # for each other, so SQLite refuses one of them without the patience it has everywhere else.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


# Bodies stand apart from resources so that a scan over metadata never reads text. Chunks are clustered by resource:
# their ids are random, and in their own order every batch would touch every page. `dropped` and `deleted` are the
# change log: they keep the latest drop only, which is all a leg needs at any number.
_FORMAT_1 = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """CREATE TABLE header (
        format INTEGER NOT NULL, feature INTEGER NOT NULL, min_reader INTEGER NOT NULL,
        seq INTEGER NOT NULL, log_floor INTEGER NOT NULL)""",
    """CREATE TABLE resources (
        id INTEGER PRIMARY KEY, rid TEXT NOT NULL UNIQUE,
        type TEXT NOT NULL, title TEXT NOT NULL, path TEXT NOT NULL, author TEXT NOT NULL, lang TEXT NOT NULL,
        tags TEXT NOT NULL, visibility TEXT, created_at REAL, updated_at REAL, fields TEXT NOT NULL,
        size INTEGER, mtime_ns INTEGER, digest BLOB, characters INTEGER NOT NULL, seq INTEGER NOT NULL)""",
    "CREATE INDEX resources_path ON resources (path)",
    "CREATE UNIQUE INDEX resources_seq ON resources (seq)",
    "CREATE TABLE bodies (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    """CREATE TABLE chunks (
        resource INTEGER NOT NULL, cid INTEGER NOT NULL, digest BLOB NOT NULL, ordinal INTEGER NOT NULL,
        start INTEGER NOT NULL, "end" INTEGER NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL,
        heading TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (resource, cid)) WITHOUT ROWID""",
    "CREATE UNIQUE INDEX chunks_cid ON chunks (cid)",
    "CREATE TABLE dropped (cid INTEGER PRIMARY KEY, rid TEXT NOT NULL, seq INTEGER NOT NULL)",
    "CREATE INDEX dropped_rid ON dropped (rid)",
    "CREATE TABLE deleted (rid TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE UNIQUE INDEX deleted_seq ON deleted (seq)",
    """CREATE TABLE skipped (
        path BLOB NOT NULL, reason TEXT NOT NULL, detail BLOB NOT NULL,
        size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL)""",
    "CREATE TABLE folders (path TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    f"INSERT INTO header VALUES (0, {FEATURE}, 0, 0, 0)",
)

_FORMAT_2 = ("ALTER TABLE chunks ADD COLUMN places TEXT NOT NULL DEFAULT ''",)

# Numbers of models and vectors are never used twice, so that a remembered one never means another. The index
# on `model` alone ends in the mark, and serves vectors in their order. Triggers keep `covered`, the number of chunks
# that have a vector, and clear fulfilled wishes: counting takes 25 ms for 50,000 chunks, keeping count 3 µs a chunk.
# `EXISTS` and not `IN`, which builds a table of its own for every chunk and takes ten times as long.
_FORMAT_3 = (
    """CREATE TABLE models (
        id INTEGER PRIMARY KEY AUTOINCREMENT, fingerprint TEXT NOT NULL UNIQUE, width INTEGER NOT NULL,
        covered INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE vectors (
        mark INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL)""",
    "CREATE UNIQUE INDEX vectors_digest ON vectors (digest, model)",
    "CREATE INDEX vectors_model ON vectors (model)",
    "CREATE TABLE wanted (turn INTEGER PRIMARY KEY, cid INTEGER NOT NULL UNIQUE)",
    "CREATE INDEX chunks_digest ON chunks (digest)",
    """CREATE TRIGGER chunk_added AFTER INSERT ON chunks BEGIN
        UPDATE models SET covered = covered + 1
        WHERE EXISTS (SELECT 1 FROM vectors WHERE digest = NEW.digest AND model = models.id);
    END""",
    """CREATE TRIGGER chunk_gone AFTER DELETE ON chunks BEGIN
        UPDATE models SET covered = covered - 1
        WHERE EXISTS (SELECT 1 FROM vectors WHERE digest = OLD.digest AND model = models.id);
        DELETE FROM wanted WHERE cid = OLD.cid;
    END""",
    """CREATE TRIGGER chunk_changed AFTER UPDATE OF digest ON chunks WHEN NEW.digest != OLD.digest BEGIN
        UPDATE models SET covered = covered
            + EXISTS (SELECT 1 FROM vectors WHERE digest = NEW.digest AND model = models.id)
            - EXISTS (SELECT 1 FROM vectors WHERE digest = OLD.digest AND model = models.id);
    END""",
    """CREATE TRIGGER vector_added AFTER INSERT ON vectors BEGIN
        UPDATE models SET covered = covered + (SELECT count(*) FROM chunks WHERE digest = NEW.digest)
        WHERE id = NEW.model;
        DELETE FROM wanted WHERE cid IN (SELECT cid FROM chunks WHERE digest = NEW.digest);
    END""",
)


# A column and not an index on json_extract(fields, ...), which ends at a NUL character, hands out half a surrogate
# pair as text that cannot be decoded, and fails for the empty string that stands for no fields.
_FORMAT_4 = (
    "ALTER TABLE resources ADD COLUMN supersedes TEXT",
    "CREATE INDEX resources_supersedes ON resources (supersedes) WHERE supersedes IS NOT NULL",
    """CREATE TABLE glossary (
        "group" TEXT NOT NULL, key TEXT NOT NULL, surface TEXT NOT NULL, status TEXT NOT NULL,
        source TEXT NOT NULL, snippet TEXT NOT NULL, decided_at REAL, PRIMARY KEY ("group", key)) WITHOUT ROWID""",
)


def scan_predecessors(connection: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """Number and id of each resource that supersedes another one, and the id of that one, oldest change first."""
    import json

    # Only columns that every format has: a migration relies on it.
    rows = connection.execute(
        "SELECT id, rid, fields FROM resources WHERE fields LIKE '%\"supersedes\"%' ORDER BY seq"
    ).fetchall()
    for id_, rid, fields in rows:
        replaced = predecessor(Resource(rid=rid, fields=json.loads(fields)))
        if replaced is not None:
            yield id_, rid, replaced


def _note_predecessors(connection: sqlite3.Connection) -> None:
    rows = [(replaced, id_) for id_, _, replaced in scan_predecessors(connection)]
    connection.executemany("UPDATE resources SET supersedes = ? WHERE id = ?", rows)


_FORMAT_5 = (
    """CREATE TABLE relations (
        subject TEXT NOT NULL, relation TEXT NOT NULL, object TEXT NOT NULL,
        PRIMARY KEY (subject, relation, object)) WITHOUT ROWID""",
    "CREATE TABLE accesses (rid TEXT PRIMARY KEY, count INTEGER NOT NULL, last_at REAL NOT NULL) WITHOUT ROWID",
)

# Checksums are empty in rows that an older format has written. What is no file is few, and counted with every write.
_FORMAT_6 = (
    "ALTER TABLE resources ADD COLUMN inode INTEGER",
    *(f"ALTER TABLE {table} ADD COLUMN sum INTEGER" for table in ("resources", "bodies", "chunks", "vectors")),
    *(f"ALTER TABLE {table} ADD COLUMN sum INTEGER" for table in ("glossary", "relations")),
    "CREATE INDEX resources_made ON resources (type) WHERE type != 'file'",
)


MIGRATIONS: tuple[Migration, ...] = (
    Migration(_FORMAT_1),
    Migration(_FORMAT_2),
    Migration(_FORMAT_3),
    Migration(_FORMAT_4, finish=_note_predecessors, optional=True),
    Migration(_FORMAT_5, optional=True),
    Migration(_FORMAT_6, optional=True),
)
"""`MIGRATIONS[n]` brings format `n` to format `n + 1`; the first one creates the tables."""

FORMAT = len(MIGRATIONS)

GLOSSARY_FORMAT = 4
"""The first format with a glossary and with what supersedes what."""

RELATIONS_FORMAT = 5
"""The first format with relations between principals and resources, and with accesses."""

SUMS_FORMAT = 6
"""The first format with checksums and inodes."""

GLOSSARY_VERSION = "glossary_version"
"""Name of the small value that counts how often the glossary was written."""

RELATIONS_VERSION = "relations_version"
"""The same for relations."""
