"""One request of a token of limited rights has a budget; what it does not reach is said, and is no error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.callers import OWNER, Caller
from findling.faces.http.guards import Guard
from findling.service.hosting import Host
from findling.service.tokens import TokenBook
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
        host.take_in()
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


def test_completions_of_a_long_text_are_few(served: tuple[Host, Guard]) -> None:
    host, app = served
    typed = "login " * 1200
    told = Client(app, token(host)).get("/v1/suggest", params={"q": f"{typed}se", "limit": 1000})
    assert told.status_code == 200
    assert len(told.content) < 4 * len(typed)
