"""Cutting a text into pieces worth finding: sections of prose, definitions of code, messages, or plain windows."""

from __future__ import annotations

from findling.domain.resources import Piece
from findling.text.chat_chunks import chunk_chat
from findling.text.chunk_plan import ChunkPlan
from findling.text.chunk_presets import PRESETS, check_plan
from findling.text.code_chunks import CODE_LANGS, chunk_code
from findling.text.data_outlines import DATA_OUTLINES
from findling.text.fixed_chunks import chunk_fixed
from findling.text.lines import with_plain_breaks
from findling.text.markup_chunks import chunk_sections
from findling.text.measures import characters_of, measure_of
from findling.text.outlines import OUTLINES, Outline
from findling.text.syntax import SYNTAX_LANGS
from findling.text.table_headers import with_table_headers

__all__ = ["chunk_outline", "chunk_text", "parses"]


def chunk_text(text: str, lang: str, plan: ChunkPlan = PRESETS["default"]) -> list[Piece]:
    """Ordered pieces that hold every visible character of the text, exactly once unless the plan lets them overlap.

    Code is cut at its definitions and sized in characters, whatever the plan's unit is. Of the rest only a fenced
    block makes a piece larger than the plan says: up to twice the size together with the lines that introduce it, up
    to four times the size alone. An unknown `lang` is cut like plain text. Raises `ValueError` for a plan that
    cannot be.
    """
    check_plan(plan)
    plain = _with_plain_breaks(text)
    if plan.strategy == "semantic" and lang in CODE_LANGS:
        return chunk_code(plain, lang, characters_of(plan), syntax=parses(plan, lang))
    if plan.strategy == "semantic" and lang == "chat":
        return chunk_chat(plain, measure_of(plain, plan))
    outline = _OUTLINES[lang](plain) if lang in _OUTLINES else _NO_OUTLINE
    return with_table_headers(plain, _along(plain, outline, plan))


def chunk_outline(text: str, outline: Outline, plan: ChunkPlan = PRESETS["default"]) -> list[Piece]:
    """Pieces of a text whose headings are known. Rows with `|` are a table, the first of them is its header.

    Raises `ValueError` for a plan that cannot be.
    """
    check_plan(plan)
    plain = _with_plain_breaks(text)
    return with_table_headers(plain, _along(plain, outline, plan), ruled=False)


def parses(plan: ChunkPlan, lang: str) -> bool:
    """Whether texts of this language are cut by their syntax tree."""
    if plan.strategy != "semantic" or plan.code == "patterns":
        return False
    return lang in (SYNTAX_LANGS if plan.code == "syntax" else _WITHOUT_KEYWORD)


_WITHOUT_KEYWORD = SYNTAX_LANGS & {
    *("c", "cpp", "csharp", "cuda", "dart", "haskell", "java", "javascript", "objectivec", "powershell", "typescript")
}
"""Languages in which a function is told from a call by more than its first word. Patterns cut 23 to 54 in 100 pieces of
C and C++ elsewhere than a tree does, often inside a signature; where `def`, `fn` or `func` lead, they differ in
trifles, and a tree costs ten times as much."""

_OUTLINES = OUTLINES | DATA_OUTLINES
_NO_OUTLINE = Outline([], [])


def _along(text: str, outline: Outline, plan: ChunkPlan) -> list[Piece]:
    if plan.strategy == "semantic":
        return chunk_sections(text, outline, measure_of(text, plan))
    return chunk_fixed(text, outline, plan)


def _with_plain_breaks(text: str) -> str:
    """The text with `\\n` as its only break, at equal length; a blank line is `\\n\\n`, which is what cuts look for."""
    return with_plain_breaks(text.replace("\r\n\r\n", "  \n\n")) if "\r" in text else text
