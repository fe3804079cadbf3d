"""Queries of every kind: of the grammar, prose that looks like it, broken strings, all scripts, small words."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from findling.text.analysis.stemming import function_words
from tests.text.test_query_fuzz import PIECES, generated

__all__ = ["any_query", "attack"]

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


def attack(rng: random.Random, vocabulary: Sequence[str]) -> str:
    """Expressions, phrases, globs and words in one query; one in 500 holds an expression without an end."""
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 8))):
        parts += [rng.choice(("", "", "", "-", "NOT ")) + rng.choice(_PARTS)(rng, vocabulary), rng.choice(JOINTS[:-3])]
    if rng.random() < 0.002:
        parts += [" ", rng.choice(ENDLESS)]
    return "".join(parts if rng.random() < 0.3 else parts[:-1])


def _phrase(rng: random.Random, vocabulary: Sequence[str]) -> str:
    words = " ".join(rng.choices(vocabulary, k=rng.randint(1, 5)))
    return f'"{words}"' + rng.choice(("", "", "*", "~3", " case:yes", " case:no"))


def _glob(rng: random.Random, vocabulary: Sequence[str]) -> str:
    name = re.sub(r"\W", "", rng.choice(vocabulary))[:4]
    shape = rng.choice(
        ("*.py", f"{name}*", f"**/{name}*/*.md", f"*{name}*{name}*", "[a-f]*.{py,rst}", "src/**", "!*.md")
    )
    return f"{rng.choice(('path', 'ext', '-path', 'lang', 'in:path', 'title'))}:{shape}"


def _expression(rng: random.Random, vocabulary: Sequence[str]) -> str:
    word, other = (re.escape(one[: rng.randint(4, 12)]).replace("/", ".") for one in rng.choices(vocabulary, k=2))
    shape = rng.choice(BROAD if rng.random() < 0.01 else SHAPES)
    return "/" + shape.format(word, other) + "/" + rng.choice(("", "", "", "", " case:no"))


SHAPES = (
    r"{}", r"\b{}\b", r"{}\w*", r"{}.*{}", r"^\s*{}", r"{}[^\n]{{0,20}}{}", r"{}\(.*\)$", r"({}|{})", r"{}+\s",
    r"[a-z_]+{}[a-z_]*", r"(?<!x){}(?=.)", r"{}|\d{{4}}-{}", r"\w{{3,}}{}+", r".{}.?{}.", r"{}\s*=\s*(\w+)",
)  # fmt: skip
BROAD = (r"(\w+)\s+\1{:.2}", r"[A-Z]{{2,}}_\w+", r"\d+\.\d+", r"x", r"({}|{})+", r"(?:{}\s+)*{}", r"(?i){:.2}")
"""Shapes that match in most texts, or that no trigram follows from: they look at all of them."""

ENDLESS = (
    "/(a+)+$/",
    "/(\\w+\\s?)*;$/",
    "/(.*,)*x$/",
    "/(a|aa)+$/",
    "/([a-z]+)*\\d$/",
    "/^(([a-z])+.)+[A-Z]([a-z])+$/",
)


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
    words = rng.choice([small for small, _ in function_words().values()])
    return rng.choice(("", "-", '"')) + " ".join(rng.choices(words, k=rng.randint(1, 4)))


def _misspelled(rng: random.Random, vocabulary: Sequence[str]) -> str:
    word = list("_".join(rng.choices(vocabulary, k=rng.randint(1, 3))))
    word[rng.randrange(len(word))] = rng.choice("aeiouxyzé_-./")
    return "".join(word)


def _unicode(rng: random.Random, _: Sequence[str]) -> str:
    start = rng.choice((0x20, 0xA0, 0x370, 0x400, 0x590, 0x600, 0x900, 0xE00, 0x3040, 0x4E00, 0xAC00, 0x1F300))
    return "".join(rng.choice((" ", "-", '"', chr(start + rng.randrange(0x80)))) for _ in range(rng.randint(1, 20)))


_PARTS: tuple[Callable[[random.Random, Sequence[str]], str], ...] = (
    _expression,
    _expression,
    _phrase,
    _glob,
    lambda rng, vocabulary: rng.choice(vocabulary) + rng.choice(("", "", "*", "~")),
)

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
