"""Work that goes on when a command is over: the model reads on, and unused space is given back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from findling.faces.cli.output.terminal import note

if TYPE_CHECKING:
    from findling.service.engine.background import Reading
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings

__all__ = ["compact_in_background", "refine_in_background", "tell_reading", "work_in_background"]


def refine_in_background(engine: Engine, settings: Settings) -> None:
    """Start a process that has the unread passages read, unless the settings say no or one is at it."""
    from findling.service.engine.background import read_on

    tell_reading(read_on(engine, settings))


def compact_in_background(engine: Engine, settings: Settings) -> None:
    """Start a process that gives unused space back, when this one has written and there is a good deal of it."""
    from findling.service.engine.background import give_space_back

    give_space_back(engine, settings)


def work_in_background(engine: Engine, settings: Settings) -> None:
    """Have both done."""
    refine_in_background(engine, settings)
    compact_in_background(engine, settings)


def tell_reading(reading: Reading | None) -> None:
    """Tell a person that the model has begun to read."""
    if reading is not None and sys.stderr.isatty():
        where = f" at {reading.sent_to}" if reading.sent_to else ""
        told = f"{reading.model} reads {reading.waiting:,} passages in the background{where}"
        note(f"{told}; findling status tells how far")
