"""`findling mcp`: the server for MCP clients, on stdin and stdout."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from findling.domain.errors import MissingExtraError, NotFoundError
from findling.domain.permissions import OWNER, Caller, check_principal
from findling.faces.cli.output.terminal import note, tell_index_runs, write
from findling.faces.cli.request.options import (
    as_option,
    at_store,
    note_settings,
    opened,
    resolve,
    stand_in,
    workspace_option,
)
from findling.service.agents.agent_table import AGENTS, places

if TYPE_CHECKING:
    from socket import socket

    from findling.service.client.daemon_state import DaemonState
    from findling.service.settings.settings import Settings

_CONNECT_S = 1.0  # patience with a daemon that takes no connection


def claude_command(command: Sequence[str]) -> str:
    """A command that has Claude Code write the settings."""
    return f"claude mcp add findling -- {shlex.join(command)}"


def own_command(started_as: str) -> list[str]:
    """The command that starts findling from any folder: the program, or the interpreter that runs it."""
    named = Path(started_as)
    for found in (shutil.which(str(named.absolute())) if named.parts else None, shutil.which("findling")):
        if found and Path(found).stem == "findling":
            return [str(Path(found).absolute())]
    return [sys.executable, "-P", "-m", "findling"]


def skill_text(name: str = "SKILL.md") -> str:
    """The skill that teaches an agent when to use findling, and how; or the short guide for its instructions."""
    from importlib.resources import files

    return (files("findling.faces.mcp") / "skill" / name).read_text(encoding="utf-8")


@click.command()
@click.argument("path", required=False, type=click.Path())
@workspace_option
@as_option
@click.option(
    "--print",
    "printed",
    type=click.Choice(("skill", *AGENTS)),
    help="Print what an agent's settings need, or what teaches one when to use it, instead.",
)
def mcp(path: str | None, workspace: str | None, as_: tuple[str, ...], printed: str | None) -> int:
    """Serve PATH to an MCP client, which starts this command.

    With a running daemon this process only passes messages on. Without one it answers by itself.
    """
    if printed == "skill":
        write(skill_text())
        return 0
    place = _place(path, workspace, as_)
    if printed:
        # The settings of an agent are no place for a URL with a password.
        named = place.settings["workspace.name"] if workspace else None
        command = [*own_command(sys.argv[0]), *_arguments(path, named, as_)]
        from findling.service.agents.installing import snippet

        note(f"for {places(printed)}; findling agents install {printed} writes it there")
        if printed == "claude":
            note(f"or run: {claude_command(command)}")
        write(snippet(printed, command))
        return 0
    _serve(place)
    return 0


class _Place(NamedTuple):
    """The place that is served, its settings and its caller. `seen_from_afar` is its path for another process."""

    path: str
    seen_from_afar: str
    settings: Settings
    caller: Caller


def _place(path: str | None, workspace: str | None, principals: tuple[str, ...]) -> _Place:
    """Raises UsageError for a path or workspace that is not there, and for what is no principal."""
    from findling.service.workspace.scope import placed
    from findling.service.workspace.workspace import has_store, home_folder, locate

    settings, where = placed(at_store(resolve(path or ".", in_context=True, workspace=workspace)), path)
    seen = tuple(check_principal(one) for one in principals)
    caller = OWNER._replace(name="local", principals=seen) if seen else OWNER
    # Not by an engine, which takes longer to load than all of this process, when a daemon has one.
    name = settings["workspace.name"] or settings["context.workspace"]
    found = locate(where, home=home_folder(settings["store.home"]), name=name, place=settings["store.place"])
    if name and not has_store(found.folder):
        raise NotFoundError(f"there is no workspace {name}", hint=f"findling index --workspace {name} PATH")
    # The current folder stands for all of a workspace that is named, wherever that is.
    afar = found.root / found.scope if name else Path(where).expanduser().absolute()
    return _Place(str(where), str(afar), settings, caller)


def _arguments(path: str | None, workspace: str | None, principals: tuple[str, ...]) -> list[str]:
    """The arguments of this command again, for a client that starts it somewhere else."""
    named = ["--workspace", workspace] if workspace else []
    # A workspace is found by its name, wherever it lies.
    folder = [] if workspace and path is None else [str(Path(path or ".").absolute())]
    return ["mcp", *folder, *named, *[part for one in principals for part in ("--as", one)]]


def _serve(place: _Place) -> None:
    from findling.faces.mcp.transport.proxy import pass_on

    note_settings(place.settings, starts=False)
    if _state(place.settings) is None:
        require_extra()
    # Anything else that this process prints must not get between the messages.
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def put(line: bytes) -> None:
        wire.write(line)
        wire.flush()

    # The thread that waits for stdin cannot be woken, and an index run continues where it was next time.
    def leave() -> None:
        if (fork := stand_in()) is not None:
            fork.leave(0)
        os._exit(0)

    pass_on(sys.stdin.buffer, put, connect=partial(_connect, place), serve=partial(_serve_here, place), leave=leave)


def _state(settings: Settings) -> DaemonState | None:
    """The daemon that serves these workspaces, if one of this version runs."""
    from findling import __version__
    from findling.service.client.daemon_state import running
    from findling.service.workspace.workspace import home_folder

    state = running(home_folder(settings["store.home"])) if settings["serve.use"] == "auto" else None
    return state if state is not None and state.version == __version__ else None


def _connect(place: _Place) -> socket | None:
    """A connection to the daemon, which has learnt what is served, to whom, and under which settings."""
    import json
    import socket

    from findling.service.client.daemon_state import is_own_socket, mcp_socket
    from findling.service.settings.portable_settings import settings_document

    state = _state(place.settings)
    path = str(mcp_socket(state.socket)) if state else ""
    if not is_own_socket(path):
        return None
    first = [place.seen_from_afar, place.caller.principals, settings_document(place.settings)]
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(_CONNECT_S)
    try:
        line.connect(path)
        line.sendall(json.dumps(first).encode() + b"\n")
    except OSError:  # a daemon that hangs, too
        line.close()
        return None
    line.settimeout(None)
    return line


def _serve_here(place: _Place, end: socket) -> None:
    require_extra()
    from findling.faces.mcp.tool_context import local_desk
    from findling.faces.mcp.transport.lines import serve_socket
    from findling.service.engine.client import LocalClient

    tell_index_runs()
    with opened(place.path, place.settings) as engine:
        client = LocalClient(engine, place.caller.principals, settings=place.settings)
        desk = local_desk(lambda: nullcontext(client), place.caller, place.settings)
        serve_socket(lambda: desk, end)


def require_extra() -> None:
    """Raises MissingExtraError when the SDK is not installed."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise MissingExtraError("the MCP server needs the package mcp", hint="pip install 'findling[mcp]'")
