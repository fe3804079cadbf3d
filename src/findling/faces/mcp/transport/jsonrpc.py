"""What a line of a client must be before anybody is asked about it, and what it is told when it is something else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

__all__ = ["INTERNAL_ERROR", "INVALID_REQUEST", "Envelope", "failure", "is_request", "read_envelope"]

_PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Envelope(NamedTuple):
    """A message with the line to pass on; without one, what its sender is told, if anything."""

    message: dict[str, Any] | None
    line: bytes


def read_envelope(line: bytes) -> Envelope:
    """The message in a line of a client, as whoever answers it can read it."""
    try:
        # In UTF-8 and nothing else: json would find out other encodings by itself.
        message = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return Envelope(None, failure(None, _PARSE_ERROR, "Parse error"))
    if b"\\ud" in line.lower():
        # Half a character, which JSON can say and UTF-8 cannot.
        text = _LONE_SURROGATE.sub("\ufffd", json.dumps(message, ensure_ascii=False))
        message, line = json.loads(text), text.encode()
    if not isinstance(message, dict):
        return Envelope(None, failure(None, INVALID_REQUEST, "Invalid request: this is no object"))
    if "method" not in message and ("result" in message or "error" in message):
        return Envelope(None, b"")  # an answer, to what nobody has asked
    problem = _problem(message)
    if problem:
        key = message.get("id")
        told = failure(key if _is_key(key) else None, INVALID_REQUEST, f"Invalid request: {problem}")
        return Envelope(None, told)
    return Envelope(message, line)


def is_request(message: Mapping[str, Any]) -> bool:
    """Whether a message is to be answered."""
    return "method" in message and "id" in message


def failure(key: object, code: int, text: str) -> bytes:
    """The answer that something went wrong."""
    return json.dumps({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": text}}).encode()


def _problem(message: Mapping[str, Any]) -> str:
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(message.get("method"), str):
        return "method must be a text"
    if "id" in message and not _is_key(message["id"]):
        return "id must be a text or a whole number"
    if not isinstance(message.get("params"), dict | None):
        return "params must be an object"
    return ""


def _is_key(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
