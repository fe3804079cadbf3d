"""A coarse look at a large matrix: only rows whose signs are nearly those of the query are looked at closely.

The signs of a row are one bit a value, an eighth of its codes, and the number of signs in which two vectors differ
follows their angle. They need no training, grow with the rows, and a filter leaves the others' order as it is.
Of the ten nearest of 525,000 passages by instant vectors 99.7 % are among the 4 % with the fewest differing signs, and
98.7 % of the hundred nearest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from findling.core import native
from findling.stores.vectors.vector_files import Columns
from findling.stores.vectors.vector_scan import Query

COARSE_FROM = 200_000
"""Rows from which signs come first: below, a look at every row takes 5 ms at most."""

_SHARE = 0.04
"""Rows looked at closely, of all."""

_FEWEST = 10
"""Rows looked at closely for each that is wanted, at least."""

_STRIDE = 16
"""Rows between two that decide how many differing signs are few."""

_BLOCK = 16_384
"""Rows counted at once without the core: what numpy keeps of them stays in the processor's cache."""


def signs_of(codes: NDArray[np.int8]) -> NDArray[np.uint64]:
    """One bit a value, set where it is above zero, in whole words."""
    bits = np.packbits(codes > 0, axis=1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)


def near_rows(columns: Columns, query: Query, wanted: int, keep: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The rows, of those that `keep` marks, in which the fewest signs differ from the query's; in their order."""
    differing = differing_signs(signs_of(query.codes)[0], columns.signs)
    rows = None if keep is None else np.flatnonzero(keep)
    if rows is not None:
        differing = differing[rows]
    sample = differing[::_STRIDE]
    share = max(_SHARE, _FEWEST * wanted / len(differing))
    place = min(int(share * len(sample)), len(sample) - 1)
    near = np.flatnonzero(differing <= np.partition(sample, place)[place])
    return near if rows is None else rows[near]


def differing_signs(query: NDArray[np.uint64], signs: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """The number of signs in which each row differs from the query."""
    counts = np.empty(len(signs), np.uint16)
    if native is None:
        _count_differing(query, signs, counts)
    else:
        native.differing_bits(query, signs, counts)
    return counts


def _count_differing(query: NDArray[np.uint64], signs: NDArray[np.uint64], counts: NDArray[np.uint16]) -> None:
    for start in range(0, len(signs), _BLOCK):
        words = np.bitwise_count(signs[start : start + _BLOCK] ^ query)
        block = counts[start : start + _BLOCK]
        block[:] = words[:, 0]
        # Column by column: a sum over so short an axis takes three times as long.
        for place in range(1, words.shape[1]):
            block += words[:, place]
