"""The plugin `findling-chroma` with the real library: in process, and as a server."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from findling.domain.backends import VectorTable
from findling.domain.errors import LockedError, ProviderError
from findling.domain.ports import TruthStore
from findling.stores.sqlite.store import SqliteStore
from findling.testing.vector_table import VectorTableSuite
from tests.forks import Program
from tests.processes import PATIENCE_S, BoundedProcess, run_process

tables = pytest.importorskip("findling_chroma.tables", reason="pip install --editable plugins/findling-chroma")
_models = count(1)


class ChromaSuite(VectorTableSuite):
    """Every sentence of `VectorTable`; `place` is that of all tests of a class."""

    exact_below = 5_000

    @pytest.fixture(autouse=True)
    def _room(self, place: str, tmp_path: Path) -> None:
        self._at, self.folder = place, tmp_path

    def make_store(self) -> TruthStore:
        return SqliteStore.open(self.folder / f"{next(_models)}.sqlite")

    def make_table(self, dimensions: int) -> VectorTable:
        vectors = tables.ChromaVectors(self._at, "suite", self.exact_below)
        table: VectorTable = vectors.open("store", f"model-{next(_models)}", dimensions)
        return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("chroma"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = tmp_path_factory.mktemp("chroma-server")
    words = ["run", "--path", str(data), "--host", "127.0.0.1", "--port", str(port)]
    with (data / "log").open("w") as log:
        program = Path(sys.executable).with_name("chroma")
        process = BoundedProcess([program, *words], stdout=log, stderr=log, cwd=data)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, (data / "log").read_text()
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


class TestInProcess(ChromaSuite):
    @pytest.fixture
    def place(self, folder: str) -> str:
        return folder


class TestByNeighbours(ChromaSuite):
    """The same without comparing all rows of small tables: the graph of neighbours answers."""

    exact_below = 0

    @pytest.fixture
    def place(self, folder: str) -> str:
        return folder


class TestOnAServer(ChromaSuite):
    exact_below = 0

    @pytest.fixture
    def place(self, server: str) -> str:
        return server


def rows(number: int, seed: int = 3) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    drawn = np.random.default_rng(seed).standard_normal((number, 32)).astype(np.float32)
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def test_a_table_is_there_again_and_another_store_sees_none_of_it(folder: str) -> None:
    vectors = tables.ChromaVectors(folder, "again")
    data = rows(9)
    table = vectors.open("s", "m", 32)
    table.add(range(9), [1] * 9, data)
    table.commit(seq=4, mark=2)
    assert vectors.state("s", "m") == {"seq": 4, "mark": 2}
    again = vectors.open("s", "m", 32)
    assert (len(again), again.search(data[3], 1).hits[0][0]) == (9, 3)
    assert vectors.state("other", "m") == {}
    assert len(vectors.open("other", "m", 32)) == 0
    assert tables.ChromaVectors(folder, "neighbour").state("s", "m") == {}
    vectors.discard("other-model")
    assert len(vectors.open("s", "m", 32)) == 9
    vectors.discard()
    assert vectors.state("s", "m") == {}


def test_a_commit_that_was_interrupted_is_done_again(folder: str) -> None:
    vectors = tables.ChromaVectors(folder, "interrupted")
    data = rows(20)
    table = vectors.open("s", "m", 32)
    table.add(range(10), [1] * 10, data[:10])
    table.commit(seq=1)
    table.add(range(10, 20), [2] * 10, data[10:])
    table.drop([0])
    table._collection.modify = lambda metadata: (_ for _ in ()).throw(OSError("killed"))
    with pytest.raises(Exception, match="killed"):
        table.commit(seq=2)
    again = vectors.open("s", "m", 32)
    assert dict(again.state) == {"seq": 1}
    again.add(range(10, 20), [2] * 10, data[10:])
    again.drop([0])
    again.commit(seq=2)
    assert again.cids() == set(range(1, 20))
    # Rows that were put in before the first commit count as none.
    fresh = vectors.open("s", "first", 32)
    fresh.add(range(5), [1] * 5, data[:5])
    collection = fresh._made_anew()
    collection.upsert(ids=["77"], embeddings=data[:1], metadatas=[{"number": 1}])
    assert len(vectors.open("s", "first", 32)) == 0
    fresh.commit(seq=1)
    assert fresh.cids() == set(range(5))


def test_the_graph_of_neighbours_finds_nearly_all_and_limited_callers_all(folder: str) -> None:
    data = rows(6_000)
    table = tables.ChromaVectors(folder, "many", 100).open("s", "m", 32)
    table.add(range(6_000), [cid % 50 for cid in range(6_000)], data)
    table.commit(seq=1)
    shared = 0
    for query in rows(10, seed=8):
        best = np.argsort(-(data @ query))
        found = table.search(query, 10)
        shared += len({cid for cid, _ in found.hits} & set(best[:10].tolist()))
        mine = [int(cid) for cid in best if cid % 50 in (3, 4)]
        exact = table.search(query, 10, allowed=[3, 4], exact=True)
        assert [cid for cid, _ in exact.hits] == mine[:10]
        assert exact.rows == 240
        filtered = table.search(query, 10, allowed=[3, 4])
        assert len(filtered.hits) == 10
        assert {cid % 50 for cid, _ in filtered.hits} <= {3, 4}
        cosines = data @ query
        assert abs(found.mean - float(cosines.mean())) < 0.02
        assert abs(found.deviation - float(cosines.std())) < 0.02
    assert shared >= 90
    assert table.damaged_parts() == []


def test_a_folder_belongs_to_one_process(folder: str) -> None:
    tables.ChromaVectors(folder, "mine").state("s", "m")
    code = (
        "import sys; from findling_chroma.tables import ChromaVectors\n"
        "try: ChromaVectors(sys.argv[1], 'mine').state('s', 'm')\n"
        "except Exception as error: print(type(error).__name__, error.hint)"
    )
    told = run_process([sys.executable, "-c", code, folder], check=True).stdout
    assert told.startswith(f"{LockedError.__name__} chroma run")


def test_a_server_that_is_away() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(ProviderError, match="Chroma at http"):
        tables.ChromaVectors(url, "x").state("s", "m")


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    """Findling with the library, which takes 1.3 s of CPU to load."""
    made = Program("findling_chroma.tables", "chromadb")
    yield made
    made.close()


def command(program: Program, tmp_path: Path, *words: str, vectors: str, code: int = 0) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")},
        "FINDLING_HOME": str(tmp_path / "home"),
        "FINDLING_CONFIG": str(tmp_path / "none.toml"),
        **({"FINDLING_STORE_VECTORS": vectors} if vectors else {}),
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SERVE_AUTO": "never",
    }
    run = program.run(*words, cwd=tmp_path / "tree", env=environment)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.mark.parametrize("kind", ["folder", "server"])
def test_a_workspace_searches_by_meaning(
    program: Program, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    vectors = "chroma:" if kind == "folder" else f"chroma:{request.getfixturevalue('server')}"
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at nine.\n")
    (tmp_path / "tree" / "bread.md").write_text("# Bread\n\nKnead the dough for ten minutes.\n")
    asked = ("--mode", "semantic", "ship departure")
    found = command(program, tmp_path, *asked, vectors=vectors)
    assert "harbour.md" in found.splitlines()[0]
    (tmp_path / "tree" / "harbour.md").unlink()
    assert "harbour.md" not in command(
        program, tmp_path, "--mode", "semantic", "ship departure", vectors=vectors, code=1
    )
    assert "bread.md" in command(program, tmp_path, "--mode", "semantic", "knead", vectors=vectors)
    workspace = next(path for path in (tmp_path / "home").iterdir() if path.name[0] != ".")
    assert not list(workspace.glob("vectors-*"))
    assert (workspace / "chroma").is_dir() == (kind == "folder")
    command(program, tmp_path, "doctor", "--repair", vectors=vectors)
    command(program, tmp_path, "doctor", vectors=vectors)


def test_words_are_searched_without_the_server(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at nine.\n")
    told = command(program, tmp_path, "ferry", vectors="chroma:http://127.0.0.1:9")
    assert "harbour.md" in told
    assert "Chroma at http://127.0.0.1:9" in told
    assert "no installed package serves vectors" in command(program, tmp_path, "ferry", vectors="nonsense:x")


def test_no_project_file_names_a_place_of_vectors(program: Program, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at nine.\n")
    (tmp_path / "tree" / ".findling.toml").write_text('[store]\nvectors = "chroma:http://stranger.example"\n')
    told = command(program, tmp_path, "ferry", vectors="", code=2)
    assert "store.vectors" in told
