"""The graph leg keeps its contract, and survives damage, crashes and full disks as other legs do."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import pytest

from findling.domain.backends import GraphLeg
from findling.domain.errors import CorruptError
from findling.domain.ports import TruthStore
from findling.stores.graph.graph_file import damaged_columns
from findling.stores.graph.graph_leg import EntityGraph
from findling.stores.local.maintenance import measure_parts
from findling.stores.sqlite.store import SqliteStore
from findling.testing.graph_leg import GraphLegSuite
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import line_document
from tests.processes import BoundedProcess


class TestEntityGraph(GraphLegSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.count = 0
        self.opened: list[SqliteStore | EntityGraph] = []
        yield
        for one in self.opened:
            one.close()

    def make_store(self) -> TruthStore:
        self.count += 1
        store = SqliteStore.open(self.folder / f"truth{self.count}.db")
        self.opened.append(store)
        return store

    def make_leg(self) -> GraphLeg:
        return self._leg("graph")

    def make_leg_beside(self) -> GraphLeg:
        return self._leg(f"beside{self.count}")

    def _leg(self, name: str) -> EntityGraph:
        leg = EntityGraph.open(self.folder / name, store_id="test")
        self.opened.append(leg)
        return leg


NAMES = ["Marie Curie", "Pierre Curie", "Radium Institute", "Warsaw", "Sorbonne", "Hertha Ayrton", "Paul Langevin"]


def filled(folder: Path, count: int = 200) -> Path:
    """A leg over random names; its folder."""
    chance = random.Random(5)
    with closing(SqliteStore.open(folder / "truth.db")) as store:
        store.write(
            [line_document(f"r{one}", ["We met " + " with ".join(chance.sample(NAMES, 3))]) for one in range(count)]
        )
        with closing(EntityGraph.open(folder / "graph", store_id="s")) as leg:
            catch_up(store, leg)
    return folder / "graph"


def test_nothing_is_around_anything_before_the_first_commit(tmp_path: Path) -> None:
    with (
        SqliteStore.open(tmp_path / "truth.db") as store,
        closing(EntityGraph.open(tmp_path / "graph", store_id="test")) as leg,
    ):
        store.write([line_document(f"note:{number}", [f"{NAMES[0]} met {NAMES[1]}"]) for number in range(3)])
        for _ in range(2):
            for near in (leg.around(["marie curie"], [1]), leg.named(["marie curie"], [1]), leg.whole(9)):
                assert (len(near.cids), len(near.rows), near.total) == (0, 0, 0)
            assert (len(leg), leg.holds(["marie curie"]), len(leg.within({1}))) == (0, False, 0)
            leg.apply(store.changes(0))
        leg.commit(store.seq())
        assert leg.around(["marie curie"], []).total == 3


def test_a_leg_of_another_store_or_layout_starts_from_nothing(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert EntityGraph.open(folder, store_id="s").seq() > 0
    assert EntityGraph.open(folder, store_id="other").seq() == 0


@pytest.mark.parametrize("seed", range(30))
def test_no_damage_is_read_as_something_else(tmp_path: Path, seed: int) -> None:
    folder = filled(tmp_path)
    (file,) = folder.iterdir()
    data, chance = bytearray(file.read_bytes()), random.Random(seed)
    if seed % 3 == 0:
        data = data[: chance.randrange(len(data))]
    else:
        place = chance.randrange(len(data))
        data[place] ^= 1 << chance.randrange(8)
    file.write_bytes(data)
    try:
        leg = EntityGraph.open(folder, store_id="s")
    except CorruptError as error:
        assert "graph" in error.message and error.hint
    else:
        # Bytes between two columns belong to none, and a header of another owner is no damage.
        assert leg.seq() == 0 or damaged_columns(folder) or leg.around(["warsaw"], []).total == 200


def test_parts_are_measured(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert measure_parts(tmp_path)["graph leg"] == sum(one.stat().st_size for one in folder.iterdir()) > 0


WRITER = """
import sys
from pathlib import Path
from findling.stores.graph.graph_leg import EntityGraph
from findling.stores.sqlite.store import SqliteStore
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import line_document
from tests.processes import BoundedProcess
store = SqliteStore.open(Path(sys.argv[1]))
leg = EntityGraph.open(Path(sys.argv[2]), store_id="s")
for one in range(100_000):
    store.write([line_document(f"r{one % 50}", [f"We met Marie Curie and Number{one} in Warsaw"])])
    catch_up(store, leg)
    print(leg.seq(), flush=True)
"""


def test_a_killed_writer_leaves_a_whole_leg_and_readers_never_see_less(tmp_path: Path) -> None:
    truth, folder = tmp_path / "truth.db", tmp_path / "graph"
    for round_ in range(4):
        with BoundedProcess([sys.executable, "-c", WRITER, str(truth), str(folder)], stdout=PIPE) as writer:
            assert writer.stdout is not None
            reached = 0
            for _ in range(5 + 3 * round_):
                reached = int(writer.stdout.readline())
                leg = EntityGraph.open(folder, store_id="s")
                assert leg.seq() >= reached
                assert leg.around(["warsaw"], []).total > 0
            time.sleep(0.001 * round_)
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        with closing(SqliteStore.open(truth)) as store, closing(EntityGraph.open(folder, store_id="s")) as leg:
            assert leg.seq() >= reached
            assert not damaged_columns(folder)
            catch_up(store, leg)
            assert leg.seq() == store.seq()
            assert leg.cids() == store.chunk_ids()
            fresh = EntityGraph.open(tmp_path / f"fresh{round_}", store_id="s")
            catch_up(store, fresh)
            assert (folder / "graph.bin").read_bytes() == (tmp_path / f"fresh{round_}" / "graph.bin").read_bytes()


def test_a_leg_takes_a_tenth_of_its_text(tmp_path: Path) -> None:
    chance = random.Random(1)
    people = [f"{first} {last}" for first in NAMES for last in ("Meyer", "Schmidt", "Novak", "Silva", "Tanaka")]
    filler = "and so it came that the other one was asked about the work which had been done before that time, "
    texts = [
        f"It was {chance.choice(people)} who wrote it, {filler}and {chance.choice(people)} said so. {filler}"
        for _ in range(500)
    ]
    with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
        store.write([line_document(f"r{one}", [text]) for one, text in enumerate(texts)])
        with closing(EntityGraph.open(tmp_path / "graph", store_id="s")) as leg:
            catch_up(store, leg)
    assert (tmp_path / "graph" / "graph.bin").stat().st_size < sum(map(len, texts)) / 10
