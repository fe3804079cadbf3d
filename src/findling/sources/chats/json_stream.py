"""JSON read value by value: an export of any size takes no more memory than its largest entry."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterator, Mapping
from typing import IO, Any

from findling.domain.errors import InvalidValueError
from findling.sources.extracted import parse_iso_time

YEAR_10000 = 253_402_300_800.0
"""The first second that no calendar of four digits can write."""

_BLOCK = 1 << 16
# Characters of one value: far more than any conversation has, and what a small archive may unpack to.
_LARGEST_VALUE = 64 << 20
_NEAR_THE_END = 16  # characters from the end within which what looks wrong may only be cut off: `tru`, `\ud83`, `-`
_SPACES = " \t\r\n"
_AFTER_NUMBERS = frozenset(" \t\r\n,]}")
_DECODER = json.JSONDecoder()


def text(value: object, *path: str) -> str:
    """The text at a path of keys; empty when there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def first_text(value: object, *paths: tuple[str, ...]) -> str:
    """The first of several texts that says something."""
    return next((found for path in paths if (found := text(value, *path).strip())), "")


def objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of an array; nothing when it is none."""
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def time(value: object) -> float | None:
    """Seconds since the epoch from a number or from ISO 8601; `None` for anything else."""
    if isinstance(value, str):
        value = parse_iso_time(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value < YEAR_10000 else None


def named_files(entries: object, *keys: str) -> list[str]:
    """A line for each file that came with a message, by the first of the keys that names it."""
    names = (first_text(entry, *((key,) for key in keys)) for entry in objects(entries))
    return [f"(file: {name})" for name in names if name]


class JsonStream:
    """One JSON document. Every method raises InvalidValueError naming file and line of what is no JSON."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._buffer = ""
        self._at = 0
        self._lines_before = 0
        self._ended = False

    @property
    def line(self) -> int:
        """The line that comes next, counted from 1."""
        return self._line_of(self._at)

    def peek(self) -> str:
        """The first character of the next value; empty at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in _SPACES:
                self._at += 1
            if self._at < len(self._buffer) or not self._fill():
                return self._buffer[self._at : self._at + 1]

    def value(self) -> Any:
        """The next value, whatever it is."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                may_be_cut_off = error.msg.startswith("Unterminated") or len(self._buffer) - error.pos < _NEAR_THE_END
                if may_be_cut_off and self._fill():
                    continue
                raise self._damage(error.msg, error.pos) from error
            except (ValueError, RecursionError) as error:  # a number of 5,000 digits, lists in lists
                raise self._damage("nested too deep, or a number without an end", self._at) from error
            # Only what follows a number tells that it has no more digits.
            is_open = isinstance(value, (int, float)) and self._buffer[end : end + 1] not in _AFTER_NUMBERS
            if is_open and self._fill():
                continue
            self._at = end
            return value

    def open_array(self) -> None:
        """Step into the next value, which is an array."""
        self._expect("[")

    def items(self) -> Iterator[Any]:
        """The entries of the next value, which is an array, one after the other."""
        self.open_array()
        if self._take("]"):
            return
        while True:
            yield self.value()
            if self._take("]"):
                return
            self._expect(",")

    def keys(self) -> Iterator[str]:
        """The keys of the next value, an object; the caller reads the value of each before the next."""
        self._expect("{")
        if self._take("}"):
            return
        while True:
            if self.peek() != '"':
                raise self._damage("Expecting a key in quotes", self._at)
            key: str = self.value()
            self._expect(":")
            yield key
            if self._take("}"):
                return
            self._expect(",")

    def _take(self, mark: str) -> bool:
        found = self.peek() == mark
        self._at += found
        return found

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._damage(f"Expecting {mark!r}", self._at)

    def _fill(self) -> bool:
        """Read more, at least as much as is waiting, so that a large value is not tried again and again."""
        if self._ended:
            return False
        waiting = len(self._buffer) - self._at
        if waiting >= _LARGEST_VALUE:
            raise InvalidValueError(
                f"{self.name}:{self.line}: a single value of more than {_LARGEST_VALUE >> 20} MB",
                hint="no conversation is that large: export it again",
            )
        block = self._stream.read(min(max(_BLOCK, waiting), _LARGEST_VALUE))
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line = self._line_of(len(self._buffer)) + block[: max(error.start, 0)].count(b"\n")
            raise InvalidValueError(f"{self.name}:{line}: not UTF-8", hint="save the export as UTF-8") from error
        if not block:
            self._ended = True
            return False
        self._lines_before += self._buffer.count("\n", 0, self._at)
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        return True

    def _line_of(self, position: int) -> int:
        return self._lines_before + self._buffer.count("\n", 0, position) + 1

    def _damage(self, what: str, position: int) -> InvalidValueError:
        if self._ended and position >= len(self._buffer.rstrip(_SPACES)):
            what = "the file ends in the middle of it"
        return InvalidValueError(
            f"{self.name}:{self._line_of(position)}: no whole JSON: {what}",
            hint="export it again; what stands before this line can be imported",
        )
