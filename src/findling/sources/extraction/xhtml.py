"""Text of a well-formed XHTML page, as in e-books: all of it, in one pass without recursion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.extraction.extracted import TextBuilder
from findling.sources.extraction.line_groups import LineGroups
from findling.sources.extraction.xml_tree import local_name, mixed_content

__all__ = ["HEADINGS", "write_xhtml"]

HEADINGS = {f"h{level}": level for level in range(1, 7)}


def write_xhtml(root: Element, builder: TextBuilder, labels: Mapping[str, str]) -> None:
    """Write the text of a page; `labels` are the places that begin at elements, by their ids."""
    _Writer(builder, labels).write(root)


_BREAK = "\v"  # a `<br>`: other white space is only space, and XML text cannot hold this character
_MAX_HEADING_LENGTH = 250
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form "
    "header hr html li main nav ol p section summary table tbody td tfoot th thead tr ul".split()
)
_LEFT_OUT = frozenset("annotation annotation-xml desc head rp rt script style template title".split())


class _End(NamedTuple):
    """Stands on the stack where a block ends."""

    name: str


class _Writer:
    def __init__(self, builder: TextBuilder, labels: Mapping[str, str]) -> None:
        self._builder = builder
        self._labels = labels
        self._lines = LineGroups(builder)
        self._run: list[str] = []
        self._begins_item = False

    def write(self, root: Element) -> None:
        stack: list[Element | str | _End] = [root]
        while stack and not self._builder.full:
            item = stack.pop()
            if isinstance(item, str):
                self._run.append(item)
            elif isinstance(item, _End):
                self._end_block()
                self._begins_item = self._begins_item and item.name != "li"
            elif (name := local_name(item.tag)) not in _LEFT_OUT:
                self._place(item.get("id"))
                stack.extend(self._begin(item, name))
        self._end_block()

    def _begin(self, element: Element, name: str) -> list[Element | str | _End]:
        """Begin an element; what it gives is left to be read, last one first."""
        if name in HEADINGS:
            self._end_block()
            self._write_heading(element, HEADINGS[name])
        elif name == "pre":
            self._end_block()
            self._builder.block("".join(element.itertext()))
        elif name == "tr" and len(element) != 1:
            self._end_block()
            self._place_all(element)
            self._lines.row(_text(cell) for cell in element)
        elif name == "br":
            self._run.append(_BREAK)
        elif name == "img":
            self._run.append(f" {element.get('alt', '')} ")
        elif name in _BLOCKS:
            self._end_block()
            self._begins_item = self._begins_item or name == "li"
            if name == "table":
                self._lines.begin()
            return [_End(name), *mixed_content(element)]
        else:
            return list(mixed_content(element))
        return []

    def _write_heading(self, element: Element, level: int) -> None:
        self._place_all(element)
        text = _text(element)
        if len(text) <= _MAX_HEADING_LENGTH:
            self._builder.heading(text, level)
        else:
            self._builder.paragraph(text)

    def _end_block(self) -> None:
        lines = "".join(self._run).split(_BREAK)
        text = "\n".join(line for raw in lines if (line := " ".join(raw.split())))
        self._run.clear()
        if text and self._begins_item:
            self._lines.item(text)
            self._begins_item = False
        else:
            self._builder.paragraph(text)

    def _place_all(self, element: Element) -> None:
        for each in element.iter():
            self._place(each.get("id"))

    def _place(self, name: str | None) -> None:
        if name and name in self._labels:
            self._end_block()
            self._builder.place(self._labels[name])


def _text(element: Element) -> str:
    """All text in an element, on one line."""
    parts: list[str] = []
    stack: list[Element | str] = [element]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif (name := local_name(item.tag)) not in _LEFT_OUT:
            if name in _BLOCKS or name == "br":
                parts.append(" ")
            parts.append(item.get("alt", "") if name == "img" else "")
            stack.extend(mixed_content(item))
    return " ".join("".join(parts).split())
