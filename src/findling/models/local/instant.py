"""Meaning at once: every token has a vector, and a text is the sum of those of its tokens. Needs numpy only.

The vectors were distilled from all-MiniLM-L6-v2 (`training/README.md` tells how, and what they reach). How much a
token counts is in the length of its vector. A token that occurs n times counts √n times, so that a long passage is
not drowned by the words it repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from findling.text.analysis.wordpieces import piece_ids

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

__all__ = ["InstantEmbedder", "from_codes", "instant_codes"]

_DIMENSIONS = 256
_SHA256 = "4f0ffffb5598adcf81fb829823974c19f51e41a6e7438b89ff05ede86eeb035c"


class InstantEmbedder:
    """Sums the vectors of a text's tokens; passages and queries are read alike.

    A text without a known token has no direction: its row is all zeros.
    """

    name = "instant"
    dimensions = _DIMENSIONS
    host = ""
    in_process = True
    languages = "English"  # as the model it was distilled from
    fingerprint = f"instant-{_SHA256[:16]}-root-sum"
    """Changes with the token vectors and with the way they are summed."""
    usual_cosines: tuple[float, float] | None = (0.002, 0.062)
    """Mean and deviation of the cosines of unrelated texts: queries and passages of different collections."""

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        """One vector of length 1 for each text, in order; all zeros for a text without a known token."""
        vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for place, text in enumerate(texts):
            vectors[place] = _sum(piece_ids(text))
        return _unit(vectors)


def instant_codes(texts: Sequence[str]) -> list[bytes]:
    """The vectors of passages as rows of 8-bit numbers, to be kept beside them; zeros where there is no vector."""
    vectors = InstantEmbedder().embed(texts)
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    codes = np.rint(vectors * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)
    return [row.tobytes() for row in codes]


def from_codes(codes: Sequence[bytes]) -> NDArray[np.float32]:
    """The vectors that `instant_codes` wrote, of length 1 again, so that the scale of a row need not be kept."""
    rows = np.frombuffer(b"".join(codes), dtype=np.int8).reshape(-1, _DIMENSIONS)
    return _unit(rows.astype(np.float32))


_TABLE = Path(__file__).with_name("data") / "instant-vectors.npy"
"""Package data: a test checks its sha256, no start does."""


@cache
def _table() -> NDArray[Any]:
    """A row a token: `codes` times `scale` is its vector. Mapped into memory, so that a query reads a few rows only."""
    return np.asarray(np.load(_TABLE, mmap_mode="r"))


def _sum(tokens: Sequence[int]) -> NDArray[np.float32]:
    """The sum of the tokens' vectors, each times the root of how often it occurs."""
    # Not np.unique: on the dozen tokens of a line it takes a third of the time of a sum.
    counts = Counter(tokens)
    distinct = sorted(counts)
    rows = _table()[np.array(distinct, dtype=np.intp)]
    shares = np.sqrt(np.array([counts[token] for token in distinct], dtype=np.intp), dtype=np.float32) * rows["scale"]
    # Not `@`, which hands it to BLAS: what that adds up, and in which order, may depend on the number of threads.
    total: NDArray[np.float32] = np.einsum("t,td->d", shares, rows["codes"].astype(np.float32))
    return total


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows brought to length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    lengths[lengths == 0] = 1
    rows: NDArray[np.float32] = vectors / lengths
    return rows
