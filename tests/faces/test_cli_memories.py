"""`findling remember` and `findling recall`, run in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Findling = Callable[..., tuple[int, str, str]]

CODE = "The door code of the office is in the blue binder."


def test_remember_prints_the_id_that_recall_finds(findling: Findling, project: Path) -> None:
    code, out, err = findling("remember", CODE, "--importance", "0.8", "--tag", "office", "--author", "Ada")
    rid = out.strip()
    assert (code, err) == (0, "findling: kept for all folders\n")
    assert rid.startswith("memory:")
    code, out, err = findling("recall", "door", "code")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"[personal] {rid}  0.")
    assert lines[1] == f"  {CODE}"
    assert lines[2] == "  has the words door, code; importance 0.80, last used today: × 1.12; never accessed so far"
    assert "accessed once so far" in findling("recall", "door")[1]


def test_the_same_again_says_so(findling: Findling, project: Path) -> None:
    first = findling("remember", CODE)[1]
    code, out, err = findling("remember", "--importance", "0.9", *CODE.split())
    assert (code, out) == (0, first)
    assert err == "findling: kept for all folders\nfindling: remembered already; importance 0.90, accessed once\n"
    findling("remember", "--id", "wifi", "The password is swordfish.")
    code, out, err = findling("remember", "--id", "wifi", "The password is herring.")
    assert (code, out) == (0, "memory:wifi\n")
    assert "findling: its text was changed" in err


def test_a_text_can_come_on_stdin(findling: Findling, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Grüße\nan alle\n".encode())))
    assert findling("remember", "-")[0] == 0
    assert "  Grüße\n  an alle\n" in findling("recall", "alle")[1]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    code, out, err = findling("remember", "-")
    assert (code, out) == (2, "")
    assert "not UTF-8" in err


def test_recall_without_a_query_lists_the_most_important(findling: Findling, project: Path) -> None:
    assert findling("recall") == (
        1,
        "",
        'findling: nothing is remembered\n  try: findling remember "some text"\n',
    )
    findling("remember", "The cat is grey.", "--importance", "0.2")
    findling("remember", CODE, "--importance", "0.8", "--tag", "office")
    code, out, err = findling("recall")
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if line.startswith("  The")] == [f"  {CODE}", "  The cat is grey."]
    assert "  importance 0.80, at first 0.80; never accessed, #office\n" in out
    code, out, err = findling("recall", "-k", "1", "--min-importance", "0.1")
    assert "cat" not in out
    assert "1 of 2 memories" in err
    assert findling("recall", "--min-importance", "0.9")[0] == 1


def test_json(findling: Findling, project: Path) -> None:
    made = json.loads(findling("remember", CODE, "--json", "--visibility", "user:ada")[1])
    assert made["schema"] == 6
    assert made["memory"]["outcome"] == "new"
    assert made["memory"]["visibility"] == ["user:ada"]
    code, out, _ = findling("recall", "--json", "door code")
    answer = json.loads(out)
    (found,) = answer["memories"]
    assert (code, answer["query"], answer["strategy"], answer["is_counted"]) == (0, "door code", "keyword", True)
    assert (found["rid"], found["text"], found["access_count"]) == (made["memory"]["rid"], CODE, 0)
    assert found["hit"]["receipt"]["steps"][-1]["name"] == "importance"
    listed = json.loads(findling("recall", "--json")[1])
    assert (listed["total"], listed["memories"][0]["access_count"]) == (1, 1)


def test_callers_see_their_own(findling: Findling, project: Path) -> None:
    findling("remember", "The safe code of Ada.", "--visibility", "user:ada")
    findling("remember", "The safe code of Bob.", "--visibility", "user:bob", "--visibility", "group:board")
    assert "Bob" not in findling("recall", "safe code", "--as", "user:ada")[1]
    assert "Bob" in findling("recall", "--as", "group:board")[1]
    nothing = findling("recall", "safe code", "--as", "user:eve")
    assert nothing[:2] == (1, "")
    assert nothing == findling("recall", "safe code", "--as", "user:mallory")


def test_meaning_is_recalled_where_the_mode_says_so(findling: Findling, project: Path) -> None:
    findling("remember", "The feline dozed off upon the rug.")
    assert findling("recall", "cat sleeping on carpet")[0] == 1, "the settings of these tests say words"
    code, out, _ = findling("recall", "--mode", "hybrid", "cat sleeping on carpet")
    assert code == 0
    assert "near in meaning" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("remember",), "TEXT"),
        (("remember", ""), "nothing to remember"),
        (("remember", "a", "--importance", "2"), "0<=x<=1"),
        (("remember", "a", "--id", "two words"), "'two words' is no id"),
        (("remember", "a", "--visibility", "ada"), "'ada' is no principal"),
        (("recall", "a", "-k", "0"), "x>=1"),
        (("recall", "a", "--mode", "guess"), "guess"),
        (("recall", "a", "--importance", "1"), "--importance"),
        (("recall", "a", "--as", "ada"), "'ada' is no principal"),
    ],
)
def test_bad_input_is_an_error_and_changes_nothing(
    findling: Findling, project: Path, args: tuple[str, ...], message: str
) -> None:
    findling("remember", CODE)
    code, out, err = findling(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert json.loads(findling("recall", "--json")[1])["total"] == 1


def test_control_characters_do_not_reach_the_terminal(findling: Findling, project: Path) -> None:
    findling("remember", "red \x1b[31m alert", "--tag", "\x1b[2J")
    assert "\x1b" not in findling("recall", "alert")[1]
    assert "\x1b" not in findling("recall")[1]


def test_a_workspace_by_name(findling: Findling, project: Path) -> None:
    findling("workspaces", "create", "desk")
    assert findling("remember", CODE, "--workspace", "desk")[0] == 0
    assert findling("recall", "door")[0] == 1
    assert findling("recall", "door", "--workspace", "desk")[0] == 0


def test_memories_are_updated_superseded_reviewed_and_undone(findling: Findling, project: Path) -> None:
    first = findling("remember", "Anna lives in Berlin.")[1].strip()
    code, out, err = findling("remember", "Anna resides in Berlin.", "--source", "Ben")
    assert (code, out) == (0, f"{first}\n")
    assert "it says the same as a memory that was there" in err
    assert f"try: findling memory undo {first}" in err
    moved, err = findling("remember", "Anna moved to Ulm.")[1:]
    moved = moved.strip()
    assert f"findling: it supersedes {first}\n  try: findling memory undo {moved}\n" in err
    code, out, err = findling("recall", "Anna")
    assert "Berlin" not in out
    assert f"supersedes {first}" in out
    assert "1 memory superseded by newer ones: add --all-versions to see them" in err
    out = findling("recall", "Anna", "--all-versions")[1]
    assert f"superseded by {moved}" in out
    assert "source: Ben" in out
    assert "Berlin" not in findling("recall")[1]
    code, out, _ = findling("memory", "history", moved)
    assert (code, out.count("memory:")) == (0, 3)
    code, out, err = findling("memory", "undo", first)
    assert (code, out) == (0, f"{first}\n  Anna lives in Berlin.\n")
    assert "holds by itself: Anna resides in Berlin." in err
    beside = findling("recall", "resides")[1].split()[1]
    assert f"findling memory review {moved} {beside} supersede" in findling("memory", "review")[1]
    assert findling("memory", "review", moved, beside, "keep")[0] == 0
    assert findling("memory", "review")[:2] == (1, "")
    tea, rice = (findling("remember", f"Anna likes {what}.")[1].strip() for what in ("tea", "rice"))
    code, out, err = findling("memory", "review")
    assert f"findling memory review {rice} {tea} supersede\n" in out
    pairs = json.loads(findling("memory", "--json", "review")[1])["pairs"]
    assert [(pair["newer"], pair["older"]) for pair in pairs] == [(rice, tea)]
    assert findling("memory", "review", rice, tea, "merge")[:2] == (0, f"{tea}\n")
    assert findling("memory", "review", rice, tea)[0] == 2
    assert findling("memory", "undo", "memory:none")[0] == 2


def test_a_day_of_a_recall(findling: Findling, project: Path) -> None:
    findling("remember", "Anna is on leave.", "--until", "2099-05-01")
    assert "until 2099-05-01" in findling("recall", "leave", "--at", "2099-05-01")[1]
    code, out, err = findling("recall", "leave", "--at", "2099-05-02")
    assert (code, out) == (1, "")
    assert "1 memory did not hold on 2099-05-02" in err
    assert findling("recall", "leave", "--at", "someday")[0] == 2
    assert findling("recall", "--at", "today")[0] == 2
    assert findling("recall", "leave", "--min-importance", "nan")[0] == 2
    assert "time: last week" in findling("recall", "leave last week")[2]


def test_a_folder_without_an_index_finds_what_is_remembered_and_all_that_is_indexed(
    findling: Findling, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer ended with 2: the model was to read on in a workspace that was not there."""
    findling("index")
    rid = findling("remember", "The walrus is called Fred.")[1].strip()
    empty = home / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "background")
    code, out, err = findling("recall", "walrus")
    assert (code, rid in out) == (0, True), err
    code, out, err = findling("walrus", "--everywhere")
    assert (code, rid in out) == (0, True), err
    assert f"{empty} is not searched" in err
    code, out, err = findling("session token", "--everywhere", "--files")
    assert code == 0
    assert "../" in out
    assert (empty / out.splitlines()[0]).is_file()
    assert not list((home / "empty").iterdir())


def test_remember_says_where_a_memory_is_kept(
    findling: Findling, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went into the index of the folder above, without a word."""
    findling("index")
    monkeypatch.chdir(project / "src")
    code, _, err = findling("remember", "--here", "The walrus naps.")
    assert (code, err) == (0, f"findling: kept for {project / 'src'} and the folders below it\n")
    assert findling("recall", "walrus")[0] == 0
    monkeypatch.chdir(project)
    assert findling("remember", "--visibility", "user:ada", "Ada naps.")[2] == f"findling: kept in {project}\n"
    assert findling("recall", "walrus")[0] == 1
    monkeypatch.chdir(project / "src")
    newer = (
        findling("remember", "--here", "The walrus sleeps in room 7.")[1]
        and findling("remember", "--here", "The walrus sleeps in room 8.")[1].strip()
    )
    monkeypatch.chdir(project / "docs")
    assert f"[{project / 'src'}] {newer}  newer\n" in findling("memory", "review")[1], "a review names the folder"
    findling("workspaces", "create", "team")
    for here in ((), ("--here",)):
        code, _, err = findling("remember", "--workspace", "team", *here, "A team naps.")
        assert (code, err.splitlines()[0]) == (0, "findling: kept in the workspace team")


def test_status_names_the_workspaces_that_are_asked_too(findling: Findling, project: Path) -> None:
    findling("index")
    assert "asked too" not in findling("status")[1]
    findling("remember", "The walrus naps.")
    assert "asked too:   items of personal\n" in findling("status")[1]
