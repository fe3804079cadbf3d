"""The state that a server keeps: rights of callers, cached answers, and shared engines that are released."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import findling
from findling.domain.errors import NotFoundError, NotIndexedError
from findling.domain.permissions import OWNER, Caller
from findling.domain.queries import SearchRequest
from findling.domain.results import Degradation
from findling.service.engine.client import AnswerCache, cache_key
from findling.service.server import engine_pool
from findling.service.server.engine_pool import Host, ServerStatistics
from findling.service.workspace.workspaces import create_workspace
from tests.counts import tries

ANN = Caller("ann", ("user:ann",), frozenset({"read"}))


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    values = {"store.home": str(tmp_path / "home"), "semantic.model": "none"}
    return findling.Settings().override(values, "test")


@pytest.fixture
def tree(tmp_path: Path, settings: findling.Settings) -> Path:
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "open.md").write_text("The roadmap for spring.\n")
    (root / "plan.md").write_text("The secret roadmap for autumn.\n")
    with findling.open(root, settings=settings) as engine:
        engine.index()
        engine.permissions.share("path:docs/open.md", "user:ann")
    return root


@pytest.fixture
def host(tree: Path, settings: findling.Settings) -> Iterator[Host]:
    made = Host(settings, tree, served_by="daemon 1")
    yield made
    made.close()


def ask(host: Host, caller: Caller, request: SearchRequest) -> findling.SearchAnswer:
    with host.client(caller) as client:
        return client.search(request)


def paths(host: Host, caller: Caller, query: str = "roadmap", **options: object) -> list[str]:
    return [hit.path for hit in ask(host, caller, SearchRequest(query=query, **options))]  # type: ignore[arg-type]


def test_callers_see_what_their_principals_may_see(host: Host) -> None:
    assert sorted(paths(host, OWNER)) == ["docs/open.md", "plan.md"]
    assert paths(host, ANN) == ["docs/open.md"]
    # The request does not say who asks.
    assert paths(host, ANN, principals=None) == ["docs/open.md"]
    assert paths(host, Caller("nobody")) == []


def test_the_same_question_is_answered_from_what_is_kept_until_something_changes(host: Host, tree: Path) -> None:
    first = ask(host, OWNER, SearchRequest(query="roadmap"))
    again = ask(host, OWNER, SearchRequest(query="roadmap"))
    assert again.hits == first.hits
    assert (set(again.timings_ms), again.served_by) == ({"kept"}, "daemon 1")
    others = ask(host, ANN, SearchRequest(query="roadmap"))
    assert ("kept" in others.timings_ms, others.served_by) == (False, "")
    (tree / "new.md").write_text("Another roadmap.\n")
    host.index()
    assert "new.md" in paths(host, OWNER)
    with host.opened(OWNER) as engine:
        engine.permissions.unshare("path:docs/open.md", "user:ann")
    assert paths(host, ANN) == []
    with host.opened(OWNER) as engine:
        engine.glossary.add("roadmap", ["itinerary"])
    assert len(paths(host, OWNER, "itinerary")) == 3
    assert host.statistics.snapshot()["cache_hits"] == 1


def test_an_answer_that_lacks_something_or_is_large_is_not_kept(host: Host) -> None:
    cache = AnswerCache(2)
    with host.opened(OWNER) as engine:
        question = cache_key(engine, engine.prepare(SearchRequest(query="roadmap")))
        answer = engine.search("roadmap", refresh=False)
        cache.put(question, replace(answer, degraded=(Degradation(what="something"),)))
        assert cache.get(question) is None
        large = cache_key(engine, engine.prepare(SearchRequest(query="roadmap", limit=1000)))
        cache.put(large, answer)
        assert cache.get(large) is None
        cache.put(question, answer)
        assert cache.get(question) is answer
        assert cache.get(question._replace(state="another")) is None
        assert cache.get(question) is None, "what is out of date is dropped"
        for query in ("one", "two", "three"):
            cache.put(cache_key(engine, engine.prepare(SearchRequest(query=query))), answer)
        assert cache.get(cache_key(engine, engine.prepare(SearchRequest(query="one")))) is None
        assert cache.get(cache_key(engine, engine.prepare(SearchRequest(query="three")))) is answer


def test_engines_with_other_settings_do_not_share_answers(host: Host, tree: Path, settings: findling.Settings) -> None:
    request = SearchRequest(query="roadmap")
    with host.opened(OWNER) as one, host.opened_local(tree, settings.override({"search.typos": "ignore"}, "x")) as two:
        assert cache_key(one, one.prepare(request)) != cache_key(two, two.prepare(request))
    with host.opened(OWNER) as one, host.opened_local(tree / "docs", settings) as two:
        assert cache_key(one, one.prepare(request)) != cache_key(two, two.prepare(request))
    other = settings.override({"search.snippet_lines": 5}, "x")
    with host.opened(OWNER) as one, host.opened_local(tree, other) as two:
        assert cache_key(one, one.prepare(request)) != cache_key(two, two.prepare(request))
    with host.opened(OWNER) as one, host.opened_local(tree, settings) as two:
        assert cache_key(one, one.prepare(request)) == cache_key(two, two.prepare(request))


def test_a_part_of_what_is_indexed_is_served_as_that_part(tree: Path, settings: findling.Settings) -> None:
    host = Host(settings, tree / "docs")
    try:
        assert host.default == str(tree / "docs")
        assert paths(host, OWNER) == ["docs/open.md"]
    finally:
        host.close()


@pytest.mark.parametrize("name", ["~nobody/x", "../tree", "\0", "x" * 5000, "/proc/self/root", "~"])
def test_no_name_of_a_workspace_is_looked_up_on_disk(host: Host, name: str) -> None:
    with pytest.raises(NotFoundError), host.opened(OWNER, name):
        pass


def test_workspaces_are_called_by_name_or_by_what_they_index(host: Host, tree: Path) -> None:
    for label in [account.label for account in host.workspaces(OWNER)]:
        with host.opened(OWNER, label) as engine:
            assert engine.root == tree
    assert len(host._named) == 1


def test_a_workspace_that_may_not_be_asked_is_as_one_that_is_not_there(host: Host, tmp_path: Path) -> None:
    create_workspace("notes", home=host.home)
    with host.opened(OWNER, "notes") as engine:
        engine.items.add([{"type": "knowledge", "id": "k", "title": "Roadmap", "body": "x"}])
    assert [account.name for account in host.workspaces(ANN)] == [""]
    assert {account.name for account in host.workspaces(OWNER)} == {"", "notes"}
    said = []
    for name in ("notes", "nowhere"):
        with pytest.raises(NotFoundError) as refused, host.opened(ANN, name):
            pass
        said.append((refused.value.message.replace(name, "NAME"), refused.value.hint))
    assert said[0] == said[1]
    with host.client(ANN._replace(workspaces=("notes",)), "notes") as viewer:
        assert viewer.status() == {"resources": 0, "chunks": 0}


def test_the_command_line_shares_the_opened_legs_under_settings_of_its_own(
    host: Host, tree: Path, settings: findling.Settings
) -> None:
    with host.opened(OWNER) as whole:
        with host.opened_local(tree / "docs", settings.override({"search.limit": 1}, "flag")) as part:
            assert [hit.path for hit in part.search("roadmap")] == ["docs/open.md"]
            assert part._files is whole._files
        with host.opened_local(tree, settings.override({"keyword.unit": "page"}, "flag")) as other:
            assert other._files is not whole._files
        assert len(whole.search("roadmap").hits) == 2


def test_only_what_nobody_uses_is_let_go(
    tree: Path, settings: findling.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_pool, "IDLE_S", 1e-9)
    host = Host(settings, tree)
    try:
        assert paths(host, OWNER, "itinerary of spring")
        with host.opened(OWNER):
            assert not host.unload_idle()
        assert host.unload_idle()
        assert not host.unload_idle()
        assert paths(host, OWNER, "itinerary of spring")
    finally:
        host.close()


def test_workspaces_share_one_model_until_all_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_pool, "IDLE_S", 1e-9)
    settings = findling.Settings().override({"store.home": str(tmp_path / "home"), "semantic.threads": 1}, "test")
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
        (root / "nap.md").write_text("The feline dozed off upon the rug.\n")
        with findling.open(root, settings=settings) as engine:
            engine.index()
            engine.refine()
    host = Host(settings, roots[0])
    try:
        for root in roots:
            with host.opened_local(root, settings) as engine:
                assert engine.search("cat sleeping", refresh=False).meaning["model"] == "minilm"
        del engine
        assert len(host._models._in_use) == 1
        host.unload_idle()
        assert len(host._models._in_use) == 0
    finally:
        host.close()


def test_what_another_process_has_dropped_is_closed(host: Host, tree: Path, settings: findling.Settings) -> None:
    assert paths(host, OWNER)
    with findling.open(tree, settings=settings) as other:
        other.forget_everything()
    assert len(host._kept) == 1
    host.unload_idle()
    assert len(host._kept) == 0


def test_few_workspaces_stay_open(settings: findling.Settings, host: Host) -> None:
    for number in range(17):
        create_workspace(f"w{number}", home=host.home)
        with host.opened(OWNER, f"w{number}") as engine:
            engine.items.add([{"type": "knowledge", "id": "k", "title": f"Number {number}", "body": "x"}])
    assert len(host._kept) == 16
    with host.opened(OWNER, "w0") as engine:
        assert len(engine.search("number", refresh=False).hits) == 1


def test_getting_ready_tells_what_it_loaded(host: Host) -> None:
    before = host.is_ready
    host.warm_up()
    told = host.statistics.snapshot()
    assert (before, host.is_ready) == (False, True)
    assert told["documents"] == 2
    assert told["legs"] == {"keyword": True, "vectors": True, "model": False}
    assert told["startup_time_ms"] >= told["keyword_load_time_ms"] > 0


def test_what_is_not_indexed_can_be_served_and_indexed_later(tmp_path: Path, settings: findling.Settings) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    host = Host(settings, root)
    try:
        host.warm_up()
        assert host.is_ready
        with pytest.raises(NotIndexedError):
            ask(host, OWNER, SearchRequest(query="roadmap"))
        (root / "a.md").write_text("A roadmap.\n")
        host.index()
        assert paths(host, OWNER) == ["a.md"]
        assert host.statistics.snapshot()["failed_queries"] == 1
    finally:
        host.close()


def test_many_threads_ask_while_files_change(host: Host, tree: Path) -> None:
    troubles: list[BaseException] = []
    over = threading.Event()

    def keep_asking(caller: Caller) -> None:
        try:
            while not over.is_set():
                found = paths(host, caller, limit=50)
                assert "docs/open.md" in found
                assert caller is OWNER or found == ["docs/open.md"]
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=keep_asking, args=(caller,)) for caller in (OWNER, OWNER, ANN, ANN)]
    for thread in threads:
        thread.start()
    rounds = tries(10, short=4)
    for number in range(rounds):
        (tree / f"more{number}.md").write_text(f"Roadmap number {number}.\n")
        host.index()
    over.set()
    for thread in threads:
        thread.join()
    assert not troubles
    assert len(paths(host, OWNER, limit=50)) == rounds + 2


def test_an_index_that_another_process_makes_anew_is_asked_at_once(
    host: Host, tree: Path, settings: findling.Settings
) -> None:
    troubles: list[BaseException] = []
    over = threading.Event()

    def keep_asking(caller: Caller) -> None:
        while not over.is_set():
            try:
                ask(host, caller, SearchRequest(query="roadmap", limit=5))
            except (NotFoundError, NotIndexedError):
                pass  # between the old one and the new one there is none
            except BaseException as error:
                troubles.append(error)

    threads = [threading.Thread(target=keep_asking, args=(caller,)) for caller in (OWNER, OWNER, OWNER, ANN)]
    for thread in threads:
        thread.start()
    for _ in range(tries(15, short=4)):
        with findling.open(tree, settings=settings) as other:
            other.forget_everything()
        with findling.open(tree, settings=settings) as other:
            other.index()
            other.permissions.share("path:docs/open.md", "user:ann")
    over.set()
    for thread in threads:
        thread.join()
    assert [repr(trouble) for trouble in troubles] == []
    assert sorted(paths(host, OWNER)) == ["docs/open.md", "plan.md"]
    assert paths(host, ANN) == ["docs/open.md"]


def test_the_99th_percentile_is_that_of_the_latest_questions() -> None:
    statistics = ServerStatistics()
    for _ in range(5000):
        statistics.answered("keyword", 5.0)
    for number in range(4096):
        statistics.answered("hybrid", 0.001 if number % 50 else 0.5, degraded=number == 0)
    told = statistics.snapshot()
    assert told["total_queries"] == 9096
    assert told["p99_latency_ms"] == 500.0
    assert told["degraded_total"] == 1
    counts, sums = statistics.histograms()["search", "keyword"]
    assert (sum(counts), sums) == (5000, [25000.0])
