"""Processes that go on by themselves work under the settings of whoever started them."""

from __future__ import annotations

from pathlib import Path

import pytest

from findling.service.engine.background import _environment
from findling.service.settings.settings import load_settings


def test_another_process_has_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, project = tmp_path / "own.toml", tmp_path / "project"
    own.write_text("[search]\nlimit = 3\n")
    project.mkdir()
    (project / ".findling.toml").write_text("[search]\nsnippet_lines = 7\n")
    asked = load_settings(
        project,
        environ={
            "FINDLING_CONFIG": str(own),
            "FINDLING_HOME": str(tmp_path / "home"),
            "FINDLING_INDEX_EXCLUDE": "*.tmp, *.log",
            "FINDLING_SEARCH_WEAK": "yes",
        },
    )
    asked = asked.override({"semantic.threads": 1}, "flag --set")
    # The daemon that starts it may have been started under others.
    monkeypatch.setenv("FINDLING_HOME", "/elsewhere")
    monkeypatch.setenv("FINDLING_SEARCH_ALPHA", "0.9")
    monkeypatch.setenv("FINDLING_CONFIG", "/elsewhere.toml")
    assert dict(load_settings(project, environ=_environment(asked))) == dict(asked)
