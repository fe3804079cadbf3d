"""Taking values out of foreign JSON: what is there in the expected form, or nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from findling.sources.documents.times import parse_iso_time

__all__ = ["YEAR_10000", "first_text", "named_files", "objects", "text", "time"]

YEAR_10000 = 253_402_300_800.0
"""The first second that no calendar of four digits can write."""


def text(value: object, *path: str) -> str:
    """The text at a path of keys; empty when there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def first_text(value: object, *paths: tuple[str, ...]) -> str:
    """The first of several texts that says something."""
    return next((found for path in paths if (found := text(value, *path).strip())), "")


def objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of an array; nothing when it is none."""
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def time(value: object) -> float | None:
    """Seconds since the epoch from a number or from ISO 8601; `None` for anything else."""
    if isinstance(value, str):
        value = parse_iso_time(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value < YEAR_10000 else None


def named_files(entries: object, *keys: str) -> list[str]:
    """A line for each file that came with a message, by the first of the keys that names it."""
    names = (first_text(entry, *((key,) for key in keys)) for entry in objects(entries))
    return [f"(file: {name})" for name in names if name]
