"""Text of PowerPoint presentations (.pptx, .pptm, .ppsx, .potx)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants, local_name, opened
from findling.sources.documents.containers.zip_packages import Package
from findling.sources.documents.office import ooxml
from findling.sources.extracted import Extracted, Source, TextBuilder, labelled, write_parts
from findling.sources.files.file_text import UnreadableError

_TITLES = frozenset({"title", "ctrTitle"})
_MARGINS = frozenset({"ftr", "hdr", "dt"})
_LEFT_OUT = frozenset({"sldNum", "sldImg"})
_SHAPES = frozenset({"sp", "cxnSp", "pic", "tbl", *ooxml.DRAWING_REFERENCES})
_SLIDE_NAME = re.compile(r"ppt/slides/slide(\d{1,9})\.xml", re.IGNORECASE)


def extract(source: Source) -> Extracted:
    """The text of a presentation, slide by slide with its notes and comments. Raises `UnreadableError`."""
    package = Package(source.data)
    part = ooxml.main_part(package, "ppt/presentation.xml")
    slides = _slide_parts(package, part)
    if not slides:
        root = package.xml(part)
        is_presentation = root is not None and local_name(root.tag) == "presentation"
        raise UnreadableError("no-text" if is_presentation else "damaged", "holds no slides")
    writer = _PptxWriter(package, TextBuilder(source.limit), ooxml.relationships_of(package, part))
    write_parts([partial(writer.write_slide, number, slide) for number, slide in enumerate(slides, 1)])
    writer.write_backgrounds()
    return writer.builder.titled(ooxml.properties_of(package))


def _slide_parts(package: Package, part: str) -> list[str]:
    """The slides in the order of the presentation, or in that of their names when it cannot be read."""
    relationships = ooxml.relationships_of(package, part)
    ids = [ooxml.relationship_id(each) for each in descendants(package.side_xml(part), "sldId")]
    slides = [relationships[each].target for each in ids if each in relationships]
    if any(map(package.has, slides)):
        return slides
    numbered = ((match, name) for name in package.namelist() if (match := _SLIDE_NAME.fullmatch(name)))
    return [name for _, name in sorted((int(match[1]), name) for match, name in numbered)]


class _PptxWriter:
    """State while a presentation is written."""

    def __init__(self, package: Package, builder: TextBuilder, relationships: ooxml.Relationships) -> None:
        self.builder = builder
        self._package = package
        roots = ooxml.related(package, relationships, "commentAuthors", "authors")
        self._authors = {attribute_of(each, "id"): attribute_of(each, "name") for root in roots for each in root}
        self._margins: set[str] = set()
        self._layouts: dict[str, None] = {}

    def write_slide(self, number: int, part: str) -> None:
        """Write a slide with its notes and comments. Raises `UnreadableError`."""
        if self.builder.full:
            return
        root = self._package.xml(part)
        if root is None:
            raise UnreadableError("damaged", f"slide {number} is missing")
        relationships = ooxml.relationships_of(self._package, part)
        self._write_shapes(number, root, relationships)
        self._write_notes(number, relationships)
        self._write_comments(relationships)
        self._layouts.update((to, None) for kind, to in relationships.values() if kind == "slideLayout")

    def write_backgrounds(self) -> None:
        """Write texts that layouts and masters show on every slide, such as a company's name; no placeholders."""
        parts = dict(self._layouts)
        for layout in self._layouts:
            masters = ooxml.relationships_of(self._package, layout).values()
            parts.update((to, None) for kind, to in masters if kind == "slideMaster")
        shapes = (shape for part in parts for shape in _shapes(self._package.side_xml(part)))
        backgrounds = (shape for shape in shapes if _placeholder(shape) is None)
        if lines := dict.fromkeys(line for shape in backgrounds for line in _shape_lines(shape)):
            self.builder.place("")
            self.builder.section("Slide master")
            self.builder.paragraph("\n".join(lines))

    def _write_shapes(self, number: int, root: Element, relationships: ooxml.Relationships) -> None:
        shapes = list(_shapes(root))
        title = next((each for each in shapes if _placeholder(each) in _TITLES and _shape_lines(each)), None)
        self.builder.page(f"slide {number}", "" if title is None else " ".join(_shape_lines(title)))
        for shape in shapes:
            if shape is not title:
                self._write_shape(shape, relationships)

    def _write_shape(self, shape: Element, relationships: ooxml.Relationships) -> None:
        name, kind = local_name(shape.tag), _placeholder(shape)
        if name == "pic":
            self.builder.paragraph("\n".join(map(ooxml.described, descendants(shape, "cNvPr"))))
        elif name == "tbl":
            self.builder.paragraph("\n".join(" ".join(line.split()) for line in ooxml.table_lines(shape)))
        elif name in ooxml.DRAWING_REFERENCES:
            self.builder.paragraph("\n".join(ooxml.referenced_lines(shape, self._package, relationships)))
        elif kind not in _LEFT_OUT:
            text = "\n".join(_shape_lines(shape))
            if kind not in _MARGINS:
                self.builder.paragraph(text)
            elif text not in self._margins:  # footers and dates are the same on most slides
                self.builder.paragraph(text)
                self._margins.add(text)

    def _write_notes(self, number: int, relationships: ooxml.Relationships) -> None:
        for root in ooxml.related(self._package, relationships, "notesSlide"):
            shapes = [shape for shape in _shapes(root) if _placeholder(shape) not in _LEFT_OUT | _MARGINS]
            if text := "\n".join(line for shape in shapes for line in _shape_lines(shape)):
                self.builder.place(f"slide {number} notes")
                self.builder.paragraph(text)

    def _write_comments(self, relationships: ooxml.Relationships) -> None:
        """Write the comments: those of old hold their text, newer ones a text frame."""
        for root in ooxml.related(self._package, relationships, "comments"):
            for comment in root.iter():
                if local_name(comment.tag) in ("cm", "reply"):
                    texts = [child.text or "" for child in comment if local_name(child.tag) == "text"]
                    author = self._authors.get(attribute_of(comment, "authorId"), "")
                    self.builder.paragraph(labelled(author, "\n".join([*texts, *_shape_lines(comment)])))


def _shapes(root: Element) -> Iterator[Element]:
    """Shapes with text, tables, charts and diagrams, in the order in which they are drawn; groups are opened."""
    return opened([root], lambda each: None if local_name(each.tag) in _SHAPES else ooxml.children_of(each))


def _placeholder(shape: Element) -> str | None:
    """The type of the placeholder that a shape fills; `None` when it fills none."""
    for element in shape.iter():
        if local_name(element.tag) == "txBody":
            return None
        if local_name(element.tag) == "ph":
            return attribute_of(element, "type") or "obj"
    return None


def _shape_lines(shape: Element) -> list[str]:
    return [line for child in shape if local_name(child.tag) == "txBody" for line in ooxml.frame_lines(child)]
