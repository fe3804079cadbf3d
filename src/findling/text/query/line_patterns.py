"""Patterns of lines: compiled as grep reads them, with the literals that every match holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from re import _constants as sre  # type: ignore[attr-defined,unused-ignore]
from re import _parser as parser  # type: ignore[attr-defined,unused-ignore]
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.reports import ExpressionError
from findling.text.query.patterns import REPEATS, fold, front_of, one_letter, quietly, subtrees

_LEADING_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_LOOKS = frozenset({sre.ASSERT, sre.ASSERT_NOT})
_REFERENCES = frozenset({sre.GROUPREF, sre.GROUPREF_EXISTS})
_ENDS_OF_TEXT = frozenset({sre.AT_BEGINNING_STRING, sre.AT_END_STRING})
_LETTERS = frozenset({sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY})
_SPACES = frozenset({(sre.CATEGORY, sre.CATEGORY_SPACE), (sre.LITERAL, ord("\n"))})
_SEEN = re.compile(r"\S")
_MOST_LITERALS = 16
"""Alternatives that are looked for one by one; more of them cost more than the expression itself."""


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

    `literals` are texts of which every match holds one, folded where case is ignored; empty for none. A `plain`
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
    trees = [_made(parser.parse, one, flags) for one in sources]
    found = [required_texts(tree, ignore_case) for tree in trees]
    literals = tuple(dict.fromkeys(text for one in found for text in one[0])) if all(found) else ()
    # A boundary is looked for at both ends of a match, and a longer alternative may have one where a shorter has none.
    around = r"(?<!\w)(?:{})(?!\w)" if words else "{}"
    if len(sources) > 1 and any(tree.state.groupdict or _has(tree, _REFERENCES) for tree in trees):
        regex = AnyExpression([_made(re.compile, around.format(one), flags) for one in sources])
    else:
        joined = "|".join(f"(?:{one})" for one in sources) if len(sources) > 1 else sources[0]
        regex = _made(re.compile, around.format(joined), flags)
    plain = fixed and len(patterns) == 1 and not words and bool(literals)
    few = literals if len(literals) <= _MOST_LITERALS else ()
    return LinePattern(regex, few, plain, any(map(_looks, trees)), ignore_case)


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


def _made(make: Callable[[str, int], Any], source: str, flags: int) -> Any:
    try:
        return quietly(make, source, flags)
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


def lines_crossed(tree: Any) -> float:
    """Breaks between lines with text that a match may hold or look at, at most; infinite where there is no limit.

    White space between them may take any number of empty lines.
    """
    crossed = 0.0
    for op, given in [node for one in subtrees(tree) for node in one]:
        if op in _LETTERS and one_letter(tree, op, given)("\n"):
            crossed += 1 if _SPACES.issuperset(given if op is sre.IN else [(op, given)]) else inf
        elif op in REPEATS and not (len(given[2]) == 1 and given[2][0][0] in _LETTERS):
            crossed += inf if lines_crossed(given[2]) else 0
        elif op is sre.AT and given in _ENDS_OF_TEXT:
            return inf
    return inf if crossed and _has(tree, _REFERENCES) else crossed


def windows(text: str, literals: tuple[str, ...], crossed: int) -> Iterator[tuple[int, int]]:
    """Spans of the lines with a literal, each with as many lines with text in front and behind as a match may cross.

    The first may be empty.
    """
    first = last = 0
    for place in places_of(literals, text):
        start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place) + 1 or len(text)
        for _ in range(crossed):
            # What lies before the last end belongs to the same window anyway.
            start = text.rfind("\n", 0, last + len(text[last:start].rstrip())) + 1
            seen = _SEEN.search(text, end)
            end = (text.find("\n", seen.start()) + 1 if seen else 0) or len(text)
        if start > last:
            yield first, last
            first = start
        last = end
    yield first, last


def required_texts(tree: Sequence[Any], ignore_case: bool) -> tuple[tuple[str, ...], ...]:
    """Runs of letters that every match holds, the longest first, each as texts of which it holds one."""
    found: list[tuple[str, ...]] = []
    run: list[str] = []

    for op, argument in [*tree, (None, None)]:
        run.append(_letter(argument, ignore_case) if op is sre.LITERAL else "")
        if run[-1] or op is sre.AT:
            continue
        if op in REPEATS and argument[0] and (lead := front_of(argument[2])[1]):
            run.append(_letter(lead[0][1], ignore_case))  # every match of `inp+` holds `inp`
        found.append(("".join(run),))
        run.clear()
        if op is sre.SUBPATTERN and not argument[1] and not argument[2]:
            found += required_texts(argument[3], ignore_case)
        elif op in REPEATS and argument[0] > 0:
            found += required_texts(argument[2], ignore_case)
        elif op is sre.ATOMIC_GROUP:
            found += required_texts(argument, ignore_case)
        elif op is sre.BRANCH:
            branches = [required_texts(one, ignore_case) for one in argument[1]]
            found.append(tuple(dict.fromkeys(text for one in branches for text in one[0])) if all(branches) else ())
    usable = [texts for texts in found if texts and len(texts) <= _MOST_LITERALS and min(map(len, texts)) > 1]
    return tuple(sorted(usable, key=lambda texts: (-min(map(len, texts)), len(texts))))


def places_of(literals: tuple[str, ...], text: str, base: int = 0) -> Iterator[int]:
    """Places of any of the literals in order, the first of each line."""
    ahead = [(text.find(one), one) for one in literals]
    while ahead := [(at, one) for at, one in ahead if at >= 0]:
        place = min(ahead)[0]
        yield base + place
        end = text.find("\n", place) + 1 or len(text)
        ahead = [(text.find(one, end) if at < end else at, one) for at, one in ahead]


def _letter(code: int, ignore_case: bool) -> str:
    """The letter to look for; empty for one that ends a line, or is half of one."""
    letter = chr(code)
    return "" if letter == "\n" or 0xD800 <= code < 0xE000 else fold(letter) if ignore_case else letter
