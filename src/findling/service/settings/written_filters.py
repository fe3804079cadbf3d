"""Filters as people write them, parsed the same in every face."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import PurePath
from typing import Any

from findling.domain.errors import InvalidValueError
from findling.domain.queries import OFFERED, PROPERTIES, Filters

_LONGEST_ECHO = 60


def written_filters(*, called: Mapping[str, str] | None = None, **given: Any) -> Filters:
    """Parse filters; `called` gives the names that a face uses for some of them, for messages.

    Raises InvalidValueError for a value that does not fit, and for limits that contradict each other.
    """
    names = {name: name for name in OFFERED} | dict(called or {})
    readers = {name: _READERS.get(PROPERTIES[name.removeprefix("not_")].kind, _texts) for name in given}
    made = Filters(**{name: read(name, given[name], names[name]) for name, read in readers.items()})
    if both := [name for name in made.ext if name in made.not_ext]:
        message = f"{names['ext']} and {names['not_ext']} both name {', '.join(both)}"
        raise InvalidValueError(message, hint="give an extension to one of them only")
    if made.after is not None and made.before is not None and made.after >= made.before:
        message = f"nothing is after {given['after']} and before {given['before']}"
        raise InvalidValueError(message, hint="exchange the two dates")
    return made


def read_moment(name: str, value: str | float | None, called: str = "") -> float | None:
    """The moment that `after` or `before` names, in seconds since the epoch: a date, `7d` and the like, or a number.

    Raises InvalidValueError for anything else.
    """
    if value is None or value == "":
        return None
    seconds = _seconds(name, value.strip()) if isinstance(value, str) else float(value)
    if not isfinite(seconds):
        called = called or name
        message = f"{called} {str(value)[:_LONGEST_ECHO]} is no date"
        raise InvalidValueError(message, hint=f"{called} 2026-01-31, 2026-01, today, 7d, 2w, 3m or 1y")
    return seconds


def _seconds(name: str, text: str) -> float:
    from datetime import datetime

    from findling.text.query.dates import changed

    found = changed(name, text)
    if found is not None:
        begin = found.after if name == "after" else found.before
        return float("nan") if begin is None else begin
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(text).timestamp()
    with suppress(ValueError):
        return float(text)
    return float("nan")


def _extensions(_: str, values: Iterable[str], name: str) -> tuple[str, ...]:
    """`py`, `.py`, `*.py` and `.PY,.md` as the filter knows them."""
    given = list(values)
    names = [part.strip().removeprefix("*").lstrip(".").lower() for value in given for part in value.split(",")]
    if not all(names):
        raise InvalidValueError(f"{name} {' '.join(given)[:_LONGEST_ECHO]!r} names no extension", hint=f"{name} py")
    return tuple(dict.fromkeys(f".{each}" for each in names))


def _folders(_: str, prefixes: Iterable[str], name: str) -> tuple[str, ...]:
    """Folders as the filter knows them: relative, with slashes, none at all for the searched folder itself."""
    folders = [PurePath(prefix) for prefix in prefixes]
    for folder in folders:
        if folder.is_absolute() or ".." in folder.parts:
            message = f"{name} {str(folder)[:_LONGEST_ECHO]} does not lie in the searched folder"
            raise InvalidValueError(message, hint=f"{name} docs/api")
    return () if PurePath() in folders else tuple(folder.as_posix() for folder in folders)


def _texts(_: str, values: Iterable[str], name: str) -> tuple[str, ...]:
    return tuple(values)


_READERS: dict[str, Callable[[str, Any, str], Any]] = {"ending": _extensions, "path": _folders, "time": read_moment}
