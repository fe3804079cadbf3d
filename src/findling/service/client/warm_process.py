"""The warm process: it has loaded what searches need, and forks for every command that a shell sends.

A fork has the shell's streams, folder, environment and arguments, and does what the shell would have done; so its
answer is the same to the byte. The process itself opens no index, holds no lock that others wait for, and runs no
second thread: a fork of threads would inherit their locks.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from findling.domain.errors import FindlingError
from findling.pipelines.indexing.lasting_look import LastingLook
from findling.service.client import warm_fork
from findling.service.client.daemon_state import daemon_folder, make_folder
from findling.service.client.warm_fork import (
    LONGEST_REPORT,
    Fork,
    Nature,
    born_with,
    carry_out,
    program_stamp,
    standing_of,
)
from findling.service.client.warm_kit import describe_kit, load_kit
from findling.service.client.warm_shell import (
    ALWAYS,
    ONE_THREAD,
    SOCKET,
    address,
    is_script,
    peer_of,
    reach,
    warm_folder,
)
from findling.service.workspace.workspace import home_folder

if TYPE_CHECKING:
    from findling.service.settings.settings import Settings

IDLE_S = 600.0
"""Seconds without a command after which the process leaves."""

LOCK_FILE = "warm.lock"
"""The lock of the one warm process of a home."""

_ROUND_S = 5.0
"""Pause between two looks whether the process is still wanted."""

_MOST_AT_ONCE = 64
"""Commands at a time. Shells that find more do without."""

_REPLACED_S = 5.0
"""Patience with a process of an earlier version that is about to leave."""


def stay_warm(run: Callable[[Sequence[str]], int], home: str, idle_s: float = IDLE_S) -> None:
    """Be the warm process of a home until nobody needs one; returns at once where one runs.

    `run` is the command line; stdin holds the description of what to load first.
    """
    os.closerange(3, 1 << 16)  # what the shell had open: a pipe would never end
    os.chdir("/")
    own = Nature(standing_of("self"), program_stamp(), born_with(os.environb))
    with os.fdopen(os.dup(0), "rb") as given:
        kit = json.loads(given.read() or b"null")
    os.dup2(1, 0)
    # The environment of a command replaces this one, and its own processes never see it.
    os.environ.update(ONE_THREAD)
    with suppress(FindlingError, OSError), _only_one(Path(home)) as folder:
        if kit is not None:
            load_kit(kit)
        with _listening(str(folder)) as (listener, is_found):
            _WarmProcess(run, home, listener, is_found, own, idle_s).serve()


class _WarmProcess:
    """The loop that takes commands and learns from those that have ended."""

    def __init__(
        self,
        run: Callable[[Sequence[str]], int],
        home: str,
        listener: socket.socket,
        is_found: Callable[[], bool],
        own: Nature,
        idle_s: float,
    ) -> None:
        self._listener, self._is_found, self._idle_s = listener, is_found, idle_s
        self._reports, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._fork = Fork(run, home, own, told)
        self._forks: set[int] = set()
        self._indexes: set[str] = set()

    def serve(self) -> None:
        """Take commands until the process is idle, stale, or its index is gone."""
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        waiting.register(self._reports, select.POLLIN)
        until = time.monotonic() + self._idle_s
        _settle()
        while (left := until - time.monotonic()) > 0 and self._is_wanted():
            for number, _ in waiting.poll(min(left, _ROUND_S) * 1000):
                if number == self._listener.fileno():
                    if not self._take():
                        return
                    continue
                text, queues, _, _ = socket.recv_fds(self._reports, LONGEST_REPORT, 1)
                report = json.loads(text)
                if report["leave"]:
                    return
                self._learn(report, queues)
                until = time.monotonic() + self._idle_s
            self._reap()
            self._fork.looks.tidy()

    def _take(self) -> bool:
        """Fork for the next command; whether this process can. With a second thread it leaves its place to another."""
        with suppress(OSError):  # the shell has gone
            line, _ = self._listener.accept()
            with line:
                if len(os.listdir("/proc/self/task")) > 1:
                    return False
                if len(self._forks) < _MOST_AT_ONCE:
                    pid = os.fork()
                    if not pid:
                        self._become_fork(line)
                    self._forks.add(pid)
        return True

    def _become_fork(self, line: socket.socket) -> NoReturn:
        code = 70
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._listener.close()
            self._reports.close()
            code = carry_out(self._fork, line)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass  # the shell has gone
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def _learn(self, report: dict[str, Any], queues: Sequence[int]) -> None:
        self._indexes |= set(report["indexes"])
        for queue in queues:
            os.set_inheritable(queue, False)
            self._fork.looks.keep(LastingLook(*[*report["look"], queue]))
        if report["kit"]["modules"] or report["kit"]["tables"] or report["kit"]["models"]:
            load_kit(report["kit"])
            _settle()
        self._fork.known = frozenset(sys.modules)
        self._fork.lessons += 1

    def _reap(self) -> None:
        for pid in list(self._forks):
            with suppress(ChildProcessError):
                if not os.waitpid(pid, os.WNOHANG)[0]:
                    continue
            self._forks.discard(pid)

    def _is_wanted(self) -> bool:
        """Whether the socket is there to be found, and one of the indexes that were asked."""
        return self._is_found() and (not self._indexes or any(map(os.path.isdir, self._indexes)))


def _settle() -> None:
    """Have forks share what is loaded: a collection in one of them would copy every page."""
    gc.collect()
    gc.freeze()


@contextmanager
def _only_one(home: Path) -> Iterator[Path]:
    """Hold the lock of the one process of a home; yields its folder. Raises LockedError when another one stays."""
    from findling.domain.errors import LockedError
    from findling.stores.lock import WriteLock, taken

    folder = make_folder(home)
    with taken(lock := WriteLock(folder / LOCK_FILE), _REPLACED_S) as is_ours:
        if not is_ours:
            raise LockedError(f"process {lock.holder()} is warm for {home}")
        yield folder


@contextmanager
def _listening(folder: str) -> Iterator[tuple[socket.socket, Callable[[], bool]]]:
    """A socket that only its owner can reach, and whether it is still there to be found; the caller holds the lock."""
    path, number = address(folder, SOCKET)
    place = f"{folder}/{SOCKET}"  # an address through a descriptor would follow a home that is renamed
    with socket.socket(socket.AF_UNIX) as listener:
        with suppress(FileNotFoundError):
            os.unlink(path)
        mask = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(mask)
        own = _identity(place)  # before anybody can reach it: a home that is deleted then may have another process soon
        try:
            signal.signal(signal.SIGTERM, _leave)  # from now on the socket is removed
            listener.listen(_MOST_AT_ONCE)
            yield listener, lambda: own is not None and _identity(place) == own
        finally:
            if _identity(place) == own:
                with suppress(OSError):
                    os.unlink(place)
            if number >= 0:
                os.close(number)


def _identity(path: str) -> tuple[int, int] | None:
    """The file at a path, which another one of the same name is not; `None` when there is none."""
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _leave(*_: object) -> NoReturn:
    raise SystemExit


def keep_warm(settings: Settings, *, starts: bool, tell: Callable[[str, str], None]) -> None:
    """Follow the settings of a command that searches.

    Behind it a warm process is started, if they want one; a person hears of the first. A command in a warm process goes
    back to its shell, if they want none.
    """
    wish = settings["serve.auto"]
    is_wanted = wish == "always" or (wish == "auto" and not is_script(os.environ))
    home, asked = home_folder(settings["store.home"]), warm_folder(os.environ)
    if (fork := warm_fork.stand_in) is not None:
        if wish == "never" or (starts and not is_wanted) or str(home) != fork.home:
            fork.decline(leave=wish == "never")
        return
    is_flag = settings.origin("store.home").startswith("flag ")  # a home for this run only
    if is_wanted and asked and not is_flag and _start(home, asked, (SOCKET, ALWAYS)[: 1 + (wish == "always")]):
        tell(
            "a process stays for ten minutes, so that the next search is quick",
            "findling config set serve.auto never, if you want none",
        )


WARM_PROCESS = (sys.executable, "-P", "-c", "from findling.__main__ import stay_warm; stay_warm()")
"""The command of a warm process; the home follows. `-P`: the current folder may be a stranger's, with modules in it."""

_TOLD_FILE = "warm.told"
_LOG_FILE = "warm.log"


def _start(home: Path, asked: str, names: Sequence[str]) -> bool:
    """Start the warm process of a home, unless it runs; whether it is the first that this home has.

    `asked` is the folder in which shells look for it, by these `names`.
    """
    try:
        folder = make_folder(home)
        for name in names:
            _link(Path(asked) / name, folder / SOCKET)
        if (line := reach(str(folder), SOCKET)) is not None:
            line.close()
            return False
        _spawn(home, folder / _LOG_FILE)
        with suppress(FileExistsError):
            os.close(os.open(folder / _TOLD_FILE, os.O_CREAT | os.O_EXCL, 0o600))
            return True
    except (FindlingError, OSError):  # a home that cannot be written, no process left: a search works without
        pass
    return False


def stop(home: Path) -> int | None:
    """Ask the warm process of a home to leave; its number, or `None` when there is none.

    One in another container has the number 0 here, and stays.
    """
    line = reach(str(daemon_folder(home)), SOCKET)
    if line is None:
        return None
    pid, _ = peer_of(line)
    line.close()
    if pid:  # a signal to 0 would end this command and its neighbours
        os.kill(pid, signal.SIGTERM)
    return pid


def _link(path: Path, target: Path) -> None:
    """Have a path lead to the socket, unless it is the socket."""
    if path == target or (path.is_symlink() and os.readlink(path) == str(target)):
        return
    make_folder(path.parent.parent)
    with suppress(FileNotFoundError):
        path.unlink()
    path.symlink_to(target)


def _spawn(home: Path, log: Path) -> None:
    """Start the process in a session of its own, with all that this one has loaded to begin with."""
    # No pipe: of a user with 1,000 others it holds one page, and the shell would wait for a reader.
    with os.fdopen(os.memfd_create("findling-kit"), "wb") as kit:
        kit.write(json.dumps(describe_kit()).encode())
        kit.seek(0)
        streams = [
            (os.POSIX_SPAWN_DUP2, kit.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        command = [*WARM_PROCESS, str(home)]
        # A shell may block signals that end or interrupt the commands of others.
        os.posix_spawn(command[0], command, os.environ, file_actions=streams, setsid=True, setsigmask=())
