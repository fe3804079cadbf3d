"""What a person types is understood, echoed, and never an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.queries import All, Any, Not, Phrase, Word
from findling.text.analysis import STOP_WORDS, terms
from findling.text.query_language import canonical, parse, positive_terms


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("database timeout", "(database OR timeout)"),
        ("database", "database"),
        ("how is the index made", "(how OR index OR made)"),
        ("to be or not to be", "(to OR be OR or OR not)"),
        ('auth -"session cookie"', 'auth -"session cookie"'),
        ("auth -jwt", "auth -jwt"),
        ('"exact phrase" word', 'word "exact phrase"'),
        ('"unclosed phrase', '"unclosed phrase"'),
        ("-only", "-only"),
        ("to be or not to be?", "(to OR be OR or OR not OR be?)"),
        ("is this it?", "(is OR this OR it?)"),
        ("what is this?", "what"),
        ("well-known -- - thing", "(well-known OR thing)"),
        ("word word", "word"),
        ("", ""),
        ("!!! ???", ""),
        ('the "the who"', '"the who"'),
    ],
)
def test_a_query_is_echoed_as_understood(text: str, echo: str) -> None:
    assert canonical(parse(text)) == echo


def test_the_tree_of_a_mixed_query() -> None:
    tree = parse('fast "exact text" -slow')
    assert tree == All((Any((Word("fast"),)), Phrase("exact text"), Not(Word("slow"))))
    assert positive_terms(tree) == ["fast", "exact", "text"]


@given(st.text())
def test_nothing_a_person_types_is_an_error(text: str) -> None:
    tree = parse(text)
    assert set(positive_terms(tree)) <= set(terms(text))
    assert canonical(tree) == canonical(parse(text))


@given(st.lists(st.from_regex(r"[a-z]{4,9}", fullmatch=True), min_size=1, unique=True))
def test_every_word_of_a_plain_query_is_asked_for(words: list[str]) -> None:
    meaningful = [word for word in words if word not in STOP_WORDS] or words
    assert positive_terms(parse(" ".join(words))) == meaningful
