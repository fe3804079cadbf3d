"""Searching through a running daemon, as if it were done here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from findling.domain.answer_reading import read_answer
from findling.domain.errors import DaemonError, InvalidValueError
from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.service.background import Reading
from findling.service.daemon_client import call_daemon
from findling.service.daemon_state import DaemonState
from findling.service.portable_requests import request_document
from findling.service.portable_settings import settings_document
from findling.service.scoping import placed
from findling.service.settings import Settings

__all__ = ["DaemonAnswers", "search_in_daemon"]

_ANSWER_S = 3600.0
"""How long a daemon that has begun may take: many files may have to be taken in first, by it as well as here."""


class DaemonAnswers(NamedTuple):
    """What a daemon has found, in which workspace, and what it has begun to read because of it."""

    answers: list[SearchAnswer]
    root: Path
    folder: Path
    reading: Reading | None


def search_in_daemon(
    state: DaemonState,
    home: Path,
    path: str | None,
    settings: Settings,
    requests: Sequence[SearchRequest],
    *,
    refresh: bool = True,
) -> DaemonAnswers:
    """Answers that are the same as those of `open_engine(path, settings=settings)`, with `refresh` as for its `search`.

    Raises DaemonError when the daemon cannot be reached, or leaves it to the caller: where nothing is indexed yet, or
    something is wrong with the question. Raises as `placed` does.
    """
    settings, subject = placed(settings, path)
    asked = {
        "home": str(home),
        # Not normalised: what `..` leads to depends on links.
        "path": str(Path.cwd() / Path(subject).expanduser()),
        "is_here": str(subject) == ".",
        "refresh": refresh,
        "settings": settings_document(settings),
        "requests": [request_document(request) for request in requests],
    }
    status, found = call_daemon(state, "POST", "/local/search", asked, answer_s=_ANSWER_S)
    if status != 200:
        detail = found.get("detail") if isinstance(found, dict) else ""
        raise DaemonError(f"the daemon leaves this to the command line: {detail or status}")
    try:
        reading = Reading(**found["reading"]) if found["reading"] else None
        answers = [read_answer(one) for one in found["answers"]]
        if len(answers) != len(requests):
            raise ValueError(f"{len(answers)} answers to {len(requests)} questions")
        return DaemonAnswers(answers, Path(found["root"]), Path(found["folder"]), reading)
    except (InvalidValueError, KeyError, TypeError, ValueError) as error:
        raise DaemonError(f"the daemon answers in another way: {error}", hint="restart it") from error
