"""How many tokens a text has for BERT's uncased WordPiece vocabulary, which the default embedding model reads.

`findling.text.wordpieces` says which tokens these are. To count them, order does not matter: a text is split at
spaces and ASCII marks with the speed of `bytes`, and the count of every part is remembered.
"""

from __future__ import annotations

from string import punctuation

from findling.text.wordpieces import CONTROLS, bert_vocabulary, plain_words

__all__ = ["MOST_TOKENS_OF_A_CHARACTER", "count_tokens"]

MOST_TOKENS_OF_A_CHARACTER = 3
"""A Korean syllable is up to three letters; nearly all other characters are one token or a part of one."""


def count_tokens(text: str) -> int:
    """The number of tokens, without the two that a model puts around a text."""
    data = text.encode("utf-8", "surrogatepass")
    marks = len(data.translate(None, _NO_MARKS))
    return marks + sum(map(_known.__getitem__, data.translate(_LOWER, CONTROLS).split()))


_MAX_KNOWN = 50_000
_LONGEST_KNOWN = 48

_MARKS = punctuation.encode()
_NO_MARKS = bytes(set(range(256)).difference(_MARKS))
_LOWER = bytes(ord(" ") if code in _MARKS else code for code in range(256)).lower()


class _Known(dict[bytes, int]):
    """Counts of words that were seen, filled when a new one is asked for; forgotten when there are too many."""

    def __missing__(self, word: bytes) -> int:
        text = word.decode("utf-8", "surrogatepass")
        pieces = bert_vocabulary().pieces
        count = len(pieces(text)) if word.isascii() else sum(map(len, map(pieces, plain_words(text))))
        if len(word) <= _LONGEST_KNOWN:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[word] = count
        return count


_known = _Known()
