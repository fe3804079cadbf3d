"""The folder of a workspace whose truth has moved: it keeps nothing of the truth that was left."""

from __future__ import annotations

from pathlib import Path

import pytest

from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.export.moving import move_truth
from findling.service.settings.settings import Settings
from findling.service.workspace.workspaces import create_workspace
from tests.postgres_servers import PostgresServer


@pytest.mark.parametrize("legs", ["local", "server"])
def test_a_move_leaves_no_legs_of_the_former_truth(legs: str, postgres: PostgresServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = Settings().override({"store.home": str(home), "semantic.model": "none", "search.legs": legs}, "test")
    create_workspace("team", home=home)
    with open_engine(workspace="team", settings=settings) as engine:
        engine.add([(Resource(rid="note:1", type="note"), "A ferry to the island.")])
        assert engine.search("ferry").hits
    assert "keyword" in _legs(home / "team")
    move_truth("team", postgres.place("moves"), home=home, settings=settings)
    assert ("keyword" in _legs(home / "team")) == (legs == "local")
    with open_engine(workspace="team", settings=settings) as engine:
        assert engine.search("ferry").hits
    assert bool(_legs(home / "team")) == (legs == "local")
    move_truth("team", "home", home=home, settings=settings)
    assert "keyword" in _legs(home / "team")


def _legs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "snapshots")
