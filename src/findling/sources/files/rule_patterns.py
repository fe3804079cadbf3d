"""Rules of the user: which files an index includes and excludes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import InvalidValueError

if TYPE_CHECKING:
    from findling.sources.files.ignore_rules import PatternSet


class Rules(NamedTuple):
    """Rules of the user.

    `include` holds extensions (`.log2`) and patterns, `exclude` patterns, all in gitignore syntax and relative to the
    root. An exclude wins over everything. An include wins over ignore files and over what a name says. It opens a
    skipped directory only when its path leads there (`build/notes/*.md`, not `.md`). It opens a secret only by its
    exact name. `untrusted` includes admit no secret at all.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    follow_symlinks: bool = False
    use_ignore_files: bool = True
    max_file_size: int = 4 << 20
    max_document_size: int = 64 << 20
    untrusted: tuple[str, ...] = ()


class _CompiledRules(NamedTuple):
    """Rules as patterns. Apart stand trusted includes without wildcards, and the folders that includes lead through."""

    include: PatternSet | None
    exclude: PatternSet | None
    exact_includes: frozenset[str]
    include_leads: tuple[str, ...]


@lru_cache(maxsize=16)
def compile_rules(rules: Rules) -> _CompiledRules:
    """Compile the patterns of the rules. Raises `InvalidValueError` for one that can match nothing."""
    include = _compile_globs([_any_case(glob) if re.fullmatch(r"\.[\w+-]+", glob) else glob for glob in rules.include])
    exact = []
    leads = []
    for glob in rules.include:
        plain, *wildcards = re.split(r"(?<!\\)[*?\[]", glob.strip("/"), maxsplit=1)
        if not wildcards and glob not in rules.untrusted:
            exact.append(_unescape(plain))
        if "/" in glob.rstrip("/") and (lead := plain.rpartition("/")[0] if wildcards else plain):
            leads.append(_unescape(lead) + "/")
    return _CompiledRules(include, _compile_globs(rules.exclude), frozenset(exact), tuple(leads))


def _any_case(extension: str) -> str:
    return "*" + "".join(f"[{char.lower()}{char.upper()}]" if char.isalpha() else char for char in extension)


def _unescape(glob: str) -> str:
    return re.sub(r"\\(.)", r"\1", glob)


def _compile_globs(globs: Iterable[str]) -> PatternSet | None:
    from findling.sources.files.ignore_rules import compile_patterns  # a search compiles no patterns

    for glob in globs:
        if "\n" in glob or compile_patterns(glob) is None:
            hint = "see `man gitignore` for the syntax"
            raise InvalidValueError(f"the pattern {glob!r} can match nothing", hint=hint)
    return compile_patterns("\n".join(globs))
