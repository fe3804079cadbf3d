"""Changing something over HTTP: resources, indexing runs, and decisions about the glossary."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from findling.domain.permissions import OWNER, Caller
from findling.faces.http.request.context import IndexRuns
from findling.faces.http.security.guards import Guard
from findling.service.engine.engine import Engine
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from findling.stores.local.legs import STORE_FILE
from tests.faces.http_servers import Client, in_process, listening
from tests.processes import PATIENCE_S

Served = tuple[Host, Guard]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    (made / "a.md").write_text("# Login\n\nSingle Sign-On (SSO) is how people log in. SSO is what they say.\n")
    return made


@pytest.fixture
def served(root: Path) -> Iterator[Served]:
    with in_process(root) as (host, app):
        host.index()
        yield host, app


def test_resources_are_put_in_changed_and_taken_out(served: Served) -> None:
    client = Client(served[1])
    decision = {"type": "decision", "id": "1a2b3c4d5e", "title": "Use SQLite", "text": "One file.", "tags": ["store"]}
    note = {"type": "knowledge", "id": "n1", "title": "Walrus", "body": "A walrus in the harbour."}
    answer = client.post("/v1/resources", {"upsert": [decision, note]}).json()
    assert answer["added"] == 2 and answer["results"] == [
        {"id": "decision:1a2b3c4d5e", "outcome": "added"},
        {"id": "knowledge:n1", "outcome": "added"},
    ]
    assert client.get("/v1/search?q=walrus").json()["hits"][0]["rid"] == "knowledge:n1"
    changed = {**note, "body": "Two walruses."}
    answer = client.post("/v1/resources", {"upsert": [changed, decision], "delete": ["decision:absent0000"]}).json()
    assert [result["outcome"] for result in answer["results"]] == ["missing", "changed", "unchanged"]
    assert answer["missing"] == ["decision:absent0000"]
    answer = client.post("/v1/resources", {"delete": ["knowledge:n1"]}).json()
    assert (answer["deleted"], answer["results"]) == (1, [{"id": "knowledge:n1", "outcome": "deleted"}])
    assert client.get("/v1/search?q=walrus").json()["total"] == 0
    assert client.get("/v1/fetch/knowledge:n1").status_code == 404


def test_an_id_follows_from_the_content(served: Served) -> None:
    client, item = Client(served[1]), {"type": "knowledge", "title": "Walrus"}
    first, second = (client.post("/v1/resources", {"upsert": [item]}).json()["results"][0] for _ in range(2))
    assert (first["outcome"], second["outcome"]) == ("added", "unchanged")
    assert first["id"] == second["id"] and client.get(f"/v1/fetch/{first['id']}").json()["title"] == "Walrus"


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"upsert": [{"type": "knowledge", "title": "x", "colour": "red"}]},
        "upsert 2: items of type knowledge have no",
    ),
    ({"upsert": [{"title": "x"}]}, "upsert 2: the item does not say its type"),
    ({"upsert": [{"type": "memory", "text": "x"}]}, "upsert 2: a memory is no item"),
    ({"upsert": [{"type": "knowledge", "title": "x", "body": "a", "text": "b"}]}, "a body or a text, not both"),
    ({"upsert": [{"type": "knowledge", "title": "x", "visibility": "ann"}]}, "upsert 2: visibility must be a list"),
    ({"delete": ["file:a.md"]}, "delete 1: file:a.md is a file, no item"),
]


def test_nothing_is_done_when_one_entry_is_wrong(served: Served) -> None:
    client = Client(served[1])
    good = {"type": "knowledge", "title": "Walrus"}
    for bad, told in WRONG:
        response = client.post("/v1/resources", {**bad, "upsert": [good, *bad.get("upsert", ())]})
        assert response.status_code == 422 and told in response.json()["detail"], response.text
    assert client.get("/v1/search?q=walrus").json()["total"] == 0


def test_an_unknown_type_is_named(served: Served) -> None:
    response = Client(served[1]).post("/v1/resources", {"upsert": [{"type": "nothing", "title": "x"}]})
    assert response.status_code == 404 and "no type of resources is called 'nothing'" in response.json()["detail"]


def test_only_the_owner_may_write(served: Served) -> None:
    host, app = served
    book = TokenBook(host.home)
    tokens = {
        "reader": book.create("reader", principals=None, scopes=("read",)),
        "ann": book.create("ann", principals=("user:ann",), scopes=("read", "write")),
    }
    item = {"upsert": [{"type": "knowledge", "title": "Walrus", "visibility": ["user:ann"]}]}
    for name, token in tokens.items():
        client = Client(app, token)
        for path, body in (("/v1/resources", item), ("/v1/index", {}), ("/v1/glossary/candidates/x/approve", None)):
            response = client.post(path, body)
            assert (response.status_code, response.json()["code"]) == (403, "denied"), name
    writer = Client(app, book.create("writer", principals=None, scopes=("write",)))
    assert writer.post("/v1/resources", item).json()["added"] == 1
    assert Client(app, tokens["ann"]).get("/v1/search?q=walrus").json()["total"] == 1


def test_an_indexing_run_is_followed_in_the_status(root: Path) -> None:
    with listening(root) as (_, address):
        client = _Remote(address)
        begun = client.ask("POST", "/v1/index", {})
        assert begun[0] == 202 and begun[1]["indexing"]["state"] in ("running", "done")
        status = _finished(client)
        assert status["indexing"]["state"] == "done" and status["indexing"]["report"]["added"] == 1
        assert status["resources"] == 1 and status["daemon"]["documents"] == 1
        (root / "b.md").write_text("A walrus.\n")
        assert client.ask("POST", "/v1/index", {})[1]["started"]
        _finished(client)
        assert client.ask("GET", "/v1/search?q=walrus")[1]["total"] == 1
        assert client.ask("POST", "/v1/index", {"workspace": "absent"})[0] == 404
        assert client.ask("POST", "/v1/index", {"path": "/etc"})[0] == 422


def test_a_run_that_fails_says_why(root: Path) -> None:
    with in_process(root) as (host, _):
        host.index()
    store = next(host.home.glob(f"*/{STORE_FILE}"))
    store.write_bytes(b"no database" * 1000)
    with in_process(root) as (host, _):
        runs = IndexRuns(host)
        assert runs.account() is None and runs.start()
        while (run := runs.account()) and run["state"] == "running":
            time.sleep(0.01)
        assert run is not None and (run["state"], run["error"]["code"]) == ("failed", "store-damaged")
        assert run["error"]["hint"] == "findling index --rebuild"
        runs.close()
        assert not runs.start()


def test_a_run_that_meets_a_fault_has_failed_and_is_logged(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with in_process(root) as (host, _):
        opened = host.opened

        @contextmanager
        def breaking(caller: Caller, workspace: str = "") -> Iterator[Engine]:
            with opened(caller, workspace) as engine:
                if threading.current_thread().name.startswith("findling-index"):
                    raise OSError(5, "the disk gives out")
                yield engine

        host.opened = breaking  # type: ignore[method-assign]
        runs = IndexRuns(host)
        assert runs.start()
        runs.close()
        run = runs.account()
    assert run is not None and (run["state"], run["error"]["code"]) == ("failed", "fault")
    assert run["finished_at"] and "disk" not in run["error"]["detail"]
    assert "the disk gives out" in caplog.text


def test_a_workspace_has_one_run_whatever_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from findling.service.workspace.workspaces import create_workspace

    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.md").write_text("login")
    with in_process(root, {"workspace.name": "team"}) as (host, app):
        monkeypatch.setenv("FINDLING_HOME", str(host.home))
        create_workspace("team", root=root, home=host.home)
        client = Client(app)
        client.post("/v1/index", {"workspace": "team"})
        by_default = _finished(client)
        by_name = client.get("/v1/status?workspace=team").json()
        assert by_default["indexing"] == by_name["indexing"] and by_name["indexing"]["state"] == "done"
        assert by_default["daemon"]["documents"] == 1


def test_what_is_told_of_a_run_that_is_done_is_counted_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends between the count and the rest of the answer, at the latest moment that there is."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.md").write_text("login")
    with in_process(root) as (host, app):
        client, may_end = Client(app), threading.Event()
        index, count = host.index, host.statistics.snapshot

        def held_back(*args: Any, **named: Any) -> Any:
            may_end.wait(PATIENCE_S)
            return index(*args, **named)

        def counted() -> dict[str, Any]:
            facts = count()
            may_end.set()
            for thread in threading.enumerate():
                if thread.name.startswith("findling-index"):
                    thread.join(PATIENCE_S)
            return facts

        monkeypatch.setattr(host, "index", held_back)
        monkeypatch.setattr(host.statistics, "snapshot", counted)
        client.post("/v1/index", {})
        first = client.get("/v1/status").json()
        assert (first["indexing"]["state"], first["daemon"]["documents"]) == ("running", 0)
        then = client.get("/v1/status").json()
        assert (then["indexing"]["state"], then["daemon"]["documents"]) == ("done", 1)


def test_a_server_that_ends_ends_its_runs(root: Path) -> None:
    for number in range(150):
        (root / f"{number}.md").write_text(f"# Note {number}\n\n" + "word " * 200)
    with listening(root) as (_, address):
        _Remote(address).ask("POST", "/v1/index", {})
    with in_process(root) as (_, app):  # whatever was committed is there, and the next run goes on
        client = Client(app)
        client.post("/v1/index", {})
        assert _finished(client)["resources"] == 151


def test_glossary_candidates_are_decided(served: Served) -> None:
    client = Client(served[1])
    pending = client.post("/v1/glossary/refill").json()["pending"]
    candidate = next(one for one in pending if {one["surface"], one["group"]} == {"SSO", "Single Sign-On"})
    assert candidate["snippet"]
    path = f"/v1/glossary/candidates/{candidate['id']}"
    answer = client.post(f"{path}/approve").json()
    assert {term["status"] for term in answer["terms"]} == {"canonical", "alias"}
    found = client.get("/v1/search?q=sso&explain=true").json()
    assert found["plan"]["glossary"][0]["typed"].lower() == "sso"
    for decision in ("approve", "reject"):
        assert client.post(f"{path}/{decision}").status_code == 404
    assert client.post(f"{path}/forget").status_code == 422
    assert client.get("/v1/glossary/candidates").json()["pending"] == [
        one for one in pending if one["id"] != candidate["id"]
    ]


def test_a_rejected_candidate_stays_away(served: Served) -> None:
    client = Client(served[1])
    pending = client.post("/v1/glossary/refill").json()["pending"]
    assert pending
    for candidate in pending:
        answer = client.post(f"/v1/glossary/candidates/{candidate['id']}/reject").json()
        assert [term["status"] for term in answer["terms"]] == ["rejected"]
    assert client.post("/v1/glossary/refill").json()["pending"] == []


def test_listing_candidates_writes_nothing(served: Served) -> None:
    host, app = served
    reader = Client(app, TokenBook(host.home).create("reader", principals=None, scopes=("read",)))
    with host.opened(OWNER) as engine:
        before = engine.state()
    assert reader.get("/v1/glossary/candidates").json()["pending"] == []
    assert reader.get("/v1/glossary/candidates?refill=true").status_code == 422
    assert reader.post("/v1/glossary/refill").status_code == 403
    with host.opened(OWNER) as engine:
        assert engine.state() == before
        assert engine.glossary.terms() == []
    assert Client(app).post("/v1/glossary/refill").json()["pending"]


class _Remote:
    """Asks a server over its socket."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, dict[str, Any]]:
        import httpx2

        response = httpx2.request(method, self._address + path, json=document)
        return response.status_code, response.json()

    def get(self, path: str) -> Any:
        return _Response(self.ask("GET", path)[1])


class _Response:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def json(self) -> dict[str, Any]:
        return self._document


def _finished(client: Client | _Remote) -> dict[str, Any]:
    end = time.monotonic() + PATIENCE_S
    while True:
        status: dict[str, Any] = client.get("/v1/status").json()
        if status["indexing"]["state"] != "running" or time.monotonic() > end:
            return status
        time.sleep(0.02)


def test_memories_over_http(served: Served) -> None:
    host, app = served
    client = Client(app)
    first = client.post("/v1/memories", {"text": "Anna lives in Berlin.", "source": "Ben"}).json()["memory"]
    copy = client.post("/v1/memories", {"text": "Anna resides in Berlin."}).json()["memory"]
    assert (copy["outcome"], copy["rid"]) == ("updated", first["rid"])
    moved = client.post("/v1/memories", {"text": "Anna moved to Ulm.", "until": "2099-01-01"}).json()["memory"]
    assert moved["supersedes"] == first["rid"]
    found = client.get("/v1/memories?query=Anna&mode=keyword").json()
    assert [one["rid"] for one in found["memories"]] == [moved["rid"]]
    assert (found["left_out"], found["schema"]) == (1, 6)
    every = client.get("/v1/memories?query=Anna&mode=keyword&all_versions=true").json()["memories"]
    assert every[-1]["hit"]["receipt"]["superseded_by"] == [moved["rid"]]
    assert client.get("/v1/memories").json()["total"] == 1
    assert len(client.get(f"/v1/memories/history?id={moved['rid']}").json()["versions"]) == 3
    back = client.post("/v1/memories/undo", {"id": first["rid"]}).json()["undone"]
    assert (back["text"], back["other_text"]) == ("Anna lives in Berlin.", "Anna resides in Berlin.")
    likes = [client.post("/v1/memories", {"text": f"Anna likes {one}."}).json()["memory"] for one in ("tea", "rice")]
    pair, beside = client.get("/v1/memories/review").json()["pairs"]
    assert (beside["newer"], beside["older"]) == (moved["rid"], back["other"])
    assert (pair["newer"], pair["older"]) == (likes[1]["rid"], likes[0]["rid"])
    decision = {"newer": pair["newer"], "older": pair["older"], "decision": "keep"}
    assert client.post("/v1/memories/review", decision).json()["decision"] == "keep"
    assert client.get("/v1/memories/review").json()["pairs"] == [beside]
    for path, body, status in (
        ("/v1/memories", {"text": "x", "until": "soon"}, 422),
        ("/v1/memories/undo", {"id": "memory:none"}, 404),
        ("/v1/memories/review", {**decision, "decision": "guess"}, 422),
    ):
        assert client.post(path, body).status_code == status
    assert client.get("/v1/memories?query=Anna&at=someday").status_code == 422
    limited = Client(app, TokenBook(host.home).create("ann", principals=("user:ann",), scopes=("read", "write")))
    assert limited.get("/v1/memories?query=Anna").json()["memories"] == []
    assert limited.post("/v1/memories", {"text": "x"}).status_code == 403
    assert limited.get("/v1/memories/review").status_code == 403
    assert limited.get(f"/v1/memories/history?id={moved['rid']}").status_code == 404
