"""Catching up: a leg that is behind the truth absorbs what it missed."""

from __future__ import annotations

from findling.domain.ports import Leg, TruthStore

__all__ = ["catch_up"]


def catch_up(store: TruthStore, leg: Leg) -> bool:
    """Let a leg absorb what it missed; tells whether there was anything. The caller holds the write lock.

    One commit at the end, never in between: a resource that changed often comes once, in its latest state, so that
    a part of the changes is not the state at any earlier number.
    """
    seq = store.seq()
    since = leg.seq()
    if since == seq:
        return False
    if since > seq or since < store.log_floor():
        leg.clear()
        since = 0
    leg.apply(store.changes(since))
    leg.commit(seq)
    return True
