"""Scopes of commands: items are found from every folder below, files are indexed only when asked for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.pipelines.indexing.freshness import UNSURE_NS
from tests.faces.daemons import be_patient, daemon_of
from tests.faces.mcp_desks import call, served

Findling = Callable[..., tuple[int, str, str]]

MESSAGE = '{"thread": "t", "id": "1", "author": "Ann", "at": "2026-04-08T08:38:00Z", "text": "the walrus chat"}\n'
DECISION = '{"type": "decision", "id": "7", "title": "Walrus", "body": "We keep the walrus decision."}\n'


@pytest.fixture
def findling(findling_aloud: Findling, monkeypatch: pytest.MonkeyPatch) -> Findling:
    """Run the command line with all that it says."""
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")  # scopes are about words; a model takes each daemon 0.5 s
    return findling_aloud


@pytest.fixture
def tree(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of its own, two folders below it, and one beside it."""
    root = home / "tree"
    for name in ("own.md", "sub/below.md", "sub/deep/deeper.md", "sibling/beside.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"a walrus in {name}\n")
    (home / "exports").mkdir()
    (home / "exports" / "talk.jsonl").write_text(MESSAGE)
    (home / "exports" / "items.jsonl").write_text(DECISION)
    time.sleep(2 * UNSURE_NS / 1e9)  # a file that was just written is read once more by the next search
    monkeypatch.chdir(root)
    return root


def hits(out: str) -> set[str]:
    """The hits: the path of a file, the type of anything else."""
    return {hit["path"] or hit["type"] for hit in json.loads(out)["hits"]}


def put_chats(findling: Findling, *place: str) -> str:
    assert findling("chats", "import", "../exports/talk.jsonl", *place)[0] == 0
    return "chat"


def put_memory(findling: Findling, *place: str) -> str:
    assert findling("remember", "the walrus memory", "--here", *place)[0] == 0
    return "memory"


def put_decision(findling: Findling, *place: str) -> str:
    assert findling("add", "../exports/items.jsonl", *place)[0] == 0
    return "decision"


@pytest.mark.parametrize("put", [put_chats, put_memory, put_decision])
def test_items_are_found_from_below_and_files_only_of_what_is_searched(
    put: Callable[..., str], tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = put(findling)
    monkeypatch.chdir(tree / "sub")
    _, out, err = findling("walrus", "--json")
    assert hits(out) == {kind, "sub/below.md", "sub/deep/deeper.md"}
    assert f"indexing {tree / 'sub'}: it has no index yet" in err
    monkeypatch.chdir(tree / "sub" / "deep")
    _, out, err = findling("walrus", "--json")
    assert hits(out) == {kind, "sub/deep/deeper.md"}
    assert "indexing" not in err
    monkeypatch.chdir(tree / "sibling")
    _, out, err = findling("walrus", "--json")
    assert hits(out) == {kind, "sibling/beside.md"}
    assert f"indexing {tree / 'sibling'}: it has no index yet" in err
    monkeypatch.chdir(tree)
    _, out, err = findling("walrus", "--json")
    assert hits(out) == {kind, "own.md", "sub/below.md", "sub/deep/deeper.md", "sibling/beside.md"}
    assert f"indexing {tree}: it has no index yet" in err


def test_items_of_an_indexed_folder_are_found_from_below(
    tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    findling("index")
    kinds = {put(findling) for put in (put_chats, put_memory, put_decision)}
    monkeypatch.chdir(tree / "sub")
    _, out, err = findling("walrus", "--json")
    assert hits(out) == {*kinds, "sub/below.md", "sub/deep/deeper.md"}
    assert not err
    # A path that is asked for is a filter, which nothing passes that has none.
    assert hits(findling("walrus path:deep", "--json")[1]) == {"sub/deep/deeper.md"}
    assert hits(findling("walrus", "--path", "deep", "--json")[1]) == {"sub/deep/deeper.md"}
    assert {line.partition(":")[0] for line in findling("ls")[1].splitlines()} == {
        *kinds,
        "sub/below.md",
        "sub/deep/deeper.md",
    }
    code, out, err = findling("walrus", "--type", "chat", "--json")
    assert (code, hits(out)) == (0, {"chat"})


def test_items_of_a_folder_are_not_found_from_above(
    tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "sub")
    assert findling("remember", "the walrus memory", "--here")[0] == 0
    monkeypatch.chdir(tree)
    assert "memory" not in hits(findling("walrus", "--json")[1])


def test_a_named_workspace_without_files_answers_from_anywhere_and_indexes_nothing(
    tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findling("workspaces", "create", "team")[0] == 0
    kinds = {put(findling, "--workspace", "team") for put in (put_chats, put_memory, put_decision)}
    for folder in (tree, tree / "sub", tree.parent):
        monkeypatch.chdir(folder)
        _, out, err = findling("walrus", "--workspace", "team", "--json")
        assert hits(out) == kinds
        assert "indexing" not in err


def test_nothing_is_said_of_filters_where_none_was_given(
    tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "sibling" / "beside.md").write_text("an ocelot\n")
    findling("index")
    monkeypatch.chdir(tree / "sub")
    code, _, err = findling("ocelot")
    assert code == 1
    assert "1 passage matches outside of sub" in err
    assert "without the filters" not in err
    assert "without the filters" in findling("walrus", "--type", "chat")[2]


def test_a_later_change_is_told_with_its_reason(tree: Path, findling: Findling) -> None:
    assert f"findling: indexing {tree}: it has no index yet" in findling("walrus")[2]
    assert not findling("walrus")[2]
    (tree / "own.md").write_text("a walrus and a seal\n")
    (tree / "sub" / "below.md").unlink()
    assert f"findling: indexing {tree}: 1 file is new or changed and 1 file is gone" in findling("seal")[2]
    assert f"findling: indexing {tree}: as asked" in findling("index")[2]


def test_a_folder_that_comes_back_is_noticed(tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    put_memory(findling)
    monkeypatch.chdir(tree / "sub")
    findling("walrus")
    monkeypatch.chdir(tree)
    (tree / "sub").rename(tree.parent / "away")
    assert hits(findling("walrus", "--json", "--no-index")[1]) == {"memory", "sub/below.md", "sub/deep/deeper.md"}
    (tree.parent / "away").rename(tree / "sub")
    (tree / "sub" / "new.md").write_text("a walrus that is new\n")
    monkeypatch.chdir(tree / "sub")
    assert "sub/new.md" in hits(findling("walrus", "--json")[1])


@pytest.mark.parametrize("command", [("search", "walrus", "--explain-hit"), ("fetch",), ("similar",)])
def test_a_command_that_names_a_file_uses_the_index_that_holds_it(
    command: tuple[str, ...], tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    findling("index", "sub")
    monkeypatch.chdir(tree.parent)
    code, out, err = findling(*command, "tree/sub/below.md", "--json")
    assert code == 0, err
    assert "below.md" in out
    assert "indexing" not in err
    code, out, err = findling("workspaces", "list", "--json")
    assert [Path(one["root"]) for one in json.loads(out)["workspaces"]] == [tree / "sub"]


def test_another_workspace_that_is_searched_across_is_not_indexed(tree: Path, findling: Findling) -> None:
    put_memory(findling)
    code, out, err = findling("search", "walrus", "--workspace", f"{tree},", "--json")
    assert code == 0, err
    assert hits(out) == {"memory"}


@pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")
def test_a_daemon_answers_the_same_and_follows_only_what_it_serves(
    tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = put_memory(findling)
    be_patient(monkeypatch)
    with daemon_of(tmp_path / "workspaces", tree / "sub") as daemon:
        monkeypatch.chdir(tree / "sub")
        findling("index")  # it waits for the daemon's first run, beside which a search answers from a part
        _, out, err = findling("walrus", "--json", "--explain")
        assert hits(out) == {kind, "sub/below.md", "sub/deep/deeper.md"}
        assert "answered by" in err
        monkeypatch.chdir(tree / "sibling")
        _, out, err = findling("walrus", "--json")
        assert hits(out) == {kind, "sibling/beside.md"}
        assert f"indexing {tree / 'sibling'}: it has no index yet" in err
        monkeypatch.chdir(tree)
        assert "own.md" not in hits(findling("walrus", "--json", "--no-index")[1])
        daemon.process.terminate()
        assert f"indexing {tree}: " not in daemon.stderr()


def test_an_mcp_client_finds_the_items_above_and_the_files_of_its_folder(tree: Path) -> None:
    with served(tree) as above:
        above.engine.memories.remember("the walrus memory")
    with served(tree / "sub", store__home=str(tree.parent / "indexes")) as below:
        found = call(below.server, "search", query="walrus")
    names = {one.get("path") or one["type"] for one in found["results"]}
    assert names == {"memory", "sub/below.md", "sub/deep/deeper.md"}


@pytest.fixture
def below(tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that had an index before anything was added above it, where now files and items are."""
    assert findling("index", "sub")[0] == 0
    for put in (put_chats, put_memory, put_decision):
        put(findling)
    assert findling("index")[0] == 0
    monkeypatch.chdir(tree / "sub")
    return tree / "sub"


ITEMS = {"chat", "memory", "decision"}


def test_a_folder_that_was_indexed_first_finds_the_items_above(
    below: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = findling("walrus", "--json")
    assert code == 0, err
    assert hits(out) == {*ITEMS, "below.md", "deep/deeper.md"}
    places = {hit["type"]: hit["workspace"] for hit in json.loads(out)["hits"]}
    assert places == {**dict.fromkeys(ITEMS, str(below.parent)), "file": ""}
    assert f"[{below.parent}] decision:7" in findling("walrus")[1]
    assert hits(findling("walrus", "--json", "--path", "deep")[1]) == {"deep/deeper.md"}
    assert hits(findling("walrus", "--json", "--type", "chat")[1]) == {"chat"}
    assert hits(findling("walrus", "--json", "--as", "user:ann")[1]) <= {"below.md", "deep/deeper.md"}
    monkeypatch.chdir(below / "deep")
    assert hits(findling("walrus", "--json")[1]) == {*ITEMS, "deep/deeper.md"}


def test_an_item_above_is_fetched_explained_and_recalled_from_where_it_was_found(
    below: Path, findling: Findling
) -> None:
    ranked = json.loads(findling("walrus", "--json")[1])["hits"]
    for rank, hit in enumerate(ranked, start=1):
        for name in (hit["rid"], hit["id"]):
            code, out, err = findling("fetch", name, "--json")
            assert (code, json.loads(out)["rid"]) == (0, hit["rid"]), err
            code, out, err = findling("search", "walrus", "--explain-hit", name, "--json")
            told = json.loads(out)
            assert (code, told["rank"], told["shown"]) == (0, rank, len(ranked)), err
            assert told["hit"]["workspace"] == hit["workspace"]
    assert findling("fetch", "own.md")[0] == 2, "a file above is none of this index"
    code, out, err = findling("recall", "walrus", "--json")
    assert code == 0, err
    (recalled,) = json.loads(out)["memories"]
    assert (recalled["text"], recalled["hit"]["workspace"]) == ("the walrus memory", str(below.parent))
    assert findling("recall", "walrus", "--as", "user:ann")[0] == 1


@pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")
def test_a_daemon_finds_the_items_above_as_well(
    below: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = [(hit["id"], hit["score"]) for hit in json.loads(findling("walrus", "--json")[1])["hits"]]
    be_patient(monkeypatch)
    with daemon_of(tmp_path / "workspaces", below):
        _, out, err = findling("walrus", "--json", "--explain")
        assert "answered by" in err
        assert [(hit["id"], hit["score"]) for hit in json.loads(out)["hits"]] == expected
        monkeypatch.chdir(below.parent)
        assert findling("remember", "a later walrus of the tree", "--here")[0] == 0
        monkeypatch.chdir(below)
        assert len(json.loads(findling("walrus", "--json")[1])["hits"]) == len(expected) + 1


def test_an_mcp_client_of_a_folder_that_was_indexed_first_finds_the_items_above(tree: Path) -> None:
    home = str(tree.parent / "indexes")
    with served(tree / "sub", store__home=home) as below:
        below.engine.index()
    with served(tree, store__home=home) as above:
        above.engine.memories.remember("the walrus memory")
    with served(tree / "sub", store__home=home) as desk:
        found = call(desk.server, "search", query="walrus")
        assert {one.get("path") or one["type"] for one in found["results"]} == {"memory", "below.md", "deep/deeper.md"}
        found = call(desk.server, "search", query="walrus", filters={"type": ["memory"]})
        assert [one["metadata"]["workspace"] for one in found["results"]] == [str(tree)]
        name = found["results"][0]["passage"]
        assert call(desk.server, "fetch", id=name)["text"] == "the walrus memory"
        assert call(desk.server, "explain", query="walrus", id=name)["found"]
        assert "memory" not in call(desk.server, "status")["types"]
