"""Filters as people write them, parsed the same in every face."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import PurePath

from findling.domain.errors import InvalidValueError
from findling.domain.queries import Filters

__all__ = ["read_moment", "written_filters"]

_LONGEST_ECHO = 60


def written_filters(
    *,
    ext: Iterable[str] = (),
    not_ext: Iterable[str] = (),
    path: Iterable[str] = (),
    type: Iterable[str] = (),  # noqa: A002 - the key of a filter
    lang: Iterable[str] = (),
    tag: Iterable[str] = (),
    author: Iterable[str] = (),
    after: str | float | None = None,
    before: str | float | None = None,
    called: Mapping[str, str] | None = None,
) -> Filters:
    """Parse filters; `called` gives the names that a face uses for some of them, for messages.

    Raises InvalidValueError for a value that does not fit, and for limits that contradict each other.
    """
    names = {name: name for name in ("ext", "not_ext", "path", "after", "before")} | dict(called or {})
    wanted, unwanted = _extensions(names["ext"], ext), _extensions(names["not_ext"], not_ext)
    if both := [name for name in wanted if name in unwanted]:
        message = f"{names['ext']} and {names['not_ext']} both name {', '.join(both)}"
        raise InvalidValueError(message, hint="give an extension to one of them only")
    begin, end = read_moment("after", after, names["after"]), read_moment("before", before, names["before"])
    if begin is not None and end is not None and begin >= end:
        raise InvalidValueError(f"nothing is after {after} and before {before}", hint="exchange the two dates")
    return Filters(
        ext=wanted,
        not_ext=unwanted,
        path=_folders(names["path"], path),
        type=tuple(type),
        lang=tuple(lang),
        tag=tuple(tag),
        author=tuple(author),
        after=begin,
        before=end,
    )


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


def _extensions(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """`py`, `.py`, `*.py` and `.PY,.md` as the filter knows them."""
    given = list(values)
    names = [part.strip().removeprefix("*").lstrip(".").lower() for value in given for part in value.split(",")]
    if not all(names):
        raise InvalidValueError(f"{name} {' '.join(given)[:_LONGEST_ECHO]!r} names no extension", hint=f"{name} py")
    return tuple(dict.fromkeys(f".{each}" for each in names))


def _folders(name: str, prefixes: Iterable[str]) -> tuple[str, ...]:
    """Folders as the filter knows them: relative, with slashes, none at all for the searched folder itself."""
    folders = [PurePath(prefix) for prefix in prefixes]
    for folder in folders:
        if folder.is_absolute() or ".." in folder.parts:
            message = f"{name} {str(folder)[:_LONGEST_ECHO]} does not lie in the searched folder"
            raise InvalidValueError(message, hint=f"{name} docs/api")
    return () if PurePath() in folders else tuple(folder.as_posix() for folder in folders)
