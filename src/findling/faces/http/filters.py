"""Filters as people write them, made what the engine knows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from math import isfinite
from pathlib import PurePosixPath

from findling.domain.errors import InvalidValueError

__all__ = ["checked_pattern", "extensions", "folders", "moment"]


def extensions(key: str, values: Iterable[str]) -> tuple[str, ...]:
    """`py`, `.py` and `*.PY` as `.py`. Raises InvalidValueError for one without a name."""
    names = [part.strip().removeprefix("*").lstrip(".").lower() for value in values for part in value.split(",")]
    if not all(names):
        raise InvalidValueError(f"{key} names no extension", hint=f'"{key}": ["py"]')
    return tuple(dict.fromkeys(f".{name}" for name in names))


def folders(values: Iterable[str]) -> tuple[str, ...]:
    """Paths from the root of the workspace, none at all for the root itself. Raises InvalidValueError for others."""
    paths = [PurePosixPath(value) for value in values]
    for path in paths:
        if path.is_absolute() or ".." in path.parts:
            raise InvalidValueError(f"path {str(path)[:200]} does not lie in the workspace", hint="such as docs/api")
    return () if PurePosixPath() in paths else tuple(path.as_posix() for path in paths)


def moment(key: str, value: float | str | None) -> float | None:
    """A date, or a number, as seconds since the epoch. Raises InvalidValueError for neither."""
    if value is None:
        return None
    try:
        seconds = value if isinstance(value, float | int) else _seconds(value)
    except (ValueError, OverflowError, OSError):
        seconds = float("nan")
    if not isfinite(seconds):
        raise InvalidValueError(f"{key} {value} is no date", hint="2026-01-31, or seconds since the epoch")
    return float(seconds)


def checked_pattern(pattern: str | None, *, is_owner: bool) -> str | None:
    """A pattern that may be tried on every passage. Raises InvalidValueError for one that could take for ever.

    Nothing can stop an expression while it is tried, and all others wait for it: from anybody but the owner it is taken
    only when it repeats no more than one character or class. Then a passage of 2,000 characters takes 4 million steps
    at worst.
    """
    if pattern is None or is_owner:
        return pattern
    bare = _LITERAL.sub("x", pattern)
    if len(_REPEAT.findall(bare)) > 1 or _REPEATED_GROUP.search(bare) or _REFERENCE.search(pattern):
        raise InvalidValueError(
            "exclude_pattern repeats more than one character or class",
            hint="use *, +, ? or {} once, not behind a group, and no references to groups",
        )
    return pattern


_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:[:=!]|<[=!]|[ims]+\))", re.DOTALL)
"""Escapes, classes, and beginnings of groups: what looks like a repetition there is none."""

_REPEAT = re.compile(r"[*+?{]")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_REFERENCE = re.compile(r"\\[1-9]")


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        return float(text)
