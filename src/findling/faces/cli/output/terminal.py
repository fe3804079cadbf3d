"""What the command line knows of the terminal: colours, notes on stderr, questions."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import click

from findling.domain.errors import UsageError
from findling.faces.cli.output.columns import show_controls_in_lines

__all__ = [
    "ask_before_indexing",
    "hush_stdout",
    "is_interactive",
    "note",
    "prepare_streams",
    "speaks_unicode",
    "tell_index_runs",
    "use_color",
    "write",
]

_PLAIN = str.maketrans({"│": "|", "›": ">", "…": "...", "×": "x"})


def prepare_streams() -> None:
    """Let every path and every line be printed, whatever the encoding of the streams."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path whose bytes are no UTF-8 comes out as the bytes it has.
            stream.reconfigure(errors="surrogateescape" if speaks_unicode(stream) else "backslashreplace")


def write(text: str, *, styled: bool = False) -> None:
    """Put a part of the answer on stdout: on a terminal with its control characters made visible.

    A `styled` text has colours and links of our own, and none of a file's controls.
    """
    if not styled and sys.stdout.isatty():
        text = show_controls_in_lines(text)
    click.echo(text if speaks_unicode(sys.stdout) else text.translate(_PLAIN), nl=False, color=True)


def note(message: str, hint: str = "") -> None:
    """Tell something that is no part of the answer: on stderr, with the next step if there is one."""
    click.echo(f"findling: {show_controls_in_lines(message)}", err=True)
    if hint:
        click.echo(f"  try: {show_controls_in_lines(hint)}", err=True)


def tell_index_runs() -> None:
    """Have every index run of this process say on stderr where it starts and why, for commands that stay."""
    import logging

    logging.basicConfig(format="findling: %(message)s", level=logging.WARNING)
    logging.getLogger("findling.indexing").setLevel(logging.INFO)


def is_interactive() -> bool:
    """Whether a person is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def speaks_unicode(stream: TextIO) -> bool:
    """Whether the stream can write any letter."""
    return (stream.encoding or "utf-8").lower().replace("-", "").startswith("utf")


def use_color(wish: str, stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether to colour: a clear wish first, then NO_COLOR, FORCE_COLOR, TERM, then whether it is a terminal."""
    environ = os.environ if environ is None else environ
    if wish != "auto":
        return wish == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return environ.get("TERM") != "dumb" and stream.isatty()


def ask_before_indexing(root: Path, yes: bool) -> None:
    """Have the user agree before a home folder or a whole disk is indexed.

    Raises `UsageError` when the answer is no or nobody is there to ask.
    """
    from findling.service.workspace.workspace import is_vast

    if yes or not is_vast(root):
        return
    if not is_interactive():
        raise UsageError(f"{root} is a large place to index", hint=f"findling index {root} --yes")
    if not click.confirm(f"Index all of {root}?", err=True):
        raise UsageError(f"{root} was not indexed", hint="name a smaller folder")


def hush_stdout() -> None:
    """Let the interpreter's last flush go nowhere: the reader of stdout has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
