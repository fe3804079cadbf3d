"""The terminal: colours, notes on stderr, questions."""

from __future__ import annotations

import io
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import click

from findling.domain.errors import UsageError

if TYPE_CHECKING:
    from findling.domain.results import Degradation, Suggestion

_CONTROLS = {
    **{code: 0x2400 + code for code in range(32) if code != 9},  # the symbols ␀ … ␟
    127: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    # Some terminals end a line at the first two; whatever follows the others is shown in another order than it has.
    **dict.fromkeys((0x2028, 0x2029, 0x202D, 0x202E), 0xFFFD),
}
_CONTROLS_OF_LINES = {code: shown for code, shown in _CONTROLS.items() if code != 10}


def show_controls(text: str) -> str:
    """The text with control characters made visible, letter for letter: a file must not drive the terminal."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def show_controls_in_lines(text: str) -> str:
    """The same for a text of several lines, whose ends stay."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_CONTROLS_OF_LINES)


def display_width(text: str) -> int:
    """The width of a line of text in columns."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def fit(text: str, columns: int) -> str:
    """As much of the beginning of a text as fits."""
    if display_width(text) <= columns:
        return text
    used = 0
    for position, letter in enumerate(text):
        used += _columns(letter)
        if used > columns:
            return text[:position]
    return text


def joins_previous(letter: str) -> bool:
    """Whether a letter is drawn as part of the one before it: accents, joiners, variation selectors."""
    return not letter.isascii() and unicodedata.category(letter) in ("Mn", "Me", "Mc", "Cf")


def _columns(letter: str) -> int:
    if joins_previous(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


_PLAIN = str.maketrans({"│": "|", "›": ">", "…": "...", "×": "x"})


def prepare_streams() -> None:
    """Let every path and every line be printed, in any encoding of the streams."""
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


def write_names(names: Iterable[str]) -> None:
    """Put names on stdout, one a line: on a terminal a line end in a name is no line end."""
    shown = map(show_controls, names) if sys.stdout.isatty() else names
    write("".join(f"{name}\n" for name in shown))


def note(message: str, hint: str = "") -> None:
    """Tell something that is no part of the answer: on stderr, with the next step if there is one.

    The answer and its exit code do not depend on whether it can be written.
    """
    try:
        click.echo(f"findling: {show_controls_in_lines(message)}", err=True)
        if hint:
            click.echo(f"  try: {show_controls_in_lines(hint)}", err=True)
    except OSError:  # its reader has gone, or its disk is full
        hush(sys.stderr)


def note_each(told: Iterable[Degradation]) -> None:
    """Tell what an answer or an index lacks, each with what mends it."""
    for one in told:
        note(one.what, one.fix)


def note_added(meant: Iterable[Suggestion]) -> None:
    """Tell which words were searched besides those that nobody wrote."""
    for one in meant:
        if one.applied:
            note(f"nobody wrote {one.term}: searched for {one.suggestion} as well")


def tell_index_runs() -> None:
    """Have every index run of this process say on stderr where it starts and why, for commands that stay."""
    import logging

    logging.basicConfig(format="findling: %(message)s", level=logging.WARNING)
    logging.getLogger("findling.indexing").setLevel(logging.INFO)


def piped(what: str, hint: str) -> IO[bytes]:
    """The bytes on stdin. Raises UsageError when nobody writes anything there."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"there {what} on stdin", hint=hint)
    return sys.stdin.buffer


def is_interactive() -> bool:
    """Whether a person is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agrees(what: str, yes: bool, flag: str = "--yes") -> bool:
    """Whether the user agrees, by a flag or when asked. Raises UsageError when nobody is there to ask."""
    if not yes and not is_interactive():
        raise UsageError(f"would {what}; nothing was done", hint=f"the same with {flag}")
    return yes or click.confirm(f"findling: {what}?", err=True)


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


def hush(stream: TextIO) -> None:
    """Have all further output go nowhere, the interpreter's last flush included: nobody can read the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
