"""How the engines of `bench/vectors.py` build, and how they are opened: findling's matrix and its peers."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.stores.vectors.vector_matrix import VectorMatrix

__all__ = [
    "BATCH",
    "ENGINES",
    "RESOURCE_ROWS",
    "SHARES",
    "Search",
    "Shape",
    "Vectors",
    "allowed_mask",
    "missing",
    "shape_for",
]

Vectors = NDArray[np.float32]
Search = Callable[[Vectors, int], list[int]]
"""Finds ten rows for a query among resources whose lot is below a number: 100 for all of them."""

RESOURCE_ROWS = 8
SHARES = {"all": 100, "10 %": 10, "1 %": 1}
NEEDS = {"findling": "numpy", "usearch": "usearch", "faiss": "faiss", "hnswlib": "hnswlib", "sqlite-vec": "sqlite_vec"}
BATCH = 10_000


class Shape(NamedTuple):
    """Neighbours a row of a graph, and how many candidates are held while building and while searching."""

    connectivity: int
    expansion_add: int
    expansion_search: int


def shape_for(rows: int) -> Shape:
    """The shape of a peer's graph of this size: its search is wide enough to find 99 of 100."""
    if rows < 100_000:
        return Shape(16, 64, 640)
    if rows < 1_000_000:
        return Shape(24, 128, 640)
    return Shape(32, 200, 640)


def missing(name: str) -> str:
    """Why an engine cannot take part; empty when it can."""
    if importlib.util.find_spec(NEEDS[name]) is None:
        return "is not installed"
    if name == "sqlite-vec" and not hasattr(sqlite3.Connection, "enable_load_extension"):
        return "" if importlib.util.find_spec("apsw") else "needs apsw, as this Python's sqlite3 loads no extensions"
    return ""


def allowed_mask(lots: NDArray[np.int64], lot: int) -> NDArray[np.bool_]:
    """Marks the rows of resources whose lot is below `lot`."""
    return np.asarray((lots < lot).repeat(RESOURCE_ROWS))


def _findling_build(folder: Path, vectors: Vectors, lots: NDArray[np.int64], shape: Shape) -> None:
    matrix = VectorMatrix.open(folder / "matrix", made_for="bench", dimensions=vectors.shape[1])
    for start in range(0, len(vectors), BATCH):
        rows = range(start, min(start + BATCH, len(vectors)))
        matrix.add(rows, [row // RESOURCE_ROWS for row in rows], vectors[rows.start : rows.stop])
    matrix.commit(seq=1)


def _findling_open(folder: Path, dimensions: int, lots: NDArray[np.int64], shape: Shape) -> Search:
    matrix = VectorMatrix.open(folder / "matrix", made_for="bench", dimensions=dimensions)
    allowed = {lot: None if lot == 100 else set(np.flatnonzero(lots < lot).tolist()) for lot in SHARES.values()}
    return lambda query, lot: [cid for cid, _ in matrix.search(query, 10, allowed=allowed[lot]).hits]


def _usearch_build(folder: Path, vectors: Vectors, lots: NDArray[np.int64], shape: Shape) -> None:
    from usearch.index import Index  # type: ignore[import-not-found, import-untyped, unused-ignore]

    index = Index(
        ndim=vectors.shape[1],
        metric="cos",
        dtype="f16",
        connectivity=shape.connectivity,
        expansion_add=shape.expansion_add,
    )
    for start in range(0, len(vectors), BATCH):
        rows = vectors[start : start + BATCH]
        index.add(np.arange(start, start + len(rows), dtype=np.uint64), rows, threads=1)
    index.save(str(folder / "index"))


def _usearch_open(folder: Path, dimensions: int, lots: NDArray[np.int64], shape: Shape) -> Search:
    from usearch.index import Index

    index = Index.restore(str(folder / "index"), view=True, expansion_search=shape.expansion_search)
    assert index is not None
    allowed = {lot: allowed_mask(lots, lot) for lot in SHARES.values()}

    def search(query: Vectors, lot: int) -> list[int]:
        # It has no filters in Python: twice as many are fetched as should leave ten.
        keys = np.asarray(index.search(query, 2000 // lot if lot < 100 else 10, threads=1).keys).astype(np.int64)
        return [int(key) for key in keys[allowed[lot][keys]][:10]]

    return search


def _faiss_build(folder: Path, vectors: Vectors, lots: NDArray[np.int64], shape: Shape) -> None:
    import faiss  # type: ignore[import-not-found, import-untyped, unused-ignore]

    index = faiss.IndexHNSWFlat(vectors.shape[1], shape.connectivity, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = shape.expansion_add
    for start in range(0, len(vectors), BATCH):
        index.add(np.ascontiguousarray(vectors[start : start + BATCH]))
    faiss.write_index(index, str(folder / "index"))


def _faiss_open(folder: Path, dimensions: int, lots: NDArray[np.int64], shape: Shape) -> Search:
    import faiss

    index = faiss.read_index(str(folder / "index"))
    bits = {lot: np.packbits(allowed_mask(lots, lot), bitorder="little") for lot in SHARES.values() if lot < 100}
    chosen = {lot: faiss.IDSelectorBitmap(mask) for lot, mask in bits.items()}
    ef = shape.expansion_search
    plans = {lot: faiss.SearchParametersHNSW(efSearch=ef, sel=selector) for lot, selector in chosen.items()}
    plans[100] = faiss.SearchParametersHNSW(efSearch=ef)
    return lambda query, lot: [
        row for row in index.search(query[None], 10, params=plans[lot])[1][0].tolist() if row >= 0
    ]


def _hnswlib_build(folder: Path, vectors: Vectors, lots: NDArray[np.int64], shape: Shape) -> None:
    import hnswlib  # type: ignore[import-not-found, import-untyped, unused-ignore]

    index = hnswlib.Index("ip", vectors.shape[1])
    index.init_index(len(vectors), M=shape.connectivity, ef_construction=shape.expansion_add)
    for start in range(0, len(vectors), BATCH):
        index.add_items(vectors[start : start + BATCH], num_threads=1)
    index.save_index(str(folder / "index"))


def _hnswlib_open(folder: Path, dimensions: int, lots: NDArray[np.int64], shape: Shape) -> Search:
    import hnswlib

    index = hnswlib.Index("ip", dimensions)
    index.load_index(str(folder / "index"))
    index.set_ef(shape.expansion_search)
    allowed = {lot: allowed_mask(lots, lot).tolist() for lot in SHARES.values()}

    def search(query: Vectors, lot: int) -> list[int]:
        passes = None if lot == 100 else allowed[lot].__getitem__
        try:
            labels, _ = index.knn_query(query, 10, num_threads=1, filter=passes)
        except RuntimeError:
            return []  # it fails when fewer than ten are left
        return [int(label) for label in labels[0]]

    return search


def _sqlite_vec_build(folder: Path, vectors: Vectors, lots: NDArray[np.int64], shape: Shape) -> None:
    connection = _sqlite_vec(folder)
    columns = f"vector float[{vectors.shape[1]}] distance_metric=cosine, lot integer"
    connection.execute(f"CREATE VIRTUAL TABLE rows USING vec0({columns})")
    row_lots = lots.repeat(RESOURCE_ROWS).tolist()
    with connection:
        entries = ((row, vectors[row].tobytes(), row_lots[row]) for row in range(len(vectors)))
        connection.executemany("INSERT INTO rows(rowid, vector, lot) VALUES (?, ?, ?)", entries)
    connection.close()


def _sqlite_vec_open(folder: Path, dimensions: int, lots: NDArray[np.int64], shape: Shape) -> Search:
    connection = _sqlite_vec(folder)
    everything = "SELECT rowid FROM rows WHERE vector MATCH ? AND k = 10"

    def search(query: Vectors, lot: int) -> list[int]:
        if lot == 100:
            return [row for (row,) in connection.execute(everything, (query.tobytes(),))]
        return [row for (row,) in connection.execute(f"{everything} AND lot < ?", (query.tobytes(), lot))]

    return search


def _sqlite_vec(folder: Path) -> Any:
    import sqlite_vec  # type: ignore[import-not-found, import-untyped, unused-ignore]

    connection = _sqlite_module().Connection(str(folder / "rows.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    return connection


def _sqlite_module() -> Any:
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    import apsw  # type: ignore[import-not-found, import-untyped, unused-ignore]  # for a Python built without extensions

    return apsw


ENGINES: dict[str, tuple[Callable[..., None], Callable[..., Search]]] = {
    "findling": (_findling_build, _findling_open),
    "usearch": (_usearch_build, _usearch_open),
    "faiss": (_faiss_build, _faiss_open),
    "hnswlib": (_hnswlib_build, _hnswlib_open),
    "sqlite-vec": (_sqlite_vec_build, _sqlite_vec_open),
}
