"""Cutting a text into pieces worth finding: sections of prose, definitions of code, paragraphs of the rest."""

from __future__ import annotations

from findling.domain.resources import Piece
from findling.text.code_chunks import CODE_LANGS, chunk_code
from findling.text.lines import with_plain_breaks
from findling.text.markup_chunks import MARKUP_LANGS, chunk_markup
from findling.text.windows import windows

__all__ = ["chunk_text"]


def chunk_text(text: str, lang: str, size: int = 1800) -> list[Piece]:
    """Ordered pieces that hold every visible character of the text exactly once.

    `size` is the target in characters. Only a fenced block makes a piece longer: up to twice the size together with
    the lines that introduce it, up to four times the size alone. An unknown `lang` is cut like plain text.
    Raises `ValueError` when the size is not positive.
    """
    if size < 1:
        raise ValueError(f"chunk size must be positive, not {size}")
    plain = _with_plain_breaks(text)
    if lang in MARKUP_LANGS:
        return chunk_markup(plain, lang, size)
    if lang in CODE_LANGS:
        return chunk_code(plain, lang, size)
    return [Piece(*span) for span in windows(plain, 0, len(plain), size)]


def _with_plain_breaks(text: str) -> str:
    """The text with `\\n` as its only break, at equal length; a blank line is `\\n\\n`, which is what cuts look for."""
    return with_plain_breaks(text.replace("\r\n\r\n", "  \n\n")) if "\r" in text else text
