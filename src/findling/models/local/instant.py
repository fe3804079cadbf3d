"""Meaning at once: every token has a vector, and a text is the sum of those of its tokens. Needs numpy or the core.

The vectors were distilled from all-MiniLM-L6-v2 (`training/README.md` tells how, and what they reach). How much a
token counts is in the length of its vector. A token that occurs n times counts √n times, so that a long passage is
not drowned by the words it repeats. Texts in other languages are read by a table of their own, into the same space.

Shares are whole numbers, so sums are exact: no order, no thread and no processor changes a bit of a vector.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from functools import cache
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.core import native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from findling.domain.ports import Vectors

_DIMENSIONS = 256
_SHA256 = "4f0ffffb5598adcf81fb829823974c19f51e41a6e7438b89ff05ede86eeb035c"
_TONGUES_SHA256 = "1cf2ae955365b3800c17c1b832b9ff8a579078f04ce865f4dda7184728ab877c"


class InstantEmbedder:
    """Sums the vectors of a text's tokens; passages and queries are read alike.

    A text without a known token has no direction: its row is all zeros.
    """

    name = "instant"
    dimensions = _DIMENSIONS
    host = ""
    in_process = True
    languages = "English and 118 others"
    fingerprint = f"instant-{_SHA256[:16]}-{_TONGUES_SHA256[:16]}-exact-root-sum"
    """Changes with the token vectors and with the way they are summed."""
    usual_cosines: tuple[float, float] | None = (0.002, 0.062)
    """Mean and deviation of the cosines of unrelated texts: queries and passages of different collections."""

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        """One vector of length 1 for each text, in order; all zeros for a text without a known token."""
        import numpy as np

        sums = _all_sums(texts, kind)
        # As np.linalg.norm does it, without a look at what it was given: a page of hits asks for seven small batches.
        lengths = np.sqrt(np.add.reduce(sums * sums, axis=1, keepdims=True))
        return np.asarray(sums / np.where(lengths > 0, lengths, 1), np.float32)


def instant_codes(texts: Sequence[str]) -> list[bytes]:
    """The vectors of passages as rows of 8-bit numbers, to be kept beside them; zeros where there is no vector."""
    from findling.text.analysis.tongue_pieces import is_foreign_passage
    from findling.text.analysis.wordpieces import native_vocabulary, word_tokens

    if native is None or any(map(is_foreign_passage, texts)):
        return _codes(_all_sums(texts, "passage"))
    return native.instant_codes(native_vocabulary(), *_mapped(), texts, word_tokens)


_TABLE = Path(__file__).with_name("data") / "instant-vectors.npy"
"""Package data: a test checks its sha256, no start does."""

_SHARES = 2.0**32
"""Parts of 1 that a share is counted in: 14 million for the token that counts most. All sums stay below 2^53."""


@cache
def _mapped() -> tuple[mmap.mmap, int]:
    """The table in memory, of which a query reads a few rows only, and where its first row begins."""
    with _TABLE.open("rb") as file:
        table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return table, 10 + int.from_bytes(table[8:10], "little")  # as version 1 of the npy format has it


@cache
def _table() -> NDArray[Any]:
    """A row a token: `codes` times `scale` is its vector."""
    import numpy as np

    table, offset = _mapped()
    return np.frombuffer(table, [("scale", "<f4"), ("codes", "i1", (_DIMENSIONS,))], offset=offset)


def _english_sums(texts: Sequence[str]) -> NDArray[np.float64]:
    import numpy as np

    return _sums(texts) if native is None else np.frombuffer(_native_sums(texts)).reshape(-1, _DIMENSIONS)


def _native_sums(texts: Sequence[str]) -> bytes:
    # Here: a run that finds nothing changed asks for the name of the vectors alone, 8 of its 120 ms.
    from findling.text.analysis.wordpieces import native_vocabulary, word_tokens

    assert native is not None
    return native.instant_sums(native_vocabulary(), *_mapped(), texts, word_tokens)


def _all_sums(texts: Sequence[str], kind: str) -> NDArray[np.float64]:
    """The sums of texts in any language."""
    import numpy as np

    from findling.text.analysis.tongue_pieces import is_foreign_passage
    from findling.text.analysis.wordpieces import is_foreign

    foreign = np.fromiter(map(is_foreign if kind == "query" else is_foreign_passage, texts), np.bool_, len(texts))
    if not foreign.any():
        return _english_sums(texts)
    from findling.models.local.tongues import foreign_sums

    sums = np.empty((len(texts), _DIMENSIONS))
    sums[foreign] = foreign_sums(list(compress(texts, foreign)), _table())
    sums[~foreign] = _english_sums(list(compress(texts, ~foreign)))
    return sums


def _codes(sums: NDArray[np.float64]) -> list[bytes]:
    import numpy as np

    largest = np.abs(sums).max(axis=1, keepdims=True)
    codes = np.rint(sums * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)
    return [row.tobytes() for row in codes]


def _sums(texts: Sequence[str]) -> NDArray[np.float64]:
    """For each text the sum of its tokens' vectors, each times the root of how often it occurs, in whole numbers."""
    import numpy as np

    from findling.text.analysis.wordpieces import piece_counts

    sums = np.zeros((len(texts), _DIMENSIONS))
    for text, total in zip(texts, sums, strict=True):
        counts = piece_counts(text)
        rows = _table()[np.fromiter(counts.keys(), np.intp, len(counts))]
        roots = np.sqrt(np.fromiter(counts.values(), np.float64, len(counts)))
        shares = np.rint(roots * rows["scale"].astype(np.float64) * _SHARES)
        # Not `@`, which hands it to BLAS and wakes its threads.
        np.einsum("t,td->d", shares, rows["codes"].astype(np.float64), out=total)
    return sums
