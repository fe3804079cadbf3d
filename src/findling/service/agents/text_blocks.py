"""Blocks of lines at the end of a text: instructions between marks, and tables of TOML.

The last line end tells what stood there before: a block ends as the text ended to which it was added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_BEGIN, _END = "<!-- findling:begin -->", "<!-- findling:end -->"


class EditError(ValueError):
    """A text that cannot be edited safely: the line, counted from 1, and the reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def line_of(text: str, at: int) -> int:
    """The number of the line at an offset, from 1."""
    return text.count("\n", 0, at) + 1


def newline_of(text: str) -> str:
    """The line end that a text uses first."""
    found = re.search(r"\r\n|\n|\r", text)
    return found.group() if found else "\n"


def append_block(text: str | None, block: str) -> str:
    """A text with lines at its end, after an empty line. None is a file that is not there."""
    if text is None:
        return block + "\n"
    newline = newline_of(text)
    block = block.replace("\n", newline)
    if not text:
        return block
    is_ended = text.endswith(newline)
    return text + newline + block + newline if is_ended else text + newline * 2 + block


def drop_block(text: str, start: int, end: int) -> str | None:
    """A text without lines that `append_block` has added; None for a file that held nothing else."""
    newline = newline_of(text)
    before, after = text[:start], text[end:]
    is_ended = after.startswith(newline)
    after = after[len(newline) :] if is_ended else after
    if not before:
        return None if is_ended and not after else after
    if before.endswith(newline * 2):
        before = before[: -len(newline)]
    if not is_ended and not after:
        before = before.removesuffix(newline)
    return before + after


def read_marked(text: str) -> str | None:
    """The lines between our marks, None for none. Raises EditError for a mark that stands alone or twice."""
    span = _marked_span(text)
    return None if span is None else text[slice(*span)].replace("\r\n", "\n")


def put_marked(text: str | None, block: str) -> str:
    """A text with a block between marks at its end, in place of the one that is there. Raises EditError."""
    marked = f"{_BEGIN}\n{block.strip()}\n{_END}"
    span = None if text is None else _marked_span(text)
    if text is None or span is None:
        return append_block(text, marked)
    if text[slice(*span)].replace("\r\n", "\n") == marked:
        return text
    return text[: span[0]] + marked.replace("\n", newline_of(text)) + text[span[1] :]


def cut_marked(text: str) -> str | None:
    """A text without our block; None for a file that held nothing else. Raises EditError."""
    span = _marked_span(text)
    return text if span is None else drop_block(text, *span)


def _marked_span(text: str) -> tuple[int, int] | None:
    starts = [found.start() for found in re.finditer(re.escape(_BEGIN), text)]
    ends = [found.end() for found in re.finditer(re.escape(_END), text)]
    if not starts and not ends:
        return None
    if len(starts) == len(ends) == 1 and starts[0] < ends[0]:
        return starts[0], ends[0]
    at = (starts[1:] or ends[1:] or starts or ends)[0]
    raise EditError(line_of(text, at), f"the marks {_BEGIN} and {_END} do not stand there once each, in this order")


def read_toml(text: str, path: Sequence[str]) -> Any:
    """The value at a path of tables, None for none. Raises EditError for what is no TOML."""
    found: Any = _toml(text)
    for name in path:
        if not isinstance(found, dict):
            raise EditError(1, f"{path[0]} is no table")
        found = found.get(name)
        if found is None:
            return None
    return found


def put_toml(text: str | None, path: Sequence[str], value: dict[str, Any]) -> str:
    """The text with a table at a path where none is. Raises EditError."""
    rows = [f"[{'.'.join(path)}]", *(f"{name} = {_toml_value(each)}" for name, each in value.items())]
    return append_block(text, "\n".join(rows))


def cut_toml(text: str, path: Sequence[str]) -> str | None:
    """The text without the table at a path and the tables below it; None for a file that held nothing else.

    Raises EditError for a table that is written in another way than under its header.
    """
    if read_toml(text, path) is None:
        return text
    wanted = _without(_toml(text), path)
    for start, end in _toml_spans(text, path):
        rest = drop_block(text, start, end)
        try:
            if _without(_toml(rest or ""), path) == wanted and read_toml(rest or "", path) is None:
                return rest
        except EditError:
            continue  # a header inside a string
    at = max(0, text.find(path[-1]))
    raise EditError(
        line_of(text, at), f"{'.'.join(path)} does not stand under a header [{'.'.join(path)}]; delete it there"
    )


def _toml(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text, parse_float=str)  # nan differs from itself
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found.group(1)) if found else line_of(text, len(text))
        raise EditError(line, "this is no TOML: " + re.sub(r" *\(at .*\)", "", str(error))) from error


def _toml_value(value: object) -> str:
    # A basic string of TOML has the escapes of JSON, and may not hold a DEL as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without(document: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The document without the value at a path, and without tables that are then empty."""
    name, *rest = path
    inner = _without(document[name], rest) if rest and isinstance(document.get(name), dict) else {}
    return {key: value for key, value in document.items() if key != name} | ({name: inner} if inner else {})


def _toml_spans(text: str, path: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Spans that may be the table: from its header to the last line before a header of something else."""
    dotted = r"[ \t]*\.[ \t]*".join(rf"(?:{name}|\"{name}\"|'{name}')" for name in map(re.escape, path))
    headers = [*re.finditer(r"^[ \t]*\[.*$", text, re.MULTILINE)]
    own = re.compile(rf"[ \t]*\[[ \t]*{dotted}[ \t]*(?:\]|\.)")
    for place, header in enumerate(headers):
        if own.match(header.group()):
            others = [one.start() for one in headers[place + 1 :] if not own.match(one.group())]
            for end in [*others, len(text)]:
                # Comments and empty lines before the next header belong to that.
                piece = re.sub(r"(?:\r?\n[ \t]*(?:#[^\n]*)?)*\Z", "", text[header.start() : end])
                yield header.start(), header.start() + len(piece)
