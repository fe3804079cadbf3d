"""The command `findling`, which `python -m findling` is, too.

A search goes to the warm process, if there is one, before anything is loaded.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command line, here or in the warm process, and return its exit code."""
    # Ctrl-C while modules are loaded ends the process without a traceback; `signal` loads `enum`, `_signal` does not.
    handler = _signal.getsignal(_signal.SIGINT)
    takes_interrupts = handler is _signal.default_int_handler
    if takes_interrupts:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _open_missing_streams()
    code = ask_warm()
    if code is not None:
        _end_interrupted(code)
        os._exit(code)  # nothing was opened that has to be closed
    if takes_interrupts:  # while it waits for the warm process, Ctrl-C is passed on
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from findling.faces.cli.main import run
    from findling.service.client.warm_shell import ONE_THREAD

    os.environ.update(ONE_THREAD)
    try:
        if takes_interrupts:
            _signal.signal(_signal.SIGINT, handler)
        code = run()
        if takes_interrupts:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    except KeyboardInterrupt:  # just before the command line heeds it, or just after
        code = _INTERRUPTED
    _end_interrupted(code)
    _leave(code)
    return code


def _end_interrupted(code: int) -> None:
    """End as Ctrl-C ends a process, if that is how the command has ended.

    A shell goes on with its loop after a program that only exits with 130.
    """
    if code != _INTERRUPTED or os.name == "nt":
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGINT)


def _open_missing_streams() -> None:
    """Have streams that the shell has closed lead nowhere: an index would get their numbers, and their messages."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def ask_warm() -> int | None:
    """The exit code of a command that the warm process has carried out; `None` when this process has to do it."""
    from findling.faces.cli.request.command_table import COMMANDS, WARM
    from findling.service.client.warm_shell import ALWAYS, SOCKET, ask, is_script, warm_folder

    args, environ = sys.argv[1:], os.environ
    if not args or any(one.endswith("serve.use=never") for one in args) or "_FINDLING_COMPLETE" in environ:
        return None
    # As `route` of the command line finds it; where it is wrong, the fork asks `route` itself.
    place = 2 if args[0] in ("--workspace", "--store") else int(args[0].startswith(("--workspace=", "--store=")))
    word = args[place] if place < len(args) else ""
    command = word if word in COMMANDS else "search"
    if command not in WARM:
        return None
    wish = environ.get("FINDLING_SERVE_AUTO", "")
    if wish == "never":
        return None
    # An agent that starts a server is served by a process that runs, and starts none.
    is_asked = wish == "always" or command == "mcp" or not is_script(environ)
    folder, name = warm_folder(environ), SOCKET if is_asked else ALWAYS
    if not folder or not os.path.lexists(f"{folder}/{name}"):
        return None
    return ask(folder, name, sys.argv)


def stay_warm() -> None:
    """Be the warm process of a home: the first argument; a second one says after how many idle seconds it leaves."""
    from findling.faces.cli.main import run
    from findling.service.client import warm_process

    home, *idle_s = sys.argv[1:]
    warm_process.stay_warm(run, home, float(idle_s[0]) if idle_s else warm_process.IDLE_S)


def _leave(code: int) -> None:
    """End the process here, unless something else runs in it: to free every object takes Python 15 ms."""
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        return
    import atexit

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return  # it ends as it would without this
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
