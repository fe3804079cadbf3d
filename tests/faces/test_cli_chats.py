"""`findling chats`, run in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Findling = Callable[..., tuple[int, str, str]]

LINES = [
    {
        "thread": "standup",
        "title": "Standup",
        "author": "Ann",
        "at": "2026-04-08T08:38:00Z",
        "text": "the deploy failed",
    },
    {"thread": "standup", "author": "Bob", "at": "2026-04-08T08:40:00Z", "text": "I will look\nat it"},
    {"thread": "lunch", "id": "1", "author": "Bob", "text": "Pizza?"},
]


@pytest.fixture
def export(tmp_path: Path, project: Path) -> Path:
    file = tmp_path / "talk.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return file


def test_import_and_list(findling: Findling, export: Path) -> None:
    code, out, err = findling("chats", "import", str(export))
    assert (code, out) == (0, "")
    assert err == "findling: 2 threads: 3 messages added, 0 changed, 0 known\n"
    assert findling("chats", "import", str(export))[2] == (
        "findling: 2 threads: 0 messages added, 0 changed, 3 known\n"
    )
    code, out, _ = findling("chats", "list")
    assert code == 0
    assert out == (
        "jsonl/lunch    1\n"
        "jsonl/standup  2  2026-04-08  2026-04-08  Standup\n"
    )  # fmt: skip


def test_a_hit_says_who_and_when(findling: Findling, export: Path) -> None:
    findling("chats", "import", str(export))
    code, out, _ = findling("search", "--json", "deploy")
    (hit,) = json.loads(out)["hits"]
    assert code == 0
    assert (hit["rid"], hit["type"], hit["title"]) == ("chat:jsonl/standup/20260408-083800", "chat", "Standup")
    assert (hit["place"], hit["heading"]) == ("Ann, 2026-04-08 08:38", ["Ann, Bob", "2026-04-08 08:38 – 08:40"])
    assert findling("search", "login")[0] == 0, "the files of the project are indexed as ever"


def test_as_json(findling: Findling, export: Path) -> None:
    code, out, err = findling("chats", "import", "--json", "--source", "irc", str(export))
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["threads"], document["added"], document["changed"], document["known"]) == (2, 3, 0, 0)
    threads = json.loads(findling("chats", "list", "--json")[1])["threads"]
    assert threads[1] == {
        "thread": "irc/standup",
        "title": "Standup",
        "messages": 2,
        "first_at": 1775637480.0,
        "last_at": 1775637600.0,
    }


def test_from_stdin(findling: Findling, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"author": "Ann", "at": 5, "text": "hi"}) + "\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode() * 2)))
    code, _, err = findling("chats", "import", "-", "--thread", "notes", "--title", "My notes")
    assert (code, err) == (0, "findling: 1 thread: 1 message added, 0 changed, 1 known\n")
    assert findling("chats", "list")[1] == "jsonl/notes  1  1970-01-01  1970-01-01  My notes\n"


def test_delete(findling: Findling, export: Path) -> None:
    findling("chats", "import", str(export))
    code, out, err = findling("chats", "delete", "jsonl/standup")
    assert (code, out, err) == (0, "", "findling: deleted jsonl/standup with 2 messages\n")
    code, _, err = findling("chats", "delete", "jsonl/standup")
    assert code == 2
    assert "there is no thread jsonl/standup\n  try: findling chats list" in err


def test_nothing_to_list_and_nothing_to_import(findling: Findling, project: Path, tmp_path: Path) -> None:
    assert findling("chats", "list")[:2] == (1, "")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    code, _, err = findling("chats", "import", "--format", "jsonl", str(empty))
    assert code == 1
    assert "there are no messages in" in err


@pytest.mark.parametrize("text", ["", "[]"])
def test_an_empty_export_is_no_error(findling: Findling, project: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(text)
    code, out, err = findling("chats", "import", str(file))
    assert (code, out) == (1, "")
    assert err == f"findling: there are no messages in {file}\n"


def test_an_author_is_found_among_others(findling: Findling, export: Path) -> None:
    findling("chats", "import", str(export))
    code, out, _ = findling("search", "--json", "--facet", "author", "author:bob deploy")
    answer = json.loads(out)
    assert code == 0
    assert [(hit["author"], hit["place"]) for hit in answer["hits"]] == [("Ann", "Ann, 2026-04-08 08:38")]
    assert answer["facets"] == {"author": {"Ann": 1, "Bob": 1}}
    assert findling("search", "author:cy deploy")[0] == 1


def test_an_error_names_the_line_and_what_stands_before_it_is_there(findling: Findling, export: Path) -> None:
    with export.open("a") as file:
        file.write('{"thread": "standup", "author": "Ann", "at": 7, "text": "x", "mood": "good"}\n')
    code, out, err = findling("chats", "import", str(export))
    assert (code, out) == (2, "")
    assert "imported what stands before the error: 2 threads: 3 messages added" in err
    assert "talk.jsonl:4: unknown key 'mood'" in err
    assert findling("chats", "list")[0] == 0


@pytest.mark.parametrize(
    ("principals", "expected"),
    [((), None), (("user:ann", "!user:bob"), ["user:ann", "!user:bob"]), (("nobody",), [])],
)
def test_who_may_see_it(
    findling: Findling, export: Path, principals: tuple[str, ...], expected: list[str] | None
) -> None:
    from findling.service.engine.engine import open_engine

    flags = [flag for principal in principals for flag in ("--visibility", principal)]
    assert findling("chats", "import", str(export), *flags)[0] == 0
    with open_engine(".") as engine:
        found = {resource.visibility for resource in engine.writer.store.resources() if resource.type == "chat"}
    assert found == {None if expected is None else tuple(expected)}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--visibility", "ann"), "'ann' is no principal"),
        (("--visibility", "nobody", "--visibility", "user:a"), "leaves no room for others"),
        (("--format", "telegram"), "'telegram' is not one of"),
        (("--source", "a/b"), "cannot be a source of chats"),
        (("--colour",), "No such option"),
    ],
)
def test_what_cannot_be_done(findling: Findling, export: Path, flags: tuple[str, ...], message: str) -> None:
    code, out, err = findling("chats", "import", str(export), *flags)
    assert (code, out) == (2, "")
    assert message in err
    assert findling("chats", "list")[0] == 1


def test_a_file_that_is_not_there(findling: Findling, project: Path) -> None:
    code, _, err = findling("chats", "import", "nowhere.json")
    assert code == 2
    assert "there is no nowhere.json" in err


def test_a_title_cannot_drive_the_terminal(findling: Findling, project: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"thread": "t", "title": "a\x1b[31mb", "author": "", "at": 5, "text": "x"}))
    findling("chats", "import", str(file))
    assert "\x1b" not in findling("chats", "list")[1]
