"""JSON as lines of path and value, however damaged it is."""

from __future__ import annotations

import json
import random
import re

import pytest

from findling.sources.documents.data.json_data import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError
from tests.counts import tries


def read(text: str, name: str = "a.json") -> Extracted:
    return extract(Source(text.encode(), name))


def lines(text: str, name: str = "a.json") -> list[str]:
    return [line for line in read(text, name).text.split("\n") if line]


def paragraphs(text: str, name: str = "a.json") -> list[str]:
    return re.split(r"\n{2,}", read(text, name).text)


def source_line(extracted: Extracted, words: str) -> int:
    offset = extracted.text.index(words)
    return [place for place in extracted.places if place.start <= offset][-1].line


def test_every_value_stands_on_a_line_with_its_path() -> None:
    text = json.dumps(
        {
            "users": [{"name": "Ada", "address": {"city": "Berlin", "b c": 1, "": "none"}}, {"tags": ["x", "y", 3]}],
            "empty": {},
            "none": [],
            "flags": [True, None],
        },
        indent=2,
    )
    assert lines(text) == [
        "users[0].name: Ada",
        "users[0].address.city: Berlin",
        'users[0].address["b c"]: 1',
        'users[0].address[""]: none',
        "users[1].tags: x, y, 3",
        "empty: {}",
        "none: []",
        "flags: true, null",
    ]


def test_numbers_and_literals_stay_as_they_are_written() -> None:
    assert lines('{"a": 1.500, "b": -0, "c": 1E+9, "d": 12345678901234567890, "e": false}') == [
        "a: 1.500",
        "b: -0",
        "c: 1E+9",
        "d: 12345678901234567890",
        "e: false",
    ]


def test_escapes_are_undone() -> None:
    text = r'{"a": "caf\u00e9 \ud83d\ude00 \"q\" a\/b \\n", "b": "one\ntwo", "k\u00e9y": "lone \ud800 half"}'
    assert lines(text) == ['a: café 😀 "q" a/b \\n', "b: one two", "kéy: lone half"]


def test_a_long_text_keeps_its_line_breaks_as_a_paragraph() -> None:
    story = "\n".join(f"Sentence number {number} of the story." for number in range(12))
    found = paragraphs(json.dumps({"id": 7, "story": story, "after": "x"}))
    assert found == ["id: 7", f"story: {story}", "after: x"]


def test_lines_of_the_file_are_kept() -> None:
    extracted = read('{\n  "a": 1,\n\n  "b": {\n    "c": "x"\n  },\n  "d": [\n    "p",\n    "q"\n  ]\n}\n')
    assert [source_line(extracted, words) for words in ("a: 1", "b.c: x", "d: p")] == [2, 5, 8]


def test_lines_of_the_file_with_other_line_ends() -> None:
    extracted = extract(Source(b'{\r\n"a": 1,\r\n"b": 2}\r\n', "a.json"))
    assert source_line(extracted, "b: 2") == 3


def test_the_records_of_a_list_are_paragraphs() -> None:
    text = '{"rows": [{"a": 1, "b": {"c": 2}}, {"a": 3}]}'
    assert paragraphs(text) == ["rows[0].a: 1\nrows[0].b.c: 2", "rows[1].a: 3"]


def test_json_lines_are_records_of_their_own() -> None:
    extracted = read('{"name": "x", "in": {"y": [{"z": 1}]}}\n\n{"name": "z"}\n', "a.jsonl")
    assert extracted.text == "name: x\nin.y[0].z: 1\n\nname: z"
    assert source_line(extracted, "name: z") == 3
    assert extracted.title == ""


def test_a_malformed_line_of_json_lines_is_kept_and_ends_with_its_line() -> None:
    text = '{"a": 1}\n{"b": [{"c": 2\nplain words, no record\n{"d": "unclosed}\n{"e": 5}\n'
    assert lines(text, "a.ndjson") == ["a: 1", "b[0].c: 2", "plain words, no record", '{"d": "unclosed}'[1:-1], "e: 5"]


def test_indented_records_in_a_file_of_json_lines() -> None:
    assert paragraphs('{\n "a": {\n  "b": 1\n }\n}\n{\n "a": 2\n}\n', "a.jsonl") == ["a.b: 1", "a: 2"]


def test_comments_trailing_commas_single_quotes_and_bare_keys() -> None:
    text = """{
      // why it is so
      name: 'it\\'s', /* block
      comment */ $ref: 0x1F, # hash
      "url": "http://x//y", // after
      list: ['a', "b",], nan: NaN, plus: +1, half: .5,
    }"""
    assert lines(text, "a.json5") == [
        "// why it is so",
        "name: it's",
        "/* block comment */",
        "$ref: 0x1F",
        "# hash",
        "url: http://x//y",
        "// after",
        "list: a, b",
        "nan: NaN",
        "plus: +1",
        "half: .5",
    ]


def test_a_missing_quote_costs_its_line_only() -> None:
    assert lines('{\n "a": "one,\n "b": "two",\n c": "three",\n "d": {"e": 5}\n}') == [
        '"a": "one',
        "b: two",
        'c": "three"',
        "d.e: 5",
    ]


def test_wrong_and_missing_brackets() -> None:
    assert lines('{"a": [1, {"b": 2}, "c": {"d": 3]}, "e": 4}}}], {"f": 5}') == [
        "a: 1",
        "a[1].b: 2",
        "a.c.d: 3",
        "e: 4",
        "f: 5",
    ]


def test_a_cut_off_file_keeps_what_is_there() -> None:
    whole = json.dumps({"a": [{"b": "first"}, {"c": ["second", "third"]}]})
    assert lines(whole[: whole.index("rd")]) == ["a[0].b: first", "a[1].c: second", '"thi']


def test_a_key_without_a_value_is_kept() -> None:
    assert lines('{"a": {"lonely": }, "b": 1}') == ["a.lonely:", "b: 1"]


def test_text_that_is_no_json_at_all_is_kept() -> None:
    text = "Dear reader, this is 1 letter.\nWith: a second line; and [brackets} too.\n"
    words = {word for line in lines(text) for word in line.split()}
    assert {"Dear", "reader,", "letter.", "second", "brackets", "too."} <= words


def test_no_word_is_lost_from_damaged_files() -> None:
    whole = json.dumps({"k": [{"alpha": "beta", "gamma": ["delta", 1, {"eps": "zeta"}]}, "eta"]}, indent=1)
    chance = random.Random(5)
    for _ in range(tries(500, short=100)):
        at = chance.randrange(len(whole))
        damaged = whole[:at] + chance.choice(["", '"', "{", "]", ",", ":", "\n"]) + whole[at + 1 :]
        found = read(damaged).text
        expected = [word for word in ("beta", "delta", "zeta", "eta") if f'"{word}"' in damaged]
        assert all(word in found for word in expected), damaged


def test_deep_nesting() -> None:
    depth = 100_000
    text = read("[" * depth + '"core"' + "]" * depth).text
    assert text.endswith("…: core")
    assert read('{"a":' * depth + "1" + "}" * depth).text.endswith(".a: 1")


@pytest.mark.parametrize("pattern", ["}", "[}", "/*", '"\n', "[ ", "a:", "'", "[1,", '{"a" ', "\\"])
def test_hostile_repetition_takes_linear_time(pattern: str) -> None:
    assert read("x\n" + pattern * 50_000).text.startswith("x")


def test_long_lists_of_strings_span_several_lines() -> None:
    names = [f"name-{number}" for number in range(60)]
    found = lines(json.dumps({"names": names}))
    assert len(found) > 2
    assert all(line.startswith("names: ") and len(line) <= 220 for line in found)
    assert ", ".join(line.removeprefix("names: ") for line in found) == ", ".join(names)


def test_a_long_string_in_a_list_has_its_index() -> None:
    assert lines(json.dumps({"a": ["s", "long " * 50]}))[1].startswith("a[1]: long long")


def test_vectors_are_counted_not_written() -> None:
    ring = [[number / 7, number / 3] for number in range(300)]
    text = json.dumps({"embedding": [0.5] * 384, "ids": list(range(1000)), "ring": ring, "line": [[1.5, 2], [3, 4]]})
    found = lines(text)
    assert found[0] == "embedding: 384 numbers"
    assert found[1].startswith("ids: 0, 1, 2")
    assert found[-3].endswith("998, 999")
    assert found[-2:] == ["ring: 600 numbers", "line: [1.5, 2], [3, 4]"]
    assert lines(json.dumps(list(range(50_000)))) == ["50,000 numbers"]


def test_an_indented_list_of_numbers_knows_its_lines() -> None:
    extracted = read(json.dumps({"ids": list(range(100, 200))}, indent=0))
    assert source_line(extracted, "140,") == 3 + 40
    assert source_line(extracted, "100,") == 3


def test_packed_data_is_measured_and_prose_is_not() -> None:
    chinese = "没有空格的文章" * 200
    blob = "A" * 8192
    wrapped = "\n".join(["QUJD" * 19] * 40)
    found = lines(json.dumps({"blob": blob, "pem": wrapped, "zh": chinese, "short": "A" * 900}))
    assert found == ["blob: <8,192 characters>", "pem: <3,079 characters>", f"zh: {chinese}", f"short: {'A' * 900}"]


def test_the_title_is_that_of_the_document() -> None:
    assert read('{"name": "pkg", "x": {"title": "inner"}}').title == "pkg"
    assert read('{"name": "pkg", "title": "Real"}').title == "Real"
    assert read('{"name": null}').title == ""


def test_the_text_stops_at_the_limit() -> None:
    extracted = extract(Source(json.dumps([{"word": "many"}] * 1000).encode(), "a.json", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields


@pytest.mark.parametrize("data", [b"", b" \n\t ", b",,,"])
def test_an_empty_file_has_no_text(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="no-text"):
        extract(Source(data, "a.json"))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnreadableError, match="binary"):
        extract(Source(b'{"a": \x00\x01\x02\x00}', "a.json"))


@pytest.mark.parametrize("data", [b'{"a": "alpha\0", "b": "beta"}', b'{"a": "alpha\0", "b": "beta" }'])
def test_a_zero_byte_costs_no_more_than_itself(data: bytes) -> None:
    assert extract(Source(data, "a.json")).text == "a: alpha\nb: beta"
