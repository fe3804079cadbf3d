"""Authors of chats: those of a part, and the one of a passage's best message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from findling.domain.resources import StoredChunk
from findling.text.analysis.analysis import terms

__all__ = ["Speaker", "best_message", "joined_authors", "speaker_of", "split_authors"]


class Speaker(NamedTuple):
    """The author of a message and its time in seconds since the epoch; `None` for an unknown one."""

    author: str
    at: float | None = None


def best_message(stored: StoredChunk, asked: Iterable[str]) -> Speaker:
    """Author and time of the message with most of the query's terms; without one, the only author of the passage."""
    chunk, resource, text = stored
    starts = [place.start - chunk.start for place in chunk.places]
    spans = zip(chunk.places, starts, [*starts[1:], len(text)], strict=False)
    messages = [(speaker_of(place.label), text[start:end]) for place, start, end in spans]
    wanted = set(asked)
    found = [len(wanted.intersection(terms(said))) for _, said in messages]
    if any(found):
        return messages[found.index(max(found))][0]
    authors = {speaker.author for speaker, _ in messages} or set(split_authors(resource.author))
    times = [speaker.at for speaker, _ in messages if speaker.at is not None]
    return Speaker(authors.pop() if len(authors) == 1 else "", max(times, default=None))


def joined_authors(authors: Iterable[str]) -> str:
    """The author of a resource with several: sorted names, each once, with a comma between them."""
    return _BETWEEN.join(sorted({" ".join(author.replace(",", " ").split()) for author in authors} - {""}))


def split_authors(author: str) -> list[str]:
    """The authors that were joined."""
    return author.split(_BETWEEN) if author else []


def speaker_of(label: str) -> Speaker:
    """The speaker from the label of a place: `AUTHOR, 2026-04-08 08:38`."""
    from datetime import datetime

    timed = _TIMED.fullmatch(label)
    if timed is None:
        return Speaker(label)
    try:
        at = datetime.fromisoformat(f"{timed['time']}+00:00").timestamp()
    except ValueError:  # somebody calls themselves 2024-13-45 99:99
        at = None
    return Speaker(timed["author"] or "", at)


_BETWEEN = ", "
_TIMED = re.compile(r"(?:(?P<author>.*), )?(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d)", re.DOTALL)
