"""JSON read value by value."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.sources.chats.json_stream import JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Drip(io.BytesIO):
    """A stream that gives a few bytes at a time, as a pipe may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(3)


def stream(text: str | bytes) -> JsonStream:
    return JsonStream(io.BytesIO(text.encode() if isinstance(text, str) else text), "a.json")


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]))
def test_entries_are_those_that_were_written(values: list[Any], indent: int | None) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if b"\xed" in text:  # halves of characters are no UTF-8
        text = json.dumps(values, indent=indent).encode()
    assert list(JsonStream(Drip(text), "a.json").items()) == values


@settings(max_examples=40)
@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_keys_and_their_values(values: dict[str, Any]) -> None:
    json_stream = JsonStream(Drip(json.dumps(values).encode()), "a.json")
    assert {key: json_stream.value() for key in json_stream.keys()} == values  # noqa: SIM118 - it is no mapping


def test_an_entry_larger_than_a_block() -> None:
    large = "x" * 300_000
    assert list(stream(json.dumps([large, {"a": large}, 1])).items()) == [large, {"a": large}, 1]


def test_a_value_without_an_end_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findling.sources.chats.json_stream._LARGEST_VALUE", 1 << 18)
    large = "x" * 200_000
    assert list(stream(json.dumps([large, large, large])).items()) == [large] * 3
    source = io.BytesIO(b'["ok",\n"' + b"x" * 4_000_000 + b'"]')
    entries = JsonStream(source, "a.json").items()
    assert next(entries) == "ok"
    with pytest.raises(InvalidValueError, match=r"a\.json:2: a single value of more than") as raised:
        next(entries)
    assert raised.value.hint
    assert source.tell() < 1 << 20


def test_a_byte_order_mark_is_no_value() -> None:
    assert list(stream(b"\xef\xbb\xbf[1]").items()) == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[\n{"a": 1},\n{"a" 2}]', "a.json:3: no whole JSON: Expecting ':' delimiter"),
        ('[\n{"a": 1}\n{"a": 2}]', "a.json:3: no whole JSON: Expecting ','"),
        ('[\n{"a": 1},\n{"a": "cut o', "a.json:3: no whole JSON"),
        ("[\n1,\n2,\n", "a.json:4: no whole JSON: the file ends in the middle of it"),
        ("", "a.json:1: no whole JSON: the file ends in the middle of it"),
        ('{"a": 1}', "a.json:1: no whole JSON: Expecting '['"),
        ("[" * 200_000, "a.json:1: no whole JSON: nested too deep"),
        (b'[\n"ok",\n"\xff"]', "a.json:3: not UTF-8"),
    ],
)
def test_damage_is_named_with_its_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidValueError) as raised:
        list(stream(text).items())
    assert raised.value.message.startswith(message)
    assert raised.value.hint


def test_what_stands_before_the_damage_is_read() -> None:
    entries = stream('[{"a": 1}, {"a": 2}, {"a').items()
    assert [next(entries), next(entries)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(InvalidValueError):
        next(entries)


def test_damage_in_front_does_not_have_the_rest_read() -> None:
    source = io.BytesIO(b'[{"a" 1}, ' + b'"x",' * 200_000)
    with pytest.raises(InvalidValueError):
        list(JsonStream(source, "a.json").items())
    assert source.tell() <= 1 << 17
