"""A request to a server is planned once and parsed once, and the plan of a profile is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.permissions import OWNER
from findling.pipelines.retrieve import query_planner
from findling.service.engine import engine as engine_module
from findling.service.engine import services
from findling.service.server.engine_pool import Host
from findling.service.settings.settings import plan_of
from findling.service.workspace.scope import prepared
from findling.text.query import parser


def test_a_request_is_planned_and_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "open.md").write_text("The roadmap for spring.\n")
    values = {"store.home": str(tmp_path / "home"), "semantic.model": "none"}
    settings = findling.Settings().override(values, "test")
    with findling.open(tmp_path / "tree", settings=settings) as engine:
        engine.index()
    host = Host(settings, tmp_path / "tree")
    counts = Counter[str]()

    def count(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return work(*args, **options)

        return counted

    try:
        with host.client(OWNER) as client:
            assert client.search("roadmap ext:md").hits
        parse = count("parses", parser.parse)
        monkeypatch.setattr(parser, "parse", parse)
        monkeypatch.setattr(query_planner, "parse", parse)
        monkeypatch.setattr(engine_module, "prepared", count("plans", prepared))
        monkeypatch.setattr(services, "plan_of", count("profiles", plan_of))
        with host.client(OWNER) as client:
            assert client.search("spring ext:md").hits
    finally:
        host.close()
    assert counts == {"plans": 1, "parses": 1}
