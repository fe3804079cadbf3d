"""Queries of every kind: of the grammar, prose that looks like it, broken strings, all scripts, small words."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from findling.text.analysis.stemming import function_words
from tests.text.test_query_fuzz import PIECES, generated

__all__ = ["any_query"]

SENTENCES = (
    "I am interested in articles which deal with caching and not in those on paging",
    "what you see is what you get, and how is the weather going to be",
    "wann wurde die Brücke über den Fluss gebaut und von wem",
    "que faire après une inondation dans la maison",
    "Что такое «чёрная дыра» и как она возникает",
    "日本で「梅雨」がないのは北海道とどこですか",
    "数据库的“连接池”是什么意思",
    "πότε έγινε η συμφωνία, όταν ήταν δύσκολο",
    "هل يمكن البحث في قاعدة البيانات بدون فهرس",
    "किताब कहाँ है और कब मिलेगी",
    "see https://example.org/a?b=c#d or mail me@example.org, it's 'fine' — really… 🚀👩🏽‍🚀",
)
QUOTES = ('""', "“”", "„“", "«»", "「」", "『』", "‘’", "‹›")
JOINTS = (" AND ", " OR ", " NOT ", " NEAR ", " | ", " -", ' -"', " AND NOT ", " OR -", " OR NOT ", " ", " (", ") ")


def any_query(rng: random.Random, vocabulary: Sequence[str]) -> str:
    """Some query; half of the words of joined ones stand in the index."""
    return rng.choice(_KINDS)(rng, vocabulary)


def _of_the_grammar(rng: random.Random, _: Sequence[str]) -> str:
    return generated(rng, rng.choice((0, 1, 2)))


def _broken(rng: random.Random, _: Sequence[str]) -> str:
    return "".join(rng.choices(PIECES, k=rng.randint(1, 12)))


def _joined(rng: random.Random, vocabulary: Sequence[str]) -> str:
    words = [rng.choice(vocabulary) + rng.choice(("", "", "", "*", "~", "~2")) for _ in range(rng.randint(1, 6))]
    return "".join(part for word in words for part in (rng.choice(("", "", "-", "NOT ")) + word, rng.choice(JOINTS)))


def _prose(rng: random.Random, vocabulary: Sequence[str]) -> str:
    words = rng.choice(SENTENCES).split()
    words[rng.randrange(len(words))] = rng.choice(vocabulary)
    if rng.random() < 0.5:
        start = rng.randrange(len(words))
        end = min(len(words), start + rng.randint(1, 4))
        quotes = rng.choice(QUOTES)
        words[start:end] = [quotes[0] + " ".join(words[start:end]) + quotes[1]]
    if rng.random() < 0.4:
        words.insert(rng.randrange(len(words)), rng.choice(("AND", "OR", "NOT", "-", "*", "/a.*b/")))
    text = " ".join(words)
    return text.upper() if rng.random() < 0.3 else text


def _small_words(rng: random.Random, _: Sequence[str]) -> str:
    words = rng.choice([*function_words().values()]).split()
    return rng.choice(("", "-", '"')) + " ".join(rng.choices(words, k=rng.randint(1, 4)))


def _misspelled(rng: random.Random, vocabulary: Sequence[str]) -> str:
    word = list("_".join(rng.choices(vocabulary, k=rng.randint(1, 3))))
    word[rng.randrange(len(word))] = rng.choice("aeiouxyzé_-./")
    return "".join(word)


def _unicode(rng: random.Random, _: Sequence[str]) -> str:
    start = rng.choice((0x20, 0xA0, 0x370, 0x400, 0x590, 0x600, 0x900, 0xE00, 0x3040, 0x4E00, 0xAC00, 0x1F300))
    return "".join(rng.choice((" ", "-", '"', chr(start + rng.randrange(0x80)))) for _ in range(rng.randint(1, 20)))


_KINDS: tuple[Callable[[random.Random, Sequence[str]], str], ...] = (
    _of_the_grammar,
    _broken,
    _joined,
    _joined,
    _prose,
    _prose,
    _small_words,
    _misspelled,
    _unicode,
)
