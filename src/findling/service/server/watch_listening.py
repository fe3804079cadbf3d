"""Listening to one root: a thread that reports when its changes are due to be indexed.

It waits for a missing root and starts again when the root is back, or when its rules have changed. Of all changes it
keeps only the times of the first and the last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from findling.domain.errors import FindlingError, PathNotFoundError
from findling.service.index.refresh import options_of
from findling.service.server.watch_list import note_problem, note_state, watch_lock, watcher_of
from findling.service.settings.settings import PROJECT_FILE, Settings, load_settings, user_file
from findling.service.workspace.workspace import Workspace, has_store, home_folder, indexed_root, locate, workspace_in
from findling.service.workspace.workspaces import all_workspaces
from findling.sources.files.ignore_rules import IGNORE_FILES
from findling.sources.files.watching import Tree, TreeWatch, open_watch

_QUIET_S = 0.2
"""Time without changes after which a writer is probably done."""

_PAUSE_S = 1.0
"""Pause between two attempts to watch a root, and between two looks at a watched one."""

_FILES_AND_ENVIRONMENT = ("default", "user", "project", "profile", "env")
"""Starts of the origins of values that `load_settings` finds by itself."""


class Calm:
    """The time to index changes: after a quiet time, but not later than some time after the first of them."""

    def __init__(self, quiet_s: float, wait_s: float) -> None:
        self._quiet_s, self._wait_s = quiet_s, wait_s
        self._first_at = self._last_at = 0.0
        self.is_waiting = False

    def disturb(self, now: float) -> None:
        """Note a change."""
        self._first_at = self._first_at if self.is_waiting else now
        self._last_at = now
        self.is_waiting = True

    def left_s(self, now: float) -> float:
        """Seconds to wait if nothing else changes; 0 or less when it is time. Only while it is waiting."""
        return min(self._last_at + self._quiet_s, self._first_at + self._wait_s) - now

    def clear(self) -> None:
        """Forget the changes, which are being indexed."""
        self.is_waiting = False


POLL_S = 2.0
"""Time between two looks at folders that the system cannot watch."""


class Listener:
    """A watched root; its own thread calls `on_due` whenever changes are due to be indexed."""

    def __init__(
        self, root: Path, settings: Settings, on_due: Callable[[Path], None], note: Callable[[str], None], called: str
    ) -> None:
        self.root = root
        self._settings, self._on_due, self._note, self._called = settings, on_due, note, called
        self._home = home_folder(settings["store.home"])
        self._stop = threading.Event()
        self._reported = ""
        self._identity: tuple[int, int] | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {root}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; `join` waits for that."""
        self._stop.set()

    def join(self) -> None:
        """Wait until it has ended, unless the file system does not answer."""
        self._thread.join(timeout=5.0)

    def is_there(self) -> bool:
        """Whether the root is still the watched one: an unmounted disk leaves an empty folder."""
        return self._identity is not None and _identity(self.root) == self._identity

    def _run(self) -> None:
        lock = None
        try:
            while not self._stop.is_set():
                try:
                    lock = lock if lock is not None and lock.held else watch_lock(self._home, self.root)
                    if lock.held or lock.acquire(0.0):
                        self._watch()
                    else:
                        pid, by = watcher_of(self._home, self.root)
                        self._report(f"{self.root} is watched by process {pid}" + (f" ({by})" if by else ""))
                except PathNotFoundError:
                    self._identity = None
                    self._report(f"{self.root} is gone; waiting for it to come back", is_problem=True)
                except (FindlingError, OSError) as error:
                    self._report(f"{self.root} is not watched: {error}", is_problem=True)
                self._stop.wait(_PAUSE_S)
        finally:
            if lock is not None:
                lock.release()

    def _watch(self) -> None:
        """Watch the root until it is another one, or has other rules. The lock is held."""
        rules_at = _circumstances(self.root)
        settings = settings_for(self.root, self._settings)
        identity = _identity(self.root)
        if identity is None:
            raise PathNotFoundError(f"{self.root} does not exist")
        watch = open_watch(_tree(self.root, settings), polling=settings["watch.polling"], poll_s=POLL_S)
        try:
            self._identity = identity
            self._report(watch.note or f"watching {self.root}")
            note_state(self._home, self.root, by=self._called, since=time.time(), polls=watch.polls, problem="")
            # Changes from before; an empty folder may be that of a disk that is not mounted.
            if not self.root.is_dir() or any(self.root.iterdir()):
                self._on_due(self.root)
            self._listen(watch, settings["watch.wait_s"], rules_at)
        finally:
            watch.close()

    def _listen(self, watch: TreeWatch, wait_s: float, rules_at: tuple[int, ...]) -> None:
        calm = Calm(_QUIET_S, wait_s)
        while not self._stop.is_set():
            left_s = calm.left_s(time.monotonic()) if calm.is_waiting else _PAUSE_S
            if watch.wait(max(0.0, left_s), self._stop):
                calm.disturb(time.monotonic())
            if not self.is_there() or _circumstances(self.root) != rules_at:
                return
            if calm.is_waiting and calm.left_s(time.monotonic()) <= 0:
                calm.clear()
                watch.settle()
                self._on_due(self.root)

    def _report(self, text: str, *, is_problem: bool = False) -> None:
        """Report a message once."""
        if text != self._reported:
            self._reported = text
            self._note(text)
            if is_problem:
                note_problem(self._home, self.root, text)


def settings_for(root: Path, settings: Settings) -> Settings:
    """The settings of a root: its own project file, with values of flags and programs. Raises as `load_settings`."""
    own = load_settings(root)
    for name in settings:
        if settings.origin(name).partition(" ")[0] not in _FILES_AND_ENVIRONMENT:
            own = own.override({name: settings[name]}, settings.origin(name))
    return own


def workspaces_of(root: Path, settings: Settings) -> list[tuple[str, Workspace]]:
    """The workspaces that index a root, each with its name if it has one, or the one that it would get.

    Raises PathNotFoundError when the root is not there.
    """
    home = home_folder(settings["store.home"])
    own = locate(root, home=home, place=settings["store.place"])
    named = [found for found in all_workspaces(home) if found.name and indexed_root(found.folder) == root]
    found = [(each.name, workspace_in(each.folder)) for each in named]
    return [*found, ("", own)] if not found or has_store(own.folder) else found


def _tree(root: Path, settings: Settings) -> Tree:
    """The watched part of a root, by the rules of the scan, without the folders of indexes."""
    workspaces = [workspace for _, workspace in workspaces_of(root, settings)]
    only = workspaces[0].only
    top = workspaces[0].root if only else root
    own = [workspace.folder for workspace in workspaces]
    return Tree(top, options_of(settings, top, only, *own).rules, only)


def _circumstances(root: Path) -> tuple[int, ...]:
    """Times of the files outside a root that decide on its rules: settings files, and ignore files above it."""
    folders = (root, *root.parents)
    files = [folder / name for folder in folders for name in (PROJECT_FILE, ".git/info/exclude")]
    files += [folder / name for folder in root.parents for name in IGNORE_FILES]
    files += filter(None, [user_file()])
    # A repository changes all the time; only its presence counts.
    return (*map(_mtime_ns, files), *((folder / ".git").exists() for folder in folders))


def _identity(path: Path) -> tuple[int, int] | None:
    """The identity of a folder at a path; a file goes by its folder, because editors replace files."""
    try:
        status = (path if path.is_dir() else path.parent).stat() if path.exists() else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status else None


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
