"""Watching: indexes that follow their files by themselves.

Each root has a thread that listens; the thread that called `watch_roots` indexes due roots, one after the other.
Changes meanwhile make a root due once more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from findling.domain.errors import FindlingError, LockedError
from findling.domain.reports import IndexProgress, IndexReport
from findling.service.engine.engine import Engine
from findling.service.server.watch_list import note_indexed, note_problem
from findling.service.server.watch_listening import Listener, settings_for, workspaces_of
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import home_folder
from findling.service.workspace.writer_queue import REFRESH_PATIENCE_S
from findling.sources.files.watching import need_watchfiles

_TICK_S = 0.5
"""Time between two looks at the list of roots and the wish to stop."""

_LOCKED_PAUSE_S, _FAILED_PAUSE_S = 1.0, 60.0
"""Pauses before a retry, after another process was writing, and after any other failure."""


def watch_roots(
    roots: Callable[[], Iterable[Path]],
    on_change: Callable[[Path], None],
    *,
    settings: Settings,
    should_stop: threading.Event,
    note: Callable[[str], None],
    called: str = "findling watch run",
) -> None:
    """Call `on_change` with each root whose files have changed, and once with each at the start, until it should stop.

    `roots` is asked again and again, so that others can be added meanwhile. A root that another process watches stays
    with it; a missing one is waited for. `called` names this process to others. A failure of `on_change` is noted, and
    retried later. Raises MissingExtraError without watchfiles.
    """
    if settings["watch.polling"] != "always":
        need_watchfiles()
    watcher = _Watcher(settings, note, called)
    try:
        while not should_stop.is_set():
            watcher.attend(roots)
            root = watcher.next_due(_TICK_S)
            if root is not None and not should_stop.is_set():
                watcher.take(root, on_change)
    finally:
        watcher.close()


def index_root(
    root: Path,
    settings: Settings,
    *,
    should_stop: threading.Event | None = None,
    afterwards: Callable[[Engine, Settings], None] | None = None,
) -> IndexReport:
    """Update every index of a root, or create one; returns the changes of all of them.

    The root's own project file counts. The next run continues a stopped one. `afterwards` is called with each open
    index and its settings. Raises LockedError at once when another process is writing, and otherwise as `Engine.index`.
    """

    def on_progress(_: IndexProgress) -> None:
        if should_stop is not None and should_stop.is_set():
            raise _StoppedError

    settings = settings_for(root, settings)
    reports: list[IndexReport] = []
    for name, workspace in workspaces_of(root, settings):
        own = settings.override({"workspace.name": name, "context.workspace": ""}, "flag --workspace")
        with Engine(workspace, own) as engine:
            try:
                # A search that indexes the same changes finishes first; other processes are not waited for.
                with engine.queue.turn(REFRESH_PATIENCE_S):
                    if writer := engine.queue.writer():
                        raise LockedError(f"{writer} is writing {engine.home}", hint="try again when it has finished")
                    reports.append(engine.index(on_progress=on_progress, reason="it is watched"))
                    engine.opened.level_wanted()
            except _StoppedError:
                break
            if afterwards is not None:
                afterwards(engine, own)
    report = reports[0] if len(reports) == 1 else _sum_of(reports)
    note_indexed(home_folder(settings["store.home"]), root, report)
    return report


class _Watcher:
    """The listeners of all roots, and which of them are due."""

    def __init__(self, settings: Settings, note: Callable[[str], None], called: str) -> None:
        self._settings, self._note, self._called = settings, note, called
        self._home = home_folder(settings["store.home"])
        self._listeners: dict[Path, Listener] = {}
        self._due: dict[Path, float] = {}
        """Root → time to index it."""
        self._changed = threading.Condition()
        self._told: dict[Path, str] = {}

    def attend(self, roots: Callable[[], Iterable[Path]]) -> None:
        """Listen to these roots and to no others; a list that cannot be read changes nothing."""
        try:
            wanted = dict.fromkeys(roots())
        except FindlingError as error:
            self._tell(self._home, error.message)
            return
        for root in [root for root in self._listeners if root not in wanted]:
            listener = self._listeners.pop(root)
            listener.stop()
            listener.join()
            with self._changed:
                self._due.pop(root, None)
            self._note(f"{root} is no longer watched")
        for root in wanted:
            if root not in self._listeners:
                self._listeners[root] = Listener(root, self._settings, self._mark_due, self._note, self._called)

    def next_due(self, timeout_s: float) -> Path | None:
        """A root that is due now, if there is one within the time."""
        with self._changed:
            found = self._first_due()
            if found is None:
                self._changed.wait(timeout_s)
                found = self._first_due()
            if found is not None:
                del self._due[found]
            return found

    def take(self, root: Path, on_change: Callable[[Path], None]) -> None:
        """Index the changes of a root, later if that is not possible now."""
        listener = self._listeners.get(root)
        if listener is None or not listener.is_there():
            return  # its listener reports that, and starts again when the root is back
        try:
            on_change(root)
            self._told.pop(root, None)
        except LockedError:
            self._mark_due(root, _LOCKED_PAUSE_S)
        except (FindlingError, OSError) as error:
            self._tell(root, f"{root}: {error}")
            self._mark_due(root, _FAILED_PAUSE_S)

    def close(self) -> None:
        """End all listeners."""
        for listener in self._listeners.values():
            listener.stop()
        for listener in self._listeners.values():
            listener.join()

    def _mark_due(self, root: Path, pause_s: float = 0.0) -> None:
        with self._changed:
            at = time.monotonic() + pause_s
            self._due[root] = min(at, self._due.get(root, at))
            self._changed.notify()

    def _first_due(self) -> Path | None:
        now = time.monotonic()
        return next((root for root, at in self._due.items() if at <= now), None)

    def _tell(self, about: Path, text: str) -> None:
        if self._told.get(about) != text:
            self._told[about] = text
            self._note(text)
            if about in self._listeners:
                note_problem(self._home, about, text)


class _StoppedError(Exception):
    """The wish to stop an index run."""


def _sum_of(reports: list[IndexReport]) -> IndexReport:
    counts = ("added", "updated", "unchanged", "removed", "failed", "partial", "chunks", "bytes_read")
    sums = {name: sum(getattr(report, name) for report in reports) for name in counts}
    return IndexReport(**sums, seconds=sum(report.seconds for report in reports))
