"""Definitions in code by its syntax tree, for every language whose grammar is installed.

`queries/LANGUAGE.scm` finds them. Captures: `@d` is the definition; its signature ends after `@n` (the name) or before
`@b` (the body), without either at the first bracket of its first line; `@e` is a later sibling that still belongs to
it. `@k` is a word that must be one of the language's `keywords`: the binding runs predicates node by node, and slower.
"""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Point, Query


class Syntax(NamedTuple):
    """The wheel of a grammar and the function in it that returns the grammar.

    `merges` is whether neighbours of one name are one definition: a type signature and the equations below it.
    """

    module: str
    language: str = "language"
    keywords: frozenset[str] = frozenset()
    merges: bool = False


_ELIXIR_WORDS = (
    "defmodule defprotocol defimpl def defp defmacro defmacrop defguard defguardp defdelegate defn defnp describe test"
)
_PLAIN = "bash c cpp dart go hcl java javascript julia kotlin lua powershell rust scala swift zig"

# Left out: the parser for Ruby crashes on some broken texts, the one for Perl does not return from some, and the one
# for SQL fails on most real files.
SYNTAXES: dict[str, Syntax] = {lang: Syntax(f"tree_sitter_{lang}") for lang in _PLAIN.split()} | {
    "csharp": Syntax("tree_sitter_c_sharp"),
    "cuda": Syntax("tree_sitter_cpp"),
    "elixir": Syntax("tree_sitter_elixir", keywords=frozenset(_ELIXIR_WORDS.split())),
    "haskell": Syntax("tree_sitter_haskell", merges=True),
    "objectivec": Syntax("tree_sitter_objc"),
    "ocaml": Syntax("tree_sitter_ocaml", "language_ocaml"),
    "php": Syntax("tree_sitter_php", "language_php"),
    "python": Syntax("tree_sitter_python", keywords=frozenset({"__name__"})),
    "typescript": Syntax("tree_sitter_typescript", "language_tsx"),
}

MAX_SYNTAX_LENGTH = 256_000
"""Characters; a tree takes twenty times the memory of its text, and broken text more than linear time."""


class Definition(NamedTuple):
    """A definition and where it stands: whole lines from `start` to `end`, the signature inside the first of them.

    `level` counts the definitions around it. `end` is -1 when its end is unknown.
    """

    start: int
    signature_start: int
    signature_end: int
    end: int
    level: int


def definitions(text: str, lang: str) -> list[Definition] | None:
    """The definitions in order, each before what it holds; lines end with `\\n`.

    None when that is unknown: no grammar is installed, the text is too long, takes too long or is mostly not what the
    grammar expects.
    """
    if not _plausible(text) or not (grammar := _grammar(lang)):
        return None
    data = text.encode("utf-8", "replace")
    found = _matches(data, grammar)
    if found is None:
        return None
    if len(data) != len(text):
        found = _in_characters(data, found)
    if SYNTAXES[lang].merges:
        found = _merged(text, found)
    return _nested(text, found)


_QUERIES = Path(__file__).with_name("queries")
_SECONDS = 0.25
_SECONDS_PER_BYTE = 1e-6
"""CPU time for a parse; sound code of the slowest language takes half. It binds only a parser that keeps reading."""

_READ_SIZE = 512
"""Bytes handed to the parser at once; the clock is read as often."""

_MAX_ERRORS = 0.25
"""The share of a text in nodes that the grammar does not know, from which on the tree is not worth following."""

_MAX_ERROR_STEPS = 2000
"""Nodes visited, and children of one, in search of errors: a query takes quadratic time on more."""

_MAX_NODE_DEPTH = 12
"""Keeps 98 to 100 % of the definitions; the query takes 4 to 40 % less time, by language."""

_LONG_LINE = re.compile(r"[^\n]{2001}")
_MAX_UNBALANCED = 500
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_ANNOTATION_MARKS = ("@", "[", "#[")
_ANNOTATION = re.compile(
    r"(?:(?:@(?!(?:interface|implementation|protocol)\b)[\w.:]++|#?\[[^\[\]\n]*+\])(?:\([^()\n]*+\))?[ \t]++)*+"
)
_FIRST_WORDS = re.compile(r"[^\n({;]*+")
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class _Grammar(NamedTuple):
    language: Language
    query: Query
    syntax: Syntax


class _FoundNodes(NamedTuple):
    """A match in the tree; the signature ends at `signature_end`, or with the first words when that is -1."""

    start: int
    end: int
    signature_end: int
    name_start: int


def _plausible(text: str) -> bool:
    """Whether the text can be what people write: minified and broken code costs the parser minutes and gigabytes."""
    return (
        len(text) <= MAX_SYNTAX_LENGTH
        and all(abs(text.count(opening) - text.count(closing)) <= _MAX_UNBALANCED for opening, closing in _BRACKETS)
        and text.count("<") - text.count(">") <= _MAX_UNBALANCED + len(text) // 50  # shifts and comparisons
        and not _LONG_LINE.search(text)
    )


@cache
def _grammar(lang: str) -> _Grammar | None:
    """The grammar of a language; None when it is not installed or does not fit the parser or the query."""
    if lang not in SYNTAXES:
        return None
    syntax = SYNTAXES[lang]
    try:
        from tree_sitter import Language, Query

        with warnings.catch_warnings():
            # Some wheels still return a number instead of a capsule, which the binding takes with a warning.
            warnings.simplefilter("ignore", DeprecationWarning)
            language = Language(getattr(importlib.import_module(syntax.module), syntax.language)())
        return _Grammar(language, Query(language, _query_of(lang)), syntax)
    except (ImportError, AttributeError, ValueError):
        return None


def _query_of(name: str) -> str:
    """The query of a language, after that of the one that it inherits."""
    query = (_QUERIES / f"{name}.scm").read_text(encoding="utf-8")
    inherited = re.match(r"; inherits: (\w+)\n", query)
    return _query_of(inherited[1]) + query if inherited else query


def _matches(data: bytes, grammar: _Grammar) -> list[_FoundNodes] | None:
    from tree_sitter import Parser, QueryCursor

    deadline = time.thread_time() + _SECONDS + len(data) * _SECONDS_PER_BYTE
    # One parser a call: the reader below runs Python code, so that another thread may come in between.
    root = Parser(grammar.language).parse(_reader(data, deadline)).root_node
    if time.thread_time() > deadline or _mostly_errors(root):
        return None
    cursor = QueryCursor(grammar.query)
    cursor.set_max_start_depth(_MAX_NODE_DEPTH)
    keywords = {word.encode() for word in grammar.syntax.keywords}
    return [
        _found(captures)
        for _, captures in cursor.matches(root)
        if "k" not in captures or data[captures["k"][0].start_byte : captures["k"][0].end_byte] in keywords
    ]


def _reader(data: bytes, deadline: float) -> Callable[[int, Point], bytes]:
    """Parts of the text as the parser asks for them; none after the deadline, which ends the parse.

    The parser's own progress callback crashes (0.25 and 0.26). A part must not end inside a character: the parser would
    ask for the rest and, without one, crash as well.
    """

    def read(start: int, _: Point) -> bytes:
        if time.thread_time() > deadline:
            return b""
        end = start + _READ_SIZE
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        return data[start:end]

    return read


def _mostly_errors(root: Node) -> bool:
    """Whether too much of the tree is made of errors."""
    allowed = (root.end_byte - root.start_byte) * _MAX_ERRORS
    pending = [root] if root.has_error else []
    steps = 0
    while pending:
        node = pending.pop()
        steps += 1
        if node.is_error:
            allowed -= node.end_byte - node.start_byte
        if allowed < 0 or steps > _MAX_ERROR_STEPS or (node.is_error and node.child_count > _MAX_ERROR_STEPS):
            return True
        if not node.is_error:
            pending += [child for child in node.children if child.has_error]
    return False


def _found(captures: dict[str, list[Node]]) -> _FoundNodes:
    node = captures["d"][0]
    end = captures["e"][0].end_byte if "e" in captures else node.end_byte
    if "n" in captures:
        name = captures["n"][0]
        return _FoundNodes(node.start_byte, end, name.end_byte, name.start_byte)
    if "b" in captures:
        body = captures["b"][0].start_byte
        return _FoundNodes(node.start_byte, end, body, body)
    return _FoundNodes(node.start_byte, end, -1, -1)


def _in_characters(data: bytes, found: list[_FoundNodes]) -> list[_FoundNodes]:
    """The same with offsets in characters instead of bytes."""
    characters = {-1: -1}
    done = count = 0
    for offset in sorted({offset for item in found for offset in item if offset >= 0}):
        count += len(data[done:offset].translate(None, _CONTINUATION_BYTES))
        done = offset
        characters[offset] = count
    return [_FoundNodes(*(characters[offset] for offset in item)) for item in found]


def _merged(text: str, found: list[_FoundNodes]) -> list[_FoundNodes]:
    """The same with neighbours of one name as one."""
    merged: list[_FoundNodes] = []
    for item in sorted(found):
        before = merged[-1] if merged else None
        if before and item.start >= before.end and _name(text, item) == _name(text, before):
            merged[-1] = before._replace(end=item.end)
        else:
            merged.append(item)
    return merged


def _name(text: str, item: _FoundNodes) -> str:
    return text[item.name_start : item.signature_end]


def _nested(text: str, found: list[_FoundNodes]) -> list[Definition]:
    """Definitions that begin a line, with their level; of two that share a signature the outer one."""
    result: list[Definition] = []
    around: list[Definition] = []
    for start, end, signature_end, name_start in sorted(found, key=lambda item: (item[0], -item[1], -item[2])):
        line = text.rfind("\n", 0, start) + 1
        if line < start and not text[line:start].isspace():
            continue
        while around and around[-1].end <= start:
            around.pop()
        if around and start < around[-1].signature_end:
            continue
        signature = _signature(text, start, signature_end, name_start)
        definition = Definition(line, *signature, _line_end(text, start, end), len(around))
        if signature[0] < signature[1]:
            result.append(definition)
            around.append(definition)
    return result


def _signature(text: str, start: int, end: int, name_start: int) -> tuple[int, int]:
    """The span of the signature, without the annotations in front of it."""
    if end < 0:
        match = _FIRST_WORDS.match(text, start)
        return start, match.end() if match else start
    if text.startswith(_ANNOTATION_MARKS, start):
        line = text.rfind("\n", start, name_start) + 1 or start
        match = _ANNOTATION.match(text, line + len(text[line:name_start]) - len(text[line:name_start].lstrip()))
        start = match.end() if match else line
    return start, start + len(text[start:end].rstrip())


def _line_end(text: str, start: int, end: int) -> int:
    """End of the line on which a node ends; some grammars count the blank lines below to the node."""
    while end > start and text[end - 1].isspace():
        end -= 1
    return text.find("\n", end) + 1 or len(text)
