"""Items of the folders above: found by the owner of a folder that has an index of its own, and by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import NotFoundError
from findling.domain.permissions import OWNER, Caller
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.service.engine.client import LocalClient
from findling.service.server.engine_pool import Host
from findling.stores.local.legs import STORE_FILE

ANN = Caller("ann", ("user:ann",), frozenset({"read"}))


@pytest.fixture(params=["keyword", "hybrid"])
def settings(tmp_path: Path, request: pytest.FixtureRequest) -> findling.Settings:
    mode = getattr(request, "param", "keyword")
    values = {"store.home": str(tmp_path / "home"), "semantic.model": "none", "search.mode": mode}
    return findling.Settings().override(values, "test")


@pytest.fixture
def tree(tmp_path: Path, settings: findling.Settings) -> Path:
    """A folder with files, in it one that was indexed first."""
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    (root / "own.md").write_text("a walrus above\n")
    for number in range(8):
        (root / "sub" / f"{number}.md").write_text(f"a walrus {'and a seal ' * number}in file {number}\n")
    with findling.open(root / "sub", settings=settings) as engine:
        engine.index()
        for number in range(0, 8, 2):
            engine.permissions.share(f"path:{number}.md", "user:ann")
    return root


def notes(count: int, said: str = "walrus", first: int = 0) -> Iterator[tuple[Resource, str]]:
    for number in range(first, first + count):
        text = f"a {said} {'with many other words ' * number}in note {number}"
        yield Resource(rid=f"note:{number}", type="note", visibility=("user:ann",)), text


def fill(root: Path, settings: findling.Settings, count: int = 5, said: str = "walrus") -> None:
    with findling.open(root, settings=settings) as engine:
        engine.index()
        engine.add(notes(count, said))


@pytest.fixture
def below(tree: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    with findling.open(tree / "sub", settings=settings) as engine:
        yield engine


def names(answer: SearchAnswer) -> list[str]:
    return [hit.rid for hit in answer]


def test_items_are_ranked_among_the_files_and_say_where_they_are_from(
    tree: Path, settings: findling.Settings, below: findling.Engine
) -> None:
    alone = below.search("walrus", limit=50)
    fill(tree, settings)
    answer = below.search("walrus", limit=50)
    assert set(names(answer)) == {*names(alone), *[f"note:{number}" for number in range(5)]}
    assert {hit.workspace for hit in answer if hit.type == "note"} == {str(tree)}
    assert {hit.workspace for hit in answer if hit.type == "file"} == {""}
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)
    assert [hit.receipt.recomputed() for hit in answer] == pytest.approx(scores, abs=1e-4)
    types = [hit.type for hit in answer]
    assert types != sorted(types) and types != sorted(types, reverse=True), "neither lies on top of the other"
    assert [rid for rid in names(answer) if rid.startswith("file:")] == names(alone)
    assert answer.total == alone.total + 5
    assert not {"ceiling", "forms"} & set(answer.plan)
    assert {"ceiling", "forms"} <= set(below.search("walrus", explain=True).plan)


def test_pages_are_cut_from_one_ranking(tree: Path, settings: findling.Settings, below: findling.Engine) -> None:
    fill(tree, settings)
    everything = names(below.search("walrus", limit=50))
    for limit in (1, 3, 4):
        pages = [below.search("walrus", limit=limit, offset=offset) for offset in range(0, 15, limit)]
        assert [rid for page in pages for rid in names(page)] == everything
        assert {page.plan["limit"] for page in pages} == {limit}
    assert names(below.search("walrus", limit=0)) == []
    assert below.search("walrus", limit=0).total == 13


@pytest.mark.parametrize("limit", [1, 2, 5, 12])
def test_a_cursor_goes_on_with_the_files_that_were_not_shown(
    tree: Path, settings: findling.Settings, below: findling.Engine, limit: int
) -> None:
    fill(tree, settings)
    files = [rid for rid in names(below.search("walrus", limit=50)) if rid.startswith("file:")]
    answer = below.search("walrus", limit=limit)
    shown = names(answer)
    while answer.next_cursor:
        answer = below.search("walrus", limit=limit, cursor=answer.next_cursor)
        assert all(hit.type == "file" for hit in answer)
        shown += names(answer)
    assert [rid for rid in shown if rid.startswith("file:")] == files


def test_a_cursor_begins_with_the_first_file_where_items_alone_were_shown(
    tree: Path, settings: findling.Settings, below: findling.Engine
) -> None:
    with findling.open(tree, settings=settings) as engine:
        engine.add([(Resource(rid="note:best", type="note", title="walrus"), "walrus")])
    answer = below.search("walrus", limit=1)
    assert names(answer) == ["note:best"]
    files = names(below.alone().search("walrus", limit=50))
    assert names(below.search("walrus", limit=50, cursor=answer.next_cursor)) == files
    whole = below.search("walrus", limit=3)
    cursor = LocalClient(below, None).cursor_after(SearchRequest(query="walrus", limit=3), whole, 1)
    assert names(below.search("walrus", limit=50, cursor=cursor)) == files


def test_facets_and_filters_count_items_above(tree: Path, settings: findling.Settings, below: findling.Engine) -> None:
    fill(tree, settings)
    assert below.search("walrus", facets=("type",)).facets == {"type": {"file": 8, "note": 5}}
    assert set(names(below.search("walrus", filters=Filters(type=("note",))))) == {f"note:{n}" for n in range(5)}
    assert all(hit.type == "file" for hit in below.search("walrus", filters=Filters(path=(".",))))
    assert below.search("walrus type:note", limit=50).total == 5


def test_items_above_answer_where_the_folder_itself_has_nothing(
    tree: Path, settings: findling.Settings, below: findling.Engine
) -> None:
    fill(tree, settings, said="ocelot")
    answer = below.search("ocelot")
    assert len(answer) == 5
    assert (answer.quality, answer.unknown_terms, answer.did_you_mean, answer.notes) == ("good", (), (), ())
    assert not answer.related and not answer.relaxed
    looser = below.search('"ocelot with no such words"')
    assert not looser.hits
    assert {hit.workspace for hit in looser.relaxed} == {str(tree)}
    assert not below.search("unicorn").hits


def test_the_nearest_workspace_stands_for_an_id(
    tree: Path, settings: findling.Settings, below: findling.Engine
) -> None:
    fill(tree, settings, count=2)
    fill(tree.parent, settings, said="walrus far away")
    below.add(list(notes(1, "seal")))
    answer = below.search("walrus", limit=50)
    places = {hit.rid: hit.workspace for hit in answer if hit.type == "note"}
    far = dict.fromkeys(("note:2", "note:3", "note:4"), str(tree.parent))
    assert places == {"note:1": str(tree), **far}, "what replaces note:0 below is about something else"
    assert "seal" in below.fetch("note:0").text
    assert "far away" in below.fetch("note:3").text


def test_nothing_is_opened_where_no_folder_above_holds_items(
    tree: Path, settings: findling.Settings, below: findling.Engine
) -> None:
    before = below.search("walrus")
    with findling.open(tree, settings=settings) as engine:
        engine.index()
    after = below.search("walrus")
    assert below.above() == []
    assert replace(after, timings_ms={}) == replace(before, timings_ms={})


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_cannot_be_searched_above_is_told(
    tree: Path, settings: findling.Settings, below: findling.Engine, is_lost: bool
) -> None:
    alone = below.search("walrus")
    fill(tree, settings)
    with findling.open(tree, settings=settings) as engine:
        store = engine.home / STORE_FILE
    for file in store.parent.glob(f"{STORE_FILE}*"):
        if is_lost:
            file.unlink()
        else:
            file.write_bytes(b"no store" * 1000)
    answer = below.search("walrus")
    assert names(answer) == names(alone)
    (missing,) = answer.degraded
    assert f"{tree} is not searched" in missing.what
    assert answer.quality == "reduced"


def test_a_workspace_that_is_named_answers_alone(tree: Path, settings: findling.Settings, tmp_path: Path) -> None:
    fill(tree, settings)
    with findling.open(tree / "sub", workspace="named", settings=settings) as engine:
        assert {hit.type for hit in engine.search("walrus", limit=50)} == {"file"}


def test_a_caller_gets_the_same_bytes_whatever_lies_above(tree: Path, settings: findling.Settings) -> None:
    def told(root: Path) -> list[Any]:
        answers: list[Any] = []
        with ExitStack() as stack:
            engine = stack.enter_context(findling.open(root, settings=settings))
            ann = engine.as_caller("user:ann")
            for request in (SearchRequest(query="walrus", facets=("type",)), SearchRequest(query="note", limit=2)):
                answers.append(replace(ann.search(request), timings_ms={}).to_dict())
            answers.append([one.rid for one in engine.memories.recall("walrus", principals=("user:ann",))])
            for name in ("note:1", "own.md"):
                with pytest.raises(NotFoundError) as refused:
                    ann.fetch(name)
                answers.append(str(refused.value))
                with pytest.raises(NotFoundError):
                    ann.explain("walrus", name)
        return answers

    before = told(tree / "sub")
    fill(tree, settings)
    with findling.open(tree, settings=settings) as engine:
        engine.memories.remember("a walrus to remember", visibility=["user:ann"])
    assert told(tree / "sub") == before


def test_a_server_notices_new_items_above_and_gives_them_to_the_owner_alone(
    tree: Path, settings: findling.Settings
) -> None:
    host = Host(settings, tree / "sub")
    limited = OWNER._replace(name="limited", workspaces=("other",))
    request = SearchRequest(query="walrus", limit=50)

    def ask(host: Host, caller: Caller, request: SearchRequest) -> SearchAnswer:
        with host.client(caller) as client:
            return client.search(request)

    try:
        before = {caller: names(ask(host, caller, request)) for caller in (OWNER, ANN, limited)}
        fill(tree, settings)
        assert len(ask(host, OWNER, request)) == len(before[OWNER]) + 5
        assert {one: names(ask(host, one, request)) for one in (ANN, limited)} == {
            one: before[one] for one in (ANN, limited)
        }
        with host.client(OWNER) as viewer:
            assert viewer.fetch("note:1").rid == "note:1"
        with host.client(limited) as viewer, pytest.raises(NotFoundError):
            viewer.fetch("note:1")
    finally:
        host.close()


def test_a_recall_counts_as_an_access_where_the_memory_lies(
    tree: Path, settings: findling.Settings, below: findling.Engine
) -> None:
    with findling.open(tree, settings=settings) as engine:
        far = engine.memories.remember("the walrus sleeps at noon", importance=0.9)
        both = engine.memories.remember("the walrus eats clams")
        below.memories.remember("the walrus eats clams")
        recalled = below.memories.recall("walrus")
        assert {one.rid: one.hit.workspace for one in recalled} == {far.rid: str(tree), both.rid: ""}
        assert recalled.is_counted
        assert [engine.memories.get(one.rid).access_count for one in (far, both)] == [1, 0]
        assert below.memories.get(both.rid).access_count == 1
        assert len(below.memories.recall("walrus", limit=1)) == 1
