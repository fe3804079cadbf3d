"""Vectors at once for texts in other languages: cuts a text into the longest known pieces and sums their vectors.

A text is lower-cased and cut at everything that is neither a letter nor a digit. A word takes its own row, else that
of the English token it equals, else those of the longest pieces it begins and goes on with. In Latin letters those of
the English pieces stand beside them: it may be a name. Where no spaces stand between words (Chinese, Japanese, Thai, …)
a run of letters is read as one long word. A piece that occurs n times counts √n times.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from findling.models.local import instant
from findling.text.analysis.wordpieces import bert_vocabulary

Floats = NDArray[np.float32]

LATER = "\x02"
"""Stands before a piece that a word goes on with."""

TOKENS = 30_522
"""English tokens; those that a word is only guessed to be made of have a second row each."""

GUESS = 0.25
"""What such a token counts beside one that is a whole word. At 1 sentences find their translations less often."""

FIRST_WORD = 999
"""What stands before it in BERT's vocabulary is special or unused."""

UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Scripts whose words stand next to each other, by the beginning of their signs' names."""


class Signs(dict[int, str]):
    """What a sign is read as: itself, a space, 0 to 9 for a digit, nothing for marks of vowels in Arabic and Hebrew."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        category = unicodedata.category(sign)
        if category == "Nd":
            read = str(unicodedata.decimal(sign))
        elif category == "Cf" or 0x591 <= code < 0x5C8 or 0x64B <= code < 0x671 or code == 0x640:
            read = ""
        else:
            read = sign if category[0] in "LMN" else " "
        self[code] = read
        return read


SIGNS = Signs()


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return unicodedata.normalize("NFKC", text).lower().translate(SIGNS).split()


def latin(word: str) -> str:
    """A word of Latin letters without its accents, as English tokens are written; empty for others."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain if plain.isascii() else ""


def is_unspaced(piece: str) -> bool:
    """Whether a piece belongs to a script without spaces."""
    return not piece.isascii() and unicodedata.name(piece[0], "").startswith(UNSPACED)


class Pieces:
    """Cuts words: numbers of rows, and behind them the numbers of English tokens."""

    def __init__(self, pieces: Sequence[str], names: bool = True) -> None:
        self.size = len(pieces)
        self.first = {piece: row for row, piece in enumerate(pieces) if piece[0] != LATER}
        self.later = {piece[1:]: row for row, piece in enumerate(pieces) if piece[0] == LATER}
        self.later.update({piece: row for piece, row in self.first.items() if is_unspaced(piece)})
        self.longest = max(map(len, pieces))
        self.english = bert_vocabulary() if names else None
        self.known: dict[str, tuple[int, ...]] = {}

    def of_word(self, word: str) -> tuple[int, ...]:
        """The rows that make up a word; letters that none begins with are left out."""
        row = self.first.get(word)
        if row is not None:
            return (row,)
        rows = []
        if self.english is not None and (plain := latin(word)):
            tokens = [token for token in self.english.pieces(plain) if token >= FIRST_WORD]
            if len(tokens) == 1:
                return (self.size + tokens[0],)
            rows = [self.size + TOKENS + token for token in tokens]
        start, known = 0, self.first
        while start < len(word):
            for end in range(min(len(word), start + self.longest), start, -1):
                row = known.get(word[start:end])
                if row is not None:
                    rows.append(row)
                    break
            start, known = end, self.later
        return tuple(rows)

    def counts(self, text: str) -> Counter[int]:
        """The rows of a text, each with how often it occurs."""
        counts: Counter[int] = Counter()
        for word in words(text):
            rows = self.known.get(word)
            if rows is None:
                rows = self.of_word(word)
                if len(self.known) < 500_000:
                    self.known[word] = rows
            counts.update(rows)
        return counts


class Tongues:
    """The table in a file: its pieces, and for each a vector in the space of the English ones."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            names = zlib.decompress(file["pieces"].tobytes()).decode().split("\n")
            codes = unpacked(file["codes"]).astype(np.float32)
            own: Any = (codes * file["scales"].astype(np.float32)[:, None]) @ file["turn"].astype(np.float32)
        self.pieces = Pieces(names)
        english = english_rows()
        self.rows: Floats = np.concatenate([own, english, np.float32(GUESS) * english])

    def embed(self, texts: Iterable[str]) -> Floats:
        """A vector of length 1 for each text; zeros where nothing is known."""
        sums = np.stack([self._sum(text) for text in texts])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        out: Floats = (sums / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return out

    def _sum(self, text: str) -> Floats:
        counts = self.pieces.counts(text)
        shares: Any = np.sqrt(np.fromiter(counts.values(), np.float32, len(counts)))
        out: Floats = shares @ self.rows[np.fromiter(counts.keys(), np.intp, len(counts))]
        return out


def english_rows() -> Floats:
    """The vectors of the English tokens as findling ships them."""
    table: Any = instant._table()
    rows: Floats = table["codes"].astype(np.float32) * table["scale"][:, None]
    return rows


def packed(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Four of the numbers -3, -1, 1 and 3 a byte, the first in the lowest bits."""
    parts = ((codes + 3) >> 1).astype(np.uint8)
    out: NDArray[np.uint8] = np.bitwise_or.reduce([parts[:, place::4] << 2 * place for place in range(4)])
    return out


def unpacked(data: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The numbers that `packed` put together."""
    out = np.empty((len(data), 4 * data.shape[1]), dtype=np.int8)
    for place in range(4):
        out[:, place::4] = 2 * (data >> 2 * place & 3).astype(np.int8) - 3
    return out
