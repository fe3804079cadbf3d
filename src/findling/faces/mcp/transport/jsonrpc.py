"""JSON-RPC as lines carry it: reading a message, and refusing what is none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

_PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603

LONGEST_LINE = 16 << 20
"""Bytes of the longest message that is read."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_message(line: bytes) -> Any:
    """Parse a line of UTF-8; half a character becomes U+FFFD. Raises ValueError or RecursionError."""
    message = json.loads(line.decode(), parse_constant=_refuse_constant)
    if b"\\ud" in line.lower():
        message = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(message, ensure_ascii=False)))
    return message


def awaited_key(message: object) -> str:
    """The id of a message that gets an answer, as JSON; empty for one that gets none, or one without an id."""
    if not isinstance(message, dict) or _is_answer(message) or not _is_id(message.get("id")):
        return ""
    return json.dumps(message["id"])


def problem_of(message: object) -> bytes | None:
    """The refusal of a message that no server would answer; empty for an answer, to which there is none."""
    if not isinstance(message, dict):
        return failure(None, INVALID_REQUEST, "Invalid request: this is no object")
    if _is_answer(message):
        return b""
    key = message.get("id")
    if message.get("jsonrpc") != "2.0":
        problem = 'jsonrpc must be "2.0"'
    elif not isinstance(message.get("method"), str):
        problem = "method must be a text"
    elif "id" in message and not _is_id(key):
        problem = "id must be a text or a whole number"
    elif not isinstance(message.get("params"), dict | None):
        problem = "params must be an object"
    else:
        return None
    return failure(key if _is_id(key) else None, INVALID_REQUEST, f"Invalid request: {problem}")


def failure(key: object, code: int = _PARSE_ERROR, text: str = "Parse error") -> bytes:
    """An error as the answer to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": text}}).encode() + b"\n"


def _is_answer(message: Mapping[str, Any]) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
