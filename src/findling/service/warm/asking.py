"""The shell's side of a question to the warm process: what it sends, and how it waits.

    shell → process   length and request
    process → shell   R and the number of the fork: ready · A: do it yourself
    shell → process   G: go, with the descriptors of stdin, stdout, stderr and the current folder
    shell → process   the number of a signal
    process → shell   .: still there · w: something was read or written · A, before w · E and the exit code

The descriptors come late: a process that hangs would keep the shell's pipes open.
"""

from __future__ import annotations

import os
import sys

from findling import __version__
from findling.service.warm.place import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

__all__ = ["ALONE", "BEAT", "DONE", "GO", "HEAD", "READY", "TOUCHED", "ask", "installation"]

READY, ALONE, GO, BEAT, TOUCHED, DONE = b"R", b"A", b"G", b".", b"w", b"E"

HEAD = 10
"""Digits of the length in front of a request."""

_BEGIN_S = 1.0
"""Patience with a process that gives no sign of life."""

_SILENCE_S = 5.0
"""Patience with one that has begun; it gives a sign twice a second, and a busy machine may delay that."""

_SIGINT, _SIGKILL = 2, 9


def installation() -> tuple[str, ...]:
    """The program that a process runs: where it lies, its interpreter, and how that was started."""
    flags = sys.flags
    started = (flags.optimize, flags.dev_mode, flags.utf8_mode, flags.bytes_warning, sys.warnoptions, sys._xoptions)
    return __version__, __file__, sys.executable, repr(started)


def ask(folder: str, name: str, argv: list[str]) -> int | None:
    """The exit code of a command that the warm process has carried out; `None` when nobody has begun with it."""
    line = reach(folder, name)
    if line is None:
        return None
    try:
        fork = _begin(line, argv)
        return _outcome(line, fork) if fork else None
    except KeyboardInterrupt:
        return _interrupted()
    except OSError:
        return None
    finally:
        line.close()


def _begin(line: socket, argv: list[str]) -> int:
    """Send the command; the process that has begun with it, or 0. Raises OSError."""
    import _socket

    facts = [*map(os.fsencode, installation()), b"%d" % len(argv), *map(os.fsencode, argv)]
    body = b"\0".join([*facts, *[name + b"=" + value for name, value in os.environb.items()]])
    line.settimeout(_BEGIN_S)
    line.sendall((b"%*d" % (HEAD, len(body))) + body)
    said = line.recv(5)
    if said[:1] != READY:
        return 0
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        streams = b"".join([number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, here)])
        line.sendmsg([GO], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    finally:
        os.close(here)
    return int.from_bytes(said[1:], sys.byteorder)


def _outcome(line: socket, fork: int) -> int | None:
    line.settimeout(_SILENCE_S)
    heard = b""
    while True:
        try:
            said = line.recv(64)
        except KeyboardInterrupt:
            line.send(bytes([_SIGINT]))
            continue
        except TimeoutError:  # it hangs, with the streams of this shell
            os.kill(fork, _SIGKILL)
            said = b""
        heard += said
        _, done, code = heard.partition(DONE)
        if done and code:
            return code[0]
        if said and ALONE not in heard:
            continue
        if TOUCHED not in heard:
            return None
        sys.stderr.write("findling: the warm process was ended while it answered\n  try: the same again\n")
        return 2


def _interrupted() -> int:
    lead = "\n" if sys.stderr.isatty() else ""  # behind the ^C that the terminal shows
    sys.stderr.write(f"{lead}findling: interrupted\n")
    return 130
