"""`findling workspaces` as people type it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.domain.resources import Resource
from findling.service.engine.engine import Engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspace import workspace_in

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "workspaces"


@pytest.fixture
def team(findling: Findling, store: Path, project: Path) -> Path:
    """A shared workspace without files that holds a decision."""
    assert findling("workspaces", "create", "team")[0] == 0
    assert findling("workspaces", "set", "team", "--shared")[0] == 0
    with Engine(workspace_in(store / "team"), load_settings()) as engine:
        engine.add([(Resource(rid="decision:1", type="decision", title="Tokens"), "A session token lives a day.")])
    return store / "team"


def test_an_empty_list_says_how_to_begin(findling: Findling) -> None:
    code, out, err = findling("workspaces", "list")
    assert (code, out) == (1, "")
    assert "there is no workspace yet" in err


def test_the_list_for_people_and_for_programs(findling: Findling, team: Path, project: Path) -> None:
    findling("index")
    code, out, _ = findling("workspaces", "list")
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith("team ")
    assert "shared, no files" in first
    assert second.startswith(str(project))
    assert "4 resources" in second
    document = json.loads(findling("workspaces", "list", "--json")[1])
    assert [entry["name"] for entry in document["workspaces"]] == ["team", ""]
    assert document["workspaces"][1]["root"] == str(project)
    assert document["workspaces"][0]["quota"] is None


def test_a_folder_that_is_gone_is_marked_and_can_be_dropped(findling: Findling, project: Path, home: Path) -> None:
    root = home / "other"
    shutil.copytree(project, root)
    findling("index", str(root))
    shutil.rmtree(root)
    assert "the folder is gone" in findling("workspaces", "list")[1]
    code, _, err = findling("workspaces", "drop", str(root))
    assert code == 2
    assert "nothing was done" in err
    assert findling("workspaces", "drop", str(root), "--yes")[0] == 0
    assert findling("workspaces", "list")[0] == 1


def test_a_name_that_is_taken_is_an_error(findling: Findling, team: Path) -> None:
    code, out, err = findling("workspaces", "create", "team")
    assert (code, out) == (2, "")
    assert "there is a workspace team already" in err


@pytest.mark.parametrize(
    "args",
    [
        ("create", "../up"),
        ("create", "x", "--root", "absent"),
        ("create", "x", "--place", "project"),
        ("set", "team", "--quota", "text=plenty"),
        ("set", "team", "--to", "project"),
        ("set", "team", "--to", "home", "--root", "."),
        ("set", "team", "--name", "a b"),
        ("set", "absent", "--name", "b"),
        ("set", "team", "--name", "crew", "--shared"),
        ("set", "team"),
        ("set", "absent", "--shared"),
        ("drop", "absent", "--yes"),
        ("move", "team", "--to", "home"),
        ("rename", "team", "crew"),
        ("search", "token", "--shared"),
        ("nonsense",),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_changes_nothing(
    findling: Findling, team: Path, store: Path, args: tuple[str, ...]
) -> None:
    before = sorted(path.name for path in store.iterdir())
    code, out, err = findling("workspaces", *args)
    assert (code, out) == (2, "")
    assert err.startswith("findling: ")
    assert sorted(path.name for path in store.iterdir()) == before


def test_sharing_and_quotas_are_set(findling: Findling, team: Path) -> None:
    code, _, err = findling("workspaces", "set", "team", "--not-shared", "--quota", "text=50MB")
    assert (code, err) == (0, "findling: team is not shared; quota: text 52,428,800\n")
    assert "quota: resources 7, text 52,428,800" in findling("workspaces", "set", "team", "--quota", "resources=7")[2]
    assert "quota: resources 7\n" in findling("workspaces", "set", "team", "--quota", "text=0")[2]


def test_an_index_moves_and_is_found(findling: Findling, project: Path) -> None:
    findling("index")
    code, _, err = findling("workspaces", "set", ".", "--to", "project")
    assert code == 0
    assert str(project / ".findling") in err
    assert "in the project" in findling("workspaces", "list")[1]
    assert "docs/guide.md" in findling("signing in")[1]
    assert "already" in findling("workspaces", "set", ".", "--to", "project")[2]


def test_an_index_follows_a_renamed_folder(findling: Findling, project: Path, home: Path) -> None:
    root = home / "old"
    shutil.copytree(project, root)
    findling("index", str(root))
    root.rename(home / "new")
    assert findling("workspaces", "set", str(root), "--root", str(home / "new"))[0] == 0
    code, out, _ = findling("status", str(home / "new"), "--json")
    assert code == 0
    assert json.loads(out)["resources"] == 4


def test_a_synced_folder_is_warned_of(findling: Findling, home: Path) -> None:
    root = home / "Dropbox" / "notes"
    root.mkdir(parents=True)
    _, _, err = findling("workspaces", "create", "notes", "--root", str(root), "--place", "project")
    assert "Dropbox keeps in step" in err


def test_renaming(findling: Findling, team: Path) -> None:
    assert findling("workspaces", "set", "team", "--name", "crew")[0] == 0
    assert findling("workspaces", "list")[1].startswith("crew ")


def test_a_search_across_names_the_workspace_of_each_hit(findling: Findling, team: Path, project: Path) -> None:
    findling("index")
    code, out, _ = findling("search", "session token", "--workspace", "team,.")
    assert code == 0
    assert "[team] decision:1" in out
    assert f"[{project}] docs/guide.md:5" in out
    code, out, _ = findling("search", "session token", "--shared", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["total"] == 1
    assert [hit["workspace"] for hit in document["hits"]] == ["team"]


def test_filters_and_limits_hold_in_every_workspace(findling: Findling, team: Path, project: Path) -> None:
    findling("index")
    both = ("--workspace", "team,.")
    out = findling("search", "session token", *both, "--type", "decision")[1]
    assert out.count("[") == 1
    assert out.startswith("[team]")
    assert findling("search", "session token", *both, "-k", "1")[1].count("[") == 1


def test_nothing_found_is_1_and_a_damaged_workspace_degrades(findling: Findling, team: Path, project: Path) -> None:
    code, out, err = findling("search", "zebra", "--shared")
    assert (code, out) == (1, "")
    assert 'no match for "zebra"' in err
    findling("index")
    (team / "index.sqlite").write_bytes(b"no database at all" * 100)
    code, out, err = findling("search", "session token", "--workspace", "team,.")
    assert code == 0
    assert "docs/guide.md" in out
    assert "team is not searched: " in err
    assert "damaged" in err


def test_an_index_that_was_not_made_here_is_adopted_only_when_asked_for(
    findling: Findling, project: Path, store: Path
) -> None:
    findling("index")
    findling("workspaces", "set", str(project), "--to", "project")
    shutil.rmtree(store)
    code, _, err = findling("workspaces", "set", str(project), "--to", "project")
    assert code == 2
    assert "would use the index in" in err
    assert "--yes" in err
    code, _, err = findling("workspaces", "set", str(project), "--to", "project", "--yes")
    assert code == 0
    assert "is used now" in err
    assert "in the project" in findling("workspaces", "list")[1]


def test_a_warning_of_a_synced_folder_names_the_workspace(findling: Findling, project: Path, home: Path) -> None:
    root = home / "Dropbox" / "notes"
    shutil.copytree(project, root)
    code, _, err = findling("workspaces", "create", "notes", "--root", str(root), "--place", "project")
    assert code == 0
    assert "findling workspaces set notes --to home" in err


def test_indexing_into_a_synced_folder_warns_too(
    findling: Findling, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = home / "Dropbox" / "notes"
    shutil.copytree(project, root)
    monkeypatch.setenv("FINDLING_STORE_PLACE", "project")
    code, _, err = findling("index", str(root))
    assert code == 0
    assert "Dropbox keeps in step" in err
    assert f"findling workspaces set {root} --to home" in err
    assert "Dropbox" not in findling("index", str(root))[2]


def test_one_limit_is_set_without_the_others(findling: Findling) -> None:
    findling("workspaces", "create", "team")
    findling("workspaces", "set", "team", "--quota", "text=50MB")
    err = findling("workspaces", "set", "team", "--quota", "resources=10")[2]
    assert "resources 10, text 52,428,800" in err


def test_what_a_quota_keeps_out_is_not_said_to_be_unreadable(findling: Findling, project: Path) -> None:
    findling("workspaces", "create", "docs", "--root", str(project))
    findling("workspaces", "set", "docs", "--quota", "resources=1")
    out = findling("index", str(project), "--workspace", "docs")[1]
    assert "could not be read" not in out
    assert "left out: " in out
    assert "quota" in out


@pytest.mark.parametrize(
    "args",
    [
        ("session", "token", "--shared"),
        (" ", "--shared"),
        ("token", "--workspace", "absent,team"),
        ("token", "--shared", "--everywhere"),
        ("token", "--shared", "--cursor", "x"),
        ("token", "--everywhere", "--workspace", "team"),
        ("token", "docs", "--everywhere"),
        ("token", "--shared", "--explain-hit", "x"),
    ],
)
def test_a_question_to_several_workspaces_that_cannot_be_asked(
    findling: Findling, team: Path, args: tuple[str, ...]
) -> None:
    code, out, err = findling("search", *args)
    assert (code, out) == (2, ""), err
