"""Ignore files with git's rules: the deepest file wins, and in a file the last match wins.

Most patterns are plain names, paths or `*.ext` and become dictionary keys. The rest of a file becomes two regular
expressions, so a path costs few steps for any number of patterns. Unlike git, which compares bytes, `?` and
`[...]` match one character.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from findling.sources.files.file_text import UnreadableError, read_bytes

IGNORE_FILES = (".findlingignore", ".ignore", ".gitignore")
"""The ignore files of a directory, strongest first."""

MAX_IGNORE_FILE_SIZE = 4 << 20
# Tokens: a wildcard as it is written, a set as its regular expression, a literal character behind a backslash.
_STAR, _STARS, _ANY = "*", "**", "?"
_LITERAL = "\\"
_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": r"\x21-\x7e", "lower": "a-z", "print": r"\x20-\x7e", "space": r" \t-\r", "upper": "A-Z",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e", "xdigit": "0-9a-fA-F",
}  # fmt: skip
_CLASS = re.compile(r"\[:([^\]]{,64}):\]")  # no name is as long: without an end, each one would search the whole line
_RANGE = re.compile(r"\\?(.)(?:-(?!\])\\?(.))?", re.DOTALL)


class IgnorePattern(NamedTuple):
    """One line of an ignore file; `segments` are its parts between slashes, each a list of tokens."""

    line: int
    text: str
    negated: bool
    directories_only: bool
    anchored: bool
    segments: tuple[tuple[str, ...], ...]


class PatternSet:
    """The patterns of one ignore file."""

    __slots__ = ("_by_name", "_by_path", "_by_suffix", "_name_patterns", "_name_regex", "_path_patterns", "_path_regex")

    def __init__(self, patterns: Iterable[IgnorePattern]) -> None:
        # Tables for files stand at index 0 and for directories at 1; a later pattern replaces an earlier one.
        self._by_name: tuple[dict[str, IgnorePattern], dict[str, IgnorePattern]] = ({}, {})
        self._by_path: tuple[dict[str, IgnorePattern], dict[str, IgnorePattern]] = ({}, {})
        self._by_suffix: tuple[dict[str, IgnorePattern], dict[str, IgnorePattern]] = ({}, {})
        by_name_regex: list[IgnorePattern] = []
        by_path_regex: list[IgnorePattern] = []
        for pattern in patterns:
            if (literal := _literal(pattern)) is not None:
                _enter(self._by_path if pattern.anchored else self._by_name, literal, pattern)
            elif (suffix := _suffix(pattern)) is not None:
                _enter(self._by_suffix, suffix, pattern)
            else:
                (by_path_regex if pattern.anchored else by_name_regex).append(pattern)
        self._name_regex, self._name_patterns = _alternatives(by_name_regex)
        self._path_regex, self._path_patterns = _alternatives(by_path_regex)

    def match(self, path: str, name: str, is_directory: bool) -> IgnorePattern | None:
        """The last pattern that matches a path, which is relative to the directory of the ignore file."""
        found = self._by_name[is_directory].get(name)
        if by_path := self._by_path[is_directory]:
            found = _later(found, by_path.get(path))
        if by_suffix := self._by_suffix[is_directory]:
            found = _later(found, by_suffix.get(name[name.rfind(".") :]))
        slash = "/" if is_directory else ""
        if self._name_regex and (match := self._name_regex.match(name + slash)):
            found = _later(found, self._name_patterns[match.lastindex or 0])
        if self._path_regex and (match := self._path_regex.match(path + slash)):
            found = _later(found, self._path_patterns[match.lastindex or 0])
        return found


class Layer(NamedTuple):
    """The patterns of one ignore file and where they count from: the length of its directory's path."""

    patterns: PatternSet
    source: str
    start: int


def ignoring_rule(layers: Iterable[Layer], path: str, name: str, is_directory: bool) -> str:
    """The rule that ignores a path, as `file:line: pattern`, or an empty string; the first layer to match decides."""
    for patterns, source, start in layers:
        if pattern := patterns.match(path[start:], name, is_directory):
            return "" if pattern.negated else f"{source}:{pattern.line}: {pattern.text}"
    return ""


def layers_of(directory: str, prefix: str, names: Iterable[str], shown_prefix: str) -> tuple[Layer, ...]:
    """The layers of one directory, strongest first.

    `names` are the ignore files it may hold. `prefix` is its path with a trailing slash (or empty), `shown_prefix` the
    same for messages. An unreadable file gives no layer; the walk reports it, as any other file.
    """
    layers = []
    for name in IGNORE_FILES:
        if name in names and (patterns := _read_patterns(f"{directory}/{name}")):
            layers.append(Layer(patterns, shown_prefix + name, len(prefix)))
    return tuple(layers)


def layers_above(root: str) -> tuple[str, tuple[Layer, ...]]:
    """The root's path inside its git repository (with a trailing slash, or empty) and the layers that stand above it.

    When the repository ignores the root itself, its rules say nothing about what lies below: there are no layers.
    """
    place = Path(root).absolute()
    top = next((each for each in (place, *place.parents) if os.path.lexists(each / ".git")), None)
    if top is None:
        return "", ()
    parts = place.relative_to(top).parts
    layers: tuple[Layer, ...] = ()
    if patterns := _read_patterns(str(_git_directory(top) / "info" / "exclude")):
        layers = (Layer(patterns, ".git/info/exclude", 0),)
    prefix = ""
    for depth, part in enumerate(parts):
        layers = layers_of(str(top / prefix), prefix, IGNORE_FILES, "../" * (len(parts) - depth)) + layers
        if ignoring_rule(layers, prefix + part, part, True):
            return "", ()
        prefix += part + "/"
    return prefix, layers


@lru_cache(maxsize=256)
def compile_patterns(text: str) -> PatternSet | None:
    """Compile the text of an ignore file; lines that can match nothing are left out, as git does."""
    lines = text.removeprefix("\ufeff").split("\n")
    patterns = [pattern for number, line in enumerate(lines, 1) if (pattern := _parse(line, number))]
    return PatternSet(patterns) if patterns else None


def _read_patterns(path: str) -> PatternSet | None:
    try:
        data, _ = read_bytes(path, MAX_IGNORE_FILE_SIZE, follow_symlink=False)
    except UnreadableError:
        return None
    return compile_patterns(data.decode("utf-8", "surrogateescape"))


def _git_directory(top: Path) -> Path:
    """Folder of `info/` in a repository: worktrees and submodules have a `.git` file that points there."""
    own = top / ".git"
    if not own.is_file():
        return own
    own = top / _read_value(own).removeprefix("gitdir:").strip()
    return own / _read_value(own / "commondir")


def _read_value(path: Path) -> str:
    try:
        return os.fsdecode(read_bytes(str(path), MAX_IGNORE_FILE_SIZE)[0]).strip()
    except UnreadableError:
        return ""


def _enter(tables: tuple[dict[str, IgnorePattern], dict[str, IgnorePattern]], key: str, pattern: IgnorePattern) -> None:
    files, directories = tables
    directories[key] = pattern
    if not pattern.directories_only:
        files[key] = pattern


def _later(one: IgnorePattern | None, other: IgnorePattern | None) -> IgnorePattern | None:
    if one is None or other is None:
        return one or other
    return one if one.line > other.line else other


def _parse(line: str, number: int) -> IgnorePattern | None:
    text = _without_trailing_spaces(line.removesuffix("\r"))
    if text.startswith("#"):
        return None
    negated = text.startswith("!")
    body = text[1:] if negated else text
    directories_only = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    tokens = _tokens(body.removeprefix("/"))
    if tokens is None:
        return None
    segments: list[list[str]] = [[]]
    for token in tokens:
        if token == "/":
            segments.append([])
        else:
            segments[-1].append(token)
    if not all(segments):
        return None
    return IgnorePattern(number, text, negated, directories_only, anchored, tuple(map(tuple, segments)))


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if backslashes % 2 and kept != line else kept


def _tokens(body: str) -> list[str] | None:
    """Split a pattern into tokens; `None` when it can match nothing (an open bracket, a backslash at the end)."""
    tokens = []
    at = 0
    while at < len(body):
        char = body[at]
        at += 1
        if char == "*":
            start = at
            while body.startswith("*", at):
                at += 1
            tokens.append(_STARS if at > start else _STAR)
        elif char == "[":
            closed = _set(body, at)
            if closed is None:
                return None
            token, at = closed
            tokens.append(token)
        elif char in "?/":
            tokens.append(char)
        else:
            if char == "\\":
                char = body[at : at + 1]
                at += 1
            if not char:
                return None
            tokens.append("/" if char == "/" else _LITERAL + char)
    return tokens


def _set(body: str, at: int) -> tuple[str, int] | None:
    """Compile a bracket expression that opens before `at`; gives the token and the place behind it."""
    negated = body[at : at + 1] in ("!", "^")
    at += negated
    first = at
    items = []
    while body[at : at + 1] != "]" or at == first:
        if found := _CLASS.match(body, at):
            if found[1] not in _CLASSES:
                return None
            items.append(_CLASSES[found[1]])
        elif found := _RANGE.match(body, at):
            low, high = found[1], found[2] or found[1]
            # A range that runs backwards matches its first character alone, as in git.
            items.append(f"{re.escape(low)}-{re.escape(high if low <= high else low)}")
        else:
            return None
        at = found.end()
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", at + 1


def _literal(pattern: IgnorePattern) -> str | None:
    """The name or path of a pattern without wildcards."""
    if all(token[0] == _LITERAL for segment in pattern.segments for token in segment):
        return "/".join("".join(token[1] for token in segment) for segment in pattern.segments)
    return None


def _suffix(pattern: IgnorePattern) -> str | None:
    """The `.ext` of a pattern that is `*.ext`."""
    first, *rest = pattern.segments[0]
    if pattern.anchored or first not in (_STAR, _STARS) or not all(token[0] == _LITERAL for token in rest):
        return None
    suffix = "".join(token[1] for token in rest)
    return suffix if suffix.rfind(".") == 0 else None


def _alternatives(patterns: list[IgnorePattern]) -> tuple[re.Pattern[str] | None, list[IgnorePattern | None]]:
    """One regular expression for many patterns, the last one tried first; the number of its group tells which matched.

    A directory is matched with a slash at its end, so that patterns for directories fit nothing else.
    """
    if not patterns:
        return None, []
    latest_first = patterns[::-1]
    branches = (
        (_path_regex(pattern.segments) if pattern.anchored else _segment_regex(pattern.segments[0]))
        + (r"/\Z()" if pattern.directories_only else r"/?\Z()")
        for pattern in latest_first
    )
    return re.compile("|".join(branches), re.DOTALL), [None, *latest_first]


def _path_regex(segments: tuple[tuple[str, ...], ...]) -> str:
    """The regular expression of a path.

    An atomic group matches what stands between two `**` at its first possible place and never tries again. That finds
    a match whenever there is one, and no pattern can make the walk hang.
    """
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == (_STARS,):
            runs.append([])
        else:
            runs[-1].append(_segment_regex(segment))
    first, *others = runs
    regex = "".join(f"{segment}/" for segment in first) if others else "/".join(first)
    for run in others[:-1]:
        if run:
            regex += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    if others:
        regex += "(?:[^/]+/)*" + "/".join(others[-1]) if others[-1] else ".+"
    return regex


def _segment_regex(segment: tuple[str, ...]) -> str:
    """The regular expression of one part of a path; what stands between two `*` is an atomic group, as above."""
    pieces = [""]
    for token in segment:
        if token in (_STAR, _STARS):
            pieces.append("")
        else:
            pieces[-1] += "[^/]" if token == _ANY else re.escape(token[1]) if token[0] == _LITERAL else token
    if not any(pieces):
        return "[^/]+"
    first, *others = pieces
    middle = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1] if piece)
    return first + middle + (f"[^/]*{others[-1]}" if others else "")
