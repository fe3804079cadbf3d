"""Which words an acronym stands for: its letters, looked up in the words around it.

After the idea of Schwartz and Hearst (2003): the letters stand in a row in the words, and letters inside words count
(`hypertext markup language`, HTML). Stricter than theirs in one point: every word that matters gives its first letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["expansion_after", "expansion_before", "short_form"]

_SHAPE = re.compile(r"[^\W_](?:[\w&/+-]|\.(?=\w)){1,9}\.?")
_PLURAL = re.compile(r"(?<=[A-ZÄÖÜ])['’]?s$")
_POSSESSIVE = re.compile(r"['’]s?$")
_NUMERONYM = re.compile(r"([^\W\d_])(\d{1,2})([^\W\d_])")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SMALL = frozenset(
    "a an and as at by de del der des die das du e el et for für im in into la le les los of on or the to und "
    "van vom von with y zu zum zur à".split()
)
_DETERMINERS = frozenset("a an the der die das den dem des ein eine le la les el los".split())
_SPOKEN = {"2": ("to", "two"), "4": ("for", "four"), "x": ("ex", "cross", "trans")}
"""What else a letter stands for: P2P is peer-to-peer, XML is extensible markup language."""


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def short_form(text: str) -> str:
    """The text as an acronym in the singular, or nothing when it has not the shape of one: 2 to 10 letters and signs.

    Lower-case letters are allowed; whether they are an acronym shows when words are found for them.
    """
    if _SHAPE.fullmatch(text) is None:
        return ""
    text = _PLURAL.sub("", text.rstrip("."))
    return text if sum(map(str.isalpha, text)) > 1 else ""


def expansion_before(short: str, text: str) -> str:
    """The words at the end of the text that a short form stands for, or nothing."""
    words = _words(text)[-_most_words(short) :]
    count = _spelled(short, words, inside=False) or _spelled(short, words, inside=True)
    return _written_out(short, text, words[len(words) - count :])


def expansion_after(short: str, text: str, *, whole: bool) -> str:
    """The words at the beginning of the text, or with `whole` all its words, that a short form stands for."""
    words = _words(text)
    if not words or not _begins(words[0].text, short[0].lower()):
        return ""
    # Initials of more words go before letters inside of fewer: WPT is `web platform tests`, not `web platform`.
    for inside in (False, True):
        for count in range(len(words) if whole else 2, min(len(words), _most_words(short)) + 1):
            if _spelled(short, words[:count], inside=inside) == count:
                return _written_out(short, text, words[:count])
    return ""


def _words(text: str) -> list[_Word]:
    return [_Word(found.group().lower(), *found.span()) for found in _WORD.finditer(text)]


def _most_words(short: str) -> int:
    return min(len(short) + 5, 2 * len(short))


def _written_out(short: str, text: str, words: Sequence[_Word]) -> str:
    """The words as they stand in the text, unless they cannot be an expansion after all."""
    if not words or any(word.text == short.lower() for word in words):
        return ""
    # A small word at the end belongs to it only when the last letter is its own: SSO is `single sign-on`.
    if words[-1].text in _SMALL and not _begins(words[-1].text, short.lower()[-1]):
        return ""
    if words[0].text in _DETERMINERS and text[words[0].start].islower():
        return ""
    written = _POSSESSIVE.sub("", " ".join(text[words[0].start : words[-1].end].split()))
    return written if len(written) > len(short) + 1 else ""


def _spelled(short: str, words: Sequence[_Word], *, inside: bool) -> int:
    """How many of the last words spell the short form; 0 when none do. `inside`: with letters from inside words."""
    lowered = short.lower()
    if inside and words and (numeronym := _NUMERONYM.fullmatch(lowered)):
        first, between, last = numeronym.groups()
        word = words[-1].text
        if len(word) == int(between) + 2 and word[0] == first and word[-1] == last:
            return 1
    # What is not in capitals may be any word in parentheses: only the initials of three or more words will do.
    if (inside or len(short) < 3) and not _is_capital(short):
        return 0
    letters = "".join(filter(str.isalnum, lowered))
    return _aligned(letters, [word.text for word in words], inside=inside) or 0


def _is_capital(short: str) -> bool:
    return sum(character.isupper() or character.isdigit() for character in short) > 1


def _aligned(letters: str, words: Sequence[str], *, inside: bool) -> int | None:
    """How many of the last words give the letters: each its initial and, `inside`, any that follow it in a row."""
    if not letters:
        return 0
    if not words:
        return None
    rest, word = words[:-1], words[-1]
    for at in range(len(letters) - 1, -1, -1):
        if not _in_a_row(letters[at + 1 :], word):
            break
        if _begins(word, letters[at]):
            found = _aligned(letters[:at], rest, inside=inside)
            if found is not None:
                return found + 1
        if not inside:
            break
    if word not in _SMALL:
        return None
    found = _aligned(letters, rest, inside=inside)
    return None if found is None else found + 1


def _begins(word: str, letter: str) -> bool:
    return word.startswith((letter, *_SPOKEN.get(letter, ())))


def _in_a_row(letters: str, word: str) -> bool:
    at = 0
    for letter in letters:
        at = word.find(letter, at + 1)
        if at < 0:
            return False
    return True
