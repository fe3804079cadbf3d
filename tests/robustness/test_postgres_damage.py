"""Rows of legs in PostgreSQL that something else has written: searches answer, doctor finds it, repair mends it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from findling.domain.queries import SearchRequest
from findling.domain.reports import GrepRequest
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine, Viewer, open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspaces import create_workspace
from findling.stores.postgres.keyword import keyword_leg, server_postings
from findling.stores.postgres.legs import graph_leg, vector_blocks
from findling.stores.postgres.server.parts_cache import PartsCache
from tests.counts import sample
from tests.postgres_servers import PostgresServer

COLUMNS = [
    ("keyword_blocks", "terms"),
    ("keyword_blocks", "dfs"),
    ("keyword_blocks", "sizes"),
    ("keyword_blocks", "docs"),
    ("keyword_blocks", "tfs"),
    ("keyword_blocks", "positions"),
    ("keyword_segments", "cids"),
    ("keyword_segments", "numbers"),
    ("keyword_segments", "lengths"),
    ("keyword_segments", "directory"),
    ("exact_segments", "numbers"),
    ("exact_segments", "rids"),
    ("exact_blocks", "data"),
    ("graph_parts", "data"),
    ("vector_blocks", "cids"),
    ("vector_blocks", "numbers"),
    ("vector_blocks", "codes"),
]
WAYS: list[Callable[[bytes], bytes]] = [
    lambda data: b"\xff" * len(data),
    lambda data: data[: len(data) // 2],
    lambda data: data + b"\x07\x07\x07",
    lambda data: bytes(len(data)),
    lambda data: b"",
]
"""Other bytes than those that were written. A column that is empty anyway is passed over."""

DAMAGES = [(table, column, way) for way in range(len(WAYS)) for table, column in COLUMNS]

ASKED: dict[str, Callable[[Engine], Any]] = {
    "words": lambda engine: engine.search(SearchRequest(query='alpha "Marie Curie" pool'), refresh=False).to_dict(),
    "beginnings": lambda engine: engine.search("alp* relese~", refresh=False).to_dict(),
    "a limited caller": lambda engine: Viewer(engine, ("user:ann",)).search("alpha Curie").to_dict(),
    "lines": lambda engine: LocalClient(engine).grep(GrepRequest(patterns=("Lovelace in",))).to_dict()["files"],
    "names": lambda engine: engine.related("Marie Curie").to_dict(),
    "completions": lambda engine: [str(one) for one in engine.suggest("al")],
}


@pytest.fixture
def opened(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Engine]]:
    """A workspace with all of its legs in the server, each time with nothing in memory."""
    root, home = tmp_path / "tree", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    for number in range(40):
        text = " ".join(f"{word}{number % 7}" for word in "pool token release budget".split())
        (root / f"{number}.md").write_text(
            f"# Alpha {number}\n\nalpha {text}\n\nMarie Curie met Ada Lovelace in Rome.\n"
        )
    place = postgres.place("damage")
    create_workspace("w", home=home, root=root, place=place)
    own = {"store.home": str(home), "search.legs": "server", "search.refresh": "never", "semantic.refine": "never"}
    settings = load_settings(home).override({**own, "semantic.query_budget_ms": 0.0}, "test")

    def opened() -> Engine:
        for module in (server_postings, vector_blocks, graph_leg):
            monkeypatch.setattr(module, "PARTS", PartsCache(1 << 26))
        keyword_leg._heads.clear()
        return open_engine(root, workspace="w", settings=settings)

    with opened() as engine:
        engine.index()
        engine.permissions.share(engine.resource_id("9.md"), "user:ann")
        for number in range(4):
            (root / f"{number}.md").write_text(f"alpha pool, edited. Marie Curie met Ada Lovelace in Oslo {number}.\n")
            engine.index()
        with engine.opened.files.writing():
            engine.opened.graph.level()
            engine.opened.exact.level()
    yield opened


def told(engine: Engine) -> dict[str, str]:
    """All answers, but for times, and for notes that something was rebuilt."""
    answers = {name: ask(engine) for name, ask in ASKED.items()}
    for answer in answers.values():
        if isinstance(answer, dict):
            answer.pop("timings_ms", None)
            answer.pop("degraded", None)
    return {name: json.dumps(answer, default=str, sort_keys=True) for name, answer in answers.items()}


def test_damage_of_a_leg_is_found_and_mended(opened: Callable[[], Engine], postgres: PostgresServer) -> None:
    with opened() as engine:
        expected = told(engine)
        assert all(name in expected["words"] for name in ("Curie", "alpha"))
        shown = engine.opened.files.backend.url
    for table, column, way in sample(DAMAGES, short=9):
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            (ws,) = connection.execute(
                "SELECT ws FROM findling.workspaces WHERE name = %s", (shown.rpartition("#")[2],)
            ).fetchone() or (0,)
            rows = connection.execute(f"SELECT ctid::text, {column} FROM findling.{table} WHERE ws = %s", (ws,))
            changed = [(WAYS[way](data), row) for row, data in rows if WAYS[way](data) != data]
            for data, row in changed:
                connection.execute(f"UPDATE findling.{table} SET {column} = %b WHERE ctid = %s::tid", (data, row))
        if not changed:
            continue
        what = f"{table}.{column}, way {way}"
        with opened() as engine:
            wrong = [check for check in engine.check() if not check.ok]
            assert wrong, what
            assert all("--repair" in check.hint for check in wrong), (what, wrong)
        with opened() as engine:
            told(engine)  # raises nothing: what is damaged is rebuilt, or done without
            engine.repair()
        with opened() as engine:
            assert told(engine) == expected, what
            assert [check for check in engine.check() if not check.ok] == [], what


def test_a_limited_caller_has_the_leg_mended_too(opened: Callable[[], Engine], postgres: PostgresServer) -> None:
    def asked() -> list[str]:
        with opened() as engine:
            return [hit.rid for hit in Viewer(engine, ("user:ann",)).search("alpha Curie")]

    expected = asked()
    assert expected
    for table, column in (("keyword_segments", "cids"), ("keyword_blocks", "docs"), ("vector_blocks", "codes")):
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"UPDATE findling.{table} SET {column} = 'x'")
        assert asked() == expected, table
