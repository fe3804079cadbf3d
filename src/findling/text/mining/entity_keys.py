"""Keys of names: one for all ways to write a name that make no difference.

The Beatles', BEATLES → beatles        Café-Müller → cafe muller        Radium (band) → radium band, and radium
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

LONGEST_NAME = 8
"""Words of the longest name."""

BARE = 0.5
"""Share of the weight for `Radium` of a title `Radium (band)`."""

_POSSESSIVE = re.compile(r"['’ʼ]s(?!\w)|(?<=s)['’ʼ](?!\w)")
_DROPPED = re.compile("[.'’ʼ`\u0300-\u036f\u00ad\u200b-\u200f]+")
_BETWEEN = re.compile(r"[\W_]+")
PLURAL_ACRONYM = re.compile(r"(?<![^\W_])([A-Z]{2,})s(?![^\W_])")
_PLAIN = re.compile("[A-Z]?[a-z]+(?: [A-Z]?[a-z]+)*+")
_ARTICLES = ("the ", "a ", "an ")


@lru_cache(maxsize=8192)
def entity_key(label: str) -> str:
    """The normal form of a name; empty for a label without letters and digits."""
    if _PLAIN.fullmatch(label):
        key = label.lower()
    else:
        plain = PLURAL_ACRONYM.sub(r"\1", _POSSESSIVE.sub("", label))
        if not plain.isascii():
            plain = _composed(plain)
        key = _BETWEEN.sub(" ", _DROPPED.sub("", plain.casefold())).strip()
    for article in _ARTICLES:
        if key.startswith(article) and len(key) > len(article) + 1:
            return key[len(article) :]
    return key


def _composed(text: str) -> str:
    """Letters in one width and without accents; what is no accent, as in Hangul or Devanagari, stays."""
    bare = _DROPPED.sub("", unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text)).replace("-", " "))
    return unicodedata.normalize("NFC", bare)


_ASIDE = re.compile(r"\s*[(（][^()（）]{1,60}[)）]\s*$")


def title_forms(title: str) -> Iterator[tuple[str, float]]:
    """A title, and its name without what tells it from namesakes: a parenthesis at its end, a place after a comma."""
    whole = title.strip().replace("_", " ")
    if not whole or len(whole.split()) > LONGEST_NAME:
        return
    yield whole, 1.0
    bare = _ASIDE.sub("", whole)
    if bare != whole and bare:
        yield bare, BARE
    head, comma, rest = bare.partition(", ")
    if comma and head and rest[:1].isupper():
        yield head, BARE


_PARTICLE = re.compile("(?<=..)(?:에서|으로|은|는|이|가|을|를|의|에|와|과|도|로)$")


def without_particle(word: str) -> str:
    """A Korean word without its particle: 결과 and 회의 end like one, so what remains has to be long enough."""
    return _PARTICLE.sub("", word)
