"""As much of protobuf as it takes to look into an ONNX file and to write parts of it anew, without its libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Field", "bytes_field", "number_field", "read_fields", "read_numbers"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message: its `value` is a number or bytes; `raw` is the field as it stands, with its tag."""

    number: int
    value: int | memoryview
    raw: memoryview

    def text(self) -> str:
        """The value as a name. Raises ValueError for a field that is none."""
        if isinstance(self.value, int):
            raise ValueError(f"field {self.number} holds a number, not a name")
        return bytes(self.value).decode()


def read_fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message, in order. Raises ValueError for what is no message."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        kind = tag & 7
        value: int | memoryview
        if kind == _VARINT:
            value, position = _read_varint(message, position)
        else:
            if kind == _BYTES:
                size, position = _read_varint(message, position)
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
            else:
                raise ValueError(f"a field of the unknown kind {kind}")
            value = message[position : position + size]
            position += size
        if position > len(message):
            raise ValueError("a field reaches beyond its message")
        yield Field(tag >> 3, value, message[start:position])


def read_numbers(field: Field) -> list[int]:
    """The numbers of a repeated field, written one by one or all together."""
    if isinstance(field.value, int):
        return [field.value]
    numbers, position = [], 0
    while position < len(field.value):
        number, position = _read_varint(field.value, position)
        numbers.append(number)
    return numbers


def bytes_field(number: int, value: bytes) -> bytes:
    """A field that holds bytes, a name or a message."""
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def number_field(number: int, value: int) -> bytes:
    """A field that holds a number that is not negative."""
    return _varint(number << 3 | _VARINT) + _varint(value)


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("a number without an end")
        byte = data[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
