"""The values of an item, from JSON to text: every one is checked, and an error names its key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from findling.domain.errors import InvalidValueError

__all__ = ["flat_lines", "moment", "one_line", "text_list", "text_of"]

_DEEPEST = 20
"""Levels of an object; what is nested deeper is no metadata that a person wrote."""

_LATEST = 253_402_300_800.0
"""The end of the year 9999; a greater number counts milliseconds."""


def text_of(value: object, key: str) -> str:
    """A text, number or truth value as text, an object as lines; nothing for null. Raises InvalidValueError."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "\n".join(flat_lines(value, key))
    if isinstance(value, (list, tuple)):
        raise InvalidValueError(f"{key} must be one value, not a list", hint="write one text")
    return _scalar(value, key)


def one_line(value: object, key: str) -> str:
    """A text without breaks. Raises InvalidValueError."""
    if isinstance(value, Mapping):
        raise InvalidValueError(f"{key} must be a text, not an object", hint="write one text")
    return " ".join(text_of(value, key).split())


def text_list(value: object, key: str) -> tuple[str, ...]:
    """A list of texts without what is empty; one value is a list of one, an object in it is one text.

    Raises InvalidValueError.
    """
    if value is None:
        return ()
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    texts = ("; ".join(flat_lines(each, key)) if isinstance(each, Mapping) else text_of(each, key) for each in values)
    return tuple(text.strip() for text in texts if text.strip())


def flat_lines(table: Mapping[str, object], key: str) -> Iterator[str]:
    """`name: value` for every value in an object, however deep: `team.lead: Ann`. Raises InvalidValueError."""
    return (f"{name}: {text}" for name, text in _leaves(table, "", key, 0) if text)


def moment(value: object, key: str) -> float | None:
    """Seconds since the epoch, from a number of them or from ISO 8601; without a zone it is UTC.

    Raises InvalidValueError.
    """
    if value is None:
        return None
    hint = "2026-04-08, 2026-04-08T08:38:00Z or seconds since 1970"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidValueError(f"{key} must be a time, not {value!r}", hint=hint)
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidValueError(f"{key} must be a time, not {value!r}", hint=hint) from error
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(value) or abs(value) >= _LATEST:
        raise InvalidValueError(f"{key} must be a time, not {value!r}", hint=f"{hint}; not milliseconds")
    return float(value)


def _scalar(value: object, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
    if not isinstance(value, str):
        raise InvalidValueError(f"{key} must be a text, not {type(value).__name__}", hint="write it as a string")
    if not value.isascii() and not _is_unicode(value):
        raise InvalidValueError(f"{key} holds characters that are not valid Unicode", hint="leave them out")
    return value.replace("\0", "")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _leaves(value: object, name: str, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        raise InvalidValueError(f"{key} is nested deeper than {_DEEPEST} levels", hint="make it flatter")
    if isinstance(value, Mapping):
        for part, inner in value.items():
            label = " ".join(_scalar(part, key).split())
            yield from _leaves(inner, f"{name}.{label}" if name else label, key, depth + 1)
    elif isinstance(value, (list, tuple)):
        if all(not isinstance(each, (Mapping, list, tuple)) for each in value):
            yield name, ", ".join(filter(None, (text_of(each, key) for each in value)))
            return
        for each in value:
            yield from _leaves(each, name, key, depth + 1)
    else:
        yield name, text_of(value, key)
