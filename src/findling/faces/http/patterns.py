"""Regular expressions of callers, of whom some must not be able to hold up the others."""

from __future__ import annotations

import re

from findling.domain.errors import InvalidValueError

__all__ = ["checked_pattern"]


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
