"""The cursor behind a part of an answer is the one that a search for that part would have given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import findling
from findling.domain.plans import GROUPINGS, Plan
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Resource
from findling.service.engine.client import LocalClient
from findling.service.settings.settings import Settings

ANN = ("user:ann",)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "tree").mkdir()
    own = {"store.home": str(folder / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    with findling.open(folder / "tree", settings=Settings().override(own, "test")) as one:
        for number in range(9):
            parts = [f"## Part {part}\n\n" + f"budget {part} " * (number + part + 30) for part in range(3)]
            (folder / "tree" / f"n{number}.md").write_text("\n\n".join(parts))
        one.index()
        one.add(
            (
                Resource(
                    rid=f"chat:{number}",
                    type="chat",
                    title=f"Talk {number}",
                    fields={"thread": f"thread {number % 3}"} if number < 9 else {},
                    visibility=("everyone",),
                ),
                "budget " * (number + 1) + f"and {number}",
            )
            for number in range(12)
        )
        for number in range(0, 9, 2):
            one.permissions.share(f"file:n{number}.md", *ANN)
        yield one


@pytest.mark.parametrize("group", GROUPINGS)
@pytest.mark.parametrize("principals", [None, ANN])
def test_it_is_that_of_a_search_with_that_limit(
    engine: findling.Engine, group: str, principals: tuple[str, ...] | None
) -> None:
    viewer = LocalClient(engine, principals)
    asked = SearchRequest(query="budget", limit=9, plan=Plan(mode="keyword", group=group))
    first = viewer.search(asked)
    assert len(first.hits) == 9
    starts: list[dict[str, Any]] = [{}, {"offset": 2}, {"filters": Filters(type=("file",))}]
    starts += [{"cursor": viewer.search(asked, limit=3).next_cursor}]
    for start in starts:
        answer = viewer.search(asked, **start)
        request = replace(asked, **start)
        for count in range(1, len(answer.hits) + 1):
            assert viewer.cursor_after(request, answer, count) == viewer.search(request, limit=count).next_cursor
        assert viewer.cursor_after(request, answer, 0) == ""


@pytest.mark.parametrize("group", GROUPINGS)
def test_it_goes_on_behind_what_was_shown(engine: findling.Engine, group: str) -> None:
    viewer = LocalClient(engine, None)
    asked = SearchRequest(query="budget", limit=50, plan=Plan(mode="keyword", group=group))
    whole = viewer.search(asked)
    rest = viewer.search(asked, cursor=viewer.cursor_after(asked, whole, 4))
    assert [hit.id for hit in rest.hits] == [hit.id for hit in whole.hits[4:]]


def test_settings_of_the_engine_count_as_in_a_search(engine: findling.Engine) -> None:
    viewer = LocalClient(engine, None)
    answer = viewer.search("budget", limit=6)
    request = SearchRequest(query="budget", limit=6)
    assert viewer.cursor_after(request, answer, 2) == viewer.search(request, limit=2).next_cursor
