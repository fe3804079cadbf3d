"""XML of documents as a tree: parsing it safely, and finding elements and attributes whatever their namespace."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from findling.sources.files.file_text import UnreadableError

# Expat reads UTF-16 and encodings that agree with ASCII, so a declaration looks like one of these.
_ENTITY_MARKS = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
# An encoding may not exist (LookupError), or expat cannot read it (ValueError).
_XML_ERRORS = (ElementTree.ParseError, expat.ExpatError, LookupError, ValueError)
_FORBIDDEN_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]|d[89a-f]..));", re.IGNORECASE
)
_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
_FORBIDDEN_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))


def parse_xml(data: bytes) -> Element:
    """The root of an XML document without entities of its own. Raises `UnreadableError`.

    Characters that XML forbids are left out: many producers write control characters that users pasted.
    """
    data = data.lstrip(b" \t\r\n")
    try:
        if any(mark in data for mark in _ENTITY_MARKS):
            _refuse_entities(data)
        try:
            return ElementTree.fromstring(data)
        except ElementTree.ParseError:
            repaired = _without_forbidden_characters(data)
            if repaired == data:
                raise
            return ElementTree.fromstring(repaired)
    except _XML_ERRORS as error:
        raise UnreadableError("damaged", f"malformed XML: {error}") from error


@lru_cache(maxsize=4096)  # asked for every element, of a few names
def local_name(tag: str) -> str:
    """`p` for `{http://…}p`: producers use several namespaces for the same thing."""
    return tag[tag.rfind("}") + 1 :]


def attribute_of(element: Element | None, name: str) -> str:
    """The attribute of that local name, in any namespace; empty when there is none."""
    if element is None:
        return ""
    value = element.get(name)
    if value is not None:
        return value
    ending = "}" + name
    return next((value for key, value in element.attrib.items() if key.endswith(ending)), "")


def number_of(element: Element | None, name: str) -> int | None:
    """The attribute of that local name as a number below a billion; `None` when it is no such number."""
    value = attribute_of(element, name)
    return int(value) if value.isdecimal() and len(value) < len("1000000000") else None


def child_of(element: Element | None, name: str) -> Element | None:
    """The first child of that local name; `None` when there is none."""
    return next((child for child in element if local_name(child.tag) == name), None) if element is not None else None


def descendants(element: Element, name: str) -> Iterator[Element]:
    """The elements of that local name, in the order of the document; the element itself may be one of them."""
    return (each for each in element.iter() if local_name(each.tag) == name)


def opened(stack: list[Element], inside: Callable[[Element], list[Element] | None]) -> Iterator[Element]:
    """The elements on a stack in order; instead of one that `inside` opens comes what is in it, last one first."""
    while stack:
        element = stack.pop()
        inner = inside(element)
        if inner is None:
            yield element
        else:
            stack.extend(inner)


def mixed_content(element: Element) -> list[Element | str]:
    """The texts and elements in an element, the last one first, as a stack takes them."""
    items: list[Element | str] = []
    for child in reversed(element):
        items.extend((child.tail, child) if child.tail else (child,))
    return [*items, element.text] if element.text else items


def _refuse_entities(data: bytes) -> None:
    def refuse(*_: object) -> None:
        raise UnreadableError("damaged", "declares XML entities")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    parser.Parse(data, True)


def _without_forbidden_characters(data: bytes) -> bytes:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data
    data = _FORBIDDEN_REFERENCE.sub(b"", data).translate(None, _FORBIDDEN_BYTES)
    declaration = _ENCODING.match(data)
    if declaration and declaration[1].lower() not in (b"utf-8", b"utf8"):
        return data
    return data.decode("utf-8", "replace").encode()
