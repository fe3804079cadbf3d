"""The graph leg in PostgreSQL keeps its contract, says what one in a file says, and survives every kill."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from findling.domain.backends import GraphLeg, GraphRows
from findling.domain.errors import CorruptError
from findling.domain.queries import Filters
from findling.stores.graph.graph_leg import EntityGraph
from findling.stores.postgres.legs import graph_leg
from findling.stores.postgres.legs.graph_leg import PostgresGraph, damaged_graph, discard_graph_leg, has_graph_leg
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.parts_cache import PartsCache
from findling.stores.sqlite.store import SqliteStore
from findling.testing.graph_leg import GraphLegSuite
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import line_document
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.stores.leg_folders import LegsInFolder
from tests.stores.postgres_legs import connections, killed_run, opened_again, opened_workspace, ordinary_place

__all__ = ["connections"]

KILLS = tries(6, short=2)
NAMES = ["Marie Curie", "Pierre Curie", "Radium Institute", "Warsaw", "Sorbonne", "Hertha Ayrton", "Paul Langevin"]


class TestPostgresGraph(LegsInFolder, GraphLegSuite):
    @pytest.fixture(autouse=True)
    def _connect(self, postgres: PostgresServer) -> Iterator[None]:
        self.server, self.count = postgres, 0
        self.places: list[PostgresConnections] = []
        yield
        for opened in self.places:
            opened.close()

    def make_store(self) -> SqliteStore:
        self.count += 1
        return self.kept(SqliteStore.open(self.folder / f"truth{self.count}.db"))

    def make_leg(self) -> GraphLeg:
        if not self.places:
            self.make_leg_beside()
        return self.kept(PostgresGraph(self.places[0], owner="o"))

    def make_leg_beside(self) -> GraphLeg:
        with opened_workspace(ordinary_place(self.server)) as made:
            self.places.append(PostgresConnections(made.place))
        return self.kept(PostgresGraph(self.places[-1], owner="o"))


@pytest.mark.parametrize("seed", range(4))
def test_a_leg_says_what_one_in_a_file_says(
    connections: PostgresConnections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(graph_leg, "_PART_BYTES", (8, 64, 512, 1 << 20)[seed])
    chance = random.Random(seed)
    names = [f"{first} {last}" for first in NAMES for last in ("Meyer", "Novak", "Silva", "Tanaka")]
    leg = PostgresGraph(connections, owner="o")
    with (
        closing(SqliteStore.open(tmp_path / "truth.db")) as store,
        closing(EntityGraph.open(tmp_path / "graph", store_id="s")) as other,
    ):
        for _ in range(8):
            texts = [" met ".join(chance.sample(names, chance.randint(1, 5))) for _ in range(12)]
            documents = {
                one: line_document(f"r{one}", [texts[one], "and so on"]) for one in range(chance.randrange(12))
            }
            store.write(documents.values(), [f"r{chance.randrange(12)}"])
            if chance.random() < 0.2:
                leg.clear()
            for one in (leg, other):
                catch_up(store, one)
            if chance.random() < 0.3:
                leg = PostgresGraph(connections, owner="o")
            assert (leg.seq(), len(leg), leg.cids()) == (other.seq(), len(other), other.cids())
            numbers = sorted(store.matching(Filters()))
            seen = set(chance.sample(numbers, len(numbers) // 2))
            keys = [name.lower() for name in chance.sample(names, 3)]
            cids = chance.sample(sorted(other.cids()), min(2, len(other)))
            for mine, theirs in ((leg, other), (leg.within(seen), other.within(seen))):
                assert _told(mine, keys, cids) == _told(theirs, keys, cids)
    assert damaged_graph(connections) == []


def _told(rows: GraphRows, keys: list[str], cids: list[int]) -> list[object]:
    parts = rows.around(keys, cids), rows.named(keys, cids)
    return [rows.holds(keys), *(getattr(one, "tolist", lambda one=one: one)() for part in parts for one in part)]


def test_a_leg_of_another_owner_is_no_leg_and_damage_is_told(
    connections: PostgresConnections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
        store.write([line_document(f"r{one}", [f"We met {NAMES[one % 7]} and Marie Curie"]) for one in range(50)])
        leg = PostgresGraph(connections, owner="o")
        assert not has_graph_leg(connections)
        catch_up(store, leg)
        assert (has_graph_leg(connections), leg.is_current()) == (True, True)
        other = PostgresGraph(connections, owner="another")
        assert (other.seq(), len(other), other.holds(["marie curie"])) == (0, 0, False)
        assert len(other.around(["marie curie"], [5]).cids) == 0
        with connections.writing() as connection:
            connection.execute(
                "UPDATE findling.graph_parts SET data = substr(data, 2) WHERE ws = %s AND name IN ('cids', 'rows')",
                (connections.ws,),
            )
        assert damaged_graph(connections) == ["cids", "rows"]
        monkeypatch.setattr(graph_leg, "PARTS", PartsCache(1 << 20))
        with pytest.raises(CorruptError, match="graph leg"):
            PostgresGraph(connections, owner="o").around(["marie curie"], [])
        discard_graph_leg(connections)
        assert (has_graph_leg(connections), leg.is_current()) == (False, False)
        fresh = PostgresGraph(connections, owner="o")
        catch_up(store, fresh)
        assert fresh.cids() == store.chunk_ids()


WRITER = """
import sys
from pathlib import Path
from findling.stores.postgres.legs.graph_leg import PostgresGraph
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.sqlite.store import SqliteStore
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import line_document

store = SqliteStore.open(Path(sys.argv[1]))
leg = PostgresGraph(PostgresConnections(sys.argv[2]), owner="o")
for one in range(100_000):
    store.write([line_document(f"r{one % 50}", [f"We met Marie Curie and Number{one} in Warsaw"])])
    catch_up(store, leg)
    print(leg.seq(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_or_server_leaves_a_whole_leg(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        place, reached = ordinary_place(server), 0
        with opened_workspace(place) as connections:
            command = [sys.executable, "-c", WRITER, str(tmp_path / "truth.db"), place]
            for turn in range(KILLS):
                with killed_run(server, command, turn) as told:
                    reached = max(reached, *(int(told.readline()) for _ in range(4 + turn)))
                leg = opened_again(lambda: PostgresGraph(connections, owner="o"))
                assert leg.seq() >= reached
                assert leg.around(["warsaw"], []).total > 0
                assert damaged_graph(connections) == []
                with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
                    catch_up(store, leg)
                    assert (leg.seq(), leg.cids()) == (store.seq(), store.chunk_ids())
                    reached = leg.seq()
    finally:
        server.close()
