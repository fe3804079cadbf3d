"""Which resources pass the filters, in the meaning that the keyword leg gives to each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from findling.domain.queries import Filters
from findling.domain.resources import Resource

__all__ = ["dotted", "has_extension", "passes", "prefixes", "time_span"]

_END_OF_TIME = 1 << 62


def passes(resource: Resource, filters: Filters) -> bool:
    """Whether the resource is among those the filters leave."""
    if filters.principals is not None and set(filters.principals).isdisjoint(resource.visibility or ()):
        return False
    if filters.type and resource.type not in filters.type:
        return False
    # A resource without a language or an author is not found by an empty value, either.
    if filters.lang and (not resource.lang or resource.lang not in [lang.lower() for lang in filters.lang]):
        return False
    if filters.author and (not resource.author or resource.author not in filters.author):
        return False
    if filters.tag and set(filters.tag).isdisjoint(resource.tags):
        return False
    return _stands_where(resource.path, filters) and _changed_when(resource.updated_at, filters)


def has_extension(path: str, extensions: tuple[str, ...]) -> bool:
    """Whether the file's name ends in one of the extensions (as `dotted` makes them) and does not begin with it."""
    return path.rpartition("/")[2].lower()[1:].endswith(extensions)


def dotted(extensions: Iterable[str]) -> tuple[str, ...]:
    """Extensions in lower case and with their dot."""
    return tuple(ext.lower() if ext.startswith(".") else f".{ext.lower()}" for ext in extensions)


def prefixes(filters: Filters) -> list[str]:
    """The files and folders that the answer is limited to; an empty one is the whole tree, which is no limit."""
    return [prefix for path in filters.path if (prefix := path.strip("/"))]


def time_span(filters: Filters) -> tuple[int, int] | None:
    """The first second that passes and the first one after that does not; `None` when any time will do."""
    if filters.after is None and filters.before is None:
        return None
    first = -_END_OF_TIME if filters.after is None else math.ceil(filters.after)
    end = _END_OF_TIME if filters.before is None else math.floor(filters.before)
    return max(first, -_END_OF_TIME), min(end, _END_OF_TIME)


def _stands_where(path: str, filters: Filters) -> bool:
    folders = prefixes(filters)
    if folders and not any(path == folder or path.startswith(f"{folder}/") for folder in folders):
        return False
    if filters.ext and not has_extension(path, dotted(filters.ext)):
        return False
    return not has_extension(path, dotted(filters.not_ext))


def _changed_when(updated_at: float | None, filters: Filters) -> bool:
    span = time_span(filters)
    return span is None or (updated_at is not None and span[0] <= int(updated_at) < span[1])
