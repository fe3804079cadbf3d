"""The key of a glossary term: one for all ways to write a term that make no difference to what it means.

    Rate-Limits, rate limit, rateLimit, RATE_LIMIT → rate limit        Café → cafe        인증을, 인증은 → 인증

Where the package `kiwipiepy` is installed it finds the nouns of Korean words; without it common particles are cut off.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from findling.text.analysis.analysis import row_terms
from findling.text.analysis.stemming import stem
from findling.text.mining.entity_keys import PLURAL_ACRONYM, without_particle

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
