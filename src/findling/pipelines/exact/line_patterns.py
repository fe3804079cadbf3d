"""Patterns of lines: compiled as grep reads them, with the literals that every match holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from re import _constants as sre
from re import _parser as parser
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError

__all__ = ["LinePattern", "compile_lines", "folded"]

_LEADING_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_LOOKS = frozenset({sre.ASSERT, sre.ASSERT_NOT})
_ENDS_OF_TEXT = frozenset({sre.AT_BEGINNING_STRING, sre.AT_END_STRING})
_MOST_LITERALS = 16
"""Alternatives that are looked for one by one; more of them cost more than the expression itself."""

_ODD = re.compile(
    "[\u00b5\u0130\u0131\u017f\u0345\u0390\u03a3\u03b0\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5"
    "\u1c80-\u1c88\u1e9b\u1fbe\u1fd3\u1fe3\ufb05\ufb06]"
)
"""Letters that `re.IGNORECASE` takes for one of another lower case, and those whose lower case depends on others."""


class LinePattern(NamedTuple):
    """A pattern that is tried on single lines.

    `literals` are texts of which every match holds one, in lower case where case is ignored; empty for none. A `plain`
    pattern is nothing but its literal. With `looks` it may look beyond its match, so that each line is tried alone.
    """

    regex: re.Pattern[str]
    literals: tuple[str, ...] = ()
    plain: bool = False
    looks: bool = False
    ignores_case: bool = False


@lru_cache(maxsize=16)
def compile_lines(patterns: tuple[str, ...], *, fixed: bool, ignore_case: bool, words: bool) -> LinePattern:
    """Compile patterns of which a line has to match one. Raises InvalidValueError for what is no expression."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    sources = [re.escape(one) if fixed else _checked(one, flags) for one in patterns]
    joined = "|".join(f"(?:{one})" for one in sources) if len(sources) > 1 else sources[0]
    tree = parser.parse(joined, flags)
    literals = _required(tree, ignore_case)
    # A boundary is looked for at both ends of a match, and a longer alternative may have one where a shorter has none.
    source = rf"(?<!\w)(?:{joined})(?!\w)" if words else joined
    plain = fixed and len(patterns) == 1 and not words and bool(literals)
    return LinePattern(_compiled(source, flags), literals, plain, _looks(tree), ignore_case)


def folded(text: str) -> str | None:
    """The text in lower case, letter by letter; None where a letter has no such counterpart."""
    if not text.isascii() and _ODD.search(text) is not None:
        return None
    lower = text.lower()
    return lower if len(lower) == len(text) else None


def _checked(pattern: str, flags: int) -> str:
    """The pattern as a part of a longer one: flags at its beginning count for it alone."""
    if "\n" in pattern:
        raise InvalidValueError(f"the pattern {pattern!r} holds a line break", hint=r"lines are searched one by one")
    _compiled(pattern, flags)
    flagged = _LEADING_FLAGS.match(pattern)
    return f"(?{flagged[1]}:{pattern[flagged.end() :]})" if flagged else pattern


def _compiled(source: str, flags: int) -> re.Pattern[str]:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `[[` and `--` in a class may mean something else in a later Python
            return re.compile(source, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidValueError(
            f"{source!r} is no regular expression: {error}", hint="-F searches for the characters as they are"
        ) from error


def _looks(tree: Iterable[Any]) -> bool:
    """Whether a part looks at more than what it matches: the text around it, or the ends of the whole text."""
    for op, argument in tree:
        if op in _LOOKS or (op is sre.AT and argument in _ENDS_OF_TEXT):
            return True
        if any(_looks(inner) for inner in _inner(argument)):
            return True
    return False


def _inner(argument: Any) -> Iterable[Iterable[Any]]:
    """The parts of an expression inside of an argument."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for one in argument:
            yield from _inner(one)


def _required(tree: Sequence[Any], ignore_case: bool) -> tuple[str, ...]:
    """Texts of which every match holds one: the longest run of letters, or one of each alternative; empty for none."""
    found: list[tuple[str, ...]] = []
    run: list[str] = []

    def end_run() -> None:
        if run:
            found.append(("".join(run),))
            run.clear()

    for op, argument in tree:
        if op is sre.LITERAL and (letter := _letter(argument, ignore_case)):
            run.append(letter)
            continue
        if op is sre.AT:
            continue
        end_run()
        if op is sre.SUBPATTERN and not argument[1] and not argument[2]:
            found.append(_required(argument[3], ignore_case))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[0] > 0:
            found.append(_required(argument[2], ignore_case))
        elif op is sre.ATOMIC_GROUP:
            found.append(_required(argument, ignore_case))
        elif op is sre.BRANCH:
            branches = [_required(one, ignore_case) for one in argument[1]]
            found.append(tuple(dict.fromkeys(text for one in branches for text in one)) if all(branches) else ())
    end_run()
    usable = [texts for texts in found if texts and len(texts) <= _MOST_LITERALS and min(map(len, texts)) > 1]
    return max(usable, key=lambda texts: (min(map(len, texts)), -len(texts)), default=())


def _letter(code: int, ignore_case: bool) -> str:
    """The letter to look for; empty for one that ends a line, or that has no single lower case."""
    letter = chr(code)
    if letter == "\n" or 0xD800 <= code < 0xE000:
        return ""
    return (folded(letter) or "") if ignore_case else letter
