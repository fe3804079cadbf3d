"""Findling's own format: one message a line, as JSON.

    {"thread": "standup", "id": "17", "author": "Ann", "at": "2026-04-08T08:38:00Z", "text": "Good morning"}

`thread`, `author` and `text` are needed, and `at` (ISO 8601, or seconds since the epoch) or `id`. `title` is that of
the thread, and `reply_to` is the id of another message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby
from typing import IO, Any

from findling.domain.errors import InvalidValueError
from findling.domain.records import Message, Thread
from findling.sources.chats.json_stream import time

_KEYS = ("thread", "id", "author", "at", "text", "title", "reply_to")

_LONGEST_LINE = 64 << 20
_HINT = f"a message has the keys {', '.join(_KEYS)}"


def read_jsonl(stream: IO[bytes], name: str, source: str, *, thread: str = "", title: str = "") -> Iterator[Thread]:
    """The messages in the order of their lines, those that follow each other in one thread together.

    `thread` and `title` are for lines that do not name their own. Raises InvalidValueError naming the line.
    """
    lines = _read_lines(stream, name, thread, title)
    for (thread_id, thread_title), group in groupby(lines, key=lambda line: line[:2]):
        yield Thread(source, thread_id, (message for _, _, message in group), title=thread_title)


def _read_lines(stream: IO[bytes], name: str, thread: str, title: str) -> Iterator[tuple[str, str, Message]]:
    """Thread, its title and the message of each line."""
    titles: dict[str, str] = {}
    number = 0
    while raw := stream.readline(_LONGEST_LINE + 1):
        number += 1
        where = f"{name}:{number}"
        if len(raw) > _LONGEST_LINE:
            raise InvalidValueError(f"{where}: longer than {_LONGEST_LINE >> 20} MB", hint="one message a line")
        if raw.isspace():
            continue
        row = _row(raw, where)
        thread_id = _text(row, "thread", where) or thread
        if not thread_id:
            raise InvalidValueError(f"{where}: no thread", hint="add the key thread, or give --thread ID")
        titles[thread_id] = _text(row, "title", where) or titles.get(thread_id) or title
        yield thread_id, titles[thread_id], _message(row, where)


def _row(raw: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(raw)
    except (RecursionError, ValueError) as error:  # no JSON, no UTF-8, or nested without an end
        raise InvalidValueError(f"{where}: no JSON: {error}", hint=_HINT) from error
    if not isinstance(row, dict):
        raise InvalidValueError(f"{where}: no JSON object", hint=_HINT)
    for key in row:
        if key not in _KEYS:
            raise InvalidValueError(f"{where}: unknown key {key!r}", hint=_HINT)
    return row


def _message(row: dict[str, Any], where: str) -> Message:
    for key in ("author", "text"):
        if key not in row:
            raise InvalidValueError(f"{where}: no {key}", hint=_HINT)
    at = row.get("at")
    seconds = None if at is None else time(at)
    if at is not None and seconds is None:
        raise InvalidValueError(
            f"{where}: at: {at!r} is no time", hint='ISO 8601 such as "2026-04-08T08:38:00Z", or seconds since 1970'
        )
    author, text, id_ = _text(row, "author", where), _text(row, "text", where), _id(row, "id", where)
    if not id_ and seconds is None:
        raise InvalidValueError(f"{where}: neither at nor id", hint="a message without a time needs an id")
    return Message(id_ or _made_id(author, seconds, text), text, author, seconds, _id(row, "reply_to", where))


def _text(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidValueError(f"{where}: {key}: {value!r} is no text", hint="write it in quotes")
    return value or ""


def _id(row: dict[str, Any], key: str, where: str) -> str:
    """An id, which may be a whole number."""
    value = row.get(key)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(row, key, where)


def _made_id(author: str, at: float | None, text: str) -> str:
    """The id of a message that has none: what tells it from the others."""
    payload = "\x1f".join((author, repr(at), text)).encode("utf-8", "surrogatepass")
    return blake2b(payload, digest_size=8).hexdigest()
