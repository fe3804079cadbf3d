"""Plain words rank, operators ask for a boolean reading, and the answer says which it was."""

from __future__ import annotations

import pytest

from findling.domain.queries import All, Any, Field, Not, Phrase, Term, Word
from findling.text.query_language import parse
from findling.text.reading import read
from findling.text.routing import route
from findling.text.sentences import is_sentence


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("database timeout", "ranked"),
        ("how is the index made", "ranked"),
        ("database timeout path:src", "ranked"),
        ("database timeout -ext:md", "ranked"),
        ("report title:budget", "ranked"),
        ("profile of Aaron (brother of Moses)", "ranked"),
        ("database OR timeout", "boolean"),
        ("database AND timeout", "boolean"),
        ("database NOT timeout", "boolean"),
        ("ttl | timeout", "boolean"),
        ("database -(pool timeout)", "boolean"),
        ("data* timeout", "boolean"),
        ("databse~ timeout", "boolean"),
        ("database NEAR timeout", "boolean"),
        ('auth -"session cookie"', "boolean"),
        ("auth -jwt", "boolean"),
        ("여자 -남자 -50대", "boolean"),
        ('"exact phrase"', "boolean"),
        ("what is the capital of france -paris", "ranked"),
        ("Aaron's profile -moses, please?", "ranked"),
        ('where does "Van Gogh" live in the south', "ranked"),
        ("", "browse"),
        ("!!!", "browse"),
        ("-only", "browse"),
        ("ext:py -path:old after:7d", "browse"),
    ],
)
def test_the_kind_of_a_reading(text: str, kind: str) -> None:
    reading = read(parse(text))
    assert reading.kind == kind
    assert reading.because


def test_a_ranked_reading_needs_any_word_and_all_else() -> None:
    reading = read(parse('what is the best tea -coffee "green leaves" lang:markdown'))
    assert reading.node == All(
        (
            Any((Word("what"), Word("best"), Word("tea"))),
            Not(Term("coffee")),
            Phrase("green leaves"),
            Field("lang", ("markdown",)),
        )
    )
    assert read(parse("tea")).node == Word("tea")
    assert read(parse("tea ext:md")).node == All((Word("tea"), Field("ext", ("md",))))
    assert read(parse("the tea pot")).node == Any((Word("tea"), Word("pot")))


def test_a_boolean_reading_is_the_tree_as_it_was_understood() -> None:
    parsed = parse("tea OR coffee milk")
    assert read(parsed).node is parsed.node
    assert read(parsed).because == "OR asks for a boolean reading"


def test_words_with_a_field_are_not_ranked_by() -> None:
    assert read(parse("in:title tea pot")).node == All((Term("tea", "title"), Term("pot", "title")))


def test_the_plan_decides_before_the_query_does() -> None:
    assert read(parse("tea pot"), "all") == (
        All((Term("tea"), Term("pot"))),
        "boolean",
        "all that is asked for has to be there, as the plan says",
    )
    ranked = read(parse("tea AND pot OR cup"), "any")
    assert (ranked.kind, ranked.node) == ("ranked", All((Word("tea"), Any((Term("pot"), Term("cup"))))))
    assert read(parse("ext:py"), "all").kind == "browse"


@pytest.mark.parametrize(
    "text",
    [
        "tea?",
        "お茶は何ですか？",
        "what makes green tea",
        "tea with milk please",
        "wie macht man Tee",
        "comment faire du thé",
        "cómo se hace té",
        "one two three four five six seven eight",
    ],
)
def test_sentences(text: str) -> None:
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text", ["", "tea", "the tea pot", "green tea leaf china", "a b c", "one two three five six ten"]
)
def test_a_few_words_are_no_sentence(text: str) -> None:
    assert not is_sentence(text)


@pytest.mark.parametrize(
    "text", ["error in login page", "login page error list", "The server crashed.", "auth broken?"]
)
def test_the_shape_of_a_query_and_its_reading_agree_on_sentences(text: str) -> None:
    is_one = "are a sentence" in read(parse(f"-draft {text}")).because
    assert is_sentence(text) is is_one
    assert ("sentence" in route(text).shape) is is_one


def test_all_words_of_a_pasted_sentence_are_those_that_tell() -> None:
    pasted = "where do we keep the green tea " * 40
    assert read(parse(pasted), "all").node == All((Term("keep"), Term("green"), Term("tea")))
