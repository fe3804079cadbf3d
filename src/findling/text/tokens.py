"""How many tokens a text has for BERT's uncased WordPiece vocabulary, which the default embedding model reads.

The steps are BERT's own: drop control characters, split at spaces, punctuation and Chinese characters, take accents
off, lower the case, then take the longest known beginning again and again. Nothing in them looks across a space or
an ASCII mark, so a text is split at those with the speed of `bytes` and the count of every part is remembered. The
names of special tokens (`[SEP]`) count as the plain text that they are.
"""

from __future__ import annotations

import gzip
import unicodedata
from functools import cache
from pathlib import Path
from string import punctuation
from typing import NamedTuple

__all__ = ["MOST_TOKENS_OF_A_CHARACTER", "count_tokens"]

MOST_TOKENS_OF_A_CHARACTER = 3
"""A Korean syllable is up to three letters; nearly all other characters are one token or a part of one."""


def count_tokens(text: str) -> int:
    """The number of tokens, without the two that a model puts around a text."""
    data = text.encode("utf-8", "surrogatepass")
    marks = len(data.translate(None, _NO_MARKS))
    return marks + sum(map(_known.__getitem__, data.translate(_LOWER, _DROPPED).split()))


_VOCABULARY = Path(__file__).with_name("data") / "bert-uncased-vocab.txt.gz"
_LONGEST_WORD = 100
"""BERT reads a longer word as one unknown token."""

_MAX_KNOWN = 50_000
_LONGEST_KNOWN = 48

_MARKS = punctuation.encode()
_NO_MARKS = bytes(set(range(256)).difference(_MARKS))
_LOWER = bytes(ord(" ") if code in _MARKS else code for code in range(256)).lower()
_DROPPED = bytes(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")


class _Known(dict[bytes, int]):
    """Counts of words that were seen, filled when a new one is asked for; forgotten when there are too many."""

    def __missing__(self, word: bytes) -> int:
        if word.isascii():
            count = _pieces(word.decode("ascii"))
        else:
            plain = unicodedata.normalize("NFD", word.decode("utf-8", "surrogatepass")).translate(_signs)
            count = sum(map(_pieces, plain.split()))
        if len(word) <= _LONGEST_KNOWN:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[word] = count
        return count


_known = _Known()


class _Signs(dict[int, str]):
    """What BERT makes of a character that does not decompose any further, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        sign = self[code] = _plain_sign(chr(code))
        return sign


_signs = _Signs()


def _plain_sign(sign: str) -> str:
    category = unicodedata.category(sign)
    if category in ("Cc", "Cf", "Co", "Cs", "Mn") or sign == "\ufffd":
        return ""
    if category[0] == "P" or sign in punctuation or _is_chinese(sign):
        return f" {sign} "
    return " " if sign.isspace() else sign.lower()


def _is_chinese(sign: str) -> bool:
    return any(first <= sign <= last for first, last in _CHINESE)


_CHINESE = (
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0002a6df"),
    ("\U0002a700", "\U0002b81f"),
    ("\U0002b920", "\U0002ceaf"),
    ("\U0002f800", "\U0002fa1f"),
)


def _pieces(word: str) -> int:
    """How many entries of the vocabulary make up the word, the longest first; one, the unknown, when none do."""
    first, later = _vocabulary()
    length = len(word)
    if length == 1 or length > _LONGEST_WORD or word in first.entries:
        return 1
    count = start = 0
    known = first
    while start < length:
        end = min(start + known.longest.get(word[start : start + 2], 1), length)
        while end > start and word[start:end] not in known.entries:
            end -= 1
        if end == start:
            return 1
        count, start, known = count + 1, end, later
    return count


class _Entries(NamedTuple):
    """Entries that can stand at one place of a word, and how long they are at most by their first two letters."""

    entries: frozenset[str]
    longest: dict[str, int]


@cache
def _vocabulary() -> tuple[_Entries, _Entries]:
    """What a word can begin with, and what can follow."""
    lines = gzip.decompress(_VOCABULARY.read_bytes()).decode().splitlines()
    later = [line[2:] for line in lines if line.startswith("##") and len(line) > 2]
    return _entries(lines), _entries(later)


def _entries(words: list[str]) -> _Entries:
    longest: dict[str, int] = {}
    for word in words:
        longest[word[:2]] = max(len(word), longest.get(word[:2], 1))
    return _Entries(frozenset(words), longest)
