"""Work that goes on when a command is over: the model reads on, and unused space is given back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from findling.faces.cli.terminal import note

if TYPE_CHECKING:
    from findling.service.engine import Engine
    from findling.service.settings import Settings

__all__ = ["compact_in_background", "refine_in_background", "work_in_background"]


def refine_in_background(engine: Engine, settings: Settings) -> None:
    """Start a process that has the unread passages read, unless the settings say no or one is at it."""
    if settings["semantic.refine"] != "background":
        return
    meaning = engine.reading()
    waiting = meaning["of"] - meaning["read"]
    if not meaning["model"] or not waiting or meaning["refining"]:
        return
    changes = [name for name in settings if settings.origin(name) == "flag --set"]
    given = [part for name in changes for part in ("--set", f"{name}={settings[name]}")]
    _start(["refine", str(engine.subject), "--gently", *given], engine, settings)
    if sys.stderr.isatty():
        where = f" at {meaning['sent_to']}" if meaning["sent_to"] else ""
        note(f"{meaning['model']} reads {waiting:,} passages in the background{where}; findling status tells how far")


def compact_in_background(engine: Engine, settings: Settings) -> None:
    """Start a process that gives unused space back, when this one has written and there is a good deal of it.

    It costs a search that has written nothing 0.1 ms. The settings may say no.
    """
    if not settings["compact.auto"] or not _has_written(engine):
        return
    from findling.service.unused_space import is_worthwhile

    if is_worthwhile(engine.home, settings):
        _start(["compact", str(engine.subject), "--if-worthwhile"], engine, settings)


def work_in_background(engine: Engine, settings: Settings) -> None:
    """Have both done."""
    refine_in_background(engine, settings)
    compact_in_background(engine, settings)


def _has_written(engine: Engine) -> bool:
    from findling.stores.lock import WriteLock

    return WriteLock(engine.home / "write.lock").holder() == os.getpid()


def _start(arguments: list[str], engine: Engine, settings: Settings) -> None:
    """Run findling in a process that outlives this one."""
    if not engine.root.exists():
        return  # it could not be told where to work
    import subprocess

    command = [sys.executable, "-m", "findling", *arguments]
    if workspace := settings["workspace.name"] or settings["context.workspace"]:
        command += ["--workspace", workspace]
    # A session of its own: it must outlive the terminal it was started from.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=engine.root,
    )
    process.returncode = 0  # it outlives this one, which therefore never asks how it ended
