"""A small HTTP client for JSON services: deadlines, retries, and a key that goes to one host only.

Certificates are always verified. Redirects are never followed, so that neither the key nor a text can be led to
another host. Nothing is read but the environment's `HTTPS_PROXY` and `NO_PROXY`, as `urllib` reads them, and those
only for https addresses. A connection serves one request.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import threading
import time
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, NamedTuple, NoReturn

from findling.domain.errors import ProviderError
from findling.models.remote.address import Address, https_proxy, is_loopback
from findling.models.remote.dialects import is_oversize, is_spent, reason

__all__ = ["HttpClient", "OversizeError", "wait_before_retry"]

# TCP sends its first packet again after 1 s: a host that stays silent for 3 s is not there.
_CONNECT_S = 3.0
# After a time-out the host is left alone for so long: a search must not wait for it again and again.
_REST_S = 10.0
_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 60.0
# 256 vectors of 4,096 numbers written out are 21 MB.
_MOST_BYTES = 64_000_000
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class OversizeError(ProviderError):
    """The request holds more than the provider takes at once."""


class HttpClient:
    """Posts JSON to one service; every failure is a ProviderError that names it, its host and the next step.

    `attempts` counts the requests that were tried, over all threads.
    """

    def __init__(
        self,
        service: str,
        address: Address,
        *,
        api_key: str = "",
        key_hint: str = "",
        tries: int = 3,
    ) -> None:
        self.service = service
        self.address = address
        self.tries = tries
        self.attempts = 0
        self._api_key = api_key
        self._key_hint = key_hint
        self._rests_until = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpClient({self.service!r}, {self.address.netloc!r})"

    def post(self, path: str, body: object, *, timeout_s: float, ends: float, stop: threading.Event) -> Any:
        """The JSON that the service answers with, at most `timeout_s` after each try.

        Tries again after a passing failure, unless the wait would end after `ends` (of the monotonic clock) or `stop`
        is set. Raises ProviderError, and OversizeError when the request should be made smaller.
        """
        # A lone surrogate, as in a mangled file name, has no UTF-8; it becomes a question mark.
        payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        for attempt in range(1, self.tries + 1):
            try:
                return self._attempt(path, payload, min(ends, time.monotonic() + timeout_s))
            except _PassingError as passing:
                wait = wait_before_retry(attempt, passing.retry_after_s)
                if attempt >= min(self.tries, passing.tries) or time.monotonic() + wait >= ends or stop.wait(wait):
                    raise
        raise self.failure("was not asked: no tries are allowed", hint="Allow one try at least.")

    def failure(self, what: str, *, hint: str) -> ProviderError:
        """A ProviderError about this service."""
        return ProviderError(self._message(what), hint=hint)

    def overdue(self) -> ProviderError:
        """The error for an answer that did not come in time; the service is left alone for a while."""
        self._rests_until = time.monotonic() + _REST_S
        return self.failure("did not answer in time", hint=_HINT_SLOW)

    def _attempt(self, path: str, payload: bytes, ends: float) -> Any:
        if time.monotonic() < self._rests_until:
            raise self.failure("did not answer a moment ago and is left alone for some seconds", hint=_HINT_SLOW)
        with self._lock:
            self.attempts += 1
        try:
            reply = self._exchange(path, payload, ends)
        except OSError as error:
            self._unreachable(error)
        except _EndlessError:
            raise self.failure(f"sent more than {_MOST_BYTES:,} bytes", hint=_HINT_ADDRESS) from None
        except IncompleteRead as error:
            raise _PassingError(self._message("broke off in the middle of its answer"), hint=_HINT_DOWN) from error
        except HTTPException as error:
            what = f"does not speak HTTP at port {self.address.port} ({type(error).__name__})"
            raise self.failure(what, hint=_HINT_ADDRESS) from error
        if not 200 <= reply.status < 300:
            self._refused(reply)
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise self.failure("answered with something that is not JSON", hint=_HINT_ADDRESS) from error

    def _exchange(self, path: str, payload: bytes, ends: float) -> _Reply:
        connection = self._connection(min(_CONNECT_S, _time_left(ends)))
        try:
            connection.connect()
            sock = connection.sock
            sock.settimeout(_time_left(ends))
            connection.request("POST", self.address.path + path, payload, self._headers())
            with connection.getresponse() as response:
                return _Reply(response.status, response.headers, _read(response, sock, ends))
        finally:
            connection.close()

    def _connection(self, timeout_s: float) -> HTTPConnection:
        host, port = self.address.host, self.address.port
        if self.address.scheme == "http":
            return HTTPConnection(host, port, timeout=timeout_s)
        context = _tls()
        proxy = https_proxy(host)
        if proxy is None:
            return HTTPSConnection(host, port, timeout=timeout_s, context=context)
        connection = HTTPSConnection(proxy.host, proxy.port, timeout=timeout_s, context=context)
        connection.set_tunnel(host, port, proxy.headers)
        return connection

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "findling"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        return headers

    def _unreachable(self, error: OSError) -> NoReturn:
        """Raise what a failed connection means; only what may pass within a second is tried again."""
        if isinstance(error, TimeoutError):
            raise self.overdue() from error
        if isinstance(error, ConnectionRefusedError):
            local = is_loopback(self.address.host)
            where = f"refuses connections at port {self.address.port}"
            hint = (
                f"Start the server ({self.service}) or set its base_url to where it listens." if local else _HINT_DOWN
            )
            raise _PassingError(self._message(where), hint=hint, tries=1 if local else 2) from error
        if isinstance(error, ConnectionError):
            raise _PassingError(self._message("closed the connection"), hint=_HINT_DOWN) from error
        if isinstance(error, socket.gaierror):
            raise self.failure("cannot be found: its name is not known here", hint=_HINT_DOWN) from error
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"has a certificate that cannot be trusted ({error.verify_message})"
            raise self.failure(what, hint="Check base_url and the certificates of this machine.") from error
        if isinstance(error, ssl.SSLError):
            what = f"cannot be spoken to in TLS ({error.reason})"
            raise self.failure(what, hint=_HINT_ADDRESS) from error
        raise self.failure(f"cannot be reached ({error.strerror or error})", hint=_HINT_DOWN) from error

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
            raise _PassingError(self._message(what), hint=hint, retry_after_s=_retry_after(reply.headers))
        raise self.failure(what, hint=_HINT_MODEL if status == 404 else _HINT_REQUEST)

    def _message(self, what: str) -> str:
        return f"{self.service} ({self.address.host}) {what}"


def wait_before_retry(attempt: int, retry_after_s: float | None) -> float:
    """Seconds to wait after failed try number `attempt`: what the service asks for, else twice as long every time.

    Waits of our own choosing differ by chance, lest all callers come back at once. A service that asks for more than
    a minute is not waited for: infinity.
    """
    if retry_after_s is not None:
        return retry_after_s if retry_after_s <= _LONGEST_WAIT_S else float("inf")
    return _FIRST_WAIT_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)


class _PassingError(ProviderError):
    """A failure that may be over soon; `tries` bounds how often it is worth trying in all."""

    def __init__(self, message: str, *, hint: str, tries: int = 99, retry_after_s: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.tries = tries
        self.retry_after_s = retry_after_s


class _EndlessError(HTTPException):
    """A reply longer than any that could be asked for."""


class _Reply(NamedTuple):
    status: int
    headers: Message
    body: bytes


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # reads 140 certificates


_HINT_DOWN = "Check the network and the provider's status, then try again."
_HINT_SLOW = "Try again, or allow more time with remote.timeout_s."
_HINT_ADDRESS = "Check base_url: it may belong to something else."
_HINT_MODEL = "Check the name of the model and base_url; a local server must have loaded the model."
_HINT_REQUEST = "Check the name of the model and remote.dimensions."


def _read(response: HTTPResponse, sock: socket.socket, ends: float) -> bytes:
    """The whole body, however slowly it drips: the socket's own time-out starts anew with every byte."""
    expected = response.length
    parts = []
    size = 0
    while (expected is None or size < expected) and (part := response.read1(1 << 16)):
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise _EndlessError
        sock.settimeout(_time_left(ends))
    if expected is not None and size < expected:
        raise IncompleteRead(b"", expected - size)
    return b"".join(parts)


def _time_left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _retry_after(headers: Message) -> float | None:
    """Seconds of a `Retry-After` header, which names seconds or a date."""
    value = headers.get("Retry-After", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
