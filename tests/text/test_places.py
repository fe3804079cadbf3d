"""Lines of an extracted text in terms of the file they come from."""

from __future__ import annotations

from findling.domain.resources import Chunk, Place
from findling.domain.results import Line
from findling.text.snippets import placed_lines

TEXT = "Title\n\nfirst page\nstill first\nsecond page\n"


def chunk(*places: Place, start: int = 0) -> Chunk:
    return Chunk(1, b"", 0, start, start + len(TEXT), 1 + start, 5 + start, (), places)


def lines(first: int = 1) -> list[Line]:
    return [Line(number=first + offset, text=text) for offset, text in enumerate(TEXT.splitlines())]


def test_every_line_gets_the_label_of_its_place() -> None:
    second = TEXT.index("second")
    placed = placed_lines(lines(), chunk(Place(0, "p. 1"), Place(second, "p. 2")), TEXT)
    assert [line.place for line in placed] == ["p. 1"] * 4 + ["p. 2"]
    assert [line.number for line in placed] == [0] * 5, "the file has no lines"


def test_places_are_counted_from_the_start_of_the_document() -> None:
    second = TEXT.index("second")
    here = chunk(Place(700, "slide 8"), Place(700 + second, "slide 9"), start=700)
    assert [line.place for line in placed_lines(lines(701), here, TEXT)][3:] == ["slide 8", "slide 9"]


def test_lines_of_the_file_are_those_of_the_place() -> None:
    first, second = TEXT.index("first"), TEXT.index("second")
    placed = placed_lines(lines(), chunk(Place(0, "", 40), Place(first, "", 41), Place(second, "", 41)), TEXT)
    assert [line.number for line in placed] == [40, 40, 41, 41, 41]


def test_a_line_that_holds_the_start_of_a_place_comes_from_there() -> None:
    still = TEXT.index("still") + 3
    placed = placed_lines(lines(), chunk(Place(0, "a"), Place(still, "b")), TEXT)
    assert [line.place for line in placed] == ["a", "a", "a", "b", "b"]
