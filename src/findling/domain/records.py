"""Records beside resources: messages, threads, glossary terms, accesses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from findling.domain.values import record

DECISIONS = ("keep", "merge", "supersede")
"""Decisions on two memories: both hold; they are one; the newer one takes the place of the older one."""


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


class GlossaryTerm(NamedTuple):
    """One surface of a group of words that mean the same; `group` is the canonical surface of its group.

    `key` is the surface as `glossary_key` normalises it; group and key together are unique. `status` is `canonical`,
    `alias`, `pending` (suggested, unused), `rejected` (not suggested again) or `protected` (literal, in no group).
    `source` names the person or rule that brought it, `snippet` the text where it was seen.
    """

    group: str
    key: str
    surface: str
    status: str
    source: str = ""
    snippet: str = ""
    decided_at: float | None = None


@record()
class Access:
    """The number of recalls, and the time of the last one in seconds since the epoch."""

    count: int
    last_at: float
