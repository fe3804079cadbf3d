"""One state of an index as one caller may see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from findling.domain.errors import CorruptError
from findling.domain.results import Degradation
from findling.pipelines.retrieve.legs import Retrievers

__all__ = ["IndexState", "Reader"]


class IndexState(NamedTuple):
    """The state that a sight depends on: another store, another change or another relation gives another one."""

    store_id: str
    seq: int
    relations: int


class Reader(NamedTuple):
    """The truth and the legs that a caller reads; nothing in it is exchanged once it is handed out.

    `mend` has a damaged leg rebuilt and returns what to tell. An owner's reader has no state: nothing is out of sight.
    """

    retrievers: Retrievers
    mend: Callable[[CorruptError], list[Degradation]]
    state: IndexState | None = None
