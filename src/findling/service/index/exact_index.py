"""The exact leg of a workspace: opened by a search, and brought up behind it once a pattern was asked for.

A first index run does not make it, so that it costs nobody who has no use for it. From then on index runs keep it up.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from findling.domain.errors import CorruptError, DiskFullError, LockedError, ReadOnlyError, StoreDamagedError

if TYPE_CHECKING:
    from findling.domain.ports import ExactLeg
    from findling.domain.queries import Required
    from findling.service.index.index_files import OpenedWorkspace

__all__ = ["LEAST_CHARACTERS", "ExactIndex"]

LEAST_CHARACTERS = 8_000_000
"""Text from which on the leg is worthwhile: so much is scanned in 10 ms, or in 100 ms where case is ignored."""

_MOST_BEHIND = 200
"""Changes that are scanned beside the leg; with more of them it is brought up behind the search."""

_KEY, _WANTED = "exact", "wanted"


class ExactIndex:
    """Implements `ExactSource` for one workspace. May be used by several threads."""

    def __init__(self, files: OpenedWorkspace) -> None:
        self._files = files
        self._leg: ExactLeg | None = None
        self._leg_of: object = None
        self._is_damaged = False
        self._guard = threading.RLock()
        self.was_asked = False
        """Whether a search of this process would have been faster with the leg, or with more of it."""

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
            self._want()
            return None
        since = leg.seq()
        if since == store.seq():
            return list(found)
        changed = [one.number for one in store.rights(since) if one.number in allowed]
        if len(changed) > _MOST_BEHIND:
            self._want()
        return sorted({*found, *changed})

    def opened(self) -> ExactLeg | None:
        """The leg as it is, as other processes have written it, too; None when there is none. Raises CorruptError."""
        backend, store = self._files.backend, self._files.store
        with self._guard:
            known = self._leg
            is_kept = known is not None and (known.seq() == store.seq() or (known.seq() and known.is_current()))
            if not is_kept or self._leg_of is not store:
                self.close()
            if self._leg is None and backend.capabilities.regex and backend.has_exact_leg():
                self._leg, self._leg_of = backend.exact_leg(store.get_meta("store_id") or ""), store
            return self._leg if self._leg is not None and self._leg.seq() else None

    def is_due(self) -> bool:
        """Whether somebody wants the leg, and it lacks something."""
        store = self._files.store
        if not self._files.backend.capabilities.regex or store.get_meta(_KEY) != _WANTED:
            return False
        try:
            leg = self.opened()
        except CorruptError:
            return True
        return self._is_damaged or leg is None or leg.seq() != store.seq()

    def level_if_due(self) -> bool:
        """Bring the leg up when it is wanted and nobody else is writing; returns whether it did."""
        if not self._files.exists or not self.is_due():
            return False
        # It was only an offer: the next run tries again, and patterns are scanned for until then.
        with suppress(DiskFullError, LockedError, ReadOnlyError), self._files.writing(patience_s=0.0):
            self.level()
            return True
        return False

    def level(self, *, anew: bool = False) -> None:
        """Bring the leg in step with the truth, rebuilt when it is damaged or `anew`. The caller holds the lock."""
        from findling.pipelines.indexing.fanout import catch_up

        backend, store = self._files.backend, self._files.store
        self.close()
        if anew or self._is_damaged:
            backend.discard_exact_leg()
        store_id = store.get_meta("store_id") or ""
        try:
            with closing(backend.exact_leg(store_id)) as leg:
                catch_up(store, leg)
        except StoreDamagedError:
            raise
        except CorruptError:
            backend.discard_exact_leg()
            with closing(backend.exact_leg(store_id)) as leg:
                catch_up(store, leg)
        self._is_damaged = self.was_asked = False

    def close(self) -> None:
        """Release files; closing twice is fine."""
        with self._guard:
            leg, self._leg = self._leg, None
        if leg is not None:
            leg.close()

    def _want(self) -> None:
        """Note that the leg is wanted, unless there is so little text that a scan is as fast."""
        store = self._files.store
        if self.was_asked or not self._files.backend.capabilities.regex:
            return
        if store.get_meta(_KEY) == _WANTED or store.counts()["characters"] >= LEAST_CHARACTERS:
            # Where nothing can be written, there will be no leg either.
            with suppress(DiskFullError, LockedError, ReadOnlyError):
                store.set_meta(_KEY, _WANTED)
                self.was_asked = True
