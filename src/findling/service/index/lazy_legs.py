"""Legs that are brought up behind the search that missed them: the exact leg, the graph, and any other of a place.

A first index run does not make them, so that they cost nobody who has no use for them. From then on index runs keep
them up.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from findling.domain.backends import EXACT, GRAPH, GraphAtHand, GraphLeg, lazy_names
from findling.domain.errors import CorruptError, DiskFullError, LockedError, ReadOnlyError, StoreDamagedError
from findling.domain.ports import LegIndex
from findling.domain.queries import Filters
from findling.domain.results import Degradation
from findling.domain.values import counted

if TYPE_CHECKING:
    from findling.domain.backends import ExactSource, GraphRows, LegStore
    from findling.domain.ports import ExactLeg, TruthStore
    from findling.domain.queries import Required
    from findling.domain.resources import Document
    from findling.service.index.index_files import OpenedWorkspace

LEAST_CHARACTERS = 8_000_000
"""Text from which on the exact leg is worthwhile: so much is scanned in 10 ms, or in 100 ms where case is ignored."""

_MOST_BEHIND = 200
"""Changes that are scanned beside the leg; with more of them it is brought up behind the search."""

LITTLE = 300_000
"""Characters that are read at once, behind the question: 0.1 s. More of them are read by the next index run.

For a caller with limited rights, those count that the caller sees."""

_FEW = 20
"""Changes that are absorbed at once."""

_SEEN = 16
"""Callers with limited rights whose graphs are kept, each some 80 ms of work at 53,000 chunks."""


_AS_WRITER = "ask the same once as a user who may write"

_WANTED = "wanted"

_Leg = TypeVar("_Leg", bound="LazyIndex")


class LazyIndex(LegIndex, Protocol):
    """The files of a leg that is made when it is wanted."""

    def is_current(self) -> bool:
        """Whether its files are still those that were opened."""


class LazyLeg(Generic[_Leg]):
    """A leg of the backend that is there once a search has wanted it. May be used by several threads."""

    late = "behind, the next search that asks it brings it up"

    def __init__(self, files: OpenedWorkspace, name: str) -> None:
        self.name = name
        self._files = files
        self._leg: _Leg | None = None
        self._leg_of: object = None
        self._is_damaged = False
        self._guard = threading.RLock()
        self.was_asked = False
        """Whether a search of this process would have gained by the leg, or by more of it."""
        self.is_refused = False
        """Whether nothing can be written here, so that there will be no leg either."""

    @property
    def is_able(self) -> bool:
        """Whether the backend has such a leg."""
        return self.name in self._files.backend.legs

    @property
    def at_place(self) -> LegStore[_Leg]:
        """The leg at its place, of whatever store or version."""
        return self._files.backend.legs[self.name]

    def opened(self, at: TruthStore | None = None) -> _Leg | None:
        """The leg as it is, as other processes have written it, too; None when there is none. Raises CorruptError.

        `at` is the state of the truth that a search has read.
        """
        store = self._files.store
        state = at or store
        now = state.seq()
        with self._guard:
            known = self._leg
            is_kept = known is not None and (known.seq() == now or (known.seq() and known.is_current()))
            if not is_kept or self._leg_of is not store:
                self.close()
            if self._leg is None and self.is_able and self.at_place.exists():
                self._leg, self._leg_of = self.at_place.open(state.get_meta("store_id") or ""), store
            return self._leg if self._leg is not None and self._leg.seq() else None

    def at_hand(self, store: TruthStore, numbers: Collection[int] | None = None, latest: int = 0) -> Any:
        """Give a search the leg, all of it or these resources alone, and note that it is wanted where it is not there.

        `latest` is the latest change of what a caller with limited rights sees.
        """
        leg: Any = self._sound(store)
        if leg is None or leg.seq() != store.seq():
            self._want()
        return leg if leg is None or numbers is None else leg.within(numbers)

    def level_soon(self) -> bool:
        """Bring up the leg that a search has missed, if that takes little time; whether an answer gains by it."""
        return False

    def lateness(self) -> Degradation | None:
        """A note for a search that has asked an older leg, and may not bring it up."""
        return None

    def is_due(self, at: TruthStore | None = None) -> bool:
        """Whether somebody wants the leg, and it lacks something, in that state of the truth or now."""
        store = at or self._files.store.pinned()
        if not self.is_able or store.get_meta(self.name) != _WANTED:
            return False
        try:
            leg = self.opened(store)
        except CorruptError:
            return True
        return self._is_damaged or leg is None or leg.seq() != store.seq()

    def level_if_due(self, at: TruthStore | None = None) -> bool:
        """Bring the leg up when it is wanted and nobody else is writing; returns whether it did."""
        if not self._files.exists or not self.is_due(at):
            return False
        # It was only an offer: the next run tries again, and searches do without until then.
        try:
            with suppress(DiskFullError, LockedError), self._files.leveling(0.0):
                self.level()
                return True
        except ReadOnlyError:
            self.is_refused = True
        return False

    def level(self, *, anew: bool = False) -> None:
        """Bring the leg in step with the truth, rebuilt when it is damaged or `anew`. The caller holds the lock."""
        from findling.pipelines.indexing.fanout import catch_up

        store = self._files.truth
        self.close()
        if anew or self._is_damaged:
            self.at_place.discard()
        for is_last in (False, True):
            try:
                with closing(self.at_place.open(store.get_meta("store_id") or "")) as leg:
                    catch_up(store, leg)
                    break
            except CorruptError as error:
                if is_last or isinstance(error, StoreDamagedError):
                    raise
                self.at_place.discard()
        self._is_damaged = self.was_asked = self.is_refused = False

    def rebuild_if_open(self) -> None:
        """Rebuild the leg from the truth if this process has it open. The caller holds the lock."""
        if self._leg is not None:
            self.level(anew=True)

    def close(self) -> None:
        """Release files; closing twice is fine."""
        with self._guard:
            leg, self._leg = self._leg, None
        if leg is not None:
            leg.close()

    def _sound(self, at: TruthStore | None = None) -> _Leg | None:
        """The leg as `opened` gives it; None for one that cannot be read, which is noted. Raises StoreDamagedError."""
        try:
            return self.opened(at)
        except CorruptError as error:
            if isinstance(error, StoreDamagedError):
                raise
            self._is_damaged = True
            return None

    def _want(self, least: int = 0) -> None:
        """Note that the leg is wanted, unless there is less text than that."""
        store = self._files.store
        if self.was_asked or not self.is_able:
            return
        if store.get_meta(self.name) == _WANTED or store.counts()["characters"] >= least:
            try:
                store.set_meta(self.name, _WANTED)
                self.was_asked = True
            except ReadOnlyError:
                self.is_refused = True
            except (DiskFullError, LockedError):
                pass  # the next question asks again

    def examined(self, leg: _Leg) -> tuple[str, str]:
        """The content of a leg in step, and its difference from the truth; for checks."""
        return "in step", ""


class ExactIndex(LazyLeg["ExactLeg"]):
    """Implements `ExactSource` for one workspace."""

    late = "behind, patterns are looked for in the changed texts, too"

    def at_hand(self, store: TruthStore, numbers: Collection[int] | None = None, latest: int = 0) -> ExactSource:
        return self

    def candidates(self, required: Required, allowed: Collection[int]) -> list[int] | None:
        """Those of the allowed resources that may match, or `None` where there is no leg yet."""
        store = self._files.store
        try:
            leg = self.opened()
            found = leg.candidates(required, allowed) if leg is not None else None
        except StoreDamagedError:
            raise
        except CorruptError:
            self._is_damaged, leg, found = True, None, None
        if leg is None or found is None:
            self._want(LEAST_CHARACTERS)
            return None
        since = leg.seq()
        if since == store.seq():
            return list(found)
        changed = [one.number for one in store.rights(since) if one.number in allowed]
        if len(changed) > _MOST_BEHIND:
            self._want(LEAST_CHARACTERS)
        return sorted({*found, *changed})

    def examined(self, leg: ExactLeg) -> tuple[str, str]:
        wrong = len(leg.numbers() ^ set(self._files.store.matching(Filters())))
        problem = f"{counted(wrong, 'resource')} missing or too many in {self._files.backend.url}" if wrong else ""
        return f"in step, {counted(leg.size(), 'resource')}", problem


class GraphIndex(LazyLeg[GraphLeg]):
    """The graph as searches ask it: the whole of it, or what a caller may see."""

    late = "behind, the next question with a name brings it up"

    def __init__(self, files: OpenedWorkspace, name: str) -> None:
        super().__init__(files, name)
        self._limited: dict[tuple[frozenset[int], int], GraphRows | None] = {}
        self._limited_of: tuple[GraphLeg | None, object] = None, None
        self._behind = 0

    def at_hand(self, store: TruthStore, numbers: Collection[int] | None = None, latest: int = 0) -> GraphAtHand:
        """The graph of these resources of a truth, of all for `None`, or a reason why there is none.

        That of a caller with limited rights follows from what the caller sees, up to the `latest` change of it.
        """
        if not self.is_able:
            return GraphAtHand(None)
        leg = self._sound(store)
        self._behind = 0 if leg is None else store.seq() - leg.seq()
        if leg is None or self._behind:
            self._want()
        if leg is None and self._is_damaged:
            return self._not_yet()
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
        if (leg is None or store.seq() - leg.seq() > _FEW) and store.counts()["characters"] > LITTLE:
            return False
        has_leg = leg is not None and leg.seq() > 0
        # Without a leg, the answer says then that this user cannot have one.
        return self.level_if_due() or (self.is_refused and not has_leg)

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
        return (leg or self.at_place.open(store.get_meta("store_id") or "")).within(numbers - lacking, others)

    def examined(self, leg: GraphLeg) -> tuple[str, str]:
        extra = len(leg.cids() - self._files.store.chunk_ids())
        problem = f"{counted(extra, 'chunk')} in {self._files.backend.url} that are not there" if extra else ""
        return f"in step, {counted(len(leg), 'chunk')} with names", problem


_KINDS: dict[str, type[LazyLeg[Any]]] = {EXACT: ExactIndex, GRAPH: GraphIndex}


def lazy_leg(files: OpenedWorkspace, name: str) -> LazyLeg[Any]:
    """A leg that is made when it is wanted, by its name."""
    return _KINDS.get(name, LazyLeg)(files, name)


def made_legs(files: OpenedWorkspace) -> list[LazyLeg[Any]]:
    """The legs of a workspace that searches have wanted, as far as they are there."""
    legs = [lazy_leg(files, name) for name in lazy_names(files.backend.legs)]
    return [leg for leg in legs if leg.at_place.exists()]
