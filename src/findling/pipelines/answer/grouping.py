"""Grouping: one hit of all passages of a resource or a thread, and passages that lie side by side made one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from findling.domain.resources import Chunk, Resource
from findling.domain.results import Hit, Passage
from findling.pipelines.answer.lines import line_span, show
from findling.pipelines.answer.types import HighlightSpec, Ranked

__all__ = ["MOST_PASSAGES", "Run", "group_of", "grouped", "reach", "runs", "with_passages"]

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


def with_passages(hit: Hit, ranked: Ranked, asked: HighlightSpec) -> Hit:
    """The hit of a group with its other passages; those that lie beside its own widen its lines instead."""
    own, *others = runs((ranked, *ranked.others))
    first, last = _lines_of(own)
    passages = tuple([_passage(run, asked) for run in others[:MOST_PASSAGES]])
    return replace(hit, line_start=first, line_end=last, passages=passages)


def _passage(run: Run, asked: HighlightSpec) -> Passage:
    shown = show(run.best.stored, asked)
    first, last = _lines_of(run)
    return Passage(
        id=f"{run.best.stored.chunk.cid:016x}",
        rid=run.best.stored.resource.rid,
        line_start=first,
        line_end=last,
        place=shown.best.place,
        score=round(run.best.score, 4),
        lines=shown.lines,
    )


def _lines_of(run: Run) -> tuple[int, int]:
    spans = [line_span(chunk) for chunk in run.chunks]
    return min(first for first, _ in spans), max(last for _, last in spans)
