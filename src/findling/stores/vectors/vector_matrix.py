"""The vector leg's matrix: unit vectors of chunks in one folder, searched row by row or, if large, by signs first.

Derived from the truth and rebuilt from it at any time. A commit carries the numbers that it has reached, so after a
crash it is behind, and catches up. A run that only writes rows of codes does without numpy, 0.1 s of start.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from findling.core import native
from findling.domain.errors import CorruptError
from findling.stores.vectors.vector_files import (
    MatrixHeader,
    RowWriter,
    check_columns,
    damaged_files,
    map_columns,
    next_generation,
    read_header,
    remove_generation,
    remove_litter,
    rows_of,
    whole_numbers,
    write_header,
    writing,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from findling.domain.ports import VectorHits
    from findling.stores.vectors.vector_view import VectorView

_Seen = TypeVar("_Seen")

_FEWEST_DEAD = 1_000
"""Fewer dead rows than this are never worth a rewrite."""

_COPIED_ROWS = 16_384
"""Rows copied at once when the matrix is rewritten."""

_FEW = 200_000
"""Chunks and rows that Python compares one by one, 0.25 µs each, in less time than it takes to load numpy."""

_NO_ROW = -1
"""The row of a chunk that was dropped."""


class VectorMatrix:
    """A matrix in one folder. Open it with `open`; writing needs the workspace's write lock.

    Readers see the commit that was the last when they opened it, for as long as they like. Where nothing has loaded
    numpy yet, rows are mapped when somebody asks for them.
    """

    def __init__(self, folder: Path, empty: MatrixHeader, header: MatrixHeader, coarse_from: int | None) -> None:
        self.folder = folder
        self._empty = empty
        self._header = header
        self._viewed: VectorView | None = None
        self._coarse_from = coarse_from
        self._base = header
        self._writer: RowWriter | None = None
        self._noted, self._rows = array("q"), array("q")
        """Chunks added and dropped since the last commit, in their order, and their rows: 16 bytes each, not 150."""

    @classmethod
    def open(cls, folder: Path, *, made_for: str, dimensions: int, coarse_from: int | None = None) -> VectorMatrix:
        """Open the matrix in `folder`, or an empty one in memory when there is none for these vectors.

        From `coarse_from` rows on a search looks at their signs first. Raises CorruptError when the folder holds a
        matrix that cannot be read.
        """
        empty = MatrixHeader(made_for, dimensions)
        matrix = cls(folder, empty, empty, coarse_from)
        if _searches():
            matrix._header, matrix._viewed = _last_commit(folder, empty, matrix._mapped)
        else:
            matrix._header, _ = _last_commit(folder, empty, partial(check_columns, folder))
        matrix._base = matrix._header
        return matrix

    @property
    def state(self) -> Mapping[str, int]:
        """The numbers given to the last commit; none when nothing was committed."""
        return self._header.state

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
        _ = self._view  # with which comes the header of the last commit
        return damaged_files(self.folder, self._header)

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
        import numpy as np

        from findling.stores.vectors.vector_scan import quantise, rest_of
        from findling.stores.vectors.vector_signs import signs_of

        rows = np.asarray(vectors, np.float32)
        if rows.shape != (len(cids), self._empty.dimensions) or len(numbers) != len(cids):
            raise ValueError(f"{len(cids)} chunks and {len(numbers)} numbers with vectors of shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("a vector holds a value that is no finite number")
        if not len(rows):
            return
        codes, scales = quantise(rows)
        self._append(cids, numbers, (codes, scales, rest_of(rows, codes, scales), signs_of(codes)))

    def add_codes(self, cids: Sequence[int], numbers: Sequence[int], codes: Sequence[bytes]) -> None:
        """Add vectors as `add` does, given as rows of 8-bit numbers of which the largest is 127.

        A row of zeros has no direction, and its chunk gets none.
        """
        known = [place for place, row in enumerate(codes) if any(row)]
        cids, numbers = [cids[place] for place in known], [numbers[place] for place in known]
        data = b"".join([codes[place] for place in known])
        if len(data) != len(known) * self._empty.dimensions:
            raise ValueError(f"{len(known)} rows of codes have {len(data)} numbers")
        if not known:
            return
        if native is None:
            from findling.stores.vectors.vector_scan import unit_rows

            self.add(cids, numbers, unit_rows(data, self._empty.dimensions))
        else:
            scales, signs = native.unit_rows(data, self._empty.dimensions)
            self._append(cids, numbers, (data, scales, b"", signs))

    def drop(self, cids: Iterable[int]) -> None:
        """Remove the rows of these chunks, with the next commit; chunks without one are passed over."""
        self._noted.extend(cids)
        self._rows.extend([_NO_ROW] * (len(self._noted) - len(self._rows)))

    def commit(self, **state: int) -> None:
        """Make everything added and dropped so far visible and durable, together with these numbers.

        Raises DiskFullError or ReadOnlyError; the last commit then still stands.
        """
        with writing(self.folder):
            self.publish(self._written(state))

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self.close()

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""
        self._stop_writing()
        self._forget_noted()
        self._header, self._viewed, self._base = self._empty, None, self._empty

    @property
    def _view(self) -> VectorView:
        """The rows of the last commit, mapped when somebody first asks."""
        if (view := self._viewed) is None:
            if self._header.generation:
                # Another process may have committed since, and deleted the files of that commit.
                self._header, view = _last_commit(self.folder, self._empty, self._mapped)
            self._viewed = view = view or self._mapped(self._header)
            if self._writer is None:
                self._base = self._header
        return view

    def _mapped(self, header: MatrixHeader) -> VectorView:
        from findling.stores.vectors.vector_signs import COARSE_FROM
        from findling.stores.vectors.vector_view import VectorView

        columns = map_columns(self.folder, header)
        return VectorView(columns, COARSE_FROM if self._coarse_from is None else self._coarse_from)

    def _append(self, cids: Sequence[int], numbers: Sequence[int], columns: Sequence[bytes | NDArray[Any]]) -> None:
        with writing(self.folder):
            writer = self._start_writing()
            first = writer.rows
            writer.append(len(cids), (*columns, whole_numbers(cids), whole_numbers(numbers)))
        self._noted.extend(cids)
        self._rows.extend(range(first, first + len(cids)))

    def _forget_noted(self) -> None:
        self._noted, self._rows = array("q"), array("q")

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
        dead = self._dead_rows()
        writer.write_dead(dead, self._base.dead)
        writer.sync()
        dead_rows = self._base.dead + len(dead)
        header = self._base._replace(
            rows=writer.rows, rest=writer.rest, dead=dead_rows, state=dict(state), sums=writer.sums
        )
        if not _FEWEST_DEAD < header.dead > header.rows // 3:
            return header
        try:
            return _copied(self.folder, header)
        except OSError:
            return header  # what was dropped must be gone also when the disk is full; the next commit tries again

    def publish(self, header: MatrixHeader) -> None:
        """Let a header count; what is not committed is forgotten."""
        write_header(self.folder, header)
        self._base = self._header = header
        self._viewed = self._mapped(header) if _searches() else None
        remove_litter(self.folder, header)
        self._stop_writing()
        self._forget_noted()

    def _dead_rows(self) -> list[int]:
        """Rows that do not count any more with the next commit."""
        if self._viewed is None and max(len(self._noted), self._base.rows) <= _FEW:
            latest: dict[int, int] = {}
            earlier = []
            for cid, row in zip(self._noted, self._rows, strict=True):
                earlier.append(latest.get(cid, _NO_ROW))
                latest[cid] = row
            return [*rows_of(self.folder, self._base, latest.keys()), *sorted(set(earlier) - {_NO_ROW})]
        import numpy as np

        cids, rows = np.array(self._noted, np.int64), np.array(self._rows, np.int64)
        dead: list[int] = np.concatenate((self._view.rows_of(cids), _superseded(cids, rows))).tolist()
        return dead


def _superseded(cids: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of chunks that were added or dropped once more after them."""
    import numpy as np

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
        VectorMatrix(folder, header, header, None).publish(_copied(folder, header))


def _copied(folder: Path, header: MatrixHeader) -> MatrixHeader:
    """The live rows as a new generation. Raises OSError without room for it; nothing is left then."""
    import numpy as np

    from findling.stores.vectors.vector_view import VectorView

    old = VectorView(map_columns(folder, header))
    fresh = MatrixHeader(header.made_for, header.dimensions, next_generation(folder), state=header.state)
    try:
        with closing(RowWriter(folder, fresh)) as writer:
            for start in range(0, header.rows, _COPIED_ROWS):
                rows = start + np.flatnonzero(old.alive[start : start + _COPIED_ROWS])
                columns = old.columns[:-1]
                writer.append(len(rows), [np.take(one, rows, axis=0) if len(one) else b"" for one in columns])
            writer.sync()
            return fresh._replace(rows=writer.rows, rest=writer.rest, sums=writer.sums)
    except OSError:
        remove_generation(folder, fresh)
        raise


def _searches() -> bool:
    """Whether this process may search: it has loaded numpy."""
    return "numpy" in sys.modules


def _last_commit(
    folder: Path, empty: MatrixHeader, look: Callable[[MatrixHeader], _Seen]
) -> tuple[MatrixHeader, _Seen | None]:
    """The header of the last commit, and what a look at its files gives; `empty` when there is none of these vectors.

    Raises CorruptError when they cannot be read.
    """
    header = read_header(folder)
    while header is not None and header[:2] == empty[:2]:
        try:
            return header, look(header)
        except OSError as error:
            # A commit may have replaced the files since the header was read.
            newer = read_header(folder)
            if newer == header:
                message = f"the vector matrix in {folder} cannot be read: {error}"
                raise CorruptError(message, hint="findling doctor --repair") from error
            header = newer
    return empty, None
