"""Text on a terminal: how wide it is, and what a file's own control characters must not do there."""

from __future__ import annotations

import unicodedata

__all__ = ["display_width", "fit", "joins_previous", "show_controls", "show_controls_in_lines"]

_CONTROLS = {
    **{code: 0x2400 + code for code in range(32) if code != 9},  # the symbols ␀ … ␟
    127: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    # Whatever follows them is shown in another order than it has.
    **dict.fromkeys((0x202D, 0x202E), 0xFFFD),
}
_CONTROLS_OF_LINES = {code: shown for code, shown in _CONTROLS.items() if code != 10}


def show_controls(text: str) -> str:
    """The text with control characters made visible, letter for letter: a file must not drive the terminal."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def show_controls_in_lines(text: str) -> str:
    """The same for a text of several lines, whose ends stay."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_CONTROLS_OF_LINES)


def display_width(text: str) -> int:
    """How many columns a line of text takes."""
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
