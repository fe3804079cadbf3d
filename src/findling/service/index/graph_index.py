"""The graph leg of a workspace: brought up behind the first question that names something."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from findling.domain.backends import GraphAtHand, GraphLeg
from findling.domain.errors import CorruptError, StoreDamagedError
from findling.domain.results import Degradation
from findling.service.index.exact_index import ExactIndex, LazyLeg

if TYPE_CHECKING:
    from findling.domain.backends import GraphRows
    from findling.domain.resources import Document
    from findling.service.index.index_files import OpenedWorkspace

__all__ = ["LITTLE", "GraphIndex", "made_legs"]

LITTLE = 300_000
"""Characters that are read at once, behind the question: 0.1 s. More of them are read by the next index run.

For a caller with limited rights, those count that the caller sees."""

_FEW = 20
"""Changes that are absorbed at once."""

_SEEN = 16
"""Callers with limited rights whose graphs are kept, each some 80 ms of work at 53,000 chunks."""


_PATIENCE_S = 2.0
"""Seconds that the first question of a small workspace waits for a writer, so that no other answer tells of one."""


_AS_WRITER = "ask the same once as a user who may write"


class GraphIndex(LazyLeg[GraphLeg]):
    """The graph as searches ask it: the whole of it, or what a caller may see."""

    name = "graph"

    def __init__(self, files: OpenedWorkspace) -> None:
        super().__init__(files)
        self._limited: dict[tuple[frozenset[int], int], GraphRows | None] = {}
        self._limited_of: tuple[GraphLeg | None, object] = None, None
        self._behind = 0

    @property
    def is_able(self) -> bool:
        return self._files.backend.capabilities.graph

    def exists(self) -> bool:
        return self._files.backend.has_graph_leg()

    def _open(self, store_id: str) -> GraphLeg:
        return self._files.backend.graph_leg(store_id)

    def _discard(self) -> None:
        self._files.backend.discard_graph_leg()

    def at_hand(self, numbers: Collection[int] | None = None, latest: int = 0) -> GraphAtHand:
        """The graph of these resources, of all for `None`, or a reason why there is none.

        That of a caller with limited rights follows from what the caller sees, up to the `latest` change of it.
        """
        if not self.is_able:
            return GraphAtHand(None)
        try:
            leg = self.opened()
        except StoreDamagedError:
            raise
        except CorruptError:
            self._is_damaged = True
            self._want()
            return self._not_yet()
        self._behind = 0 if leg is None else self._files.store.seq() - leg.seq()
        if leg is None or self._behind:
            self._want()
        rows = leg if numbers is None else self._within(leg, frozenset(numbers), latest)
        return self._not_yet() if rows is None else GraphAtHand(rows)

    def _not_yet(self) -> GraphAtHand:
        if self.is_refused:
            what = "the graph is not there yet, and nothing can be written here"
            return GraphAtHand(None, what, _AS_WRITER)
        # An index run is refused where another host follows the files; what it does for legs goes on behind this.
        others = "" if self._files.is_followed_elsewhere() else ", or run findling index"
        return GraphAtHand(None, "the graph is not there yet", f"ask again in a moment{others}")

    def level_soon(self) -> bool:
        """Bring up the leg that a search has missed, if that takes little time; whether an answer gains by it."""
        was_refused = self.is_refused
        if not self.was_asked or was_refused:
            return False
        store = self._files.store
        try:
            leg = self.opened()
        except CorruptError:
            leg = None
        is_little = store.counts()["characters"] <= LITTLE
        if not is_little and (leg is None or store.seq() - leg.seq() > _FEW):
            return False
        has_leg = leg is not None and leg.seq() > 0
        # Without a leg, the answer says then that this user cannot have one.
        return self.level_if_due(_PATIENCE_S if is_little else 0.0) or (self.is_refused and not has_leg)

    def lateness(self) -> Degradation | None:
        """A note for a search that has walked an older graph, and may not bring it up."""
        if not self._behind or not self.is_refused:
            return None
        what = f"the graph lacks the latest {self._behind:,} changes, and nothing can be written here"
        return Degradation(what=what, fix=_AS_WRITER)

    def close(self) -> None:
        """Release files; closing twice is fine."""
        with self._guard:
            if self._limited_of[0] is not None:  # else no row is of a file
                self._limited.clear()
        super().close()

    def _within(self, leg: GraphLeg | None, numbers: frozenset[int], latest: int) -> GraphRows | None:
        """The rows of a sight, kept as long as leg and sight are the same."""
        with self._guard:
            if self._limited_of != (leg, self._files.store):
                self._limited, self._limited_of = {}, (leg, self._files.store)
            key = numbers, latest
            rows = self._limited.pop(key) if key in self._limited else self._seen_in(leg, numbers)
            self._limited[key] = rows
            while len(self._limited) > _SEEN:
                del self._limited[next(iter(self._limited))]
            return rows

    def _seen_in(self, leg: GraphLeg | None, numbers: frozenset[int]) -> GraphRows | None:
        """The rows of a sight: those of the leg, and of what it has not absorbed; None where that is too much."""
        store, left = self._files.store, LITTLE
        others: list[tuple[int, Document]] = []
        changed = store.rights(leg.seq() if leg is not None else 0)
        lacking = numbers.intersection(one.number for one in changed)
        for number, document in store.documents(lacking):
            left -= len(document.text)
            if left < 0:
                return None
            others.append((number, document))
        return (leg or self._open(store.get_meta("store_id") or "")).within(numbers - lacking, others)


def made_legs(files: OpenedWorkspace) -> list[LazyLeg[Any]]:
    """The legs of a workspace that searches have wanted, as far as they are there."""
    return [leg for leg in (ExactIndex(files), GraphIndex(files)) if leg.is_able and leg.exists()]
