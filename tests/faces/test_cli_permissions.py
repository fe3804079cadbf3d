"""`findling permissions` and `--as`: rights as people set them, and worlds that look alike from the command line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]


def test_a_folder_is_shared_and_taken_back(project: Path, findling: Call) -> None:
    assert findling("index")[0] == 0
    assert findling("--as", "user:ann", "login") == (1, "", 'findling: no match for "login"; unknown terms: login\n')
    assert findling("permissions", "share", "group:eng", "user:ann")[0] == 0
    assert findling("permissions", "share", "docs/", "group:eng")[2] == "findling: group:eng may see path:docs\n"
    code, out, _ = findling("--as", "user:ann", "login", "--format", "files")
    assert (code, out) == (0, "docs/guide.md\n")
    told = findling("permissions", "check", "user:ann", "docs/guide.md")
    assert told == (0, "yes: path:docs is shared with group:eng\n", "findling: user:ann is everyone, group:eng\n")
    assert findling("permissions", "check", "user:ann", "src/auth.py")[0] == 1
    assert findling("permissions", "share", "docs/guide.md", "!user:ann")[0] == 0
    assert findling("--as", "user:ann", "login")[0] == 1
    assert findling("permissions", "share", "--remove", "docs/guide.md", "!user:ann")[0] == 0
    assert findling("--as", "user:ann", "login")[0] == 0
    assert findling("permissions", "share", "--remove", "docs", "group:eng")[0] == 0
    assert findling("--as", "user:ann", "login")[0] == 1
    assert findling("permissions", "share", "--remove", "group:eng", "user:ann")[0] == 0
    assert findling("permissions", "list")[0] == 1


def test_every_file_that_is_read_again_keeps_its_rights(project: Path, findling: Call) -> None:
    findling("index")
    findling("permissions", "share", "docs/guide.md", "user:ann")
    (project / "docs" / "guide.md").write_text("# Guide\n\nAnother text about a walrus.\n")
    assert findling("--as", "user:ann", "walrus")[0] == 0
    findling("index", "--rebuild")
    assert findling("--as", "user:ann", "walrus")[0] == 0
    assert findling("--as", "user:bob", "walrus")[0] == 1


def test_relations_are_listed(project: Path, findling: Call) -> None:
    findling("index")
    findling("permissions", "share", "group:eng", "user:ann")
    findling("permissions", "share", "src", "group:eng", "role:auditor")
    code, out, _ = findling("permissions", "list")
    assert (code, out.splitlines()) == (
        0,
        ["group:eng may see path:src", "role:auditor may see path:src", "user:ann is a member of group:eng"],
    )
    document = json.loads(findling("permissions", "list", "--json")[1])
    assert {"subject": "user:ann", "relation": "member", "object": "group:eng"} in document["relations"]


MISTAKES = (
    (("permissions", "share", "docs", "ann"), "'ann' is no principal"),
    (("permissions", "share", "nowhere", "user:ann"), "there is no nowhere here"),
    (("permissions", "share", "user:bob", "user:ann"), "nobody can be a member of user:bob"),
    (("permissions", "share", "group:a", "group:a"), "group:a is above group:a already"),
    (("--as", "ann", "login"), "'ann' is no principal"),
    (("fetch", "docs/guide.md", "--as", "user:ann"), "there is no docs/guide.md in the index"),
    (("permissions", "check", "user:ann", "docs/none.md"), "there is no docs/none.md in the index"),
)


def test_what_cannot_be_is_an_error(project: Path, findling: Call) -> None:
    findling("index")
    for args, told in MISTAKES:
        code, out, err = findling(*args)
        assert (code, out) == (2, ""), args
        assert told in err


QUESTIONS = [
    ("login session",),
    ("login session", "--json", "--explain"),
    ("login", "--mode", "hybrid", "--explain"),
    ("sekret",),
    ("secret OR login", "--facet", "ext", "--facet", "path"),
    ("log*", "-k", "1", "--json"),
    ("path:docs",),
    ("fetch", "docs/guide.md"),
    ("fetch", "docs/secret.md"),
    ("similar", "docs/guide.md"),
    ("suggest", "se"),
    ("search", "login", "--explain-hit", "docs/guide.md"),
    ("search", "login", "--explain-hit", "docs/secret.md"),
    ("ls",),
]


def test_twin_worlds_from_the_command_line(tmp_path: Path, findling: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, list[tuple[int, str, str]]] = {"without": [], "with_it": []}
    for world in ("without", "with_it"):
        monkeypatch.setenv("FINDLING_HOME", str(tmp_path / world / "index"))
        root = tmp_path / world / "tree"
        (root / "docs").mkdir(parents=True)
        if world == "with_it":
            (root / "docs" / "secret.md").write_text(
                "# Login\n\nThe secret session of every login. Secrets, secrets.\n"
            )
            (root / "docs" / "a.py").write_text("def login(session): ...\n")
        (root / "docs" / "guide.md").write_text("# Guide\n\nEvery login makes a session token.\n")
        (root / "docs" / "other.md").write_text("# Other\n\nA session of the board.\n")
        for file in root.rglob("*.*"):
            os.utime(file, (1.7e9, 1.7e9))
        monkeypatch.chdir(root)
        findling("index")
        for name in ("docs/guide.md", "docs/other.md"):
            findling("permissions", "share", name, "user:ann")
        for question in QUESTIONS:
            code, out, err = findling(*question, "--as", "user:ann")
            words = re.sub(r'"timings_ms": \{[^}]*\}|\d+(\.\d+)? ms', "", out.replace(str(tmp_path / world), ""))
            told[world].append((code, words, err.replace(str(tmp_path / world), "")))
    for question, *answers in zip(QUESTIONS, *told.values(), strict=True):
        assert answers[0] == answers[1], question
