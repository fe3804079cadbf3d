"""Reading items: a JSON object, a JSON array, or JSON lines, distinguished by their beginning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, NoReturn

from findling.domain.errors import InvalidValueError

__all__ = ["Entry", "EntryStream", "read_entries"]

_HINT = 'one object a line, or an array of objects: [{"type": "decision", "title": "…"}]'


class Entry(NamedTuple):
    """One value of the input, and its place there: `line 3` or `item 3`."""

    value: object
    where: str


class EntryStream(NamedTuple):
    """The values of an input: one document, which is added as a whole, or lines, each of which is complete."""

    is_document: bool
    entries: Iterator[Entry]


def read_entries(lines: Iterable[bytes], *, bare: bool = False) -> EntryStream:
    """The values in the lines of a file, with `bare` also texts without quotes. Raises InvalidValueError."""
    numbered = _texts(lines)
    first = next(numbered, None)
    if first is None:
        return EntryStream(False, iter(()))
    text = first[1]
    if text.startswith("[") or (text.startswith("{") and not _is_complete(text)):
        return EntryStream(True, _whole(chain([first], numbered)))
    return EntryStream(False, _each(chain([first], numbered), bare))


def _texts(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise InvalidValueError(f"line {number} is not UTF-8: {error.reason}", hint="save it as UTF-8") from error
        if text:
            yield number, text


def _whole(numbered: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    """The object, or the objects of the array, that all the lines make up."""
    # Empty lines are restored, so that an error names the right one.
    text: list[str] = []
    for number, line in numbered:
        text += [""] * (number - 1 - len(text)) + [line]
    value = _parsed("\n".join(text))
    if isinstance(value, list):
        yield from (Entry(each, f"item {number}") for number, each in enumerate(value, 1))
    else:
        yield Entry(value, "")


def _each(numbered: Iterable[tuple[int, str]], bare: bool) -> Iterator[Entry]:
    for number, text in numbered:
        where = f"line {number}"
        yield Entry(text if bare and text[0] not in '{["' else _parsed(text, where), where)


def _is_complete(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str, where: str = "") -> object:
    before = f"{where}: " if where else ""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if where else f"line {error.lineno}, column {error.colno}"
        raise InvalidValueError(f"{before}no JSON: {error.msg} at {place}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{before}no JSON that can be read: {error}", hint=_HINT) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"{key!r} stands twice in one object")
        table[key] = value
    return table


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
