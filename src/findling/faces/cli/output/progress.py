"""One line on the terminal that says how far indexing has come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar

from findling.domain.values import counted
from findling.faces.cli.output.terminal import display_width, fit, note, show_controls

if TYPE_CHECKING:
    from findling.domain.reports import IndexProgress, Progress
    from findling.pipelines.indexing.embedding_run import RefineProgress

_Event = TypeVar("_Event")

_REDRAW_S = 0.1
_FIRST_DRAW_S = 0.3
"""A bar that is over sooner than this would only flicker."""

_FIRST_ESTIMATE_S = 1.0
"""Before that, the start of the workers counts for more than their speed."""

_LINE_S = 10.0
"""Seconds between two lines where no terminal shows a bar."""

_STAGES = {"write": "writing", "commit": "finishing the index"}
"""Stages that take long without a sign of progress."""


@contextmanager
def progress_bar(also: Progress | None = None, *, stream: TextIO | None = None) -> Iterator[Progress]:
    """A receiver of the events of an index run: it reports the start, and draws on a terminal.

    `also` gets every event, too.
    """
    with _bar(format_progress, stream) as draw:
        next_line = time.monotonic() + _LINE_S

        def tell(event: IndexProgress) -> None:
            nonlocal next_line
            if also is not None:
                also(event)
            if event.reason:
                note(f"indexing {show_controls(event.path)}: {event.reason}")
            if draw is not None:
                draw(event)
            elif event.stage != "done" and time.monotonic() >= next_line:
                next_line = time.monotonic() + _LINE_S
                note(format_progress(event))

        yield tell


def refine_bar() -> AbstractContextManager[Callable[[RefineProgress], None] | None]:
    """The same for a model that reads."""
    return _bar(_format_reading)


def copy_bar() -> AbstractContextManager[Callable[[tuple[int, int]], None] | None]:
    """The same for resources that are copied: how many, and of how many."""
    return _bar(lambda event: f"copying  {event[0]:,}/{counted(event[1], 'resource')}")


@contextmanager
def _bar(describe: Callable[[_Event], str], stream: TextIO | None = None) -> Iterator[Callable[[_Event], None] | None]:
    stream = stream or sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _Bar(stream)
    try:
        yield lambda event: bar.draw(lambda: describe(event))
    finally:
        bar.clear()


def format_progress(event: IndexProgress) -> str:
    """The event in words."""
    if not event.total:
        return f"looking for files  {event.done:,}" if event.done else "looking for files"
    # Bytes tell more about time than files do: one PDF may take as long as a thousand notes.
    share = min(1.0, event.bytes_read / event.bytes_total if event.bytes_total else event.done / event.total)
    bar = ("#" * round(share * 20)).ljust(20, ".")
    facts = [f"{event.done:,}/{counted(event.total, 'file')}", counted(event.chunks, "chunk")]
    if event.bytes_per_second:
        facts.append(f"{format_size(round(event.bytes_per_second))}/s")
    if event.failed:
        facts.append(f"{event.failed:,} failed")
    if event.stage in _STAGES:
        share = min(share, 0.99)
        facts.append(_STAGES[event.stage])
    elif event.seconds > _FIRST_ESTIMATE_S and event.seconds_left:
        facts.append(f"{_format_duration(event.seconds_left)} left")
    return f"[{bar}] {share:4.0%}  {'  '.join(facts)}  {show_controls(event.path)}".rstrip()


def _format_reading(event: RefineProgress) -> str:
    share = event.done / event.total if event.total else 1.0
    private = f"  {event.withheld:,} kept private" if event.withheld else ""
    bar = ("#" * round(share * 20)).ljust(20, ".")
    pace = format_pace(event.speed, event.seconds_left, "  ")
    return f"[{bar}] {share:4.0%}  {event.done:,}/{counted(event.total, 'passage')}{private}{pace}"


def format_pace(speed: float, seconds_left: float | None, before: str) -> str:
    """The speed and the time that is left, each with what stands `before` it; empty before there is any."""
    if seconds_left is None:
        return ""
    return f"{before}{speed:.{0 if speed >= 10 else 1}f}/s{before}about {_format_duration(seconds_left)} left"


def _format_duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


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

    def draw(self, line: Callable[[], str]) -> None:
        now = time.monotonic()
        if now < self._next_draw:
            return
        self._next_draw = now + _REDRAW_S
        text = fit(line(), self._width() - 1)
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
