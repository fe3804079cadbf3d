"""Samples for the extractors: compound files built by hand, and damage done to any file."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping

import pytest

from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError
from tests.counts import tries

CASES = tries(400, short=100)

SECTOR, MINI_SECTOR, CUTOFF = 512, 64, 4096
END, FREE, FAT_SECTOR, NOTHING = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFF
STORAGE, STREAM, ROOT = 1, 2, 5


@pytest.fixture
def compound_file() -> Callable[[Mapping[str, bytes]], bytes]:
    """Writes a compound file that holds the streams, whose paths are separated by slashes."""
    return write_compound_file


@pytest.fixture
def survives_damage() -> Callable[[Callable[[Source], Extracted], bytes, str], None]:
    """Breaks a sample in hundreds of ways: an extractor gives text or `UnreadableError`, and nothing else."""
    return survive_damage


def survive_damage(extract: Callable[[Source], Extracted], sample: bytes, name: str) -> None:
    chance = random.Random(name)
    texts = 0
    for case in range(CASES):
        damaged = bytearray(sample)
        for _ in range(1 + case % 12):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 255, 127, 128, chance.randrange(256)))
        if case % 5 == 0:
            del damaged[chance.randrange(len(damaged)) :]
        try:
            extracted = extract(Source(bytes(damaged), name, limit=20_000))
        except UnreadableError as error:
            assert error.reason in {"damaged", "encrypted", "no-text", "unsupported"}
        else:
            assert len(extracted.text) <= 20_000
            texts += 1
    assert texts > CASES / 10  # most damage leaves something to read


def write_compound_file(streams: Mapping[str, bytes]) -> bytes:
    entries = [Entry("Root Entry", ROOT)]
    for path, data in streams.items():
        add(entries, path.split("/"), data)
    mini = b"".join(padded(entry.data, MINI_SECTOR) for entry in entries if entry.is_small())
    sectors: list[bytes] = []
    fat: list[int] = []
    mini_fat: list[int] = []
    for entry in entries:
        if entry.is_small():
            entry.start = len(mini_fat)
            mini_fat.extend(chain(len(mini_fat), len(padded(entry.data, MINI_SECTOR)) // MINI_SECTOR))
        elif entry.kind == STREAM and entry.data:
            entry.start = append(sectors, fat, entry.data)
    entries[0].data = mini
    entries[0].start = append(sectors, fat, mini) if mini else END
    mini_start = append(sectors, fat, packed(mini_fat), filler=b"\xff") if mini_fat else END
    directory = append(sectors, fat, b"".join(entry.packed() for entry in entries))
    fat_sectors = 1
    while fat_sectors * (SECTOR // 4) < len(fat) + fat_sectors:
        fat_sectors += 1
    first_fat = len(fat)
    fat.extend([FAT_SECTOR] * fat_sectors)
    table = padded(packed(fat), SECTOR, b"\xff")
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6,
        0, fat_sectors, directory, 0, CUTOFF, mini_start, 1 if mini_fat else 0, END, 0, first_fat,
    )  # fmt: skip
    difat = packed([first_fat + index for index in range(1, fat_sectors)])
    return padded(header + difat, SECTOR, b"\xff") + b"".join(sectors) + table


class Entry:
    def __init__(self, name: str, kind: int, data: bytes = b"") -> None:
        self.name, self.kind, self.data = name, kind, data
        self.child = self.next = NOTHING
        self.start = END if kind != STORAGE else 0

    def is_small(self) -> bool:
        return self.kind == STREAM and 0 < len(self.data) < CUTOFF

    def packed(self) -> bytes:
        name = self.name.encode("utf-16-le") + b"\0\0"
        return struct.pack(
            "<64sHBBIII16sIQQIQ", name, len(name), self.kind, 1, NOTHING, self.next, self.child, b"", 0, 0, 0,
            self.start, len(self.data),
        )  # fmt: skip


def add(entries: list[Entry], path: list[str], data: bytes) -> None:
    parent = entries[0]
    for depth, name in enumerate(path):
        index, last = parent.child, NOTHING
        while index != NOTHING and entries[index].name != name:
            index, last = entries[index].next, index
        if index == NOTHING:
            is_stream = depth == len(path) - 1
            entries.append(Entry(name, STREAM, data) if is_stream else Entry(name, STORAGE))
            index = len(entries) - 1
            if last == NOTHING:
                parent.child = index
            else:
                entries[last].next = index
        parent = entries[index]


def append(sectors: list[bytes], fat: list[int], data: bytes, filler: bytes = b"\0") -> int:
    whole = padded(data, SECTOR, filler)
    start = len(sectors)
    fat.extend(chain(start, len(whole) // SECTOR))
    sectors.extend(whole[at : at + SECTOR] for at in range(0, len(whole), SECTOR))
    return start


def chain(start: int, count: int) -> list[int]:
    return [*range(start + 1, start + count), END]


def packed(numbers: list[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def padded(data: bytes, size: int, filler: bytes = b"\0") -> bytes:
    return data + filler * (-len(data) % size)
