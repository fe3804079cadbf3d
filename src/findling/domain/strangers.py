"""The gate for strangers: all that a project file or a bundle may set besides its content, and patterns of callers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.plans import JUDGED, KNOBS

LOWERED = frozenset(
    {
        "index.max_document_size",
        "index.max_file_size",
        "index.max_seconds",
        "index.max_text",
        "mcp.max_tokens",
        "quota.disk",
        "quota.resources",
        "quota.text",
    }
    | {knob.row for knob in KNOBS.values() if knob.project == "lower"}
)
"""Limits that a project file may lower, and never raise."""

PROJECT_SETTINGS = (
    LOWERED
    | {knob.row for knob in KNOBS.values() if knob.project}
    | {
        "chunk.code",
        "chunk.preset",
        "context.path",
        "context.system",
        "context.types",
        "context.workspace",
        "index.exclude",
        "index.hidden",
        "index.include",
        "index.use_ignore_files",
        "keyword.unit",
        "search.context",
        "search.limit",
        "search.profile",
        "search.refresh",
        "search.snippet_lines",
    }
)
"""All settings of a project file: what is searched, how texts are cut, how hits are ranked and shown.

None of them reaches outside the project, spends more of the machine, or chooses who is sent something.
"""

TRUSTS: Mapping[str, str] = {
    "rights": "who may see what: relations, and the list of each resource",
    "root": "the folder that the workspace follows",
    "survey": "what the latest indexing run has seen, by which unchanged files are not read again",
}
"""Parts of a bundle besides content, each taken only where the owner trusts it by this name."""

BUNDLE_META: Mapping[str, str] = {
    "order": "",
    "settings": "",
    "root": "root",
    "kept": "survey",
    "folders": "survey",
    "skipped": "survey",
}
"""All keys of a bundle's `meta.json`, and the trust that each needs; none for content and remarks."""

BUNDLE_KEPT = ("rules", "made_by", "formats", "limits")
"""All keys of `kept` in `meta.json`: small values that say under which circumstances files were read."""

BUNDLE_KEPT_OF_MODEL = "chosen by "
"""The start of the other ones, before the fingerprint of a model that the bundle has vectors of."""

_NO_LIMIT_IS_ZERO = frozenset({"quota.disk", "quota.resources", "quota.text"})

_SMALLEST_CHUNK = 50
"""Characters, words or tokens of a chunk as a project may cut; those of the presets have 200 and more."""

_DRIVE = r"[A-Za-z]:"


def raises_limit(name: str, value: float | None, own: float | None) -> bool:
    """Whether a project's value of a setting is a limit that is higher than the user's own; none is the usual depth."""
    if name not in LOWERED:
        return False
    value, own = (JUDGED if one is None else one for one in (value, own))
    return bool(own) and (not value or value > own) if name in _NO_LIMIT_IS_ZERO else value > own


def cuts_too_fine(size: int, overlap: int) -> bool:
    """Whether chunks as a project wants them are a flood: 57 KB in chunks of two characters were 48,000 of them."""
    return size < _SMALLEST_CHUNK or 2 * overlap > size


def check_trust(names: Iterable[str]) -> frozenset[str]:
    """The names of what is trusted. Raises UsageError for what is none."""
    trusted = frozenset(names)
    for name in sorted(trusted - TRUSTS.keys()):
        raise UsageError(f"{name!r} is nothing that a bundle can be trusted with", hint=f"one of {', '.join(TRUSTS)}")
    return trusted


def is_safe_path(path: str) -> bool:
    """Whether a path leads to something below the folder it is relative to, on every system; an empty one does not."""
    parts = path.replace("\\", "/").split("/")
    return "\0" not in path and not re.match(_DRIVE, path) and not any(part in ("", ".", "..") for part in parts)


LONGEST_PATTERN = 500


def checked_pattern(pattern: str, *, is_owner: bool, name: str = "exclude_pattern") -> None:
    """Check a pattern that is to be tried on every passage. Raises InvalidValueError for one that could take for ever.

    An expression may compute for seconds before anything ends it. So from anybody but the owner it is taken only when
    there is one way to match it: a passage of 2,000 characters then takes a million steps at worst.
    """
    if not is_owner and (len(pattern) > LONGEST_PATTERN or not is_linear(pattern)):
        raise InvalidValueError(
            f"{name} holds what only the owner may use: repetitions, groups, alternatives or references",
            hint=r"use characters, ., [classes], ^, $, \b, \d, \w, \s, and (?i) at the beginning",
        )


def is_linear(pattern: str) -> bool:
    """Whether there is one way to match a pattern: it has no repetition, group, alternative or reference."""
    return _LINEAR.fullmatch(pattern) is not None


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
