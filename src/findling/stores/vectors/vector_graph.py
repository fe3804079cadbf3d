"""A graph of neighbours (HNSW) over the codes of a large matrix, where looking at every row would take too long.

It needs the extra `hnsw`; without it, or with a damaged graph, the matrix looks at every row. A
graph may lag behind the matrix, and it knows nothing of rows that have died.

Of rows with equal codes it holds the first: hundreds of equal rows (licences, empty templates) would be neighbours of
each other alone, and whatever lies beyond could not be reached. The others, its twins, are kept in a list beside it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.domain.strangers import silence_telemetry
from findling.stores.filesystem import sync_folder
from findling.stores.vectors.vector_files import MatrixHeader, create_private, file_sum, write_all
from findling.stores.vectors.vector_scan import Query

if TYPE_CHECKING:
    from usearch.index import Index

__all__ = ["Graph", "Shape", "grow_graph", "is_behind", "is_graph_sound", "open_graph", "shape_for"]

_LAG = 20
"""A graph grows once it misses 1/20 of the rows: until then a look at those one by one costs less."""

_STEP = 100_000
"""Rows indexed before the graph is saved, which a stopped process loses."""


class Shape(NamedTuple):
    """Neighbours a row, and how many candidates are held while building and while searching."""

    connectivity: int
    expansion_add: int
    expansion_search: int


def shape_for(rows: int) -> Shape:
    """The shape of a graph of this size: the search is wide enough to find 99 of 100 (measured on text vectors)."""
    if rows < 100_000:
        return Shape(16, 64, 640)
    if rows < 1_000_000:
        return Shape(24, 128, 640)
    return Shape(32, 200, 640)


class Graph:
    """A graph in its file, mapped into memory."""

    def __init__(self, folder: Path, header: MatrixHeader) -> None:
        """Raises ImportError without the extra; OSError, RuntimeError or ValueError when a file is damaged."""
        self.rows = header.graph_rows
        self._index = _load(_path(folder, header), header.rows, view=True)
        self._firsts, self._twins = np.fromfile(_twins_path(folder, header), "<i8").reshape(2, -1)

    def nearest(self, query: Query, wanted: int, keep: NDArray[np.bool_] | None, most_twins: int) -> NDArray[np.int64]:
        """About `wanted` rows nearest to the query, and twins of them; then without those that `keep` does not mark."""
        matches = self._index.search(query.codes[0], wanted, threads=1)
        near = np.asarray(matches.keys).astype(np.int64)
        starts, stops = np.searchsorted(self._firsts, near), np.searchsorted(self._firsts, near, side="right")
        groups = [near]
        for group in np.flatnonzero(starts < stops):
            groups.append(_kept(self._twins[starts[group] : stops[group]], keep)[:most_twins])
        return _kept(np.concatenate(groups), keep)


def open_graph(folder: Path, header: MatrixHeader) -> Graph | None:
    """The graph that the header names; `None` when there is none that can be used."""
    if not _is_whole(folder, header):
        return None
    try:
        return Graph(folder, header)
    except (ImportError, OSError, RuntimeError, ValueError):
        return None  # the matrix is complete without it


def is_behind(folder: Path, header: MatrixHeader, graph_from: int) -> bool:
    """Whether a matrix of this size should have a graph that holds more than it does."""
    held = header.graph_rows if _is_whole(folder, header) else 0
    return header.rows >= graph_from and header.rows - held > header.rows // _LAG


def is_graph_sound(folder: Path, header: MatrixHeader) -> bool:
    """Whether the graph, if there is one, is what was written; every byte of it is looked at."""
    if header.graph_rows == 0:
        return True
    return _is_whole(folder, header) and (
        file_sum(_path(folder, header), _twins_path(folder, header)) == header.graph_sum
    )


def grow_graph(folder: Path, header: MatrixHeader, codes: NDArray[np.int8]) -> Iterator[MatrixHeader]:
    """Add the missing rows, step by step; yield the header that publishes each step.

    Does nothing without the extra `hnsw`. Raises OSError when the graph cannot be saved.
    """
    try:
        index = _writable(folder, header)
    except ImportError:
        return
    firsts = _first_equals(codes)
    start = header.graph_rows if len(index) else 0
    while start < header.rows:
        stop = min(start + _STEP, header.rows)
        rows = start + np.flatnonzero(firsts[start:stop] == np.arange(start, stop))
        if len(rows):
            index.add(rows.astype(np.uint64), np.take(codes, rows, axis=0))
        header = header._replace(graph_rows=stop)
        twins = _save_twins(firsts[:stop], _twins_path(folder, header))
        header = header._replace(graph_bytes=_save(index, _path(folder, header)), graph_twins=twins)
        header = header._replace(graph_sum=file_sum(_path(folder, header), _twins_path(folder, header)))
        yield header
        start = stop


def _first_equals(codes: NDArray[np.int8]) -> NDArray[np.int64]:
    """For every row the first one with the same codes."""
    # 64 bits of a keyed hash: among a million rows two are taken for equal by mistake once in 30 million times.
    digests = np.fromiter((hash(row.tobytes()) for row in codes), np.int64, len(codes))
    _, first, group = np.unique(digests, return_index=True, return_inverse=True)
    return first[group]


def _save_twins(firsts: NDArray[np.int64], path: Path) -> int:
    twins = np.flatnonzero(firsts != np.arange(len(firsts)))
    twins = twins[np.argsort(firsts[twins], kind="stable")]
    draft = path.with_name("twins.new")
    with create_private(draft) as file:
        write_all(file, np.stack((firsts[twins], twins)).astype("<i8").tobytes())
        os.fsync(file.fileno())
    draft.replace(path)
    return len(twins)


def _kept(rows: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    return rows if keep is None else rows[keep[rows]]


def _usearch_index() -> type[Index]:
    """The class of the library, loaded so that a model can still be loaded after it."""
    # usearch opens the symbols of a library of its own to everything that is loaded later, and onnxruntime crashes
    # over them while it is imported (2.26 and 1.31). Loaded first, it does not see them. 45 ms.
    silence_telemetry()
    with suppress(ImportError):
        import_module("onnxruntime")
    from usearch.index import Index

    return Index


def _writable(folder: Path, header: MatrixHeader) -> Index:
    shape = shape_for(header.rows)
    if _is_whole(folder, header):
        # One that is damaged, or of a shape for fewer rows, is rebuilt.
        with suppress(RuntimeError, ValueError):
            index = _load(_path(folder, header), header.rows, view=False)
            if index.connectivity == shape.connectivity:
                return index
    return _usearch_index()(
        ndim=header.dimensions,
        metric="cos",  # blind to the scale of a row's codes
        dtype="i8",
        connectivity=shape.connectivity,
        expansion_add=shape.expansion_add,
        enable_key_lookups=False,
    )


def _load(path: Path, rows: int, *, view: bool) -> Index:
    shape = shape_for(rows)
    index = _usearch_index().restore(
        str(path),
        view=view,
        expansion_add=shape.expansion_add,
        expansion_search=shape.expansion_search,
        enable_key_lookups=False,  # nothing is looked up by its key; opening takes a third of the time
    )
    if index is None:
        raise ValueError(f"{path} is no graph")
    return index


def _is_whole(folder: Path, header: MatrixHeader) -> bool:
    if header.graph_rows == 0:
        return False
    # A graph that was cut short would bring the process down once it is mapped.
    try:
        sizes = _path(folder, header).stat().st_size, _twins_path(folder, header).stat().st_size
    except OSError:
        return False
    return sizes == (header.graph_bytes, 16 * header.graph_twins)


def _save(index: Index, path: Path) -> int:
    draft = path.with_name("graph.new")
    create_private(draft).close()
    try:
        index.save(str(draft))
    except RuntimeError as error:
        import shutil  # 3 ms of compression modules that a search has no use for

        is_full = shutil.disk_usage(path.parent).free < index.serialized_length
        draft.unlink()
        raise OSError(errno.ENOSPC if is_full else errno.EIO, str(error)) from error
    size = draft.stat().st_size
    if size != index.serialized_length:
        raise OSError(errno.ENOSPC, f"only {size:,} bytes of {draft} were written")
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)
    return size


def _path(folder: Path, header: MatrixHeader) -> Path:
    return folder / f"{header.generation}-graph-{header.graph_rows}"


def _twins_path(folder: Path, header: MatrixHeader) -> Path:
    return folder / f"{header.generation}-twins-{header.graph_rows}"
