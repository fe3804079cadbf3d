"""One request of a token of limited rights has a budget; what it does not reach is said, and is no error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.permissions import OWNER, Caller
from findling.domain.resources import Document
from findling.faces.http.security.guards import Guard
from findling.service.index.views import VisibleStore
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from tests.faces.http_servers import Client, in_process

ANN = Caller("ann", ("user:ann",), frozenset({"read"}))
DEAR: dict[str, Any] = {"query": "login", "limit": 1000, "plan": {"collapse": True, "overfetch": 100, "boosts": True}}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Host, Guard]]:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(600):
        (root / f"{number}.md").write_text(f"# Login {number}\n\nA login and its session, the one of day {number}.\n")
    with in_process(root, {"permissions.unset": "public", "serve.cpu_s": 1000.0}) as (host, app):
        host.index()
        host.warm_up()
        yield host, app


def token(host: Host) -> str:
    return TokenBook(host.home).create("ann", principals=ANN.principals)


def test_the_budget_of_a_token_is_smaller_than_that_of_the_owner(served: tuple[Host, Guard]) -> None:
    host, _ = served
    ann, owner = host.budget(ANN), host.budget(OWNER)
    assert ann.candidates < owner.candidates
    assert ann.left["read"] < owner.left["read"]
    for budget in (ann, owner):
        budget.charge(1000.0)
    assert ann.is_over()
    assert not owner.is_over()


def test_a_dear_request_ends_in_a_degraded_answer(served: tuple[Host, Guard]) -> None:
    host, app = served
    told = Client(app, token(host)).ask("POST", "/v1/search", json=DEAR)
    assert told.status_code == 200
    answer = told.json()
    assert answer["total"] == 600
    assert any("for the best passages alone" in one["what"] for one in answer["degraded"])
    owners = Client(app).ask("POST", "/v1/search", json=DEAR).json()
    assert not any("for the best passages alone" in one["what"] for one in owners["degraded"])


def test_fifty_expressions_end_in_a_degraded_answer(served: tuple[Host, Guard]) -> None:
    """They ended in 504: between two looks at the clock lay a megabyte, and each began anew."""
    host, app = served
    query = " OR ".join(f"/[a-z].[{one}-z].{end}/" for one in "abcdefghijklmnopqrstuvwxy" for end in "eo")
    host.settings = host.settings.override({"serve.cpu_s": 0.05}, "test")
    told = Client(app, token(host)).ask("POST", "/v1/search", json={"query": query})
    assert told.status_code == 200
    assert any("was not looked for in" in one["what"] for one in told.json()["degraded"]), told.json()


def test_whole_passages_are_read_without_their_documents(
    served: tuple[Host, Guard], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, app = served
    client, body = Client(app, token(host)), {"query": "login", "limit": 100}
    client.post("/api/v2/search", body)
    read: list[str] = []
    document = VisibleStore.document

    def counting(store: VisibleStore, rid: str) -> Document | None:
        read.append(rid)
        return document(store, rid)

    monkeypatch.setattr(VisibleStore, "document", counting)
    results = client.post("/api/v2/search", body).json()["results"]
    assert len(results) == 100
    assert all(one["chunk_text"].startswith("# Login") for one in results)
    assert read == []


def test_a_stream_is_not_answered_twice_where_once_was_dear(served: tuple[Host, Guard]) -> None:
    host, app = served
    client = Client(app, token(host))

    def whole(**changes: Any) -> dict[str, Any]:
        events = client.post("/v1/search/stream", {"query": "login session", **changes}).text.split("\n\n")
        named = dict(one.removeprefix("event: ").split("\ndata: ", 1) for one in events if one)
        assert list(named) == ["candidates", "reranked", "done"]
        answer: dict[str, Any] = json.loads(named["reranked"])
        return answer

    assert not any("nothing was read again" in one["what"] for one in whole()["degraded"])
    host.settings = host.settings.override({"serve.cpu_s": 1e-6}, "test")
    dear = whole(limit=20)
    assert any("nothing was read again" in one["what"] for one in dear["degraded"])
    assert dear["hits"]


def test_an_explanation_ends_with_the_budget(served: tuple[Host, Guard]) -> None:
    host, app = served
    client, asked = Client(app, token(host)), "/v1/explain?q=login&limit=1&id=7.md"
    assert {one["leg"] for one in client.get(asked).json()["legs"]} >= {"keyword"}
    host.settings = host.settings.override({"serve.cpu_s": 1e-6}, "test")
    told = client.get(asked).json()
    assert (told["legs"], told["rid"]) == ([], "file:7.md")
    assert any("its rank in each leg was not counted" in one["what"] for one in told["degraded"])


def test_completions_of_a_long_text_are_few(served: tuple[Host, Guard]) -> None:
    host, app = served
    typed = "login " * 1200
    told = Client(app, token(host)).get("/v1/suggest", params={"q": f"{typed}se", "limit": 1000})
    assert told.status_code == 200
    assert len(told.content) < 4 * len(typed)
