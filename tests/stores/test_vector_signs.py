"""A large matrix that looks at signs first finds what a look at every row finds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from findling.domain.ports import VectorHits
from findling.stores.vectors import vector_signs, vector_view
from findling.stores.vectors.vector_matrix import VectorMatrix
from findling.stores.vectors.vector_scan import Query

DIMENSIONS = 200
ROWS = 8_000
RESOURCES = 400


@pytest.mark.parametrize("share", [None, 0.5, 0.1, 0.01])
def test_finds_99_of_100(matrix_folder: Path, share: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_view, "_SAMPLE", 2_000)
    coarse, exact = _open(matrix_folder), _open(matrix_folder, coarse_from=10**9)
    allowed = None if share is None else range(int(RESOURCES * share))
    found = 0.0
    for query in _vectors(60, seed=3):
        near, every = coarse.search(query, 10, allowed=allowed), exact.search(query, 10, allowed=allowed)
        found += len({cid for cid, _ in near.hits} & {cid for cid, _ in every.hits}) / 10
        assert near.rows == every.rows
        assert near.mean == pytest.approx(every.mean, abs=0.02)
        assert near.deviation == pytest.approx(every.deviation, abs=0.02)
    assert found / 60 >= 0.99


def test_a_search_looks_closely_at_few_rows(matrix_folder: Path) -> None:
    columns, query = _open(matrix_folder)._view.columns, Query.of(_vectors(1, seed=8)[0])
    near = vector_signs.near_rows(columns, query, 10, None)
    differing = (np.sign(columns.codes) > 0) != (query.codes > 0)
    counts = differing.sum(axis=1)
    assert 0.03 * ROWS < len(near) < 0.08 * ROWS
    assert near.tolist() == np.flatnonzero(counts <= counts[near].max()).tolist()
    keep = np.arange(ROWS) % 2 == 1
    assert set(vector_signs.near_rows(columns, query, 10, keep).tolist()) <= set(range(1, ROWS, 2))


def test_where_most_rows_are_wanted_all_are_looked_at(matrix_folder: Path) -> None:
    query = _vectors(1, seed=9)[0]
    for limit in (ROWS // 50, ROWS, 10 * ROWS):
        answer = _open(matrix_folder).search(query, limit)
        assert answer == _open(matrix_folder, coarse_from=10**9).search(query, limit)
        assert len(answer.hits) == min(limit, ROWS)


def test_a_filter_far_from_the_query_is_answered_in_full(tmp_path: Path) -> None:
    vectors = _vectors(ROWS)
    towards = vectors[0]
    numbers = (np.argsort(np.argsort(vectors @ towards)) >= ROWS // 2).astype(int).tolist()
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(ROWS), numbers, vectors)
    matrix.commit(seq=1)
    far = np.flatnonzero(np.array(numbers) == 0)
    best = np.sort(vectors[far] @ towards)[::-1][:10].tolist()
    assert [score for _, score in matrix.search(towards, 10, allowed=[0]).hits] == pytest.approx(best, abs=1e-3)


def test_rows_that_died_and_rows_that_were_added_since(matrix_folder: Path) -> None:
    matrix = _open(matrix_folder)
    query = _vectors(1, seed=8)
    gone = [cid for cid, _ in matrix.search(query[0], 10).hits]
    matrix.drop(gone[:5])
    matrix.add([90_000, gone[6]], [1, 1], np.vstack((query, -query)))
    matrix.commit(seq=2)
    for seen in (matrix, _open(matrix_folder)):
        hits = [cid for cid, _ in seen.search(query[0], 10).hits]
        assert hits[0] == 90_000
        assert not {*gone[:5], gone[6]} & set(hits)
        assert len(hits) == 10


def test_hundreds_of_equal_vectors_hide_nothing(tmp_path: Path) -> None:
    different = _vectors(1_000)
    equal = _vectors(4, seed=50).repeat(400, axis=0)
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(1_600), [cid % 2 for cid in range(1_600)], equal)
    matrix.add(range(2_000, 3_000), [2] * 1_000, different)
    matrix.drop([0, 800])
    matrix.commit(seq=1)
    found = [matrix.search(vector, 1).hits[0][0] for vector in different[:100]]
    assert found == list(range(2_000, 2_100))
    for kind, first in enumerate((1, 400, 801, 1_200)):
        answer = matrix.search(equal[400 * kind], 20)
        assert [cid for cid, _ in answer.hits] == list(range(first, first + 20))
        odd = matrix.search(equal[400 * kind], 20, allowed=[1, 2])
        assert [cid for cid, _ in odd.hits] == list(range(first | 1, (first | 1) + 40, 2))


def test_rows_without_a_direction_and_a_query_without_one(tmp_path: Path) -> None:
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(1_000), [1] * 1_000, np.zeros((1_000, DIMENSIONS), np.float32))
    matrix.commit(seq=1)
    assert [score for _, score in matrix.search(_vectors(1)[0], 5).hits] == [0.0] * 5
    assert [score for _, score in matrix.search(np.zeros(DIMENSIONS, np.float32), 5).hits] == [0.0] * 5


@pytest.mark.parametrize("dimensions", [1, 63, 64, 65, 384])
def test_without_the_core_the_same_signs_differ(dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_signs, "native", None)
    chance = np.random.default_rng(dimensions)
    codes = chance.integers(-127, 128, (vector_signs._BLOCK + 7, dimensions), np.int8)
    signs = vector_signs.signs_of(codes)
    expected = ((codes > 0) != (codes[3] > 0)).sum(axis=1)
    assert vector_signs.differing_signs(signs[3], signs).tolist() == expected.tolist()


def test_many_threads_may_ask_at_once(matrix_folder: Path) -> None:
    matrix = _open(matrix_folder)
    queries = list(_vectors(40, seed=31))
    alone = [_cids(matrix.search(query, 10)) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda query: _cids(matrix.search(query, 10)), queries * 3))
    assert together == alone * 3


@pytest.fixture
def matrix_folder(tmp_path: Path) -> Path:
    """A matrix of 8,000 rows, which looks at signs first."""
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


def _cids(answer: VectorHits) -> list[int]:
    return [cid for cid, _ in answer.hits]


def _open(folder: Path, coarse_from: int = 500) -> VectorMatrix:
    return VectorMatrix.open(folder, made_for="model", dimensions=DIMENSIONS, coarse_from=coarse_from)
