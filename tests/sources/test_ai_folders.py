"""Items in `.ai` folders: the files that count, and their headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.ports import SkippedPath
from findling.domain.resources import Resource
from findling.sources.ai_folders import AiFile, describe, find_ai_files, read_ai_file, read_header
from findling.sources.files.file_text import UnreadableError

LIMIT = 1 << 20


def write(folder: Path, path: str, text: str) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def described(folder: Path, path: str, text: str, scope: str = "project") -> Resource:
    write(folder, path, text)
    (file,) = (found for found in find_ai_files(folder, scope, LIMIT) if isinstance(found, AiFile))
    return describe(file, *read_ai_file(file, LIMIT))


RELEASE = """---
# how we ship
name: release
description: >
  Ship a release
  to production
tags: [ship, "on call"]   # inline
category: deploy
version: "1.2.0"
metadata:
  author: Ann
  audience: ops
---
# Release day

Run the smoke tests first.
"""


def test_a_directive_with_front_matter(tmp_path: Path) -> None:
    resource = described(tmp_path, "directives/ops/release.md", RELEASE)
    assert resource.rid == "directive:project/ops/release"
    assert (resource.type, resource.title, resource.lang) == ("directive", "Release day", "markdown")
    assert (resource.path, resource.author) == (".ai/directives/ops/release.md", "Ann")
    assert resource.tags == ("ship", "on call", "deploy")
    kept = {key: value for key, value in resource.fields.items() if key != "digest"}
    assert kept == {
        "name": "release",
        "description": "Ship a release to production",
        "category": "deploy",
        "version": "1.2.0",
        "scope": "project",
    }
    assert len(resource.fields["digest"]) == 32


def test_folders_are_the_category_and_the_file_name_the_name_where_no_header_says_so(tmp_path: Path) -> None:
    resource = described(tmp_path, "knowledge/db/locks/rows.txt", "Rows are locked one by one.\n", "user")
    assert (resource.rid, resource.title) == ("knowledge:user/db/locks/rows", "rows")
    assert (resource.fields["category"], resource.tags) == ("db/locks", ("db/locks",))
    assert resource.path == ""
    assert resource.fields["file"] == str(tmp_path / "knowledge/db/locks/rows.txt")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "rotate.py",
            '#!/usr/bin/env python\n"""Rotate the logs\nof a host.\n\nMore.\n\ntags: logs, ops\nversion: 2\n"""\n',
        ),
        ("rotate.py", '"""Rotate the logs of a host."""\n\n__version__ = "2"  # semver\n__tags__ = ["logs", "ops"]\n'),
        ("rotate.py", "# Rotate the logs of a host.\n# tags: logs, ops\n# version: 2\nimport os\n"),
        ("rotate.sh", "#!/bin/sh\n# Rotate the logs of a host.\n#\n# tags: logs, ops\n# version: 2\nlogrotate\n"),
        ("rotate.js", "/**\n * Rotate the logs of a host.\n *\n * @tags logs, ops\n * @version 2\n */\nrun();\n"),
        ("rotate.ts", "// Rotate the logs of a host.\n// tags: [logs, ops]\n// version: 2\nrun();\n"),
        ("rotate.json", '{"description": "Rotate the logs of a host.", "tags": ["logs", "ops"], "version": 2}'),
        ("rotate.yaml", "description: Rotate the logs of a host.\ntags:\n  - logs\n  - ops # on call\nversion: 2\n"),
        (
            "rotate.toml.md",
            '+++\ndescription = "Rotate the logs of a host."\ntags = ["logs", "ops"]\nversion = 2\n+++\n',
        ),
        (
            "rotate.xml",
            '<tool name="rotate" version="2">\n<metadata><description>Rotate the <b>logs</b>\nof a host.</description>'
            "<tags>logs, ops</tags></metadata></tool>\n",
        ),
    ],
)
def test_a_tool_says_in_its_own_language_what_it_is(tmp_path: Path, name: str, text: str) -> None:
    resource = described(tmp_path, f"tools/{name}", text)
    assert resource.fields["description"] == "Rotate the logs of a host."
    assert resource.tags == ("logs", "ops")
    assert resource.fields["version"] == "2"


def test_a_directive_in_tags_inside_markdown(tmp_path: Path) -> None:
    lines = (
        "# Deploy",
        "```xml",
        "<directive name=\"deploy\" version='3'>",
        "<description>Go live</description>",
        "```",
    )
    text = "\n".join(lines)
    resource = described(tmp_path, "directives/x.md", text)
    assert (resource.fields["name"], resource.fields["version"]) == ("deploy", "3")
    assert (resource.title, resource.fields["description"]) == ("Deploy", "Go live")


def test_what_is_no_text_a_secret_or_a_link_is_left_out_with_its_reason(tmp_path: Path) -> None:
    write(tmp_path, "tools/deploy.py", '"""Deploy."""')
    write(tmp_path, "tools/deploy.sh", "# Deploy.")
    write(tmp_path, "tools/.env", "KEY=1")
    write(tmp_path, "tools/__pycache__/deploy.pyc", "x")
    write(tmp_path, "knowledge/paper.pdf", "%PDF")
    write(tmp_path, "knowledge/large.md", "x" * 5000)
    write(tmp_path, "elsewhere/no.md", "not looked at")
    (tmp_path / "knowledge/passwd.md").symlink_to("/etc/passwd")
    outcomes = list(find_ai_files(tmp_path, "project", 4096))
    assert [found.rid for found in outcomes if isinstance(found, AiFile)] == ["tool:project/deploy"]
    reasons = {found.path: found.reason for found in outcomes if isinstance(found, SkippedPath)}
    assert reasons == {
        ".ai/tools/.env": "secret",
        ".ai/tools/__pycache__/": "machine-made",
        ".ai/tools/deploy.sh": "excluded",
        ".ai/knowledge/large.md": "too-large",
        ".ai/knowledge/paper.pdf": "unsupported",
        ".ai/knowledge/passwd.md": "symlink",
    }


def test_a_file_of_zero_bytes_or_of_blanks_is_no_item(tmp_path: Path) -> None:
    write(tmp_path, "tools/blank.py", " \n")
    (file,) = (found for found in find_ai_files(tmp_path, "project", LIMIT) if isinstance(found, AiFile))
    with pytest.raises(UnreadableError, match="empty"):
        read_ai_file(file, LIMIT)


def test_the_digest_follows_the_bytes_alone(tmp_path: Path) -> None:
    first = described(tmp_path / "a", "tools/x.py", '"""X."""').fields["digest"]
    assert described(tmp_path / "b", "tools/x.py", '"""X."""').fields["digest"] == first
    assert described(tmp_path / "c", "tools/x.py", '"""Y."""').fields["digest"] != first


@given(
    st.text(alphabet="---\n +:#[]{}\"'|>abc<directive>=/*@", max_size=300),
    st.sampled_from(["markdown", "python", "bash", "javascript", "json", "yaml", "xml", "text"]),
)
def test_no_header_is_too_strange(text: str, lang: str) -> None:
    for start in ("", "---\n", "+++\n", "/*", '"""', "#"):
        for key, value in read_header(start + text, lang).items():
            assert key == key.lower()
            assert isinstance(value, str) or all(isinstance(part, str) for part in value)


@pytest.mark.parametrize(
    "front",
    ["a = " + "[" * 5000, "a = " + "9" * 5000, "a = 0x" + "f" * 5000, "a = 2026-99-99", "a = "],
)
def test_front_matter_that_no_toml_reader_takes_is_none(front: str) -> None:
    assert read_header(f"+++\n{front}\n+++\n# Release\n", "markdown") == {}


def test_json_that_spells_half_a_character_can_be_stored() -> None:
    found = read_header('{"name": "a\\ud800b\\u0000", "tags": ["\\udfff"]}', "json")
    assert found == {"name": "a?b", "tags": ("?",)}


@pytest.mark.parametrize(
    ("text", "lang", "found"),
    [
        ("/" + "*" * 19_000, "javascript", {}),
        (" \t" * 9_000 + "x", "go", {}),
        ("/** ship\n@tags" + " " * 19_000 + "\n*/", "javascript", {"description": "ship @tags"}),
        ("<directive " + "a" * 19_000 + ">", "markdown", {}),
        ("/*" + "*" * 9_000 + "\n * Ship it.\n " + "*" * 9_000 + "/", "javascript", {"description": "Ship it."}),
    ],
)
def test_a_header_of_one_letter_is_no_trap(text: str, lang: str, found: dict[str, str]) -> None:
    header = read_header(text, lang)
    assert {key: str(value).strip("* ") for key, value in header.items()} == found
