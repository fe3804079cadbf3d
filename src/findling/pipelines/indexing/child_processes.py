"""Child processes that run code of findling: new ones or forks, frames of pickles, limits of computing and memory."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import findling

if TYPE_CHECKING:
    import subprocess

EXIT_TOO_SLOW, EXIT_OUT_OF_MEMORY, _EXIT_FAILED = 1, 3, 4
"""Exit codes; faulthandler ends a process with the first."""

_LENGTH = struct.Struct(">Q")
_PIPE_BYTES = 1 << 20  # a batch of text passes with few turns; the default of Linux is 64 KB


def child_command(module: str, *arguments: int) -> list[str]:
    """The command of a process that runs `main` of a module, with what this process can import."""
    # Not the current folder: it is searched, not trusted, and a `re.py` in it must not be run.
    path = [entry for entry in sys.path if isinstance(entry, str) and entry]
    path.append(str(Path(findling.__file__).parents[1]))
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; main(*{arguments!r})"
    return [sys.executable, "-P", "-c", code]


class ChildProcess:
    """One process at the other end of two pipes, which answers one frame after another."""

    def __init__(self, process: ForkedProcess | subprocess.Popen[bytes]) -> None:
        self.process = process
        self._owner = os.getpid()
        assert process.stdin and process.stdout
        self._inbox, self._outbox = process.stdout, process.stdin
        with suppress(ImportError, AttributeError, OSError):  # Linux alone has the call, and may refuse it
            import fcntl

            fcntl.fcntl(self._inbox.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def is_ours(self) -> bool:
        """Whether it runs, and was started by this process: a fork has inherited those of its parent."""
        return self._owner == os.getpid() and self.process.poll() is None

    def exchange(self, value: Any) -> bytes | None:
        """The pickled answer to a value; `None` when the process has ended over it."""
        try:
            write_frame(self._outbox, value)
            return read_frame(self._inbox)
        except OSError:  # the pipe broke: the process is gone
            return None

    def kill(self) -> int:
        """End it at once; its exit code, as that of `end`."""
        self.process.kill()
        return self.end()

    def end(self) -> int:
        """Have it end, and wait for that; its exit code, or the number of a signal below 0. Twice is fine."""
        for stream in (self._outbox, self._inbox):
            with suppress(BrokenPipeError):
                stream.close()
        return self.process.wait()


def new_process(module: str) -> subprocess.Popen[bytes]:
    """A new process that runs `main` of a module between two pipes, which takes 80 ms. Raises OSError."""
    import subprocess  # which no search process needs

    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(child_command(module), stdin=pipe, stdout=pipe, stderr=nowhere)


def take_streams() -> tuple[int, int]:
    """Take standard input and output for frames alone, as descriptors; a library that prints reaches nobody.

    An interrupt at the terminal reaches the whole group. The parent decides, so it is ignored here.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    taken = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nowhere, descriptor)
    return taken


def is_alone() -> bool:
    """Whether a fork of this process is whole: no other thread runs, not even one of a library.

    The one in which tantivy looks at a file twice a second holds nothing that a fork needs.
    """
    try:
        names = [(task / "comm").read_bytes() for task in Path("/proc/self/task").iterdir()]
    except OSError:  # only Linux tells
        return False
    return len(names) - sum(name.startswith(b"thread-tantivy-") for name in names) == 1


class ForkedProcess:
    """A fork that runs a function between two pipes, with the part of `subprocess.Popen` that a parent needs.

    It begins in 3 ms with all that its parent has loaded, where a new process takes 80. The parent must be `is_alone`.
    The fork holds no file of its parent open: neither its locks nor the pipes of another fork.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.returncode: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 counts that thread, too
            self.pid = os.fork()
        if self.pid == 0:
            _run_forked(run, theirs_in, theirs_out)
        for descriptor in (theirs_in, theirs_out):
            os.close(descriptor)
        self.stdin, self.stdout = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")

    def poll(self) -> int | None:
        """Its exit code, if it is known to have ended."""
        return self.returncode

    def kill(self) -> None:
        """Kill it, unless it is known to have ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; its exit code, or the number of a signal below 0."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


def _run_forked(run: Callable[[], None], inbox: int, outbox: int) -> NoReturn:
    try:
        import fcntl

        # Above the first three, of which the parent may have closed any.
        streams = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 3) for descriptor in (inbox, outbox)]
        streams.append(os.open(os.devnull, os.O_RDWR))
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(3, 1 + max(int(file.name) for file in Path("/proc/self/fd").iterdir()))
        signal.set_wakeup_fd(-1)
        for kind in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, signal.SIG_DFL)
        run()
    finally:
        os._exit(_EXIT_FAILED)  # `run` ends the process by itself


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The pickle in the next frame; `None` at the end of the stream, be it in the middle of a frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def framed(value: Any) -> bytes:
    """A value as one frame."""
    body = pickle.dumps(value, protocol=5)
    return _LENGTH.pack(len(body)) + body


def write_frame(stream: IO[bytes], value: Any) -> None:
    """Write a value as one frame, which may be large and is not copied."""
    body = pickle.dumps(value, protocol=5)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


@contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """End the process after so much computing, or where the system does not count that, after so much time."""
    if hasattr(signal, "ITIMER_PROF"):
        # Without a handler: the system itself ends even a parser that never returns.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    else:
        # A thread of C code, without the interpreter.
        with Path(os.devnull).open("w") as nowhere:
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()


def limit_memory(extra: int | None, *, with_mapped: bool) -> None:
    """Let the process take so much more than it has now, without a number all it wants.

    `with_mapped` counts mapped files, too.
    """
    # Only Linux says how much is in use, and only there is the limit on it reliable.
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        kind, field = (resource.RLIMIT_AS, 0) if with_mapped else (resource.RLIMIT_DATA, 5)
        _, most = resource.getrlimit(kind)
        limit = most
        if extra is not None:
            used = int(Path("/proc/self/statm").read_text().split()[field]) * resource.getpagesize()
            limit = used + extra if most == resource.RLIM_INFINITY else min(used + extra, most)
        resource.setrlimit(kind, (limit, most))
