"""The truth store in PostgreSQL, by the suites of every store and by its own promises.

It is used by a role without any privilege: policies bind neither a superuser nor, unless forced, an owner.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from findling.domain.errors import (
    CorruptError,
    InvalidValueError,
    LockedError,
    NotIndexedError,
    ReadOnlyError,
    ReplacedError,
    WorkspaceError,
)
from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.queries import All, Field, Filters, Not
from findling.domain.queries import Any as AnyOf
from findling.domain.resources import Document, Fingerprint
from findling.stores.filtering import passes
from findling.stores.postgres.server.connections import connect, pool_of
from findling.stores.postgres.server.formats import load_migrations
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import FULL, PLAIN, LegModel, cids_of, held_by, line_document, vectors_of
from findling.testing.truth_store import TruthStoreSuite
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, run_process
from tests.stores.store_checks import TERM, check_everything, check_trimming, write_everything


@pytest.fixture(scope="module")
def server(postgres: PostgresServer) -> PostgresServer:
    """The server, with a database of a role that has no privilege but that one."""
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE member LOGIN PASSWORD 'member'")
        connection.execute("CREATE DATABASE team OWNER member")
    return postgres


@pytest.fixture
def place(server: PostgresServer) -> str:
    """A new workspace of that database."""
    return as_member(server.place())


def as_member(url: str) -> str:
    return url.replace("postgres:postgres@", "member:member@").replace("/postgres#", "/team#")


@pytest.fixture
def store(place: str) -> Iterator[PostgresStore]:
    with PostgresStore.create(place) as store:
        yield store


def sql(store: PostgresStore, statement: str) -> list[tuple[object, ...]]:
    """What a person would do in the tables, in the store's workspace."""
    with store.connections.writing() as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


class TestPostgresStore(TruthStoreSuite):
    @pytest.fixture(autouse=True)
    def _server(self, server: PostgresServer) -> Iterator[None]:
        self.server = server
        self.stores: list[PostgresStore] = []
        yield
        for store in self.stores:
            with suppress(ReplacedError):  # some tests close theirs
                assert store.integrity() == []
            store.close()

    def make_store(self) -> TruthStore:
        self.stores.append(PostgresStore.create(as_member(self.server.place())))
        return self.stores[-1]


def test_a_workspace_is_made_before_it_is_opened(place: str) -> None:
    with pytest.raises(NotIndexedError, match="is empty"):
        PostgresStore.open(place)
    PostgresStore.create(place).close()
    with PostgresStore.open(place, readonly=True) as store:
        assert (store.seq(), store.format) == (0, load_migrations()[-1].number)


def test_everything_is_there_when_opened_again(place: str) -> None:
    with PostgresStore.create(place) as store:
        write_everything(store)
    with PostgresStore.open(place) as store:
        check_everything(store)


def test_workspaces_of_one_database_know_nothing_of_each_other(server: PostgresServer, store: PostgresStore) -> None:
    store.write([PLAIN])
    store.put_vectors("m", vectors_of(PLAIN, b"12"))
    store.write_relations([Relation("user:ann", "member", "group:eng")])
    with PostgresStore.create(as_member(server.place())) as other:
        assert (other.seq(), list(other.rids()), other.relations(), other.models()) == (0, [], [], {})
        assert other.chunks(cids_of(PLAIN)) == {}
        assert [change.seq for change in other.write([PLAIN])] == [1]
        # The number of the workspace is in every statement; the policy holds for one that forgets it, too.
        for table in ("resources", "bodies", "chunks", "vectors", "relations"):
            own = sql(other, f"SELECT count(*) FROM findling.{table}")
            assert own == [(len(PLAIN.chunks) if table == "chunks" else int(table in ("resources", "bodies")),)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(other, f"INSERT INTO findling.folders VALUES ({store.connections.ws}, 'x', 1)")


def test_a_statement_that_names_no_workspace_sees_nothing(store: PostgresStore) -> None:
    store.write([PLAIN])
    connection = connect(store.connections.place)
    try:
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT count(*) FROM findling.resources")
    finally:
        connection.close()


def test_a_setting_ends_with_its_transaction(store: PostgresStore) -> None:
    store.write([PLAIN])
    assert store.seq() == 1
    connection, is_new = pool_of(store.connections.place).take()
    assert not is_new
    assert connection.execute("SELECT current_setting('findling.ws', true)").fetchone() in [("",), (None,)]
    pool_of(store.connections.place).give_back(connection)


def test_awkward_characters_come_back_everywhere(store: PostgresStore) -> None:
    odd = "nul\0 dle\x10 0000\x100000 end"
    surrogate = "caf\udce9"
    document = line_document(
        f"rid {odd}", [odd, "plain"], title=odd, path=f"docs/{odd}/a.md", author=odd, lang=odd, type=odd,
        tags=(odd, surrogate), fields={odd: surrogate, "supersedes": odd}, fingerprint=Fingerprint(1, 2),
    )  # fmt: skip
    heading = document.chunks[0]._replace(heading=(odd,))
    document = document._replace(chunks=(heading, *document.chunks[1:]))
    store.write([document])
    assert store.document(f"rid {odd}") == document
    assert [chunk.text for chunk in store.chunks(cids_of(document)).values()] == [odd, "plain"]
    assert list(store.rids(odd)) == [f"rid {odd}"]
    assert store.matching(Filters(path=(f"docs/{odd}",), lang=(odd.upper(),), type=(odd,))) == [1]
    assert store.successors([odd]) == {odd: f"rid {odd}"}
    assert [text.text for text in store.texts([1])] == [document.text]
    store.touch({f"docs/{odd}/a.md": Fingerprint(5, 6)})
    assert store.fingerprints() == {f"docs/{odd}/a.md": Fingerprint(5, 6)}
    store.set_skipped([SkippedPath(surrogate, odd, odd)])
    assert store.skipped() == [SkippedPath(surrogate, odd, odd)]
    store.set_folders({odd: 1, surrogate: 2})
    assert dict(store.folders()) == {odd: 1, surrogate: 2}
    store.set_meta(odd, surrogate)
    assert store.get_meta(odd) == surrogate
    assert store.write([document._replace(fingerprint=Fingerprint(5, 6))]) == []
    assert store.integrity() == []


def test_ordinary_text_is_readable_in_sql(store: PostgresStore) -> None:
    store.write([line_document("größe", ["Ein Satz – mit 100 % \\ und\ttab."], title="Größe")])
    rows = sql(store, "SELECT rid, title, text FROM findling.resources JOIN findling.bodies USING (ws, number)")
    assert rows == [("größe", "Größe", "Ein Satz – mit 100 % \\ und\ttab.")]


def test_ids_and_paths_have_any_length(store: PostgresStore) -> None:
    long = "/".join(f"ö{number}" for number in range(2000))
    files = [f"{long}/a.md", f"{long}/b.md", f"{long}x/a.md", "short.md"]
    store.write(line_document(path, ["x"], path=path, fields={"supersedes": f"old {path}"}) for path in files)
    assert list(store.rids()) == sorted(files)
    assert len(store.matching(Filters(path=(long,)))) == 2
    assert len(store.matching(Filters(path=(files[0],)))) == 1
    assert len(store.matching(Filters(within=long))) == 2
    assert store.successors([f"old {files[0]}"]) == {f"old {files[0]}": files[0]}
    store.write_relations([Relation("user:ann", "viewer", f"path:{long}")])
    store.touch({files[0]: Fingerprint(1, 2)})
    assert store.fingerprints() == {files[0]: Fingerprint(1, 2)}
    store.write([], files)
    assert [change.rid for change in store.changes(4)] == files
    assert store.integrity() == []


def test_within_a_folder_are_also_things_without_a_path(store: PostgresStore) -> None:
    paths = ["", "docs", "docs/a.md", "docs2/a.md", "src/docs/a.md"]
    store.write(line_document(f"r{number}", ["x"], path=path) for number, path in enumerate(paths))
    assert sorted(store.matching(Filters(within="docs"))) == [1, 2, 3]
    assert sorted(store.matching(Filters(within="docs", path=("docs/a.md", "src")))) == [3]
    assert sorted(store.matching(Filters(path=(*map(str, range(50)), "docs")))) == [2, 3]


def test_a_large_write_takes_a_handful_of_statements(store: PostgresStore) -> None:
    store.write([PLAIN])
    documents = [line_document(f"r{number}", [f"{number} {line}" for line in range(20)]) for number in range(500)]
    sent: list[str] = []
    connection, _ = pool_of(store.connections.place).take()
    pool_of(store.connections.place).give_back(connection)
    execute = connection.execute

    def noting(query: str, *more: Any) -> Any:
        sent.append(query)
        return execute(query, *more)

    connection.execute = noting  # type: ignore[method-assign, assignment]
    try:
        assert len(store.write(documents)) == 500
    finally:
        connection.execute = execute  # type: ignore[method-assign]
    assert "COMMIT" in sent
    assert len(sent) < 12, sent


def test_the_planner_is_told_of_a_load_and_not_of_a_trickle(store: PostgresStore) -> None:
    told = "SELECT pg_stat_get_last_analyze_time('findling.chunks'::regclass)"
    first = 2 * 10_000  # more than all other tests have written
    store.write(line_document(f"r{number}", []) for number in range(first))
    before = sql(store, told)
    assert before != [(None,)]
    store.write([PLAIN])
    store.write([], [f"r{number}" for number in range(100)])
    assert sql(store, told) == before


def test_nothing_is_counted_twice_between_two_changes(store: PostgresStore) -> None:
    store.write([PLAIN])
    first = store.counts()
    assert (first["resources"], first["chunks"], first["skipped"]) == (1, len(PLAIN.chunks), 0)
    sql(store, "UPDATE findling.resources SET characters = 0; DELETE FROM findling.chunks")
    store.set_skipped([SkippedPath("a", "b", "c")])
    assert store.counts() == {**first, "skipped": 1}
    store.write([line_document("r", ["new"])])
    assert store.counts() == {"resources": 2, "chunks": 1, "characters": len("new"), "skipped": 1}


def test_readers_in_other_threads_do_not_wait_for_a_write_and_see_it_whole(store: PostgresStore) -> None:
    store.write([PLAIN])
    half_written, done = threading.Event(), threading.Event()
    seen: list[tuple[int, list[str]]] = []

    def read() -> None:
        half_written.wait(PATIENCE_S)
        seen.append((store.seq(), list(store.rids())))
        done.set()

    def documents() -> Iterator[Document]:
        for number in range(501):
            yield line_document(f"r{number}", [f"{number}"])
        half_written.set()
        assert done.wait(PATIENCE_S), "the reader waited for the writer"
        yield line_document("z", ["z"])

    thread = threading.Thread(target=read)
    thread.start()
    store.write(documents())
    thread.join()
    assert seen == [(1, [PLAIN.resource.rid])]
    assert store.seq() == 503


def test_writers_take_turns(place: str, store: PostgresStore) -> None:
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            with PostgresStore.open(place) as own:
                for turn in range(10):
                    own.write([line_document(name, [f"{turn}", "same", f"{turn % 3}x"])])
                    own.put_vectors("m", vectors_of(line_document(name, [f"{turn}"]), b"v"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.seq() == 40
    assert sorted(change.seq for change in store.changes(0))[-1] == 40
    assert store.integrity() == []


FORKING = """
import os, sys
from findling.stores.postgres.truth.store import PostgresStore
with PostgresStore.open(sys.argv[1]) as store:
    assert store.seq() == 1
    child = os.fork()
    if not child:
        assert [store.seq() for _ in range(20)] == [1] * 20
        store.close()
        sys.exit(0)
    assert [store.seq() for _ in range(20)] == [1] * 20
    assert os.waitpid(child, 0)[1] == 0
    assert store.seq() == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_opens_connections_of_its_own(place: str, store: PostgresStore) -> None:
    store.write([PLAIN])
    run_process([sys.executable, "-W", "error", "-c", FORKING, place], check=True)


def test_patience_with_another_writer_has_an_end(place: str, store: PostgresStore) -> None:
    store.write([PLAIN])
    with PostgresStore.open(place) as other, store.connections.writing():
        with pytest.raises(LockedError, match="being written"):
            other.put_vectors("m", vectors_of(PLAIN, b"v"), patience_s=0.05)
        with pytest.raises(LockedError):
            other.want(cids_of(PLAIN), patience_s=0)
        assert other.models() == {}
    store.put_vectors("m", vectors_of(PLAIN, b"v"), patience_s=0.05)


def test_a_store_opened_for_reading_refuses_to_write(place: str, store: PostgresStore) -> None:
    store.write([PLAIN])
    with PostgresStore.open(place, readonly=True) as reader:
        for write in (
            lambda: reader.write([FULL]),
            lambda: reader.set_meta("a", "b"),
            lambda: reader.put_vectors("m", {b"a": b"1"}),
            lambda: reader.touch({"a": Fingerprint(1, 2)}),
            reader.drop_vectors,
        ):
            with pytest.raises(ReadOnlyError):
                write()
        assert reader.document(PLAIN.resource.rid) == PLAIN


def test_a_role_that_may_only_read_is_told_so(server: PostgresServer, place: str, store: PostgresStore) -> None:
    store.write([PLAIN])
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'guest'")
    sql(store, "GRANT USAGE ON SCHEMA findling TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA findling TO guest")
    with PostgresStore.open(place.replace("member:member@", "guest:guest@")) as guest:
        assert guest.document(PLAIN.resource.rid) == PLAIN
        with pytest.raises(ReadOnlyError, match="lacks rights") as caught:
            guest.write([FULL])
        assert "grant" in caught.value.hint


def test_a_frozen_store_is_one_state_whatever_is_written(store: PostgresStore) -> None:
    store.write([PLAIN])
    store.put_vectors("m", vectors_of(PLAIN, b"12"))
    with store.frozen() as frozen:
        before = frozen.seq(), list(frozen.vector_rows("m", 0))
        store.write(
            [FULL, *(line_document(f"r{number}", [f"{number}"]) for number in range(300))], [PLAIN.resource.rid]
        )
        store.put_vectors("m", vectors_of(FULL, b"34"))
        store.trim_log(store.seq())
        assert (frozen.seq(), list(frozen.vector_rows("m", 0))) == before
        assert [change.document for change in frozen.changes(0)] == [PLAIN]
        assert (list(frozen.rids()), frozen.log_floor()) == ([PLAIN.resource.rid], 0)
        assert frozen.chunks(cids_of(PLAIN)).keys() == set(cids_of(PLAIN))
        with pytest.raises(ReadOnlyError):
            frozen.write([PLAIN])
        follower = LegModel()
        follower.catch_up(frozen)
        assert follower.held == held_by(frozen)
        frozen.close()
        assert store.seq() > before[0]
    follower.catch_up(store)
    assert follower.held == held_by(store)


def test_endings_of_names_are_compared_in_the_server(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    letters = [*"aB.././gZ%_\\", "gz", ".Gz", ".tar.gz", "\u212a", "\u0130", "\0", "\x10", "\n"]
    made = ("".join(chance.choices(letters, k=chance.randint(0, 7))) for _ in range(400))
    paths = list(dict.fromkeys(path.strip("/") for path in made))
    store.write(line_document(f"r{at}", ["x"], path=path) for at, path in enumerate(paths))
    resources = {number: document.resource for number, document in store.documents(range(1, len(paths) + 1))}
    endings = ["gz", ".GZ", "tar.gz", "", "%", "_", "\\", "k", "\u0130", "\0", "\ud800", "a/b.gz", "Z\n"]
    fetched: list[tuple[Any, ...]] = []
    ask = store.connections.rows

    def asked(statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        fetched.extend(rows := ask(statement, values))
        return rows

    monkeypatch.setattr(store.connections, "rows", asked)
    for _ in range(120):
        some = [Field("ext", tuple(chance.sample(endings, chance.randint(1, 3)))) for _ in range(3)]
        where = chance.choice(
            [None, some[0], Not(some[0]), AnyOf((some[0], some[1])), All((Not(AnyOf((some[0], some[1]))), some[2]))]
        )
        wanted_ones, unwanted = (tuple(chance.sample(endings, chance.randint(0, 2))) for _ in range(2))
        filters = Filters(ext=wanted_ones, not_ext=unwanted, where=where)
        wanted = {number for number, resource in resources.items() if passes(resource, filters)}
        assert set(store.matching(filters)) == wanted, filters
    assert {row[1] for row in fetched if len(row) > 1 and row[1].isascii()} <= {""}
    mixed = Filters(ext=("gz",), where=AnyOf((Field("ext", ("z",)), Field("path", ("b",)))), type=("file", "note"))
    assert set(store.matching(mixed)) == {number for number, one in resources.items() if passes(one, mixed)}


def test_a_closed_store_says_so(place: str) -> None:
    store = PostgresStore.create(place)
    store.close()
    with pytest.raises(ReplacedError, match="closed"):
        store.seq()
    with pytest.raises(ReplacedError):
        store.write([PLAIN])


def test_a_workspace_that_is_gone_says_so(store: PostgresStore) -> None:
    sql(store, f"DELETE FROM findling.workspaces WHERE ws = {store.connections.ws}")
    with pytest.raises(ReplacedError, match="removed"):
        store.seq()
    with pytest.raises(ReplacedError, match="removed"):
        store.write([PLAIN])


def test_errors_of_the_caller_pass_through_as_they_are(store: PostgresStore) -> None:
    def documents() -> Iterator[Document]:
        yield PLAIN
        raise psycopg.OperationalError("of a source, not ours")

    with pytest.raises(psycopg.OperationalError, match="not ours"):
        store.write(documents())
    assert store.seq() == 0
    assert len(store.write([PLAIN])) == 1


def test_a_number_that_does_not_fit_is_refused(store: PostgresStore) -> None:
    first = PLAIN.chunks[0]._replace(line_end=2**40)
    with pytest.raises(InvalidValueError, match="too large"):
        store.write([PLAIN._replace(chunks=(first, *PLAIN.chunks[1:]))])
    assert store.seq() == 0


def test_the_log_is_trimmed_and_legs_below_start_anew(store: PostgresStore) -> None:
    check_trimming(store, store.trim_log)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("DELETE FROM findling.bodies", "has no text"),
        ("DELETE FROM findling.resources", "is not there"),
        ('UPDATE findling.chunks SET "end" = 1000', "lies outside"),
        ("UPDATE findling.bodies SET text = text || 'x'", "not what was written"),
        ("UPDATE findling.resources SET title = 'other'", "row of 'p' is not what was written"),
        ("UPDATE findling.resources SET characters = 1", "characters"),
        ("UPDATE findling.chunks SET heading = 'other'", "a chunk of 'p' is not what was written"),
        ("UPDATE findling.chunks SET seq = 99", "newer than its resource"),
        ("UPDATE findling.workspaces SET seq = 0", "above the latest"),
        ("UPDATE findling.workspaces SET number = 0", "number 1, which is above the latest"),
        (
            "INSERT INTO findling.deleted SELECT ws, rid_hash, rid, 9 FROM findling.resources",
            "both stored and deleted",
        ),
        ("DELETE FROM findling.models", "a model that is not there"),
        ("UPDATE findling.vectors SET vector = '\\x00'", "has 1 bytes"),
        ("DELETE FROM findling.vectors WHERE mark = 1", "counts 4 chunks"),
        ("UPDATE findling.resources SET supersedes = 'x'", "supersedes x"),
        ("UPDATE findling.relations SET object = 'group:other'", "relation user:ann member group:other"),
        ("UPDATE findling.glossary SET surface = 'other'", "term 'other'"),
    ],
)
def test_integrity_names_what_is_wrong(store: PostgresStore, damage: str, problem: str) -> None:
    store.write([PLAIN])
    store.put_vectors("m", vectors_of(PLAIN, b"12"))
    store.write_relations([Relation("user:ann", "member", "group:eng")])
    store.write_glossary([TERM])
    assert store.integrity() == []
    sql(store, damage)
    problems = store.integrity()
    assert any(problem in line for line in problems), problems


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE findling.bodies SET text = replace(text, 'two', 'owt')",
        "DELETE FROM findling.bodies",
        "UPDATE findling.chunks SET heading = 'other'",
        "UPDATE findling.resources SET fields = 'no json'",
    ],
)
def test_damage_is_reported_and_never_given(store: PostgresStore, damage: str) -> None:
    store.write([PLAIN])
    sql(store, damage)
    with pytest.raises(CorruptError):
        store.document(PLAIN.resource.rid)
    with pytest.raises(CorruptError):
        store.chunks(cids_of(PLAIN))


def test_damaged_vectors_are_counted_and_dropped(store: PostgresStore) -> None:
    store.write([PLAIN])
    store.put_vectors("m", vectors_of(PLAIN, b"12"))
    sql(store, "UPDATE findling.vectors SET vector = '\\x3333' WHERE mark = 2")
    assert store.damaged_vectors() == 1
    with pytest.raises(CorruptError):
        list(store.vector_rows("m", 0))
    assert store.drop_vectors() == 1
    assert store.coverage("m") == (2, 4)
    assert store.integrity() == []


def test_tables_that_somebody_dropped_are_damage(server: PostgresServer, place: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS lost WITH (FORCE)")
        connection.execute("CREATE DATABASE lost OWNER member")
    with PostgresStore.create(place.replace("/team#", "/lost#")) as store:
        sql(store, "DROP TABLE findling.bodies")
        with pytest.raises(CorruptError, match="bodies"):
            store.write([PLAIN])


def test_no_message_holds_the_password(server: PostgresServer, place: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        PostgresStore.open(place.replace("member:member@", "member:wr0ng-w0rd@"))
    assert "wr0ng-w0rd" not in caught.value.message + caught.value.hint + repr(caught.value.__cause__)
    with PostgresStore.create(place) as store:
        assert "member:" not in repr(store.connections) + repr(store.connections.place)
