"""What a caller is told when something cannot be done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from findling.domain.errors import (
    CallerError,
    DaemonError,
    FindlingError,
    NotFoundError,
    OverdueError,
    UsageError,
)
from findling.domain.permissions import Caller

__all__ = ["for_caller", "naming", "told"]

_FOR_EVERYBODY = (UsageError, CallerError, OverdueError)
"""Errors that say nothing of the machine, or of what else lies there."""


def for_caller(error: FindlingError, caller: Caller) -> FindlingError:
    """The error as a caller may know of it: others than the owner are not told what may name files of the owner."""
    if caller.is_owner or isinstance(error, _FOR_EVERYBODY):
        return error
    return DaemonError("the server cannot do that now", hint="ask whoever runs it")


@contextmanager
def naming() -> Iterator[None]:
    """Tell whoever gives a name that is none where names come from here, whether it is hidden or was never there."""
    try:
        yield
    except NotFoundError as error:
        raise NotFoundError(error.message, hint="an id, a passage or a path that search gives") from error


def told(error: FindlingError) -> str:
    """An error as one text, which is all that some clients show of it."""
    return f"{error.message}; try: {error.hint}" if error.hint else error.message
