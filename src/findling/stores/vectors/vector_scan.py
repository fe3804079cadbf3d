"""Exact search over the rows of a matrix: a pass over 8-bit codes, then the best again in full.

The codes of a row have a scale of their own: the largest error of a cosine is then 0.003 with MiniLM, against 0.0045
with one scale for all, and the ten best are among the twelve best by codes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.core import native
from findling.domain.errors import CorruptError
from findling.stores.vectors.vector_files import Columns

_BLOCK = 65_536
"""Rows scanned at once: memory stays at a few bytes for each of them, whatever the size of the matrix."""

_MARGIN = 0.02
"""A row whose code lies so far behind that of the last one wanted is not among the best: eight times the largest error.
It leaves 145 rows of 330 to be taken in full for the best 100."""

_GATHERED_SHARE = 0.25
"""Up to this share of a block its rows are gathered; beyond, scanning all of them is faster (measured at 0.3)."""


IS_NATIVE = native is not None and len(native.KERNELS) > 1
"""Whether the compiled core multiplies codes; its plain C takes three times as long as simsimd on x86."""


class Query(NamedTuple):
    """A query vector, also as codes."""

    vector: NDArray[np.float32]
    codes: NDArray[np.int8]
    scale: float

    @classmethod
    def of(cls, vector: NDArray[np.float32]) -> Query:
        """Prepare one vector."""
        row = np.ascontiguousarray(vector, np.float32).reshape(1, -1)
        codes, scales = quantise(row)
        return cls(row[0], codes, float(scales[0]))


class Candidates(NamedTuple):
    """The rows that may be the best, in no order, and the sums over the cosines of all rows looked at."""

    rows: NDArray[np.int64]
    looked_at: int
    total: float
    squares: float


def quantise(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Rows as 8-bit codes, and the scale of each."""
    scales = np.abs(vectors).max(axis=1) / np.float32(127)
    scales[scales == 0] = 1
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


def rest_of(vectors: NDArray[np.float32], codes: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.int8]:
    """Eight more bits of each value: the rest that its code leaves, in 256ths of a code."""
    rest = np.rint((vectors / scales[:, None] - codes) * np.float32(256))
    return np.asarray(np.clip(rest, -128, 127), np.int8)


def unit_rows(codes: bytes, dimensions: int) -> NDArray[np.float32]:
    """Rows of codes as vectors of length 1."""
    rows = np.frombuffer(codes, np.int8).reshape(-1, dimensions).astype(np.float32)
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
    return unit


def fetched(limit: int) -> int:
    """Rows to take in full for the `limit` best: where cosines lie close together, codes put them out of order."""
    return 3 * limit + 30 if limit > 0 else 0


def scan(columns: Columns, query: Query, limit: int, keep: NDArray[np.bool_] | None = None) -> Candidates:
    """Look at all rows, or those that `keep` marks, and find those that may be the `limit` best."""
    found: list[NDArray[np.int64]] = []
    scores: list[NDArray[np.float32]] = []
    count, total, squares = 0, 0.0, 0.0
    for start in range(0, len(columns.cids), _BLOCK):
        block = slice(start, min(start + _BLOCK, len(columns.cids)))
        chosen = None if keep is None else np.flatnonzero(keep[block])
        values = _block_cosines(columns, query, block, chosen)
        top = _nearest(values, limit)
        found.append((top if chosen is None else chosen[top]) + start)
        scores.append(values[top])
        count += len(values)
        total += float(values.sum(dtype=np.float64))
        squares += _squares(values)
    if not found:
        return Candidates(np.empty(0, np.int64), 0, 0.0, 0.0)
    rows = np.concatenate(found)
    best = rows[_nearest(np.concatenate(scores), limit)] if len(found) > 1 else rows
    return Candidates(best, count, total, squares)


def scan_rows(columns: Columns, query: Query, limit: int, rows: NDArray[np.int64]) -> Candidates:
    """Look at these rows, each of them, and find those that may be the `limit` best; no other row plays a part."""
    found, count, total, squares = [], 0, 0.0, 0.0
    # The cosine of a row is the same whichever others are looked at: many are faster taken from all, in their order.
    every = _all_cosines(columns, query) if len(rows) > _GATHERED_SHARE * len(columns.cids) else None
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        if every is not None:
            values = every[block]
        else:
            values = _code_cosines(query, np.take(columns.codes, block, axis=0), columns.scales[block])
        found.append(values)
        count += len(values)
        total += float(values.sum(dtype=np.float64))
        squares += _squares(values)
    if not found:
        return Candidates(np.empty(0, np.int64), 0, 0.0, 0.0)
    return Candidates(rows[_nearest(np.concatenate(found), limit)], count, total, squares)


def _squares(values: NDArray[np.float32]) -> float:
    # Not `values @ values`: above 10,000 numbers BLAS wakes its threads for it, which then spin for 12 ms of CPU.
    return float(np.einsum("i,i->", values, values))


def scan_kernel() -> str:
    """The code that multiplies 8-bit codes on this machine."""
    if native is not None and IS_NATIVE:
        return native.KERNELS[-1]
    import simsimd

    able = simsimd.get_capabilities()
    return f"simsimd, {next((name for name in _SIMSIMD_KERNELS if able.get(name)), 'serial code')}"


_SIMSIMD_KERNELS = ("ice", "haswell", "neon_i8", "sve_i8")
"""Those for 8-bit codes, the fastest of each processor first."""


def spread(candidates: Candidates) -> tuple[float, float]:
    """Mean and deviation of the cosines looked at; zeros when there are none."""
    if candidates.looked_at == 0:
        return 0.0, 0.0
    mean = candidates.total / candidates.looked_at
    return mean, max(0.0, candidates.squares / candidates.looked_at - mean * mean) ** 0.5


def best_rows(
    columns: Columns, rows: NDArray[np.int64], values: NDArray[np.float32], limit: int
) -> list[tuple[int, float]]:
    """Chunk ids and cosines of the `limit` best among `rows`, best first; equals in the order of their ids."""
    cids = columns.cids[rows]
    order = np.lexsort((cids, -values))[: max(0, limit)]
    return list(zip(cids[order].tolist(), values[order].tolist(), strict=True))


def cosines(columns: Columns, query: Query, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Cosines in full, one a row. Raises CorruptError when the rows hold no numbers."""
    # Not a matrix product, in which equal rows differ in the last digits by their place.
    values = np.take(columns.codes, rows, axis=0).astype(np.float32)
    if len(columns.rest):
        values += np.take(columns.rest, rows, axis=0) * np.float32(1 / 256)
    sums = np.asarray((values * query.vector).sum(axis=1) * columns.scales[rows], np.float32)
    if not np.isfinite(sums).all():
        raise CorruptError("a vector leg holds values that are no numbers", hint="findling doctor --repair")
    return sums


def allowed_rows(columns: Columns, allowed: Collection[int]) -> NDArray[np.bool_]:
    """Marks the rows of the resources with these numbers."""
    numbers = np.fromiter(allowed, np.int64, count=len(allowed))
    if not len(numbers) or not len(columns.numbers):
        return np.zeros(len(columns.numbers), np.bool_)
    size = int(numbers.max()) + 2
    if numbers.min() < 0 or size > 1_000_000 + 8 * len(columns.numbers):
        return np.isin(columns.numbers, numbers)
    # A table is 3 to 5 times as fast as np.isin; its last entry stands for every number beyond it.
    table = np.zeros(size, np.bool_)
    table[numbers] = True
    return np.take(table, columns.numbers, mode="clip")


def _nearest(values: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Positions of the values that may be among the `limit` largest in full, at most `fetched` of them."""
    most = fetched(limit)
    if most >= len(values):
        return np.arange(len(values))
    if most == 0:
        return np.empty(0, np.int64)
    near = np.flatnonzero(values >= _least(values, limit) - np.float32(_MARGIN))
    return near if len(near) <= most else near[_best(values[near], most)]


def _least(values: NDArray[np.float32], limit: int) -> np.float32:
    """The `limit`-th largest value."""
    groups = 4 * limit
    if len(values) >= 2 * groups:
        # As many groups have a value from that of the last group on: most values need no comparison with others.
        depth = len(values) // groups
        tops = values[: depth * groups].reshape(depth, groups).max(axis=0)
        above = values[values >= _least(tops, limit)]
        values = above if len(above) >= limit else values  # fewer where damaged scales give no numbers
    least: np.float32 = np.partition(values, len(values) - limit)[len(values) - limit]
    return least


def _best(values: NDArray[np.float32], wanted: int) -> NDArray[np.int64]:
    """Positions of the largest values; of equal ones the first."""
    least = _least(values, wanted)
    above = np.flatnonzero(values > least)
    return np.concatenate((above, np.flatnonzero(values == least)[: wanted - len(above)]))


def _all_cosines(columns: Columns, query: Query) -> NDArray[np.float32]:
    rows = len(columns.cids)
    blocks = [slice(start, min(start + _BLOCK, rows)) for start in range(0, rows, _BLOCK)]
    return np.concatenate([_block_cosines(columns, query, block, None) for block in blocks])


def _block_cosines(
    columns: Columns, query: Query, block: slice, chosen: NDArray[np.int64] | None
) -> NDArray[np.float32]:
    codes, scales = columns.codes[block], columns.scales[block]
    if chosen is None:
        return _code_cosines(query, codes, scales)
    if not len(chosen):
        return np.empty(0, np.float32)
    if len(chosen) <= _GATHERED_SHARE * len(codes):
        return _code_cosines(query, np.take(codes, chosen, axis=0), scales[chosen])
    return _code_cosines(query, codes, scales)[chosen]


def _code_cosines(query: Query, codes: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosines of rows by their codes: sums of whole numbers, which every kernel gives alike."""
    if native is None or not IS_NATIVE:
        return _plain_cosines(query, codes, scales)
    values = np.empty(len(codes), np.float32)
    native.scan(query.codes, codes, scales, query.scale, values)
    return values


def _plain_cosines(query: Query, codes: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    import simsimd

    dots = np.asarray(simsimd.cdist(query.codes, codes, metric="dot", out_dtype="float32"))
    return dots.reshape(-1) * np.float32(query.scale) * scales
