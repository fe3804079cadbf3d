"""Items are read from an object, an array or lines, and a fault is named by its line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from findling.domain.errors import InvalidValueError
from findling.pipelines.content.items import Entry, read_entries


def lines(text: str | bytes) -> list[bytes]:
    return (text.encode() if isinstance(text, str) else text).splitlines(keepends=True)


def test_lines_are_read_one_by_one() -> None:
    def endless() -> Iterator[bytes]:
        yield b'\xef\xbb\xbf{"a": 1}\n'
        yield b"\n"
        while True:
            yield b'{"a": 2}\n'

    found = read_entries(endless())
    assert not found.is_document
    assert next(found.entries) == Entry({"a": 1}, "line 1")
    assert next(found.entries) == Entry({"a": 2}, "line 3")


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_one_document(indent: int | None) -> None:
    found = read_entries(lines(json.dumps([{"a": 1}, {"b": "x\ny"}], indent=indent)))
    assert found.is_document
    assert list(found.entries) == [Entry({"a": 1}, "item 1"), Entry({"b": "x\ny"}, "item 2")]


def test_an_object_over_several_lines_is_one_document() -> None:
    found = read_entries(lines('\n{\n  "a": 1\n}\n'))
    assert found.is_document
    assert list(found.entries) == [Entry({"a": 1}, "")]


def test_nothing_is_nothing() -> None:
    assert list(read_entries(lines("\n \n")).entries) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: no JSON: Expecting value"),
        ('[\n{"a": 1},\n{"a" 2}\n]', "no JSON: Expecting ':' delimiter at line 3, column 6"),
        ('{"a": 1, "a": 2}\n', "line 1: no JSON that can be read: 'a' stands twice"),
        ('{"a": NaN}\n', "line 1: no JSON that can be read: NaN is no JSON number"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2 is not UTF-8"),
        ("[" * 100_000, "no JSON"),
        ("hello\n", "line 1: no JSON"),
    ],
)
def test_a_fault_is_named_by_its_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        list(read_entries(lines(text)).entries)


def test_bare_lines_are_texts() -> None:
    found = read_entries(lines('decision:1\n"decision:2"\n{"id": 3}\n'), bare=True)
    assert [entry.value for entry in found.entries] == ["decision:1", "decision:2", {"id": 3}]
