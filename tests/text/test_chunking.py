"""Rules for every text, every language and every size."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.chunker import chunk_text
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.outlines import OUTLINES
from tests.counts import tries

LANGS = [*sorted(CODE_LANGS), *sorted(OUTLINES), "text", "yaml", "no such language"]

FRAGMENTS = [
    *["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\n\n\n", "\n \n", " ", "    ", "\t", "\x0b", "\x0c", "\u2028", "\x00"],
    *["# Title\n", "## Sub\n", "Title\n=====\n", "---\n", "====\nOver\n====\n", "== A\n", "* Org\n", "#+BEGIN_SRC\n"],
    *["```\n", "````python\n", "~~~\n", "----\n", "#+END_SRC\n", ".. _label:\n", "key: value\n"],
    *["def f(x):\n", "async def g():\n", "class A:\n", "    def m(self):\n", "@decorator\n", "@call(\n", ")\n"],
    *[
        "function f() {\n",
        "export default class B {\n",
        "}\n",
        "pub fn f() {\n",
        "func (t *T) M() {\n",
        "int main(void)\n",
    ],
    *["// comment\n", "/* open\n", " */\n", "# comment\n", "#[derive(X)]\n"],
    *["word ", "A sentence. ", "日本語。", "e\u0301", "👩\u200d👩", "x" * 50, "word " * 30],
]

texts = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=8)), max_size=60).map("".join)


@given(text=texts, lang=st.sampled_from(LANGS), size=st.integers(1, 120))
@example(text="long_word\n #+begin\n", lang="text", size=8)
@settings(max_examples=tries(800, short=150), deadline=None)
def test_pieces_hold_every_visible_character_once_in_order(text: str, lang: str, size: int) -> None:
    pieces = chunk_text(text, lang, ChunkPlan(size=size))
    reached = 0
    for piece in pieces:
        gap, body = text[reached : piece.start], text[piece.start : piece.end]
        assert piece.start >= reached
        assert not gap.strip()
        assert body.strip()
        assert body == body.rstrip()
        assert re.split(r"[\r\n]", body, maxsplit=1)[0].strip(), "begins with a blank line"
        indent = re.split(r"[\r\n]", gap)
        assert len(indent) == 1 or not indent[-1] or len(indent[-1]) >= size - size // 4, "lost its indentation"
        reached = piece.end
    assert not text[reached:].strip()


@given(text=texts, lang=st.sampled_from(LANGS), size=st.integers(1, 120))
@settings(max_examples=tries(500, short=100), deadline=None)
def test_pieces_stay_below_the_ceiling(text: str, lang: str, size: int) -> None:
    for piece in chunk_text(text, lang, ChunkPlan(size=size)):
        length = piece.end - piece.start
        if lang not in OUTLINES:
            assert length <= size
        elif length > size:
            assert re.search(r"```|~~~|----|====|#\+BEGIN", text[piece.start : piece.end])
            assert length <= 4 * size


@given(text=st.text(), lang=st.sampled_from(LANGS))
def test_any_text_is_cut_without_complaint(text: str, lang: str) -> None:
    covered = "".join(text[piece.start : piece.end] for piece in chunk_text(text, lang, ChunkPlan(size=10)))
    assert "".join(covered.split()) == "".join(text.split())


@given(text=texts, lang=st.sampled_from(LANGS))
@settings(deadline=None)
def test_headings_are_short_and_never_empty(text: str, lang: str) -> None:
    for piece in chunk_text(text, lang, ChunkPlan(size=60)):
        assert all(0 < len(step) <= 120 and step == " ".join(step.split()) for step in piece.heading)
        assert lang in OUTLINES or all(len(step) <= 80 for step in piece.heading)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\r\n", "\u2028\x0b"])
@pytest.mark.parametrize("lang", ["text", "markdown", "python", "rst"])
def test_nothing_to_see_is_no_piece(text: str, lang: str) -> None:
    assert chunk_text(text, lang) == []


SOURCE = (
    "---\ntitle: x\n---\n\n# One\n\nSome words here.\n\n```\n# no heading\n\ncode\n```\n\nTwo\n===\n\nMore words.\n\n"
    "@decorator\ndef first(a):\n    return 1\n\n\nclass Second:\n    def third(self):\n        return 3\n"
)


@pytest.mark.parametrize("lang", ["markdown", "rst", "python", "javascript", "text"])
def test_carriage_returns_cut_at_the_same_places(lang: str) -> None:
    assert chunk_text(SOURCE.replace("\n", "\r"), lang, ChunkPlan(size=60)) == chunk_text(
        SOURCE, lang, ChunkPlan(size=60)
    )


def test_windows_line_breaks_in_sections() -> None:
    text = "---\r\na: 1\r\n---\r\n\r\nOne\r\n===\r\n\r\n```\r\n# no\r\n```\r\n\r\n## Two ##\r\n\r\nMore words.\r\n"
    pieces = chunk_text(text, "markdown", ChunkPlan(size=40))
    assert [(text[piece.start : piece.end], piece.heading) for piece in pieces] == [
        ("---\r\na: 1\r\n---", ()),
        ("One\r\n===\r\n\r\n```\r\n# no\r\n```", ("One",)),
        ("## Two ##\r\n\r\nMore words.", ("One", "Two")),
    ]


def test_windows_line_breaks_in_code_and_paragraphs() -> None:
    text = "x = 1\r\n\r\n\r\n@decorator\r\ndef first(a):\r\n    return 1\r\n\r\n\r\nclass Second:\r\n    third = 3\r\n"
    first, second = "@decorator\r\ndef first(a):\r\n    return 1", "class Second:\r\n    third = 3"
    pieces = chunk_text(text, "python", ChunkPlan(size=48))
    assert [text[piece.start : piece.end] for piece in pieces] == ["x = 1", first, second]
    assert [text[piece.start : piece.end] for piece in chunk_text(text, "text", ChunkPlan(size=60))] == [
        f"x = 1\r\n\r\n\r\n{first}",
        second,
    ]


def test_only_real_line_breaks_end_a_line() -> None:
    text = "a\x0b# not a heading\x0cb\u2028# neither\n\n# Title\n\ntext"
    assert [piece.heading for piece in chunk_text(text, "markdown", ChunkPlan(size=40))] == [(), ("Title",)]


def test_deep_nesting_ends_in_plain_windows() -> None:
    text = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(1500))
    pieces = chunk_text(text, "python", ChunkPlan(size=100))
    assert max(len(piece.heading) for piece in pieces) == 4
    assert text[pieces[-1].start : pieces[-1].end].endswith("def f1499():")


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        chunk_text("x", "text", ChunkPlan(size=0))
