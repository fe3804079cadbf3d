"""Tables in text files, row by row."""

from __future__ import annotations

import csv
import io

import pytest

from findling.sources.documents.data.csv_data import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def read(text: str, name: str = "a.csv") -> Extracted:
    return extract(Source(text.encode(), name))


def lines(text: str, name: str = "a.csv") -> list[str]:
    return read(text, name).text.split("\n")


def test_every_value_stands_with_the_name_of_its_column() -> None:
    assert lines("name,city,age\nAda,London,36\nGrace,,85\n") == [
        "name | city | age",
        "name: Ada | city: London | age: 36",
        "name: Grace | age: 85",
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = "a;b;c\n1,5;2,5;x\n3,5;4,5;y\n".replace(";", delimiter) if delimiter != "," else "a,b,c\n1;2,5,x\n3,4,y\n"
    assert lines(text)[2].startswith("a: 3")
    assert lines(text)[2].endswith("c: y")


def test_decimal_commas_without_a_header() -> None:
    assert lines("1,5;2,5\n3,5;4,5\n") == ["1,5 | 2,5", "3,5 | 4,5"]


def test_the_name_decides_when_nothing_else_does() -> None:
    assert lines("one, two\tthree\n", "a.tsv") == ["one, two | three"]
    assert lines("one, two\tthree|x\n", "a.psv") == ["one, two three | x"]


def test_a_declared_delimiter() -> None:
    assert lines("sep=;\na,b;c\n1;2\n") == ["a,b | c", "a,b: 1 | c: 2"]


def test_quotes_and_line_breaks_in_cells() -> None:
    target = io.StringIO()
    rows = [["id", "note"], ["1", 'say "hi",\nthen go'], ["2", "next"]]
    csv.writer(target).writerows(rows)
    extracted = read(target.getvalue())
    assert extracted.text.split("\n") == ["id | note", 'id: 1 | note: say "hi", then go', "id: 2 | note: next"]
    assert [place.line for place in extracted.places] == [1, 2, 4]
    assert [extracted.text[place.start :].split(" ")[1] for place in extracted.places[1:]] == ["1", "2"]


def test_ragged_rows() -> None:
    assert lines("a,b\n1\n1,2,3,4\n") == ["a | b", "a: 1", "a: 1 | b: 2 | 3 | 4"]


def test_years_may_name_columns() -> None:
    assert lines("Country,2019,2020\nMalta,1,2\n")[-1] == "Country: Malta | 2019: 1 | 2020: 2"
    assert lines("Country,2020,2019\nMalta,1,2\n")[-1] == "Country: Malta | 2020: 1 | 2019: 2"


@pytest.mark.parametrize(
    "first", ["1,2", "x,x", "2024-01-05,noon", f"{'long ' * 50},b", "Ada,1815", "Ada,1990,2001,1995", "2019,2020"]
)
def test_rows_without_a_header(first: str) -> None:
    assert lines(f"{first}\np,q\n")[-1] == "p | q"


def test_columns_without_a_name() -> None:
    assert lines(",a,b\n0,1,2\n") == ["a | b", "0 | a: 1 | b: 2"]


def test_a_title_above_the_header() -> None:
    assert lines("Sales of the year,,\n,,\nName,Sum,Unit\nAda,1,EUR\n") == [
        "Sales of the year",
        "Name | Sum | Unit",
        "Name: Ada | Sum: 1 | Unit: EUR",
    ]


def test_one_column() -> None:
    assert lines("word\nalpha\nbeta\n") == ["word", "alpha", "beta"]


@pytest.mark.parametrize("bad", ['1,"open', '"1"x,y', '1,"a"b"c"', '"""", "x'])
def test_broken_quotes_cost_their_row_only(bad: str) -> None:
    rows = "".join(f"{number},word{number}\n" for number in range(2, 50))
    found = lines(f"id,name\n{bad}\n{rows}")
    assert len(found) == 2 + 48
    assert found[-1] == "id: 49 | name: word49"
    assert found[2] == "id: 2 | name: word2"


def test_a_lone_quote_before_quoted_rows() -> None:
    assert lines('a,b\n1,"open\n2,"closed, well"\n3,x\n') == [
        "a | b",
        "a: 1 | b: open",
        "a: 2 | b: closed, well",
        "a: 3 | b: x",
    ]


@pytest.mark.parametrize("line", ['a","\n', '"\n', '"a\n', 'x,"""\n', '""""x,"\n'])
def test_hostile_quotes_take_linear_time(line: str) -> None:
    text = read("a,b\n" + line * 50_000 + "end,here\n").text
    assert "here" in text[-30:]


def test_byte_order_mark_and_line_ends() -> None:
    extracted = extract(Source("\ufeffa,b\r1,é\r\n2,y\n".encode("utf-16"), "a.csv"))
    assert extracted.text == "a | b\na: 1 | b: é\na: 2 | b: y"
    assert [place.line for place in extracted.places] == [1, 2, 3]


def test_stray_zero_bytes() -> None:
    rows = b"".join(b"%d,word\n" % number for number in range(100))
    assert extract(Source(b"a,b\n1,x\0y\n" + rows, "a.csv")).text.startswith("a | b\na: 1 | b: xy\na: 0 | b: word")


def test_a_document_in_a_cell() -> None:
    story = "many words " * 20_000
    assert lines(f"id,story\n1,{story}\n2,x\n")[1] == f"id: 1 | story: {story}".rstrip()


def test_the_text_stops_at_the_limit() -> None:
    extracted = extract(Source(b"a,b\n" + b"1,2\n" * 10_000, "a.csv", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields


@pytest.mark.parametrize("data", [b"", b"\n\n", b",,\n,,\n"])
def test_an_empty_table_has_no_text(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="no-text"):
        extract(Source(data, "a.csv"))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnreadableError, match="binary"):
        extract(Source(bytes(range(256)) * 8, "a.csv"))


def test_a_zero_byte_costs_a_short_table_no_more_than_itself() -> None:
    for rows in (b"name,town\nann,par\0is\n", b"name,town\nanna,par\0is\n"):
        assert extract(Source(rows, "a.csv")).text.endswith("town: paris")
