"""Pieces of code: the compiled core cuts where the reference does."""

from __future__ import annotations

import sysconfig
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from findling.core import NativeCore, native
from findling.text.chunking import code_chunks
from findling.text.chunking.code_grammars import grammar_of

pytestmark = pytest.mark.skipif(native is None, reason="the core was not built")

LINES = (
    *("", "", "\n", "   ", "\t", "\x0b", "# a comment", "@decorated", "// what it does", "/* long", " * words */", ")"),
    *("def f(x):", "class A(B):", "async  def  gather(a):", "    def inner(self):", "        def innermost():"),
    *("def " + "name" * 25 + "():", "CONSTANT = 1", "    return f(1) + 2", "if __name__ == '__main__':", "    x = [1,"),
    *("A sentence. And one more! Is it? ", "x" * 90, "word " * 30, "\tf\t(\t)", "else:", "\x1c\x1d", "    ])"),
    *("func (s *Server) Serve(l net.Listener) error {", "type Server struct {", "}", "function go() {", "  run() {"),
)
CODE = st.lists(st.sampled_from(LINES), max_size=60).map("\n".join)


def core() -> NativeCore:
    assert native is not None
    return native


def both_ways(text: str, lang: str, size: int) -> tuple[Any, Any]:
    found = code_chunks._definition_lines(text, lang)
    code = code_chunks._Code(text, size, grammar_of(lang), found)
    asked = partial(code_chunks._attached_start, code), partial(code_chunks._statements_end, text)
    reference = code_chunks._split(code, code_chunks._Stretch(0, len(text), 0, len(found)), (), depth=0)
    return core().code_pieces(text, found, size, *asked), reference


@given(CODE, st.sampled_from(("python", "go", "javascript", "shell")), st.integers(1, 300))
@example("\n \n \n" + "x" * 40, "python", 20)
@example("def a():\n  b\n\ndef b():\n  c", "python", 4)
def test_pieces_of_code_are_those_of_the_reference(text: str, lang: str, size: int) -> None:
    if len(text) > size:
        pieces, reference = both_ways(text, lang, size)
        assert pieces == reference


@pytest.mark.parametrize("size", [200, 2400])
def test_pieces_of_python_itself_are_those_of_the_reference(size: int) -> None:
    texts = [path.read_text("utf-8") for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::6]]
    compared = [both_ways(text, "python", size) for text in texts if text.isascii() and len(text) > size]
    assert len(compared) > 10
    assert all(pieces == reference for pieces, reference in compared)


@pytest.mark.parametrize(
    ("text", "definition", "size"),
    [
        ("é" * 9, (0, 1, 2, -1, 0), 4),
        ("a" * 9, (0, 1, 10, -1, 0), 4),
        ("a" * 9, (-1, 1, 2, -1, 0), 4),
        ("a" * 9, (0, 2, 1, -1, 0), 4),
        ("a" * 9, (0, 1, 2, -1, 0), 9),
        ("a" * 9, (0, 1, 2, -1, 0), 0),
    ],
)
def test_a_definition_that_cannot_be_is_refused(text: str, definition: Any, size: int) -> None:
    with pytest.raises(ValueError, match="lies outside"):
        core().code_pieces(text, [definition], size, lambda index: 0, lambda indent, start, end: end)


@pytest.mark.parametrize("place", [-1, 10, 1 << 70, None])
def test_a_place_outside_of_the_text_is_refused(place: Any) -> None:
    with pytest.raises((ValueError, OverflowError, TypeError)):
        core().code_pieces("a" * 9, [(3, 4, 5, -1, 0)], 4, lambda index: place, lambda indent, start, end: place)
