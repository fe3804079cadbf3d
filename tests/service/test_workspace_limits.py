"""Limits of a workspace, through the engine and the command line; one without files stays without."""

from __future__ import annotations

from pathlib import Path

import pytest

from findling.domain.errors import QuotaError, UsageError
from findling.domain.resources import Resource
from findling.service.engine.engine import Engine, open_engine
from findling.service.export.moving import move_truth
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.quotas import Quota
from findling.service.workspace.store_url import connect_workspace
from findling.service.workspace.workspace import PROJECT_FOLDER
from findling.service.workspace.workspaces import change_workspace, create_workspace, list_workspaces
from tests.postgres_servers import PostgresServer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.instant": False}
    return Settings().override(own, "test")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    made.mkdir()
    for number in range(5):
        (made / f"{number}.md").write_text(f"A token, number {number}.\n")
    return made


def skipped(engine: Engine) -> dict[str, str]:
    return {entry.path: entry.reason for entry in engine.skipped()}


def test_a_workspace_without_files_never_takes_any_in(
    home: Path, root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_workspace("team", home=home)
    monkeypatch.chdir(root)
    with open_engine(workspace="team", settings=settings) as engine:
        answer = engine.search("token")
        assert (answer.total, answer.degraded) == (0, ())
        engine.add([(Resource(rid="decision:1", type="decision"), "Rotate every token.")])
        assert [hit.rid for hit in engine.search("token")] == ["decision:1"]
        assert engine.preview() == ([], [])
        with pytest.raises(UsageError, match="has no files"):
            engine.index()
    manifest = read_manifest(home / "team")
    assert manifest is not None
    assert (manifest.root, manifest.name) == (None, "team")
    assert manifest.preprocessing is not None


def test_an_index_brings_its_manifest_up_to_date(home: Path, root: Path, settings: Settings) -> None:
    with open_engine(root, settings=settings) as engine:
        engine.index()
        manifest = read_manifest(engine.home)
        assert manifest is not None
        assert manifest.root == str(root)
        (engine.home / "manifest.json").unlink()
        engine.search("token")
        engine.index()
        assert read_manifest(engine.home) is not None


def test_the_setting_puts_a_new_index_into_the_project(home: Path, root: Path, settings: Settings) -> None:
    project = settings.override({"store.place": "project"}, "test")
    with open_engine(root, settings=project) as engine:
        assert engine.search("token").total == 5
        assert engine.home == root / PROJECT_FOLDER
    with open_engine(root, settings=settings) as engine:
        assert engine.home == root / PROJECT_FOLDER
        assert engine.search("token").total == 5


def test_items_beyond_the_quota_are_refused_and_nothing_is_lost(home: Path, settings: Settings) -> None:
    create_workspace("team", home=home, quota=Quota(resources=2))
    items = [(Resource(rid=f"decision:{n}", type="decision"), f"Token {n}.") for n in range(3)]
    with open_engine(workspace="team", settings=settings) as engine:
        engine.add(items[:2])
        with pytest.raises(QuotaError, match="quota resources allows 2"):
            engine.add(items)
        assert engine.search("token").total == 2


def test_files_beyond_the_quota_are_left_out_until_there_is_room(home: Path, root: Path, settings: Settings) -> None:
    create_workspace("docs", home=home, root=root, quota=Quota(resources=3))
    with open_engine(root, workspace="docs", settings=settings) as engine:
        assert engine.index().skipped["quota"] == 2
        assert skipped(engine) == {"3.md": "quota", "4.md": "quota"}
        assert engine.search("token").total == 3
        assert engine.index().added == 0
        (root / "0.md").unlink()
        assert engine.search("token").total == 3
        assert skipped(engine) == {"4.md": "quota"}
        change_workspace("docs", home=home, limits={"resources": 10})
        assert engine.search("token").total == 4
        assert skipped(engine) == {}


def test_the_settings_limit_a_workspace_that_has_no_quota(home: Path, root: Path, settings: Settings) -> None:
    with open_engine(root, settings=settings.override({"quota.text": 45}, "test")) as engine:
        assert engine.index().skipped["quota"] == 3
    with open_engine(root, settings=settings) as engine:
        assert engine.search("token").total == 5


def test_hosts_that_share_a_truth_share_the_limits_of_its_content(
    postgres: PostgresServer, tmp_path: Path, settings: Settings
) -> None:
    place = postgres.place("limits")
    homes = [tmp_path / name for name in "ab"]
    create_workspace("team", home=homes[0], place=place, quota=Quota(text=500))
    name = connect_workspace(place, home=homes[1])
    change_workspace("team", home=homes[0], limits={"disk": 10**9})
    here, there = ([account.quota for account in list_workspaces(home)] for home in homes)
    assert (here, there) == ([Quota(text=500, disk=10**9)], [Quota(text=500)])
    other = settings.override({"store.home": str(homes[1])}, "test")
    with open_engine(workspace=name, settings=other) as engine:
        engine.add([(Resource(rid="note:1", type="note"), "short")])
        with pytest.raises(QuotaError, match="the quota text allows 500 characters"):
            engine.add([(Resource(rid="note:2", type="note"), "x" * 500)])
        _, changed = change_workspace(name, home=homes[1], limits={"text": 0, "resources": 1})
        assert changed.quota == Quota(resources=1)
    first = settings.override({"store.home": str(homes[0])}, "test")
    with open_engine(workspace="team", settings=first) as engine, pytest.raises(QuotaError, match="resources allows 1"):
        engine.add([(Resource(rid="note:2", type="note"), "x" * 500)])
    move_truth("team", "home", home=homes[0], settings=settings)
    manifest = read_manifest(homes[0] / "team")
    assert manifest is not None
    assert manifest.quota == Quota(resources=1, disk=10**9)
    again = postgres.place("limits")
    move_truth("team", again, home=homes[0], settings=settings)
    connect_workspace(again, home=tmp_path / "c")
    assert [account.quota for account in list_workspaces(tmp_path / "c")] == [Quota(resources=1)]
