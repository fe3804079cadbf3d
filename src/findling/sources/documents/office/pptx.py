"""Text of PowerPoint presentations (.pptx, .pptm, .ppsx, .potx)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants, local_name
from findling.sources.documents.containers.zip_packages import has_member, open_zip, read_side_xml, read_xml
from findling.sources.documents.extracted import Extracted, Source, TextBuilder, finished
from findling.sources.documents.office.ooxml import (
    DRAWING_REFERENCES,
    Relationship,
    chosen_alternative,
    described,
    frame_lines,
    main_part,
    properties_of,
    referenced_lines,
    relationship_id,
    relationships_of,
    table_lines,
)
from findling.sources.files.file_text import UnreadableError

__all__ = ["extract"]


def extract(source: Source) -> Extracted:
    """The text of a presentation, slide by slide with its notes and comments. Raises `UnreadableError`."""
    archive = open_zip(source.data)
    part = main_part(archive, "ppt/presentation.xml")
    slides = _slide_parts(archive, part)
    if not slides:
        raise UnreadableError("damaged" if _is_no_presentation(archive, part) else "no-text", "holds no slides")
    presentation = _Presentation(archive, TextBuilder(source.limit), _comment_authors(archive, part))
    outcomes = [_try_slide(presentation, number, slide) for number, slide in enumerate(slides, 1)]
    failures = [outcome for outcome in outcomes if outcome is not None]
    if len(failures) == len(slides):
        raise failures[0]
    _write_backgrounds(presentation)
    return finished(presentation.builder, properties_of(archive))


_TITLES = frozenset({"title", "ctrTitle"})
_MARGINS = frozenset({"ftr", "hdr", "dt"})
_LEFT_OUT = frozenset({"sldNum", "sldImg"})
_SLIDE_NAME = re.compile(r"ppt/slides/slide(\d{1,9})\.xml", re.IGNORECASE)


@dataclass
class _Presentation:
    """State while a presentation is written; `margins` are the footers and dates seen so far."""

    archive: zipfile.ZipFile
    builder: TextBuilder
    authors: Mapping[str, str]
    margins: set[str] = field(default_factory=set)
    backgrounds: dict[str, None] = field(default_factory=dict)


def _slide_parts(archive: zipfile.ZipFile, part: str) -> list[str]:
    """The slides in the order of the presentation, or in that of their names when it cannot be read."""
    root = read_side_xml(archive, part)
    relationships = relationships_of(archive, part)
    ids = [] if root is None else [relationship_id(each) for each in descendants(root, "sldId")]
    slides = [relationships[each].target for each in ids if each in relationships]
    if any(has_member(archive, slide) for slide in slides):
        return slides
    numbered = ((match, name) for name in archive.namelist() if (match := _SLIDE_NAME.fullmatch(name)))
    return [name for _, name in sorted((int(match[1]), name) for match, name in numbered)]


def _is_no_presentation(archive: zipfile.ZipFile, part: str) -> bool:
    root = read_xml(archive, part)
    return root is None or local_name(root.tag) != "presentation"


def _try_slide(presentation: _Presentation, number: int, part: str) -> UnreadableError | None:
    """Write a slide; one that is broken does not keep the others from being read."""
    if presentation.builder.full:
        return None
    try:
        root = read_xml(presentation.archive, part)
    except UnreadableError as error:
        return error
    if root is None:
        return UnreadableError("damaged", f"slide {number} is missing")
    relationships = relationships_of(presentation.archive, part)
    presentation.builder.place(f"slide {number}")
    _write_slide(presentation, number, root, relationships)
    _write_notes(presentation, number, relationships)
    _write_comments(presentation, relationships)
    layouts = (each.target for each in relationships.values() if each.kind == "slideLayout")
    presentation.backgrounds.update(dict.fromkeys(layouts))
    return None


def _write_slide(
    presentation: _Presentation, number: int, root: Element, relationships: Mapping[str, Relationship]
) -> None:
    shapes = list(_shapes(root))
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES and _shape_lines(shape)]
    if titles:
        presentation.builder.heading(" ".join(_shape_lines(titles[0])))
    else:
        presentation.builder.section(f"Slide {number}")  # or it would belong to the slide before
    for shape in shapes:
        if shape not in titles[:1]:
            _write_shape(presentation, shape, relationships)


def _write_shape(presentation: _Presentation, shape: Element, relationships: Mapping[str, Relationship]) -> None:
    name, kind = local_name(shape.tag), _placeholder(shape)
    if name == "pic":
        presentation.builder.paragraph("\n".join(map(described, descendants(shape, "cNvPr"))))
    elif name == "tbl":
        presentation.builder.paragraph("\n".join(" ".join(line.split()) for line in table_lines(shape)))
    elif name in DRAWING_REFERENCES:
        lines = referenced_lines(shape, presentation.archive, relationships)
        presentation.builder.paragraph("\n".join(lines))
    elif kind not in _LEFT_OUT:
        text = "\n".join(_shape_lines(shape))
        if kind not in _MARGINS or text not in presentation.margins:
            presentation.builder.paragraph(text)
        if kind in _MARGINS:
            presentation.margins.add(text)


def _write_notes(presentation: _Presentation, number: int, relationships: Mapping[str, Relationship]) -> None:
    for root in _related(presentation.archive, relationships, "notesSlide"):
        shapes = [shape for shape in _shapes(root) if _placeholder(shape) not in _LEFT_OUT | _MARGINS]
        text = "\n".join(line for shape in shapes for line in _shape_lines(shape))
        if text:
            presentation.builder.place(f"slide {number} notes")
            presentation.builder.paragraph(text)


def _write_comments(presentation: _Presentation, relationships: Mapping[str, Relationship]) -> None:
    for root in _related(presentation.archive, relationships, "comments"):
        for comment in root.iter():
            if local_name(comment.tag) in ("cm", "reply"):
                author = presentation.authors.get(attribute_of(comment, "authorId"), "")
                text = "\n".join(_comment_lines(comment))
                presentation.builder.paragraph(f"{author}: {text}" if author and text else text)


def _comment_lines(comment: Element) -> list[str]:
    """Comments of old hold their text, newer ones a text frame."""
    lines: list[str] = []
    for child in comment:
        if local_name(child.tag) == "text":
            lines.append(child.text or "")
        elif local_name(child.tag) == "txBody":
            lines.extend(frame_lines(child))
    return lines


def _write_backgrounds(presentation: _Presentation) -> None:
    """Texts that layouts and masters show on every slide, such as a company's name, without placeholders."""
    parts = presentation.backgrounds
    for layout in list(parts):
        masters = relationships_of(presentation.archive, layout).values()
        parts.update(dict.fromkeys(each.target for each in masters if each.kind == "slideMaster"))
    roots = [root for part in parts if (root := read_side_xml(presentation.archive, part)) is not None]
    shapes = (shape for root in roots for shape in _shapes(root) if _placeholder(shape) is None)
    lines = dict.fromkeys(line for shape in shapes for line in _shape_lines(shape))
    if lines:
        presentation.builder.place("")
        presentation.builder.section("Slide master")
        presentation.builder.paragraph("\n".join(lines))


def _shapes(root: Element) -> Iterator[Element]:
    """Shapes with text, tables, charts and diagrams, in the order in which they are drawn; groups are opened."""
    stack = [root]
    while stack:
        element = stack.pop()
        name = local_name(element.tag)
        if name in _SHAPES:
            yield element
        elif name == "AlternateContent":
            chosen = chosen_alternative(element)
            stack.extend(() if chosen is None else (chosen,))
        else:
            stack.extend(reversed(element))


_SHAPES = frozenset({"sp", "cxnSp", "pic", "tbl", *DRAWING_REFERENCES})


def _placeholder(shape: Element) -> str | None:
    """The type of the placeholder that a shape fills; `None` when it fills none."""
    for element in shape.iter():
        if local_name(element.tag) == "txBody":
            return None
        if local_name(element.tag) == "ph":
            return attribute_of(element, "type") or "obj"
    return None


def _shape_lines(shape: Element) -> list[str]:
    return [line for child in shape if local_name(child.tag) == "txBody" for line in frame_lines(child)]


def _comment_authors(archive: zipfile.ZipFile, part: str) -> dict[str, str]:
    relationships = relationships_of(archive, part)
    roots = [*_related(archive, relationships, "commentAuthors"), *_related(archive, relationships, "authors")]
    authors = (element for root in roots for element in root)
    return {attribute_of(author, "id"): attribute_of(author, "name") for author in authors}


def _related(archive: zipfile.ZipFile, relationships: Mapping[str, Relationship], kind: str) -> list[Element]:
    parts = (each.target for each in relationships.values() if each.kind == kind)
    return [root for part in parts if (root := read_side_xml(archive, part)) is not None]
