"""A hundred thousand strings of operators, quotes and broken characters: no error, and every echo reads back."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.queries import Node
from findling.text.query.lexer import EXPRESSION, MOST_CHARACTERS, MOST_LEAVES
from findling.text.query.parser import MOST_LEVELS, Parsed, parse
from findling.text.query.query_mode import read
from findling.text.query.tree import asks_for_text, canonical, positive_terms, positive_texts, size
from tests.counts import tries

NOW = 1_790_000_000.25
PIECES = [
    *'"“”„“«»「」()()||**~~::,,--\\\\\\""  \t\n/.?!\'_+#@&=<>[]{}0159abcXYZéß',
    *"데이터数据库東京ไทยא😀\u200d\u200f\u202e\ufeff\x00\x07\x1f\x85\xa0\u3000\ud800\udfff\u0301",
    *' \\" | \\- |OR|AND|NOT|NEAR|NEAR/3|NEAR/999| OR | AND | NOT | NEAR | NEAR/0 |-(|) (|~0|~2|~9|*'.split("|"),
    *"path:|ext:|lang:|type:|tag:|author:|title:|system:|before:|after:|date:|is:|in:|in:heading:|IN:Title:".split("|"),
    *"pth:|http://|C:\\|12:30|std::|today|yesterday|7d|2w|3m|1y|12h|2026|2026-01..2026-03|..|2026-02-30".split("|"),
    *"code|chat|head|superseded|history|title|heading|the|to|be|or|not|foo|bar|node.js|getUser|f(x)|it's".split("|"),
]


def reads_back(query: str) -> Node:
    parsed = parse(query, now=NOW)
    echo = canonical(parsed.node)
    back = parse(echo, now=NOW + 86_400 * 40, intent=EXPRESSION)
    assert back.node == parsed.node or len(echo) > MOST_CHARACTERS, (query, echo, parsed.node, back.node)
    return parsed.node


def test_random_strings_are_no_error_and_their_echoes_read_back() -> None:
    rng = random.Random(5)
    for _ in range(tries(100_000, short=1_200)):
        query = "".join(rng.choices(PIECES, k=rng.randint(1, 7)))
        node = reads_back(query)
        assert bool(positive_terms(node)) is asks_for_text(node), query
        assert read(Parsed(node, frozenset({"-"}))).kind in {"ranked", "boolean", "browse"}


def test_long_strings_are_no_error_and_keep_within_the_limits() -> None:
    rng = random.Random(6)
    for _ in range(tries(400, short=20)):
        query = "".join(rng.choices(PIECES, k=rng.randint(50, 700)))
        parsed = parse(query, now=NOW)
        leaves, levels = size(reads_back(query))
        assert levels <= MOST_LEVELS
        assert leaves <= MOST_LEAVES or not parsed.operators


def test_generated_queries_read_back() -> None:
    rng = random.Random(7)
    for _ in range(tries(20_000, short=700)):
        query = generated(rng, rng.choice((0, 0, 1, 1, 2)))
        node = reads_back(query)
        assert positive_texts(node) or not asks_for_text(node), query


def test_an_echo_in_capitals_is_no_shout() -> None:
    reads_back('0)0"0"Ð')
    reads_back('A)B)C)D)E)"F"')


@given(st.text())
@settings(max_examples=tries(300, short=40))
def test_no_text_is_an_error(text: str) -> None:
    reads_back(text)
    parsed = parse(text)
    assert not any("\ud800" <= character <= "\udfff" for character in canonical(parsed.node) + "".join(parsed.notes))


WORDS = "alpha beta the of to getUser node.js sign-in c++ x it's and/or 50대 数据库 café OR --flag a:b f(x)".split()
VALUES = ["py", ".md", '"two words"', "a,b", '"x, y",z', "C:\\dir", '"say \\"hi\\""', "*.py", "src/*", "(odd)", "-x"]
DATES = [
    "today",
    "7d",
    "2026",
    "2026-02",
    "2026-02-28",
    "2026-02-28T10:30",
    "12h",
    '"2026-01-01 08:00:05"',
    "1y",
    "soon",
]
LEAVES: list[Callable[[random.Random], str]] = [
    lambda rng: rng.choice(WORDS),
    lambda rng: rng.choice(WORDS),
    lambda rng: rng.choice(WORDS) + rng.choice(["*", "~", "~1", "~2"]),
    lambda rng: '"' + " ".join(rng.choices(WORDS, k=rng.randint(1, 3))) + '"' + rng.choice(["", "", "*", "~4"]),
    lambda rng: f"{rng.choice(WORDS)} NEAR{rng.choice(['', '/3', '/0'])} {rng.choice(WORDS)}",
    lambda rng: f"{rng.choice('path ext lang type tag author system'.split())}:{rng.choice(VALUES)}",
    lambda rng: f"{rng.choice(['title', 'in:heading', 'in:path'])}:{rng.choice(['word', 'pre*', 'fuzy~', *VALUES])}",
    lambda rng: f"{rng.choice(['before', 'after', 'date'])}:{rng.choice(DATES)}",
    lambda rng: f"date:{rng.choice(['', *DATES[:5]])}..{rng.choice(['', *DATES[:5]])}",
    lambda rng: f"is:{rng.choice(['code', 'chat', 'head', 'superseded', 'blue', 'code,chat'])}",
    lambda rng: f"in:{rng.choice(['title', 'name,description', 'history'])}",
]


def generated(rng: random.Random, depth: int) -> str:
    """A query of the grammar, with a little carelessness."""
    items = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        operands = []
        for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
            is_group = depth and rng.random() < 0.2
            primary = f"({generated(rng, depth - 1)})" if is_group else rng.choice(LEAVES)(rng)
            operands.append(rng.choice(("", "", "", "-", "NOT ", "NOT -")) + primary)
        items.append(rng.choice((" OR ", " | ", "|")).join(operands))
    return rng.choice((" ", " ", " AND ")).join(items)
