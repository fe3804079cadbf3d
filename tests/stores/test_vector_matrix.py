"""The vector matrix answers as a dict of vectors would, before and after any number of commits."""

from __future__ import annotations

import ast
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import findling
from findling.domain.errors import CorruptError, ReadOnlyError
from findling.stores.filesystem import discard
from findling.stores.vectors import vector_scan
from findling.stores.vectors.vector_matrix import VectorMatrix

DIMENSIONS = 64
Vectors = NDArray[np.float32]


def test_an_empty_matrix_answers_and_creates_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    matrix = _open(folder)
    answer = matrix.search(unit_vectors(1)[0], 10, also=[1, 2])
    assert (answer.hits, answer.scores, answer.mean, answer.deviation, answer.rows) == ([], {}, 0.0, 0.0, 0)
    assert (len(matrix), matrix.state, matrix.cids()) == (0, {}, set())
    matrix.close()
    assert not folder.exists()


def test_rows_count_from_the_commit_on(tmp_path: Path) -> None:
    vectors = unit_vectors(3)
    writer = _open(tmp_path / "vectors")
    writer.add([10, 11, 12], [1, 1, 2], vectors)
    assert len(writer) == 0
    assert writer.search(vectors[0], 3).hits == []
    writer.commit(seq=5, mark=9)
    reader = _open(tmp_path / "vectors")
    for matrix in (writer, reader):
        assert matrix.state == {"seq": 5, "mark": 9}
        assert matrix.cids() == {10, 11, 12}
        assert dict(matrix.search(vectors[1], 1).hits) == {11: pytest.approx(1, abs=1e-3)}


def test_a_commit_without_rows_keeps_its_numbers(tmp_path: Path) -> None:
    _open(tmp_path / "vectors").commit(seq=3)
    assert _open(tmp_path / "vectors").state == {"seq": 3}


@pytest.mark.parametrize("part", ["stores/vectors", "pipelines/retrieve", "models/local/instant.py"])
def test_no_search_multiplies_by_blas(part: str) -> None:
    """On aarch64 BLAS wakes threads for a product of 10,000 numbers, which spin for 12 ms of CPU after a query."""
    place = Path(findling.__file__).parent / part
    modules = [place] if place.is_file() else sorted(place.glob("*.py"))
    assert modules
    for module in modules:
        products = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.MatMult)]
        assert not products, module


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    vectors = unit_vectors(4)
    matrix = _open(tmp_path / "vectors")
    matrix.add([1, 2], [1, 1], vectors[:2])
    matrix.commit(seq=1)
    matrix.add([3], [1], vectors[2:3])
    matrix.drop([1])
    matrix.close()
    matrix = _open(tmp_path / "vectors")
    assert matrix.cids() == {1, 2}
    matrix.add([4], [1], vectors[3:])
    matrix.commit(seq=2)
    assert _open(tmp_path / "vectors").cids() == {1, 2, 4}
    assert _open(tmp_path / "vectors").search(vectors[3], 1).hits[0][0] == 4


@pytest.mark.parametrize("seed", range(6))
def test_any_history_gives_what_a_dict_gives(tmp_path: Path, seed: int) -> None:
    choose = np.random.default_rng(seed)
    folder = tmp_path / "vectors"
    matrix = _open(folder)
    committed: dict[int, tuple[int, Vectors]] = {}
    held: dict[int, tuple[int, Vectors]] = {}
    state: dict[str, int] = {}
    for turn in range(1, 60):
        match choose.choice(["add", "add", "drop", "commit", "reopen", "clear"], p=[0.3, 0.2, 0.2, 0.2, 0.08, 0.02]):
            case "add":
                cids = choose.choice(2_500, 400, replace=False).tolist()
                numbers = choose.integers(0, 50, 400).tolist()
                vectors = unit_vectors(400, seed=seed * 1_000 + turn)
                matrix.add(cids, numbers, vectors)
                held |= {cid: (number, vector) for cid, number, vector in zip(cids, numbers, vectors, strict=True)}
            case "drop":
                gone = choose.choice(2_500, 300).tolist()
                matrix.drop(gone)
                held = {cid: row for cid, row in held.items() if cid not in gone}
            case "commit":
                matrix.commit(seq=turn)
                committed, state = dict(held), {"seq": turn}
            case "reopen":
                matrix.close()
                matrix = _open(folder)
                held = dict(committed)
            case "clear":
                matrix.clear()
                matrix.commit(seq=turn)
                held, committed, state = {}, {}, {"seq": turn}
        assert matrix.state == state
        assert len(matrix) == len(committed)
    assert_same(matrix, committed, choose)
    assert_same(_open(folder), committed, choose)
    matrix.close()


def test_dead_rows_are_swept_out_and_their_files_removed(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    vectors = unit_vectors(4_000)
    matrix = _open(folder)
    matrix.add(range(4_000), [1] * 4_000, vectors)
    matrix.commit(seq=1)
    size = (folder / "1-codes").stat().st_size
    matrix.drop(range(0, 4_000, 2))
    matrix.commit(seq=2)
    assert sorted(file.name.partition("-")[0] for file in folder.glob("*-codes")) == ["2"]
    assert (folder / "2-codes").stat().st_size == size // 2
    assert matrix.cids() == set(range(1, 4_000, 2))
    assert matrix.search(vectors[77], 1).hits[0][0] == 77
    matrix.add([0], [3], vectors[:1])
    matrix.commit(seq=3)
    assert _open(folder).search(vectors[0], 1, allowed={3}).hits[0][0] == 0


def test_vectors_that_codes_hold_take_no_more_bytes_until_others_come(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    codes = chance.integers(-127, 128, (6_000, DIMENSIONS), np.int8)
    codes[:, 0] = 127
    whole = np.asarray(codes / np.linalg.norm(codes, axis=1, keepdims=True), np.float32)
    precise, query = unit_vectors(5, seed=5), unit_vectors(1, seed=6)[0]
    matrix = _open(tmp_path / "vectors")
    matrix.add_codes(range(3_000), [1] * 3_000, [row.tobytes() for row in codes[:3_000]])
    matrix.add(range(3_000, 6_000), [1] * 3_000, whole[3_000:])
    matrix.commit(seq=1)
    assert (tmp_path / "vectors" / "1-rest").stat().st_size == 0
    matrix.add(range(6_000, 6_005), [1] * 5, precise)
    matrix.commit(seq=2)
    matrix.add_codes([6_005], [1], [codes[0].tobytes()])
    matrix.drop(range(4_000))
    matrix.commit(seq=3)
    for seen in (matrix, _open(tmp_path / "vectors")):
        assert seen.damaged_parts() == []
        found = seen.search(query, 0, also=range(6_006)).scores
        rows = {**dict(enumerate(whole)), **dict(enumerate(precise, 6_000)), 6_005: whole[0]}
        # 16 bits a value: as near as 1/60,000 of the largest.
        assert found == {cid: pytest.approx(float(rows[cid] @ query), abs=2e-5) for cid in range(4_000, 6_006)}


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
def test_nearest_of_the_allowed_resources(tmp_path: Path, share: float) -> None:
    vectors = text_like_vectors(6_000)
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(6_000), [cid // 3 for cid in range(6_000)], vectors)
    matrix.commit(seq=1)
    allowed = set(np.random.default_rng(1).choice(2_000, int(2_000 * share), replace=False).tolist())
    passing = [cid for cid in range(6_000) if cid // 3 in allowed]
    found = 0.0
    for query in text_like_vectors(40, seed=5):
        answer = matrix.search(query, 10, allowed=allowed)
        truth = vectors[passing] @ query
        assert answer.rows == len(passing)
        assert answer.mean == pytest.approx(truth.mean(), abs=1e-3)
        assert answer.deviation == pytest.approx(truth.std(), abs=1e-3)
        best = {passing[place] for place in np.argsort(-truth)[:10]}
        found += len(best & {cid for cid, _ in answer.hits}) / 10
    assert found / 40 >= 0.99


def test_nothing_allowed_and_numbers_far_apart(tmp_path: Path) -> None:
    vectors = unit_vectors(3)
    matrix = _open(tmp_path / "vectors")
    matrix.add([1, 2, 3], [5, 2**40, 7], vectors)
    matrix.commit(seq=1)
    assert matrix.search(vectors[0], 5, allowed=()).rows == 0
    assert matrix.search(vectors[0], 5, allowed=[99]).hits == []
    assert [cid for cid, _ in matrix.search(vectors[0], 5, allowed=[2**40, 99]).hits] == [2]


def test_asked_for_besides(tmp_path: Path) -> None:
    vectors = unit_vectors(300)
    matrix = _open(tmp_path / "vectors")
    matrix.add(range(1_000, 1_300), [1] * 300, vectors)
    matrix.drop([1_007])
    matrix.commit(seq=1)
    scores = matrix.search(vectors[0], 0, allowed=[2], also=[1_299, 1_000, 1_007, 5, 1_299]).scores
    assert scores == {
        1_000: pytest.approx(1, abs=1e-3),
        1_299: pytest.approx(float(vectors[299] @ vectors[0]), abs=1e-3),
    }


@pytest.mark.parametrize("limit", [1, 7, 100])
@pytest.mark.parametrize("rows", [1, 99, 2_000, 9_001])
@pytest.mark.parametrize("step", [1e-6, 0.001, 0.5])
def test_rows_that_may_be_the_best_are_all_taken_in_full(rows: int, limit: int, step: float) -> None:
    values = (np.random.default_rng(rows).normal(0, 0.1, rows) / step).round().astype(np.float32) * np.float32(step)
    found = vector_scan._nearest(values, limit)
    most = vector_scan.fetched(limit)
    in_order = sorted(range(rows), key=lambda row: (-values[row], row))
    least = values[in_order[min(limit, rows) - 1]] - np.float32(vector_scan._MARGIN)
    near = [row for row in in_order if values[row] >= least] if rows > most else in_order
    assert sorted(found.tolist()) == sorted(near[:most])


def test_codes_that_give_no_numbers_are_no_candidates() -> None:
    values = np.full(5_000, np.nan, np.float32)
    assert not len(vector_scan._nearest(values, 10))
    values[17:40] = 0.5
    assert set(vector_scan._nearest(values, 10).tolist()) <= set(range(17, 40))


def test_equal_vectors_come_in_the_order_of_their_ids(tmp_path: Path) -> None:
    vector = unit_vectors(1)
    matrix = _open(tmp_path / "vectors")
    matrix.add([9, 3, 7, 1], [1] * 4, vector.repeat(4, axis=0))
    matrix.commit(seq=1)
    assert [cid for cid, _ in matrix.search(vector[0], 3).hits] == [1, 3, 7]


def test_vectors_of_another_model_are_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    matrix = _open(folder)
    matrix.add([1], [1], unit_vectors(1))
    matrix.commit(seq=1)
    other = VectorMatrix.open(folder, made_for="another", dimensions=DIMENSIONS)
    wider = VectorMatrix.open(folder, made_for="model", dimensions=32)
    assert (len(other), other.state, len(wider)) == (0, {}, 0)
    other.add([2], [1], unit_vectors(1, seed=2))
    assert len(_open(folder)) == 1, "until the commit the old one stays"
    other.commit(seq=4)
    assert len(_open(folder)) == 0
    assert len(matrix.search(unit_vectors(1)[0], 1).hits) == 1, "a reader keeps what it has opened"
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps(header | {"layout": 0, "unheard": 1}))
    assert len(VectorMatrix.open(folder, made_for="another", dimensions=DIMENSIONS)) == 0


@pytest.mark.parametrize("name", ["1-codes", "1-scales", "1-rest", "1-signs", "1-cids", "1-numbers", "1-dead"])
def test_a_file_that_was_cut_short_or_lost_is_reported(tmp_path: Path, name: str) -> None:
    folder = _small_matrix(tmp_path)
    file = folder / name
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(CorruptError, match=name) as caught:
        _open(folder)
    assert caught.value.hint == "findling doctor --repair"
    file.unlink()
    with pytest.raises(CorruptError, match=name):
        _open(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"layout": 4}', '{"layout": 4, "made_for": 3, "dimensions": 64}', "\xff"]
)
def test_a_damaged_header_is_reported(tmp_path: Path, text: str) -> None:
    folder = _small_matrix(tmp_path)
    (folder / "header.json").write_text(text, "latin-1")
    with pytest.raises(CorruptError, match=r"header\.json"):
        _open(folder)
    discard(folder)
    assert len(_open(folder)) == 0


def test_a_dead_row_that_is_not_there_is_reported(tmp_path: Path) -> None:
    folder = _small_matrix(tmp_path)
    (folder / "1-dead").write_bytes(np.array([77], "<i8").tobytes())
    with pytest.raises(CorruptError, match="dead"):
        _open(folder)


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    folder = _small_matrix(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = _small_matrix(tmp_path)
    folder.chmod(0o500)
    try:
        matrix = _open(folder)
        assert len(matrix) == 2
        with pytest.raises(ReadOnlyError, match="vectors"):
            matrix.commit(seq=2)
    finally:
        folder.chmod(0o700)


def test_vectors_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    matrix = _open(tmp_path / "vectors")
    with pytest.raises(ValueError, match="shape"):
        matrix.add([1, 2], [1, 1], unit_vectors(1))
    with pytest.raises(ValueError, match="shape"):
        matrix.add([1], [1], np.ones((1, 3), np.float32))
    with pytest.raises(ValueError, match="finite"):
        matrix.add([1], [1], np.full((1, DIMENSIONS), np.nan, np.float32))
    matrix.add([], [], np.empty((0, DIMENSIONS), np.float32))
    assert not (tmp_path / "vectors").exists()


def test_a_query_or_a_row_of_zeros_is_near_to_nothing(tmp_path: Path) -> None:
    matrix = _open(tmp_path / "vectors")
    matrix.add([1, 2], [1, 1], np.vstack((np.zeros((1, DIMENSIONS), np.float32), unit_vectors(1))))
    matrix.commit(seq=1)
    assert matrix.search(np.zeros(DIMENSIONS, np.float32), 2).hits == [(1, 0.0), (2, 0.0)]
    assert matrix.search(unit_vectors(1)[0], 2).hits[1] == (1, 0.0)


def unit_vectors(count: int, seed: int = 0) -> Vectors:
    """Random directions."""
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSIONS))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def text_like_vectors(count: int, seed: int = 0) -> Vectors:
    """Directions in loose clusters with a common lean, as vectors of texts are."""
    centres = np.random.default_rng(99).standard_normal((60, DIMENSIONS))
    choose = np.random.default_rng(seed)
    rows = centres[choose.integers(0, 60, count)] + choose.standard_normal((count, DIMENSIONS)) + 0.5
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def assert_same(matrix: VectorMatrix, held: dict[int, tuple[int, Vectors]], choose: np.random.Generator) -> None:
    """The matrix holds these rows and finds the nearest of them."""
    assert matrix.cids() == set(held)
    for query in unit_vectors(5, seed=4_242):
        allowed = None if choose.random() < 0.4 else choose.choice(50, 12, replace=False).tolist()
        truth = {
            cid: float(vector @ query) for cid, (number, vector) in held.items() if allowed is None or number in allowed
        }
        answer = matrix.search(query, 10, allowed=allowed, also=list(held)[:5])
        assert answer.rows == len(truth)
        assert [score for _, score in answer.hits] == pytest.approx(sorted(truth.values())[::-1][:10], abs=1e-3)
        assert all(score == pytest.approx(truth[cid], abs=1e-3) for cid, score in answer.hits)
        assert answer.scores == {cid: pytest.approx(float(held[cid][1] @ query), abs=1e-3) for cid in list(held)[:5]}


def _small_matrix(tmp_path: Path) -> Path:
    folder = tmp_path / "vectors"
    matrix = _open(folder)
    matrix.add([1, 2, 3], [1, 1, 1], unit_vectors(3))
    matrix.drop([2])
    matrix.commit(seq=1)
    matrix.close()
    return folder


def _open(folder: Path) -> VectorMatrix:
    return VectorMatrix.open(folder, made_for="model", dimensions=DIMENSIONS)
