"""Personal memories are found from every folder, and all workspaces of a home answer in one ranking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.permissions import OWNER, Caller
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.pipelines.content.memories import Memory
from findling.service.server.engine_pool import Host
from findling.service.workspace.scope import FOLDERS, PERSON
from findling.service.workspace.workspaces import change_workspace, create_workspace, list_workspaces, rename_workspace
from tests.postgres_servers import PostgresServer

ANN = Caller("ann", ("user:ann",), frozenset({"read"}), ("team",))


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    values = {"store.home": str(tmp_path / "home"), "semantic.model": "none", "search.mode": "keyword"}
    return findling.Settings().override(values, "test")


@pytest.fixture
def home(settings: findling.Settings) -> Path:
    return Path(settings["store.home"])


def folder(tmp_path: Path, name: str, settings: findling.Settings, **files: str) -> Path:
    root = tmp_path / name
    root.mkdir(parents=True, exist_ok=True)
    for stem, text in files.items():
        (root / f"{stem}.md").write_text(text)
    with findling.open(root, settings=settings) as engine:
        engine.index()
    return root


def remember(settings: findling.Settings, text: str, **options: Any) -> Memory:
    with findling.open(workspace="personal", settings=settings) as engine:
        return engine.memories.remember(text, **options)


def places(answer: SearchAnswer) -> list[tuple[str, str]]:
    return [(hit.workspace, hit.path or hit.rid) for hit in answer]


def test_a_personal_memory_is_found_from_every_folder_at_once(tmp_path: Path, settings: findling.Settings) -> None:
    one = folder(tmp_path, "one", settings, a="the boiler rattles")
    two = folder(tmp_path, "two", settings, b="nothing of that")
    with findling.open(two, settings=settings) as below:
        assert places(below.search("boiler")) == []
        with findling.open(one, settings=settings) as engine:
            rid = remember(settings, "The boiler is serviced in May.").rid
            assert ("personal", rid) in places(engine.search("boiler serviced"))
            assert engine.search("boiler", filters=findling.Filters(path=("a.md",))).total == 1, "a path is no memory"
        assert places(below.search("boiler")) == [("personal", rid)]
        assert below.fetch(rid).text == "The boiler is serviced in May."
        assert below.explain("boiler", rid).rank == 1
        assert [(one.rid, one.hit.workspace) for one in below.memories.recall("boiler")] == [(rid, "personal")]
        assert [(one.rid, one.workspace) for one in below.memories.list()] == [(rid, "personal")]
        assert below.memories.get(rid).access_count == 1
        assert below.memories.forget([rid]) == 1
        assert places(below.search("boiler")) == []


def test_a_memory_of_another_folder_is_recalled_and_one_kept_here_is_not(
    tmp_path: Path, settings: findling.Settings
) -> None:
    one, two = folder(tmp_path, "one", settings), folder(tmp_path, "two", settings)
    (one / "sub").mkdir()
    with findling.open(one, settings=settings) as engine:
        older = engine.memories.remember("Walnuts are in the cellar.").rid
        kept = engine.memories.remember("Walnuts are counted on Mondays.", here=True).rid
    with findling.open(two, settings=settings) as engine:
        assert [(found.rid, found.hit.workspace) for found in engine.memories.recall("walnuts")] == [(older, str(one))]
        assert [found.rid for found in engine.memories.list()] == [older]
        assert engine.memories.get(older).access_count == 1, "the access is counted where the memory lies"
        assert places(engine.search("walnuts")) == [], "a search asks the folder and the person"
        assert {rid for _, rid in places(engine.search("walnuts", scope="all"))} == {older, kept}
    with findling.open(one / "sub", settings=settings) as engine:
        assert {found.rid for found in engine.memories.recall("walnuts")} == {older, kept}


def test_a_folder_below_an_indexed_one_keeps_a_memory_to_itself_and_those_below(
    tmp_path: Path, settings: findling.Settings
) -> None:
    """It lay in the index of the folder above, for all its folders to find."""
    root = folder(tmp_path, "one", settings, a="the door")
    for name in ("sub/deep", "side"):
        (root / name).mkdir(parents=True)
    with findling.open(root / "sub", settings=settings) as engine:
        rid = engine.memories.remember("The walrus sleeps in room 7.", here=True).rid
        newer = engine.memories.remember("The walrus sleeps in room 8.", here=True)
        assert newer.supersedes == rid or rid in newer.conflicts, "memories of one folder are compared"
        engine.memories.remember("The code of the gate is 11.", id="gate", here=True)
    both = {rid, newer.rid}
    for name, found in (("sub", both), ("sub/deep", both), ("", set()), ("side", set())):
        with findling.open(root / name, settings=settings) as engine:
            answer = engine.search("walrus", facets=("type",))
            assert ({hit.rid for hit in answer}, answer.total) == (found, len(found)), name
            assert answer.facets["type"] == ({"memory": 2} if found else {})
            assert not any("filters" in note for note in answer.notes), "nobody has filtered"
            assert {one.rid for one in engine.memories.recall("walrus", all_versions=True)} == found
            assert {one.rid for one in engine.memories.list()} == ({*found, "memory:gate"} if found else set())
            assert engine.explain("walrus", rid).found is bool(found)
            assert engine.fetch(rid).text, "its id finds it"
            assert both <= {hit.rid for hit in engine.search("walrus", scope="all")}
    with findling.open(root / "side", settings=settings) as engine:
        with pytest.raises(InvalidValueError, match="memory:gate is kept in another folder"):
            engine.memories.remember("The code of the gate is 12.", id="gate", here=True)
        own = engine.memories.remember("The walrus sleeps in room 7.", here=True)
        assert (own.outcome, own.supersedes, own.conflicts, own.here) == ("new", "", (), "side")
        assert {hit.rid for hit in engine.search("walrus")} == {own.rid}
        assert not any({pair.newer, pair.older} > {own.rid} for pair in engine.memories.review().pairs)
    with findling.open(folder(tmp_path, "one/sub/deep", settings), settings=settings) as engine:
        assert {hit.rid for hit in engine.search("walrus")} == both, "its own index is one below that folder"


def test_a_folder_that_is_gone_keeps_no_memory_to_itself(tmp_path: Path, settings: findling.Settings) -> None:
    """Its memories were lost without a word when it got another name."""
    root, two = folder(tmp_path, "one", settings, a="the door"), folder(tmp_path, "two", settings)
    (root / "sub").mkdir()
    kept = {}
    for name in ("", "sub"):
        with findling.open(root / name, settings=settings) as engine:
            kept[name] = engine.memories.remember(f"The walrus sleeps in {name or 'the hall'}.", here=True).rid
    (root / "sub").rename(root / "other")
    with findling.open(root, settings=settings) as engine:
        assert {hit.rid for hit in engine.search("walrus")} == set(kept.values())
    root.rename(tmp_path / "three")
    with findling.open(two, settings=settings) as engine:
        recalled = {(one.rid, one.hit.workspace) for one in engine.memories.recall("walrus")}
    assert recalled == {(rid, str(root)) for rid in kept.values()}


def test_a_folder_whose_name_is_not_utf_8_keeps_nothing(tmp_path: Path, settings: findling.Settings) -> None:
    root = folder(tmp_path, "one", settings, a="the door")
    (odd := root / "odd\udcff").mkdir()
    with findling.open(odd, settings=settings) as engine:
        with pytest.raises(InvalidValueError, match=r"the name of odd.* is not UTF-8"):
            engine.memories.remember("The walrus sleeps here.", here=True)
        assert not engine.memories.list()
        assert engine.search("door", refresh=False) is not None


def test_superseded_memories_that_another_folder_keeps_are_not_counted(
    tmp_path: Path, settings: findling.Settings
) -> None:
    one, two = folder(tmp_path, "one", settings), folder(tmp_path, "two", settings)
    with findling.open(one, settings=settings) as engine:
        engine.memories.remember("Anna lives in Berlin.", here=True)
        assert engine.memories.remember("Anna moved to Hamburg.", here=True).supersedes
        assert engine.memories.recall("Anna").left_out == 1
    with findling.open(two, settings=settings) as engine:
        answer = engine.memories.recall("Anna")
        assert (answer.memories, answer.left_out, answer.notes) == ((), 0, ())


def test_a_recall_that_finds_no_memory_speaks_of_no_filters(tmp_path: Path, settings: findling.Settings) -> None:
    with findling.open(folder(tmp_path, "one", settings, a="the walrus"), settings=settings) as engine:
        engine.memories.remember("Anna lives in Berlin.")
        assert engine.memories.recall("walrus").notes == ()
        assert engine.search("walrus", filters=findling.Filters(type=("memory",))).notes == (
            "1 passage matches without the filters",
        )


def test_decisions_are_undone_where_the_memory_lies(tmp_path: Path, settings: findling.Settings) -> None:
    with findling.open(folder(tmp_path, "one", settings), settings=settings) as engine:
        old = remember(settings, "Anna lives in Berlin.").rid
        new = remember(settings, "Anna moved to Hamburg.")
        assert new.supersedes == old
        assert [state.rid for state in engine.memories.history(new.rid)] == [new.rid, old]
        engine.memories.undo(new.rid)
        assert {one.rid for one in engine.memories.list(all_versions=False)} == {old, new.rid}
        likes = [remember(settings, f"Anna likes {what}.").rid for what in ("tea", "rice")]
        (pair,) = [pair for pair in engine.memories.review().pairs if pair.newer == likes[1]]
        engine.memories.decide(pair.newer, pair.older, "keep")
        assert not [pair for pair in engine.memories.review().pairs if pair.newer == likes[1]]


def test_a_strong_hit_of_one_workspace_stands_above_a_weak_one_of_another(
    tmp_path: Path, settings: findling.Settings
) -> None:
    """The words are rare in the first folder and in nearly every file of the second, and the other way round."""
    common = {f"c{number}": f"the boiler in room {number}" for number in range(20)}
    rare = {f"r{number}": f"a garden with {number} trees" for number in range(20)}
    one = folder(tmp_path, "one", settings, **common, strong="the rattling boiler needs a plumber for its valve")
    folder(tmp_path, "two", settings, **rare, weak="somebody mentioned a rattling plumber once, among other things")
    with findling.open(one, settings=settings) as engine:
        remember(settings, "The rattling boiler needs a plumber.")
        answer = engine.search("rattling boiler plumber", scope="all", limit=50)
    found = places(answer)
    assert {found[0][0], found[1][0]} == {"", "personal"}
    assert found.index((str(tmp_path / "two"), "weak.md")) > 1
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)
    assert [hit.receipt.recomputed() for hit in answer] == pytest.approx(scores, abs=1e-4)


def test_all_workspaces_answer_and_each_file_once(tmp_path: Path, settings: findling.Settings, home: Path) -> None:
    sub = folder(tmp_path, "one/sub", settings, deep="a walrus in the deep")
    one = folder(tmp_path, "one", settings, top="a walrus on top")
    two = folder(tmp_path, "two", settings, top="another walrus")
    create_workspace("team", home=home)
    with findling.open(workspace="team", settings=settings) as engine:
        engine.add([(Resource(rid="note:1", type="note"), "a walrus of the team")])
    everything = {(str(sub), "deep.md"), (str(one), "top.md"), (str(two), "top.md"), ("team", "note:1")}
    for root in (sub, one, two):
        with findling.open(root, settings=settings) as engine:
            answer = engine.search("walrus", scope="all", facets=("file",))
            assert {(place or str(root), name) for place, name in places(answer)} == everything
            assert (answer.total, len(answer.facets["file"])) == (4, 4)
            hit = next(hit for hit in answer if hit.workspace == "team")
            assert engine.fetch(hit.rid, workspace="team").text == "a walrus of the team"
            with pytest.raises(InvalidValueError, match="one workspace"):
                engine.explain("walrus", hit.rid, scope="all")
            pages = [engine.search("walrus", scope="all", limit=1, offset=at) for at in range(4)]
            assert [place for page in pages for place in places(page)] == places(answer)
            with pytest.raises(InvalidValueError, match="no cursor"):
                engine.search("walrus", scope="all", cursor="x")


def test_more_workspaces_than_stay_open_are_asked(tmp_path: Path, settings: findling.Settings) -> None:
    for number in range(20):
        folder(tmp_path, f"w{number}", settings, a=f"walrus number {number}")
    with findling.open(tmp_path / "w0", settings=settings) as engine:
        for _ in range(2):
            assert engine.search("walrus", scope="all", limit=50).total == 20


def test_one_that_cannot_be_read_is_named_and_the_others_answer(
    tmp_path: Path, settings: findling.Settings, home: Path
) -> None:
    one, two = folder(tmp_path, "one", settings, a="a walrus"), folder(tmp_path, "two", settings, a="a walrus")
    damaged = next(row.folder for row in list_workspaces(home) if row.root == str(two))
    (damaged / "index.sqlite").write_bytes(b"no database" * 1000)
    with findling.open(one, settings=settings) as engine:
        answer = engine.search("walrus", scope="all")
    assert places(answer) == [("", "a.md")]
    assert any(f"{two} is not searched" in missing.what or str(damaged) in missing.what for missing in answer.degraded)


def test_a_project_does_not_say_how_the_personal_workspace_is_opened(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDLING_HOME", str(home))
    one = tmp_path / "one"
    one.mkdir()
    (one / ".findling.toml").write_text('[keyword]\nunit = "page"\n')
    with findling.open(one) as engine:
        with findling.open(workspace="personal") as personal:
            personal.memories.remember("A walrus by heart.")
        assert engine.search("walrus").total == 1
    with findling.open(tmp_path) as engine:
        answer = engine.memories.recall("walrus")
        assert answer.memories
        assert not answer.degraded


# Who sees them


@pytest.fixture
def served(tmp_path: Path, settings: findling.Settings, home: Path) -> Path:
    """A served folder, a workspace that a token names, and one that it does not."""
    root = folder(tmp_path, "served", settings, shown="a walrus to see", hidden="a walrus to hide")
    with findling.open(root, settings=settings) as engine:
        engine.permissions.share("path:shown.md", "user:ann")
    create_workspace("team", home=home)
    with findling.open(workspace="team", settings=settings) as engine:
        notes = [(f"note:{who}", (f"user:{who}",)) for who in ("ann", "bob")]
        engine.add([(Resource(rid=rid, type="note", visibility=seen), f"a walrus of {rid}") for rid, seen in notes])
    return root


def asked(host: Host, caller: Caller, query: str = "walrus") -> SearchAnswer:
    request = SearchRequest(query=query, limit=50, scope="all", facets=("type", "file"))
    with host.client(caller) as client:
        return replace(client.search(request), timings_ms={})


def test_a_caller_asks_the_workspaces_of_the_token_and_sees_what_each_shows(
    served: Path, settings: findling.Settings
) -> None:
    host = Host(settings, served)
    try:
        assert set(places(asked(host, ANN))) == {("", "shown.md"), ("team", "note:ann")}
        assert set(places(asked(host, ANN._replace(workspaces=())))) == {("", "shown.md")}
        free = OWNER._replace(workspaces=())
        assert set(places(asked(host, free))) == {("", "shown.md"), ("", "hidden.md")}
        assert len(asked(host, OWNER).hits) == 4
    finally:
        host.close()


def test_what_a_caller_may_not_ask_changes_no_byte_of_an_answer(
    served: Path, tmp_path: Path, settings: findling.Settings, home: Path
) -> None:
    host = Host(settings, served)
    queries = ("walrus", "a walrus of note:ann", '"walrus to see"', "seal", "walrsu", "")
    callers = (ANN, ANN._replace(workspaces=("*",)), ANN._replace(workspaces=()), ANN._replace(principals=()))
    try:
        before = [asked(host, caller, query) for caller in callers for query in queries]
        with findling.open(served, settings=settings) as engine:
            remember(settings, "A walrus and a seal of my own.", visibility=["user:ann", "everyone"])
        folder(tmp_path, "secret", settings, a="a walrus and a seal, walrsu", b="walrus " * 50)
        create_workspace("other", home=home)
        with findling.open(workspace="other", settings=settings) as engine:
            engine.add([(Resource(rid="note:9", type="note"), "a walrus and a seal, walrsu")])
        assert [asked(host, caller, query) for caller in callers for query in queries] == before
        for name in ("personal", str(home / "personal"), "other", str(tmp_path / "secret"), "none"):
            with host.opened(ANN) as engine, pytest.raises(NotFoundError, match=f"there is no workspace {name}"):
                engine.fetch("note:9", principals=ANN.principals, workspace=name)
            if "personal" in name:
                for names in (("*",), (name,)):
                    with pytest.raises(NotFoundError), host.opened(ANN._replace(workspaces=names), name):
                        pass
        assert len(asked(host, OWNER).hits) == 8
    finally:
        host.close()


def test_a_viewer_asks_shared_workspaces_alone(served: Path, settings: findling.Settings, home: Path) -> None:
    with findling.open(served, settings=settings) as engine:
        viewer = engine.as_caller("user:ann")
        assert places(viewer.search("walrus", scope="all")) == [("", "shown.md")]
        change_workspace("team", home=home, shared=True)
        assert set(places(viewer.search("walrus", scope="all"))) == {("", "shown.md"), ("team", "note:ann")}


def test_a_caller_never_meets_personal_memories(served: Path, settings: findling.Settings) -> None:
    host = Host(settings, served)
    try:
        with host.opened(OWNER):
            rid = remember(settings, "A walrus of my own.", visibility=["user:ann", "everyone"]).rid
        with host.client(OWNER) as client:
            assert ("personal", rid) in places(client.search("walrus"))
            agent = client.engine.reaching(FOLDERS)
            assert "personal" not in {place for place, _ in places(agent.search("walrus", scope="all"))}
            assert not agent.memories.recall("walrus").memories
            assert client.engine.reaching(PERSON).memories.recall("walrus").memories
        with host.client(ANN) as client:
            assert places(client.search("walrus")) == [("", "shown.md")]
            assert not client.engine.memories.recall("walrus", principals=ANN.principals).memories
        assert "personal" in {row.name for row in host.workspaces(OWNER)}
        assert "personal" not in {row.name for row in host.workspaces(ANN._replace(workspaces=("*",)))}
    finally:
        host.close()


def test_an_answer_that_a_server_keeps_is_renewed_by_a_personal_memory(
    served: Path, settings: findling.Settings
) -> None:
    host = Host(settings, served)
    try:
        for number in range(3):
            remember(settings, f"Walrus fact {number} of my own, in room {'abc'[number]}.")
            with host.client(OWNER) as client:
                found = [place for place, _ in places(client.search("walrus", limit=50))]
                assert found.count("personal") == number + 1
    finally:
        host.close()


def test_the_personal_workspace_has_no_files_and_is_not_shared(
    tmp_path: Path, settings: findling.Settings, home: Path
) -> None:
    one = folder(tmp_path, "one", settings, a="a walrus")
    for given in ({"root": one}, {"shared": True}, {}):
        with pytest.raises(InvalidValueError, match="your own memories"):
            create_workspace("personal", home=home, **given)
    with findling.open(workspace="personal", settings=settings) as engine:
        engine.memories.remember("A walrus of my own.")
        assert engine.root == engine.home
        assert places(engine.search("walrus")) == [("", engine.memories.list()[0].rid)], "the folder is not indexed"
    with pytest.raises(InvalidValueError, match="personal"):
        change_workspace("personal", home=home, shared=True)
    create_workspace("team", home=home)
    with pytest.raises(InvalidValueError):
        rename_workspace("team", "personal", home=home)


def test_in_postgres_a_person_is_the_principal_and_two_never_meet(
    settings: findling.Settings, home: Path, postgres: PostgresServer
) -> None:
    """Each remembers through a token; neither finds, counts, recalls, lists or fetches what the other has."""
    create_workspace("handbook", home=home, place=postgres.place("handbook"))
    remember(settings, "The boiler is my own.", visibility=["user:ann", "everyone"])
    host = Host(settings.override({"workspace.name": "handbook"}, "test"), ".")
    people = {name: Caller(name, (f"user:{name}",), frozenset({"read", "write"}), ("*",)) for name in ("ann", "bob")}
    rids = {}
    try:
        with host.opened(OWNER) as engine:
            engine.add([(Resource(rid="note:1", type="note", visibility=("everyone",)), "The boiler of all.")])
        for name, caller in people.items():
            with host.client(caller) as client:
                said, who = f"The boiler code of {name} is {len(name) * 7}.", caller.principals
                made = client.engine.memories.remember(said, visibility=who, principals=who)
                rids[name] = made.rid
        for name, caller in people.items():
            other = rids["bob" if name == "ann" else "ann"]
            for scope in ("here", "all"):
                with host.client(caller) as client:
                    answer = client.search("boiler", scope=scope, facets=("type",), limit=50)
                assert set(places(answer)) == {("", "note:1"), ("", rids[name])}
                assert (answer.total, answer.facets["type"]) == (2, {"memory": 1, "note": 1})
            with host.client(caller) as client:
                memories, who = client.engine.memories, caller.principals
                assert [one.rid for one in memories.recall("boiler", principals=who)] == [rids[name]]
                assert [one.rid for one in memories.list(principals=who)] == [rids[name]]
                assert not memories.review(principals=who).pairs
                for ask in (memories.history, memories.undo):
                    with pytest.raises(NotFoundError):
                        ask(other, principals=who)
                with pytest.raises(NotFoundError):
                    client.fetch(other)
        with host.client(OWNER) as client:
            everything = {rid for _, rid in places(client.search("boiler", scope="all", limit=50))}
        assert {*rids.values(), "note:1"} < everything
    finally:
        host.close()


def test_a_broken_project_file_keeps_no_other_workspace_from_answering(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of all others were read before the first was asked."""
    monkeypatch.setenv("FINDLING_HOME", str(home))
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("a walrus")
        with findling.open(tmp_path / name) as engine:
            engine.index()
            engine.memories.remember(f"The walrus of {name}.")
    (tmp_path / "two" / ".findling.toml").write_text("x = [")
    with findling.open(tmp_path / "one") as engine:
        answer = engine.search("walrus", scope="all")
        assert {hit.workspace for hit in answer} == {""}
        (missing,) = answer.degraded
        assert missing.what.startswith(f"{tmp_path / 'two'} is not searched: ")
        assert len(engine.memories.recall("walrus").memories) == 2, "a memory needs no settings of its project"
