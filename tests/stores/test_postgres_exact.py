"""The exact leg in PostgreSQL keeps its contract, misses nothing whatever its history, and survives every kill."""

from __future__ import annotations

import os
import random
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from findling.domain.errors import CorruptError
from findling.domain.ports import ExactLeg
from findling.domain.queries import Filters, Pattern
from findling.stores.keyword.exact_leg import TrigramLeg
from findling.stores.postgres.legs import exact_leg, exact_segments
from findling.stores.postgres.legs.exact_leg import (
    PostgresTrigrams,
    damaged_segments,
    discard_exact_leg,
    has_exact_leg,
)
from findling.stores.postgres.legs.exact_segments import TrigramPostings, block_of, holders, packed, unpacked
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.sqlite.store import SqliteStore
from findling.testing.exact_leg import ExactLegSuite
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import line_document
from findling.text.query import patterns
from findling.text.query.patterns import required_trigrams
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.stores.leg_folders import LegsInFolder
from tests.stores.postgres_legs import connections, killed_run, opened_again, opened_workspace, ordinary_place

__all__ = ["connections"]

KILLS = tries(6, short=2)


class TestPostgresTrigrams(LegsInFolder, ExactLegSuite):
    @pytest.fixture(autouse=True)
    def _connect(self, connections: PostgresConnections) -> None:
        self.connections = connections

    def make_leg(self) -> ExactLeg:
        return self.kept(PostgresTrigrams(self.connections, owner="o"))


class TestPostgresTrigramsWithoutCore(TestPostgresTrigrams):
    @pytest.fixture(autouse=True)
    def _no_core(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(patterns, "native", None)


@pytest.mark.parametrize("seed", range(tries(40, short=10)))
def test_a_segment_is_read_as_it_was_written(seed: int) -> None:
    chance = np.random.default_rng(seed)
    size = int(chance.integers(1, 3_000))
    spread = int(chance.integers(1, 60))
    entries = [
        np.unique(chance.integers(0, spread, int(chance.integers(0, 30))).astype(np.uint32) * np.uint32(71_582_788))
        for _ in range(size)
    ]
    postings = TrigramPostings.of(entries)
    segment = packed(postings, size)
    again = unpacked(segment.blocks, size)
    assert (again.hashes.tolist(), again.places.tolist()) == (postings.hashes.tolist(), postings.places.tolist())
    for hash_ in [*set(postings.hashes.tolist()), 5]:
        marks = holders(segment.blocks[block_of(hash_, segment.bits)], hash_, size)
        assert np.flatnonzero(marks).tolist() == postings.places[postings.hashes == hash_].tolist()


WORDS = (
    "the quick brown fox jumps over lazy dogs while straße und İstanbul 数据库连接池 def get_backoff retries".split()
)


@pytest.mark.parametrize("seed", range(4))
def test_a_leg_of_many_commits_has_the_candidates_of_one_in_files(
    connections: PostgresConnections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # Segments of several sizes within few commits.
    monkeypatch.setattr(exact_leg, "_MOST_PAIRS", (40, 200, 1_000, 4_000_000)[seed])
    monkeypatch.setattr(exact_segments, "_BLOCK_BYTES", 64)
    chance = random.Random(seed)
    with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
        leg = PostgresTrigrams(connections, owner="o")
        reader = PostgresTrigrams(connections, owner="o")
        with closing(TrigramLeg.open(tmp_path / "exact", store_id="s")) as other:
            for _ in range(tries(15, short=7)):
                changed = [
                    line_document(str(chance.randrange(40)), [" ".join(chance.choices(WORDS, k=chance.randrange(12)))])
                    for _ in range(chance.randrange(1, 12))
                ]
                store.write({one.resource.rid: one for one in changed}.values(), [str(chance.randrange(40))])
                if chance.random() < 0.2:
                    leg.clear()
                catch_up(store, leg)
                catch_up(store, other)
                assert leg.numbers() == set(store.matching(Filters()))
                allowed = set(chance.sample(range(60), 30))
                for pattern in ("quick", "brown fox", "over|laz", "get_b", "STRASSE", "连接池", "the.*dogs", "zzz"):
                    required = required_trigrams(Pattern(pattern, True, False))
                    assert required is not None
                    assert leg.candidates(required) == other.candidates(required)
                    assert leg.candidates(required, allowed) == other.candidates(required, allowed)
                    if reader.seq():
                        assert reader.candidates(required) == leg.candidates(required)
                if not reader.seq():
                    reader = PostgresTrigrams(connections, owner="o")
        assert damaged_segments(connections) == []
        ((segments,),) = connections.rows(
            "SELECT count(*) FROM findling.exact_segments WHERE ws = %s", (connections.ws,)
        )
        assert segments < 10 or seed < 2


def test_a_leg_of_another_owner_is_no_leg_and_damage_is_told(connections: PostgresConnections, tmp_path: Path) -> None:
    with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
        store.write([line_document(str(number), [f"text number {number}"]) for number in range(50)])
        leg = PostgresTrigrams(connections, owner="o")
        assert not has_exact_leg(connections)
        catch_up(store, leg)
        assert (has_exact_leg(connections), leg.is_current()) == (True, True)
        other = PostgresTrigrams(connections, owner="another")
        assert (other.seq(), other.size(), _found(other, "number")) == (0, 0, 0)
        with connections.writing() as connection:
            connection.execute(
                "UPDATE findling.exact_blocks SET data = substr(data, 1, length(data) - 1) WHERE ws = %s",
                (connections.ws,),
            )
        assert damaged_segments(connections) == ["segment 0"]
        with pytest.raises(CorruptError, match="exact leg"):
            _found(leg, "text number 7")
        discard_exact_leg(connections)
        assert not has_exact_leg(connections)
        assert not leg.is_current()


BUILDER = """
import sys
from pathlib import Path
from findling.stores.postgres.legs.exact_leg import PostgresTrigrams
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.sqlite.store import SqliteStore

store = SqliteStore.open(Path(sys.argv[1]) / "truth.db")
leg = PostgresTrigrams(PostgresConnections(sys.argv[2]), owner="o")
print(leg.seq(), flush=True)
for change in store.changes(leg.seq()):
    leg.apply([change])
    leg.commit(change.seq)
    print(leg.seq(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_or_server_loses_nothing(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        place, reached = ordinary_place(server), 0
        with closing(SqliteStore.open(tmp_path / "truth.db")) as store, opened_workspace(place) as connections:
            for number in range(200):
                store.write([line_document(str(number), [f"text number {number} of many", "wolf " * 50])])
            command = [sys.executable, "-c", BUILDER, str(tmp_path), place]
            for turn in range(KILLS):
                with killed_run(server, command, turn) as told:
                    first = int(told.readline())
                    assert first >= reached, "a commit that was reported is kept"
                    reached = max(first, *(int(told.readline()) for _ in range(turn + 1)))
            leg = opened_again(lambda: PostgresTrigrams(connections, owner="o"))
            assert leg.seq() >= reached
            assert len(leg.numbers()) == leg.seq()
            catch_up(store, leg)
            assert (_found(leg, "number 199 of"), _found(leg, "of many")) == (1, 200)
            assert damaged_segments(connections) == []
    finally:
        server.close()


def _found(leg: ExactLeg, source: str) -> int:
    required = required_trigrams(Pattern(source, False, False))
    assert required is not None
    return len(leg.candidates(required))
