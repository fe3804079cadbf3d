"""The guard: it checks every request before anything else sees it."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from secrets import token_hex

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from findling.domain.errors import FindlingError, InvalidValueError, TokenError
from findling.domain.permissions import OWNER, Caller
from findling.faces.http.base.problems import CHALLENGE, Problem, as_problem, problem_response, protection
from findling.service.server.tokens import TokenBook

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names that always stand for this machine."""

_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^\s\[\]:@/?#\\]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#@\s]+)", re.ASCII)
_DEFAULT_PORTS = {"http": "80", "https": "443"}

_OWN_SITES = (b"none", b"same-origin")
"""Typed into the browser, or asked by a page of ours."""

_PAGES, _PAGE_FILES = ("/", "/docs"), "/assets/"
"""Targets of links on other sites: pages that hold nothing of the index."""


def host_names(names: Iterable[str]) -> frozenset[str]:
    """Names of hosts as `_check_host` compares them, those of this machine among them.

    Raises InvalidValueError for what is no name or address of a host: one with a port, a path or a wildcard.
    """
    found = set(LOOPBACK)
    for name in names:
        plain = name.strip().lower().removeprefix("[").removesuffix("]")
        is_host = _AUTHORITY.fullmatch(f"[{plain}]" if ":" in plain else plain) and "*" not in plain
        if not is_host:
            raise InvalidValueError(f"{name!r} is no name of a host", hint="such as findling.example or 192.168.1.5")
        found.add(plain)
    return frozenset(found)


def _check_host(host: bytes | None, names: frozenset[str], reached: str) -> Problem | None:
    """The fault of a Host header. `reached` is the address at which the connection came in.

    A page whose name was rebound to this machine still sends its own name. An address cannot be rebound.
    """
    if host is None:
        return Problem(400, "the request has no Host header")
    if _name_in(host) in names or _is_own_host(host, reached):
        return None
    return Problem(421, "the request is for another host", "add its name to the setting serve.names")


def _is_own_host(host: bytes, reached: str) -> bool:
    """Whether a Host header names this machine itself, or the address that was reached, and no other name for it."""
    name = _name_in(host)
    return name in LOOPBACK or (name is not None and name == reached.removeprefix("::ffff:"))


def _check_origin(headers: Mapping[bytes, bytes]) -> Problem | None:
    """The fault of an Origin header, which browsers send with requests of a page."""
    if b"access-control-request-method" in headers:
        return Problem(403, "pages of other origins may not ask", code="cross-origin")
    sent = headers.get(b"origin")
    if sent is None:
        return None
    origin = _ORIGIN.fullmatch(sent.decode("latin-1").lower())
    if origin is not None:
        port = f":{_DEFAULT_PORTS[origin['scheme']]}"
        host = headers[b"host"].decode("latin-1").lower()
        if origin["authority"].removesuffix(port) == host.removesuffix(port):
            return None
    return Problem(403, "pages of other origins may not ask", code="cross-origin")


def _check_site(method: str, path: str, headers: Mapping[bytes, bytes]) -> Problem | None:
    """The fault of the site that a browser names: from other sites only links to pages may lead here.

    A link to anything else would have it done without the page that holds the link seeing an answer.
    """
    if headers.get(b"sec-fetch-site", b"none") in _OWN_SITES:
        return None
    is_link = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    is_page = path in _PAGES or path.startswith(_PAGE_FILES)
    if is_link and is_page and method == "GET":
        return None
    return Problem(403, "pages of other sites may not ask", code="cross-site")


def _name_in(host: bytes) -> str | None:
    authority = _AUTHORITY.fullmatch(host.decode("latin-1").lower())
    return None if authority is None else authority["v6"] or authority["name"]


_BURST_S = 2.0
"""For how long a caller may have saved up requests."""


class RateLimits:
    """So many requests a second for each of many callers; what was not asked for two seconds may come at once.

    It remembers `most` callers, those that asked last. A rate of 0 is no limit.
    """

    def __init__(self, rate: float, *, most: int = 1024, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = 1 / rate if rate > 0 else 0.0
        self._saved = max(_BURST_S, self._pause)  # a rate below one in two seconds lets one through as well
        self._most = most
        self._clock = clock
        self._booked: dict[str, float] = {}
        """Caller → until when the rate is used up; those that asked last come last."""

    def __len__(self) -> int:
        return len(self._booked)

    def wait(self, caller: str) -> float:
        """Count a request of a caller: 0 when it may come, else the seconds after which it might, uncounted."""
        if not self._pause:
            return 0.0
        now = self._clock()
        booked = max(self._booked.pop(caller, now), now)
        # Differences first: by rounding, `now + pause - now` can exceed the pause, and a first request was refused.
        early = (booked - now) + (self._pause - self._saved)
        self._booked[caller] = booked if early > 0 else booked + self._pause
        if len(self._booked) > self._most:
            del self._booked[next(iter(self._booked))]
        return max(early, 0.0)


class CappedBody:
    """The body of one request, cut off behind `most` bytes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    @property
    def is_too_large(self) -> bool:
        """Whether more has come than may."""
        return self._left < 0

    async def __call__(self) -> Message:
        """The next part. Raises HTTPException, which frameworks let through, when it is too much."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self.is_too_large:
            raise HTTPException(413)
        return message


NOBODY = Caller("nobody")
"""A caller without a token where one is needed; sees nothing and may do nothing."""

OPEN_PATHS = ("/healthz", "/readyz")
"""Paths that are answered without a token."""

_CHECKED = {
    b"access-control-request-method",
    b"authorization",
    b"content-length",
    b"host",
    b"origin",
    b"sec-fetch-dest",
    b"sec-fetch-mode",
    b"sec-fetch-site",
    b"upgrade",
}

_FORWARDED = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})
"""Headers that a proxy adds. Behind one, everybody seems to be on this machine."""

_LARGE_PATHS = ("/v1/resources", "/mcp", "/mcp/")
_SMALL_BODY = 262_144
"""Bytes of a body that is for any other path: a question with all its filters has a few thousand."""

_log = logging.getLogger("findling.http")


class Guard:
    """ASGI middleware that lets a request through once it is known who asks, as `scope["state"]["caller"]`.

    `names` are those that this server goes by, besides the ones of the machine itself. `requires_token` is for every
    server that others can reach; what a proxy passes on, or is for one of `names`, needs a token anyway. `open_paths`
    are answered without a token, too; one that ends in a slash stands for all that begin with it. Nothing larger than
    `max_body` is read, and over the network nothing larger than 256 KB, unless it is the owner's and for what takes
    documents. Every response gets an id, in `scope["state"]["request_id"]` as well.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Iterable[str],
        tokens: TokenBook | None,
        requires_token: bool,
        max_body: int,
        rate: float,
        open_paths: Iterable[str] = OPEN_PATHS,
    ) -> None:
        self._app = app
        self._names = host_names(names)
        self._tokens = tokens
        self._requires_token = requires_token
        self._max_body = max_body
        paths = tuple(open_paths)
        self._open = frozenset(paths)
        self._open_folders = tuple(path for path in paths if path.endswith("/") and path != "/")
        # Apart, so that no number of addresses can make the limit of a token forgotten.
        self._by_token, self._by_address = RateLimits(rate), RateLimits(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = token_hex(8)
        send = _with_headers(send, request_id)
        found = self._admit(scope)
        if isinstance(found, Problem):
            # Neither address nor query: both may hold what nobody else should read.
            _log.info("request %s refused: %d %s", request_id, found.status, found.code)
            await problem_response(found, instance=request_id)(scope, receive, send)
            return
        caller, has_size = found
        scope.setdefault("state", {}).update(caller=caller, request_id=request_id)
        with suppress(ClientDisconnect):  # gone before the end of the request: nobody waits, nothing is wrong here
            if has_size:
                await self._app(scope, receive, send)
            else:
                await self._answer_capped(scope, receive, send, request_id)

    async def _answer_capped(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        """Have a request answered whose size shows only when it has come."""
        most = self._most_bytes(scope, scope["state"]["caller"])
        body = CappedBody(receive, most)
        has_started = False

        async def send_unless_too_large(message: Message) -> None:
            nonlocal has_started
            if body.is_too_large and not has_started:
                return  # whatever was made of a part of the body
            has_started = True
            await send(message)

        try:
            await self._app(scope, body, send_unless_too_large)
        except HTTPException:
            if not body.is_too_large or has_started:
                raise
        if body.is_too_large and not has_started:
            _log.info("request %s refused: 413", request_id)
            await problem_response(_too_large(most), instance=request_id)(scope, receive, send)

    def _admit(self, scope: Scope) -> tuple[Caller, bool] | Problem:
        """The caller, and whether the size of the body is known; or the reason to refuse."""
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _CHECKED:
                if name in headers:
                    return Problem(400, f"the request has the header {name.decode()} twice")
                headers[name] = value
            elif name in _FORWARDED:
                headers[name] = value
        caller = OWNER if is_local(scope) else self._remote_caller(scope, headers)
        if isinstance(caller, Problem):
            return caller
        size = headers.get(b"content-length")
        if size is None:
            return caller, False
        if not size.isdigit():
            return Problem(400, "Content-Length is no number")
        # No number of more digits is read: Python refuses those of 4,300, and no limit has 19.
        most = self._most_bytes(scope, caller)
        return _too_large(most) if len(size) > 18 or int(size) > most else (caller, True)

    def _most_bytes(self, scope: Scope, caller: Caller) -> int:
        # Only the owner sends documents. To take 16 MB of JSON apart costs 7 CPU seconds, and everybody else waits.
        is_large = is_local(scope) or (caller.is_owner and scope["path"] in _LARGE_PATHS)
        return self._max_body if is_large else min(self._max_body, _SMALL_BODY)

    def _remote_caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller | Problem:
        if headers.get(b"upgrade", b"").lower() == b"websocket":
            return Problem(400, "there are no websockets here", headers={"connection": "close"})
        reached = (scope.get("server") or ("", 0))[0]
        return (
            _check_host(headers.get(b"host"), self._names, reached)
            or _check_origin(headers)
            or _check_site(scope["method"], scope["path"], headers)
            or self._bearer(scope, headers, reached)
        )

    def _bearer(self, scope: Scope, headers: Mapping[bytes, bytes], reached: str) -> Caller | Problem:
        """The caller of the token; without one the owner, where only the machine itself can connect."""
        authorization = headers.get(b"authorization")
        if authorization is None and not self._requires_token:
            is_direct = _is_own_host(headers[b"host"], reached) and _FORWARDED.isdisjoint(headers)
            if is_direct:
                return OWNER
        caller = NOBODY if authorization is None else self._caller_of(authorization)
        if isinstance(caller, Caller) and caller is not NOBODY:
            return _too_many(self._by_token.wait(caller.name)) or caller
        refused = _too_many(self._by_address.wait((scope.get("client") or ("", 0))[0]))
        if refused is not None or isinstance(caller, Problem):
            return refused or caller
        path = scope["path"]
        if path in self._open or path.startswith(self._open_folders):
            return NOBODY
        return as_problem(
            TokenError("a token is needed here", hint="send Authorization: Bearer and what findling token create gives")
        )

    def _caller_of(self, authorization: bytes) -> Caller | Problem:
        scheme, _, secret = authorization.decode("latin-1").partition(" ")
        try:
            if scheme.lower() != "bearer" or self._tokens is None:
                raise TokenError("")
            return self._tokens.caller(secret.strip())
        except TokenError:
            # One text for whatever is wrong with it, so that nobody learns which tokens there once were.
            headers = {"www-authenticate": f'{CHALLENGE}, error="invalid_token"'}
            return Problem(401, "the token is not valid", "findling token create gives a new one", "token", headers)
        except FindlingError as error:
            _log.error("%s; try: %s", error.message, error.hint)
            return as_problem(error, is_owner=False)


def is_local(scope: Scope) -> bool:
    """Whether a request came over the unix socket, which nobody but the owner can open."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _too_large(most: int) -> Problem:
    return Problem(413, f"the request is larger than {most} bytes", "send less at once", "too-large")


def _too_many(wait_s: float) -> Problem | None:
    if not wait_s:
        return None
    headers = {"retry-after": str(math.ceil(wait_s))}
    return Problem(429, "too many requests", "wait for the time in Retry-After", "busy", headers)


def _with_headers(send: Send, request_id: str) -> Send:
    """Send responses with their id, and with what keeps browsers from taking them for something else."""
    added = protection(request_id)

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name for name, _ in headers}
            headers += [header for header in added if header[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_headers
