"""Chunks of code: whole definitions, small neighbours packed together, large ones cut at their members."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from findling.domain.resources import Piece
from findling.text.code_grammars import CODE_LANGS, Grammar, grammar_of
from findling.text.windows import trim, windows

__all__ = ["CODE_LANGS", "chunk_code"]


def chunk_code(text: str, lang: str, size: int) -> list[Piece]:
    """Pieces that end where definitions begin; the heading path holds the enclosing scopes and what a piece defines."""
    grammar = grammar_of(lang)
    # The pattern runs over one more character: a match begins where its line does, its signature one too late.
    found = [(match.start(), match.start(1), match.end(1)) for match in grammar.definition.finditer("\n" + text)]
    code = _Code(text, size, grammar, found, [first - line - 1 for line, first, _ in found])
    if len(text) > size:
        return _split(code, _Stretch(0, len(text), 0, len(found)), (), depth=0)
    start, end = trim(text, 0, len(text))
    outermost = min(code.indents, default=0)
    names = [index for index, indent in enumerate(code.indents) if indent == outermost]
    return [Piece(start, end, _heading(code, (), names))] if start < end else []


_MAX_DEPTH = 4
"""Namespace, class, method, inner function: deeper scopes name nothing that a reader looks for."""

_MAX_STEP = 80
"""Characters of one step of the heading path."""

_DECORATOR_MARKS = ("@", "#[", "[")


class _Code(NamedTuple):
    """The text and its definitions in order: (start of the line, start and end of the signature, shifted by one)."""

    text: str
    size: int
    grammar: Grammar
    definitions: list[tuple[int, int, int]]
    indents: list[int]


class _Stretch(NamedTuple):
    """A part of the text and the range of the definitions in it."""

    start: int
    end: int
    first: int
    last: int


def _split(code: _Code, stretch: _Stretch, scope: tuple[str, ...], depth: int) -> list[Piece]:
    """Pieces of a stretch that is too large for one, cut at the outermost definitions in it."""
    text, definitions = code.text, code.definitions
    start, end, first, last = stretch
    if first == last or depth == _MAX_DEPTH:
        return _windows(code, start, end, scope)
    indents = code.indents[first:last]
    level = min(indents)
    members = [index for index, indent in enumerate(indents, first) if indent == level]
    # Most definitions stand below an empty line: nothing is attached and no line above has to be looked at.
    bounds = [
        line if text[(line := definitions[index][0]) - 2] == "\n" else _attached_start(code, index, line)
        for index in members
    ]
    members.append(last)
    bounds.append(end)
    pieces: list[Piece] = []
    if _stands_alone(bounds[0] - start, bounds[1] - bounds[0], code.size):
        pieces += _windows(code, start, bounds[0], scope)
    else:
        bounds[0] = start
    position = 0
    while bounds[position] < end:
        following = bisect_right(bounds, bounds[position] + code.size, position) - 1
        if following > position:
            span = trim(text, bounds[position], bounds[following])
            pieces.append(Piece(*span, _heading(code, scope, members[position:following])))
        else:
            following = position + 1
            inner = _Stretch(bounds[position], bounds[following], members[position] + 1, members[following])
            pieces += _split_definition(code, members[position], inner, scope, depth + 1)
        position = following
    return pieces


def _split_definition(code: _Code, index: int, inner: _Stretch, scope: tuple[str, ...], depth: int) -> list[Piece]:
    """Pieces of one definition that is too large, and of the statements that follow it on its own level."""
    inner_scope = _heading(code, scope, (index,))
    last_signature_end = code.definitions[inner.last - 1][2] - 1
    after = _statements_after(code.indents[index]).search(code.text, last_signature_end, inner.end)
    if not after:
        return _split(code, inner, inner_scope, depth)
    end = after.start() + 2
    body = _split(code, inner._replace(end=end), inner_scope, depth)
    return body + _windows(code, end, inner.end, scope)


def _stands_alone(head: int, first: int, size: int) -> bool:
    """Whether what stands above the first definition is a piece: not when it is small and can go along with that."""
    return head >= size // 4 or head + first > size >= first


def _windows(code: _Code, start: int, end: int, scope: tuple[str, ...]) -> list[Piece]:
    return [Piece(*span, scope) for span in windows(code.text, start, end, code.size)]


def _heading(code: _Code, scope: tuple[str, ...], names: Sequence[int]) -> tuple[str, ...]:
    """The scope and, as one more step, as many signatures as fit."""
    step = ""
    for index in names:
        _, first, last = code.definitions[index]
        signature = code.text[first - 1 : last - 1].rstrip()
        if "  " in signature or "\t" in signature:
            signature = " ".join(signature.split())
        longer = f"{step}, {signature}" if step else signature
        if len(longer) >= _MAX_STEP:
            return (*scope, f"{step or longer[: _MAX_STEP - 1]}…")
        step = longer
    return (*scope, step) if step else scope


@cache
def _statements_after(indent: int) -> re.Pattern[str]:
    """A blank line, then a line that is not deeper than `indent` and neither closes a bracket nor is a lone label."""
    margin = rf"[ \t]{{0,{indent}}}+"
    return re.compile(rf"\n\n(?:{margin}(?:#|//)[^\n]*+\n)*+{margin}(?=[^\W\d]|[@\"'(\[])(?!\w++:\n)")


def _attached_start(code: _Code, index: int, start: int) -> int:
    """Where the decorators, attributes and comments directly above a definition begin."""
    floor = code.definitions[index - 1][0] + 1 if index else 0
    while start > floor:
        above = code.text.rfind("\n", floor, start - 1) + 1
        line = code.text[above : start - 1]
        bare = line.strip()
        if not bare or (above == 0 and floor > 0):
            break
        if not code.grammar.attached.match(bare):
            above = _opening_line(code, floor, start, line)
            if above < 0:
                break
        start = above
    return start


def _opening_line(code: _Code, floor: int, start: int, closing: str) -> int:
    """The first line of the block comment or decorator that the line `closing` ends; -1 when it ends none."""
    bare = closing.strip()
    if bare.endswith("*/"):
        opening = code.text.rfind("/*", floor, start)
        newline = code.text.rfind("\n", floor, max(opening, 0))
        return newline + 1 if newline >= 0 else -1
    if bare[0] not in ")]}":
        return -1
    indent = closing[: len(closing) - len(closing.lstrip())]
    marks = (mark for mark in _DECORATOR_MARKS if code.grammar.attached.match(mark))
    found = max((code.text.rfind(f"\n{indent}{mark}", floor, start) for mark in marks), default=-1)
    return found + 1 if found >= 0 else -1
