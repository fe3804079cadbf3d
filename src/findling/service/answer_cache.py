"""Answers that were given and still hold: the same question on the same state of the same index."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.service.engine import Engine

__all__ = ["AnswerCache"]

_LONGEST_S = 60.0
"""How long an answer is kept: where recency counts, it becomes another one without any change of the index."""


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

    def get(self, engine: Engine, request: SearchRequest) -> SearchAnswer | None:
        """The answer that was given to this question, if the index is as it was then."""
        if not self._most:
            return None
        with self._guard:
            given = self._given.get(_key(engine, request))
        if given is None or time.monotonic() - given.at > _LONGEST_S or given.state != engine.state():
            return None
        return given.answer

    def put(self, engine: Engine, request: SearchRequest, answer: SearchAnswer, state: object) -> None:
        """Keep an answer, unless it would be another one in a moment: when something was missing, or is being read."""
        is_being_read = bool(answer.meaning.get("model")) and answer.meaning["coverage"] < 1
        if not self._most or answer.degraded or is_being_read or engine.state() != state:
            return
        key = _key(engine, request)
        with self._guard:
            self._given.pop(key, None)
            self._given[key] = _Given(state, time.monotonic(), answer)
            while len(self._given) > self._most:
                self._given.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them."""
        with self._guard:
            self._given.clear()


def _key(engine: Engine, request: SearchRequest) -> str:
    return f"{engine.home}\n{engine.scope}\n{request!r}"
