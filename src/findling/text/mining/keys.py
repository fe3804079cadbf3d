"""Keys: one for all ways to write a name, or a term of the glossary, that make no difference to what it means.

    The Beatles', BEATLES → beatles        Café-Müller → cafe muller        Radium (band) → radium band, and radium
    Rate-Limits, rate limit, rateLimit, RATE_LIMIT → rate limit        인증을, 인증은 → 인증

Where the package `kiwipiepy` is installed it finds the nouns of Korean words; without it common particles are cut off.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

from findling.text.analysis.analysis import row_terms
from findling.text.analysis.stemming import stem

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


LONGEST_TERM = 5
"""Words of the longest term that is looked for in a query."""

_NOUN_TAGS = ("N", "XPN", "XSN", "XR", "SL", "SN", "SH")

_HANGUL = re.compile("[\uac00-\ud7a3]")
_KOREAN_WORD = re.compile(r"\w*[\uac00-\ud7a3]\w*")
_KOREAN_SPACE = re.compile(r"(?<=[\uac00-\ud7a3])\s+(?=[\uac00-\ud7a3])")


@lru_cache(maxsize=4096)
def glossary_key(surface: str) -> str:
    """The terms of a surface in a row, the last one without its ending; empty for a surface without any word."""
    text = surface if surface.isascii() else unicodedata.normalize("NFKC", surface)
    if has_hangul(text):
        # Whether the parts of a Korean compound are written apart is a matter of taste.
        text = _KOREAN_SPACE.sub("", _KOREAN_WORD.sub(lambda word: _strip_particle()(word[0]), text))
    row: list[str] = []
    for word in PLURAL_ACRONYM.sub(r"\1", text).split():
        row += row_terms(word)
    return " ".join([*row[:-1], stem(row[-1])]) if row else ""


def lower_key(surface: str) -> str:
    """The key without regard to capitals inside a word: `github` for GitHub, which as a row is `git hub`."""
    return glossary_key(surface.lower())


def has_hangul(text: str) -> bool:
    """Whether there is a Korean syllable in the text."""
    return not text.isascii() and _HANGUL.search(text) is not None


@cache
def _strip_particle() -> Callable[[str], str]:
    """Endings that turn a Korean noun into a word of a sentence."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("kiwipiepy") is None:
        return without_particle
    analyser: Any = import_module("kiwipiepy").Kiwi()

    def nouns(word: str) -> str:
        kept = [token.form for token in analyser.tokenize(word) if token.tag.startswith(_NOUN_TAGS)]
        return "".join(kept) or word

    return nouns
