"""What exports of assistants have in common: an array of conversations, or a single one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from findling.domain.errors import InvalidValueError
from findling.sources.chats.json_stream import JsonStream

__all__ = ["conversations"]


def conversations(stream: IO[bytes], name: str, needed: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each conversation with the line it ends in. Raises InvalidValueError for one without the key `needed`."""
    json = JsonStream(stream, name)
    if not json.peek():  # an empty file
        return
    entries = json.items() if json.peek() == "[" else iter([json.value()])
    for entry in entries:
        if not isinstance(entry, dict) or needed not in entry:
            raise InvalidValueError(
                f"{name}:{json.line}: a conversation without {needed}", hint="is this the format that --format names?"
            )
        yield json.line, entry
