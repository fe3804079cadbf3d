"""However little an answer may take, it says something, all of it can be reached, and nothing is said twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from findling.domain.permissions import OWNER
from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.faces.mcp.tool_context import local_desk
from findling.faces.mcp.tools.budget import Budget, compact_json, count_tokens, fit_text
from findling.faces.mcp.transport.server import make_server
from findling.service.engine.client import LocalClient
from findling.service.settings.settings import Settings
from tests.faces.mcp_desks import Served, call, served, told

LONG = "漢字資料文書報告書類文件集合保存場所説明" * 3


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts whose names alone fill an answer."""
    top = tmp_path_factory.mktemp("long") / "top"
    folder = top / LONG / LONG
    folder.mkdir(parents=True)
    for number in range(12):
        text = f"# 文書 {number}\n\nsession token 番号 {number}。" + "認証トークンの説明が続く。" * 40
        (folder / f"{'長い名前の文書' * 5}{number}.md").write_text(text)
    return top


@pytest.fixture(scope="module")
def long_names(root: Path) -> Iterator[Served]:
    with served(root) as one:
        one.engine.index()
        yield one


def _pages(one: Served, **options: Any) -> list[str]:
    passages: list[str] = []
    cursor = ""
    for _ in range(40):
        page = call(one.server, "search", query="session token", limit=5, cursor=cursor, **options)
        assert page["results"]
        passages += [hit["passage"] for hit in page["results"]]
        cursor = page["next_cursor"]
        if not cursor:
            return passages
    raise AssertionError("there is no end of pages")


def test_of_a_long_text_only_the_beginning_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[int] = []

    def counting(text: str) -> int:
        weighed.append(len(text))
        return count_tokens(text)

    monkeypatch.setattr("findling.faces.mcp.tools.budget.count_tokens", counting)
    for text in ("All work and no play. " * 100_000, "\\" * 1_000_000, LONG * 10_000):
        fitted = fit_text({"text": text}, "text", Budget(500, 1 << 62))["text"]
        assert text.startswith(fitted) and len(fitted) > 400
    assert max(weighed) < 10_000


@pytest.mark.parametrize("max_chars", [1000, 1700, 3000, 8000])
def test_no_result_is_skipped_however_long_names_are(long_names: Served, max_chars: int) -> None:
    whole = call(long_names.server, "search", query="session token", limit=50, max_chars=100_000)
    everything = [hit["passage"] for hit in whole["results"]]
    assert len(everything) == 12
    assert _pages(long_names, max_chars=max_chars) == everything


def test_the_least_of_a_result_can_still_be_fetched(long_names: Served) -> None:
    page = call(long_names.server, "search", query="session token", limit=5, max_chars=1000)
    assert len(compact_json(page)) <= 1000
    (hit,) = page["results"]
    assert hit["path"].startswith(LONG)
    assert "session token" in hit["snippet"]
    assert "session token" in call(long_names.server, "fetch", id=hit["id"])["text"]


def test_few_tokens_are_kept_to_with_long_names_in_every_tool(root: Path) -> None:
    with served(root, mcp__max_tokens=500) as one:
        one.engine.index()
        (first, *_) = one.engine.search("session token", limit=1).hits
        assert len(_pages(one)) == 12
        answers = [
            call(one.server, "search", query="session token"),
            call(one.server, "similar", id=first.rid),
            call(one.server, "fetch", id=first.rid),
            call(one.server, "fetch", id=first.id),
        ]
        assert [count_tokens(compact_json(answer)) <= 500 for answer in answers] == [True] * 4
        part = call(one.server, "fetch", id=first.rid)
        text = part["text"]
        while part["truncated"]:
            part = call(one.server, "fetch", id=first.rid, offset=part["next_offset"])
            text += part["text"]
        assert text == one.engine.fetch(first.rid).text


def test_what_is_left_out_says_how_to_get_at_it(long_names: Served, root: Path) -> None:
    by_chars = call(long_names.server, "search", query="session token", max_chars=3000)
    assert by_chars["left_out"].endswith("; ask with a larger max_chars or go on with next_cursor")
    (first, *_) = by_chars["results"]
    alike = call(long_names.server, "similar", id=first["id"], max_chars=1500)
    assert alike["next_cursor"] == ""
    assert alike["left_out"].endswith("; ask with a larger max_chars")
    with served(root, mcp__max_tokens=900) as one:
        by_tokens = call(one.server, "search", query="session token", max_chars=100_000)
        assert by_tokens["left_out"].endswith("addresses; go on with next_cursor")
        alike = call(one.server, "similar", id=first["id"], max_chars=100_000)
        assert alike["left_out"].endswith("; max_tokens allows no more")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Python's own asyncio: passages of many lines, and definitions with symbols."""
    root = tmp_path_factory.mktemp("code") / "asyncio"
    shutil.copytree(Path(asyncio.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    with served(root) as one:
        one.engine.index()
        yield one


@pytest.mark.parametrize("max_tokens", [250, 300, 400, 600, 1000, 1500])
def test_a_small_budget_keeps_few_results_whole(code: Served, max_tokens: int) -> None:
    query = {"query": "call_soon_threadsafe", "limit": 10}
    most = call(code.server, "search", **query, max_chars=100_000)["results"]
    page = call(code.server, "search", **query, max_tokens=max_tokens)
    assert count_tokens(compact_json(page)) <= max_tokens
    places = [(hit["path"], hit["lines"], hit.get("symbol")) for hit in page["results"]]
    assert places == [(hit["path"], hit["lines"], hit.get("symbol")) for hit in most[: len(places)]]
    for hit, was in zip(page["results"], most, strict=False):
        assert {row.rstrip() for row in hit["snippet"].split("\n")} <= {
            row.rstrip() for row in was["snippet"].split("\n")
        }
    assert "call_soon_threadsafe" in page["results"][0]["snippet"]
    # Snippets become shorter from the last one up, and only where no more than three results are left.
    sizes = [len(hit["snippet"].split("\n")) for hit in page["results"]]
    assert (sizes[0] > 1 or max(sizes) == 1) and (len(sizes) <= 3 or 1 not in sizes)
    left = len(most) - len(sizes)
    assert page["left_out"].startswith(f"the last {left} of 10 results, " if left else "why")
    assert ("snippet" in page["left_out"]) is (1 in sizes)
    assert page["next_cursor"]


@pytest.mark.parametrize("name", ["search", "similar"])
def test_nothing_empty_is_said(code: Served, name: str) -> None:
    asked = {"query": "call_soon_threadsafe"} if name == "search" else {"id": "events.py"}
    for options in ({}, {"max_tokens": 300}):
        page = call(code.server, name, **asked, **options)
        empty = {key for one in (page, *page["results"]) for key, value in one.items() if value in ("", [], {}, None)}
        assert empty <= {"left_out", "next_cursor", "degraded"}


def test_errors_name_what_the_tools_have(code: Served) -> None:
    assert told(code.server, "grep", pattern="call_soon(").endswith(
        "; try: fixed: true searches for the characters as they are"
    )
    assert told(code.server, "outline", id="nothing.py").endswith("; try: glob lists the paths that are")
    assert call(code.server, "grep", pattern="call_soon(", fixed=True)["lines"] > 5


def test_an_answer_that_is_cut_is_searched_for_once(long_names: Served) -> None:
    """A second search may rank otherwise, and then its cursor fits to nothing that was shown."""
    asked: list[SearchRequest | str] = []

    class Counting(LocalClient):
        def search(self, request: SearchRequest | str, **options: Any) -> SearchAnswer:
            asked.append(request)
            return super().search(request, **options)

    desk = local_desk(lambda: nullcontext(Counting(long_names.engine)), OWNER, Settings())
    server = make_server(lambda: desk)
    page = call(server, "search", query="session token", limit=5, max_chars=1000)
    assert page["next_cursor"]
    assert len(asked) == 1
