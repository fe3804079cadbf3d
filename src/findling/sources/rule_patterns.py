"""The patterns that the user's rules stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from findling.domain.errors import InvalidValueError
from findling.sources.ignore_rules import PatternSet, compile_patterns
from findling.sources.user_rules import Rules

__all__ = ["CompiledRules", "compile_rules"]


class CompiledRules(NamedTuple):
    """Rules as patterns. Apart stand trusted includes without wildcards, and the folders that includes lead through."""

    include: PatternSet | None
    exclude: PatternSet | None
    exact_includes: frozenset[str]
    include_leads: tuple[str, ...]


@lru_cache(maxsize=16)
def compile_rules(rules: Rules) -> CompiledRules:
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
    return CompiledRules(include, _compile_globs(rules.exclude), frozenset(exact), tuple(leads))


def _any_case(extension: str) -> str:
    return "*" + "".join(f"[{char.lower()}{char.upper()}]" if char.isalpha() else char for char in extension)


def _unescape(glob: str) -> str:
    return re.sub(r"\\(.)", r"\1", glob)


def _compile_globs(globs: Iterable[str]) -> PatternSet | None:
    for glob in globs:
        if "\n" in glob or compile_patterns(glob) is None:
            raise InvalidValueError(
                f"the pattern {glob!r} can match nothing", hint="see `man gitignore` for the syntax"
            )
    return compile_patterns("\n".join(globs))
