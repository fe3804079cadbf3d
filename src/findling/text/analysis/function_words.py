"""Words that hold a sentence together and say nothing of what is asked, in the language of the question.

A passage is no hit because it shares such words. They are rare in small collections, where BM25 takes them for telling:
`how do I delete the index` found "I do". The language counts: `war` says nothing in German, and much in English.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from findling.text.analysis.analysis import phrase_terms

__all__ = [
    "empty_words",
    "function_words",
    "is_function_word",
    "languages_of",
    "question_begin",
    "question_language",
    "word_lists",
]

_LISTS = Path(__file__).with_name("data") / "function-words.txt"
"""A line for each language, written by hand, as terms: words that say nothing, then `|` and words of requests."""

_ENGLISH = "english"
_ARTICLES = frozenset("a an the der die das den ein eine einen le la les un une el los las il lo i gli o os as".split())
_ASKING = frozenset(
    "what who whom whose which when where why how whats hows wheres whos wer wie wo wann warum wieso weshalb welche "
    "welcher welches qui quoi quel quelle quand pourquoi combien quien cual cuando donde como cuanto quem quando onde "
    "qual chi cosa quale wat waar waarom hoe welke vad vem varfor hur hva hvem hvorfor hvordan kto gdzie kiedy "
    "dlaczego jak czy kdo proc kde nasil neden nerede kim kac hangi kaci kimdir nedir".split()
)
_ORDERS = frozenset("explain describe summarize summarise".split())
_ALSO_ENGLISH = frozenset(
    "war die man hat bin bald arm mit den der de la el le il los las du des son sur par comment come sin once pour "
    "plus dans sous dove an am also so no me".split()
)
"""Small words of other languages that are words or parts of names in English: they tell no language."""


@cache
def _languages() -> dict[str, list[str]]:
    """Term → the languages in which it says nothing."""
    known: dict[str, list[str]] = {}
    for language, (words, _) in function_words().items():
        for term in words:
            known.setdefault(term, []).append(language)
    return known


@cache
def function_words() -> dict[str, tuple[list[str], list[str]]]:
    """Language → its small words, the frequent ones first, and its words of requests, such as `tell` and `please`."""
    rows = [line.partition(": ") for line in _LISTS.read_text(encoding="utf-8").splitlines()]
    parts = {language: words.partition(" | ") for language, _, words in rows}
    return {language: (small.split(), asking.split()) for language, (small, _, asking) in parts.items()}


def word_lists() -> dict[str, Any]:
    """All lists as JSON-ready values, for a page that searches by itself."""
    special = {"articles": _ARTICLES, "asking": _ASKING, "orders": _ORDERS, "alsoEnglish": _ALSO_ENGLISH}
    return {"languages": function_words(), **{name: sorted(words) for name, words in special.items()}}


def is_function_word(term: str) -> bool:
    """Whether a term is a small word of some language."""
    return term in _languages()


def languages_of(found: Iterable[str]) -> set[str]:
    """The languages that most of the small words among these terms belong to; empty when none of them is small."""
    counts = Counter(language for term in found for language in _languages().get(term, ()))
    most = max(counts.values(), default=0)
    return {language for language, count in counts.items() if count == most}


@lru_cache(maxsize=256)
def question_language(text: str) -> str:
    """The language of a question by its small words, `english` where they do not tell another one.

    Another one needs two of them, one that asks, or one in letters of its own, and more than English has.
    """
    votes, own = Counter[str](), Counter[str]()
    for word in dict.fromkeys(text.split()):
        for term in phrase_terms(word):
            languages = _languages().get(term, ()) if term not in _ALSO_ENGLISH else ()
            votes.update(dict.fromkeys(languages, 1 if word.isascii() and term not in _ASKING else 2))
            own.update(dict.fromkeys(languages, 1 / max(len(languages), 1)))
    best = max(function_words(), key=lambda language: (votes[language], own[language]))
    return best if votes[best] > max(votes[_ENGLISH], 1) else _ENGLISH


def empty_words(words: Sequence[str]) -> list[bool]:
    """For each word of a question, as it was typed, whether it says nothing of what is asked.

    Words of requests (`can you tell me`) are such words at the beginning. A small word that is written as a name (`IT`,
    `The Who`) or as code is none.
    """
    rows = [phrase_terms(word) for word in words]
    language = question_language(" ".join(words))
    empty = set(function_words()[language][0])
    lower = [word.islower() for word in words]
    said = [
        _is_empty(word, row, empty) and not _is_name(word, at, lower, language)
        for at, (word, row) in enumerate(zip(words, rows, strict=True))
    ]
    for at in range(_request_end(rows, said, language)):
        said[at] = True
    return said


def question_begin(words: Sequence[str]) -> int:
    """The number of words by which a question only asks for an answer: `can you tell me` of `… where it lies`."""
    rows = [phrase_terms(word) for word in words]
    said = empty_words(words)
    lead = next((at for at, is_empty in enumerate(said) if not is_empty), len(said))
    return max((at for at in range(lead) if not _ASKING.isdisjoint(rows[at])), default=0)


def _is_empty(word: str, row: Sequence[str], empty: set[str]) -> bool:
    # One letter is the end of a contraction, or a name such as the language D.
    is_cut = len(row) > 1 and not word.isalnum()
    return bool(row) and "`" not in word and all(term in empty or (is_cut and len(term) == 1) for term in row)


def _is_name(word: str, at: int, lower: Sequence[bool], language: str) -> bool:
    """Whether a small word is written as a name among words in lower case."""
    if len(word) < 2 or not any(lower):
        return False
    if word.isupper():
        return True
    is_title = language == _ENGLISH and at > 0 and word[0].isupper()
    return is_title and word.lower() not in _ARTICLES and 2 * sum(lower) > len(lower) - 1


def _request_end(rows: Sequence[Sequence[str]], said: Sequence[bool], language: str) -> int:
    """The end of the request that a question begins with: behind the last small word, articles aside."""
    requests = set(function_words()[language][1])
    end = 0
    for at, row in enumerate(rows):
        if said[at]:
            end = end if _ARTICLES.issuperset(row) else at + 1
        elif not requests.issuperset(row):
            break
        elif at == end and _ORDERS.issuperset(row) and any(said[at + 1 : at + 2]):
            end = at + 1
    return end
