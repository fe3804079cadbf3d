"""The shell's side of the warm process: where they meet, what the shell sends, and how it waits.

    shell → process   length and request
    process → shell   R, the number of the fork and of its proof: ready · A: do it yourself
    shell → process   G: go, with the descriptors of stdin, stdout, stderr, the current folder, and a proof
    shell → process   the number of a signal
    process → shell   .: still there · w: something was read or written · A, before w · E and the exit code

The descriptors come late: a process that hangs would keep the shell's pipes open. The proof is a nameless
file of the fork that only a shell can open which may look into it. One in a sandbox of Landlock may not, and nothing
else tells of that.

Every search pays for what stands here, so it is little. `_socket` is the part of `socket` that is written in C: the
rest of it, with `enum` and `selectors`, takes 6 ms to load.
"""

from __future__ import annotations

import os
import sys

from findling import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping

FOLDER = ".daemon"
"""The folder in a home that holds the socket; no workspace can be called so."""

SOCKET = "warm"
"""The socket that terminals ask."""

ALWAYS = "always"
"""A link to the socket, there while `serve.auto` is `always`: scripts ask by this name, without reading settings."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""The variable by which numpy, once it is loaded, starts no threads: each needs address space of its own."""

_CONNECT_S = 1.0
_LONGEST_ADDRESS = 100
"""Bytes of a socket's address: Linux takes 107 of them."""


def warm_folder(environ: Mapping[str, str]) -> str:
    """The folder of the socket, as the environment names the home; empty where there is no warm process."""
    if sys.platform != "linux":
        return ""
    home = environ.get("FINDLING_HOME") or environ.get("FINDLING_STORE_HOME")
    if not home:
        home = (environ.get("XDG_DATA_HOME") or "~/.local/share") + "/findling/workspaces"
    return os.path.join(os.path.abspath(os.path.expanduser(home)), FOLDER)


def is_script(environ: Mapping[str, str]) -> bool:
    """Whether nobody sits in front of this command: stdout is no terminal, or a service for tests runs it."""
    return environ.get("CI", "").lower() not in ("", "0", "false") or not os.isatty(1)


def address(folder: str, name: str) -> tuple[str, int]:
    """The address of a socket, and the descriptor to close afterwards; -1 for none.

    A path that is too long for an address is reached through the descriptor of its folder. Raises OSError.
    """
    path = f"{folder}/{name}"
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        return path, -1
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{number}/{name}", number


def reach(folder: str, name: str) -> socket | None:
    """A connection to a process of the same user that listens there; `None` when there is none."""
    import _socket

    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(_CONNECT_S)
    number = -1
    try:
        path, number = address(folder, name)
        line.connect(path)
        if peer_of(line)[1] == os.geteuid():
            return line
    except OSError:
        pass
    finally:
        if number >= 0:
            os.close(number)
    line.close()
    return None


def peer_of(line: socket) -> tuple[int, int]:
    """The process at the other end, and its user. Raises OSError."""
    import _socket

    facts = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(facts[:4], sys.byteorder), int.from_bytes(facts[4:8], sys.byteorder)


READY, ALONE, GO, BEAT, TOUCHED, DONE = b"R", b"A", b"G", b".", b"w", b"E"

HEAD = 10
"""Digits of the length in front of a request."""

_BEGIN_S = 1.0
"""Patience with a process that gives no sign of life."""

_SILENCE_S = 5.0
"""Patience with one that has begun; it gives a sign every second, and a busy machine may delay that."""

_WAITS = 5
"""Waits in which that patience runs out. Where all processes are paused, only one of them runs out at once."""

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
    said = line.recv(9)
    if said[:1] != READY:
        return 0
    fork, number = int.from_bytes(said[1:5], sys.byteorder), int.from_bytes(said[5:], sys.byteorder)
    here, proof = os.open(".", os.O_PATH | os.O_DIRECTORY), os.open(f"/proc/{fork}/fd/{number}", os.O_RDONLY)
    files = b"".join([number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, here, proof)])
    line.sendmsg([GO], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    os.close(here)
    os.close(proof)
    return fork


def _outcome(line: socket, fork: int) -> int | None:
    """Wait for the exit code, and pass Ctrl-C on: the fork ends in good order and says so."""
    import _signal  # type: ignore[import-not-found]

    if _signal.getsignal(_SIGINT) == _signal.SIG_DFL:
        _signal.signal(_SIGINT, _signal.default_int_handler)
    line.settimeout(_SILENCE_S / _WAITS)
    heard, silent = b"", 0
    while True:
        try:
            said, silent = line.recv(64), 0
        except KeyboardInterrupt:
            line.send(bytes([_SIGINT]))
            continue
        except TimeoutError:
            silent += 1
            if silent < _WAITS:
                continue
            os.kill(fork, _SIGKILL)  # it hangs, with the streams of this shell
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
