"""Legs that are written together."""

from __future__ import annotations

from collections.abc import Iterable

from findling.domain.ports import Change, LegIndex, TruthStore
from findling.domain.resources import Document

__all__ = ["Legs", "catch_up"]


def catch_up(store: TruthStore, leg: LegIndex) -> bool:
    """Let a leg absorb the changes it missed, and return whether there were any. The caller holds the write lock.

    It commits once, at the end: a resource comes in its latest state, so that no part of the changes is a whole state.
    """
    seq, since = store.seq(), leg.seq()
    if since == seq:
        return False
    if since > seq or since < store.log_floor():
        leg.clear()
        since = 0
    leg.apply(store.changes(since))
    leg.commit(seq)
    return True


class Legs:
    """Legs that stay in step with the truth, because writes pass through them. The caller holds the write lock."""

    def __init__(self, store: TruthStore, *legs: LegIndex) -> None:
        self._store = store
        self._legs = legs

    @property
    def analyses(self) -> bool:
        """Whether one of them needs the words of every chunk."""
        return any(getattr(leg, "unit", "") == "chunk" for leg in self._legs)

    @property
    def embeds(self) -> bool:
        """Whether one of them needs an instant vector of every chunk."""
        return any(getattr(leg, "speed", "") == "instant" for leg in self._legs)

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Write to the truth and then to every leg; they are durable there with the next commit."""
        changes = self._store.write(documents, deleted_rids)
        for leg in self._legs:
            leg.apply(changes)
        return changes

    def commit(self) -> None:
        """Make every leg durable as far as the truth has come."""
        seq = self._store.seq()
        for leg in self._legs:
            if leg.seq() != seq:
                leg.commit(seq)
