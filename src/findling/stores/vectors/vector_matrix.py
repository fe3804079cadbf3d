"""The vector leg's matrix: unit vectors of chunks in one folder, searched row by row or, if large, by signs first.

Derived from the truth and rebuilt from it at any time. A commit carries the numbers that it has reached, so after a
crash it is behind, and catches up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from findling.domain.errors import CorruptError
from findling.domain.ports import VectorHits
from findling.stores.vectors.vector_files import (
    MatrixHeader,
    RowWriter,
    damaged_files,
    next_generation,
    read_header,
    remove_generation,
    remove_litter,
    write_header,
    writing,
)
from findling.stores.vectors.vector_scan import quantise
from findling.stores.vectors.vector_signs import COARSE_FROM, signs_of
from findling.stores.vectors.vector_view import VectorView

__all__ = ["VectorMatrix", "rewrite_matrix"]

_FEWEST_DEAD = 1_000
"""Fewer dead rows than this are never worth a rewrite."""

_COPIED_ROWS = 16_384
"""Rows copied at once when the matrix is rewritten."""

_NO_ROW = -1
"""The row of a chunk that was dropped."""


class VectorMatrix:
    """A matrix in one folder. Open it with `open`; writing needs the workspace's write lock.

    Readers see the commit that was the last when they opened it, for as long as they like.
    """

    def __init__(self, folder: Path, empty: MatrixHeader, view: VectorView, coarse_from: int) -> None:
        self.folder = folder
        self._empty = empty
        self._view = view
        self._coarse_from = coarse_from
        self._base = view.header
        self._writer: RowWriter | None = None
        self._noted: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        """Chunks added and dropped since the last commit, in their order, and their rows: 16 bytes each, not 150."""

    @classmethod
    def open(cls, folder: Path, *, made_for: str, dimensions: int, coarse_from: int = COARSE_FROM) -> VectorMatrix:
        """Open the matrix in `folder`, or an empty one in memory when there is none for these vectors.

        From `coarse_from` rows on a search looks at their signs first. Raises CorruptError when the folder holds a
        matrix that cannot be read.
        """
        empty = MatrixHeader(made_for, dimensions)
        return cls(folder, empty, _open_view(folder, empty, coarse_from), coarse_from)

    @property
    def state(self) -> Mapping[str, int]:
        """The numbers given to the last commit; none when nothing was committed."""
        return self._view.header.state

    def __len__(self) -> int:
        return self._view.live

    def cids(self) -> set[int]:
        """The chunks that have a row."""
        return set(self._view.columns.cids[self._view.alive].tolist())

    @property
    def where(self) -> str:
        """Its folder, for messages."""
        return str(self.folder)

    def damaged_parts(self) -> list[str]:
        """The files that are not what was written; every byte of them is looked at. Raises CorruptError, OSError."""
        return damaged_files(self.folder, self._view.header)

    def count(self, allowed: Collection[int]) -> int:
        """The number of live rows of resources with these numbers."""
        return self._view.count(allowed)

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = False,
    ) -> VectorHits:
        """The `limit` chunks nearest to a unit vector, of all resources or of those with the `allowed` numbers.

        `also` names chunks whose cosines are wanted besides, whether they are allowed or not. Equal cosines come in
        the order of their chunk ids. With `exact`, nothing depends on rows that are not allowed.
        """
        return self._view.search(query, limit, allowed, also, exact)

    def add(self, cids: Sequence[int], numbers: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Add unit vectors with the ids of their chunks and the numbers of their resources.

        A chunk that has a row gets the new one instead. All of it counts from the next commit on. Raises
        DiskFullError or ReadOnlyError, and ValueError for vectors that do not fit.
        """
        rows = np.asarray(vectors, np.float32)
        if rows.shape != (len(cids), self._empty.dimensions) or len(numbers) != len(cids):
            raise ValueError(f"{len(cids)} chunks and {len(numbers)} numbers with vectors of shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("a vector holds a value that is no finite number")
        if not len(rows):
            return
        codes, scales = quantise(rows)
        with writing(self.folder):
            writer = self._start_writing()
            first = writer.rows
            rows16 = rows.astype(np.float16)
            ids = np.array(cids, np.int64)
            writer.append((codes, scales, rows16, signs_of(codes), ids, np.array(numbers, np.int64)))
        self._noted.append((ids, np.arange(first, first + len(ids))))

    def drop(self, cids: Iterable[int]) -> None:
        """Remove the rows of these chunks, with the next commit; chunks without one are passed over."""
        ids = np.fromiter(cids, np.int64)
        if len(ids):
            self._noted.append((ids, np.full(len(ids), _NO_ROW)))

    def commit(self, **state: int) -> None:
        """Make everything added and dropped so far visible and durable, together with these numbers.

        Raises DiskFullError or ReadOnlyError; the last commit then still stands.
        """
        with writing(self.folder):
            header = self._written(state)
            self.publish(header)

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self.close()

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""
        self._stop_writing()
        self._noted.clear()
        self._view = VectorView(self.folder, self._empty, self._coarse_from)
        self._base = self._empty

    def _start_writing(self) -> RowWriter:
        if self._writer is None:
            if self._base.generation == 0:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._base = self._empty._replace(generation=next_generation(self.folder))
            self._writer = RowWriter(self.folder, self._base)
        return self._writer

    def _stop_writing(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _written(self, state: Mapping[str, int]) -> MatrixHeader:
        """Bring all rows to the disk; the header that makes them count."""
        writer = self._start_writing()
        none = np.empty(0, np.int64)
        cids, rows = (np.concatenate((none, *parts)) for parts in zip((none, none), *self._noted, strict=True))
        dead = np.concatenate((self._view.rows_of(cids), _superseded(cids, rows)))
        writer.write_dead(dead, self._base.dead)
        writer.sync()
        dead_rows = self._base.dead + len(dead)
        header = self._base._replace(rows=writer.rows, dead=dead_rows, state=dict(state), sums=writer.sums)
        if not _FEWEST_DEAD < header.dead > header.rows // 3:
            return header
        try:
            return _copied(self.folder, header)
        except OSError:
            return header  # what was dropped must be gone also when the disk is full; the next commit tries again

    def publish(self, header: MatrixHeader) -> None:
        """Let a header count; what is not committed is forgotten."""
        write_header(self.folder, header)
        self._base = header
        self._view = VectorView(self.folder, header, self._coarse_from)
        remove_litter(self.folder, header)
        self._stop_writing()
        self._noted.clear()


def _superseded(cids: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of chunks that were added or dropped once more after them."""
    order = np.argsort(cids, kind="stable")
    is_last = np.append(cids[order][1:] != cids[order][:-1], True)[: len(cids)]
    earlier = rows[order][~is_last]
    return np.sort(earlier[earlier != _NO_ROW])


def rewrite_matrix(folder: Path, header: MatrixHeader) -> None:
    """Write the live rows of a matrix once more; readers keep what they have opened.

    A commit does so only when a third of the rows is dead. The caller holds the write lock. Raises CorruptError,
    DiskFullError or ReadOnlyError; the old rows then stand.
    """
    with writing(folder):
        matrix = VectorMatrix(folder, header, VectorView(folder, header), COARSE_FROM)
        matrix.publish(_copied(folder, header))


def _copied(folder: Path, header: MatrixHeader) -> MatrixHeader:
    """The live rows as a new generation. Raises OSError without room for it; nothing is left then."""
    old = VectorView(folder, header)
    fresh = MatrixHeader(header.made_for, header.dimensions, next_generation(folder), state=header.state)
    try:
        with closing(RowWriter(folder, fresh)) as writer:
            for start in range(0, header.rows, _COPIED_ROWS):
                rows = start + np.flatnonzero(old.alive[start : start + _COPIED_ROWS])
                writer.append([np.take(column, rows, axis=0) for column in old.columns[:-1]])
            writer.sync()
            return fresh._replace(rows=writer.rows, sums=writer.sums)
    except OSError:
        remove_generation(folder, fresh)
        raise


def _open_view(folder: Path, empty: MatrixHeader, coarse_from: int) -> VectorView:
    header = read_header(folder)
    while header is not None and header[:2] == empty[:2]:
        try:
            return VectorView(folder, header, coarse_from)
        except OSError as error:
            # A commit may have replaced the files since the header was read.
            newer = read_header(folder)
            if newer == header:
                message = f"the vector matrix in {folder} cannot be read: {error}"
                raise CorruptError(message, hint="findling doctor --repair") from error
            header = newer
    return VectorView(folder, empty, coarse_from)
