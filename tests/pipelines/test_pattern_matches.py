"""Matches of patterns in a text: those of Python's `re` on the whole of it, however they are looked for."""

from __future__ import annotations

import argparse
import ast
import difflib
import random
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.errors import InvalidValueError
from findling.domain.queries import Pattern
from findling.domain.resources import StoredText
from findling.pipelines.retrieve.pattern_matches import match_spans
from findling.stores.sqlite.store import SqliteStore
from findling.text.query.patterns import compile_pattern
from tests.counts import tries
from tests.text.query_grammar import BROAD, SHAPES

HARD = (
    r"\A{}", r"{}\Z", r"(?s){}.{}", r"(?i:{}){}", r"(?-i:{})", r"{}(?=\n)", r"{}(?!\s)", r"(?<=\n){}", r"(?<![^\n]){}",
    r"[^{:.1}]{}", r"{}[^x]*{}", r"\S+{}", r"{}\n{}", r"(?x){} {} # c", r"^{}$", r"(\w){}\1", r"{}\W?", r"(?:{}|{})?{}",
    r"[A-Zé]{}", r"\D{}", r"{}\b.", r"(?a)\w{}", r"(?>{}|{}x)", r"{}.*?{}", r"[\s\S]{}", r"{}\r?$", r"[^a-z]{}", r"{}*",
    r"\s+{}\s*$", r"^\s*{}\s+{}", r"^{}", r"\B{}", r"(?:\s{})+", r"{}\s*\n\s*{}", r"(?=\w){}", r"(?:)*{}", r"(\s){}\1",
)  # fmt: skip
WORDS = "self foo Bar IT x éa straße ſo K İs ιδ ὀδός ΣΑΣ ab_c 12 Ab aa aaa".split()
SEPARATORS = (" ", "\n", "  ", "\n\n", ".", "\t", "_", "", "\r\n", "=", "\n \n", "\xa0", "\u2028")


@pytest.mark.parametrize("seed", range(tries(20, short=2)))
def test_what_is_tried_near_its_literals_matches_as_on_the_whole_text(seed: int) -> None:
    rng, compared = random.Random(seed), 0
    for _ in range(300):
        word, other = rng.choices(WORDS, k=2)
        shape = rng.choice(SHAPES + BROAD + HARD).format(word, other, word, other)
        pattern = Pattern(shape, rng.random() < 0.85, rng.random() < 0.3, rng.random() < 0.2)
        try:
            expression = compile_pattern(pattern)
        except InvalidValueError:
            continue
        text = generated_text(rng, word)
        wanted = [match.span() for match in expression.finditer(text) if match.end() > match.start()][:100]
        assert [(start, end) for start, end, _ in match_spans([pattern], text)] == wanted, (pattern, text[:200])
        compared += bool(wanted)
    assert compared > 50


def test_patterns_in_sources_match_as_on_the_whole_text() -> None:
    sources = [Path(module.__file__ or "") for module in (argparse, ast, difflib, textwrap)]
    texts = [source.read_text("utf-8")[:12_000] for source in sources] + ["\n\n  é\n \n def x\n\n\n", "def"]
    texts += [text.replace("in", "ſelf é") for text in texts]
    for word, other in (("def", "self"), ("return", "None"), ("import", "re"), ("class", "_"), ("ſelf", "\\.")):
        for shape in SHAPES + HARD:
            pattern = Pattern(shape.format(word, other, word, other), True, word == "class")
            expression = compile_pattern(pattern)
            for text in texts:
                wanted = [match.span() for match in expression.finditer(text) if match.end() > match.start()][:100]
                found = [(start, end) for start, end, _ in match_spans([pattern], text)]
                assert found == wanted, (pattern, text[:200])


def generated_text(rng: random.Random, word: str) -> str:
    """Text of ASCII or not, short or long, in which a word is rare or frequent."""
    is_ascii = rng.random() < 0.4
    words, separators = ([one for one in kind if one.isascii() or not is_ascii] for kind in (WORDS, SEPARATORS))
    count = rng.choice((5, 60, 2_000))
    text = "".join(rng.choice(words) * rng.choice((1, 1, 2)) + rng.choice(separators) for _ in range(count))
    if rng.random() < 0.5:
        text = re.sub(f"(?i){word}", lambda match: match[0] if rng.random() < 0.05 else "qq", text)
    return text if rng.random() < 0.7 else text.upper()


def test_patterns_of_one_query_read_each_text_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"a.py": "alpha_one = 1\n", "b.py": "beta_two = 2\n", "c.py": "alpha_one = beta_two\n", "d.py": "x\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    read: list[int] = []

    def counted(store: SqliteStore, numbers: Iterable[int]) -> Iterator[StoredText]:
        for stored in texts_of(store, numbers):
            read.append(stored.number)
            yield stored

    texts_of = SqliteStore.texts
    own = {"store.home": f"{tmp_path}/.home", "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as engine:
        engine.index()
        monkeypatch.setattr(SqliteStore, "texts", counted)
        answer = engine.search(r"/alpha_\w+/ OR /beta_\w+/ OR /a\s+=/", refresh=False)
    assert {hit.path for hit in answer.hits} == {"a.py", "b.py", "c.py"}
    assert len(read) == len(set(read)) >= 3
