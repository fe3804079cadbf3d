"""The name that stands right before or right after a place: a run of words that could be a noun, or nothing.

No grammar, only where such runs end: at punctuation, at words that bind (`the`, `uses`, `mit`), in Korean at a
particle, in Japanese at hiragana. A run whose end is not clear within five words is none: a wrong name costs the one
who judges it more than a missed one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import NamedTuple

from findling.text.analysis.lines import ENGLISH_WORDS, GERMAN_WORDS
from findling.text.analysis.stemming import listed

QUOTES = "\"'“”„‘’«»‹›「」『』《》 \t\n"
_MOST_WORDS = 5
_LONGEST_UNSPACED = 12

FUNCTION_WORDS = ENGLISH_WORDS | GERMAN_WORDS | listed("binding")
"""Words that bind, and verbs and adverbs that documentation puts before or after a name."""
_DETERMINERS = frozenset("a an the der die das den dem des ein eine einen einem einer eines".split())
_MIDDLE_OF_NAME = _DETERMINERS | {"from"}
"""Words that cut a name short rather than end it: Danny the Dog."""
_CLAUSE = re.compile(
    r"[.!?](?=\s|$)|[,;:()（）。、，；|<>=]|\s[–—-]+\s|\n\s*\n|\n[ \t]*(?:[-+•#]|\d+\.)\s|^[ \t]*(?:[-+•#]+)\s"
)
_NOUN = re.compile(r"[^\W_][\w.+#/&'’-]*")
_PARTICLE = re.compile(r".[은는을를의에와과]$|.(?:에서|에게|으로|까지|부터|이나|하는|있는|되는|라는|하여|하고)$")
_KANA = re.compile(r"[\u3040-\u30ff]")
_JAPANESE_NAME = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff々]+$")
_CHINESE_NAME = re.compile(r"[\u4e00-\u9fff]+$")
_CHINESE_BINDING = re.compile(r".*(?:[的是了和与及在或]|使用|采用|通过|称为)")
_QUOTE = re.compile("[\"'“”„‘’「」『』《》]")
_QUOTED = re.compile(r"[「『《“\"]([^「『《“\"」』》”]{2,40})[」』》”\"]\s*$")


def clause_before(text: str) -> str:
    """Text between the last punctuation and the end."""
    return _CLAUSE.split(text.rstrip(QUOTES))[-1].strip(QUOTES)


def clause_after(text: str) -> str:
    """Text between the beginning and the next punctuation."""
    return _CLAUSE.split(text.lstrip(QUOTES), maxsplit=1)[0].strip(QUOTES)


def noun_before(text: str) -> str:
    """The name at the end of the text."""
    words = clause_before(text).split()
    run: list[str] = []
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        if word.lower() == "of" and run and index and words[index - 1].lower() not in FUNCTION_WORDS:
            before = words[index - 2].lower() if index > 1 else "the"
            if before not in _DETERMINERS:
                break
        elif word.lower() in FUNCTION_WORDS or _NOUN.fullmatch(word.strip(QUOTES)) is None:
            break
        run.append(word)
    return _name(run[::-1])


def noun_after(text: str, *, whole: bool) -> str:
    """The name at the beginning of the text; with `whole` the text has to be nothing else."""
    words = clause_after(text).split()
    if words and words[0].lower() in _DETERMINERS:
        words = words[1:]
    run: list[str] = []
    for index, word in enumerate(words):
        is_bound = word.lower() in FUNCTION_WORDS and not (word.lower() == "of" and 0 < index < len(words) - 1)
        if is_bound or _NOUN.fullmatch(word.strip(QUOTES)) is None:
            break
        run.append(word)
    if len(run) < len(words) and (whole or words[len(run)].lower() in _MIDDLE_OF_NAME):
        return ""
    return _name(run)


def _name(run: list[str]) -> str:
    name = " ".join(run).strip(QUOTES)
    letters = sum(map(str.isalpha, name))
    if len(run) > _MOST_WORDS or not letters or len(name) < 2 or '"' in name or name.lower().endswith((" of", "ly")):
        return ""
    return name if len(name) < 6 or letters > 0.6 * len(name) else ""


def noun_unspaced(text: str) -> str:
    """The name at the end of a text in Korean, Japanese or Chinese, or what stands there in quotes."""
    if quoted := _QUOTED.search(text):
        return quoted[1]
    clause = _QUOTE.split(clause_before(text))[-1].strip()
    if not clause:
        return ""
    if "\uac00" <= clause[-1] <= "\ud7af":
        name = _korean_name(clause.split())
    elif _KANA.search(text):
        name = found.group() if (found := _JAPANESE_NAME.search(clause)) else ""
    else:
        name = _CHINESE_BINDING.sub("", found.group()) if (found := _CHINESE_NAME.search(clause)) else ""
    return name if 2 <= len(name) <= _LONGEST_UNSPACED and not any(map(str.isdigit, name)) else ""


def _korean_name(words: list[str]) -> str:
    run: list[str] = []
    for word in reversed(words):
        if run and (_PARTICLE.search(word) or len(word) == 1):
            break
        run.append(word)
        if len(run) > 3:
            return ""
    return " ".join(reversed(run))


_PUNCTUATION = ".,;:!?()[]{}<>\"'“”„‘’«»…*`_"
_SHORTEST_PART = 3
_SHORTEST_WHOLE = 5
_LONGEST = 30
_FIRST_UNSPACED = "\u0e00"
"""Thai; from here on come the scripts in which spaces say little about words."""


class Compounds(NamedTuple):
    """The words of a text in lower case: those written as one, and those written in two parts by their joined form."""

    words: AbstractSet[str]
    pairs: Mapping[str, str]


def compounds(text: str) -> Compounds:
    """The words and pairs of words of a text that may be written in another way elsewhere.

    Pairs count in lower case only: what is written Apart And With Capitals is more often a name than a compound.
    """
    tokens = text.split()
    words: set[str] = set()
    pairs: dict[str, str] = {}
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    for token in set(tokens):
        word = token.strip(_PUNCTUATION)
        if len(word) < _SHORTEST_PART or len(word) > _LONGEST or word >= _FIRST_UNSPACED:
            continue
        if not word.isalpha():
            if "-" in word:
                pairs.update(_with_hyphen(word.lower()))
            continue
        # getName is `get name` to a glossary already: only what shows no seam counts as written in one.
        if len(word) >= _SHORTEST_WHOLE and (word[1:].islower() or word.isupper()):
            words.add(word.lower())
        if word.islower() and word not in FUNCTION_WORDS:
            # Punctuation between two words keeps them apart.
            if token.endswith(word):
                first[token] = word
            if token.startswith(word):
                second[token] = word
    for one, other in pairwise(tokens):
        if one in first and other in second:
            pairs[first[one] + second[other]] = f"{first[one]} {second[other]}"
    return Compounds(words, pairs)


def _with_hyphen(word: str) -> dict[str, str]:
    first, _, second = word.partition("-")
    if not first.isalpha() or not second.isalpha() or len(word) <= _SHORTEST_WHOLE:
        return {}
    return {} if first in FUNCTION_WORDS or second in FUNCTION_WORDS else {first + second: word}
