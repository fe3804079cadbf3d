"""Editing of settings as text: what is put in and cut out again leaves every byte as it was."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, note, settings
from hypothesis import strategies as st

from findling.service.agents.jsonc_text import cut_json, put_json, read_json
from findling.service.agents.text_blocks import (
    EditError,
    cut_marked,
    cut_toml,
    put_marked,
    put_toml,
    read_marked,
    read_toml,
)
from findling.service.agents.yaml_text import cut_yaml, put_yaml, read_yaml
from tests.counts import tries

ENTRY: dict[str, Any] = {"command": "/opt/ä b/findling", "args": ["mcp", "C:\\x", 'say "hi"']}
PATH = ("mcpServers", "findling")

NAMES = ["mcpServers", "findling", "a", "amp.mcpServers", "{", "//", "ä\\n", ""]
SCALARS = [
    "1", "-0.5e+9", "true", "false", "null", '"\\u0041//"', '"/* \\" */"', "{}", "[]", "[ ]", "{ }", '"ä"', '"a,}"',
]  # fmt: skip
TRIVIA = [
    "", "", "", " ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", "/**/", "/* , } */", "// c\n", "//\r\n", "/* a\n * b */",
    " // {\n  ",
]  # fmt: skip


class Writer:
    """Random JSON with comments and trailing commas; the object of servers holds no entry of ours."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def trivia(self) -> str:
        return "".join(self.random.choices(TRIVIA, k=self.random.randrange(4)))

    def value(self, depth: int) -> str:
        kind = self.random.randrange(4)
        if not depth or kind < 2:
            return self.random.choice(SCALARS)
        if kind == 2:
            return self.object(depth - 1, NAMES)
        return "[" + ",".join(self.trivia() + self.value(depth - 1) + self.trivia() for _ in range(2)) + "]"

    def object(self, depth: int, names: Sequence[str], *, at_top: bool = False) -> str:
        chosen = self.random.sample(names, self.random.randrange(4))
        members = []
        for name in chosen:
            is_holder = at_top and name == "mcpServers"
            value = self.object(depth, NAMES[2:]) if is_holder else self.value(depth)
            parts = (json.dumps(name, ensure_ascii=self.random.random() < 0.5), ":", value)
            members.append(self.trivia() + self.trivia().join(parts) + self.trivia())
        tail = "," + self.trivia() if members and self.random.random() < 0.4 else ""
        return "{" + ",".join(members) + ("" if members else self.trivia()) + tail + "}"

    def text(self) -> str:
        return self.trivia() + self.object(3, NAMES, at_top=True) + self.trivia()


@settings(max_examples=tries(50_000, short=200), deadline=None)
@given(st.integers(0, 1 << 60))
def test_json_with_comments_is_as_it_was(seed: int) -> None:
    text = Writer(seed).text()
    note(text)
    after = put_json(text, PATH, ENTRY)
    assert read_json(after, PATH) == ENTRY
    assert cut_json(after, PATH) == text


@settings(max_examples=tries(5_000, short=100), deadline=None)
@given(st.text('{}[]",:/*\n\r \\a1tfn-.eu', max_size=30))
def test_no_text_makes_it_fail_in_another_way(text: str) -> None:
    try:
        after = put_json(text, PATH, ENTRY)
    except EditError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.reason
    else:
        assert cut_json(after, PATH) == text


@pytest.mark.parametrize(
    "text",
    [None, "", "\n", " \r\n", "{}", "{ }", "{\n}\n", '{"a":1}', '{"mcpServers":{}}', "//c",
     '{\n\t"mcpServers": {\n\t}\n}', "/*c*/", '{"mcpServers": {"b": {},},}', '{"a": 1 // c\n}', '{ // c\n}',
     '{"a":1}// c'],
)  # fmt: skip
def test_json_of_many_shapes(text: str | None) -> None:
    after = put_json(text, PATH, ENTRY)
    assert read_json(after, PATH) == ENTRY
    assert cut_json(after, PATH) == text


def test_an_entry_reads_as_its_neighbours_do() -> None:
    text = '{\r\n\t"mcpServers": {\r\n\t\t"b": {} // about b\r\n\t\t// the end\r\n\t}\r\n}\r\n'
    after = put_json(text, PATH, {"command": "x"})
    assert after == (
        '{\r\n\t"mcpServers": {\r\n\t\t"b": {}, // about b\r\n'
        '\t\t"findling": {\r\n\t\t\t"command": "x"\r\n\t\t}\r\n\t\t// the end\r\n\t}\r\n}\r\n'
    )


def test_others_may_have_changed_the_file_meanwhile() -> None:
    after = put_json('{"mcpServers": {}}', PATH, ENTRY).replace("}}}", '}, "later": {}}}')
    assert cut_json(after, PATH) == '{"mcpServers": { "later": {}}}'
    formatted = json.dumps({"mcpServers": {"findling": ENTRY}, "theme": "dark"}, indent=4)
    assert json.loads(cut_json(formatted, PATH) or "") == {"theme": "dark"}
    commented = '{\n  "mcpServers": {\n    "findling": {}\n    // mine\n  }\n}\n'
    assert cut_json(commented, PATH) == '{\n  "mcpServers": {\n    // mine\n  }\n}\n'
    assert cut_json('{"a": 1}', PATH) == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{\n"a": 1\n"b": 2}', 3, "out of place"),
        ('{"mcpServers": {}, "mcpServers": {}}', 1, "stands there twice"),
        ('{"mcpServers": {"findling": 1,\n"findling": 2}}', 2, "stands there twice"),
        ('{"mcpServers": []}', 1, "mcpServers is no object"),
        ("[]", 1, "no JSON object"),
        ('{"a": ', 1, "ends too early"),
        ("{}\n}", 2, "behind the end"),
        ("{'a': 1}", 1, "out of place"),
        ('{"a": 01}', 1, "out of place"),
        ("{/* }", 1, "out of place"),
    ],
)
def test_json_that_cannot_be_edited(text: str, line: int, reason: str) -> None:
    with pytest.raises(EditError) as caught:
        read_json(text, PATH)
    assert (caught.value.line, reason in caught.value.reason) == (line, True), caught.value.reason


def test_json_that_is_deep_or_large() -> None:
    deep = '{"a": ' + "[" * 30_000 + "]" * 30_000 + "}"
    large = json.dumps({"history": [{"display": "x" * 50, "n": n} for n in range(10_000)]}, indent=1)
    for text in (deep, large):
        assert cut_json(put_json(text, PATH, ENTRY), PATH) == text


TOML = ("mcp_servers", "findling")
toml_lines = st.sampled_from(
    ["a = 1", "# c", "", "[mcp_servers.other]\ncommand = 'x'", "[t]", "[[u]]", 's = """\n[mcp_servers.findling]\n"""',
     "x = nan", "d = [\n [1],\n]"]
)  # fmt: skip


@settings(max_examples=tries(5_000, short=100), deadline=None)
@given(st.lists(toml_lines, max_size=6, unique=True), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_toml_is_as_it_was(lines: list[str], is_ended: bool, newline: str) -> None:
    text = ("\n".join(lines) + "\n" * is_ended).replace("\n", newline)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    after = put_toml(text, TOML, ENTRY)
    assert tomllib.loads(after)["mcp_servers"]["findling"] == ENTRY
    assert cut_toml(after, TOML) == text


def test_toml_that_others_have_added_to() -> None:
    text = (
        put_toml("model = 'x'\n", TOML, ENTRY)
        + "env = { A = '1' }\n[mcp_servers.findling.tools]\na = 1\n\n# mine\n[z]\n"
    )
    assert cut_toml(text, TOML) == "model = 'x'\n\n# mine\n[z]\n"
    assert (cut_toml(put_toml(None, TOML, ENTRY), TOML), cut_toml(put_toml("", TOML, ENTRY), TOML)) == (None, "")
    with pytest.raises(EditError, match="does not stand under a header"):
        cut_toml('[mcp_servers]\nfindling = { command = "x" }\n', TOML)
    with pytest.raises(EditError) as caught:
        read_toml("a = 1\nb = \n", TOML)
    assert caught.value.line == 2


YAML = ("extensions", "findling")
GOOSE = {"name": "findling", "cmd": "/opt/findling", "args": ["mcp"], "enabled": True, "timeout": 300}


@pytest.mark.parametrize(
    "text",
    [None, "", "\n", "# c\n", "a: 1", "a: 1\n", "extensions:", "extensions:\n", "extensions: # c\na: 1\n",
     "---\na: 1\n", "extensions:\n  # about dev\n  developer:\n    enabled: true\n\n# tail\nz: |\n  x\n",
     "a: 1\r\nextensions:\r\n    developer: {enabled: true}\r\n", "x: [1,\n 2]\n",
     "extensions:\n  developer: {}", "  a: 1\n  b: 2\n"],
)  # fmt: skip
def test_yaml_is_as_it_was(text: str | None) -> None:
    after = put_yaml(text, YAML, GOOSE)
    assert yaml.safe_load(after)["extensions"]["findling"] == GOOSE
    assert cut_yaml(after, YAML) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\nextensions: {}\n", 2), ("extensions: {a: 1}\n", 1), ("a: [\n", 2), ("- 1\n", 1), ("extensions: 1\n", 1),
     ("extensions:\n  a: 1\nextensions:\n  b: 1\n", 3), ("\ta: 1\n", 1), ("a: 1\n--- \nb: 1\n", 2)],
)  # fmt: skip
def test_yaml_that_cannot_be_edited(text: str, line: int) -> None:
    with pytest.raises(EditError) as caught:
        read_yaml(text, YAML)
        put_yaml(text, YAML, GOOSE)
    assert caught.value.line == line, caught.value.reason


@settings(max_examples=tries(5_000, short=100), deadline=None)
@given(st.one_of(st.none(), st.text("ab\r\n #<!-", max_size=20)))
def test_instructions_are_as_they_were(text: str | None) -> None:
    after = put_marked(text, "Search.\n\nThen read.\n")
    assert put_marked(after, "Search.\n\nThen read.") == after
    assert "Then read." in (read_marked(after) or "")
    assert cut_marked(after) == text


def test_instructions_that_were_edited() -> None:
    after = put_marked("# Mine\n", "old") + "\nmore\n"
    assert read_marked(put_marked(after, "new")) == "<!-- findling:begin -->\nnew\n<!-- findling:end -->"
    assert cut_marked(put_marked(after, "new")) == "# Mine\n\nmore\n"
    with pytest.raises(EditError, match="once each"):
        put_marked(after.replace("<!-- findling:end -->", ""), "new")
