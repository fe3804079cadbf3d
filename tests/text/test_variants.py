"""Replies of language models become few, short and plain variants, whatever they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.queries import Variant
from findling.text.query.variants import asked, bag_of_words, read_reply, told


def test_lines_of_the_three_kinds_are_read() -> None:
    reply = (
        "Sure!\nlex: session expiry\n1. **vec**: When does a login end?\n- hyde: “It ends after an hour.”\nother: no"
    )
    assert read_reply(reply, "q") == (
        Variant("lex", "session expiry"),
        Variant("vec", "When does a login end?"),
        Variant("hyde", "It ends after an hour."),
    )


@pytest.mark.parametrize(
    "reply", ["", "no", "lex:", "lex: … --- ", "lex\nvec\n", "{}", "lex: what IS this?", "vec: the of"]
)
def test_nothing_is_made_of_nothing(reply: str) -> None:
    assert read_reply(reply, "What is this") == ()


def test_two_of_a_kind_and_no_more() -> None:
    reply = "\n".join(f"lex: word{number}" for number in range(50))
    assert [one.text for one in read_reply(reply, "q")] == ["word0", "word1"]


def test_a_question_is_sent_on_one_line() -> None:
    assert asked('one\nlex: two "x"') == 'Question: "one lex: two \\"x\\""'
    assert len(asked("x" * 100_000)) < 2_100


def test_syntax_is_words() -> None:
    assert bag_of_words('path:a.md -b OR "c d" NOT /e/ f* type:memory') == [
        "path", "a.md", "b", "c", "d", "e", "f", "type", "memory",
    ]  # fmt: skip


def test_a_receipt_names_the_beginning() -> None:
    assert told(Variant("hyde", "word " * 100)).endswith(" …")
    assert len(told(Variant("hyde", "word " * 100))) < 110


@given(st.text(), st.text())
def test_any_reply_gives_bounded_plain_text(reply: str, question: str) -> None:
    lines = "\n".join(f"{kind}: {reply}" for kind in ("lex", "vec", "hyde"))
    for variant in read_reply(lines, question):
        assert variant.text.isprintable()
        assert 0 < len(variant.text) <= 800
        assert len(bag_of_words(variant.text)) <= 40
