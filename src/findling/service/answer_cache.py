"""Answers that were given and still hold: the same question on the same state of the same index."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.service.engine import Engine

__all__ = ["AnswerCache", "Question", "question_of"]

_MOST_HITS = 50
"""Of an answer that is kept: 512 answers of that size take some 40 MB."""

_MOST_CONTEXT = 5
"""Lines around a hit of an answer that is kept, for the same reason."""

_LONGEST_S = 60.0
"""How long an answer is kept: where recency counts, it becomes another one without any change of the index."""


class Question(NamedTuple):
    """What was asked of which index, and the state that it was in."""

    asked: str
    state: object
    is_small: bool


def question_of(engine: Engine, request: SearchRequest) -> Question:
    """The question that a request is now."""
    return Question(
        engine.question(request), engine.state(), request.limit <= _MOST_HITS and request.context <= _MOST_CONTEXT
    )


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

    def get(self, question: Question) -> SearchAnswer | None:
        """The answer that was given to this question, if the index is as it was then."""
        with self._guard:
            given = self._given.get(question.asked)
            if given is None:
                return None
            if given.state == question.state and time.monotonic() - given.at <= _LONGEST_S:
                return given.answer
            del self._given[question.asked]
            return None

    def put(self, question: Question, answer: SearchAnswer) -> None:
        """Keep an answer, unless it would be another one in a moment: when something was missing, or is being read."""
        is_being_read = bool(answer.meaning.get("model")) and answer.meaning["coverage"] < 1
        if not self._most or not question.is_small or answer.degraded or is_being_read:
            return
        with self._guard:
            self._given.pop(question.asked, None)
            self._given[question.asked] = _Given(question.state, time.monotonic(), answer)
            while len(self._given) > self._most:
                self._given.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them."""
        with self._guard:
            self._given.clear()
