"""A fork of the warm process: it takes the place of the shell, and does one command.

It must not do what the shell could not. A shell may run in a sandbox, as another group, or under `ulimit`. Then its
standing differs from that of the warm process, and it does its command by itself.
"""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from findling.pipelines.indexing import freshness
from findling.pipelines.indexing.lasting_look import LastingLooks
from findling.service.client.warm_kit import describe_kit
from findling.service.client.warm_shell import (
    ALONE,
    BEAT,
    DONE,
    GO,
    HEAD,
    ONE_THREAD,
    READY,
    TOUCHED,
    installation,
    peer_of,
)

_REQUEST_S = 2.0
"""Patience with a shell that does not send its command."""

LONGEST_REPORT = 1 << 17
"""Bytes of what a fork tells the process in the end."""

_BEAT_S = 1.0
_LONGEST_REQUEST = 16 << 20
_LESSONS = 8
"""Commands from which the process learns; after that only new modules are news."""


class Fork:
    """All that a fork needs to know of the process."""

    def __init__(self, run: Callable[[Sequence[str]], int], home: str, own: Nature, reports: socket.socket) -> None:
        self.run, self.home, self.own, self.reports = run, home, own, reports
        self.looks = LastingLooks()
        self.known = frozenset(sys.modules)
        self.lessons = 0


class StandIn:
    """This process in the place of a shell. `home` is that of the warm process, `indexes` what the command opened."""

    def __init__(self, fork: Fork, line: socket.socket) -> None:
        self.home = fork.home
        self.indexes: set[str] = set()
        self.is_done = False
        self._fork, self._line = fork, line
        self._is_touched = False

    def touch(self) -> None:
        """Have the shell know that something is read or written, so that it does not do the command again."""
        if not self._is_touched:
            self._is_touched = True
            try:
                self._line.sendall(TOUCHED)
            except OSError:
                os._exit(70)  # the shell has given up, and does it by itself

    def decline(self, *, leave: bool = False) -> None:
        """Have the shell do the command, if nothing is read or written yet; `leave` ends the warm process as well."""
        if not self._is_touched:
            if leave:
                _report(self._fork, leave=True)
            with suppress(OSError):
                self._line.sendall(ALONE)
            os._exit(0)

    def leave(self, code: int) -> NoReturn:
        """End with an exit code, which the shell gets, and have the warm process learn from the command."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        self.is_done = True
        with suppress(OSError):
            self._line.sendall(DONE + bytes([code & 255]))
        fork = self._fork
        is_news = fork.lessons < _LESSONS or len(sys.modules) > len(fork.known)
        _report(fork, kit=describe_kit(fork.known) if is_news else None, indexes=sorted(self.indexes))
        os._exit(code & 255)


stand_in: StandIn | None = None
"""This process, if it is a fork that stands in for a shell."""


def carry_out(fork: Fork, line: socket.socket) -> int:
    """Do the command that comes over a line."""
    global stand_in
    line.settimeout(_REQUEST_S)
    asked = _receive(line)
    if asked is None:
        return 0
    verdict = _verdict(fork, asked, line)
    if verdict != READY:
        if verdict:
            _report(fork, leave=True)
        line.sendall(ALONE)
        return 0
    proof = os.memfd_create("findling-proof")
    line.sendall(READY + b"".join(number.to_bytes(4, sys.byteorder) for number in (os.getpid(), proof)))
    said, files, _, _ = socket.recv_fds(line, 1, 5)
    if said != GO or len(files) != 5 or not _is_opened(proof, files.pop()):
        return 0
    stand_in = StandIn(fork, line)
    freshness.looker = fork.looks.is_fresh
    _take_place(asked, files, stand_in)
    try:
        threading.Thread(target=_attend, args=(line, stand_in), daemon=True).start()
        code = fork.run(asked.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except KeyboardInterrupt:  # just before the command line heeds it, or just after
        code = 130
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    stand_in.leave(code)


class _Asked(NamedTuple):
    installation: tuple[str, ...]
    argv: list[str]
    environ: dict[bytes, bytes]


def _receive(line: socket.socket) -> _Asked | None:
    """The command; `None` from one that only looks whether somebody is there. Raises OSError or ValueError."""
    received = line.recv(1 << 16)
    if not received:
        return None
    size, body = int(received[:HEAD]), received[HEAD:]
    if size > _LONGEST_REQUEST:
        raise ValueError("this is no command")
    while len(body) < size:
        piece = line.recv(1 << 16)
        if not piece:
            raise ValueError("the shell has gone")
        body += piece
    *facts, count = map(os.fsdecode, body.split(b"\0", 5)[:5])
    rest = body.split(b"\0")[5:]
    argv, variables = rest[: int(count)], rest[int(count) :]
    pairs = (variable.partition(b"=") for variable in variables)
    environ = {name: value for name, _, value in pairs if name}  # one without a name can be had, and not set
    return _Asked(tuple(facts), [os.fsdecode(one) for one in argv], environ)


def _verdict(fork: Fork, asked: _Asked, line: socket.socket) -> bytes:
    """READY to do the command, empty to leave it to the shell, ALONE when the process has to leave besides."""
    own, (version, *place) = fork.own, installation()
    if [*asked.installation[1:]] != place:
        return b""  # another installation: neither is older
    try:
        is_stale = asked.installation[0] != version or program_stamp(own.program) != own.program
    except OSError:
        is_stale = True
    if is_stale:
        return ALONE
    pid, user = peer_of(line)
    with suppress(OSError):  # for a process that cannot be seen from here, in another container
        is_equal = user == os.geteuid() and born_with(asked.environ) == own.variables
        return READY if is_equal and standing_of(str(pid)) == own.standing else b""
    return b""


def _is_opened(proof: int, given: int) -> bool:
    """Whether a shell has opened the proof: a nameless file, out of reach from another sandbox."""
    with suppress(OSError), os.fdopen(given, "rb", buffering=0) as file:
        file.read(1)  # refused for a file that was only looked up
        return os.path.samestat(os.fstat(given), os.fstat(proof))
    return False


def _take_place(asked: _Asked, streams: Sequence[int], stand_in: StandIn) -> None:
    """Have the shell's folder, environment, streams, arguments and signals."""
    os.fchdir(streams[3])
    os.environ.clear()
    os.environb.update(asked.environ)
    os.environ.update(ONE_THREAD)
    time.tzset()
    # Behind all that may fail: an error is for the log, and the shell does the command.
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    sys.argv[:] = asked.argv
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = _text(_ShellStream(0, stand_in, "rb"), sys.stdin)
    sys.stdout = _text(_ShellStream(1, stand_in, "wb"), sys.stdout)
    sys.stderr = _text(_ShellStream(2, stand_in, "wb"), sys.stderr, by_line=True)


class _ShellStream(io.FileIO):
    """A stream of the shell, which learns of the first byte."""

    def __init__(self, number: int, stand_in: StandIn, mode: str) -> None:
        super().__init__(number, mode, closefd=False)
        self._stand_in = stand_in

    def write(self, data: Any, /) -> int:
        self._stand_in.touch()
        return super().write(data)

    def readinto(self, buffer: Any, /) -> int:
        self._stand_in.touch()
        return super().readinto(buffer)

    def readall(self) -> bytes:
        self._stand_in.touch()
        return super().readall()


def _text(raw: _ShellStream, like: Any, *, by_line: bool = False) -> io.TextIOWrapper:
    """A stream as the interpreter opens it."""
    buffer: Any = io.BufferedWriter(raw) if raw.writable() else io.BufferedReader(raw)
    newline = "\n" if raw.writable() else None
    return io.TextIOWrapper(
        buffer,
        like.encoding,
        like.errors,
        newline,
        line_buffering=by_line or raw.isatty(),
        write_through=like.write_through,
    )


def _attend(line: socket.socket, stand_in: StandIn) -> None:
    """Pass on signals of the shell, give signs of life, and end with the shell."""
    line.settimeout(_BEAT_S)
    while True:
        try:
            said = line.recv(16)
        except TimeoutError:
            with suppress(OSError):
                line.sendall(BEAT)
            continue
        except OSError:
            said = b""
        if stand_in.is_done:
            return
        if not said:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        for number in said:
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def _report(fork: Fork, *, leave: bool = False, kit: dict[str, Any] | None = None, indexes: Sequence[str] = ()) -> None:
    kit, look = kit or {"modules": [], "tables": [], "models": []}, fork.looks.own
    report = {"leave": leave, "kit": kit, "indexes": indexes, "look": None}
    with suppress(OSError):  # the process has left
        if look is not None:
            text = json.dumps({**report, "look": look[:-1]}).encode()
            if len(text) <= LONGEST_REPORT:
                socket.send_fds(fork.reports, [text], [look.queue])
                return
        fork.reports.send(json.dumps(report).encode())


_BORN_WITH = tuple(
    b"PYTHON LC_ LANG LD_ MALLOC_ GLIBC_ OMP_ OPENBLAS_ MKL_ TMPDIR SQLITE_TMPDIR FINDLING_CORE PSYCOPG_".split()
)
"""Beginnings of variables that a process obeys when it starts, and not later. SQLite asks for its folder once."""

_SAME = (
    "Umask: NoNewPrivs: Uid: Gid: Groups: Seccomp: Seccomp_filters: CapInh: CapPrm: CapEff: CapBnd: CapAmb:"
    " Cpus_allowed: Mems_allowed:"
).split()

_SPACES = ("mnt", "net", "pid", "user", "uts", "ipc")

_Stamps = dict[str, tuple[int, int, int]]


class Nature(NamedTuple):
    """A process as others are compared with it: its rights and limits, its program, and the variables it obeys."""

    standing: object
    program: _Stamps
    variables: Mapping[bytes, bytes]


def born_with(environ: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The variables that a process obeys when it starts, without those that every command sets itself."""
    own = set(map(os.fsencode, ONE_THREAD))
    return {name: value for name, value in environ.items() if name.startswith(_BORN_WITH) and name not in own}


def standing_of(pid: str) -> object:
    """The rights and limits of a process, to be compared with those of another. Raises OSError."""
    place = f"/proc/{pid}"
    with open(f"{place}/status", "rb") as file:
        status = [line for line in file.read().decode("ascii", "replace").splitlines() if line.startswith(tuple(_SAME))]
    with open(f"{place}/limits", "rb") as file:
        limits = file.read()
    label = b""
    with suppress(OSError), open(f"{place}/attr/current", "rb") as file:  # kernels without such labels
        label = file.read()
    spaces = [os.readlink(f"{place}/ns/{space}") for space in _SPACES]
    number = 0 if pid == "self" else int(pid)
    turns = os.getpriority(os.PRIO_PROCESS, number), os.sched_getscheduler(number)
    return status, limits, label, spaces, os.readlink(f"{place}/root"), turns


def program_stamp(known: Iterable[str] = ()) -> _Stamps:
    """Size, inode and time of every file of findling, and of the folders that modules are found in. Raises OSError."""
    paths = known or (*_own_files(), *[path for path in sys.path if os.path.isdir(path)])
    stamps = {}
    for path in paths:
        facts = os.stat(path)  # 500 of them in 0.7 ms
        stamps[path] = (facts.st_size, facts.st_ino, facts.st_mtime_ns)
    return stamps


def _own_files() -> list[str]:
    package = Path(__file__).parents[2]
    return [
        os.path.join(folder, name)
        for folder, folders, names in os.walk(package)
        if not folder.endswith("__pycache__")
        for name in names
    ]
