"""Chunks of code: whole definitions, small neighbours packed together, large ones cut at their members."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, partial
from typing import NamedTuple

from findling.core import native
from findling.domain.resources import Piece
from findling.text.chunking.code_grammars import LineGrammar, grammar_of
from findling.text.chunking.defined_names import definition_lines
from findling.text.chunking.syntax import Definition, definitions
from findling.text.chunking.windows import trim, windows


def chunk_code(text: str, lang: str, size: int, syntax: bool = False) -> list[Piece]:
    """Pieces that end where definitions begin; the heading path holds the enclosing scopes and what a piece defines.

    With `syntax` the definitions come from the syntax tree of the text, if it has one.
    """
    grammar = grammar_of(lang)
    if len(text) <= size:
        start, end = trim(text, 0, len(text))
        code = _Code(text, size, grammar, _definition_lines(text, lang))
        names = [definition for definition in code.definitions if definition.level == 0]
        return [Piece(start, end, _heading(code, (), names))] if start < end else []
    found = definitions(text, lang) if syntax else None
    code = _Code(text, size, grammar, _definition_lines(text, lang) if found is None else found)
    if native is None or found is not None or not text.isascii():
        return _split(code, _Stretch(0, len(text), 0, len(code.definitions)), (), depth=0)
    asked = partial(_attached_start, code), partial(_statements_end, text)
    return list(map(_found, native.code_pieces(text, code.definitions, size, *asked)))


_MAX_DEPTH = 4
"""Namespace, class, method, inner function: deeper scopes name nothing that a reader looks for."""

_MAX_STEP = 80
"""Characters of one step of the heading path."""

_DECORATOR_MARKS = ("@", "#[", "[")

_CLOSING = re.compile(r"(?:\s++|[)\]}>;,]|(?:end\w*+|fi|done|esac)\b|[#@](?:end|else)\w*+|(?://|--)[^\n]*+)*+")
"""Text between a definition and the end of the one around it that makes no piece of its own."""


class _Code(NamedTuple):
    """The text and its definitions in order."""

    text: str
    size: int
    grammar: LineGrammar
    definitions: list[Definition]


class _Stretch(NamedTuple):
    """A part of the text and the range of the definitions in it."""

    start: int
    end: int
    first: int
    last: int


def _definition_lines(text: str, lang: str) -> list[Definition]:
    """Definitions by the look of their first line; deeper indentation means a deeper level, the ends are unknown."""
    found = []
    around: list[int] = []
    for match in definition_lines(text, lang):
        if match.lastindex != 1:
            continue
        line, (first, last) = match.start(), match.span(1)
        indent = first - line - 1
        while around and around[-1] >= indent:
            around.pop()
        found.append(_definition((line, first - 1, last - 1, -1, len(around))))
        around.append(indent)
    return found


_definition, _stretch = partial(tuple.__new__, Definition), partial(tuple.__new__, _Stretch)
_found = partial(tuple.__new__, Piece)
"""A definition, a stretch and a piece of all their values; the call of a class would be one of Python code."""


def _split(code: _Code, stretch: _Stretch, scope: tuple[str, ...], depth: int) -> list[Piece]:
    """Pieces of a stretch that is too large for one, cut at the outermost definitions in it."""
    if stretch.first == stretch.last or depth == _MAX_DEPTH:
        return _windows(code, stretch.start, stretch.end, scope)
    pieces: list[Piece] = []
    parts = _parts(code, stretch)
    if parts[0].first == parts[0].last:
        pieces += _windows(code, parts[0].start, parts[0].end, scope)
        del parts[0]
    position, count, found = 0, len(parts), code.definitions
    while position < count:
        start = parts[position].start
        most = start + code.size
        following = position
        while following < count and parts[following].end <= most:
            following += 1
        if following > position:
            names = [found[first] for _, _, first, last in parts[position:following] if first < last]
            pieces += _piece(code, start, parts[following - 1].end, _heading(code, scope, names))
        else:
            following = position + 1
            pieces += _split_part(code, parts[position], scope, depth + 1)
        position = following
    return pieces


def _parts(code: _Code, stretch: _Stretch) -> list[_Stretch]:
    """The outermost definitions with what is attached to them, and what stands between them and is worth a part."""
    text, size, found = code.text, code.size, code.definitions
    level = found[stretch.first].level
    members = [index for index in range(stretch.first, stretch.last) if found[index][4] == level]
    # Most definitions stand below an empty line: nothing is attached and no line above has to be looked at.
    bounds = [
        start if text[(start := found[index][0]) - 2] == "\n" else max(stretch.start, _attached_start(code, index))
        for index in members
    ]
    bounds.append(stretch.end)
    members.append(stretch.last)
    parts: list[_Stretch] = []
    reached = stretch.start
    for index, following, start, end in zip(members, members[1:], bounds, bounds[1:], strict=False):
        if 0 <= (own_end := found[index][3]) < end and not _CLOSING.fullmatch(text, own_end, end):
            end = own_end
        # Only the head of a stretch may go along with a definition that is cut: it introduces what follows.
        if start > reached and (_stands_alone(start - reached, end - start, size) or (parts and end - start > size)):
            parts.append(_stretch((reached, start, index, index)))
            reached = start
        parts.append(_stretch((reached, end, index, following)))
        reached = end
    if reached < stretch.end:
        parts.append(_Stretch(reached, stretch.end, stretch.last, stretch.last))
    return parts


def _split_part(code: _Code, part: _Stretch, scope: tuple[str, ...], depth: int) -> list[Piece]:
    """Pieces of one part that is too large, and of the statements that follow a definition on its own level."""
    if part.first == part.last:
        return _windows(code, part.start, part.end, scope)
    definition = code.definitions[part.first]
    inner_scope = _heading(code, scope, (definition,))
    end = part.end
    if definition.end < 0:
        indent = definition.signature_start - definition.start
        end = _statements_end(code.text, indent, code.definitions[part.last - 1].signature_end, end)
    inner = _stretch((part.start, end, part.first + 1, part.last))
    return _split(code, inner, inner_scope, depth) + _windows(code, end, part.end, scope)


def _stands_alone(head: int, first: int, size: int) -> bool:
    """Whether what stands above a definition is a part: not when it is small and can go along with that."""
    return head >= size // 4 or head + first > size >= first


def _windows(code: _Code, start: int, end: int, scope: tuple[str, ...]) -> list[Piece]:
    if start >= end:  # as most of what follows a definition on its own level
        return []
    return [_found((first, last, scope)) for first, last in windows(code.text, start, end, code.size)]


def _piece(code: _Code, start: int, end: int, heading: tuple[str, ...]) -> list[Piece]:
    start, end = trim(code.text, start, end)
    return [_found((start, end, heading))] if start < end else []


def _heading(code: _Code, scope: tuple[str, ...], names: Iterable[Definition]) -> tuple[str, ...]:
    """The scope and, as one more step, as many signatures as fit."""
    text, step = code.text, ""
    for _, first, last, _, _ in names:
        signature = text[first:last].rstrip()
        if "  " in signature or "\t" in signature or "\n" in signature:
            signature = " ".join(signature.split())
        longer = f"{step}, {signature}" if step else signature
        if len(longer) >= _MAX_STEP:
            return (*scope, f"{step or longer[: _MAX_STEP - 1]}…")
        step = longer
    return (*scope, step) if step else scope


def _statements_end(text: str, indent: int, start: int, end: int) -> int:
    """The end of what belongs to a definition: where statements of its own level follow, or all of it."""
    after = _statements_after(indent).search(text, start, end)
    return after.start() + 2 if after else end


@cache
def _statements_after(indent: int) -> re.Pattern[str]:
    """A blank line, then a line that is not deeper than `indent` and neither closes a bracket nor is a lone label."""
    margin = rf"[ \t]{{0,{indent}}}+"
    return re.compile(rf"\n\n(?:{margin}(?:#|//)[^\n]*+\n)*+{margin}(?=[^\W\d]|[@\"'(\[])(?!\w++:\n)")


def _attached_start(code: _Code, index: int) -> int:
    """Start of the decorators, attributes and comments directly above a definition."""
    text = code.text
    start = code.definitions[index].start
    before = code.definitions[index - 1] if index else None
    floor = 0 if before is None else before.end - 1 if 0 < before.end <= start else before.start + 1
    while start > floor:
        above = text.rfind("\n", floor, start - 1) + 1
        line = text[above : start - 1]
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
