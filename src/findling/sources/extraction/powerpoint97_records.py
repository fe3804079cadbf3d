"""The records of an old PowerPoint presentation: where they stand, and what is in them ([MS-PPT])."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Record", "children", "locate_objects", "read_record"]


class Record(NamedTuple):
    """One record: its kind, its instance number and its content; a container holds other records."""

    kind: int
    instance: int
    is_container: bool
    content: memoryview


def read_record(stream: memoryview, at: int) -> Record | None:
    """The record at an offset, cut where the stream ends; `None` when there is none."""
    if at < 0 or at + 8 > len(stream):
        return None
    head, kind, size = struct.unpack_from("<HHI", stream, at)
    return Record(kind, head >> 4, head & 0xF == 0xF, stream[at + 8 : at + 8 + size])


def children(content: memoryview) -> Iterator[Record]:
    """The records in a container, in order."""
    at = 0
    while record := read_record(content, at):
        yield record
        at += 8 + len(record.content)


_USER_EDIT, _PERSIST_DIRECTORY = 4085, 6002
_MOST_EDITS = 1000


def locate_objects(stream: memoryview, current_edit: int) -> tuple[dict[int, int], int]:
    """Where the slides and other objects stand by their numbers, and the number of the document.

    Every save adds a list of what it has changed; the last one counts. Both are empty when the lists are broken.
    """
    offsets: dict[int, int] = {}
    document = 0
    edit = current_edit
    visited: set[int] = set()
    while edit not in visited and len(visited) < _MOST_EDITS:
        visited.add(edit)
        record = read_record(stream, edit)
        if record is None or record.kind != _USER_EDIT or len(record.content) < 20:
            break
        edit, directory, document_now = struct.unpack_from("<III", record.content, 8)
        document = document or document_now
        for number, offset in _directory(read_record(stream, directory)):
            offsets.setdefault(number, offset)
        if not edit:
            break
    return offsets, document


def _directory(record: Record | None) -> Iterator[tuple[int, int]]:
    if record is None or record.kind != _PERSIST_DIRECTORY:
        return
    numbers = struct.unpack_from(f"<{len(record.content) // 4}I", record.content)
    at = 0
    while at < len(numbers):
        first, count = numbers[at] & 0xFFFFF, numbers[at] >> 20
        for index, offset in enumerate(numbers[at + 1 : at + 1 + count]):
            yield first + index, offset
        at += 1 + count
