"""Formats of chat exports: recognised by content, read as threads."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from findling.domain.errors import InvalidValueError, PathNotFoundError, UsageError
from findling.domain.records import Thread
from findling.sources.chats.assistants import read_chatgpt, read_claude
from findling.sources.chats.discord import read_discord
from findling.sources.chats.export_files import ExportFiles, buffered, folder_files, opened_file, zip_files
from findling.sources.chats.json_stream import JsonStream
from findling.sources.chats.jsonl import read_jsonl
from findling.sources.chats.slack import is_slack, read_slack

FORMATS = ("auto", "jsonl", "slack", "discord", "chatgpt", "claude")

_HEAD = 1 << 16  # characters of a file that decide its format: each of them shows it in its first few keys
_NOTHING = ""
_WITHOUT_ENTRIES = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*\]\s*)?")  # a file that is empty, or a list that is
# The keys that one format alone has at the beginning.
_KEYS_OF = {
    "guild": "discord", "channel": "discord", "mapping": "chatgpt", "current_node": "chatgpt",
    "chat_messages": "claude", "thread": "jsonl", "author": "jsonl", "text": "jsonl", "at": "jsonl",
}  # fmt: skip
_READERS = {"discord": read_discord, "chatgpt": read_chatgpt, "claude": read_claude}


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Options of the user for an export.

    Threads are filed under `source`, by default the name of the format. `thread` and `title` are for messages in JSON
    lines that do not name their own.
    """

    format: str = "auto"
    source: str = ""
    thread: str = ""
    title: str = ""


def read_chats(path: Path, wishes: Wishes) -> Iterator[Thread]:
    """The threads of a file, a folder or a zip archive.

    Raises PathNotFoundError for an absent path. Raises InvalidValueError with file and line for an unknown or damaged
    format.
    """
    if path.is_dir():
        yield from _read_files(folder_files(path), wishes)
        return
    with opened_file(path) as stream:
        head = stream.read(_HEAD)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            yield from _read_files(zip_files(path), wishes)
            return
        stream.seek(0)
        yield from _read_stream(stream, str(path), _format_of(head, str(path), wishes), wishes)


def read_chats_stream(stream: IO[bytes], name: str, wishes: Wishes) -> Iterator[Thread]:
    """The threads of what cannot be read twice, such as stdin. Raises InvalidValueError as `read_chats` does."""
    format_ = wishes.format
    if format_ == "auto":
        head = stream.read(_HEAD)
        format_ = _format_of(head, name, wishes)
        beginning, rest = io.BytesIO(head), stream
        stream = buffered(lambda size: beginning.read(size) or rest.read(size))
    yield from _read_stream(stream, name, format_, wishes)


def _read_files(files: ExportFiles, wishes: Wishes) -> Iterator[Thread]:
    names = files.names
    if wishes.format == "slack" or (wishes.format == "auto" and is_slack(names)):
        if not is_slack(names):
            raise InvalidValueError(f"{files.name} has no channels.json", hint="name the folder that Slack exported")
        _check(wishes, "slack")
        yield from read_slack(files, wishes.source or "slack")
        return
    # The export of an assistant holds other lists beside the conversations.
    chosen = [name for name in names if name.startswith("conversations") and "/" not in name]
    chosen = chosen or [name for name in names if "/" not in name]
    if not chosen:
        raise PathNotFoundError(f"{files.name} holds no JSON file", hint="name an exported file or folder")
    formats = {}
    for name in chosen:  # before anything is imported of a folder that holds something else
        with files.opened(name) as stream:
            formats[name] = _format_of(stream.read(_HEAD), f"{files.name}/{name}", wishes)
    for name, format_ in formats.items():
        with files.opened(name) as stream:
            yield from _read_stream(stream, f"{files.name}/{name}", format_, wishes)


def _read_stream(stream: IO[bytes], name: str, format_: str, wishes: Wishes) -> Iterator[Thread]:
    if format_ == _NOTHING:
        return
    _check(wishes, format_)
    source = wishes.source or format_
    if format_ == "jsonl":
        yield from read_jsonl(stream, name, source, thread=wishes.thread, title=wishes.title)
    elif format_ in _READERS:
        yield from _READERS[format_](stream, name, source)
    else:
        raise InvalidValueError(f"{name} is no folder or zip archive", hint="name the folder that Slack exported")


def _check(wishes: Wishes, format_: str) -> None:
    if format_ != "jsonl" and (wishes.thread or wishes.title):
        flag = "--thread" if wishes.thread else "--title"
        raise UsageError(f"{flag} is for JSON lines; a {format_} export names its threads itself", hint="leave it out")


def _format_of(head: bytes, name: str, wishes: Wishes) -> str:
    """The format that was wished for, or the one that a file has which begins so; nothing has none."""
    if wishes.format != "auto":
        return wishes.format
    if len(head) < _HEAD and _WITHOUT_ENTRIES.fullmatch(head):
        return _NOTHING
    json = JsonStream(io.BytesIO(head), name)
    try:
        if json.peek() == "[":
            json.open_array()
        for key in json.keys():  # noqa: SIM118 - it is no mapping
            if key in _KEYS_OF:
                return _KEYS_OF[key]
            json.value()
    except InvalidValueError:
        pass  # its beginning does not show its format
    hint = f"--format {'|'.join(FORMATS[1:])} says what it is"
    raise InvalidValueError(f"{name} is no chat export that is known here", hint=hint)
