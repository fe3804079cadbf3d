from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.ports import TruthStore
from findling.domain.queries import All, Field, Filters, Not
from findling.domain.resources import Document
from findling.stores.sqlite import connections
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import FULL, PLAIN, line_document, vectors_of
from findling.testing.truth_store import TruthStoreSuite
from tests.compacting import compact
from tests.processes import PATIENCE_S
from tests.stores.store_checks import TERM, check_everything, check_trimming, write_everything


class TestSqliteStore(TruthStoreSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.path = tmp_path / "truth.db"
        self.stores: list[SqliteStore] = []
        yield
        for store in self.stores:
            store.close()

    def make_store(self) -> TruthStore:
        self.stores.append(SqliteStore.open(self.path))
        return self.stores[-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "truth.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.open(path) as store:
        yield store


@pytest.mark.parametrize("time", [0, -0.0, 7, -1.5, 1e300, None])
def test_a_time_of_any_kind_is_no_damage(store: SqliteStore, time: float | None) -> None:
    store.write([line_document("r", ["one"], updated_at=time)])
    store.write_glossary([TERM._replace(decided_at=time)])
    read = store.document("r")
    assert read is not None
    assert read.resource.updated_at == time
    assert [term.decided_at for term in store.glossary()] == [time]


def test_everything_is_there_when_opened_again(path: Path) -> None:
    with SqliteStore.open(path) as store:
        write_everything(store)
    with SqliteStore.open(str(path)) as store:
        check_everything(store)


def test_a_second_store_on_the_same_file_sees_what_the_first_commits(path: Path, store: SqliteStore) -> None:
    with SqliteStore.open(path, readonly=True) as reader:
        assert reader.seq() == 0
        store.write([PLAIN])
        assert reader.document(PLAIN.resource.rid) == PLAIN


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps access lists, not modes")
def test_files_are_for_their_owner_only(path: Path) -> None:
    old = os.umask(0)
    try:
        with SqliteStore.open(path) as store:
            store.write([PLAIN])
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(old)
    assert modes == {"truth.db": 0o600, "truth.db-wal": 0o600, "truth.db-shm": 0o600}


def test_opening_a_current_store_writes_nothing(path: Path) -> None:
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
    before = path.read_bytes()
    with SqliteStore.open(path) as store:
        assert store.seq() == 1
        log = path.with_name("truth.db-wal")
        assert not log.exists() or log.stat().st_size == 0
    assert path.read_bytes() == before


def test_names_with_special_characters_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "100% wahr? #1 ä.db"
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
    assert path.exists()
    with SqliteStore.open(path, readonly=True) as store:
        assert store.seq() == 1


def test_text_is_stored_once(path: Path) -> None:
    text = "a line that stands in the file exactly once"
    with SqliteStore.open(path) as store:
        store.write([line_document("a", [text, "other"], title="T")])
    assert path.read_bytes().count(text.encode()) == 1


def test_readers_in_other_threads_do_not_wait_for_a_write_and_see_it_whole(store: SqliteStore) -> None:
    store.write([PLAIN])
    half_written, done = threading.Event(), threading.Event()
    seen: list[tuple[int, list[str]]] = []

    def read() -> None:
        half_written.wait(PATIENCE_S)
        seen.append((store.seq(), list(store.rids())))
        done.set()

    def documents() -> Iterator[Document]:
        yield FULL
        half_written.set()
        assert done.wait(PATIENCE_S), "the reader waited for the writer"
        yield line_document("z", ["z"])

    thread = threading.Thread(target=read)
    thread.start()
    store.write(documents())
    thread.join()
    assert seen == [(1, [PLAIN.resource.rid])]
    assert store.seq() == 3


def test_threads_can_read_and_write_at_the_same_time(store: SqliteStore) -> None:
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(50):
                for rid in list(store.rids()):
                    document = store.document(rid)
                    assert document is not None
                    assert len(document.chunks) == len(document.text.split("\n"))
                    assert len(store.chunks([chunk.cid for chunk in document.chunks])) in (0, 1, 2, 3)
        except BaseException as error:
            failures.append(error)

    def write(name: str) -> None:
        try:
            for turn in range(30):
                store.write([line_document(name, [f"{turn}", "same", f"{turn % 3}x"])])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    threads += [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.seq() == 60
    assert store.integrity() == []


def test_documents_of_a_write_are_not_gathered_first(store: SqliteStore) -> None:
    alive = 0
    most = 0

    def documents() -> Iterator[Document]:
        nonlocal alive, most
        for number in range(20):
            alive += 1
            most = max(most, alive)
            yield line_document(f"r{number}", [f"{number}"])
            alive -= 1

    assert len(store.write(documents())) == 20
    assert most == 1


def test_errors_of_the_caller_pass_through_as_they_are(store: SqliteStore) -> None:
    def documents() -> Iterator[Document]:
        yield PLAIN
        raise sqlite3.DatabaseError("a damaged file that was being read, not ours")

    with pytest.raises(sqlite3.DatabaseError, match="not ours"):
        store.write(documents())
    assert store.seq() == 0
    assert len(store.write([PLAIN])) == 1


def test_a_value_that_is_not_unicode_is_refused(store: SqliteStore) -> None:
    with pytest.raises(InvalidValueError):
        store.set_meta("root", "caf\udce9")
    assert store.get_meta("root") is None


def test_a_filter_may_accept_more_types_than_a_statement_takes_values(store: SqliteStore) -> None:
    store.write(line_document(f"r{number}", [], type=f"Type {number}") for number in range(700))
    assert len(store.matching(Filters(type=tuple(f"type {number}" for number in range(600))))) == 600
    assert len(store.matching(Filters(where=Not(Field("type", ("type 1",)))))) == 699


def test_compacting_forgets_what_every_leg_has_absorbed(store: SqliteStore) -> None:
    check_trimming(store, partial(compact, store))


def test_compacting_gives_space_back_and_ends_the_log(path: Path, store: SqliteStore) -> None:
    store.write(line_document(f"r{number}", ["x" * 5000, f"{number}"]) for number in range(300))
    store.write([], [f"r{number}" for number in range(290)])
    store.write_glossary([TERM])
    compact(store, store.seq())
    assert store.glossary() == [TERM]
    assert path.stat().st_size < 300_000
    assert path.with_name("truth.db-wal").stat().st_size == 0
    assert store.counts()["resources"] == 10
    assert store.integrity() == []


def test_the_log_stays_bounded_over_many_writes(path: Path, store: SqliteStore) -> None:
    for number in range(12):
        store.write([line_document(f"r{number}", ["x" * 4_000_000, f"{number}"])])
    assert path.with_name("truth.db-wal").stat().st_size < 24_000_000


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("DELETE FROM bodies", "has no text"),
        ("DELETE FROM resources", "is not there"),
        ('UPDATE chunks SET "end" = 1000', "lies outside"),
        ("UPDATE bodies SET text = text || 'x'", "characters"),
        ("UPDATE chunks SET seq = 99", "newer than its resource"),
        ("UPDATE header SET seq = 0", "above the latest"),
        ("INSERT INTO deleted SELECT rid, 9 FROM resources", "both stored and deleted"),
        ("DELETE FROM models", "a model that is not there"),
        ("UPDATE vectors SET vector = x'00'", "has 1 bytes"),
        ("DELETE FROM vectors WHERE mark = 1", "counts 4 chunks"),
        ("INSERT INTO wanted (cid) VALUES (7)", "wish 7"),
        ("UPDATE resources SET supersedes = 'x'", "supersedes x"),
        ("UPDATE sqlite_master SET rootpage = 2 WHERE name = 'bodies'", ""),
    ],
)
def test_integrity_names_what_is_wrong(path: Path, damage: str, problem: str) -> None:
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
        store.put_vectors("m", vectors_of(PLAIN, b"12"))
        assert store.integrity() == []
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(damage)
    connection.close()
    with SqliteStore.open(path) as store:
        problems = store.integrity()
    assert problems
    assert any(problem in line for line in problems)


def test_ids_that_are_left_out_are_looked_up_like_any_other_condition(store: SqliteStore) -> None:
    many = [line_document(f"r{number}", [f"line {number}"]) for number in range(1200)]
    store.write([*many, PLAIN])
    gone = (*(f"r{number}" for number in range(1, 1200)), "nowhere")
    left = {number for number, document in store.documents(range(1, 1300)) if document.resource.rid not in gone}
    without = Not(Field("rid", gone))
    assert set(store.matching(Filters(where=without))) == left
    only = Field("rid", ("r0", "r1"))
    assert len(store.matching(Filters(where=All((without, only))))) == 1
    assert (
        list(store.matching(Filters(where=All((without, Not(only), Not(Field("rid", (PLAIN.resource.rid,)))))))) == []
    )
    assert set(store.matching(Filters(where=Not(without)))) == set(store.matching(Filters(where=Field("rid", gone))))


def test_the_cache_of_a_writer_grows_with_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_CACHE_KIB", 8)
    with SqliteStore.open(tmp_path / "index.sqlite") as store:
        store.write([PLAIN])
        writer = store._connections.writer
        assert writer is not None
        sizes = []
        for number in range(4):
            store.write([line_document(f"r{number}", [f"{number} {line}" for line in range(500)])])
            sizes += writer.execute("PRAGMA cache_size").fetchone()
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        assert sizes == sorted(sizes, reverse=True), "a negative size counts KiB"
        assert -(pages * 4 // 8) <= sizes[-1] < sizes[0] <= -8
        monkeypatch.setattr(connections, "_MOST_CACHE_KIB", 10)
        store.write([line_document("last", ["line"])])
        assert writer.execute("PRAGMA cache_size").fetchone() == (-10,)
