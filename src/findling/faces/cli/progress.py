"""One line on the terminal that says how far indexing has come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from findling.domain.ports import Progress, ProgressEvent
from findling.faces.cli.columns import display_width, fit, show_controls

__all__ = ["format_progress", "format_size", "progress_bar"]

_REDRAW_S = 0.1
_FIRST_DRAW_S = 0.3
"""A bar that is over sooner than this would only flicker."""


@contextmanager
def progress_bar(stream: TextIO | None = None) -> Iterator[Progress | None]:
    """What to call with every event; `None` where there is no terminal to draw on."""
    stream = stream or sys.stderr
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _Bar(stream)
    try:
        yield bar.update
    finally:
        bar.clear()


def format_progress(event: ProgressEvent) -> str:
    """The event in words."""
    if not event.total:
        return f"looking for files  {event.done:,}" if event.done else "looking for files"
    share = min(1.0, event.done / event.total)
    bar = ("#" * round(share * 20)).ljust(20, ".")
    counts = f"{event.done:,}/{event.total:,} files  {format_size(event.bytes_read)}"
    return f"[{bar}] {share:4.0%}  {counts}  {show_controls(event.path)}".rstrip()


def format_size(size: int) -> str:
    """A number of bytes for people."""
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.1f} {unit}" if unit != "B" else f"{size} B"
        amount /= 1024
    return f"{amount:.1f} TB"


class _Bar:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_draw = time.monotonic() + _FIRST_DRAW_S
        self._drawn = 0

    def update(self, event: ProgressEvent) -> None:
        now = time.monotonic()
        if now < self._next_draw:
            return
        self._next_draw = now + _REDRAW_S
        text = fit(format_progress(event), self._width() - 1)
        columns = display_width(text)
        self._stream.write("\r" + text + " " * (self._drawn - columns))
        self._stream.flush()
        self._drawn = columns

    def clear(self) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            return 80
