"""The backend in PostgreSQL keeps the contract."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import psycopg
import pytest

from findling.domain.errors import ReadOnlyError, WorkspaceError
from findling.stores.postgres.backend import PostgresBackend, _looked_up
from findling.stores.postgres.server.formats import load_migrations
from findling.stores.postgres.server.migrations import migrate
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.truth import store as postgres_store
from findling.testing.backend import BackendSuite, ConcurrentWritersSuite, PlaceSuite
from findling.testing.samples import LegModel, held_by, line_document, vectors_of
from tests.counts import tries
from tests.postgres_servers import PostgresServer


class TestPostgresBackend(BackendSuite):
    worlds = tries(3, short=1)

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path, postgres: PostgresServer) -> None:
        self.tmp, self.server = tmp_path, postgres

    def make_place(self) -> str:
        return self.server.place()

    def make_folder(self) -> Path:
        return Path(mkdtemp(dir=self.tmp))


class TestPostgresBackendBehindAPooler(PlaceSuite, ConcurrentWritersSuite):
    """Nothing needs a session: neither locks, nor settings, nor prepared statements."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path, postgres: PostgresServer) -> None:
        self.tmp, self.server = tmp_path, postgres

    def make_place(self) -> str:
        return self.server.place().replace("#", "?pooler=transaction#")

    def make_folder(self) -> Path:
        return Path(mkdtemp(dir=self.tmp))


def backend_of(place: str, folder: Path) -> PostgresBackend:
    folder.mkdir(exist_ok=True)
    return PostgresBackend(place, folder)


@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_of_an_older_findling_is_brought_up(
    postgres: PostgresServer, tmp_path: Path, readonly: bool
) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS older WITH (FORCE)")
        connection.execute("CREATE DATABASE older")
    place = parse_place(postgres.place().replace("/postgres#", "/older#"))
    migrate(place, load_migrations()[:1])
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO findling.workspaces (name, feature) VALUES (%s, 1)", (place.workspace,))
    backend = backend_of(f"{place.dsn}#{place.workspace}", tmp_path / "here")
    assert backend.exists()
    with closing(backend.open_store(readonly=readonly)) as store:
        assert store.format == load_migrations()[-1].number


def test_a_role_that_may_not_bring_it_up_is_told_who_may(postgres: PostgresServer, tmp_path: Path) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE behind")
        connection.execute("CREATE ROLE follower LOGIN PASSWORD 'follower'")
    place = parse_place(postgres.place().replace("/postgres#", "/behind#"))
    steps = load_migrations()
    migrate(place, steps[:-1])
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO findling.workspaces (name, feature) VALUES (%s, 1)", (place.workspace,))
        connection.execute("GRANT USAGE ON SCHEMA findling TO follower")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA findling TO follower")
    url = f"{place.dsn.replace('postgres:postgres@', 'follower:follower@')}#{place.workspace}"
    with pytest.raises(ReadOnlyError, match=f"must be brought to format {steps[-1].number} first") as caught:
        backend_of(url, tmp_path / "here").open_store()
    assert "a role that may create tables" in caught.value.hint


def test_a_workspace_that_another_has_made_anew_is_the_one_that_is_read(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    place = postgres.place()
    backend, other = backend_of(place, tmp_path / "here"), backend_of(place, tmp_path / "there")
    backend.create_store()
    assert backend.version() is not None
    other.drop_store()
    other.create_store()
    with closing(other.open_store()) as theirs:
        other.identify(theirs)
        theirs.write([line_document("a", ["text"])])
    with closing(backend.open_store()) as store:
        assert store.seq() == 1
        assert backend.version() == other.version()
        assert not backend.is_replaced()


def test_another_life_of_the_database_gives_another_id(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.place()
    backend = backend_of(place, tmp_path / "here")
    backend.create_store()
    with closing(backend.open_store()) as store:
        backend.identify(store)
        first = store.get_meta("store_id")
        backend.identify(store)
        assert store.get_meta("store_id") == first
        assert not backend.is_replaced()
        store.set_meta("born", "another database")
        other = backend_of(place, tmp_path / "there")
        with closing(other.open_store()) as theirs:
            other.identify(theirs)
            assert theirs.get_meta("store_id") not in (first, None)
        _looked_up.clear()  # a moment later
        assert backend.is_replaced()


def test_a_writer_wakes_those_who_listen(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.place()
    backend, other = backend_of(place, tmp_path / "here"), backend_of(place, tmp_path / "there")
    backend.create_store()
    with closing(backend.open_store()) as store:
        backend.identify(store)
        listener = other.listen()
        assert listener is not None
        with listener as wait:
            seen = other.version()
            store.write([line_document("a", ["news"])])
            backend.settle(store)
            assert wait(600.0)
            assert other.version() != seen
            backend.identify(store)
            backend.settle(store)  # nothing was written
            assert not wait(0.2)


def test_what_nobody_needs_any_more_goes_by_itself(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS tidy WITH (FORCE)")
        connection.execute("CREATE DATABASE tidy")
    monkeypatch.setattr(postgres_store, "_KEPT_CHANGES", 20)
    backend = backend_of(postgres.place().replace("/postgres#", "/tidy#"), tmp_path / "here")
    backend.create_store()
    left = "SELECT (SELECT count(*) FROM findling.dropped), (SELECT count(*) FROM findling.vectors)"
    late, prompt = LegModel(), LegModel()
    with closing(backend.open_store()) as store:
        for turn in range(150):
            backend.identify(store)
            changed = line_document(f"r{turn % 3}", [f"line {turn}", "same"])
            store.write([changed])
            store.put_vectors("m", vectors_of(changed, b"12"))
            backend.settle(store)
            prompt.catch_up(store)
            if turn == 5:
                late.catch_up(store)
            ((dropped, vectors),) = store.connections.rows(left)
            assert dropped < 60
            assert vectors < 60
        assert store.log_floor() > 100
        late.catch_up(store)
        assert late.held == prompt.held == held_by(store)
        assert store.integrity() == []
        assert store.coverage("m") == (6, 6)


def test_the_log_of_files_that_are_rewritten_again_and_again_does_not_grow(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    backend = backend_of(postgres.place(), tmp_path / "here")
    backend.create_store()
    with closing(backend.open_store()) as store:
        for turn in range(40):
            backend.identify(store)
            store.write([line_document(f"r{number}", [f"line {turn} of {number}"]) for number in range(100)])
            backend.settle(store)
        # Of 4,000 changes the latest 1,000 to 2,000 are left, each with a chunk that it has dropped.
        ((dropped,),) = store.connections.rows(
            "SELECT count(*) FROM findling.dropped WHERE ws = %s", (store.connections.ws,)
        )
        assert 1_000 <= dropped <= 2_000
        assert store.seq() - store.log_floor() == dropped


def test_a_damaged_store_is_put_aside_and_a_dropped_one_is_gone(postgres: PostgresServer, tmp_path: Path) -> None:
    backend = backend_of(postgres.place(), tmp_path / "here")
    assert backend.put_store_aside() is None
    for end in (backend.put_store_aside, backend.drop_store):
        backend.create_store()
        with closing(backend.open_store()) as store:
            backend.identify(store)
            store.write([line_document("a", ["text"])])
        end()
        assert not backend.exists()
        assert backend.is_replaced()
        assert backend.identity() is None


def test_a_password_is_in_no_representation(postgres: PostgresServer, tmp_path: Path) -> None:
    backend = backend_of("postgresql://ann:s3cret@127.0.0.1:1/db?sslpassword=s3cret#notes", tmp_path / "here")
    assert "s3cret" not in f"{backend!r}{backend.url}{backend.place!r}"
    with pytest.raises(WorkspaceError) as caught:
        backend.exists()
    assert "s3cret" not in f"{caught.value.message}{caught.value.hint}"
