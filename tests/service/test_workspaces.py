"""Workspaces as folders: found wherever they lie, made, moved, renamed and dropped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import (
    CorruptError,
    InvalidValueError,
    NotFoundError,
    PathNotFoundError,
    UntrustedSettingError,
    UsageError,
)
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.quotas import Quota
from findling.service.workspace.workspace import PROJECT_FOLDER, Workspace, locate, workspace_in
from findling.service.workspace.workspace_folders import settle, synced_by
from findling.service.workspace.workspace_moves import move_root, move_workspace
from findling.service.workspace.workspaces import (
    change_workspace,
    create_workspace,
    drop_workspace,
    find_workspace,
    list_workspaces,
    rename_workspace,
)
from findling.stores.local.legs import STORE_FILE

SETTINGS = Settings().override({"search.mode": "keyword", "semantic.instant": False}, "test")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    (made / "docs").mkdir(parents=True)
    (made / "docs" / "tokens.md").write_text("Every session token is rotated daily.\n")
    (made / "trees.md").write_text("Trees grow slowly.\n")
    return made


def indexed(path: Path, home: Path, *, name: str = "", place: str = "home") -> Workspace:
    workspace = locate(path, home=home, name=name, place=place)
    settle(workspace, home)
    with Engine(workspace, SETTINGS) as engine:
        engine.index()
    return workspace


def paths(workspace: Workspace, query: str, *, refresh: bool = False) -> list[str]:
    with Engine(workspace, SETTINGS) as engine:
        return [hit.path for hit in engine.search(query, refresh=refresh)]


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Places


def test_a_workspace_is_in_the_home_unless_told(home: Path, root: Path) -> None:
    workspace = indexed(root, home)
    assert workspace.folder.parent == home
    assert workspace.has_files
    assert not (root / PROJECT_FOLDER).exists()


def test_one_in_the_project_is_found_whatever_the_setting_says_later(home: Path, root: Path) -> None:
    workspace = indexed(root, home, place="project")
    assert workspace.folder == root / PROJECT_FOLDER
    assert (workspace.folder / ".gitignore").read_text() == "*\n"
    assert locate(root, home=home).folder == workspace.folder
    assert locate(root / "docs", home=home) == Workspace(workspace.folder, root, "docs", part="docs")
    assert paths(locate(root, home=home), "token", refresh=True) == ["docs/tokens.md"]


def test_one_in_the_home_stays_there_when_the_setting_changes(home: Path, root: Path) -> None:
    workspace = indexed(root, home)
    assert locate(root, home=home, place="project") == workspace


def test_the_index_in_the_project_is_never_indexed_itself(home: Path, root: Path) -> None:
    (root / "sub").mkdir()
    indexed(root / "sub", home, place="project")
    workspace = locate(root, home=home, place="project")
    settle(workspace, home)
    with Engine(workspace, SETTINGS.override({"index.hidden": True, "index.use_ignore_files": False}, "t")) as engine:
        engine.index()
        assert {resource.path for resource in engine.ls()} == {"docs/tokens.md", "trees.md"}


def test_an_index_that_came_with_a_project_is_not_opened(home: Path, root: Path, tmp_path: Path) -> None:
    indexed(root, tmp_path / "home of somebody else", place="project")
    assert locate(root, home=home).folder.parent == home
    with pytest.raises(UntrustedSettingError, match="was not made here"):
        locate(root, home=home, place="project")


def test_a_single_file_cannot_hold_its_index(home: Path, root: Path) -> None:
    workspace = locate(root / "trees.md", home=home, place="project")
    assert workspace.folder.parent == home
    assert workspace.only == "trees.md"


@pytest.mark.parametrize("place", ["home", "project"])
def test_deleting_the_folder_drops_the_index(home: Path, root: Path, place: str) -> None:
    workspace = indexed(root, home, place=place)
    shutil.rmtree(workspace.folder)
    assert list_workspaces(home) == []
    with pytest.raises(NotFoundError):
        find_workspace(str(root), home)
    assert paths(indexed(root, home, place=place), "token") == ["docs/tokens.md"]


def test_looking_for_a_workspace_takes_one_more_look_per_folder_at_most(
    home: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed(root, home, place="project")
    deep = root / "docs"
    looks: list[str] = []
    stat, read = Path.stat, Path.read_bytes

    def counted_stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        looks.append(str(path))
        return stat(path, follow_symlinks=follow_symlinks)

    def counted_read(path: Path) -> bytes:
        looks.append(str(path))
        return read(path)

    monkeypatch.setattr(Path, "stat", counted_stat)
    monkeypatch.setattr(Path, "read_bytes", counted_read)
    assert locate(deep, home=home).root == root
    own = [look for look in looks if str(home) in look or PROJECT_FOLDER in look]
    # Whether there are notes at all; docs: a note, a store and what is known of a lost one; project: a note, what it
    # leads to, whether that is a link, and a store.
    assert len(own) <= 1 + 3 + 4


@pytest.mark.parametrize(
    ("folder", "service"),
    [
        ("Dropbox/work", "Dropbox"),
        ("OneDrive - Acme/work", "OneDrive"),
        ("Library/Mobile Documents/com~apple~CloudDocs/work", "iCloud Drive"),
        ("Library/CloudStorage/GoogleDrive-me@example.com/work", "GoogleDrive"),
        ("Nextcloud", "Nextcloud"),
        ("work", ""),
        ("dropboxes/work", ""),
    ],
)
def test_synced_folders_are_told_by_their_names(tmp_path: Path, folder: str, service: str) -> None:
    assert synced_by(tmp_path / folder) == service


def test_synced_folders_are_told_by_their_marks(tmp_path: Path) -> None:
    (tmp_path / "shared" / "deep").mkdir(parents=True)
    assert synced_by(tmp_path / "shared" / "deep") == ""
    (tmp_path / "shared" / ".stfolder").mkdir()
    assert synced_by(tmp_path / "shared" / "deep") == "Syncthing"


# Making them


def test_a_workspace_without_files_is_its_own_root(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_workspace("team", home=home, shared=True, quota=Quota(text=9))
    manifest = read_manifest(made.folder)
    assert manifest is not None
    assert (manifest.name, manifest.root, manifest.shared, manifest.quota) == ("team", None, True, Quota(text=9))
    monkeypatch.chdir(tmp_path)
    workspace = locate(".", home=home, name="team")
    assert workspace == Workspace(made.folder, made.folder)
    assert not workspace.has_files
    assert locate(made.folder, home=home, name="team") == workspace
    with pytest.raises(InvalidValueError, match="has no files"):
        locate(tmp_path, home=home, name="team")


def test_what_is_put_into_it_is_found_from_anywhere(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_workspace("team", home=home)
    monkeypatch.chdir(root)
    with Engine(locate(".", home=home, name="team"), SETTINGS) as engine:
        engine.add([(Resource(rid="decision:1", type="decision", title="Tokens"), "We rotate every token.")])
        assert [hit.rid for hit in engine.search("token", refresh=False)] == ["decision:1"]
        assert [resource.rid for resource in engine.ls()] == ["decision:1"]


def test_a_workspace_with_a_root_is_indexed_by_its_first_search(
    home: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_workspace("docs", home=home, root=root / "docs")
    monkeypatch.chdir(tmp_path)
    workspace = locate(".", home=home, name="docs")
    assert workspace.root == root / "docs"
    assert paths(workspace, "token", refresh=True) == ["tokens.md"]


def test_names_that_are_none_or_taken_are_refused(home: Path, root: Path) -> None:
    create_workspace("team", home=home)
    before = names_in(home)
    for name in ("team", "../up", ".models", "", "a b", "x" * 300):
        with pytest.raises(InvalidValueError):
            create_workspace(name, home=home)
    with pytest.raises(PathNotFoundError):
        create_workspace("other", home=home, root=root / "absent")
    with pytest.raises(InvalidValueError, match="no folder to lie in"):
        create_workspace("other", home=home, place="project")
    assert names_in(home) == before


def test_what_a_killed_creation_left_is_cleared_away(home: Path) -> None:
    (home / ".new-team").mkdir(parents=True)
    (home / ".new-team" / STORE_FILE).write_bytes(b"half of a store")
    (home / ".deleted-old").mkdir()
    create_workspace("team", home=home)
    assert names_in(home) == {"team", ".workspaces.lock"}


# Looking at them


def test_the_list_says_what_each_holds(home: Path, root: Path) -> None:
    create_workspace("team", home=home, shared=True)
    indexed(root, home)
    first, second = list_workspaces(home)
    assert (first.label, first.root, first.shared, first.resources, first.indexed_at) == ("team", "", True, 0, None)
    assert (second.label, second.name, second.resources, second.shared) == (str(root), "", 2, False)
    assert second.chunks >= 2
    assert second.characters > 20
    assert second.size_bytes > 10_000
    assert second.indexed_at is not None
    assert not second.is_root_missing


def test_a_missing_root_and_a_damaged_store_are_marked(home: Path, root: Path) -> None:
    indexed(root, home)
    shutil.rmtree(root)
    damaged = create_workspace("team", home=home)
    (damaged.folder / STORE_FILE).write_bytes(b"no database at all" * 100)
    first, second = list_workspaces(home)
    assert "damaged" in first.problem
    assert second.is_root_missing


def test_no_home_is_no_workspace(home: Path) -> None:
    assert list_workspaces(home) == []
    with pytest.raises(NotFoundError):
        find_workspace("team", home)
    assert not home.exists()


# Moving them


def test_an_index_moves_into_its_project_and_back(home: Path, root: Path) -> None:
    before = indexed(root, home)
    found, is_moved = move_workspace(str(root), "project", home=home)
    assert (found.folder, is_moved) == (root / PROJECT_FOLDER, True)
    assert not before.folder.exists()
    assert (root / PROJECT_FOLDER / ".gitignore").exists()
    assert paths(locate(root, home=home), "token", refresh=True) == ["docs/tokens.md"]
    assert move_workspace(str(root), "project", home=home) == (found, False)
    back, _ = move_workspace(str(root), "home", home=home)
    assert back.folder == before.folder
    assert not (root / PROJECT_FOLDER).exists()
    assert paths(locate(root, home=home), "token", refresh=True) == ["docs/tokens.md"]
    assert names_in(home / ".places") == set()


def test_an_index_follows_a_folder_that_was_renamed(home: Path, root: Path) -> None:
    indexed(root, home)
    moved = root.rename(root.with_name("renamed"))
    found = move_root(str(root), moved, home=home)
    workspace = locate(moved, home=home)
    assert workspace.folder == found.folder
    with Engine(workspace, SETTINGS) as engine:
        report = engine.index()
        assert (report.added, report.updated, report.removed) == (0, 0, 0)
    assert [account.root for account in list_workspaces(home)] == [str(moved)]
    with pytest.raises(NotFoundError):
        find_workspace(str(root), home)


@pytest.mark.parametrize("name", ["", "team"])
def test_an_index_in_the_project_follows_too(home: Path, root: Path, name: str) -> None:
    if name:
        create_workspace(name, home=home, root=root, place="project")
    indexed(root, home, name=name, place="project")
    moved = root.rename(root.with_name("renamed"))
    assert list_workspaces(home) == []
    found = move_root(name or str(root), moved, home=home)
    assert found.folder == moved / PROJECT_FOLDER
    assert paths(locate(moved, home=home, name=name), "token", refresh=True) == ["docs/tokens.md"]
    assert len(names_in(home / ".places")) == 1


def test_a_named_workspace_keeps_its_name_when_its_folder_moves(home: Path, root: Path) -> None:
    create_workspace("docs", home=home, root=root)
    indexed(root, home, name="docs")
    moved = root.rename(root.with_name("renamed"))
    move_root("docs", moved, home=home)
    assert locate(moved, home=home, name="docs").root == moved
    manifest = read_manifest(home / "docs")
    assert manifest is not None
    assert manifest.root == str(moved)


def test_a_move_that_cannot_be_is_refused_and_changes_nothing(home: Path, root: Path) -> None:
    create_workspace("team", home=home)
    workspace = indexed(root, home)
    other = root.with_name("other")
    shutil.copytree(root, other)
    indexed(other, home)
    with pytest.raises(InvalidValueError, match="no folder"):
        move_workspace("team", "project", home=home)
    with pytest.raises(InvalidValueError, match="has no files"):
        move_root("team", root, home=home)
    with pytest.raises(InvalidValueError, match="index of its own"):
        move_root(str(root), other, home=home)
    with pytest.raises(PathNotFoundError):
        move_root(str(root), root / "absent", home=home)
    (root / PROJECT_FOLDER).mkdir()
    (root / PROJECT_FOLDER / "notes.txt").write_text("mine")
    with pytest.raises(InvalidValueError, match=r"it holds notes\.txt"):
        move_workspace(str(root), "project", home=home)
    assert locate(root, home=home) == workspace
    assert paths(workspace, "token") == ["docs/tokens.md"]


# Renaming, changing and dropping them


@pytest.mark.parametrize("place", ["home", "project"])
def test_a_workspace_gets_another_name(home: Path, root: Path, place: str) -> None:
    create_workspace("old", home=home, root=root, place=place)
    indexed(root, home, name="old")
    found = rename_workspace("old", "new", home=home)
    manifest = read_manifest(found.folder)
    assert manifest is not None
    assert manifest.name == "new"
    assert paths(locate(root, home=home, name="new"), "token") == ["docs/tokens.md"]
    assert [account.name for account in list_workspaces(home)] == ["new"]


def test_a_name_that_is_taken_or_missing_is_not_given(home: Path, root: Path) -> None:
    create_workspace("a", home=home)
    create_workspace("b", home=home)
    indexed(root, home)
    with pytest.raises(InvalidValueError, match="a workspace b already"):
        rename_workspace("a", "b", home=home)
    with pytest.raises(InvalidValueError, match="has no name"):
        rename_workspace(str(root), "c", home=home)
    with pytest.raises(NotFoundError):
        rename_workspace("absent", "c", home=home)


def test_sharing_and_quota_change_apart_from_each_other(home: Path, root: Path) -> None:
    indexed(root, home)
    assert change_workspace(str(root), home=home, shared=True)[1].shared
    _, manifest = change_workspace(str(root), home=home, limits={"resources": 5})
    assert (manifest.shared, manifest.quota, manifest.root) == (True, Quota(resources=5), str(root))
    _, manifest = change_workspace(str(root), home=home, shared=False, limits={"resources": 0})
    assert (manifest.shared, manifest.quota) == (False, None)


@pytest.mark.parametrize("place", ["home", "project"])
def test_dropping_deletes_the_index_and_nothing_else(home: Path, root: Path, place: str) -> None:
    indexed(root, home, place=place)
    drop_workspace(str(root), home=home)
    assert names_in(root) == {"docs", "trees.md"}
    assert list_workspaces(home) == []
    with pytest.raises(NotFoundError):
        drop_workspace(str(root), home=home)


def test_an_index_of_what_is_gone_can_be_dropped(home: Path, root: Path) -> None:
    workspace = indexed(root, home)
    shutil.rmtree(root)
    drop_workspace(str(root), home=home)
    assert not workspace.folder.exists()


# Searching across


@pytest.fixture
def two(home: Path, root: Path) -> Path:
    """A shared workspace of decisions, and one of files that is not shared."""
    create_workspace("team", home=home, shared=True)
    with Engine(workspace_in(home / "team"), SETTINGS) as engine:
        items = [
            (Resource(rid="decision:1", type="decision", visibility=("user:ann",)), "We rotate every token."),
            (Resource(rid="decision:2", type="decision", visibility=("user:bob",)), "A token is a secret."),
        ]
        engine.add(items)
    indexed(root, home)
    return home


def asked(home: Path, scope: str, **options: Any) -> SearchAnswer:
    """The answer to a question that is put in a folder without an index."""
    settings = SETTINGS.override({"store.home": str(home)}, "test")
    with open_engine(home.parent, settings=settings) as engine:
        return engine.search("token", scope=scope, **options)


def ask(home: Path, scope: str, **options: Any) -> list[tuple[str, str]]:
    return [(hit.workspace, hit.rid) for hit in asked(home, scope, **options)]


def test_only_what_is_named_or_shared_is_asked(two: Path, root: Path) -> None:
    assert {workspace for workspace, _ in ask(two, "shared")} == {"team"}
    assert {workspace for workspace, _ in ask(two, str(root))} == {str(root)}
    assert {workspace for workspace, _ in ask(two, f"team, {root}")} == {"team", str(root)}
    assert len(ask(two, "team,team")) == 2
    with pytest.raises(NotFoundError):
        ask(two, "absent")
    change_workspace("team", home=two, shared=False)
    with pytest.raises(UsageError, match="no workspace is shared"):
        ask(two, "shared")


def test_a_page_is_cut_from_the_ranking_of_all(two: Path, root: Path) -> None:
    everything = ask(two, f"team,{root}")
    assert len(everything) == 3
    assert ask(two, f"team,{root}", limit=1, offset=1) == everything[1:2]


def test_who_is_restricted_asks_only_what_is_shared(two: Path, root: Path) -> None:
    for name in (str(root), "absent"):
        with pytest.raises(NotFoundError, match=f"there is no workspace {name}"):
            ask(two, name, principals=("user:ann",))


def test_each_workspace_decides_what_a_restricted_caller_sees(two: Path) -> None:
    assert ask(two, "shared", principals=("user:ann",)) == [("team", "decision:1")]
    assert ask(two, "team", principals=("user:bob",)) == [("team", "decision:2")]
    assert ask(two, "team", principals=()) == []


def test_an_unreadable_workspace_is_named_and_the_others_answer(two: Path, root: Path) -> None:
    (locate(root, home=two).folder / STORE_FILE).write_bytes(b"no database at all" * 100)
    answer = asked(two, f"{root},team")
    assert {hit.workspace for hit in answer} == {"team"}
    assert len(answer.hits) == 2
    assert any("damaged" in str(missing) for missing in answer.degraded)
    with pytest.raises(CorruptError):
        asked(two, str(root))


def test_what_was_never_indexed_is_not_indexed_by_the_way(two: Path, root: Path) -> None:
    create_workspace("later", home=two, root=root)
    answer = asked(two, "later,team")
    assert {hit.workspace for hit in answer} == {"team"}
    assert "later is not searched: it has not been indexed yet" in str(answer.degraded[0])


def test_those_that_are_named_are_brought_up_to_date(two: Path, root: Path) -> None:
    (root / "new.md").write_text("A token of today.")
    assert (str(root), "file:new.md") in ask(two, f"{root},team")


def test_an_answer_of_several_has_no_cursor(two: Path) -> None:
    with pytest.raises(InvalidValueError, match="no cursor"):
        asked(two, "shared", cursor="x")
