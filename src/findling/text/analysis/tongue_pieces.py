"""Words of other languages cut into the longest known pieces: those of 119 languages that a text may be made of.

A word is known as a whole, or cut: its longest beginning, then again and again the longest piece that words go on with.
Where no spaces stand between words (Chinese, Japanese, Thai, …) a run of letters is cut like one long word.

165,000 pieces lie sorted in one list. Those of one first letter are looked up together, when a word first asks for one:
all at once take 60 ms, those of a question 2.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from findling.text.analysis.analysis import phrase_terms
from findling.text.analysis.scripts import Remembered, compiled, has_other_letters
from findling.text.analysis.stemming import (
    by_word,
    is_function_word,
    languages_by_word,
    small_words,
    telling_words,
)

_PIECES = Path(__file__).with_name("data") / "tongue-pieces.txt.gz"

_LATER = "\x02"
"""Stands before a piece that words go on with."""

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Scripts whose words stand next to each other, by the beginning of their signs' names."""


def foreign_words(text: str) -> list[str]:
    """The words of a text in lower case, cut at everything that is neither a letter nor a digit."""
    return unicodedata.normalize("NFKC", text).lower().translate(_signs).split()


def whole(word: str) -> int | None:
    """The row of a piece that is this word."""
    return _beginning(word[0]).rows.get(word)


def cut(word: str) -> list[int]:
    """The rows of the longest pieces that make up a word; letters that no piece begins with are left out."""
    rows, start, later = [], 0, ""
    while start < len(word):
        pieces = _beginning(later + word[start])
        for end in range(min(len(word), start + pieces.longest), start, -1):
            row = pieces.rows.get(word[start:end])
            if row is not None:
                rows.append(row)
                break
        start, later = end, _LATER
    return rows


def knows_a_word(text: str, held: Container[str] = ()) -> bool:
    """Whether a question in another language has a word with a meaning, small ones aside, or none at all.

    A piece, or what is cut into pieces of two letters and more, has one; so have signs of scripts without spaces, and
    the words in `held`.
    """
    telling = [word for word in foreign_words(text) if not all(map(is_function_word, phrase_terms(word)))]
    return not telling or any(
        _has_meaning(word) or any(term in held for term in phrase_terms(word)) for word in telling
    )


def _has_meaning(word: str) -> bool:
    pieces = len(cut(word))
    return whole(word) is not None or len(word) >= (1 if is_unspaced(word[0]) else _LETTERS_A_PIECE) * pieces > 0


def is_unspaced(sign: str) -> bool:
    """Whether a sign belongs to a script without spaces."""
    return not sign.isascii() and unicodedata.name(sign, "").startswith(_UNSPACED)


def _read_as(code: int) -> str:
    """A letter as itself, a digit of any script as 0 to 9, marks of vowels in Arabic and Hebrew as nothing."""
    sign = chr(code)
    category = unicodedata.category(sign)
    if category == "Nd":
        return str(unicodedata.decimal(sign))
    if category == "Cf" or 0x591 <= code < 0x5C8 or 0x64B <= code < 0x671 or code == 0x640:
        return ""
    return sign if category[0] in "LMN" else " "


_signs = Remembered(_read_as)


class _Beginning(NamedTuple):
    """The pieces that begin with one letter: their rows, and the length of the longest."""

    rows: dict[str, int]
    longest: int


@cache
def _beginning(begin: str) -> _Beginning:
    """The pieces that begin a word with a letter; with `_LATER` before it, those that go on with it."""
    pieces = _pieces()
    low, high = (bisect_left(pieces, begin.encode() + end) for end in (b"", b"\xff"))
    rows = {piece.decode().lstrip(_LATER): low + at for at, piece in enumerate(pieces[low:high])}
    if begin[0] == _LATER and is_unspaced(begin[1]):
        rows |= _beginning(begin[1]).rows
    return _Beginning(rows, max(map(len, rows), default=1))


@cache
def _pieces() -> list[bytes]:
    import gzip  # English texts have no use for it

    return gzip.decompress(_PIECES.read_bytes()).splitlines()


def is_foreign_passage(text: str) -> bool:
    """Whether a passage is written in another language than English, by what it begins with.

    Its letters say so, or small words that English does not have: four of three letters, fewer in a short passage, and
    more than there are English ones. Names with accents say so where hardly a small word stands.
    """
    begin = text[:_READ]
    if has_other_letters(begin):
        return True
    words = set(begin.lower().split())
    english = len(words & telling_words()["english"])
    # Most passages end here; what follows takes as long again.
    if english > _SURE or (english and begin.isascii() and len(words & _telling_others()) <= english):
        return False
    if not begin.isascii():
        accented = sum(map(str.isalpha, compiled(_NOT_ASCII).findall(begin)))
        if english < _FEW and _ACCENTED * accented >= len(begin):
            return True
        words.update(phrase_terms(begin))
    others = _most_of_another(words, _languages_by_telling_word())
    if others > english and others >= min(max(len(words) // _PART, 2), _NEEDED):
        return True
    return not english and small_words_told(words)[1] >= max(_SMALL_WORDS, len(words) // _CROWDED)


def small_words_told(words: Collection[str]) -> tuple[bool, int]:
    """Whether there are small words that English alone has, and how many one other language has, 0 unless it has more.

    `le`, `la` and `sur` tell no language by themselves; three of them do.
    """
    words = {word for word in words if len(word) > 1}
    others = _most_of_another(words, languages_by_word())
    is_more = others > len(words & small_words("english")[0])
    return not words.isdisjoint(telling_words()["english"]), others if is_more else 0


def _most_of_another(words: Collection[str], known: Mapping[str, Sequence[str]]) -> int:
    """The most words that one language has, English aside; `known` tells the languages of a word."""
    # A handful: to ask each of 43 languages for them took an eighth of a page of 100 hits.
    said = Counter(chain.from_iterable(map(known.__getitem__, known.keys() & words)))
    return max([count for language, count in said.items() if language != "english"], default=0)


@cache
def _telling_others() -> frozenset[str]:
    return frozenset().union(*[words for language, words in telling_words().items() if language != "english"])


@cache
def _languages_by_telling_word() -> dict[str, list[str]]:
    return by_word(telling_words())


_LETTERS_A_PIECE = 2
"""Letters for one piece of a word that has a meaning. Of words in the help of GNOME, which no table was fitted to, 0 to
3 % have fewer in Latin and Russian letters, 11 % in Greek; one typed at random has 1.3."""

_READ = 800
"""Signs of a passage that are looked at: two in three of a whole one."""

_NEEDED, _PART = 4, 12
"""Small words that tell a language, and different words for one where a passage is short."""

_SMALL_WORDS, _CROWDED = 3, 6
"""The same for small words of any length, where none is English."""

_NOT_ASCII = "[^\x00-\x7f]"

_SURE, _FEW, _ACCENTED = 8, 2, 50
"""English small words that need no other look, those that names with accents outvote, and signs for one accent."""
