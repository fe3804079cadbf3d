"""XML as a stream of elements with their lines, by expat; from an error on, by patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from xml.parsers import expat

from findling.sources.files.file_text import UnreadableError

# Elements that end a word wherever they stand: breaks, paragraphs, cells, notes.
_APART = frozenset(
    "blockquote br caption cb dd div dl dt fn footnote h1 h2 h3 h4 h5 h6 hr item lb li list note ol p para pb pre row"
    " section table tab tbody td th tr ul".split()
)
_MAX_GROWTH = 1 << 20
_MAX_AROUND = 50
_REFERENCE = re.compile(r"[&%][^\s#;]+;")
_WORD = re.compile(r"\w")
_TOKEN = re.compile(r"<(?:!--|!\[CDATA\[|[!?][^<>]*>|(/?)([A-Za-z_][^\s<>/]*)([^<>]*)>)|-->|\]\]>")
_ATTRIBUTE = re.compile(r"""([A-Za-z_][\w:.-]*)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>=]+))""")


class StopReadingError(Exception):
    """Raised by a receiver that wants no more elements."""


@dataclass(slots=True)
class Element:
    """An element, named without its namespace, or a comment, without a name; its text includes inline elements.

    `line` is where its text begins, or its tag while it has none.
    """

    name: str
    attributes: Mapping[str, str]
    line: int
    parts: list[str] = field(default_factory=list)
    has_words: bool = False

    @property
    def text(self) -> str:
        """Its own text, in one line."""
        return " ".join("".join(self.parts).split())


Receiver = Callable[[Element, Sequence[Element]], None]
"""Takes an element that has text or attributes, and the nearest elements around it, the outermost first."""


def read_elements(document: str, receive: Receiver) -> None:
    """Hand over the elements of a document in order; a broken tag does not end it.

    Raises `UnreadableError` when entities make the document longer than any honest file would be.
    """
    data = document.encode("utf-8", "replace")
    stream = _Stream(receive, len(data) + _MAX_GROWTH)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def on_entity(name: str, is_parameter: bool) -> None:
        if not is_parameter:
            stream.text(unescape(f"&{name};"), parser.CurrentLineNumber)

    parser.StartElementHandler = lambda name, attributes: stream.start(name, attributes, parser.CurrentLineNumber)
    parser.EndElementHandler = lambda name: stream.end()
    parser.CharacterDataHandler = lambda text: stream.text(text, parser.CurrentLineNumber)
    parser.CommentHandler = lambda text: stream.comment(text, parser.CurrentLineNumber)
    parser.SkippedEntityHandler = on_entity
    parser.EntityDeclHandler = _check_entity
    with suppress(StopReadingError):
        try:
            parser.Parse(data, True)
        except expat.ExpatError:
            parser.buffer_text = False  # which hands over the text before the error
            _read_broken(data, parser.ErrorByteIndex, stream)
        stream.finish()


def _check_entity(name: str, is_parameter: bool, value: str | None, *_: object) -> None:
    if value and _REFERENCE.search(value):
        raise UnreadableError("damaged", f"the entity {name[:40]} is made of other entities")


def _read_broken(data: bytes, position: int, stream: _Stream) -> None:
    """Read on from an error, taking tags as they come."""
    tag = data.rfind(b"<", 0, position)
    if tag >= 0 and b">" not in data[tag:position]:
        position = tag
    line = data.count(b"\n", 0, position) + 1
    rest = data[position:].decode("utf-8", "ignore")
    last_comment_end = rest.rfind("-->")
    in_comment = False
    end = 0
    for token in _TOKEN.finditer(rest):
        between = rest[end : token.start()]
        line += between.count("\n")
        if in_comment:
            stream.comment(between, line)
        elif between:
            stream.text(unescape(between), line)
        end = token.end()
        if token[0] == "<!--":
            in_comment = token.start() < last_comment_end
        elif token[0] == "-->":
            in_comment = False
        elif token[2] and not in_comment:
            _tag(token[1], token[2], token[3], line, stream)
        line += token[0].count("\n")
    if not in_comment:
        stream.text(unescape(rest[end:]), line + rest.count("\n", end))


def _tag(closing: str, name: str, attributes: str, line: int, stream: _Stream) -> None:
    if closing:
        stream.end(name)
        return
    values = {found[1]: unescape(found[2] or found[3] or found[4] or "") for found in _ATTRIBUTE.finditer(attributes)}
    stream.start(name, values, line)
    if attributes.endswith("/"):
        stream.end(name)


class _Stream:
    """The open elements, and one that waits: text after it makes it part of a sentence around it."""

    def __init__(self, receive: Receiver, text_limit: int) -> None:
        self._receive = receive
        self._text_left = text_limit
        self._open: list[Element] = []
        self._inline: list[bool] = []
        self._waiting: Element | None = None

    def start(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        current = self._open[-1] if self._open else None
        if current and current.has_words:
            is_apart = name.rpartition(":")[2].lower() in _APART
            # One in another that is no paragraph is not a word in a sentence, so no part of a word either.
            if is_apart or (self._inline and not self._inline[-1]):
                current.parts.append(" ")
            self._inline.append(is_apart)
            return
        self._hand_over_waiting()
        if current and current.attributes:
            self._receive(current, self._open[-_MAX_AROUND - 1 : -1])
            current.attributes = {}
        self._open.append(Element(name.rpartition(":")[2], attributes, line))

    def end(self, name: str = "") -> None:
        """End the innermost element; in broken XML, also those around it up to the one that is named."""
        if self._inline:
            if self._inline.pop():
                self._open[-1].parts.append(" ")
            return
        local_name = name.rpartition(":")[2]
        ends_other = any(element.name == local_name for element in self._open[-_MAX_AROUND:])
        while self._open:
            self._hand_over_waiting()
            element = self._open.pop()
            if element.has_words and not element.attributes:
                self._waiting = element
            elif element.parts or element.attributes:
                self._receive(element, self._open[-_MAX_AROUND:])
            if not ends_other or element.name == local_name:
                return

    def text(self, text: str, last_line: int) -> None:
        """Take text that ends in the line."""
        self._text_left -= len(text)
        if self._text_left < 0:
            raise UnreadableError("damaged", "its entities unpack to far more than the file")
        if not self._open:
            self._open.append(Element("", {}, last_line))  # broken XML may lack an element around
        current = self._open[-1]
        if not current.has_words:
            if not text or text.isspace():
                if self._waiting:
                    self._waiting.parts.append(text)
                return
            if not current.parts:
                current.line = last_line - text.lstrip().count("\n")
            if self._waiting:
                current.line = min(current.line, self._waiting.line)
                current.parts += self._waiting.parts
                self._waiting = None
            current.has_words = _WORD.search(text) is not None
        current.parts.append(text)

    def comment(self, text: str, line: int) -> None:
        if not text.isspace():
            if not self._open or not self._open[-1].has_words:
                self._hand_over_waiting()
            self._receive(Element("", {}, line, [text]), self._open[-_MAX_AROUND:])

    def finish(self) -> None:
        """Hand over what has not ended."""
        self._inline.clear()
        while self._open:
            self.end()
        self._hand_over_waiting()

    def _hand_over_waiting(self) -> None:
        if self._waiting:
            self._receive(self._waiting, self._open[-_MAX_AROUND:])
            self._waiting = None
