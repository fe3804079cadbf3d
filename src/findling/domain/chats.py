"""Chats: threads of messages, as every importer hands them over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Message", "Thread"]


class Message(NamedTuple):
    """One message. `id` is unique in its thread; `at` is seconds since the epoch, `None` when nobody knows."""

    id: str
    text: str
    author: str = ""
    at: float | None = None
    reply_to: str = ""


class Thread(NamedTuple):
    """A conversation with some or all of its messages, oldest first.

    `source` is where it comes from (`slack`, `chatgpt`, …) and `id` what it is called there; both together name it.
    `visibility` is as that of a resource.
    """

    source: str
    id: str
    messages: Iterable[Message]
    title: str = ""
    tags: tuple[str, ...] = ()
    visibility: tuple[str, ...] | None = None
