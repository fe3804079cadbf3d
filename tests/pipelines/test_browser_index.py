"""The index of a browser bundle: whatever is written can be read back, letter by letter."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.backends import Scoring
from findling.domain.resources import Chunk, Document, Place, Resource
from findling.pipelines.export.browser_index import (
    BrowserIndex,
    DeflatedTexts,
    Related,
    length_code,
    numbers,
    postings,
    signed,
    units,
)
from findling.pipelines.export.browser_related import nearest_passages


def read_numbers(data: bytes) -> Iterator[int]:
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0


def read_length(code: int) -> int:
    if code < 24:
        return code
    bits, shift = (code - 24) & 7, (code - 24 >> 3) - 1
    return 24 + (bits if shift < 0 else (bits | 8) << shift)


def document(rid: str, text: str, *parts: str, **about: object) -> Document:
    """A document whose chunks are the parts of its text."""
    chunks = []
    for ordinal, part in enumerate(parts or (text,)):
        start = text.index(part)
        line = text.count("\n", 0, start) + 1
        chunks.append(
            Chunk(ordinal, b"%d" % ordinal, ordinal, start, start + len(part), line, line + part.count("\n"), ("Top",))
        )
    return Document(Resource(rid=rid, **about), text, tuple(chunks))  # type: ignore[arg-type]


def packed(
    index: BrowserIndex, related: Sequence[Sequence[Related]] = ()
) -> tuple[dict[str, object], dict[str, bytes]]:
    data = index.packed({"title": "T"}, related)
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    sections, at = {}, 4 + size
    for name, length in header["sections"].items():
        sections[name] = data[at : at + length]
        at += length
    assert at == len(data)
    return header, sections


@given(st.lists(st.integers(0, 1 << 50)))
def test_numbers_read_back(values: list[int]) -> None:
    assert list(read_numbers(bytes(numbers(values)))) == values


def test_numbers_that_may_be_negative_stay_small() -> None:
    assert [signed(value) for value in (0, -1, 1, -2, 2)] == [0, 1, 2, 3, 4]


@given(st.integers(0, 2_000_000))
def test_a_length_loses_an_eighth_at_most(length: int) -> None:
    code = length_code(length)
    assert code < 256
    assert read_length(code) <= length < read_length(code + 1)
    assert length - read_length(code) <= length / 8


def test_postings_are_gaps_with_a_count_where_it_is_not_one() -> None:
    places = {0: array("I", [3, 1, 5, 2]), 2: array("I", [0, 1])}
    assert list(read_numbers(bytes(postings(places)))) == [0b101, 2, 3 << 1, 2 << 1 | 1, 2, 1, 0]


@given(st.lists(st.text()))
def test_texts_read_back_and_are_counted_as_a_browser_counts(texts: list[str]) -> None:
    deflated = DeflatedTexts()
    starts = [deflated.add(text) for text in texts]
    whole = "".join(texts).encode("utf-8", "replace")
    assert zlib.decompress(deflated.finished()) == whole
    wide = whole.decode().encode("utf-16-le")
    for start, text in zip(starts, texts, strict=True):
        assert wide[2 * start : 2 * (start + units(text))] == text.encode("utf-8", "replace").decode().encode(
            "utf-16-le"
        )


def test_passages_are_where_a_browser_finds_them() -> None:
    index = BrowserIndex(Scoring())
    index.add(document("file:a", "👩 one\ntwo 👩\nthree", "👩 one", "two 👩", "three", path="a"))
    index.add(document("file:b", "four", path="b"))
    _, sections = packed(index)
    count, begin, size, *rest = read_numbers(sections["passages"])
    assert (count, begin, size) == (3, 0, 19)
    spans = [rest[at : at + 2] for at in (0, 6, 12)]
    assert spans == [[0, 6], [signed(7), 6], [signed(7), 5]]
    assert rest[18:21] == [1, 19, 4]


def test_places_of_pages_and_messages_are_kept() -> None:
    text = "first page\nsecond page"
    chunk = Chunk(1, b"", 0, 0, len(text), 1, 2, (), (Place(0, "p. 1"), Place(11, "p. 2")))
    index = BrowserIndex(Scoring())
    index.add(Document(Resource(rid="file:a"), text, (chunk,)))
    header, sections = packed(index)
    written = list(read_numbers(sections["passages"]))
    strings = header["strings"]
    assert isinstance(strings, list)
    assert written[8:] == [2, 0, strings.index("p. 1"), 0, 11, strings.index("p. 2"), 0]


def test_terms_are_in_the_order_of_a_browser_and_know_their_other_forms() -> None:
    index = BrowserIndex(Scoring())
    index.add(document("file:a", "connect connects connection other \U0001f600 ﬀ ｱ"))
    _, sections = packed(index)
    words = sections["terms"].decode().split("\n")
    assert words == sorted(words, key=lambda word: word.encode("utf-16-be"))
    classes, data = {}, sections["postings"]
    for word in words:
        values = list(read_numbers(data[:20]))
        classes[word] = values[0]
        head = len(numbers(values[:2]))
        data = data[head + values[1] :]
    assert data == b""
    assert classes["connect"] == classes["connects"] == classes["connection"] > 0
    assert classes["other"] == 0


def test_fields_without_a_weight_are_not_written() -> None:
    index = BrowserIndex(Scoring())
    index.add(document("file:a", "body", path="docs/zebra.md", title="Title"))
    header, sections = packed(index)
    fields = header["fields"]
    assert isinstance(fields, list)
    assert "name" not in {field["name"] for field in fields}
    assert {"zebra", "title", "body", "top"} <= set(sections["terms"].decode().split("\n"))


def test_nothing_is_told_of_rights_or_of_what_is_not_here() -> None:
    index = BrowserIndex(Scoring())
    index.add(document("decision:2", "new", fields={"supersedes": "decision:1"}, visibility=("user:ada",)))
    index.add(document("decision:4", "newer", fields={"supersedes": "decision:2"}))
    header, _ = packed(index)
    resources = header["resources"]
    assert isinstance(resources, list)
    assert resources[0]["successor"] == 1
    assert "successor" not in resources[1]
    assert "decision:1" not in json.dumps(header)
    assert "ada" not in json.dumps({**header, "functionWords": {}}), "which is a small word of Indonesian"


def test_a_name_that_is_no_utf_8_is_written_all_the_same() -> None:
    index = BrowserIndex(Scoring())
    index.add(document("file:caf\udce9.txt", "half \ud800 here", path="caf\udce9.txt"))
    header, _ = packed(index)
    resources = header["resources"]
    assert isinstance(resources, list)
    assert resources[0]["path"] == "caf?.txt"
    assert index.texts.units == len("half ? here")


def test_related_passages_are_near_and_never_next_to_each_other() -> None:
    vectors = np.array([[1, 0, 0], [0.9, 0.43589, 0], [1, 0, 0], [0.8, 0, 0.6], [0, 0, 1], [0, 0, 0]], np.float32)
    places = [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (4, 0)]
    found = nearest_passages(vectors, places, 2)
    assert [one.passage for one in found[0]] == [3], "1 comes right after it, 2 is the same text"
    assert [one.passage for one in found[1]] == [2, 3]
    assert found[1][0].cosine == pytest.approx(0.9, abs=1e-4)
    assert found[5] == []
    assert all(5 not in {one.passage for one in near} for near in found)


def test_related_passages_are_written_with_their_cosines() -> None:
    index = BrowserIndex(Scoring())
    index.add(document("file:a", "one"))
    index.add(document("file:b", "two"))
    _, sections = packed(index, [[Related(1, 0.731)], []])
    assert list(read_numbers(sections["related"])) == [1, 1, 73, 0]
