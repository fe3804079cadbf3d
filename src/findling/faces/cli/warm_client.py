"""The beginning of every command: a search goes to the warm process, if there is one, before anything is loaded."""

from __future__ import annotations

import os
import sys

from findling.faces.cli.request.command_table import WARM, route
from findling.service.warm.place import ALWAYS, SOCKET, is_script, warm_folder

__all__ = ["ask_warm"]


def ask_warm() -> int | None:
    """The exit code of a command that the warm process has carried out; `None` when this process has to do it."""
    args, environ = sys.argv[1:], os.environ
    command = route(args)[:1]
    if not command or command[0] not in WARM or "--no-daemon" in args or "_FINDLING_COMPLETE" in environ:
        return None
    wish = environ.get("FINDLING_SERVE_AUTO", "")
    if wish == "never":
        return None
    # An agent that starts a server is served by a process that runs, and starts none.
    is_asked = wish == "always" or command[0] == "mcp" or not is_script(environ)
    folder, name = warm_folder(environ), SOCKET if is_asked else ALWAYS
    if not folder or not os.path.lexists(f"{folder}/{name}"):
        return None
    from findling.service.warm.asking import ask

    return ask(folder, name, sys.argv)
