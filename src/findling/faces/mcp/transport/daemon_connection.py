"""One exchange with the daemon's /mcp over its unix socket, with nothing but the standard library."""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from findling.domain.errors import DaemonError

__all__ = ["Exchange", "routing_headers", "says_version"]

_CONNECT_S = 1.0
_KINDS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Exchange:
    """A request on a connection of its own, which can be given up from another thread."""

    def __init__(self, path: str, headers: Mapping[str, str | bytes]) -> None:
        self._connection = _UnixConnection(path)
        self._headers = headers
        self.is_cancelled = False

    def send(self, message: bytes) -> Iterator[bytes]:
        """Send a message; yields the messages that come back, the last one of which is the answer.

        Raises OSError or HTTPException when the daemon does not answer to the end, DaemonError when it refuses to.
        """
        headers = {**_KINDS, **self._headers}
        self._connection.request("POST", "/mcp", message, headers)
        response = self._connection.getresponse()
        if response.headers.get_content_type() == "text/event-stream":
            yield from _events(response)
            return
        body = response.read()
        if not _is_message(body):
            raise _refusal(response.status, body)
        yield body

    def cancel(self) -> None:
        """Hang up."""
        self.is_cancelled = True
        if self._connection.sock is not None:
            with suppress(OSError):  # hung up already
                self._connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()


def routing_headers(message: Mapping[str, Any], negotiated: str) -> dict[str, str]:
    """What HTTP wants to be told of a message in headers as well.

    Since 2026 each message says its version and its headers repeat what it is for; before, `initialize` settled it.
    """
    version = _version(message)
    if not version:
        return {"mcp-protocol-version": negotiated} if negotiated else {}
    method = str(message["method"])
    headers = {"mcp-protocol-version": _header(version), "mcp-method": _header(method)}
    name = message["params"].get(_NAMED_BY.get(method, ""))
    return {**headers, "mcp-name": _header(name)} if isinstance(name, str) else headers


def says_version(message: Mapping[str, Any]) -> bool:
    """Whether a message stands for itself, and needs no `initialize` before it."""
    return bool(_version(message))


def _version(message: Mapping[str, Any]) -> str:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else ""


class _UnixConnection(HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(_CONNECT_S)
        try:
            line.connect(self._path)
        except OSError:
            line.close()
            raise
        line.settimeout(None)  # indexing may take its time; a daemon that ends hangs up
        self.sock = line


def _events(response: HTTPResponse) -> Iterator[bytes]:
    """The messages in a stream of events. Raises OSError when it ends without the answer."""
    data: list[bytes] = []
    is_answered = False
    for line in response:
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            message, data = b"\n".join(data), []
            if _is_message(message):  # and no sign of life
                is_answered = is_answered or "method" not in json.loads(message)
                yield message
    if not is_answered:
        raise ConnectionResetError("the daemon has hung up")


def _is_message(body: bytes) -> bool:
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, dict) and "jsonrpc" in document


def _refusal(status: int, body: bytes) -> DaemonError:
    """What a refusal says, which comes as problem+json from whatever stands before the server."""
    try:
        problem = json.loads(body)
        return DaemonError(str(problem["detail"]), hint=str(problem.get("hint") or ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return DaemonError(f"the daemon answers with status {status}", hint="restart the daemon")


def _header(value: str) -> str:
    """A value as headers carry it: as it is, or in base64 when it has letters that they cannot have."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?"):
        return value
    return f"=?base64?{b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="
