"""The short way to /v1/search answers every request as the framework would, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from findling.faces.http.base.problems import tell_errors
from findling.faces.http.request.context import CheckedRoute
from findling.faces.http.routes.search_routes import search, search_by_address
from findling.faces.http.security.guards import Guard
from findling.service.server.engine_pool import MAX_BODY
from findling.service.server.tokens import TokenBook
from tests.faces.http_servers import Client, in_process

TYPES = ("application/json", "Application/JSON; charset=utf-8", "application/x+json", "text/plain", "json", "")

BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'{"query":"roadmap"}',
    b'{"query":"roadmap","limit":1,"explain":true,"filters":{"ext":["md"]},"facets":["ext"]}',
    b'{"query":"roadmap","nope":1}',
    b'{"query":5}',
    b'{"query":"a","query":"b"}',
    b'{"query":"a","limit":-1}',
    b'{"query":"a","filters":{"ext":["py"],"x":1}}',
    b'{"query":"a","plan":{"mode":"bad"}}',
    b'{"query":"a","timeout_s":NaN}',
    b"\xff\xfe{",
    b"[" * 100_000,
)

ADDRESSES = (
    "",
    "q=roadmap",
    "q=roadmap&ext=py&ext=md&limit=2&facets=ext",
    "q=a&q=b",
    "q=a&nope=1",
    "q=a&limit=x",
    "q=%ff",
    "limit=3",
    "q=a&after=zzz",
    "q=roadmap&cursor=zz",
    "q=roadmap&workspace=nope",
    "&".join(f"a{number}=1" for number in range(300)),
)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Client], str]]:
    """Clients of the app, and of the same endpoints on routes of the framework; and a token that may not read."""
    root = tmp_path_factory.mktemp("direct") / "tree"
    root.mkdir()
    (root / "a.md").write_text("The roadmap for spring.\n" * 50)
    (root / "b.py").write_text("def roadmap(): pass\n")
    with in_process(root) as (host, guard):
        host.index()
        direct = guard._app
        assert isinstance(direct, FastAPI)
        router = APIRouter(route_class=CheckedRoute)
        router.add_api_route("/v1/search", search, methods=["POST"])
        router.add_api_route("/v1/search", search_by_address, methods=["GET"])
        plain = FastAPI(
            redirect_slashes=False, middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)]
        )
        plain.state.served = direct.state.served
        plain.include_router(router)
        tell_errors(plain)
        book = TokenBook(host.home)
        limits: dict[str, Any] = {"names": ("testserver",), "requires_token": False, "max_body": MAX_BODY, "rate": 0.0}
        apps = {name: Guard(app, tokens=book, **limits) for name, app in (("direct", direct), ("plain", plain))}
        yield (
            {name: Client(app) for name, app in apps.items()},
            book.create("ann", principals=("user:ann",), scopes=("write",)),
        )


def same(clients: dict[str, Client], method: str, path: str, **options: Any) -> int:
    """The status that both answer with; all else has to be the same, too."""
    told = []
    for client in clients.values():
        response = client.ask(method, path, **options)
        headers = {name: value for name, value in response.headers.items() if name != "x-request-id"}
        text = re.sub(r'"timings_ms":\{[^}]*\}|"instance": "[0-9a-f]*"', "", response.text)
        if text != response.text:
            headers.pop("content-length", None)
        told.append((response.status_code, headers, text))
    assert told[0] == told[1], (method, path, options)
    return int(told[0][0])


@pytest.mark.parametrize("kind", TYPES)
def test_bodies(clients: tuple[dict[str, Client], str], kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    statuses = {same(clients[0], "POST", "/v1/search", content=body, headers=headers) for body in BODIES}
    assert statuses == ({200, 400, 422} if kind.lower().startswith("application/") else {422})


def test_addresses(clients: tuple[dict[str, Client], str]) -> None:
    statuses = {same(clients[0], "GET", f"/v1/search?{query}") for query in ADDRESSES}
    assert statuses == {200, 404, 422}
    for query in ADDRESSES:
        same(clients[0], "POST", f"/v1/search?{query}", json={"query": "roadmap"})


def test_other_methods_and_encodings(clients: tuple[dict[str, Client], str]) -> None:
    assert same(clients[0], "PUT", "/v1/search", json={}) == 405
    assert same(clients[0], "GET", "/v1/search/") == 404
    assert same(clients[0], "GET", "/v1/search?q=roadmap", headers={"accept-encoding": "gzip"}) == 200


def test_rights_come_before_the_body(clients: tuple[dict[str, Client], str]) -> None:
    known, token = clients
    bearer = {"authorization": f"Bearer {token}"}
    assert same(known, "POST", "/v1/search", content=b"{", headers=bearer) == 403
    assert same(known, "POST", "/v1/search", content=b"{", headers={"authorization": "Bearer x"}) == 401


def test_a_fault_is_a_500_without_detail(
    clients: tuple[dict[str, Client], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("findling.faces.http.routes.search_routes.searched", broken)
    assert same(clients[0], "POST", "/v1/search", json={"query": "roadmap"}) == 500
