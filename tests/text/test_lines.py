"""Line numbers against a reference that walks through the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.text.analysis.lines import LineIndex, line_numbers

texts = st.text(alphabet=st.one_of(st.sampled_from("a\n\r\x0b\x0c\u2028\x85"), st.characters()))


def reference_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every line, found one character at a time."""
    spans, start, offset = [], 0, 0
    while offset < len(text):
        width = 2 if text[offset : offset + 2] == "\r\n" else 1
        if text[offset] in "\r\n":
            spans.append((start, offset))
            start = offset + width
        offset += width
    return [*spans, (start, len(text))]


@given(texts)
def test_lines_begin_and_end_where_editors_say(text: str) -> None:
    index = LineIndex(text)
    spans = reference_spans(text)
    assert len(index) == len(spans)
    assert [index.line_span(number) for number in range(1, len(spans) + 1)] == spans


@given(texts)
def test_every_offset_lies_on_the_line_that_began_last(text: str) -> None:
    index = LineIndex(text)
    starts = [start for start, _ in reference_spans(text)]
    expected = [sum(start <= offset for start in starts) for offset in range(len(text) + 1)]
    assert [index.line_of(offset) for offset in range(len(text) + 1)] == expected
    assert line_numbers(text, range(len(text) + 1)) == expected


@given(texts, st.data())
def test_line_numbers_of_some_offsets(text: str, data: st.DataObject) -> None:
    offsets = data.draw(st.lists(st.integers(0, len(text))))
    index = LineIndex(text)
    assert line_numbers(text, offsets) == [index.line_of(offset) for offset in offsets]


def test_breaks_of_three_systems() -> None:
    index = LineIndex("a\nb\r\nc\rd\u2028e\x0cf")
    assert [index.line_of(offset) for offset in (0, 1, 2, 3, 4, 5, 6, 7, 11)] == [1, 1, 2, 2, 2, 3, 3, 4, 4]
    assert index.line_span(2) == (2, 3)


@pytest.mark.parametrize("number", [0, -1, 3])
def test_a_line_that_is_not_there(number: int) -> None:
    with pytest.raises(IndexError, match=rf"line {number} is outside 1\.\.2"):
        LineIndex("a\nb").line_span(number)
