"""Which paragraph styles of a Word document make headings and list items."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.extraction.xml_tree import attribute_of, child_of, local_name, number_of

__all__ = ["ParagraphStyle", "is_numbered", "outline_level", "read_styles", "style_of_id"]


class ParagraphStyle(NamedTuple):
    """`level` is that of a heading, counted from 1, or 0 for anything else."""

    level: int = 0
    is_list: bool = False


def read_styles(root: Element | None) -> dict[str, ParagraphStyle]:
    """The paragraph styles by id, with what they inherit."""
    elements = () if root is None else root
    styles = {attribute_of(element, "styleId"): element for element in elements if local_name(element.tag) == "style"}
    return {name: _resolved(name, styles) for name in styles}


def style_of_id(name: str) -> ParagraphStyle:
    """The best guess for a style that the document does not define: the ids of built-in styles are their names."""
    return ParagraphStyle(_level_of_name(name))


def outline_level(properties: Element | None) -> int | None:
    """The heading level in a `pPr`: 0 for body text, `None` when it says nothing."""
    element = child_of(properties, "outlineLvl")
    value = None if element is None else number_of(element, "val")
    if value is None:
        return None
    return value + 1 if value < _BODY_TEXT else 0


def is_numbered(properties: Element | None) -> bool | None:
    """Whether a `pPr` makes its paragraph an item of a list; `None` when it says nothing."""
    number = child_of(child_of(properties, "numPr"), "numId")
    return None if number is None else attribute_of(number, "val") != "0"


_BODY_TEXT = 9
_HEADING_NAME = re.compile(r"heading ?([1-9])")


def _level_of_name(name: str) -> int:
    name = name.strip().lower()
    match = _HEADING_NAME.fullmatch(name)
    return int(match[1]) if match else int(name == "title")


def _resolved(name: str, styles: dict[str, Element]) -> ParagraphStyle:
    level: int | None = None
    is_list: bool | None = None
    seen: set[str] = set()
    while name in styles and name not in seen and level is None:
        seen.add(name)
        style = styles[name]
        properties = child_of(style, "pPr")
        is_list = is_numbered(properties) if is_list is None else is_list
        level = outline_level(properties)
        if level is None:
            level = max(_level_of_name(name), _level_of_name(_value(style, "name"))) or None
        name = _value(style, "basedOn")
    return ParagraphStyle(level or 0, bool(is_list))


def _value(element: Element, name: str) -> str:
    child = child_of(element, name)
    return "" if child is None else attribute_of(child, "val")
