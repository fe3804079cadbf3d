"""The folder of a workspace whose truth has moved: it keeps nothing of the truth that was left."""

from __future__ import annotations

from pathlib import Path

from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.export.moving import move_truth
from findling.service.settings.settings import Settings
from findling.service.workspace.workspaces import create_workspace
from tests.postgres_servers import PostgresServer


def test_a_move_leaves_no_legs_of_the_former_truth(postgres: PostgresServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = Settings().override({"store.home": str(home), "semantic.model": "none"}, "test")
    create_workspace("team", home=home)
    with open_engine(workspace="team", settings=settings) as engine:
        engine.add([(Resource(rid="note:1", type="note"), "A ferry to the island.")])
        assert engine.search("ferry").hits
    assert "keyword" in _legs(home / "team")
    move_truth("team", postgres.place("moves"), home=home, settings=settings)
    assert "keyword" in _legs(home / "team")
    with open_engine(workspace="team", settings=settings) as engine:
        assert engine.search("ferry").hits
    move_truth("team", "home", home=home, settings=settings)
    assert "keyword" in _legs(home / "team")


def _legs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "snapshots")
