"""Answers that a server keeps as long as the index is as it was."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from findling.domain.results import SearchAnswer
    from findling.service.engine.engine import Engine
    from findling.service.workspace.scope import Scoped

__all__ = ["AnswerCache", "CacheKey", "cache_key"]

_MOST_HITS = 50
"""Of an answer that is kept: 512 answers of that size take some 40 MB."""

_MOST_CONTEXT = 5
"""Lines around a hit of an answer that is kept, for the same reason."""

_LONGEST_S = 60.0
"""Seconds for which an answer is kept: where recency counts, it changes without any change of the index."""


class CacheKey(NamedTuple):
    """A question, the state of the index that it was asked of, and whether its answer is small enough to keep."""

    asked: str
    state: object
    is_small: bool


def cache_key(engine: Engine, scoped: Scoped) -> CacheKey:
    """The key of a prepared request at this moment."""
    request = scoped.request
    is_small = request.limit <= _MOST_HITS and request.context <= _MOST_CONTEXT
    return CacheKey(engine.question(scoped), engine.state(), is_small)


class _Given(NamedTuple):
    state: object
    at: float
    answer: SearchAnswer


class AnswerCache:
    """The latest answers, at most `most` of them; may be shared between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._given: OrderedDict[str, _Given] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: CacheKey) -> SearchAnswer | None:
        """The answer that was given under this key, if the index is as it was then."""
        with self._guard:
            given = self._given.get(key.asked)
            if given is None:
                return None
            if given.state == key.state and time.monotonic() - given.at <= _LONGEST_S:
                return given.answer
            del self._given[key.asked]
            return None

    def put(self, key: CacheKey, answer: SearchAnswer) -> None:
        """Keep an answer, unless it lacks something or the model still embeds: the next answer would differ."""
        is_being_read = bool(answer.meaning.get("model")) and answer.meaning["coverage"] < 1
        if not self._most or not key.is_small or answer.degraded or is_being_read:
            return
        with self._guard:
            self._given.pop(key.asked, None)
            self._given[key.asked] = _Given(key.state, time.monotonic(), answer)
            while len(self._given) > self._most:
                self._given.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them."""
        with self._guard:
            self._given.clear()
