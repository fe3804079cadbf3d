"""What is asked: the query tree and the search request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from findling.domain.plans import Plan

__all__ = ["All", "Any", "Filters", "Node", "Not", "Phrase", "SearchRequest", "Word"]


class Word(NamedTuple):
    """A word to rank by, as the user typed it."""

    text: str


class Phrase(NamedTuple):
    """Words that must stand next to each other, in this order."""

    text: str


class Not(NamedTuple):
    """What must not match."""

    node: Node


class Any(NamedTuple):
    """At least one of the nodes; the more of them match, the better the rank."""

    nodes: tuple[Node, ...]


class All(NamedTuple):
    """Every one of the nodes."""

    nodes: tuple[Node, ...]


Node = Word | Phrase | Not | Any | All


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What the answer is limited to; every filter is applied inside the leg, before anything is scored.

    An empty tuple does not filter. `principals` is `None` for the owner of the workspace, who sees everything;
    an empty tuple is a caller without any right and finds nothing.
    """

    ext: tuple[str, ...] = ()
    not_ext: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    lang: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    author: tuple[str, ...] = ()
    after: float | None = None
    before: float | None = None
    principals: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """One question with everything that bears on its answer.

    `limit` counts hits (chunks); `min_score` is on the 0..1 scale of `Hit.score`; `exclude_pattern` is a regular
    expression that drops every chunk whose text it matches, before the answer is cut to `limit`. Without a `plan` the
    one of the settings is carried out.
    """

    query: str
    limit: int = 10
    offset: int = 0
    filters: Filters = field(default_factory=Filters)
    exclude_pattern: str | None = None
    min_score: float = 0.0
    context: int = 0
    explain: bool = False
    plan: Plan | None = None
