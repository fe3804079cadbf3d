"""The little markdown that the generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["code", "codes", "table"]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table, and an empty one below it."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        cells = [cell.replace("|", r"\|") for cell in row]
        yield f"| {' | '.join(cells)} |"
    yield ""


def code(text: str) -> str:
    """The text as inline code."""
    return f"`{text}`"


def codes(texts: Iterable[str]) -> str:
    """Several texts as inline code."""
    return ", ".join(map(code, texts))
