"""HTTP client for JSON services on top of urllib3: one deadline per request, retries, one host for the key.

The client verifies every certificate. It follows no redirect, so neither the key nor a text reaches another host.
It reads `HTTPS_PROXY` and `NO_PROXY` as `urllib` does, for https addresses only. Connections stay open for reuse.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from http.client import IncompleteRead
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from findling.domain.errors import InvalidValueError, ProviderError
from findling.models.remote.dialects import is_oversize, is_spent, reason

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool


class Address(NamedTuple):
    """A web address in parts; `path` has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(url: str) -> Address:
    """The address in a URL; without a scheme it means https, and http on this machine or a private network.

    Raises InvalidValueError for anything but a plain http or https address, and for one that holds a password.
    """
    scheme, mark, _ = url.partition("://")
    try:
        parts = urlsplit(url if mark else f"//{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidValueError("base_url is not a plain web address", hint=_HINT) from None
    if parts.username is not None or parts.password is not None:
        raise InvalidValueError(
            f"base_url for {host} holds a user's name or password",
            hint="Leave it out: the key belongs into the environment variable of the provider.",
        )
    if not mark:
        scheme = "http" if _is_private(host) else "https"
    scheme = scheme.lower()
    if scheme not in ("http", "https") or not host or not host.isascii() or parts.query or parts.fragment:
        raise InvalidValueError("base_url is not a plain web address", hint=_HINT)
    return Address(scheme, host, port or (443 if scheme == "https" else 80), parts.path.rstrip("/"))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _ip_address(host)
    return address is not None and address.is_loopback


def https_proxy(host: str) -> tuple[str, dict[str, str]] | None:
    """The proxy for https and this host, by the rules of `urllib`: its URL, and the headers that log in to it."""
    url = getproxies().get("https", "")
    if not url or is_loopback(host) or proxy_bypass(host):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if not parts.hostname:
        return None
    headers = {}
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(secret).decode('ascii')}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", headers


_HINT = "Write it like https://models.example.org/v1."


def _is_private(host: str) -> bool:
    address = _ip_address(host)
    if address is not None:
        return address.is_private
    return is_loopback(host) or "." not in host or host.endswith(".local")


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


# TCP repeats its first packet after 1 s: a host that stays silent for 3 s is absent.
_CONNECT_S = 3.0
# After a time-out the client spares the host for so long: no search waits for it again and again.
_REST_S = 10.0
_MOST_TRIES = 3
_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 60.0
# 256 vectors of 4,096 numbers written out are 21 MB.
_MOST_BYTES = 64_000_000
# urllib3 logs a warning for each connection beyond this number.
_MOST_IDLE = 100
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class OversizeError(ProviderError):
    """The request holds more than the provider takes at once."""


class HttpClient:
    """Posts JSON to one service; every failure is a ProviderError that names it, its host and the next step.

    `headers` go with every request and hold the key; by default it is a bearer token. `attempts` counts the requests
    that were tried, over all threads. `most_bytes` bounds an answer; the default is three times the largest usual one.
    """

    def __init__(
        self,
        service: str,
        address: Address,
        *,
        api_key: str = "",
        key_hint: str = "",
        headers: Mapping[str, str] | None = None,
        most_bytes: int = 0,
    ) -> None:
        self.service = service
        self.address = address
        self.attempts = 0
        self._api_key = api_key
        self._own = headers if headers is not None else {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._key_hint = key_hint
        self._most_bytes = most_bytes or _MOST_BYTES
        self._rests_until = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpClient({self.service!r}, {self.address.netloc!r})"

    def post(self, path: str, body: object, *, timeout_s: float, ends: float, stop: threading.Event) -> Any:
        """The JSON that the service answers with, at most `timeout_s` after each try.

        Tries again after a passing failure, unless `stop` is set or the wait would last beyond `ends` (monotonic
        clock). Raises ProviderError, and OversizeError when the request should be made smaller.
        """
        # A lone surrogate, as in a mangled file name, has no UTF-8; it becomes a question mark.
        payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(path, payload, min(ends, time.monotonic() + timeout_s))
            except _PassingError as passing:
                wait = wait_before_retry(attempt, passing.retry_after_s)
                if attempt >= passing.tries or time.monotonic() + wait >= ends or stop.wait(wait):
                    raise

    def failure(self, what: str, *, hint: str) -> ProviderError:
        """A ProviderError about this service."""
        return ProviderError(self._message(what), hint=hint)

    def overdue(self) -> ProviderError:
        """The error for an answer that did not come in time; the service is left alone for a while."""
        self._rests_until = time.monotonic() + _REST_S
        return self.failure("did not answer in time", hint=_HINT_SLOW)

    def _attempt(self, path: str, payload: bytes, ends: float) -> Any:
        from urllib3.exceptions import HTTPError

        if time.monotonic() < self._rests_until:
            raise self.failure("did not answer a moment ago and is left alone for some seconds", hint=_HINT_SLOW)
        with self._lock:
            self.attempts += 1
        try:
            reply = self._exchange(path, payload, ends)
        except (OSError, HTTPError) as error:
            self._unreachable(_cause(error))
        if not 200 <= reply.status < 300:
            self._refused(reply)
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise self.failure("answered with something that is not JSON", hint=_HINT_ADDRESS) from error

    def _exchange(self, path: str, payload: bytes, ends: float) -> _Reply:
        from urllib3 import Timeout

        response = self._pool.urlopen(
            "POST",
            self.address.path + path,
            payload,
            self._headers(),
            retries=False,
            redirect=False,
            timeout=Timeout(total=_time_left(ends), connect=_CONNECT_S),
            preload_content=False,
            decode_content=False,
        )
        with response:
            return _Reply(response.status, _retry_after(response), self._read(response, ends))

    @cached_property
    def _pool(self) -> HTTPConnectionPool:
        """Open connections to the one host, through the proxy of the environment if it names one."""
        from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, ProxyManager

        host, port = self.address.host, self.address.port
        if self.address.scheme == "http":
            return HTTPConnectionPool(host, port, maxsize=_MOST_IDLE)
        context = ssl.create_default_context()
        proxy = https_proxy(host)
        if proxy is None:
            return HTTPSConnectionPool(host, port, maxsize=_MOST_IDLE, ssl_context=context)
        url, headers = proxy
        manager = ProxyManager(url, proxy_headers=headers, maxsize=_MOST_IDLE, ssl_context=context)
        return manager.connection_from_host(host, port, "https")

    def _read(self, response: BaseHTTPResponse, ends: float) -> bytes:
        """Read the whole body before `ends`; the socket's own time-out starts again with every byte."""
        body = bytearray()
        while part := response.read1(1 << 16):
            body += part
            if len(body) > self._most_bytes:
                raise self.failure(f"sent more than {self._most_bytes:,} bytes", hint=_HINT_ADDRESS)
            _time_left(ends)
        return bytes(body)

    def _headers(self) -> dict[str, str]:
        usual = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "findling"}
        return {**usual, **self._own}

    def _unreachable(self, error: Exception) -> NoReturn:
        """Raise the error that a failed exchange means; a retry is for failures that may pass within a second."""
        if isinstance(error, TimeoutError):
            raise self.overdue() from error
        _, what, hint, tries = next(failure for failure in _FAILURES if isinstance(error, failure[0]))
        if isinstance(error, ConnectionRefusedError) and is_loopback(self.address.host):
            hint, tries = f"Start the server ({self.service}) or set its base_url to where it listens.", 1
        reason = getattr(error, "strerror", None) or error
        what = what.format(port=self.address.port, error=error, reason=reason, kind=type(error).__name__)
        message = self._message(what)
        raise (
            _PassingError(message, hint=hint, tries=tries) if tries else ProviderError(message, hint=hint)
        ) from error

    def _refused(self, reply: _Reply) -> NoReturn:
        """Raise what a status other than success means."""
        status = reply.status
        if 300 <= status < 400:
            what = f"answered {status}, a redirect; these are not followed, so that no key travels"
            raise self.failure(what, hint="Set base_url to the address that answers itself.")
        if status in (401, 403):
            # No word of the reply: some quote a part of the key.
            raise self.failure(f"answered {status}: the key is missing or not accepted", hint=self._key_hint)
        text = reason(reply.body, self._api_key)
        what = f"answered {status}: {text}" if text else f"answered {status}"
        if is_oversize(status, text):
            raise OversizeError(self._message(what), hint="Send fewer or shorter texts at once.")
        if is_spent(status, reply.body):
            raise self.failure(
                what, hint=f"The quota of the account is used up: see the billing page of {self.service}."
            )
        if status in _TRANSIENT:
            hint = "Try again later, or ask for less at once." if status == 429 else _HINT_DOWN
            raise _PassingError(self._message(what), hint=hint, retry_after_s=reply.retry_after_s)
        raise self.failure(what, hint=_HINT_MODEL if status == 404 else _HINT_REQUEST)

    def _message(self, what: str) -> str:
        return f"{self.service} ({self.address.host}) {what}"


def wait_before_retry(attempt: int, retry_after_s: float | None) -> float:
    """Seconds to wait after failed try number `attempt`: what the service asks for, else twice as long every time.

    Random waits keep callers from coming back at once. A service that asks for more than a minute is not waited for:
    infinity.
    """
    if retry_after_s is not None:
        return retry_after_s if retry_after_s <= _LONGEST_WAIT_S else float("inf")
    return _FIRST_WAIT_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)


class _PassingError(ProviderError):
    """A failure that may be over soon; `tries` bounds how often it is worth trying in all."""

    def __init__(
        self, message: str, *, hint: str, tries: int = _MOST_TRIES, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.tries = tries
        self.retry_after_s = retry_after_s


class _Reply(NamedTuple):
    status: int
    retry_after_s: float | None
    body: bytes


_HINT_DOWN = "Check the network and the provider's status, then try again."
_HINT_SLOW = "Try again, or allow more time with remote.timeout_s."
_HINT_ADDRESS = "Check base_url: it may belong to something else."
_HINT_TRUST = "Check base_url and the certificates of this machine."
_HINT_MODEL = "Check the name of the model and base_url; a local server must have loaded the model."
_HINT_REQUEST = "Check the name of the model and remote.dimensions."


_FAILURES: tuple[tuple[type[Exception], str, str, int], ...] = (
    (IncompleteRead, "broke off in the middle of its answer", _HINT_DOWN, _MOST_TRIES),
    (ConnectionRefusedError, "refuses connections at port {port}", _HINT_DOWN, 2),
    (ConnectionError, "closed the connection", _HINT_DOWN, _MOST_TRIES),
    (socket.gaierror, "cannot be found: its name is not known here", _HINT_DOWN, 0),
    (ssl.SSLCertVerificationError, "has a certificate that cannot be trusted ({error.verify_message})", _HINT_TRUST, 0),
    (ssl.SSLError, "cannot be spoken to in TLS ({error.reason})", _HINT_ADDRESS, 0),
    (OSError, "cannot be reached ({reason})", _HINT_DOWN, 0),
    (Exception, "does not speak HTTP at port {port} ({kind})", _HINT_ADDRESS, 0),
)
"""Failures of an exchange, the narrow ones first: what to say and to do, and how often it is worth trying in all."""


def _time_left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _retry_after(response: BaseHTTPResponse) -> float | None:
    """Seconds of a `Retry-After` header, which names seconds or a date."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return Retry().get_retry_after(response)
    except InvalidHeader:
        return None


def _cause(error: Exception) -> Exception:
    """Unwrap the error of a socket, of TLS or of HTTP from urllib3's errors, which hide it among their arguments."""
    from urllib3.exceptions import HTTPError
    from urllib3.exceptions import TimeoutError as LateError

    inner = next((item for item in (*error.args, error.__cause__) if isinstance(item, Exception)), None)
    if isinstance(error, HTTPError) and inner is not None:
        return _cause(inner)
    return TimeoutError() if isinstance(error, LateError) else error
