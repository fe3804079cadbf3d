"""JSON read from the front, value by value: an export of any size takes no more memory than its largest entry."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any

from findling.domain.errors import InvalidValueError

__all__ = ["JsonStream"]

_BLOCK = 1 << 16
_LARGEST_VALUE = 64 << 20
"""Characters of one value: far more than any conversation has, and what a small archive may unpack to."""

_NEAR_THE_END = 16
"""Characters from the end within which what looks wrong may only be cut off: `tru`, `\\ud83`, `-`."""

_SPACES = " \t\r\n"
_AFTER_NUMBERS = frozenset(" \t\r\n,]}")
_DECODER = json.JSONDecoder()


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
        """The keys of the next value, which is an object; the caller reads the value of a key before the next one."""
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
