"""Work in processes of their own: the model embeds what it lacks, and unused space is released."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from findling.service.workspace.workspace import place_of

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings

_started: list[int] = []
"""Processes that were started and may have ended unnoticed."""


class Embedding(NamedTuple):
    """A model that has begun to embed: the number of passages, and the host they are sent to, if any."""

    model: str
    waiting: int
    sent_to: str


def read_on(engine: Engine, settings: Settings) -> Embedding | None:
    """Start a process that embeds the passages without vectors, unless the settings say no or one runs.

    On battery none is started: a search or an index run on mains does it.
    """
    if settings["semantic.refine"] != "background" or not engine.writer.exists:
        return None
    vectors = engine.opened.vectors
    meaning = vectors.account(tells_refining=False)
    waiting = meaning["of"] - meaning["read"] - meaning["withheld"]
    if not meaning["model"] or not waiting or meaning["waiting"] or vectors.is_locked():
        return None
    if not _start(["refine", str(engine.subject), "--gently"], engine, settings):
        return None
    return Embedding(meaning["model"], waiting, meaning["sent_to"])


def index_on(engine: Engine, settings: Settings) -> None:
    """Start a process that indexes what a first answer has left out, unless the settings say no or one writes."""
    if settings["semantic.refine"] == "background" and not engine.queue.writer():
        _start(["index", str(engine.subject), "--yes"], engine, settings)


def give_space_back(engine: Engine, settings: Settings) -> None:
    """Start a process that releases unused space, when this one has written and there is a good deal of it."""
    if not engine.queue.take_written() or not settings["compact.auto"]:
        return
    from findling.service.upkeep.compaction import is_worthwhile

    if is_worthwhile(engine.home, settings):
        _start(["compact", str(engine.subject), "--if-worthwhile"], engine, settings)


def reap() -> None:
    """Remove processes that have ended from the table of processes."""
    if os.name == "nt":
        return
    for pid in list(_started):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _started.remove(pid)


def _start(arguments: list[str], engine: Engine, settings: Settings) -> bool:
    """Run findling in a process that outlives this one; returns whether there is a folder to run it in.

    `arguments` are a command, the path that it is about, and options.
    """
    reap()
    folder, (command_name, subject, *options) = engine.root, arguments
    if not folder.exists():
        if not place_of(engine.home):
            return False
        folder, subject = engine.home, ""  # the files are those of another host
    import subprocess

    # -P: the process runs in the searched folder, whose files must not be taken for modules.
    command = [sys.executable, "-P", "-m", "findling", command_name, *filter(None, [subject]), *options]
    if workspace := settings["workspace.name"] or settings["context.workspace"]:
        command += ["--workspace", workspace]
    # A session of its own: it outlives the terminal.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=folder,
        env=_environment(settings),
    )
    process.returncode = 0  # nobody asks how it ended
    _started.append(process.pid)
    return True


def _environment(settings: Settings) -> dict[str, str]:
    """Variables under which another process has the same settings, also those of flags."""
    from findling.service.settings.setting_list import variable_of

    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
    environ |= {name: os.environ[name] for name in ("FINDLING_CONFIG", "FINDLING_CORE") if name in os.environ}
    for name in settings:
        origin = settings.origin(name)
        if origin.startswith(("env ", "flag ")):
            environ[variable_of(name)] = _as_text(settings[name])
        elif origin.startswith("user file "):
            environ["FINDLING_CONFIG"] = origin.removeprefix("user file ")
    return environ


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "auto"
    return ",".join(value) if isinstance(value, tuple) else str(value)
