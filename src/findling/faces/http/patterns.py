"""Regular expressions of callers, of whom some must not be able to hold up the others."""

from __future__ import annotations

import re

from findling.domain.errors import InvalidValueError

__all__ = ["LONGEST_PATTERN", "checked_pattern"]

LONGEST_PATTERN = 500


def checked_pattern(pattern: str | None, *, is_owner: bool) -> str | None:
    """A pattern that may be tried on every passage. Raises InvalidValueError for one that could take for ever.

    Nothing can stop an expression while it is tried, and all others wait for it. So from anybody but the owner it is
    taken only when there is one way to match it: a passage of 2,000 characters then takes a million steps at worst.
    """
    if pattern is None or is_owner:
        return pattern
    if len(pattern) > LONGEST_PATTERN or _LINEAR.fullmatch(pattern) is None:
        raise InvalidValueError(
            "exclude_pattern holds what only the owner may use: repetitions, groups, alternatives or references",
            hint=r"use characters, ., [classes], ^, $, \b, \d, \w, \s, and (?i) at the beginning",
        )
    return pattern


_LINEAR = re.compile(
    r"""
    (?:\(\?i\))?+
    (?: [^\\.\[(){}*+?|]                         # a character that stands for itself, or an anchor
      | \.
      | \\ (?: [bBdDsSwWAZtnr] | [^0-9A-Za-z] )  # neither a reference nor a code of a character
      | \[ \^?+ \]?+ (?: \\. | [^\]\\] )*+ \]
    )*+
    """,
    re.VERBOSE | re.DOTALL,
)
"""Possessive throughout, so that this check is linear itself."""
