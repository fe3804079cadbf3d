"""Which lines of a chunk are shown, and that they are shown as they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from findling.domain.results import Line
from findling.text.snippets import MatchSpan, snippet


def spans_of(text: str, *words: str) -> list[MatchSpan]:
    return [MatchSpan(match.start(), match.end(), (word,)) for word in words for match in re.finditer(word, text)]


def numbers(lines: tuple[Line, ...]) -> list[int]:
    return [line.number for line in lines]


def marked(line: Line) -> list[str]:
    return [line.text[start:end] for start, end in line.spans]


TEXT = "apple apple apple\nx\nx\nx\napple\n  pear\nx\nx\npear plum\nx\nx"


def test_the_window_with_most_distinct_terms_wins() -> None:
    lines = snippet(TEXT, 10, spans_of(TEXT, "apple", "pear"))
    assert numbers(lines) == [14, 15, 16]
    assert [marked(line) for line in lines] == [["apple"], ["pear"], []]
    assert lines[1].text == "  pear"


def test_between_equal_windows_more_matches_then_the_earlier() -> None:
    text = "pear\nx\nx\npear pear\nx\nx\npear pear\nx\nx"
    assert numbers(snippet(text, 1, spans_of(text, "pear"), max_lines=1)) == [4]


def test_a_match_on_the_last_line_is_shown_with_the_lines_above() -> None:
    text = "a\nb\nc\npear"
    assert numbers(snippet(text, 1, spans_of(text, "pear"))) == [2, 3, 4]


def test_blank_lines_at_the_ends_are_left_out() -> None:
    text = "pear\n\n\nx\n\n  \nplum"
    assert numbers(snippet(text, 1, spans_of(text, "pear"))) == [1]
    assert numbers(snippet(text, 1, spans_of(text, "plum"))) == [7]


def test_context_adds_lines_within_the_chunk() -> None:
    assert numbers(snippet(TEXT, 1, spans_of(TEXT, "plum"), max_lines=1, context=1)) == [8, 9, 10]
    assert numbers(snippet(TEXT, 1, spans_of(TEXT, "plum"), max_lines=1, context=99)) == list(range(1, 12))


def test_without_a_match_the_first_lines_that_say_something() -> None:
    assert numbers(snippet("\n  \nfirst\nsecond\n\nthird", 5, [])) == [7, 8]
    assert snippet(" \n", 1, []) == ()


def test_lines_are_verbatim() -> None:
    text = "\tpear  pie \r\nnext\rlast"
    assert [line.text for line in snippet(text, 1, spans_of(text, "pear"))] == ["\tpear  pie ", "next", "last"]


def test_a_match_across_a_line_break_is_marked_on_both_lines() -> None:
    text = "green pear\ntree"
    lines = snippet(text, 1, [MatchSpan(6, 15, ("pear tree",))])
    assert [marked(line) for line in lines] == [["pear"], ["tree"]]


def test_overlapping_matches_are_marked_once() -> None:
    lines = snippet(
        "pear tree", 1, [MatchSpan(0, 4, ("pear",)), MatchSpan(0, 9, ("pear tree",)), MatchSpan(5, 9, ("tree",))]
    )
    assert lines[0].spans == ((0, 9),)


def test_a_long_line_is_cut_around_its_matches() -> None:
    text = "pear " + "x" * 1000 + " pear plum " + "y" * 1000
    (line,) = snippet(text, 1, spans_of(text, "pear", "plum"))
    assert marked(line) == ["pear", "plum"]
    assert line.text[0] == line.text[-1] == "…"
    assert line.text[1:-1] in text
    assert len(line.text) == 402


def test_a_long_line_without_a_match_shows_its_beginning() -> None:
    (line,) = snippet("x" * 1000, 1, [])
    assert line.text == "x" * 400 + "…"


def test_a_match_at_the_end_of_a_long_line() -> None:
    text = "x" * 1000 + " pear"
    (line,) = snippet(text, 1, spans_of(text, "pear"))
    assert marked(line) == ["pear"]
    assert line.text.startswith("…x")
    assert line.text.endswith(" pear")


@given(
    text=st.text(alphabet=st.one_of(st.sampled_from("ab \n\r"), st.characters()), max_size=900),
    places=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 30), st.sampled_from("ab"))),
    max_lines=st.integers(1, 5),
    context=st.integers(0, 3),
)
def test_every_mark_is_a_match_and_every_line_is_from_the_text(
    text: str, places: list[tuple[int, int, str]], max_lines: int, context: int
) -> None:
    spans = [MatchSpan(start, min(start + length, len(text)), (term,)) for start, length, term in places]
    lines = snippet(text, 7, spans, max_lines, context)
    original = re.split(r"\r\n|\r|\n", text)
    assert len(lines) <= max_lines + 2 * context
    assert numbers(lines) == list(range(lines[0].number, lines[0].number + len(lines))) if lines else not text.strip()
    for line in lines:
        source = original[line.number - 7]
        assert line.text == source or line.text.removeprefix("…").removesuffix("…") in source
        edges = [edge for span in line.spans for edge in span]
        assert edges == sorted(edges)
        assert all(start < end <= len(line.text) for start, end in line.spans)
        assert all(
            any(mark in text[span.start : span.end] for span in spans) or len(spans) > 1 for mark in marked(line)
        )
