"""Legs that are brought up behind the search that missed them: the exact leg of a workspace, and the way of others.

A first index run does not make them, so that they cost nobody who has no use for them. From then on index runs keep
them up.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from findling.domain.errors import CorruptError, DiskFullError, LockedError, ReadOnlyError, StoreDamagedError

if TYPE_CHECKING:
    from findling.domain.backends import GraphLeg
    from findling.domain.ports import ExactLeg
    from findling.domain.queries import Required
    from findling.service.index.index_files import OpenedWorkspace

__all__ = ["LEAST_CHARACTERS", "ExactIndex", "LazyLeg"]

LEAST_CHARACTERS = 8_000_000
"""Text from which on the exact leg is worthwhile: so much is scanned in 10 ms, or in 100 ms where case is ignored."""

_MOST_BEHIND = 200
"""Changes that are scanned beside the leg; with more of them it is brought up behind the search."""

_WANTED = "wanted"

_Leg = TypeVar("_Leg", "ExactLeg", "GraphLeg")


class LazyLeg(ABC, Generic[_Leg]):
    """A leg that is there once a search has wanted it; `name` is its own. May be used by several threads."""

    name = ""

    def __init__(self, files: OpenedWorkspace) -> None:
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
    @abstractmethod
    def is_able(self) -> bool:
        """Whether the backend has such a leg."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is one, of whatever store or version."""

    @abstractmethod
    def _open(self, store_id: str) -> _Leg:
        """Open the leg. Raises CorruptError."""

    @abstractmethod
    def _discard(self) -> None:
        """Delete the leg. The caller holds the write lock."""

    def opened(self) -> _Leg | None:
        """The leg as it is, as other processes have written it, too; None when there is none. Raises CorruptError."""
        store = self._files.store
        with self._guard:
            known = self._leg
            is_kept = known is not None and (known.seq() == store.seq() or (known.seq() and known.is_current()))
            if not is_kept or self._leg_of is not store:
                self.close()
            if self._leg is None and self.is_able and self.exists():
                self._leg, self._leg_of = self._open(store.get_meta("store_id") or ""), store
            return self._leg if self._leg is not None and self._leg.seq() else None

    def is_due(self) -> bool:
        """Whether somebody wants the leg, and it lacks something."""
        store = self._files.store
        if not self.is_able or store.get_meta(self.name) != _WANTED:
            return False
        try:
            leg = self.opened()
        except CorruptError:
            return True
        return self._is_damaged or leg is None or leg.seq() != store.seq()

    def level_if_due(self, patience_s: float = 0.0) -> bool:
        """Bring the leg up when it is wanted and nobody else is writing for so long; returns whether it did."""
        if not self._files.exists or not self.is_due():
            return False
        # It was only an offer: the next run tries again, and searches do without until then.
        try:
            with suppress(DiskFullError, LockedError), self._files.leveling(patience_s):
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
            self._discard()
        store_id = store.get_meta("store_id") or ""
        try:
            with closing(self._open(store_id)) as leg:
                catch_up(store, leg)
        except StoreDamagedError:
            raise
        except CorruptError:
            self._discard()
            with closing(self._open(store_id)) as leg:
                catch_up(store, leg)
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


class ExactIndex(LazyLeg["ExactLeg"]):
    """Implements `ExactSource` for one workspace."""

    name = "exact"

    @property
    def is_able(self) -> bool:
        return self._files.backend.capabilities.regex

    def exists(self) -> bool:
        return self._files.backend.has_exact_leg()

    def _open(self, store_id: str) -> ExactLeg:
        return self._files.backend.exact_leg(store_id)

    def _discard(self) -> None:
        self._files.backend.discard_exact_leg()

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
