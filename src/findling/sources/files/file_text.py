"""Reading a file as text: one read, one decode, and a reason when it is not text."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager

# A FIFO without a writer would block `open` for ever; the names that a platform lacks count nothing.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# The four bytes of UTF-32 come first: they begin with the two of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_BYTES_OF_MARKS = frozenset(mark[0] for mark, _ in BYTE_ORDER_MARKS)
_MAX_ZERO_SHARE = 0.01
_SAMPLE_SIZE = 8192
_MIN_PRINTABLE_SHARE = 0.98  # random 16-bit numbers are printable characters 87 times out of 100
_MAX_STRAY_SHARE = 0.1
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_MAX_CONTROL_SHARE = 0.02  # random bytes hold 10 in 100
_RUN_OF_HIGH_BYTES = rb"[\x80-\xff]{2,}"
_MAX_SHARE_IN_RUNS = 0.3
_ENOUGH_TO_GUESS = 8  # a greeting with two umlauts in a row is no Chinese
_GUESS_SAMPLE = 64_000
_HIGH_BYTES = bytes(range(128, 256))
_LARGEST = (1 << 63) - 1  # some network file systems number files with 64 bits; a store keeps 63 of them


class UnreadableError(Exception):
    """A file gives no text; `reason` is one of `discovery.REASONS`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


def read_bytes(path: str, max_size: int, *, follow_symlink: bool = True) -> tuple[bytes, os.stat_result]:
    """Read a regular file of at most `max_size` bytes; never waits, whatever the path is. Raises `UnreadableError`."""
    with _opened(path, 0 if follow_symlink else _NO_FOLLOW) as (descriptor, status):
        if status.st_size > max_size:
            raise UnreadableError("too-large", f"{status.st_size} bytes, the limit is {max_size}")
        return _read_to_end(descriptor, status.st_size, max_size), status


def read_beginning(path: str, size: int) -> bytes:
    """The first bytes of a regular file, at most `size`; never waits. Raises `UnreadableError`."""
    with _opened(path) as (descriptor, _):
        return os.read(descriptor, size)


@contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[tuple[int, os.stat_result]]:
    """The descriptor and the status of a regular file. Raises `UnreadableError`, also for errors of reading it."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS | flags)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError("special", "not a regular file")
            yield descriptor, status
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableError("unreadable", error.strerror or str(error)) from error


def _read_to_end(descriptor: int, expected_size: int, max_size: int) -> bytes:
    data = os.read(descriptor, expected_size + 1)
    if len(data) == expected_size:
        return data
    parts = [data]
    size = len(data)
    while size <= max_size and (data := os.read(descriptor, max_size + 1 - size)):
        parts.append(data)
        size += len(data)
    if size > max_size:
        raise UnreadableError("too-large", f"grew while it was read, the limit is {max_size} bytes")
    return b"".join(parts)


def decode(data: bytes) -> tuple[str, str]:
    """The text in the bytes of a text file, and its encoding. Raises `UnreadableError`."""
    if data and data[0] in _FIRST_BYTES_OF_MARKS:
        for mark, encoding in BYTE_ORDER_MARKS:
            if data.startswith(mark):
                return _decode_marked(data[len(mark) :], encoding), encoding
    if b"\0" in data:
        return _decode_unmarked_utf16(data)
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return _decode_single_byte(data)


def decode_data(data: bytes) -> tuple[str, str]:
    """The text of a data file, zero bytes left out. Raises `UnreadableError`.

    Loggers that lose power leave zero bytes in their files; more than 1 % of them are no text.
    """
    try:
        return decode(data)
    except UnreadableError:
        zeros = data.count(0)
        if not 0 < zeros <= max(1, _MAX_ZERO_SHARE * len(data)):
            raise
        return decode(data.replace(b"\0", b""))


def _decode_marked(data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableError("undecodable", f"marked as {encoding}: {error.reason}") from None
    if "\0" in text:
        raise UnreadableError("binary", "holds zero characters")
    return text


def _decode_unmarked_utf16(data: bytes) -> tuple[str, str]:
    """Spaces and line ends occur in any script, so UTF-16 has zero bytes on one side of each pair only."""
    zeros_first, zeros_second = (data[side:_SAMPLE_SIZE:2].count(0) for side in (0, 1))
    if len(data) % 2 == 0 and bool(zeros_first) != bool(zeros_second) and not _has_stray_zeros(data):
        encoding = "utf-16-be" if zeros_first else "utf-16-le"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            raise UnreadableError("binary", "holds zero bytes") from None
        sample = text[:_SAMPLE_SIZE]
        printable = sum(char.isprintable() or char in "\t\n\r\f\ufeff" for char in sample)
        if printable >= _MIN_PRINTABLE_SHARE * len(sample) and "\0" not in text:
            return text, encoding
    raise UnreadableError("binary", "holds zero bytes")


def _has_stray_zeros(data: bytes) -> bool:
    """Whether the text is UTF-8 with a few zero bytes: UTF-16 has more of them, or is no UTF-8."""
    if data.count(0) > _MAX_STRAY_SHARE * len(data):
        return False
    try:
        data.replace(b"\0", b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_single_byte(data: bytes) -> tuple[str, str]:
    controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
    if controls > _MAX_CONTROL_SHARE * len(data):
        raise UnreadableError("binary", "neither UTF-8 nor a text of single bytes")
    if _is_not_western(data) and (text := _guess(data)):
        return text
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:  # five bytes mean nothing in cp1252
        return data.decode("latin-1"), "latin-1"


def _is_not_western(data: bytes) -> bool:
    """Whether bytes above ASCII come in rows: accented letters of western languages stand alone between others."""
    high = len(data) - len(data.translate(None, _HIGH_BYTES))
    in_runs = sum(map(len, re.findall(_RUN_OF_HIGH_BYTES, data)))
    return high >= _ENOUGH_TO_GUESS and in_runs > _MAX_SHARE_IN_RUNS * high


def _guess(data: bytes) -> tuple[str, str] | None:
    """The text in the encoding that fits it best; `None` when none does."""
    from charset_normalizer import from_bytes  # 30 ms, and few files are neither Unicode nor western

    best = from_bytes(data[:_GUESS_SAMPLE]).best()
    if best is None:
        return None
    try:
        return data.decode(best.encoding), best.encoding
    except UnicodeDecodeError:
        return data.decode(best.encoding, "replace"), best.encoding


def changed_ns(status: os.stat_result) -> int:
    """Time of the last change of any kind. Programs set the time of content back, never that of the status."""
    return max(status.st_mtime_ns, status.st_ctime_ns)


def inode_of(status: os.stat_result) -> int:
    """The number of the file itself, which another one in its place does not have; 0 where there is none."""
    return status.st_ino & _LARGEST


def changed_ns_at(path: str) -> int:
    """Time of the last change at a path; 0 for an absent one."""
    try:
        return changed_ns(os.stat(path))  # noqa: PTH116 - a Path costs more than the call
    except OSError:
        return 0
