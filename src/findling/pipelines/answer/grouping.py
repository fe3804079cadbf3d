"""Grouping: one hit of all passages of a resource or a thread, and passages that lie side by side made one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from findling.domain.resources import Chunk, Resource
from findling.pipelines.answer.types import Ranked

__all__ = ["MOST_PASSAGES", "Run", "group_of", "grouped", "line_span", "reach", "runs"]

MOST_PASSAGES = 5
"""Passages that a hit has besides its own."""


class Run(NamedTuple):
    """Chunks of one resource that follow each other, in their order, and the best of them."""

    best: Ranked
    chunks: tuple[Chunk, ...]


def grouped(ranked: Sequence[Ranked], by: str) -> list[Ranked]:
    """The best entry of each group with the others of it, in the order of the best; `by` is that of a plan."""
    if by == "none":
        return list(ranked)
    groups: dict[str, list[Ranked]] = {}
    for entry in ranked:
        groups.setdefault(group_of(entry.stored.resource, by), []).append(entry)
    return [members[0]._replace(others=tuple(members[1:])) for members in groups.values()]


def group_of(resource: Resource, by: str) -> str:
    """What the passages of a resource are grouped under: its thread if it is a chat and threads count, or itself."""
    thread = resource.fields.get("thread", "") if by == "thread" and resource.type == "chat" else ""
    return f"thread {thread}" if thread else resource.rid


def reach(ranked: Sequence[Ranked], by: str, wanted: int) -> int:
    """How many entries from the top make up so many groups; all of them when there are fewer groups."""
    if by == "none":
        return min(wanted, len(ranked))
    seen: set[str] = set()
    for place, entry in enumerate(ranked):
        seen.add(group_of(entry.stored.resource, by))
        if len(seen) > wanted:
            return place
    return len(ranked)


def runs(entries: Sequence[Ranked]) -> list[Run]:
    """The entries, best first, with those joined whose chunks lie side by side."""
    place_of = {entry.stored.chunk.cid: place for place, entry in enumerate(entries)}
    found: list[list[Ranked]] = []
    for entry in sorted(entries, key=lambda entry: (entry.stored.resource.rid, entry.stored.chunk.ordinal)):
        last = found[-1][-1].stored if found else None
        if (
            last is not None
            and last.resource.rid == entry.stored.resource.rid
            and last.chunk.ordinal + 1 == entry.stored.chunk.ordinal
            # Only lines can be widened: a message beside another one is a passage of its own.
            and line_span(last.chunk)[0]
        ):
            found[-1].append(entry)
        else:
            found.append([entry])
    joined = [
        Run(min(run, key=lambda e: place_of[e.stored.chunk.cid]), tuple([e.stored.chunk for e in run])) for run in found
    ]
    return sorted(joined, key=lambda run: place_of[run.best.stored.chunk.cid])


def line_span(chunk: Chunk) -> tuple[int, int]:
    """The first and the last line of a chunk in its file; 0 in files that have no lines."""
    if not chunk.places:
        return chunk.line_start, chunk.line_end
    numbers = [place.line for place in chunk.places if place.line]
    return (numbers[0], max(numbers)) if numbers else (0, 0)
