"""A vector matrix as it was at one commit, and how it is searched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from findling.domain.ports import VectorHits
from findling.stores.vectors.vector_files import Columns
from findling.stores.vectors.vector_scan import (
    Candidates,
    Query,
    allowed_rows,
    best_rows,
    cosines,
    fetched,
    scan,
    scan_rows,
    spread,
)
from findling.stores.vectors.vector_signs import COARSE_FROM, near_rows

_SAMPLE = 8_000
"""Rows from which mean and deviation are taken when not every row is looked at."""

_ROWS_A_CANDIDATE = 40
"""Fewer rows than this for each candidate, and a quarter of them had to be looked at closely."""


class VectorView:
    """Rows in memory or mapped into it; later commits do not touch them, and may delete their files without harm."""

    def __init__(self, columns: Columns, coarse_from: int = COARSE_FROM) -> None:
        self.columns = columns
        self.alive = np.ones(len(columns.cids), np.bool_)
        self.alive[self.columns.dead] = False
        self.live = int(np.count_nonzero(self.alive))
        self._coarse_from = coarse_from
        self._latest: tuple[Collection[int], NDArray[np.bool_], int] | None = None
        """The resources of the latest search: a caller with limited rights asks for the same ones again and again."""

    def rows_of(self, cids: Iterable[int]) -> NDArray[np.int64]:
        """The live rows of those chunks that have one."""
        wanted = np.fromiter(cids, np.int64)
        ordered, rows = self._by_cid
        if not len(wanted) or not len(ordered):
            return np.empty(0, np.int64)
        places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        # Not np.unique, whose first call imports masked arrays: 30 ms of a one-shot search.
        return np.array(sorted(set(rows[places[ordered[places] == wanted]].tolist())), np.int64)

    def count(self, allowed: Collection[int]) -> int:
        """The number of live rows of these resources."""
        return self._keep(allowed)[1]

    def search(
        self, vector: NDArray[np.float32], limit: int, allowed: Collection[int] | None, also: Sequence[int], exact: bool
    ) -> VectorHits:
        """The nearest live rows of the allowed resources, and the cosines of the chunks asked for besides.

        With `exact`, the allowed rows alone are looked at, each of them and in the order of their chunks.
        """
        query = Query.of(vector)
        keep, passed = self._keep(allowed)
        if exact:
            rows = self._by_cid[1]
            found = scan_rows(self.columns, query, limit, rows if keep is None else rows[keep[rows]])
        else:
            found = self._by_signs(query, limit, keep, passed) or scan(self.columns, query, limit, keep)
        near, asked = found.rows, self.rows_of(also)
        values = cosines(self.columns, query, np.concatenate((near, asked)))
        scores = zip(self.columns.cids[asked].tolist(), values[len(near) :].tolist(), strict=True)
        hits = best_rows(self.columns, near, values[: len(near)], limit)
        return VectorHits(hits, dict(scores), *spread(found), passed)

    def _keep(self, allowed: Collection[int] | None) -> tuple[NDArray[np.bool_] | None, int]:
        """Marks of the rows that count, `None` for all, and how many they are."""
        if allowed is None:
            return (None if self.live == len(self.alive) else self.alive), self.live
        latest = self._latest  # another thread may replace it
        if latest is None or latest[0] is not allowed:
            keep = allowed_rows(self.columns, allowed) & self.alive
            self._latest = latest = allowed, keep, int(np.count_nonzero(keep))
        return latest[1:]

    def _by_signs(self, query: Query, limit: int, keep: NDArray[np.bool_] | None, passed: int) -> Candidates | None:
        """Candidates among the rows with the query's signs; `None` when looking at every row is better."""
        wanted = fetched(limit)
        if wanted == 0 or passed < max(self._coarse_from, _ROWS_A_CANDIDATE * wanted):
            return None
        found = scan_rows(self.columns, query, limit, near_rows(self.columns, query, wanted, keep))
        sample = self._sample if keep is None or keep is self.alive else _evenly(np.flatnonzero(keep))
        return scan_rows(self.columns, query, 0, sample)._replace(rows=found.rows)

    @cached_property
    def _by_cid(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = np.flatnonzero(self.alive)
        cids = self.columns.cids[rows]
        # Not stable: live rows have an id each, and a million of them are sorted in 27 ms instead of 107.
        order = np.argsort(cids)
        return cids[order], rows[order]

    @cached_property
    def _sample(self) -> NDArray[np.int64]:
        return _evenly(np.flatnonzero(self.alive))


def _evenly(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows if len(rows) <= _SAMPLE else rows[np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.int64)]
