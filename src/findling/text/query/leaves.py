"""The leaves of a query tree, from the words, phrases and conditions on fields that a person typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.queries import PROPERTIES, All, Any, Field, Fuzzy, Near, Node, Pattern, Phrase, Prefix, Term
from findling.text.analysis.analysis import phrase_terms, row_terms, terms
from findling.text.analysis.scripts import LONGEST_WORD, compiled, is_unspaced
from findling.text.query.lexer import (
    FIELD_NAMES,
    KEYWORD,
    OPENING_QUOTES,
    REGEX,
    is_plain,
    shortened,
    split_suffix,
    unescaped,
    unquoted,
)

CODE_LANGUAGES = tuple(
    "abap ada agda apex applescript assembly astro autohotkey awk bash batch c clojure cmake cobol coffeescript cpp "
    "crystal csharp css cuda cython d dart dockerfile elixir elm erlang fennel fortran fsharp gdscript gleam glsl go "
    "graphql groovy haskell haxe hcl idl idris janet java javascript julia kotlin lean lisp lua make mojo nim nix "
    "objectivec ocaml odin pascal perl php policy powershell prisma prolog proto puppet purescript python qml r racket "
    "ruby rust scala scheme smalltalk solidity sql stan svelte swift systemverilog tcl template typescript typst vala "
    "vb vhdl vim vue webassembly zig".split()
)
"""The languages of `is:code`."""

SINGLE_VALUED = frozenset(one.name for one in PROPERTIES.values() if one.single)
"""A path may well contain two texts, an author have two names, and a resource belong to two systems: both must hold."""


def condition(name: str, values: list[str], now: float | None = None) -> Node | None:
    """The node for a field with any of these values; `None` when a value is impossible."""
    if not values:
        return None
    kind = PROPERTIES[name].kind
    if kind in ("state", "time"):
        from findling.text.query.dates import changed

        nodes = [_STATES.get(value.lower()) if kind == "state" else changed(name, value, now) for value in values]
        known = tuple(dict.fromkeys(node for node in nodes if node is not None))
        return None if None in nodes else known[0] if len(known) == 1 else Any(known)
    cleaned = dict.fromkeys(_clean(kind, value) for value in values)
    return Field(name, tuple(cleaned)) if all(cleaned) else None


def in_braces(values: Iterable[str]) -> list[str]:
    """The raw values of a path with all that braces stand for: `*.{py`, `go}` are `*.py`, `*.go`."""
    found: list[str] = []
    # The lexer has cut them at commas, also inside of braces; quotes keep theirs.
    for is_quoted, some in groupby(values, lambda value: value[0] in OPENING_QUOTES):
        if is_quoted:
            found += some
            continue
        for value in re.findall(r"(?:[^,{}]|\{[^{}]*\}|[{}])+", ",".join(some)):
            choices = list(islice(brace_choices(value, _BRACES), _MOST_CHOICES + 1))
            found += choices if len(choices) <= _MOST_CHOICES else [value]
    return found


def brace_choices(pattern: str, braces: re.Pattern[str]) -> Iterator[str]:
    """The patterns that braces stand for, in order: `*.{ts,tsx}` is `*.ts` and `*.tsx`."""
    match = braces.search(pattern)
    if match is None:
        yield pattern
        return
    for choice in match[1].split(","):
        yield from brace_choices(pattern[: match.start()] + choice + pattern[match.end() :], braces)


_BRACES = re.compile(r"(?<!\\)\{([^{},]*,[^{}]*)\}")
"""Braces without a comma are those of a name, such as `{{cookiecutter.name}}`."""

_MOST_CHOICES = 30
"""Paths that the braces of one value may stand for."""


def nearest_field(name: str) -> str:
    """The field that a person may have meant by another name; empty when none is near."""
    from difflib import get_close_matches

    lower = name.lower()
    rivals = [field for field in FIELD_NAMES if field[0] == lower[0] and len(field) > 2]
    meant = [one.name for one in PROPERTIES.values() if lower in one.meant_by.split()]
    return next(iter(meant or get_close_matches(lower, rivals, n=1, cutoff=0.8)), "")


_STATES: dict[str, Node] = {
    "code": Field("lang", CODE_LANGUAGES),
    "chat": Field("type", ("chat",)),
    "head": Field("is", ("head",)),
    "superseded": Field("is", ("superseded",)),
}


def _clean(kind: str, value: str) -> str:
    """The value in the form that is stored; empty when it is impossible."""
    if kind == "path":
        return value.replace("\\", "/")
    if kind == "ending":
        return value.lstrip("*") if value.strip("*.") else ""
    return value if kind != "names" or terms(value) else ""


_FARTHEST = 100
"""The most words that may stand between two that are asked for near each other."""

TOO_LONG = "is too long to be one, and is left out"
UNCLOSED_QUOTE = "a quote that is never closed runs to the end"

_NEAR = 10
_SHORTEST_PREFIX = 2
_LONG_WORD = 8
_MOST_EDITS = 2


class Remarks(NamedTuple):
    """Findings of the parser: the operators in use, and notes for the person."""

    operators: set[str]
    notes: list[str]


def word_leaf(raw: str, field: str, remarks: Remarks) -> Node | None:
    """The leaf of a raw word with or without `*` or `~2` at its end; `None` when there is no term in it."""
    if is_plain(raw):
        return term_leaf(raw, field)
    base, suffix = split_suffix(raw)
    text = unescaped(base.lstrip("-"))
    if not suffix:
        return term_leaf(text, field)
    return _prefix(text, field, remarks) if suffix[0] == "*" else _fuzzy(text, suffix[1:], field, remarks)


def phrase_leaf(raw: str, field: str, remarks: Remarks) -> Node | None:
    """The leaf of a quotation with or without `*` or `~5` behind it; `None` when there is no term in it."""
    body, suffix, is_closed = unquoted(raw)
    text = " ".join(body.split())
    if not is_closed:
        remarks.notes.append(UNCLOSED_QUOTE)
    if not phrase_terms(text):
        return None
    remarks.operators.add('""')
    if suffix.startswith("*"):
        return _prefix(text, field, remarks, Phrase(text, field))
    return _close_together(text, suffix[1:], field, remarks) if suffix else Phrase(text, field)


def regex_leaf(raw: str, is_case_sensitive: bool, remarks: Remarks) -> Pattern | None:
    """The leaf of `/text/`, with or without flags behind it; `None` when it is no regular expression."""
    from findling.text.query.patterns import compile_pattern  # which most queries do not need

    text, _, flags = raw[1:].rpartition("/")
    kept = "".join(sorted({*flags} & {"s", "x"}))  # lines have ends, case does not matter, and all matches count
    leaf = Pattern(f"(?{kept}){text}" if kept else text, True, is_case_sensitive)
    try:
        compile_pattern(leaf)
    except InvalidValueError as error:
        remarks.notes.append(f"{error.message}; it is read as words")
        return None
    remarks.operators.add("//")
    return leaf


def exact_leaf(raw: str, is_case_sensitive: bool, remarks: Remarks) -> Pattern | None:
    """The leaf of a quotation that is meant letter by letter; `None` when it is empty."""
    body, suffix, is_closed = unquoted(raw)
    if suffix:
        remarks.notes.append(f"{suffix} behind a quote says nothing where case: is given, and is left out")
    if not is_closed:
        remarks.notes.append(UNCLOSED_QUOTE)
    remarks.operators.add('""')
    return Pattern(body, False, is_case_sensitive) if body else None


def term_leaf(text: str, field: str = "") -> Term | None:
    """The word as a leaf, a keyword in lower case; `None` when there is no term in it."""
    return Term(_word(text), field) if _has_terms(text) else None


def too_long(raw: str) -> list[str]:
    """A note on a raw text that has letters and no term, since its words are too long; none on any other."""
    letters = max((sum(map(str.isalnum, word)) for word in raw.replace(":", " ").split()), default=0)
    return [f"a word of {letters:,} letters {TOO_LONG}"] if letters > LONGEST_WORD else []


def plain_word(raw: str) -> str:
    """The word that a raw one without `*` or `~` stands for; empty when there is no term in it."""
    base, suffix = split_suffix(raw)
    text = unescaped(base.lstrip("-"))
    return _word(text) if not suffix and _has_terms(text) else ""


def near_leaf(words: list[str], distances: list[str]) -> Node:
    """Each word near the next one, within as many words as the digits say."""
    pairs = [Near(a, b, _within(n, _NEAR, _FARTHEST)) for a, b, n in zip(words, words[1:], distances, strict=False)]
    return pairs[0] if len(pairs) == 1 else All(tuple(pairs))


def words_of_path(text: str) -> list[str]:
    """The words in `/header/` and `/usr/b.*/`, each once; none in `/usr/lib/`, and in what is searched as it stands."""
    given = re.fullmatch(r"/(.+)/[gimsuxy]{0,4}", text) if compiled(REGEX).search(text) is None else None
    if given is None or (
        (not text.endswith("/") or "/" in given[1]) and not re.search(r"[\\^$*+?()\[\]{}|]", given[1])
    ):
        return []
    plain = re.sub(r"\\[a-zA-Z]|\[[^\]]*\]|\{[\d,]*\}", " ", given[1])
    return list(dict.fromkeys(word for word in re.findall(r"\w+", plain) if row_terms(word)))


def _prefix(text: str, field: str, remarks: Remarks, literal: Node | None = None) -> Node | None:
    words = terms(text)
    if not words:
        return None
    if sum(map(len, words)) < _SHORTEST_PREFIX and not is_unspaced(words[0]):
        remarks.notes.append(f"{text}* is too short to be the beginning of a word, so it is read as {text}")
        return literal or term_leaf(text, field)
    remarks.operators.add("*")
    return Prefix(_word(text), field)


def _fuzzy(text: str, digits: str, field: str, remarks: Remarks) -> Node | None:
    words = terms(text)
    if len(words) != 1:
        if words:
            remarks.notes.append(f"~ is for single words, so {shortened(text)} is read as it stands")
        return term_leaf(text, field)
    distance = _within(digits, 1 if len(words[0]) < _LONG_WORD else 2, _MOST_EDITS)
    if not distance:
        return term_leaf(text, field)
    remarks.operators.add("~")
    return Fuzzy(_word(text), distance, field)


def _close_together(text: str, digits: str, field: str, remarks: Remarks) -> Node:
    words = [_word(word) for raw in text.split() if row_terms(word := raw.rstrip("\\"))]
    distance = _within(digits, _NEAR, _FARTHEST)
    if len(words) < 2 or not distance:
        return Phrase(text, field)
    if field:
        remarks.notes.append(
            f'only bodies are searched for words near each other, so "{shortened(text)}" is read as a phrase'
        )
        return Phrase(text, field)
    remarks.operators.add("NEAR")
    return near_leaf(words, [str(distance)] * len(words))


def _within(digits: str, otherwise: int, most: int) -> int:
    return min(int(digits), most) if digits else otherwise


def _has_terms(text: str) -> bool:
    is_plain = text.isascii() and text.isalnum() and len(text) <= LONGEST_WORD  # saves the analysis of most words
    return is_plain or bool(row_terms(text))


def _word(text: str) -> str:
    return text.lower() if text.isupper() and compiled(KEYWORD).fullmatch(text) else text
