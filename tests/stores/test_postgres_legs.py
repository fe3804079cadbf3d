"""Searches over legs in the server say what searches over files say, and learn nothing of what is hidden."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import psycopg
import pytest

from findling.domain.resources import Resource
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import exact_index
from findling.service.settings.settings import load_settings
from findling.service.workspace import backends
from findling.service.workspace.store_url import connect_workspace
from findling.service.workspace.workspaces import create_workspace
from findling.stores.local.backend import LocalBackend
from findling.stores.postgres.legs.server_legs import ServerLegs
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.migrations import create_workspace as create_in_server
from findling.stores.postgres.server.places import parse_place
from findling.testing.backend import PlaceSuite, TwinWorldsSuite
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.stores.postgres_legs import ordinary_place

opened: list[PostgresConnections] = []


class TruthHereLegsThere(ServerLegs, LocalBackend):
    """The truth and the keyword leg in a folder, the other legs in the server: these give equal digits."""

    keyword_leg = LocalBackend.keyword_leg  # type: ignore[assignment]
    has_keyword_leg = LocalBackend.has_keyword_leg
    keyword_seq = LocalBackend.keyword_seq
    discard_keyword_leg = LocalBackend.discard_keyword_leg
    limited_legs = LocalBackend.limited_legs  # type: ignore[assignment]
    discard_limited_legs = LocalBackend.discard_limited_legs

    def __init__(self, url: str, folder: Path) -> None:
        LocalBackend.__init__(self, folder)
        place = parse_place(url.partition(":")[2])
        create_in_server(place)
        opened.append(PostgresConnections(place))
        connections = opened[-1]
        ServerLegs.__init__(self, lambda: connections)


@pytest.fixture(autouse=True)
def _scheme(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = backends._plugin

    def plugin(group: str, scheme: str, what: str) -> Callable[[str, Path], object]:
        return TruthHereLegsThere if scheme == "legs" else real(group, scheme, what)

    monkeypatch.setattr(backends, "_plugin", plugin)
    yield
    while opened:
        opened.pop().close()


class TestLegsInTheServer(PlaceSuite, TwinWorldsSuite):
    worlds = tries(3, short=1)

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer, tmp_path: Path) -> None:
        self.server, self.tmp = postgres, tmp_path

    def make_place(self) -> str:
        return f"legs:{ordinary_place(self.server)}"

    def make_folder(self) -> Path:
        return Path(mkdtemp(dir=self.tmp))


PEOPLE = ["Marie Curie", "Pierre Curie", "Hertha Ayrton", "Paul Langevin", "Irène Joliot", "Albert Einstein"]
PLACES = ["Warsaw", "the Sorbonne", "the Radium Institute", "Brussels", "Princeton"]
QUESTIONS = (
    "who met Marie Curie",
    "Radium Institute",
    "Langevin in Brussels",
    "/Curie.*Warsaw/",
    '"met Albert"',
    "work",
)


def _engine(folder: Path, place: str) -> Engine:
    (folder / "home").mkdir(parents=True)
    own = {"store.home": str(folder / "home"), "semantic.model": "off", "search.mode": "hybrid", "search.graph": "on"}
    create_workspace("one", home=folder / "home", place=place)
    return open_engine(".", workspace="one", settings=load_settings(folder).override(own, "test"))


def test_answers_are_those_of_legs_in_files(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_index, "LEAST_CHARACTERS", 100)
    chance = random.Random(2)
    items = [
        (
            Resource(rid=f"note:{number:03}", type="note", title=chance.choice(PEOPLE), updated_at=1.7e9 + number),
            f"{chance.choice(PEOPLE)} met {chance.choice(PEOPLE)} in {chance.choice(PLACES)}; work went on.",
        )
        for number in range(80)
    ]
    here = (tmp_path / "files").as_uri()
    with _engine(tmp_path / "a", here) as files, _engine(tmp_path / "b", f"legs:{ordinary_place(postgres)}") as server:
        for start in range(0, 80, 20):
            for engine in (files, server):
                engine.add(items[start : start + 20])
            for question in QUESTIONS:
                assert _answer(server, question) == _answer(files, question)
            for engine in (files, server):
                engine.opened.exact.level_if_due()
        legs = ServerLegs(lambda: opened[-1])
        assert (legs.has_exact_leg(), legs.has_graph_leg(), legs.damage()) == (True, True, [])
        assert opened[-1].rows("SELECT rows FROM findling.vector_tables WHERE ws = %s", (opened[-1].ws,)) == [(80,)]


def _answer(engine: Engine, question: str) -> str:
    answer = engine.search(question, limit=30).to_dict()
    answer.pop("timings_ms", None)
    return json.dumps(answer, default=str)


def test_a_role_that_may_only_read_is_told_once_that_the_graph_is_behind(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    place = ordinary_place(postgres)

    def engine(name: str, url: str) -> Engine:
        home = tmp_path / name
        own = {"store.home": str(home), "semantic.model": "none", "search.legs": "server"}
        settings = load_settings(tmp_path).override(own, "test")
        return open_engine(".", workspace=connect_workspace(url, home=home, creates=True), settings=settings)

    notes = [Resource(rid=f"note:{number}", type="note", title="Radium") for number in range(2)]
    with psycopg.connect(postgres.dsn, dbname="legs", autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS looker; CREATE ROLE looker LOGIN PASSWORD 'looker'")
        with engine("writer", place) as writer:
            writer.add([(notes[0], "Marie Curie worked in Paris with Pierre Curie.")])
            connection.execute("GRANT USAGE ON SCHEMA findling TO looker")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA findling TO looker")
            looker = place.replace("keeper:keeper@", "looker:looker@")
            with engine("reader", looker) as reader:
                assert [one.what for one in reader.related("Marie Curie").degraded][-1:] == [
                    "the graph is not there yet, and nothing can be written here"
                ]
            assert writer.related("Marie Curie").names
            writer.add([(notes[1], "Marie Curie was born in Warsaw.")])
            with engine("reader", looker) as reader:
                for _ in range(2):
                    answer = reader.related("Marie Curie")
                    assert {one.name for one in answer.names} >= {"Pierre Curie"}
                    told = [one for one in answer.degraded if "graph" in one.what]
                    assert [one.what for one in told] == [
                        "the graph lacks the latest 1 changes, and nothing can be written here"
                    ]
                    assert "who may write" in told[0].fix
            assert "Warsaw" in {one.name for one in writer.related("Marie Curie").names}
        connection.execute("DROP OWNED BY looker; DROP ROLE looker")
