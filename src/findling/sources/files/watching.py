"""Watching a tree: reports that something of it may have changed, from the system or by polling.

The scan decides what counts. Where the system reports changes, the watcher asks only for the folders that the scan
walks. Nothing is kept of a change but that there was one.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import MissingExtraError, UsageError
from findling.domain.ports import SkippedPath
from findling.sources.files.discovery import TELLING_NAMES, admits, scan, verdict
from findling.sources.files.file_text import changed_ns_at
from findling.sources.files.rule_patterns import Rules

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

# Names on Linux of file systems whose files change on another machine, or on the host of a virtual one.
_NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda davfs fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs gfs2 glusterfs gpfs lustre"
    " ncpfs nfs nfs4 ocfs2 orangefs prl_fs smb3 smbfs vboxsf virtiofs vmhgfs fuse.vmhgfs-fuse".split()
)
_MOUNTS = Path("/proc/self/mountinfo")
_STEP_MS = 50  # milliseconds between two fetches of the system's events, which pile up meanwhile
# So many changes in one step are not judged one by one. The system may have dropped others: Linux holds 16,384.
_MOST_JUDGED = 2_000
_LOOK_S = 60.0  # seconds between two full looks at a watched tree, for changes that the system did not report
# The most of a processor that looking may take; a large tree is polled less often.
_SHARE_OF_POLLING, _SHARE_OF_NOTIFIED = 0.05, 0.005
_UNSURE_NS = 50_000_000  # a second change within this time may leave the time of a file as it was
_ATTEMPTS = 5  # tries to start watching when a folder vanishes meanwhile
_MODIFIED = 2
_IS_LINUX = sys.platform.startswith("linux")


class Tree(NamedTuple):
    """Watched tree: the folder, the rules for its files, and the one file of it, if it is one.

    A folder that is not there is missed by `look_at`, never made.
    """

    root: Path
    rules: Rules
    only: str = ""


class Look(NamedTuple):
    """Result of a look: a digest of all files to index, and the time of change of each folder.

    Paths of folders are relative to the root, with a slash at their end; the root itself is empty.
    """

    digest: bytes
    folders: dict[str, int]


def look_at(tree: Tree) -> Look:
    """Look at a tree; what is kept of it grows with its folders, not with its files.

    Raises PathNotFoundError for a root that is not there, InvalidValueError for a rule that can match nothing.
    """
    digest = blake2b(digest_size=16)
    folders: dict[str, int] = {}
    for found in scan(str(tree.root), tree.rules, tree.only, folders):
        if not isinstance(found, SkippedPath):
            digest.update(f"{found.path}\0{found.size}\0{found.changed_ns}\0{found.inode}\n".encode())
    return Look(digest.digest(), folders)


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """Name of the network file system that holds a path; empty for a local or unknown one."""
    found = file_system(path, mounts)
    return found if found in _NETWORK else ""


def file_system(path: str | Path, mounts: Path = _MOUNTS) -> str:
    """Name of the file system that holds a path; empty for an unknown one."""
    path = Path(path)
    try:
        lines = os.fsdecode(mounts.read_bytes()).splitlines()
    except OSError:  # not Linux
        return ""
    found, longest = "", -1
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point, kind = fields.split(" ")[4], rest.split(" ")[0]
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
        # The last of several mounts on one point is the one that is seen.
        if len(point) >= longest and path.is_relative_to(point):
            found, longest = kind, len(point)
    return found


def open_watch(tree: Tree, *, polling: str = "auto", poll_s: float = 2.0) -> TreeWatch:
    """Begin to watch a tree: `polling` is `auto`, `always` or `never`; `poll_s` is the time between two looks.

    Raises PathNotFoundError for an absent path, MissingExtraError without watchfiles, InvalidValueError for a rule that
    matches nothing. Raises UsageError when the system cannot watch the path and polling is not allowed.
    """
    if polling == "always":
        return TreeWatch(tree, poll_s)
    if polling == "auto" and (kind := network_file_system(tree.root)):
        return TreeWatch(tree, poll_s, f"{tree.root} is on a network file system ({kind}): looking every {poll_s:g} s")
    need_watchfiles()
    try:
        return _NotifiedWatch(tree)
    except _NotToldError as error:
        if polling == "never":
            hint = "findling config set watch.polling auto"
            raise UsageError(f"{tree.root} cannot be watched: {error}", hint=hint) from error
        return TreeWatch(tree, poll_s, f"{tree.root}: {error}; looking every {poll_s:g} s instead")


def need_watchfiles() -> None:
    """Raises MissingExtraError when the library that receives changes is not installed."""
    try:
        import watchfiles  # noqa: F401 - whether it is there is the question
    except ImportError as error:
        hint = "pip install 'findling[watch]'"
        raise MissingExtraError("watching needs the package watchfiles", hint=hint) from error


class _NotToldError(UsageError):
    """The system does not report changes; the message says why."""


class TreeWatch:
    """A watched tree, at which it looks now and then. `note` tells its user how, where that matters."""

    polls = True

    def __init__(self, tree: Tree, pause_s: float, note: str = "", share: float = _SHARE_OF_POLLING) -> None:
        self.note = note
        self._tree, self._usual_pause_s, self._share = tree, pause_s, share
        self._digest = b""
        self._next_at = 0.0
        self._take(self._begin())

    def wait(self, timeout_s: float, should_stop: threading.Event) -> bool:
        """Wait for a change at most so long; tell whether there was one. Raises PathNotFoundError for a lost root."""
        should_stop.wait(max(0.0, min(timeout_s, self._pause_s())))
        return not should_stop.is_set() and self._differs()

    def settle(self) -> None:
        """Note folders that have come or gone, before changes are indexed. Raises as `open_watch` does."""

    def close(self) -> None:
        """Stop watching."""

    def _begin(self) -> Look:
        return look_at(self._tree)

    def _take(self, look: Look, cost_s: float = 0.0) -> None:
        """Compare with this look from now on."""
        self._digest = look.digest
        self._next_at = time.monotonic() + max(self._usual_pause_s, cost_s / self._share)

    def _pause_s(self) -> float:
        return self._next_at - time.monotonic()

    def _differs(self) -> bool:
        """Look again if it is time, and tell whether anything has changed. Raises as `look_at` does."""
        if self._pause_s() > 0:
            return False
        before, began = self._digest, time.monotonic()
        self._take(look_at(self._tree), time.monotonic() - began)
        return self._digest != before


class _NotifiedWatch(TreeWatch):
    """A tree whose changes the system reports; it is polled now and then all the same."""

    polls = False

    def __init__(self, tree: Tree) -> None:
        self._base = f"{tree.root}".rstrip(os.sep) + os.sep
        self._folders: frozenset[str] = frozenset()
        self._is_stale = self._is_unsure = False
        super().__init__(tree, _LOOK_S, share=_SHARE_OF_NOTIFIED)

    def wait(self, timeout_s: float, should_stop: threading.Event) -> bool:
        from watchfiles._rust_notify import WatchfilesRustInternalError

        is_unsure, self._is_unsure = self._is_unsure, False
        if is_unsure:
            return True
        try:
            changes = self._notify.watch(_STEP_MS, _STEP_MS, max(1, round(timeout_s * 1000)), should_stop)
        except WatchfilesRustInternalError:  # such as for a name that is no text; it tells of nothing from then on
            self._is_stale = True
            return True
        if not isinstance(changes, str):  # else why there is nothing to tell
            return self._concern(changes)
        differs = self._differs()
        self._is_stale |= differs
        return differs

    def settle(self) -> None:
        if self._is_stale:
            self._notify.close()
            self._take(self._begin())

    def close(self) -> None:
        self._notify.close()

    def _begin(self) -> Look:
        """Watch the folders that there are. The caller indexes earlier changes itself."""
        for _ in range(_ATTEMPTS):
            began_ns = time.time_ns()
            look = look_at(self._tree)
            try:
                self._notify = _notify(self._paths(look), recursive=not _IS_LINUX and not self._tree.only)
            except FileNotFoundError:
                continue
            self._folders = frozenset(map(self._absolute, look.folders))
            self._is_stale = self._is_unsure = self._has_missed_folders(look, began_ns)
            return look
        raise _NotToldError("its folders come and go too fast to be watched")

    def _paths(self, look: Look) -> list[str]:
        # Elsewhere one watch holds for everything below it. Linux would follow links out of the tree for that, and
        # spend its watches on folders that are left out.
        if not _IS_LINUX or self._tree.only:
            return [str(self._tree.root)]
        return [path for path in map(self._absolute, look.folders) if os.access(path, os.R_OK)]

    def _has_missed_folders(self, look: Look, began_ns: int) -> bool:
        """Whether a folder has got others after it was listed and before it was watched."""
        if not _IS_LINUX or self._tree.only:
            return False
        for folder, before in look.folders.items():
            path = self._absolute(folder)
            if abs(began_ns - before) >= _UNSURE_NS and changed_ns_at(path) == before:
                continue
            if any(each not in self._folders and self._is_walked(each) for each in _paths_in(path)):
                return True
        return False

    def _concern(self, changes: set[tuple[int, str]]) -> bool:
        """Whether anything of it concerns the index; notes when other folders have to be watched."""
        if self._tree.only:
            return any(path == self._base + self._tree.only for _, path in changes)
        if len(changes) >= _MOST_JUDGED:
            self._is_stale = True
            return True
        is_concerned = False
        for change, path in changes:
            if self._moves_folders(change, path):
                self._is_stale = is_concerned = True
            elif not is_concerned:
                is_concerned = admits(str(self._tree.root), self._relative(path), self._tree.rules)
        return is_concerned

    def _moves_folders(self, change: int, path: str) -> bool:
        """Whether a change may decide which folders are walked."""
        if path in self._folders:
            # Elsewhere than on Linux a folder counts as modified whenever a file in it is, hidden ones too.
            return change != _MODIFIED or _IS_LINUX
        folder, _, name = path.rpartition(os.sep)
        return (name in TELLING_NAMES and folder in self._folders) or self._is_walked(path)

    def _is_walked(self, path: str) -> bool:
        root, rules, _ = self._tree
        return Path(path).is_dir() and verdict(str(root), self._relative(path), rules) is None

    def _absolute(self, folder: str) -> str:
        return (self._base + folder.replace("/", os.sep)).rstrip(os.sep) or os.sep

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._base).replace(os.sep, "/")


def _notify(paths: list[str], *, recursive: bool) -> RustNotify:
    """Ask the system to report changes. Raises FileNotFoundError when a path is gone, _NotToldError when it cannot."""
    from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

    try:
        return RustNotify(paths, False, False, round(_LOOK_S * 1000), recursive, False)
    except FileNotFoundError:
        raise
    except (OSError, WatchfilesRustInternalError) as error:
        raise _NotToldError(_explained(str(error))) from error


def _explained(error: str) -> str:
    if "watch limit" in error:
        return "the system watches no more folders (sudo sysctl fs.inotify.max_user_watches=524288)"
    if "os error 24" in error:
        return "the system has no more watchers (sudo sysctl fs.inotify.max_user_instances=1024)"
    return f"the system does not tell of changes: {error}"


def _paths_in(folder: str) -> list[str]:
    try:
        return [str(path) for path in Path(folder).iterdir()]
    except OSError:
        return []
