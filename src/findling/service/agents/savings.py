"""The log of answers to agents: when, which tool, its tokens and those of the files it names. No texts, no paths.

Appending is one call without a lock: a killed process leaves a line that is cut off, which readers skip.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import FindlingError
from findling.service.agents.agent_table import agents_folder
from findling.stores.filesystem import make_private
from findling.stores.lock import WriteLock, taken

_LOG, _OLDER, _LOCK = "savings.log", "savings-older.log", "savings.lock"
_LINE = re.compile(rb"^([0-9]+)\t([a-z_]+)\t([0-9]+)\t([0-9]+)\t\.$", re.MULTILINE)

_FULL_BYTES = 1 << 20
"""Bytes to which the log grows, some 35,000 lines; then it takes the place of the older one."""


class ToolSavings(NamedTuple):
    """The answers of one tool: their number, their tokens, and those of the files that they name."""

    tool: str
    answers: int
    tokens: int
    file_tokens: int


class Savings(NamedTuple):
    """All that the log has: the time of its first line, and the sums for each tool."""

    since: float | None
    tools: tuple[ToolSavings, ...]

    @property
    def total(self) -> ToolSavings:
        """The sums over all tools."""
        return ToolSavings("", *(sum(column) for column in list(zip(*self.tools, strict=True))[1:] or ((), (), ())))


def note_answer(
    home: Path, tool: str, tokens: int, file_tokens: int, *, clock: Callable[[], float] = time.time
) -> bool:
    """Append a line about an answer; False when that cannot be written, which is no error."""
    folder = agents_folder(home)
    # A line break comes first as well, so that a line that was cut off does not spoil the next one.
    line = b"\n%d\t%s\t%d\t%d\t.\n" % (clock(), tool.encode(), tokens, file_tokens)
    try:
        make_private(folder)
        file = os.open(folder / _LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            is_whole = os.write(file, line) == len(line)
            is_full = os.fstat(file).st_size >= _FULL_BYTES
        finally:
            os.close(file)
    except OSError:  # read-only or full: an answer is worth more than its count
        return False
    if is_full:
        with suppress(OSError, FindlingError):
            _begin_anew(folder)
    return is_whole


def read_savings(home: Path) -> Savings:
    """The sums of the log; nothing for one that is not there."""
    since: float | None = None
    sums: dict[str, list[int]] = {}
    for at, tool, tokens, file_tokens in _lines(agents_folder(home)):
        since = at if since is None else min(since, at)
        row = sums.setdefault(tool, [0, 0, 0])
        for place, value in enumerate((1, tokens, file_tokens)):
            row[place] += value
    return Savings(since, tuple(ToolSavings(tool, *row) for tool, row in sorted(sums.items())))


def _begin_anew(folder: Path) -> None:
    """Make the full log the older one. Who has it open still appends to that; only one process moves it."""
    with taken(WriteLock(folder / _LOCK), 0.0) as is_ours:
        if is_ours and (folder / _LOG).stat().st_size >= _FULL_BYTES:
            (folder / _LOG).replace(folder / _OLDER)


def _lines(folder: Path) -> Iterator[tuple[float, str, int, int]]:
    for name in (_OLDER, _LOG):
        with suppress(FileNotFoundError):
            for at, tool, tokens, file_tokens in _LINE.findall((folder / name).read_bytes()):
                yield float(at), tool.decode(), int(tokens), int(file_tokens)
