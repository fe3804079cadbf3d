"""How much of a query an English vocabulary knows: what it cuts into letters has no meaning to it."""

from __future__ import annotations

from collections.abc import Container

from findling.text.analysis.sentences import SENTENCE_WORDS
from findling.text.analysis.wordpieces import bert_vocabulary, plain_words

__all__ = ["known_share"]

_FEW_PIECES, _LETTERS_A_PIECE = 2, 3
"""A word of more pieces that are shorter on average is cut into letters: `asdkjhqwe` is as dk j h q we, `blockchain` is
block chain. 95 % of random words are cut so, and 11 % of all words of the questions of four development sets."""


def known_share(text: str, held: Container[str] = ()) -> float:
    """The share of the words of a text, those aside that hold a sentence together, which have a meaning.

    `held` are words that are known anyway, since the index holds them. A text without words is known wholly.
    """
    words = [word for word in plain_words(text) if word.isalpha()]
    telling = [word for word in words if word not in SENTENCE_WORDS] or words
    if not telling:
        return 1.0
    return sum(word in held or _is_known(word) for word in telling) / len(telling)


def _is_known(word: str) -> bool:
    vocabulary = bert_vocabulary()
    pieces = len(vocabulary.pieces(word))
    if pieces == 1:
        return word in vocabulary.numbers  # else it is read as one unknown word
    return pieces <= _FEW_PIECES or len(word) >= _LETTERS_A_PIECE * pieces
