from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import CorruptError, FormatError, NotIndexedError, ReadOnlyError
from findling.domain.ports import Change
from findling.domain.queries import Field, Filters
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource
from findling.stores.sqlite import schema
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import FULL, PLAIN
from tests.processes import PATIENCE_S


def _fail(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM resources")
    raise RuntimeError("a migration that breaks")


NEXT_FORMAT = schema.FORMAT + 1
NEXT = schema.Migration(("ALTER TABLE resources ADD COLUMN rank REAL NOT NULL DEFAULT 0.5",), min_reader=NEXT_FORMAT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one document."""
    path = tmp_path / "truth.db"
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def test_a_new_store_carries_its_numbers(connection: sqlite3.Connection) -> None:
    header = schema.read_header(connection)
    assert header[:3] == (schema.FORMAT, schema.FEATURE, schema.MIGRATIONS[-1].min_reader)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT,)
    assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_older_format_is_migrated_and_keeps_its_content(path: Path, connection: sqlite3.Connection) -> None:
    migrations = (*schema.MIGRATIONS, NEXT)
    header = schema.prepare(connection, "store", readonly=False, migrations=migrations)
    assert (header.format, header.min_reader, header.seq) == (NEXT_FORMAT, NEXT_FORMAT, 1)
    assert connection.execute("PRAGMA user_version").fetchone() == (NEXT_FORMAT,)
    assert connection.execute("SELECT rid, rank FROM resources").fetchall() == [(PLAIN.resource.rid, 0.5)]
    assert schema.prepare(connection, "store", readonly=False, migrations=migrations) == header


def test_a_store_of_the_first_format_is_migrated_and_searched_by_its_old_readers(tmp_path: Path) -> None:
    path = tmp_path / "truth.db"
    connection = sqlite3.connect(path, isolation_level=None)
    schema.prepare(connection, "store", readonly=False, migrations=schema.MIGRATIONS[:1])
    connection.close()
    with SqliteStore.open(path) as store:
        store.write([PLAIN, FULL])
        assert store.document(FULL.resource.rid) == FULL
    connection = sqlite3.connect(path)
    assert schema.read_header(connection)[::2][:2] == (schema.FORMAT, 1), "format 1 can still read it"
    connection.close()


# As findling 0.2 made it. Never brought up to date: it stands for the files that are out there.
FORMAT_2 = """
PRAGMA journal_mode = WAL;
PRAGMA application_id = 1178881095;
PRAGMA user_version = 2;
CREATE TABLE header (
    format INTEGER NOT NULL, feature INTEGER NOT NULL, min_reader INTEGER NOT NULL,
    seq INTEGER NOT NULL, log_floor INTEGER NOT NULL);
CREATE TABLE resources (
    id INTEGER PRIMARY KEY, rid TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL, title TEXT NOT NULL, path TEXT NOT NULL, author TEXT NOT NULL, lang TEXT NOT NULL,
    tags TEXT NOT NULL, visibility TEXT, created_at REAL, updated_at REAL, fields TEXT NOT NULL,
    size INTEGER, mtime_ns INTEGER, digest BLOB, characters INTEGER NOT NULL, seq INTEGER NOT NULL);
CREATE INDEX resources_path ON resources (path);
CREATE UNIQUE INDEX resources_seq ON resources (seq);
CREATE TABLE bodies (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE chunks (
    resource INTEGER NOT NULL, cid INTEGER NOT NULL, digest BLOB NOT NULL, ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL,
    heading TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (resource, cid)) WITHOUT ROWID;
CREATE UNIQUE INDEX chunks_cid ON chunks (cid);
CREATE TABLE dropped (cid INTEGER PRIMARY KEY, rid TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE INDEX dropped_rid ON dropped (rid);
CREATE TABLE deleted (rid TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE UNIQUE INDEX deleted_seq ON deleted (seq);
CREATE TABLE skipped (
    path BLOB NOT NULL, reason TEXT NOT NULL, detail BLOB NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL);
CREATE TABLE folders (path TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
ALTER TABLE chunks ADD COLUMN places TEXT NOT NULL DEFAULT '';
INSERT INTO header VALUES (2, 1, 1, 3, 0);
INSERT INTO resources VALUES
    (1, 'a.md', 'file', 'A', 'a.md', '', 'markdown', '["plan"]', NULL, NULL, 7.5, '', 8, 5, x'00', 8, 3);
INSERT INTO bodies VALUES (1, 'one' || char(10) || 'ältr');
INSERT INTO chunks VALUES
    (1, 11, x'aa', 0, 0, 3, 1, 1, 'Top', 1, ''),
    (1, 5, x'bb', 1, 4, 8, 2, 2, 'Top' || char(31) || 'Sub', 3, '0 2 p. 1');
INSERT INTO dropped VALUES (9, 'a.md', 3);
INSERT INTO deleted VALUES ('b.md', 2);
INSERT INTO folders VALUES ('', 5);
INSERT INTO meta VALUES ('key', 'value');
"""


def test_a_store_of_format_2_is_migrated_in_place(tmp_path: Path) -> None:
    path = tmp_path / "truth.db"
    connection = sqlite3.connect(path)
    connection.executescript(FORMAT_2)
    connection.close()
    chunks = (
        Chunk(11, b"\xaa", 0, 0, 3, 1, 1, ("Top",)),
        Chunk(5, b"\xbb", 1, 4, 8, 2, 2, ("Top", "Sub"), (Place(4, "p. 1", 2),)),
    )
    resource = Resource(rid="a.md", title="A", path="a.md", lang="markdown", tags=("plan",), updated_at=7.5)
    document = Document(resource, "one\nältr", chunks, Fingerprint(8, 5, b"\0"))
    with pytest.raises(ReadOnlyError, match="format 2"):
        SqliteStore.open(path, readonly=True)
    with SqliteStore.open(path) as store:
        assert (store.format, store.seq(), store.get_meta("key")) == (schema.FORMAT, 3, "value")
        assert store.document("a.md") == document
        assert list(store.changes(1)) == [
            Change(2, "b.md", (), frozenset(), None),
            Change(3, "a.md", (9,), frozenset({5}), document, 1),
        ]
        assert [stored.chunk for stored in store.unembedded("m", 9)] == list(chunks)
        store.put_vectors("m", {b"\xbb": b"12"})
        assert store.coverage("m") == (1, 2)
        assert [row.cid for row in store.vector_rows("m", 0)] == [5]
        assert store.write([document]) == []
        assert store.matching(Filters(tag=("plan",))) == [1]
        assert store.integrity() == []


# The additions of findling 0.3, written down like the format before it.
FORMAT_3 = (
    FORMAT_2
    + """
PRAGMA user_version = 3;
CREATE TABLE models (
    id INTEGER PRIMARY KEY AUTOINCREMENT, fingerprint TEXT NOT NULL UNIQUE, width INTEGER NOT NULL,
    covered INTEGER NOT NULL DEFAULT 0);
CREATE TABLE vectors (
    mark INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX vectors_digest ON vectors (digest, model);
CREATE INDEX vectors_model ON vectors (model);
CREATE TABLE wanted (turn INTEGER PRIMARY KEY, cid INTEGER NOT NULL UNIQUE);
CREATE INDEX chunks_digest ON chunks (digest);
CREATE TRIGGER chunk_gone AFTER DELETE ON chunks BEGIN
    UPDATE models SET covered = covered - 1
    WHERE EXISTS (SELECT 1 FROM vectors WHERE digest = OLD.digest AND model = models.id);
    DELETE FROM wanted WHERE cid = OLD.cid;
END;
INSERT INTO models VALUES (1, 'm', 2, 1);
INSERT INTO vectors VALUES (1, 1, x'bb', x'0102');
INSERT INTO resources VALUES
    (2, 'b', 'note', '', '', '', '', '', NULL, NULL, NULL, '{"supersedes":"a.md"}', NULL, NULL, NULL, 0, 4),
    (3, 'c', 'note', '', '', '', '', '', NULL, NULL, NULL, '{"status":"x","supersedes":"b\\u0000"}', 0, 0, x'', 0, 6),
    (4, 'd', 'note', '', '', '', '', '', NULL, NULL, NULL, '{"supersedes":"\\ud800"}', NULL, NULL, NULL, 0, 5),
    (5, 'e', 'note', '', '', '', '', '', NULL, NULL, NULL, '{"supersedes":"a.md"}', NULL, NULL, NULL, 0, 7),
    (6, 'f', 'note', '', '', '', '', '', NULL, NULL, NULL, '{}', NULL, NULL, NULL, 0, 8);
INSERT INTO bodies VALUES (2, ''), (3, ''), (4, ''), (5, ''), (6, '');
UPDATE header SET format = 3, seq = 8;
"""
)


@pytest.fixture
def format_3(tmp_path: Path) -> Path:
    path = tmp_path / "format-3.db"
    connection = sqlite3.connect(path)
    connection.executescript(FORMAT_3)
    connection.close()
    return path


def test_a_store_of_format_3_is_read_without_being_migrated(format_3: Path) -> None:
    before = format_3.read_bytes()
    with SqliteStore.open(format_3, readonly=True) as store:
        assert (store.format, store.seq(), list(store.rids())) == (3, 8, ["a.md", "b", "c", "d", "e", "f"])
        assert (store.glossary(), store.glossary_version()) == ([], 0)
        assert store.successors(["b\0", "a.md", "b"]) == {"b\0": "c", "a.md": "e"}
        assert store.superseded() == ["a.md", "b\0"]
        assert store.matching(Filters(where=Field("type", ("NOTE",)), lang=("",))) == []
        assert store.matching(Filters(where=Field("ext", ("md",)))) == [1]
        assert store.coverage("m") == (1, 2)
        assert store.integrity() == []
        with pytest.raises(ReadOnlyError):
            store.write_glossary([])
    assert format_3.read_bytes() == before


def test_a_store_of_format_3_is_migrated_in_place(format_3: Path) -> None:
    with SqliteStore.open(format_3) as store:
        assert (store.format, store.seq(), store.glossary()) == (schema.FORMAT, 8, [])
        assert store.successors(["b\0", "a.md", "b"]) == {"b\0": "c", "a.md": "e"}
        assert store.superseded() == ["a.md", "b\0"]
        store.write([], ["e"])
        assert store.successors(["a.md"]) == {"a.md": "b"}
        store.write_glossary([GlossaryTerm("group", "key", "Key", "alias")])
        assert store.integrity() == []


def test_a_reader_that_was_there_before_the_migration_sees_what_it_brought(format_3: Path) -> None:
    with SqliteStore.open(format_3, readonly=True) as reader, SqliteStore.open(format_3) as store:
        term = GlossaryTerm("group", "key", "Key", "alias")
        store.write_glossary([term])
        assert reader.glossary() == [term]
        assert reader.successors(["a.md"]) == {"a.md": "e"}


def test_a_reader_does_without_steps_that_are_optional_and_only_those(connection: sqlite3.Connection) -> None:
    optional = NEXT._replace(optional=True)
    header = schema.prepare(connection, "store", readonly=True, migrations=(*schema.MIGRATIONS, optional))
    assert header.format == schema.FORMAT
    for steps in ((optional, NEXT), (NEXT, optional)):
        with pytest.raises(ReadOnlyError, match=f"format {schema.FORMAT}"):
            schema.prepare(connection, "store", readonly=True, migrations=(*schema.MIGRATIONS, *steps))


def test_a_new_store_goes_through_all_migrations(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    header = schema.prepare(connection, "store", readonly=False, migrations=(*schema.MIGRATIONS, NEXT))
    assert (header.format, header.min_reader, header.feature) == (NEXT_FORMAT, NEXT_FORMAT, schema.FEATURE)
    assert connection.execute("SELECT rank FROM resources").fetchall() == []
    connection.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path, connection: sqlite3.Connection) -> None:
    migrations = (*schema.MIGRATIONS, NEXT, schema.Migration((), min_reader=NEXT_FORMAT + 1, finish=_fail))
    with pytest.raises(RuntimeError):
        schema.prepare(connection, "store", readonly=False, migrations=migrations)
    assert schema.read_header(connection).format == schema.FORMAT
    connection.close()
    with SqliteStore.open(path) as store:
        assert store.document(PLAIN.resource.rid) == PLAIN
        assert store.integrity() == []


def test_a_store_for_newer_readers_is_refused(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE header SET format = 9, min_reader = 9")
    for readonly in (False, True):
        with pytest.raises(FormatError, match="format 9") as caught:
            SqliteStore.open(path, readonly=readonly)
        assert "upgrade" in caught.value.hint


def test_a_newer_format_that_we_can_read_is_not_written(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE header SET format = 9")
    with SqliteStore.open(path, readonly=True) as store:
        assert store.document(PLAIN.resource.rid) == PLAIN
    with pytest.raises(FormatError):
        SqliteStore.open(path)


def test_an_older_format_cannot_be_migrated_read_only(connection: sqlite3.Connection) -> None:
    with pytest.raises(ReadOnlyError, match=f"format {schema.FORMAT}"):
        schema.prepare(connection, "store", readonly=True, migrations=(*schema.MIGRATIONS, NEXT))
    assert schema.read_header(connection).format == schema.FORMAT


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    for readonly in (False, True):
        with pytest.raises(CorruptError, match="another program"):
            SqliteStore.open(path, readonly=readonly)
    assert path.read_bytes() == before


def test_a_store_without_its_header_row_is_damaged(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM header")
    with pytest.raises(CorruptError, match="header"):
        SqliteStore.open(path)


def test_an_empty_file_is_a_store_that_was_never_filled(tmp_path: Path) -> None:
    path = tmp_path / "truth.db"
    path.touch()
    with pytest.raises(NotIndexedError):
        SqliteStore.open(path, readonly=True)
    with SqliteStore.open(path) as store:
        assert store.seq() == 0


def test_many_can_create_the_same_store_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def create() -> None:
        try:
            start.wait(PATIENCE_S)
            with SqliteStore.open(tmp_path / "truth.db") as store:
                assert store.seq() == 0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
