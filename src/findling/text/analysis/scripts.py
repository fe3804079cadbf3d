"""Words of all scripts: accents that are optional, scripts without spaces, marks that belong to letters; emoji."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from math import inf
from typing import TypeVar
from zlib import crc32

from findling.domain.values import loose_name

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Remembered(dict[_Key, _Value]):
    """Values that `make` gives for keys when they are first asked for; forgotten before there are more than `most`.

    A text that is longer than `longest` hardly comes again, and is not kept.
    """

    def __init__(self, make: Callable[[_Key], _Value], most: float = inf, longest: float = inf) -> None:
        super().__init__()
        self._make, self._most, self._longest = make, most, longest

    def __missing__(self, key: _Key) -> _Value:
        value = self._make(key)
        if self._longest == inf or len(key) <= self._longest:  # type: ignore[arg-type]
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return value


_NOT_LATIN, _OTHERS = "[^\x00-\u024f\u1e00-\u1eff]", 3
"""A text with so many letters for one that is not Latin has too few of those."""

LONGEST_WORD = 128
"""Longer runs of letters are encoded data, not words: no search asks for them and each would be a new term."""

SIGNS = ("++", "#")
"""Ends of short names: C++, g++, Notepad++, C++17; C#, F#. Elsewhere these characters are separators."""

_SIGNED_NAME = (
    r"(?<![A-Za-z0-9])(?:[A-Za-z]{1,12}\+\+(?![A-Za-z+])[A-Za-z0-9]*|[A-Za-z]{1,2}#(?![A-Za-z0-9#]))"  # not a++b, PR#12
)

# Subwords as people read them: HTTP|Server, get|User|Name, IPv6|Address, sha256|sum.
_SUBWORD = r"[A-Z]{2,}[a-z]?[0-9]+|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+"
_LETTERS_OR_DIGITS = r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
_LETTER_RUNS = r"[a-z]+|[0-9]+"
compiled = cache(re.compile)
"""Patterns are texts until they are needed: all of them take 12 ms to compile, and most queries are plain words."""

MOST_ALTERNATIONS = 6
"""A word that changes more often between letters and digits is a hash: 3f2a9c1b is findable as a whole only."""


_WORD = f"{_SIGNED_NAME}|[^+#]+"
_SIGNED = r"([A-Za-z]+)(\+\+|#)([A-Za-z0-9]*)"


def words_of_run(run: str) -> list[str]:
    """The words of a run of letters, digits, `+` and `#`."""
    return compiled(_WORD).findall(run) if "+" in run or "#" in run else [run]


def word_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Spans of the words in a run of a text."""
    return [word.span() for word in compiled(_WORD).finditer(text, start, end)]


def identifier_terms(word: str) -> list[str]:
    """The terms of an ASCII word: the whole in lower case, then its parts if it has several.

    A name with a sign follows the name itself, so that `this.count` also stands in a row where `this.count++` does.
    """
    if not word or len(word) > LONGEST_WORD:
        return []
    whole = word.lower()
    if word.isalpha():
        if word == whole:
            return [whole]
    else:
        if signed := compiled(_SIGNED).fullmatch(word):
            return _signed_terms(*signed.groups())
        if len(compiled(_LETTER_RUNS).findall(whole)) > MOST_ALTERNATIONS:
            return [whole]
    parts: list[str] = []
    for subword in compiled(_SUBWORD).findall(word):
        parts.append(subword.lower())
        if not subword.isalpha() and not subword.isdigit():
            parts.extend(piece.lower() for piece in compiled(_LETTERS_OR_DIGITS).findall(subword))
    return parts if parts[0] == whole else [whole, *parts]


def name_terms(name: str) -> str:
    """The two terms of a defined name with a space between them, the same for every case and style of it.

    They are halves of a checksum: 8,192 terms serve all names, where one term a name takes 5 % of a first index. Of
    20,000 chunks 0.1 have both terms and not the name.
    """
    digits = format(crc32(loose_name(name).encode("utf-8", "surrogatepass")), "08x")
    return f"{digits[5:]} {digits[2:5]}."


def name_parts(text: str) -> list[str]:
    """The parts of a name that scopes qualify, the innermost last: of `Session::send`, `session->send`, `a.b()`."""
    return [part for part in re.split(_SCOPE_MARKS, text) if part]


def written_name(text: str) -> str:
    """The innermost name of a text that is one word written like a name, with a capital or `_`; else empty.

    `config.json` and `example.com` are written like files and hosts.
    """
    word = text.strip("`'\"(){};, ")
    if not word or (word.islower() and "_" not in word):
        return ""
    parts = name_parts(word)
    return parts[-1] if parts and parts[-1].isidentifier() else ""


_SCOPE_MARKS = r"::|->|[.:#\\/()]"


def _signed_terms(name: str, sign: str, version: str) -> list[str]:
    signed = f"{name.lower()}{sign}"
    parts = [*identifier_terms(name), signed, *identifier_terms(version)]
    return [f"{signed}{version.lower()}", *parts] if version else parts


# Scripts written without spaces between words, and Hangul, whose particles are glued to the noun.
_UNSPACED_CLASS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3005\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Hangul
)

# Written out, because the Unicode tables of Python know no emoji, and those of an older Python not the newer ones.
_EMOJI_CLASS = (
    "⌚⌛⌨⏏⏩-⏳⏸-⏺"
    "☀-☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸-☺♀♂♈-♓♟♠♣♥♦♨♻♾♿⚒-⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰-⛵⛷-⛺⛽"
    "✂✅✈-✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣❤➕-➗➰➿⬛⬜⭐⭕"
    "\U0001f004\U0001f0cf\U0001f170\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a"
    "\U0001f300-\U0001f3fa\U0001f400-\U0001f64f\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7f0"
    "\U0001f90c-\U0001f9ff\U0001fa70-\U0001faff"
)
_FLAG_CLASS = "\U0001f1e6-\U0001f1ff"  # a flag is two of these letters

# Accents of Latin, Greek and Cyrillic, Hebrew points, Arabic vowel signs: written or left out at will. Marks of
# Indic and other scripts are letters in their own right, and so is the breve of й.
_OPTIONAL_MARKS = "(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]"
_LETTERS = {"ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ς": "σ"}
_UNDECOMPOSED = str.maketrans(
    _LETTERS | {"ẞ": "SS", "Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "Th", "Æ": "Ae", "Œ": "Oe"}
)


# \w lacks combining marks, without which Hindi and decomposed accents fall apart; joiners stand inside words.
_MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d"
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u20dd-\u20e4\u3099\u309a\ufe00-\ufe0f"
) + "".join(  # the Indic blocks share one layout
    f"{chr(c)}-{chr(c + 3)}{chr(c + 0x3A)}-{chr(c + 0x4F)}{chr(c + 0x55)}-{chr(c + 0x63)}"
    for c in range(0x0900, 0x0E00, 0x80)
)
_ONE_EMOJI = f"[{_EMOJI_CLASS}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"


_UNSPACED = f"[{_UNSPACED_CLASS}]+"
_EMOJI = f"[{_EMOJI_CLASS}]"
_RUNS = f"[{_UNSPACED_CLASS}]+|[{_FLAG_CLASS}]{{2}}|[^{_UNSPACED_CLASS}{_FLAG_CLASS}]+"
_PLACES = (
    f"{_SIGNED_NAME}|(?P<unspaced>[{_UNSPACED_CLASS}]+)|[{_FLAG_CLASS}]{{2}}|{_ONE_EMOJI}(?:\u200d{_ONE_EMOJI})*"
    f"|(?:[^\\W_{_UNSPACED_CLASS}]|[{_MARKS}])+"
)


def unicode_terms(word: str) -> list[str]:
    """The terms of a word that is not ASCII: pairs of characters for unspaced scripts, folded words for the others."""
    result: list[str] = []
    for run in compiled(_RUNS).findall(word):
        if compiled(_UNSPACED).match(run):
            # The last character stands alone as well: with it every character is the beginning of some term.
            result += [run[at : at + 2] for at in range(len(run))]
        else:
            for part in words_of_run(run):
                result += _spaced_terms(part)
    return result


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    return not character.isascii() and compiled(_UNSPACED).match(character) is not None


def is_mostly_unspaced(text: str) -> bool:
    """Whether more than half of a text is written without spaces between its words."""
    return not text.isascii() and 2 * sum(map(len, compiled(_UNSPACED).findall(text))) > len(text)


def has_other_letters(text: str) -> bool:
    """Whether a third of the letters of a text are not Latin."""
    if text.isascii():
        return False
    # Signs first: of most texts a dash is left. Letter by letter an index run took 1.2 times as long.
    others = sum(map(str.isalpha, compiled(_NOT_LATIN).findall(text)))
    return others > 0 and _OTHERS * others > sum(map(str.isalpha, text))


def is_emoji(character: str) -> bool:
    """Whether a character is a picture: no arrow, no box, no sign of mathematics."""
    return compiled(_EMOJI).match(character) is not None


def unicode_places(text: str) -> Iterator[tuple[int, int, bool]]:
    """Spans of the words of a text; unspaced scripts give one span per term, and True with it."""
    for place in compiled(_PLACES).finditer(text):
        start, end = place.span()
        if place["unspaced"]:
            yield from ((at, min(at + 2, end), True) for at in range(start, end))
        else:
            yield start, end, False


def _spaced_terms(word: str) -> list[str]:
    plain = re.sub(_OPTIONAL_MARKS, "", unicodedata.normalize("NFD", word)).translate(_UNDECOMPOSED)
    if plain.isascii():
        return identifier_terms(plain)
    folded = unicodedata.normalize("NFC", plain.casefold())
    return [folded] if len(folded) <= LONGEST_WORD else []
