"""Editing of JSON with comments and trailing commas: one member comes or goes, every other byte stays.

Whitespace tells whose an object is. Nothing or a comment stands before our member in an object that was empty.
In an object that we made, whitespace stands there; it goes together with its member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from findling.service.agents.text_blocks import EditError, line_of, newline_of

_TRIVIA = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*[\s\S]*?\*/)*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_SCALAR = re.compile(r"(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null)(?![\w.+-])")
_COMMENT = re.compile(r"//[^\r\n]*+|/\*[\s\S]*?\*/")
_COMMENTS_OF_LINE = re.compile(r"(?:[ \t]*+/\*[^\r\n]*?\*/)*+(?:[ \t]*+//[^\r\n]*+)?")
_IDLE = re.compile(rf"({_STRING.pattern})|{_COMMENT.pattern}|,(?={_TRIVIA.pattern}[}}\]])")
_UNIT = "  "


class _JsonMember(NamedTuple):
    """A member of an object: its name, the begin of key and value, the end of the value, its comma or -1."""

    name: str
    start: int
    value: int
    end: int
    comma: int


class _JsonObject(NamedTuple):
    start: int
    end: int
    members: Sequence[_JsonMember]


def read_json(text: str, path: Sequence[str]) -> Any:
    """The value at a path, None for none. Raises EditError for a text that holds no object of JSON."""
    if _TRIVIA.fullmatch(text):
        return None
    objects = _along(text, path)
    found = _member(text, objects[-1], path[len(objects) - 1])
    if found is None:
        return None
    try:
        return json.loads(_IDLE.sub(lambda idle: idle.group(1) or "", text[found.value : found.end]))
    except RecursionError as error:
        raise EditError(line_of(text, found.value), f"{found.name} is nested too deeply") from error


def put_json(text: str | None, path: Sequence[str], value: object) -> str:
    """The text with a member at a path where none is. Raises EditError."""
    if text is None or _TRIVIA.fullmatch(text):
        whole = json.dumps(_nested(path, value), ensure_ascii=False, indent=_UNIT)
        if text is None:
            return whole + "\n"
        whole = whole.replace("\n", newline_of(text))
        # Behind a comment that no line end closes, it would be part of that.
        is_open = any(found.end() == len(text) and found.group()[1] == "/" for found in _COMMENT.finditer(text))
        return whole + text if is_open else text + whole
    objects = _along(text, path)
    missing = path[len(objects) - 1 :]
    return (
        _with_sibling(text, objects, missing, value) if objects[-1].members else _filled(text, objects, missing, value)
    )


def cut_json(text: str, path: Sequence[str]) -> str | None:
    """The text without the member at a path; None for a file that held nothing else. Raises EditError."""
    if _TRIVIA.fullmatch(text):
        return text
    objects = _along(text, path)
    if len(objects) < len(path) or _member(text, objects[-1], path[-1]) is None:
        return text
    for name, holder in reversed([*zip(path, objects, strict=True)]):
        member = _member(text, holder, name)
        assert member is not None, "the path was found above"
        if len(holder.members) > 1 or not _is_made(text, holder, member):
            return _without(text, holder, member)
    before, after = text[: objects[0].start], text[objects[0].end :]
    return None if (before, after) == ("", "\n") else before + after


def _with_sibling(text: str, objects: Sequence[_JsonObject], names: Sequence[str], value: object) -> str:
    """The text with one more member behind the last one of an object, and behind the comments of its line."""
    first, last = objects[-1].members[0], objects[-1].members[-1]
    has_comma = last.comma >= 0
    base = last.comma + 1 if has_comma else last.end
    found = _COMMENTS_OF_LINE.match(text, base)
    anchor = found.end() if found else base
    newline = newline_of(text)
    indent = _indent(text, first.start)
    if indent is None and "//" in text[base:anchor]:
        indent = _indent_of_line(text, objects[-1].start) + _unit(text, objects[0])
    lead = " " if indent is None else newline + indent
    member = lead + _written(names, value, indent, _unit(text, objects[0]), newline)
    if has_comma:
        return text[:anchor] + member + "," + text[anchor:]
    return text[: last.end] + "," + text[last.end : anchor] + member + text[anchor:]


def _filled(text: str, objects: Sequence[_JsonObject], names: Sequence[str], value: object) -> str:
    """The text with a member in an object that has none: at its start, or behind its last comment."""
    start = objects[-1].start + 1
    ends = [found.end() for found in _COMMENT.finditer(text, start, objects[-1].end - 1)]
    unit, newline = _unit(text, objects[0]), newline_of(text)
    if not ends:
        return text[:start] + _written(names, value, None, unit, newline) + text[start:]
    indent = _indent_of_line(text, objects[-1].start) + unit
    return text[: ends[-1]] + newline + indent + _written(names, value, indent, unit, newline) + text[ends[-1] :]


def _is_made(text: str, holder: _JsonObject, only: _JsonMember) -> bool:
    """Whether an object was made for its one member: whitespace comes before that, and nothing else after it."""
    end = only.comma + 1 if only.comma >= 0 else only.end
    return text[holder.start + 1 : only.start].isspace() and not text[end : holder.end - 1].strip()


def _without(text: str, holder: _JsonObject, member: _JsonMember) -> str:
    start = len(text[: member.start].rstrip(" \t"))
    ended = next((mark for mark in ("\r\n", "\n", "\r") if text.endswith(mark, 0, start)), "")
    start -= len(ended)
    if member.comma >= 0:
        return text[:start] + text[member.comma + 1 :]
    place = holder.members.index(member)
    if not place:
        return text[:start] + text[member.end :]
    comma = holder.members[place - 1].comma
    return text[:comma] + text[comma + 1 : start] + text[member.end :]


def _nested(names: Sequence[str], value: object) -> Any:
    for name in reversed(names):
        value = {name: value}
    return value


def _written(names: Sequence[str], value: object, indent: str | None, unit: str, newline: str) -> str:
    """A member, over several lines at an indent, or in one line; then objects that we make begin with a space."""
    name = json.dumps(names[0], ensure_ascii=False)
    if indent is not None:
        rest = json.dumps(_nested(names[1:], value), ensure_ascii=False, indent=unit)
        return f"{name}: " + rest.replace("\n", newline + indent)
    if len(names) > 1:
        return f"{name}: {{ {_written(names[1:], value, None, unit, newline)} }}"
    return f"{name}: {json.dumps(value, ensure_ascii=False)}"


def _unit(text: str, root: _JsonObject) -> str:
    """The step of indentation: that of the first member of all, or two spaces."""
    return (_indent(text, root.members[0].start) if root.members else None) or _UNIT


def _indent(text: str, at: int) -> str | None:
    """The whitespace before an offset on its line; None where something else stands there."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    lead = text[start:at]
    return lead if start and not lead.strip(" \t") else None


def _indent_of_line(text: str, at: int) -> str:
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    return text[start : len(text) - len(text[start:].lstrip(" \t"))]


def _along(text: str, path: Sequence[str]) -> list[_JsonObject]:
    """The objects from the root to the last one on a path. Raises EditError for a text that is no JSON."""
    start = _next(text, 0)
    if text[start : start + 1] != "{":
        raise EditError(line_of(text, start), "the text is no JSON object")
    objects = [_object(text, start)]
    rest = _next(text, objects[0].end)
    if rest != len(text):
        raise EditError(line_of(text, rest), "something stands behind the end of the object")
    for name in path[:-1]:
        found = _member(text, objects[-1], name)
        if found is None:
            break
        if text[found.value] != "{":
            raise EditError(line_of(text, found.value), f"{name} is no object")
        objects.append(_object(text, found.value))
    return objects


def _member(text: str, holder: _JsonObject, name: str) -> _JsonMember | None:
    """The member of a name. Raises EditError for one that is there twice: programs differ in which of them counts."""
    found = [member for member in holder.members if member.name == name]
    if len(found) > 1:
        raise EditError(line_of(text, found[1].start), f"{name} stands there twice; delete one of them")
    return found[0] if found else None


def _object(text: str, start: int) -> _JsonObject:
    """The object at an offset. What its members hold is checked on the way; without recursion, as it may be deep."""
    members: list[_JsonMember] = []
    closers, at, begun = ["}"], _next(text, start + 1), ("", 0, 0)
    while True:
        if text[at : at + 1] == closers[-1]:
            closers.pop()
            at += 1
            if not closers:
                return _JsonObject(start, at, members)
        else:
            if closers[-1] == "}":
                name, value = _key(text, at)
                begun = (name, at, value) if len(closers) == 1 else begun
                at = value
            if closer := {"{": "}", "[": "]"}.get(text[at : at + 1]):
                closers.append(closer)
                at = _next(text, at + 1)
                continue
            found = _STRING.match(text, at) or _SCALAR.match(text, at)
            if found is None:
                raise _unexpected(text, at)
            at = found.end()
        behind = _next(text, at)
        has_comma = text[behind : behind + 1] == ","
        if len(closers) == 1:
            members.append(_JsonMember(*begun, at, behind if has_comma else -1))
        at = _next(text, behind + 1) if has_comma else behind
        if not has_comma and text[at : at + 1] != closers[-1]:
            raise _unexpected(text, at)


def _key(text: str, at: int) -> tuple[str, int]:
    """The name of a member, and where its value begins."""
    found = _STRING.match(text, at)
    colon = _next(text, found.end()) if found else at
    if found is None or text[colon : colon + 1] != ":":
        raise _unexpected(text, colon)
    return json.loads(found.group()), _next(text, colon + 1)


def _next(text: str, at: int) -> int:
    """The offset of what comes next, behind whitespace and comments."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def _unexpected(text: str, at: int) -> EditError:
    shown = text[at : at + 20].splitlines()[:1]
    return EditError(
        line_of(text, at), f"this is no JSON: {shown[0]!r} is out of place" if shown else "the text ends too early"
    )
