"""Patterns of exact searches: their regular expression, and the trigrams without which nothing matches.

Trigrams are three letters in a row of a folded text, within one line. What `re` takes for one letter when it ignores
case is one letter in a folded text, and every letter stays one letter.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import takewhile
from re import _casefix, _compiler, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from findling.core import native
from findling.domain.errors import InvalidValueError
from findling.domain.queries import Pattern, Required
from findling.domain.values import changed

__all__ = [
    "LONGEST_PATTERN",
    "REPEATS",
    "Pattern",
    "Required",
    "coded",
    "compile_folded",
    "compile_pattern",
    "fold",
    "front_of",
    "has_letters",
    "has_scoped_flags",
    "one_letter",
    "parsed_pattern",
    "quietly",
    "required_trigrams",
    "subtrees",
    "trigram_form",
    "trigrams",
]

LONGEST_PATTERN = 1_000
"""Characters of a pattern: as many as a query may have."""

REPEATS = frozenset({_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT})
_LOOKS = frozenset({_parser.AT, _parser.ASSERT, _parser.ASSERT_NOT})

_MOST_WORDS = 16
"""Ways to begin or to end that are told apart; more of them are cut to fewer letters."""

_MOST_CLAUSES = 12
_MOST_COPIES = 4
"""Copies of a counted repeat that are looked at; a trigram needs three."""


@lru_cache(maxsize=64)
def compile_pattern(pattern: Pattern) -> re.Pattern[str]:
    """The expression that finds the pattern. Raises InvalidValueError with the place of a mistake in it."""
    return _checked(pattern, lambda source, flags: re.compile(source, flags))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def compile_folded(pattern: Pattern) -> re.Pattern[str]:
    r"""The expression for texts folded where case is ignored, then of ASCII alone: 3 to 30 times as fast.

    Letters come before what is looked at in front of them, `foo(?<=\bfoo)` for `\bfoo`. Raises InvalidValueError.
    """
    tree = parsed_pattern(pattern)
    if has_scoped_flags(tree):
        return compile_pattern(pattern)
    for part in list(subtrees(tree)) if tree.state.flags & re.IGNORECASE else ():
        for at, (kind, given) in enumerate(part.data):
            if kind is _parser.LITERAL and (given < 128 or not tree.state.flags & re.ASCII):
                part.data[at] = kind, ord(fold(chr(given)))
            elif kind in (_parser.IN, _parser.NOT_LITERAL):
                letters = one_letter(tree, kind, given)
                part.data[at] = _parser.IN, [(_parser.LITERAL, code) for code in range(128) if letters(chr(code))]
    tree.state.flags &= ~re.IGNORECASE
    front, lead = front_of(tree)
    if front and lead:
        behind = _parser.ASSERT, (-1, _parser.SubPattern(tree.state, front + lead))
        tree.data[: len(front + lead)] = [*lead, behind]
    return _compiler.compile(tree)  # type: ignore[no-any-return]


def front_of(tree: Any) -> tuple[list[Any], list[Any]]:
    """The nodes in front that look around, and those for letters behind them."""
    front = list(takewhile(lambda node: node[0] in _LOOKS, tree.data))
    return front, list(takewhile(lambda node: node[0] is _parser.LITERAL, tree.data[len(front) :]))


def has_scoped_flags(tree: Any) -> bool:
    """Whether a part has flags of its own: `(?i:a)b`."""
    return any(op is _parser.SUBPATTERN and (given[1] or given[2]) for one in subtrees(tree) for op, given in one)


def parsed_pattern(pattern: Pattern) -> Any:
    """The expression as a tree of Python's `re`. Raises InvalidValueError."""
    return _checked(pattern, _parser.parse)


def one_letter(tree: Any, kind: Any, given: Any) -> Callable[[str], re.Match[str] | None]:
    """A test of letters by one node of a tree that stands for a letter."""
    return _compiler.compile(_parser.SubPattern(tree.state, [(kind, given)])).match  # type: ignore[no-any-return]


def subtrees(tree: Any) -> Iterator[Any]:
    """A tree, and all those inside of it."""
    if isinstance(tree, _parser.SubPattern):
        yield tree
    for part in tree if isinstance(tree, _parser.SubPattern | list | tuple) else ():
        yield from subtrees(part)


@lru_cache(maxsize=64)
def required_trigrams(pattern: Pattern) -> Required | None:
    """Trigrams of every text that the pattern matches; `None` where none follow from it. Raises InvalidValueError."""
    facts = _sequence(parsed_pattern(pattern)).opened()
    clauses = _bounded(facts.clauses)
    return Required(clauses) if clauses else None


def has_letters(pattern: Pattern) -> bool:
    """Whether a match of the pattern can have a letter; one without any is none. Raises InvalidValueError."""
    return bool(parsed_pattern(pattern).getwidth()[1])


def trigrams(folded: str) -> set[str]:
    """The trigrams of a folded text."""
    return {trigram for trigram in _rows(folded) if "\n" not in trigram}


def trigram_form(folded: str) -> str:
    """The trigrams of a folded text as an index takes them: each once, coded, with spaces between them."""
    if native is not None:
        return native.trigram_form(folded)
    return " ".join([trigram for trigram in _rows(coded(folded)) if "\n" not in trigram])


def coded(folded: str) -> str:
    """The text with capitals, which no folded text has, for letters at which an index would split terms."""
    return folded.translate(_CODES)


def _rows(text: str) -> dict[str, None]:
    return dict.fromkeys(map("".join, zip(text, text[1:], text[2:], strict=False)))


_CODES = str.maketrans(" \t\r\f", "ABCD")


def fold(text: str) -> str:
    """The text with one letter for all those that are equal when case is ignored; as long as it was."""
    if text.isascii():
        return text.lower()
    try:
        text.encode()
    except UnicodeEncodeError:
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)  # halves of letters, which no index takes
    # `lower` makes two letters of the first, and chooses between two sigmas by what follows.
    folded = text.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()
    for letter, first in _same_letters().items():
        if letter in folded:
            folded = folded.replace(letter, first)
    return folded


@cache
def _same_letters() -> dict[str, str]:
    """Lower-case letters that are equal to an earlier one: `ſ` to `s`, `ς` to the same letter as `σ`."""
    groups = ((letter, min(letter, *others)) for letter, others in _casefix._EXTRA_CASES.items())
    return {chr(letter): chr(first) for letter, first in groups if letter != first}


def quietly(read: Callable[[str, int], Any], source: str, flags: int) -> Any:
    """Read an expression: a doubled sign in brackets means the same for ever here, and no warning says otherwise."""
    with _warnings, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(source, flags)


_GLOBAL_FLAGS = re.compile(r"(?:\(\?[aimsux]+\))*")
_warnings = threading.Lock()


def _checked(pattern: Pattern, read: Any) -> Any:
    if len(pattern.text) > LONGEST_PATTERN:
        raise InvalidValueError(
            f"a pattern of {len(pattern.text):,} characters is too long", hint=f"{LONGEST_PATTERN:,} are possible"
        )
    if pattern.whole_words:
        _checked(changed(pattern, whole_words=False), _parser.parse)  # so that the place of a mistake is the typed one
    try:
        return quietly(read, *_source(pattern))
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise _mistake(pattern, f"{error.msg}{place}") from None
    except (OverflowError, RecursionError):
        raise _mistake(pattern, "a number in it is too large, or it is nested too deep") from None


def _source(pattern: Pattern) -> tuple[str, int]:
    flags = re.MULTILINE | (0 if pattern.is_case_sensitive else re.IGNORECASE)
    source = pattern.text if pattern.is_regex else re.escape(pattern.text)
    if not pattern.whole_words:
        return source, flags
    # Flags for all of it stand before everything else, and a comment of a verbose one ends with its line.
    given = _GLOBAL_FLAGS.findall(source)[0] if pattern.is_regex else ""
    end = "\n" if "x" in given else ""
    return rf"{given}(?<!\w)(?:{source[len(given) :]}{end})(?!\w)", flags


def _mistake(pattern: Pattern, what: str) -> InvalidValueError:
    return InvalidValueError(
        f"{pattern.text!r} is no regular expression: {what}",
        hint="a backslash takes the next character literally; quotes search the text as it is",
    )


_Clauses = tuple[frozenset[frozenset[str]], ...]


class _Facts(NamedTuple):
    """Folded texts that a part matches, all of them where `is_whole`; else how it begins, ends, and what it holds."""

    begins: frozenset[str]
    ends: frozenset[str]
    clauses: _Clauses = ()
    is_whole: bool = False

    def opened(self) -> _Facts:
        """The facts of a part that is a whole, with the trigrams in it, as those of one that is not."""
        if not self.is_whole:
            return self._replace(clauses=self.clauses + _clause(self.begins) + _clause(self.ends))
        return _Facts(self.begins, self.ends, self.clauses + _clause(self.begins))


_ANYTHING = _Facts(frozenset({""}), frozenset({""}))
_NOTHING = _ANYTHING._replace(is_whole=True)


def _whole(texts: Iterable[str]) -> _Facts:
    found = frozenset(texts)
    return _Facts(found, found, is_whole=True)


def _sequence(nodes: Iterable[Any]) -> _Facts:
    facts = _NOTHING
    for node in nodes:
        facts = _joined(facts, _facts(*node))
    return facts


def _facts(kind: Any, given: Any) -> _Facts:
    """The facts of one node of the expression's tree."""
    return _FACTS[kind](given) if kind in _FACTS else _ANYTHING


def _of_class(members: Iterable[Any]) -> _Facts:
    letters = set[str]()
    for kind, given in members:
        if kind is _parser.LITERAL:
            given = given, given
        elif kind is not _parser.RANGE:
            return _ANYTHING
        if given[1] - given[0] > 2 * _MOST_WORDS:
            return _ANYTHING
        letters.update(fold(chr(code)) for code in range(given[0], given[1] + 1))
    return _whole(letters) if len(letters) <= _MOST_WORDS else _ANYTHING


def _repeated(least: int, most: Any, nodes: Any) -> _Facts:
    one = _sequence(nodes)
    if least == 0:
        return _alternatives([one, _NOTHING]) if most == 1 else _ANYTHING
    copies = min(int(least), _MOST_COPIES)
    facts = one
    for _ in range(copies - 1):
        facts = _joined(facts, one)
    return facts if copies == most else facts.opened()


_FACTS: dict[Any, Callable[[Any], _Facts]] = {
    _parser.LITERAL: lambda code: _whole([fold(chr(code))]),
    _parser.IN: _of_class,
    _parser.BRANCH: lambda given: _alternatives(map(_sequence, given[1])),
    _parser.SUBPATTERN: lambda given: _sequence(given[3]),
    _parser.ATOMIC_GROUP: _sequence,
    **dict.fromkeys(REPEATS, lambda given: _repeated(*given)),
    _parser.GROUPREF_EXISTS: lambda given: _alternatives([_sequence(given[1]), _sequence(given[2] or ())]),
    _parser.ASSERT: lambda given: _NOTHING._replace(clauses=_sequence(given[1]).opened().clauses),
    **dict.fromkeys((_parser.AT, _parser.ASSERT_NOT), lambda _: _NOTHING),
}


def _joined(first: _Facts, then: _Facts) -> _Facts:
    """The facts of one part and another right behind it."""
    clauses = first.clauses + then.clauses
    if first.is_whole and then.is_whole and len(first.ends) * len(then.begins) <= _MOST_WORDS:
        return _whole(a + b for a in first.ends for b in then.begins)._replace(clauses=clauses)
    first, then = _shortened(first), _shortened(then)
    middle = frozenset(a + b for a in first.ends for b in then.begins)
    begins = middle if first.is_whole else first.begins
    ends = middle if then.is_whole else then.ends
    clauses = first.clauses + then.clauses + _clause(middle)
    if first.is_whole:
        clauses += _clause(first.begins)
    if then.is_whole:
        clauses += _clause(then.begins)
    return _few(_Facts(begins, ends, clauses))


def _shortened(facts: _Facts) -> _Facts:
    """The facts such that a crossing of their ends with others stays small."""
    if len(facts.begins) <= 4 and len(facts.ends) <= 4:
        return facts
    opened = facts.opened()
    return opened._replace(begins=_cut(opened.begins, 4, at_end=False), ends=_cut(opened.ends, 4, at_end=True))


def _few(facts: _Facts) -> _Facts:
    begins, ends = (_cut(texts, _MOST_WORDS, at_end=at) for texts, at in ((facts.begins, False), (facts.ends, True)))
    return facts._replace(begins=begins, ends=ends, clauses=_bounded(facts.clauses))


def _cut(texts: frozenset[str], most: int, *, at_end: bool) -> frozenset[str]:
    for letters in (2, 1, 0):
        if len(texts) <= most:
            break
        texts = frozenset(text[max(len(text) - letters, 0) :] if at_end else text[:letters] for text in texts)
    return texts


def _alternatives(parts: Iterable[_Facts]) -> _Facts:
    facts = list(parts)
    texts = frozenset[str]().union(*(one.begins for one in facts))
    if all(one.is_whole and not one.clauses for one in facts) and len(texts) <= _MOST_WORDS:
        return _whole(texts)
    opened = [one.opened() for one in facts]
    clauses = _bounded(opened[0].clauses)
    for one in opened[1:]:
        clauses = _bounded(tuple(a | b for a in clauses for b in _bounded(one.clauses)))
    begins = frozenset[str]().union(*(one.begins for one in opened))
    ends = frozenset[str]().union(*(one.ends for one in opened))
    return _few(_Facts(begins, ends, clauses))


def _clause(texts: frozenset[str]) -> _Clauses:
    sets = frozenset(frozenset(trigrams(text)) for text in texts)
    return (sets,) if sets and all(sets) else ()


def _bounded(clauses: _Clauses) -> _Clauses:
    """The clauses with those of one set as one, the narrowest first, and no more of them than are worth asking."""
    certain = frozenset[str]().union(*(one for clause in clauses if len(clause) == 1 for one in clause))
    open_ones = {clause for clause in clauses if len(clause) > 1 and not any(one <= certain for one in clause)}
    kept = sorted(open_ones, key=lambda clause: (len(clause), sorted(map(sorted, clause))))
    kept = [clause for clause in kept if len(clause) <= 4 * _MOST_WORDS][:_MOST_CLAUSES]
    return ((frozenset({certain}),) if certain else ()) + tuple(kept)
