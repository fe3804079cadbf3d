"""The shell's side of a question to the warm process: what it sends, and how it waits.

shell → process   length, request, and the descriptors of stdin, stdout, stderr and the current folder
process → shell   R: ready · A: do it yourself
shell → process   G: go · later the number of a signal
process → shell   .: still there · w: something was read or written · A, before w · E and the exit code
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

_SIGINT = 2


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
        if not _is_taken(line, argv):
            return None
        return _outcome(line)
    except KeyboardInterrupt:
        return _interrupted()
    except OSError:
        return None
    finally:
        line.close()


def _is_taken(line: socket, argv: list[str]) -> bool:
    """Send the command; whether the process has begun with it. Raises OSError."""
    import _socket

    facts = [*map(os.fsencode, installation()), b"%d" % len(argv), *map(os.fsencode, argv)]
    body = b"\0".join([*facts, *[name + b"=" + value for name, value in os.environb.items()]])
    message = (b"%*d" % (HEAD, len(body))) + body
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        streams = b"".join([number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, here)])
        sent = line.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    finally:
        os.close(here)
    line.settimeout(_BEGIN_S)
    line.sendall(message[sent:])
    if line.recv(1) != READY:
        return False
    line.sendall(GO)
    line.settimeout(_SILENCE_S)
    return True


def _outcome(line: socket) -> int | None:
    heard = b""
    while True:
        try:
            said = line.recv(64)
        except KeyboardInterrupt:
            line.send(bytes([_SIGINT]))
            continue
        except OSError:  # silence, too
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
