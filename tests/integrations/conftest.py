"""Every test of an adapter has a home of its own, and a small folder to search."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import findling

# Haystack reads it when it is imported, and would report to its makers.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("FINDLING_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    monkeypatch.setenv("FINDLING_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "workspaces"))
    monkeypatch.setenv("FINDLING_SEARCH_MODE", "keyword")  # words are what most tests look for, others say otherwise
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")  # nothing may run on when a test is over
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _written(tmp_path / "project")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    """The same folder, opened for all tests of a module that do not change it; the files differ in their age."""
    place = tmp_path_factory.mktemp("shared")
    root = _written(place / "project")
    for age, name in enumerate(("src/auth.py", "docs/plan.md", "docs/guide.md", "src/shop.ts")):
        os.utime(root / name, (MIDDLE + 1 - age, MIDDLE + 1 - age))
    values = {"store.home": str(place / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    with findling.open(root, settings=findling.Settings().override(values, "test")) as engine:
        engine.index()
        yield engine


MIDDLE = 1_700_000_000
"""The time of docs/plan.md in the shared folder; one file is younger."""


def _written(root: Path) -> Path:
    (root / "docs").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "docs" / "guide.md").write_text(
        "# Guide\n\n## Signing in\n\nEvery login makes a session token.\n\n## Leaving\n\nA logout deletes the token.\n"
    )
    (root / "docs" / "plan.md").write_text("# Plan\n\nThe session token will last for a week.\n")
    (root / "src" / "auth.py").write_text(
        "import os\n\n\ndef login(user):\n    token = create_session(user)\n    return token\n"
    )
    (root / "src" / "shop.ts").write_text("export function basket(token: string) {\n  return token;\n}\n")
    return root
