"""Globs over the paths of an index, in gitignore syntax."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from findling.domain.errors import InvalidValueError
from findling.domain.reports import GlobAnswer, ListedFile
from findling.pipelines.retrieve.legs import Retrievers
from findling.sources.files.ignore_rules import PatternSet, compile_patterns
from findling.text.query.leaves import brace_choices

_BRACES = re.compile(r"(?<!\\)\{([^{}]*)\}")
_MOST_PATTERNS = 1_000
"""Patterns that braces may stand for."""


def glob(
    legs: Retrievers, patterns: Sequence[str], *, below: str = "", newest: bool = False, limit: int = 0
) -> GlobAnswer:
    """The indexed files below a folder that a glob matches, itself or by a folder above it.

    They come in the order of their paths, or the `newest` first. Raises InvalidValueError for what is no glob.
    """
    accepts = path_filter(patterns, below, takes_folders=True)
    found = [
        ListedFile(one.path, one.updated_at)
        for one in legs.store.resources()
        if one.path and is_at(one.path, below) and accepts(one.path)
    ]
    found.sort(key=lambda file: (-(file.updated_at or 0.0) if newest else 0.0, path_order(file.path)))
    return GlobAnswer(files=tuple(found[:limit] if limit else found), total=len(found))


def is_at(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it; everything lies below an empty one."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def path_order(path: str) -> list[str]:
    """A key that sorts paths folder by folder, each by its names."""
    return path.split("/")


def path_filter(globs: Sequence[str], base: str = "", *, takes_folders: bool = False) -> Callable[[str], bool]:
    """A test of paths, which globs are relative to the folder `base` of; the last one that matches decides.

    One with `!` in front leaves files out, also those below a folder that it matches. `takes_folders` has the others
    accept what lies below a folder, too. Raises InvalidValueError for a glob that can match nothing.
    """
    expanded = [pattern for given in globs for pattern in _expanded(given)]
    if not expanded:
        return lambda path: True
    compiled, wants = _compiled(expanded), any(not one.startswith("!") for one in expanded)
    lead = f"{base}/" if base else ""

    def accepts(path: str) -> bool:
        if not path.startswith(lead):
            return not wants
        inner, is_wanted = path[len(lead) :], False
        for folder in _folders(inner):
            rule = compiled.match(folder, folder.rpartition("/")[2], True)
            if rule is not None:
                if rule.negated:
                    return False
                is_wanted = takes_folders
        rule = compiled.match(inner, inner.rpartition("/")[2], False)
        return not rule.negated if rule is not None else is_wanted or not wants

    return accepts


def _compiled(patterns: Sequence[str]) -> PatternSet:
    for one in patterns:
        if "\n" in one or compile_patterns(one) is None:
            raise InvalidValueError(f"the glob {one!r} can match nothing", hint="see `man gitignore` for the syntax")
    compiled = compile_patterns("\n".join(patterns))
    assert compiled is not None
    return compiled


def _expanded(pattern: str) -> list[str]:
    """The patterns that braces stand for. Raises InvalidValueError for too many."""
    found = list(islice(brace_choices(pattern, _BRACES), _MOST_PATTERNS + 1))
    if len(found) > _MOST_PATTERNS:
        raise InvalidValueError(f"the braces of {pattern!r} stand for too many globs", hint="use fewer of them")
    return found


def _folders(path: str) -> Iterator[str]:
    """The folders above a path, the outermost first."""
    slash = path.find("/")
    while slash >= 0:
        yield path[:slash]
        slash = path.find("/", slash + 1)
