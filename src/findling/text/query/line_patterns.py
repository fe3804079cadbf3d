"""Patterns of lines: compiled as grep reads them, with the literals that every match holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from re import _constants as sre
from re import _parser as parser
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.reports import ExpressionError
from findling.text.query.patterns import one_letter, subtrees

__all__ = [
    "AnyExpression",
    "LinePattern",
    "compile_lines",
    "folded",
    "has_scoped_flags",
    "places_of",
    "required_texts",
    "stays_in_line",
]

_LEADING_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_LOOKS = frozenset({sre.ASSERT, sre.ASSERT_NOT})
_REFERENCES = frozenset({sre.GROUPREF, sre.GROUPREF_EXISTS})
_ENDS_OF_TEXT = frozenset({sre.AT_BEGINNING_STRING, sre.AT_END_STRING})
_LETTERS = frozenset({sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY})
_MOST_LITERALS = 16
"""Alternatives that are looked for one by one; more of them cost more than the expression itself."""

_ODD = re.compile(
    "[\u00b5\u0130\u0131\u017f\u0345\u0390\u03a3\u03b0\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5"
    "\u1c80-\u1c88\u1e9b\u1fbe\u1fd3\u1fe3\ufb05\ufb06]"
)
"""Letters that `re.IGNORECASE` takes for one of another lower case, and those whose lower case depends on others."""


class AnyExpression:
    r"""Several expressions as one: the leftmost match counts, of several there that of the first.

    The references in each stay its own: with `|` between their sources, `\1` would mean a group of another.
    """

    def __init__(self, expressions: Sequence[re.Pattern[str]]) -> None:
        self._expressions = expressions

    def search(self, text: str, *span: int) -> re.Match[str] | None:
        """The first match in a text, or in a span of it."""
        found = [match for one in self._expressions if (match := one.search(text, *span)) is not None]
        return min(found, key=re.Match.start, default=None)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """The matches that do not overlap, in order."""
        start = 0
        while start <= len(text) and (match := self.search(text, start)) is not None:
            yield match
            start = match.end() + (match.end() == match.start())


class LinePattern(NamedTuple):
    """A pattern that is tried on single lines.

    `literals` are texts of which every match holds one, in lower case where case is ignored; empty for none. A `plain`
    pattern is nothing but its literal. With `looks` it may look beyond its match, so that each line is tried alone.
    """

    regex: re.Pattern[str] | AnyExpression
    literals: tuple[str, ...] = ()
    plain: bool = False
    looks: bool = False
    ignores_case: bool = False


@lru_cache(maxsize=16)
def compile_lines(patterns: tuple[str, ...], *, fixed: bool, ignore_case: bool, words: bool) -> LinePattern:
    """Compile patterns of which a line has to match one. Raises InvalidValueError for what is no expression."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    sources = [re.escape(one) if fixed else _alone(one) for one in map(_in_one_line, patterns)]
    trees = [_parsed(one, flags) for one in sources]
    found = [required_texts(tree, ignore_case) for tree in trees]
    literals = tuple(dict.fromkeys(text for one in found for text in one)) if all(found) else ()
    # A boundary is looked for at both ends of a match, and a longer alternative may have one where a shorter has none.
    around = r"(?<!\w)(?:{})(?!\w)" if words else "{}"
    regex: re.Pattern[str] | AnyExpression
    if len(sources) > 1 and any(tree.state.groupdict or _has(tree, _REFERENCES) for tree in trees):
        regex = AnyExpression([_compiled(around.format(one), flags) for one in sources])
    else:
        joined = "|".join(f"(?:{one})" for one in sources) if len(sources) > 1 else sources[0]
        regex = _compiled(around.format(joined), flags)
    is_few = len(literals) <= _MOST_LITERALS
    plain = fixed and len(patterns) == 1 and not words and bool(literals)
    return LinePattern(regex, literals if is_few else (), plain, any(map(_looks, trees)), ignore_case)


def folded(text: str) -> str | None:
    """The text in lower case, letter by letter; None where a letter has no such counterpart."""
    if not text.isascii() and _ODD.search(text) is not None:
        return None
    lower = text.lower()
    return lower if len(lower) == len(text) else None


def _in_one_line(pattern: str) -> str:
    if "\n" in pattern:
        raise InvalidValueError(f"the pattern {pattern!r} holds a line break", hint="lines are searched one by one")
    return pattern


def _alone(pattern: str) -> str:
    """The pattern as a part of a longer one: flags at its beginning count for it alone."""
    flagged = _LEADING_FLAGS.match(pattern)
    if flagged is None:
        return pattern
    # A comment would end behind the bracket.
    end = "\n)" if "x" in flagged[1] else ")"
    return f"(?{flagged[1]}:{pattern[flagged.end() :]}{end}"


def _parsed(source: str, flags: int) -> Any:
    with _reported(source):
        return parser.parse(source, flags)


def _compiled(source: str, flags: int) -> re.Pattern[str]:
    with _reported(source):
        return re.compile(source, flags)


@contextmanager
def _reported(source: str) -> Iterator[None]:
    """Report what is no expression. Raises InvalidValueError."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `[[` and `--` in a class may mean something else in a later Python
            yield
    except (re.error, RecursionError, OverflowError) as error:
        raise ExpressionError(
            f"{source!r} is no regular expression: {error}", hint="-F searches for the characters as they are"
        ) from error


def _looks(tree: Iterable[Any]) -> bool:
    """Whether a part looks at more than what it matches: the text around it, or the ends of the whole text."""
    return _has(tree, _LOOKS) or _has(tree, frozenset({sre.AT}), _ENDS_OF_TEXT)


def _has(tree: Any, ops: frozenset[Any], arguments: frozenset[Any] | None = None) -> bool:
    """Whether an expression has a part of some kind anywhere."""
    nodes = (node for one in subtrees(tree) for node in one)
    return any(op in ops and (arguments is None or argument in arguments) for op, argument in nodes)


def has_scoped_flags(tree: Any) -> bool:
    """Whether a part has flags of its own: `(?i:a)b`."""
    return any(op is sre.SUBPATTERN and (given[1] or given[2]) for one in subtrees(tree) for op, given in one)


def stays_in_line(tree: Any) -> bool:
    """Whether no match crosses a line feed, or looks at one or at the ends of the text."""
    nodes = [node for one in subtrees(tree) for node in one]
    feeds = any(op in _LETTERS and one_letter(tree, op, argument)("\n") for op, argument in nodes)
    return not feeds and not _has(tree, frozenset({sre.AT}), _ENDS_OF_TEXT)


def required_texts(tree: Sequence[Any], ignore_case: bool) -> tuple[str, ...]:
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
            found.append(required_texts(argument[3], ignore_case))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[0] > 0:
            found.append(required_texts(argument[2], ignore_case))
        elif op is sre.ATOMIC_GROUP:
            found.append(required_texts(argument, ignore_case))
        elif op is sre.BRANCH:
            branches = [required_texts(one, ignore_case) for one in argument[1]]
            found.append(tuple(dict.fromkeys(text for one in branches for text in one)) if all(branches) else ())
    end_run()
    usable = [texts for texts in found if texts and len(texts) <= _MOST_LITERALS and min(map(len, texts)) > 1]
    return max(usable, key=lambda texts: (min(map(len, texts)), -len(texts)), default=())


def places_of(literals: tuple[str, ...], text: str, base: int = 0) -> Iterator[int]:
    """Places of any of the literals in order; the next one is looked for behind the line of the last."""
    ahead = {literal: text.find(literal) for literal in literals}
    while ahead := {literal: place for literal, place in ahead.items() if place >= 0}:
        first = min(ahead.values())
        yield base + first
        feed = text.find("\n", first)
        if feed < 0:
            return
        for literal, place in ahead.items():
            if place <= feed:
                ahead[literal] = text.find(literal, feed + 1)


def _letter(code: int, ignore_case: bool) -> str:
    """The letter to look for; empty for one that ends a line, or that has no single lower case."""
    letter = chr(code)
    if letter == "\n" or 0xD800 <= code < 0xE000:
        return ""
    return (folded(letter) or "") if ignore_case else letter
