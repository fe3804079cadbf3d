"""The guard in front of the HTTP face: who gets in, as whom, and what the others are told."""

from __future__ import annotations

import asyncio
import json
import logging
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Scope

from findling.domain import errors
from findling.domain.permissions import OWNER, Caller
from findling.faces.http.base.problems import Problem, problem_document, problem_response
from findling.faces.http.security.guards import Guard, RateLimits, host_names
from findling.service.server.tokens import TokenBook

Headers = dict[str, str] | Iterable[tuple[str, str]]

LOCAL = ("/run/findling.sock", None)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    document: Any


async def _tell_caller(request: Request) -> Response:
    body = await request.body()
    caller: Caller = request.state.caller
    return JSONResponse(
        {"name": caller.name, "principals": caller.principals, "scopes": sorted(caller.scopes), "body": len(body)},
        headers={"referrer-policy": "same-origin"} if request.url.path == "/page" else None,
    )


def guarded(tokens: TokenBook | None = None, *, app: ASGIApp | None = None, **options: Any) -> Guard:
    methods = ["GET", "POST", "OPTIONS"]
    paths = ("/", "/page", "/healthz", "/assets/app.js", "/v1/search")
    inner = app or Starlette(routes=[Route(path, _tell_caller, methods=methods) for path in paths])
    given = {"names": (), "requires_token": False, "max_body": 1000, "rate": 0, **options}
    return Guard(inner, tokens=tokens, **given)


def ask(
    app: ASGIApp,
    headers: Headers = (),
    *,
    method: str = "GET",
    path: str = "/",
    server: tuple[str, int | None] = ("127.0.0.1", 3463),
    client: str = "192.168.1.9",
    body: Iterable[bytes] = (b"",),
    query: bytes = b"",
) -> Answer:
    """Send one request. It is for localhost unless its headers say otherwise."""
    given = list(headers.items()) if isinstance(headers, dict) else list(headers)
    if "host" not in dict(given):
        given.insert(0, ("host", "localhost:3463"))
    raw = [(name.encode(), value.encode()) for name, value in given if value != "(none)"]
    parts = list(body)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
    }
    scope |= {"headers": raw, "server": server, "client": (client, 1234), "scheme": "http", "root_path": ""}
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    start, *rest = sent
    assert start["type"] == "http.response.start" and not rest[-1].get("more_body")
    names = [name for name, _ in start["headers"]]
    assert len(names) == len(set(names))
    content = b"".join(message["body"] for message in rest)
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], found, json.loads(content))


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def book(tmp_path: Path) -> TokenBook:
    return TokenBook(tmp_path / "workspaces")


# Hosts


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:3463", "127.0.0.1:80", "[::1]:3463"])
def test_own_names_get_in(host: str) -> None:
    assert ask(guarded(), {"host": host}).document["name"] == "owner"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:3463",
        "localhost.evil.example",
        "evil.example#localhost",
        "localhost.",
        "user@localhost",
        "localhost@evil.example",
        "localhost:3463@evil.example",
        "localhost:port",
        "localhost:3463:3463",
        "localhost,evil.example",
        "local\u0125ost",
        "0x7f.0.0.1",
        "0.0.0.0",
        "[::1",
        "[::1]evil.example",
        "http://localhost",
        "",
    ],
)
def test_a_name_that_was_rebound_is_refused(host: str) -> None:
    answer = ask(guarded(), {"host": host})
    assert answer.status == 421
    assert answer.document["code"] == "misdirected-request" and "serve.names" in answer.document["hint"]


def test_the_address_that_was_reached_gets_in() -> None:
    app = guarded()
    for address, host in (
        ("192.168.1.5", "192.168.1.5:3463"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fd00::1", "[fd00::1]"),
    ):
        assert ask(app, {"host": host}, server=(address, 3463)).status == 200
    assert ask(app, {"host": "192.168.1.6"}, server=("192.168.1.5", 3463)).status == 421


def test_a_request_needs_one_host() -> None:
    assert ask(guarded(), {"host": "(none)"}).status == 400
    twice = ask(guarded(), [("host", "localhost"), ("host", "evil.example")])
    assert twice.status == 400 and "twice" in twice.document["detail"]


@pytest.mark.parametrize("name", ["*.example", "http://a.example", "a.example:80", "a b", "", "a/b", "u@a.example"])
def test_what_is_no_name_of_a_host_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(errors.InvalidValueError, match="is no name of a host"):
        host_names([name])


# Origins


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://localhost",
        "http://localhost:8000",
        "http://localhost:3463.evil.example",
        "http://evil@localhost:3463",
        "http://127.0.0.1:3463",
        "file://localhost:3463",
        "chrome-extension://localhost:3463",
        "http://localhost:3463/",
        "http://localhost:3463 http://evil.example",
    ],
)
def test_other_origins_are_refused(origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        answer = ask(guarded(), {"origin": origin}, method=method)
        assert (answer.status, answer.document["code"]) == (403, "cross-origin")
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_same_origin_gets_in(book: TokenBook) -> None:
    app = guarded(book, names=["find.example"])
    token = bearer(book.create("page", principals=None))
    assert ask(app, {"origin": "http://LOCALHOST:3463"}, method="POST").status == 200
    for origin, host in (
        ("https://find.example", "find.example"),
        ("https://find.example", "find.example:443"),
        ("http://find.example:80", "find.example"),
    ):
        assert ask(app, {"origin": origin, "host": host, **token}, method="POST").status == 200
    other = {"origin": "https://find.example:80", "host": "find.example", **token}
    assert ask(app, other, method="POST").status == 403


def test_no_preflight_is_answered() -> None:
    preflight = {"origin": "http://localhost:3463", "access-control-request-method": "POST"}
    answer = ask(guarded(), preflight, method="OPTIONS")
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_two_origins_are_none() -> None:
    both = [("origin", "http://localhost:3463"), ("origin", "http://evil.example")]
    assert ask(guarded(), both, method="POST").status == 400


LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
def test_of_other_sites_only_links_lead_here(site: str) -> None:
    app = guarded()
    assert ask(app, {"sec-fetch-site": site, **LINK}).status == 200
    assert ask(app, {"sec-fetch-site": site, **LINK}, method="POST").document["code"] == "cross-site"
    for mode, dest in (("navigate", "iframe"), ("no-cors", "image"), ("cors", "empty"), ("no-cors", "script")):
        headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
        assert ask(app, headers).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_links_of_other_sites_lead_to_pages_only(site: str) -> None:
    headers = {"sec-fetch-site": site, **LINK}
    assert ask(guarded(), headers, path="/assets/app.js").status == 200
    refused = ["/v1/search", "/v1/glossary/candidates", "/api/v2/search", "/mcp", "/metrics", "/openapi.json"]
    for path in (*refused, "/docs/", "/assets", "//", "/healthz", "/local/stop"):
        answer = ask(guarded(), headers, path=path)
        assert (answer.status, answer.document["code"]) == (403, "cross-site"), path


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_the_own_site_may_ask_anything(site: str) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
    assert ask(guarded(), headers, method="POST").status == 200


# Tokens


def test_a_token_says_who_asks(book: TokenBook) -> None:
    secret = book.create("bot", principals=("user:ann",))
    told = {"name": "bot", "principals": ["user:ann"], "scopes": ["read"], "body": 0}
    for app in (guarded(book, requires_token=True), guarded(book)):
        assert ask(app, bearer(secret)).document == told
        assert ask(app, {"authorization": f"bearer  {secret} "}).document == told


def test_without_a_token_nobody_gets_in_where_one_is_needed(book: TokenBook) -> None:
    answer = ask(guarded(book, requires_token=True))
    assert (answer.status, answer.document["code"]) == (401, "token")
    assert answer.headers["www-authenticate"] == 'Bearer realm="findling"'
    assert "findling token create" in answer.document["hint"]


def test_whoever_comes_through_a_proxy_is_not_the_owner(book: TokenBook) -> None:
    app = guarded(book, names=["find.example"])
    token = bearer(book.create("bot", principals=("user:ann",)))
    for name in ("x-forwarded-for", "x-real-ip", "forwarded", "via", "x-forwarded-host"):
        for passed_on in ([(name, "10.0.0.9")], [(name, "10.0.0.9"), (name, "10.0.0.8")]):
            assert ask(app, passed_on).status == 401
            assert ask(app, [*passed_on, *token.items()]).document["name"] == "bot"
    assert ask(app, {"host": "find.example"}).status == 401
    assert ask(app, {"host": "find.example", **token}).document["name"] == "bot"


def test_a_token_in_the_query_is_none(book: TokenBook) -> None:
    secret = book.create("bot", principals=None)
    for name in ("token", "access_token", "authorization"):
        query = f"{name}={secret}".encode()
        assert ask(guarded(book, requires_token=True), query=query).status == 401


def test_whatever_is_wrong_with_a_token_is_told_alike(tmp_path: Path) -> None:
    now = 1_800_000_000.0
    book = TokenBook(tmp_path / "home", clock=lambda: now)
    revoked = book.create("revoked", principals=None)
    expired = book.create("expired", principals=None, expires_at=now + 1)
    other = TokenBook(tmp_path / "other").create("bot", principals=None)
    for app in (guarded(book, requires_token=True), guarded(book)):
        assert ask(app, bearer(expired)).status == 200
    book.revoke("revoked")
    now += 1
    told = set()
    wrong = [f"Bearer {secret}" for secret in (revoked, expired, other, "fdl_", "", "\u00fc")]
    wrong += [f"Basic {other}", "Bearer", "", f"Token {other}"]
    for app in (guarded(book, requires_token=True), guarded(book), guarded(None)):
        for authorization in wrong:
            answer = ask(app, {"authorization": authorization})
            assert answer.status == 401 and "invalid_token" in answer.headers["www-authenticate"]
            told.add((answer.document["detail"], answer.document["hint"], answer.document["code"]))
    assert len(told) == 1


def test_a_running_server_sees_a_token_come_and_go(book: TokenBook, tmp_path: Path) -> None:
    app = guarded(TokenBook(tmp_path / "workspaces"), requires_token=True)
    assert ask(app, bearer("fdl_x")).status == 401
    secret = book.create("bot", principals=("user:ann",))
    assert ask(app, bearer(secret)).status == 200
    book.revoke("bot")
    assert ask(app, bearer(secret)).status == 401


def test_damaged_tokens_let_nobody_in_and_are_told_in_the_log(
    book: TokenBook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = book.create("bot", principals=None)
    (tmp_path / "workspaces" / ".tokens.json").write_text("{")
    answer = ask(guarded(book), bearer(secret))
    assert (answer.status, answer.document["code"]) == (500, "corrupt")
    assert str(tmp_path) not in json.dumps(answer.document)
    assert str(tmp_path) in caplog.text and "delete it" in caplog.text


def test_open_paths_are_answered_as_nobody(book: TokenBook) -> None:
    app = guarded(book, requires_token=True, open_paths=("/", "/healthz", "/assets/"))
    for path in ("/", "/healthz", "/assets/app.js"):
        assert ask(app, path=path).document == {"name": "nobody", "principals": [], "scopes": [], "body": 0}
        assert ask(app, bearer("fdl_wrong"), path=path).status == 401
    for path in ("/page", "/v1/search", "/healthz/", "/assets", "//healthz"):
        assert ask(app, path=path).status == 401
    default = guarded(book, requires_token=True)
    assert (ask(default, path="/healthz").status, ask(default, path="/").status) == (200, 401)


def test_bad_tokens_leave_no_trace_in_memory(book: TokenBook) -> None:
    secret = book.create("bot", principals=None)
    app = guarded(book, requires_token=True, rate=50)
    request: Scope = {"type": "http", "method": "GET", "path": "/", "server": ("127.0.0.1", 1), "scheme": "http"}

    def try_tokens(first: int, count: int) -> None:
        for number in range(first, first + count):
            headers = [(b"host", b"localhost"), (b"authorization", b"Bearer fdl_%d" % number)]
            found = app._admit({**request, "headers": headers, "client": (f"10.0.{number >> 8}.{number & 255}", 1)})
            assert isinstance(found, Problem) and found.status == 401

    try_tokens(0, 2000)  # as many addresses as are remembered, and more
    tracemalloc.start()
    try:
        try_tokens(2000, 10_000)
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert grown < 300_000  # 1,024 addresses that took the place of others; a kilobyte each for all would be 10 MB
    assert len(app._by_address) == 1024
    assert ask(app, bearer(secret)).status == 200


# The socket of the owner


def test_the_socket_is_the_owner(book: TokenBook) -> None:
    app = guarded(book, requires_token=True)
    for headers in ({"host": "(none)"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, bearer("wrong")):
        assert ask(app, headers, server=LOCAL, method="POST").document["name"] == OWNER.name


# Limits


def _pieces(size: int) -> list[bytes]:
    return [b"x" * 100 for _ in range(size // 100)]


def test_a_large_body_is_refused_before_it_is_read() -> None:
    for size in ("1001", "9" * 18, "9" * 5000):
        answer = ask(guarded(), {"content-length": size}, method="POST", body=())
        assert (answer.status, answer.document["code"]) == (413, "too-large")
    fits = ask(guarded(), {"content-length": "1000"}, method="POST", body=_pieces(1000))
    assert fits.document["body"] == 1000
    assert ask(guarded(), {"content-length": "-1"}, method="POST", body=()).status == 400


def test_a_body_in_pieces_is_cut_off() -> None:
    app = guarded()
    assert ask(app, {"transfer-encoding": "chunked"}, method="POST", body=_pieces(1000)).document["body"] == 1000
    for server in (("127.0.0.1", 3463), LOCAL):
        answer = ask(app, method="POST", body=_pieces(100_000), server=server)
        assert (answer.status, answer.document["code"]) == (413, "too-large")


def test_only_what_takes_documents_takes_large_bodies() -> None:
    paths = ("/v1/search", "/v1/resources", "/mcp")
    inner = Starlette(routes=[Route(path, _tell_caller, methods=["POST"]) for path in paths])
    app, size = guarded(app=inner, max_body=400_000), 300_000
    for path in paths:
        for sized in ({"content-length": str(size)}, {"transfer-encoding": "chunked"}):
            status = ask(app, sized, method="POST", path=path, body=_pieces(size)).status
            assert status == (413 if path == "/v1/search" else 200)
    assert ask(app, method="POST", path="/v1/search", body=_pieces(size), server=LOCAL).status == 200
    assert ask(app, method="POST", path="/v1/search", body=_pieces(262_100)).status == 200
    assert ask(app, method="POST", path="/v1/resources", body=_pieces(400_100)).status == 413


def test_only_the_owner_sends_large_bodies(book: TokenBook) -> None:
    """To take apart 16 MB of JSON costs 7 CPU seconds, in the thread that everybody waits for."""
    inner = Starlette(routes=[Route("/mcp", _tell_caller, methods=["POST"])])
    app, size = guarded(book, app=inner, max_body=400_000), 300_000
    ann = bearer(book.create("ann", principals=("user:ann",), scopes=("read", "write")))
    owner = bearer(book.create("mine", principals=None))
    for sized in ({"content-length": str(size)}, {"transfer-encoding": "chunked"}):
        assert ask(app, {**ann, **sized}, method="POST", path="/mcp", body=_pieces(size)).status == 413
        assert ask(app, {**owner, **sized}, method="POST", path="/mcp", body=_pieces(size)).status == 200


def test_what_an_app_makes_of_half_a_body_is_not_sent() -> None:
    api = FastAPI()
    api.post("/")(_take)

    async def careless(request: Request) -> Response:
        try:
            await request.body()
        except Exception:
            return JSONResponse({"detail": "what was that?"}, 500)
        return JSONResponse({})

    for app in (api, Starlette(routes=[Route("/", careless, methods=["POST"])])):
        answer = ask(guarded(app=app), {"content-type": "application/json"}, method="POST", body=_pieces(2000))
        assert (answer.status, answer.document["code"]) == (413, "too-large")


async def _take(values: dict[str, int]) -> dict[str, int]:
    return values


def test_each_token_has_a_rate_of_its_own(book: TokenBook) -> None:
    app = guarded(book, requires_token=True, rate=0.01)
    first, second = (book.create(name, principals=None) for name in ("first", "second"))
    assert ask(app, bearer(first)).status == 200
    answer = ask(app, bearer(first), client="192.168.1.10")
    assert (answer.status, answer.document["code"]) == (429, "busy")
    assert 90 <= int(answer.headers["retry-after"]) <= 100
    assert ask(app, bearer(second)).status == 200


def test_guesses_are_limited_by_address(book: TokenBook) -> None:
    app = guarded(book, requires_token=True, rate=0.01)
    assert [ask(app, bearer(f"fdl_{number}")).status for number in range(3)] == [401, 429, 429]
    assert ask(app, path="/healthz").status == 429
    assert ask(app, bearer("fdl_x"), client="192.168.1.10").status == 401


def test_the_owner_is_not_limited_on_the_machine_itself(book: TokenBook) -> None:
    app = guarded(book, rate=0.01)
    assert {ask(app).status for _ in range(5)} == {200}
    assert {ask(app, server=LOCAL).status for _ in range(5)} == {200}


def test_a_first_request_is_let_through_at_any_time() -> None:
    for number in range(2_000):
        limits = RateLimits(0.01, clock=lambda now=33_000 + number / 7: now)  # type: ignore[misc]
        assert limits.wait("a") == 0.0


def test_a_rate_lets_two_seconds_of_requests_come_at_once() -> None:
    now = 0.0
    limits = RateLimits(8, clock=lambda: now)
    assert [limits.wait("a") for _ in range(16)] == [0.0] * 16
    assert limits.wait("a") == 0.125
    assert limits.wait("a") == 0.125  # what was refused is not counted
    assert limits.wait("b") == 0.0
    now += 0.125
    assert limits.wait("a") == 0.0 and limits.wait("a") > 0
    now += 100.0
    assert [limits.wait("a") for _ in range(16)] == [0.0] * 16
    assert limits.wait("a") > 0


def test_only_so_many_callers_are_remembered() -> None:
    limits = RateLimits(1, most=3, clock=lambda: 0.0)
    for name in ("a", "b", "a", "c", "d", "e"):
        limits.wait(name)
    assert len(limits) == 3
    assert RateLimits(0).wait("a") == 0.0


# Answers


def test_every_answer_has_an_id_and_protection() -> None:
    app = guarded()
    answers = [ask(app), ask(app, {"host": "evil.example"}), ask(app, method="POST", body=_pieces(2000))]
    for answer in answers:
        assert len(answer.headers["x-request-id"]) == 16
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert len({answer.headers["x-request-id"] for answer in answers}) == 3
    refused = answers[1]
    assert refused.document["instance"] == refused.headers["x-request-id"]
    assert refused.headers["content-type"] == "application/problem+json"
    assert ask(app, path="/page").headers["referrer-policy"] == "same-origin"  # an app may be stricter or laxer


def test_logs_hold_neither_tokens_nor_questions(book: TokenBook, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = book.create("bot", principals=None)
    app = guarded(book, requires_token=True)
    for headers in (bearer(secret), bearer("fdl_guess"), {"host": "evil.example", **bearer(secret)}, {}):
        ask(app, headers, query=b"q=my+secret+question", path="/v1/search")
    assert "refused: 401" in caplog.text and "refused: 421" in caplog.text
    for word in (secret, "fdl_", "question", "evil.example"):
        assert word not in caplog.text


def test_a_websocket_is_refused() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"localhost")], "server": ("127.0.0.1", 1)}
    asyncio.run(guarded()(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
    upgrade = ask(guarded(), {"upgrade": "WebSocket", "connection": "upgrade"})
    assert upgrade.status == 400 and upgrade.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.UsageError("x"), 422),
        (errors.UnknownSettingError("x"), 422),
        (errors.NotFoundError("x"), 404),
        (errors.PathNotFoundError("x"), 404),
        (errors.TokenError("x"), 401),
        (errors.DeniedError("x"), 403),
        (errors.BusyError("x"), 503),
        (errors.OverdueError("x"), 504),
        (errors.NotIndexedError("x"), 409),
        (errors.LockedError("x"), 503),
        (errors.QuotaError("x"), 507),
        (errors.DiskFullError("x"), 507),
        (errors.CorruptError("x"), 500),
        (errors.MissingExtraError("x"), 500),
    ],
)
def test_every_error_has_a_status(error: errors.FindlingError, status: int) -> None:
    error.hint = "the next step"
    response = problem_response(error, instance="abc")
    document = json.loads(bytes(response.body))
    assert response.status_code == document["status"] == status
    assert (document["detail"], document["hint"], document["code"]) == ("x", "the next step", error.code)
    assert (document["instance"], document["type"]) == ("abc", f"urn:findling:problem:{error.code}")
    assert ("retry-after" in response.headers) == isinstance(error, errors.BusyError | errors.LockedError)
    assert ("www-authenticate" in response.headers) == isinstance(error, errors.TokenError)
    assert response.headers["cache-control"] == "no-store"


def test_others_are_not_told_of_files_of_the_owner() -> None:
    hidden = problem_document(errors.CorruptError("/home/zoe/x is damaged", hint="rm /home/zoe/x"), is_owner=False)
    assert "zoe" not in json.dumps(hidden) and hidden["code"] == "corrupt"
    told = problem_document(errors.NotFoundError("there is no x"), is_owner=False)
    assert told["detail"] == "there is no x"


def test_a_path_that_is_no_text_can_be_told() -> None:
    response = problem_response(errors.PathNotFoundError("a\udcffb is not there"), errors=[{"at": 3}])
    document = json.loads(bytes(response.body))
    assert document["detail"] == "a?b is not there" and document["errors"] == [{"at": 3}]
    assert problem_document(404)["detail"] == "Not Found"
