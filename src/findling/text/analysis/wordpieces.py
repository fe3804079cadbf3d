"""The tokens of a text as BERT's uncased models read them: numbers of entries in a WordPiece vocabulary.

The steps are BERT's own: drop control characters, split at spaces, punctuation and Chinese characters, remove accents,
lower the case. Then take the longest known beginning again and again. No rule looks across a space, so `bytes.split`
cuts the text and a cache holds the tokens of every part. A bag of tokens has no order: its words are also split at
ASCII marks first. Of 14 MB of code 21 % of what stands between spaces is new, and 3 % of what stands between marks.
The names of special tokens (`[SEP]`) are read as the plain text that they are. Of the signs that Unicode has gained
since 2015, some 500 are read by the tables of today; `tokenizers` keeps to older ones and knows none of them.
"""

from __future__ import annotations

import re
import unicodedata
from _blake2 import blake2b  # that of hashlib, without 3 ms of OpenSSL
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from string import punctuation

from findling.core import native
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.analysis.scripts import Remembered


def piece_ids(text: str, limit: int | None = None) -> list[int]:
    """The tokens of a text in BERT's own uncased vocabulary, at most `limit`, without the two put around a text."""
    return _bert_pieces().ids(text, limit)


def piece_counts(text: str) -> Counter[int]:
    """The tokens of a text in BERT's own uncased vocabulary, each with the number of times it occurs."""
    words, marks = _words_and_marks(text)
    numbers = bert_vocabulary().numbers
    counts = Counter(chain.from_iterable(map(word_tokens.__getitem__, words)))
    for mark, count in Counter(marks.decode()).items():
        counts[numbers[mark]] += count
    return counts


def count_tokens(text: str) -> int:
    """The number of tokens, without the two that a model puts around a text."""
    if native is not None:
        return native.count_tokens(native_vocabulary(), text, word_tokens)
    return _count_tokens(text)


def _count_tokens(text: str) -> int:
    words, marks = _words_and_marks(text)
    return len(marks) + sum(map(len, map(word_tokens.__getitem__, words)))


class WordPieces:
    """Turns texts into tokens of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pieces = vocabulary.pieces
        self._parts = Remembered(self._ids_of, _MAX_KNOWN, _LONGEST_KNOWN)

    def _ids_of(self, part: bytes) -> tuple[int, ...]:
        """The tokens of what stands between two spaces."""
        text = part.decode("utf-8", "surrogatepass")
        words = _WORDS_AND_MARKS(text) if part.isascii() else plain_words(text)
        return tuple(chain.from_iterable(map(self._pieces, words)))

    def ids(self, text: str, limit: int | None = None) -> list[int]:
        """The tokens of a text, at most `limit` of them, without the two that a model puts around a text."""
        data = text.encode("utf-8", "surrogatepass").translate(_LOWER, _CONTROLS)
        if limit is None:
            return list(chain.from_iterable(map(self._parts.__getitem__, data.split())))
        ids: list[int] = []
        while data and len(ids) < limit:
            wanted = limit - len(ids)
            parts = data.split(None, wanted)
            # The part behind the last split is the unread rest of the text.
            data = parts.pop() if len(parts) > wanted else b""
            ids.extend(chain.from_iterable(map(self._parts.__getitem__, parts)))
        return ids[:limit]


class Vocabulary:
    """The entries of a vocabulary with their numbers: those a word can begin with, and `##` those that can follow.

    `unknown` is the entry for a word that no others make up; KeyError when there is none.
    """

    def __init__(self, numbers: Mapping[str, int], unknown: str = "[UNK]") -> None:
        self.numbers = numbers
        self._unknown = (numbers[unknown],)
        self._later = {entry[2:]: number for entry, number in numbers.items() if entry[:2] == "##" and len(entry) > 2}
        self._longest, self._longest_later = _longest_by_start(numbers), _longest_by_start(self._later)

    def pieces(self, word: str) -> Sequence[int]:
        """The entries that make up the word, the longest first, or the one for unknown words."""
        known, longest = self.numbers, self._longest
        number = known.get(word)
        if number is not None:
            return (number,)
        length = len(word)
        if length > _LONGEST_WORD:
            return self._unknown
        pieces: list[int] = []
        start = 0
        while start < length:
            end = start + longest.get(word[start : start + 2], 1)
            if end > length:
                end = length
            while (number := known.get(word[start:end])) is None:
                end -= 1
                if end == start:
                    return self._unknown
            pieces.append(number)
            start, known, longest = end, self._later, self._longest_later
        return pieces


def plain_words(text: str) -> list[str]:
    """The words and marks of a text in the plain letters that a vocabulary holds."""
    return unicodedata.normalize("NFD", text).translate(_signs).split()


@cache
def bert_vocabulary() -> Vocabulary:
    """The vocabulary of BERT's uncased models, 30,522 entries."""
    lines = _entries().decode().splitlines()
    return Vocabulary({entry: number for number, entry in enumerate(lines)})


@cache
def native_vocabulary() -> object:
    """The same vocabulary as the compiled core reads it."""
    assert native is not None
    return native.vocabulary(_entries())


def _entries() -> bytes:
    import gzip  # a process that only asks for a name of vectors has no use for it

    return gzip.decompress(_VOCABULARY.read_bytes())


@cache
def _bert_pieces() -> WordPieces:
    return WordPieces(bert_vocabulary())


_VOCABULARY = Path(__file__).with_name("data") / "bert-uncased-vocab.txt.gz"
_LONGEST_WORD = 100
"""BERT reads a longer word as one unknown token."""

_MAX_KNOWN = 50_000
_LONGEST_KNOWN = 48

_CONTROLS = bytes(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")
"""Bytes that BERT drops wherever they stand."""

_MARKS = punctuation.encode()
_NO_MARKS = bytes(set(range(256)).difference(_MARKS))
_LOWER = bytes(range(256)).lower()
_LOWER_SPACED = bytes(ord(" ") if code in _MARKS else code for code in range(256)).lower()
_WORDS_AND_MARKS = re.compile(f"[{re.escape(punctuation)}]|[^{re.escape(punctuation)}]+").findall


def _words_and_marks(text: str) -> tuple[list[bytes], bytes]:
    """Words between spaces and ASCII marks, in lower case, and these marks."""
    data = text.encode("utf-8", "surrogatepass")
    return data.translate(_LOWER_SPACED, _CONTROLS).split(), data.translate(None, _NO_MARKS)


def _tokens_of(word: bytes) -> Sequence[int]:
    """The tokens of what stands between spaces and marks."""
    text = word.decode("utf-8", "surrogatepass")
    # The vocabulary in Python takes 40 ms to build.
    pieces = bert_vocabulary().pieces if native is None else partial(native.word_pieces, native_vocabulary())
    return pieces(text) if word.isascii() else tuple(chain.from_iterable(map(pieces, plain_words(text))))


word_tokens = Remembered(_tokens_of, _MAX_KNOWN, _LONGEST_KNOWN)


def _plain_sign(code: int) -> str:
    """The reading of a character that does not decompose further, as BERT has it."""
    sign = chr(code)
    category = unicodedata.category(sign)
    if category in ("Cc", "Cf", "Co", "Cs", "Mn") or sign == "\ufffd":
        return ""
    if category[0] == "P" or sign in punctuation or any(first <= sign <= last for first, last in _CHINESE):
        return f" {sign} "
    return " " if sign.isspace() else sign.lower()


_signs = Remembered(_plain_sign)

_CHINESE = (
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0002a6df"),
    ("\U0002a700", "\U0002b81f"),
    ("\U0002b920", "\U0002ceaf"),
    ("\U0002f800", "\U0002fa1f"),
)


def _longest_by_start(entries: Mapping[str, int]) -> dict[str, int]:
    """Length of the longest entry by its first two letters."""
    longest: dict[str, int] = {}
    for entry in entries:
        start, length = entry[:2], len(entry)
        if length > longest.get(start, 0):
            longest[start] = length
    return longest


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
    return sum(1.0 if word in held else has_meaning(word) for word in telling) / len(telling)


def has_meaning(word: str) -> float:
    """The share of its meaning that a model knows of a word: all if it is English, half of few long pieces."""
    pieces = len(bert_vocabulary().pieces(word))
    is_cut = not (1 < pieces <= _FEW_PIECES or (pieces > 1 and len(word) >= _LETTERS_A_PIECE * pieces))
    return 1.0 if is_english(word) else 0.0 if is_cut else 0.5


def is_english(word: str) -> bool:
    """Whether a word is one piece of the vocabulary, or in a list of English words, such as insomnia."""
    vocabulary = bert_vocabulary()
    # What is too long to be read is one unknown piece.
    return word in vocabulary.numbers if len(vocabulary.pieces(word)) == 1 else _is_listed(word)


@lru_cache(maxsize=256)
def is_foreign(text: str) -> bool:
    """Whether a question is asked in another language than English.

    Where neither letters nor small words say so, most of its words are no English ones, and known in other languages.
    """
    from findling.text.analysis.analysis import phrase_terms
    from findling.text.analysis.stemming import is_foreign_by_looks
    from findling.text.analysis.tongue_pieces import foreign_words, small_words_told, whole

    has_english, others = small_words_told(phrase_terms(text))
    if is_foreign_by_looks(text) or others + (not text.isascii()) >= _SMALL_WORDS:
        return True
    words = [word for word in foreign_words(text) if word.isalpha() and len(word) > 1]
    if not words or has_english:
        return False
    # A word with accents may be English by its letters: `déjà`, and `über` is no uber.
    others = sum(not is_english("".join(plain_words(word))) and whole(word) is not None for word in words)
    return others * (3 if len(words) >= _SENTENCE else 2) > len(words)


_SMALL_WORDS = 3
_SENTENCE = 4
"""Words of which a third tell a language; of fewer more than half."""

_HASHES = 7


def _is_listed(word: str) -> bool:
    """Whether a word is one of the English ones that are cut into pieces; one in 120 others passes for one."""
    bits, digest = _rare_words(), blake2b(word.encode(), digest_size=4 * _HASHES).digest()
    places = [int.from_bytes(digest[at : at + 4], "little") % (8 * len(bits)) for at in range(0, 4 * _HASHES, 4)]
    return all(bits[place >> 3] >> (place & 7) & 1 for place in places)


@cache
def _rare_words() -> bytes:
    """A Bloom filter of 10 bits a word; `training/rare_words.py` makes it of the list of SCOWL."""
    return (Path(__file__).with_name("data") / "rare-words.bloom").read_bytes()
