"""Searches over legs in the server say what searches over files say, and learn nothing of what is hidden."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from findling.domain.resources import Resource
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import exact_index
from findling.service.settings.settings import load_settings
from findling.service.workspace import backends
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
    """The truth and the keyword leg in a folder, the other legs in the server."""

    def __init__(self, url: str, folder: Path) -> None:
        LocalBackend.__init__(self, folder)
        place = parse_place(url.partition(":")[2])
        create_in_server(place)
        opened.append(PostgresConnections(place))
        ServerLegs.__init__(self, opened[-1])


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
        legs = ServerLegs(opened[-1])
        assert (legs.has_exact_leg(), legs.has_graph_leg(), legs.damage()) == (True, True, [])
        assert opened[-1].rows("SELECT rows FROM findling.vector_tables WHERE ws = %s", (opened[-1].ws,)) == [(80,)]


def _answer(engine: Engine, question: str) -> str:
    answer = engine.search(question, limit=30).to_dict()
    answer.pop("timings_ms", None)
    return json.dumps(answer, default=str)
