"""With a graph the matrix finds what it finds without; a graph that is missing, damaged or behind does no harm."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from findling.domain.ports import VectorHits
from findling.stores.vectors.vector_matrix import VectorMatrix
from tests.processes import run_process

# Not importorskip: loaded before onnxruntime it ends the process when a model is loaded, see `_usearch_index`.
pytestmark = pytest.mark.skipif(find_spec("usearch") is None, reason="needs the extra hnsw")

DIMENSIONS = 48
ROWS = 4_000
RESOURCES = 400


@pytest.mark.parametrize("share", [None, 0.5, 0.1, 0.01])
def test_finds_99_of_100(matrix_folder: Path, share: float | None) -> None:
    with_graph, without = _open(matrix_folder), _open(matrix_folder, graph_from=10**9)
    assert (with_graph.method, without.method) == ("hnsw", "exact")
    allowed = None if share is None else range(int(RESOURCES * share))
    found = 0.0
    for query in _vectors(60, seed=3):
        near, exact = with_graph.search(query, 10, allowed=allowed), without.search(query, 10, allowed=allowed)
        found += len({cid for cid, _ in near.hits} & {cid for cid, _ in exact.hits}) / 10
        assert near.rows == exact.rows
        assert near.mean == pytest.approx(exact.mean, abs=0.02)
        assert near.deviation == pytest.approx(exact.deviation, abs=0.02)
    assert found / 60 >= 0.99


def test_a_filter_far_from_the_query_is_answered_in_full(tmp_path: Path) -> None:
    vectors = _vectors(ROWS)
    towards = vectors[0]
    numbers = (np.argsort(np.argsort(vectors @ towards)) >= ROWS // 2).astype(int).tolist()
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(ROWS), numbers, vectors)
    matrix.commit(seq=1)
    assert matrix.method == "hnsw"
    far = np.flatnonzero(np.array(numbers) == 0)
    best = np.sort(vectors[far] @ towards)[::-1][:10].tolist()
    assert [score for _, score in matrix.search(towards, 10, allowed=[0]).hits] == pytest.approx(best, abs=1e-3)


def test_rows_the_graph_lacks_and_rows_it_should_not_show(matrix_folder: Path) -> None:
    matrix = _open(matrix_folder)
    saved = _graph_file(matrix_folder)
    query = _vectors(1, seed=8)
    gone = [cid for cid, _ in matrix.search(query[0], 10).hits]
    matrix.drop(gone[:5])
    matrix.add([90_000, gone[6]], [1, 1], np.vstack((query, -query)))
    matrix.commit(seq=2)
    assert _graph_file(matrix_folder) == saved, "two rows are not worth a new graph"
    for seen in (matrix, _open(matrix_folder)):
        assert seen.method == "hnsw"
        hits = [cid for cid, _ in seen.search(query[0], 10).hits]
        assert hits[0] == 90_000
        assert not {*gone[:5], gone[6]} & set(hits)
        assert len(hits) == 10


def test_grows_in_place_and_is_made_anew_when_rows_are_swept_out(matrix_folder: Path) -> None:
    matrix = _open(matrix_folder)
    more = _vectors(600, seed=12)
    matrix.add(range(10_000, 10_600), [7] * 600, more)
    matrix.commit(seq=2)
    assert _graph_file(matrix_folder) == f"1-graph-{ROWS + 600}"
    assert matrix.method == "hnsw"
    assert _found(matrix, more[:100], first=10_000) >= 98
    matrix.drop(range(2_000))
    matrix.commit(seq=3)
    assert _graph_file(matrix_folder) == f"2-graph-{ROWS - 1_400}"
    assert matrix.method == "hnsw"
    assert _found(matrix, more[:100], first=10_000) >= 98


def test_hundreds_of_equal_vectors_hide_nothing(tmp_path: Path) -> None:
    different = _vectors(1_000)
    equal = _vectors(4, seed=50).repeat(400, axis=0)
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(1_600), [cid % 2 for cid in range(1_600)], equal)
    matrix.add(range(2_000, 3_000), [2] * 1_000, different)
    matrix.drop([0, 800])
    matrix.commit(seq=1)
    assert matrix.method == "hnsw"
    assert _found(matrix, different[:100], first=2_000) >= 98
    for kind, first in enumerate((1, 400, 801, 1_200)):
        answer = matrix.search(equal[400 * kind], 20)
        assert [cid for cid, _ in answer.hits] == list(range(first, first + 20))
        odd = matrix.search(equal[400 * kind], 20, allowed=[1, 2])
        assert [cid for cid, _ in odd.hits] == list(range(first | 1, (first | 1) + 40, 2))


@pytest.mark.parametrize("damage", ["cut", "gone", "noise", "twins"])
def test_a_damaged_graph_does_no_harm_and_is_made_anew(matrix_folder: Path, damage: str) -> None:
    query = _vectors(1, seed=21)[0]
    before = _cids(_open(matrix_folder, graph_from=10**9).search(query, 10))
    graph = matrix_folder / _graph_file(matrix_folder)
    match damage:
        case "cut":
            os.truncate(graph, graph.stat().st_size // 2)
        case "gone":
            graph.unlink()
        case "twins":
            graph.with_name(graph.name.replace("graph", "twins")).write_bytes(bytes(16))
        case "noise":
            graph.write_bytes(b"\x07" * graph.stat().st_size)
    matrix = _open(matrix_folder)
    assert matrix.method == "exact"
    assert _cids(matrix.search(query, 10)) == before
    matrix.add(range(50_000, 50_300), [1] * 300, _vectors(300, seed=22))
    matrix.commit(seq=2)
    assert matrix.method == "hnsw"
    assert _cids(matrix.search(query, 10, allowed=range(2, RESOURCES)))


def test_without_the_extra_every_row_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)  # what an import meets when the package is missing
    vectors = _vectors(1_000)
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(1_000), [1] * 1_000, vectors)
    matrix.commit(seq=1)
    assert matrix.method == "exact"
    assert matrix.search(vectors[5], 1).hits[0][0] == 5
    monkeypatch.undo()
    matrix.commit(seq=2)
    assert matrix.method == "hnsw"


def test_the_first_query_does_not_wait_for_a_graph_to_be_opened(matrix_folder: Path) -> None:
    matrix = _open(matrix_folder)
    query = _vectors(1, seed=30)[0]
    first = matrix.search(query, 10)
    assert "graph" not in vars(matrix._view)
    assert _cids(matrix.search(query, 10)) == _cids(first)
    assert "graph" in vars(matrix._view)


def test_many_threads_may_ask_at_once(matrix_folder: Path) -> None:
    matrix = _open(matrix_folder)
    assert matrix.method == "hnsw"
    queries = list(_vectors(40, seed=31))
    alone = [_cids(matrix.search(query, 10)) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda query: _cids(matrix.search(query, 10)), queries * 3))
    assert together == alone * 3


@pytest.fixture
def matrix_folder(tmp_path: Path) -> Path:
    """A matrix of 4,000 rows with a graph."""
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(ROWS), [cid % RESOURCES for cid in range(ROWS)], _vectors(ROWS))
    matrix.commit(seq=1)
    matrix.close()
    return tmp_path / "vectors"


def _vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    centres = np.random.default_rng(99).standard_normal((40, DIMENSIONS))
    choose = np.random.default_rng(seed)
    rows = centres[choose.integers(0, 40, count)] + choose.standard_normal((count, DIMENSIONS)) + 0.5
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _found(matrix: VectorMatrix, vectors: NDArray[np.float32], *, first: int) -> int:
    """The number of vectors that are found by themselves, under ids that count from `first`.

    A graph that several threads build is never twice the same, and may miss one of many.
    """
    return sum(matrix.search(vector, 1).hits[0][0] == first + place for place, vector in enumerate(vectors))


def _cids(answer: VectorHits) -> list[int]:
    return [cid for cid, _ in answer.hits]


def _graph_file(folder: Path) -> str:
    (graph,) = folder.glob("*-graph-*")
    return graph.name


def _open(folder: Path, graph_from: int = 500) -> VectorMatrix:
    return VectorMatrix.open(folder, made_for="model", dimensions=DIMENSIONS, graph_from=graph_from)


def test_a_model_can_be_loaded_after_a_graph() -> None:
    """usearch before onnxruntime once ended the process."""
    script = (
        "from findling.stores.vectors.vector_graph import _usearch_index; _usearch_index();"
        "import onnxruntime; print(onnxruntime.get_available_providers())"
    )
    done = run_process([sys.executable, "-c", script])
    assert (done.returncode, "CPUExecutionProvider" in done.stdout) == (0, True), done.stderr
