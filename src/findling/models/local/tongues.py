"""Meaning at once in other languages: a text is the sum of the vectors of its pieces, in the space of the English ones.

A word takes its own row, else that of the English token it equals, else those of the longest pieces it is cut into. In
Latin letters those of the English pieces stand beside them: it may be a name. `training/README.md` tells how the rows
were made, and what they reach.

A row is 256 numbers of 2 bits, -3, -1, 1 or 3, and a scale; one matrix, the turn, brings all sums into the space.
Shares and turn are whole numbers, so sums are exact: the most of 400,000 pieces a text stay below 2^53.
"""

from __future__ import annotations

import mmap
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.text.analysis.scripts import Remembered
from findling.text.analysis.tongue_pieces import cut, foreign_words, whole
from findling.text.analysis.wordpieces import bert_vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PIECES = 165_000
_TOKENS = 30_522
"""English tokens follow the pieces, then a second time those that a word is only guessed to be made of."""

_GUESS = 0.25
"""Share that such a token counts beside one that is a whole word. At 1 sentences find their translations less often."""

_FIRST_WORD = 999
"""The first entry of BERT's vocabulary that is neither special nor unused."""

_SHARES, _TURN, _ENGLISH = 2.0**14, 2.0**18, 2.0**32
"""Parts of 1 that shares of pieces, the turn, and shares of English tokens are counted in."""

_DATA = Path(__file__).with_name("data")
_MAX_KNOWN, _LONGEST_KNOWN = 50_000, 48


def foreign_sums(texts: Sequence[str], english: NDArray[Any]) -> NDArray[np.float64]:
    """For each text the sum of its pieces' vectors in whole numbers; `english` are the rows of the English tokens."""
    import numpy as np

    turned = np.zeros((len(texts), 4 * _table()["codes"].shape[1]))
    sums = np.zeros_like(turned)
    for at, text in enumerate(texts):
        counts = row_counts(text)
        rows = np.fromiter(counts.keys(), np.intp, len(counts))
        roots = np.sqrt(np.fromiter(counts.values(), np.float64, len(counts)))
        is_own, is_guess = rows < _PIECES, rows >= _PIECES + _TOKENS
        own = _table()[rows[is_own]]
        shares = np.rint(roots[is_own] * own["scale"].astype(np.float64) * _SHARES)
        # Not `@`, which hands it to BLAS and wakes its threads.
        np.einsum("t,td->d", shares, _unpacked(own["codes"]), out=turned[at])
        tokens = english[(rows[~is_own] - _PIECES) % _TOKENS]
        weights = roots * np.where(is_guess, _GUESS, 1.0)
        shares = np.rint(weights[~is_own] * tokens["scale"].astype(np.float64) * _ENGLISH)
        np.einsum("t,td->d", shares, tokens["codes"].astype(np.float64), out=sums[at])
    sums += np.einsum("td,de->te", turned, _turn())
    return sums


def row_counts(text: str) -> Counter[int]:
    """The rows of a text, each with how often it occurs."""
    counts = Counter[int]()
    for word, times in Counter(foreign_words(text)).items():
        for row in _rows_of[word]:
            counts[row] += times
    return counts


def _rows(word: str) -> tuple[int, ...]:
    row = whole(word)
    if row is not None:
        return (row,)
    plain = _latin(word)
    tokens = [token for token in bert_vocabulary().pieces(plain) if token >= _FIRST_WORD] if plain else []
    if len(tokens) == 1:
        return (_PIECES + tokens[0],)
    return (*(_PIECES + _TOKENS + token for token in tokens), *cut(word))


_rows_of = Remembered(_rows, _MAX_KNOWN, _LONGEST_KNOWN)


def _latin(word: str) -> str:
    """A word of Latin letters without its accents, as English tokens are written; empty for others."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain if plain.isascii() else ""


@cache
def _table() -> NDArray[Any]:
    """A row a piece, in memory where a text reads it."""
    import numpy as np

    with (_DATA / "tongue-rows.npy").open("rb") as file:
        rows = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    offset = 10 + int.from_bytes(rows[8:10], "little")  # as version 1 of the npy format has it
    return np.frombuffer(rows, [("scale", "<f2"), ("codes", "u1", (64,))], offset=offset)


@cache
def _turn() -> NDArray[np.float64]:
    import numpy as np

    # Times 2^32 / (2^14 · 2^18): sums of pieces and of English tokens are counted in the same parts.
    turn: NDArray[np.float64] = np.load(_DATA / "tongue-turn.npy").astype(np.float64) * (_ENGLISH / _SHARES / _TURN)
    return turn


@cache
def _four() -> NDArray[np.float64]:
    """The four numbers of each byte, the first in its lowest bits."""
    import numpy as np

    places = 2 * np.arange(4)
    return (2 * (np.arange(256)[:, None] >> places & 3) - 3).astype(np.float64)


def _unpacked(packed: NDArray[np.uint8]) -> NDArray[np.float64]:
    return _four()[packed].reshape(len(packed), 4 * packed.shape[1])
