"""Single documents: what one says, and what it has to do with others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.ports import ReadStore
from findling.domain.resources import MADE_BY_MODELS, Chunk, Document, Resource
from findling.domain.results import SCHEMA_VERSION
from findling.domain.values import read_json
from findling.pipelines.answer.rankings import line_span
from findling.pipelines.answer.versions import predecessors, replaced_by, successors
from findling.pipelines.lookup.document_names import find_document
from findling.pipelines.retrieve.legs import Retrievers
from findling.text.analysis.lines import LineIndex


@dataclass(frozen=True, kw_only=True)
class LinkedResource:
    """Another resource that one links to, and how."""

    rid: str
    type: str
    title: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class FetchedDocument:
    """A resource with its text, or a part of that.

    `line_start` and `line_end` are the lines of the file that the text comes from, 0 in files without lines; `place` is
    its page, sheet, slide or message instead. `is_whole` says that it is all of the text. `start` is the character of
    the whole text that `text` begins at, and `passage` the part of `text` (start, end in characters) that was asked
    for, without the lines around it. `links` are those to resources that are there; `supersedes` and `superseded_by`
    are the ids of what this resource replaces, and of what replaces it, nearest first.
    """

    rid: str
    type: str
    title: str
    path: str
    author: str
    lang: str
    tags: tuple[str, ...]
    created_at: float | None
    updated_at: float | None
    fields: Mapping[str, str] = field(default_factory=dict)
    links: tuple[LinkedResource, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()
    line_start: int
    line_end: int
    place: str = ""
    text: str
    is_whole: bool
    start: int = 0
    passage: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain JSON-ready values, with the schema version first."""
        return {"schema": SCHEMA_VERSION, **asdict(self)}


def fetch(legs: Retrievers, name: str, *, context: int = 0, below: str = "") -> FetchedDocument:
    """The text of a resource, or a passage of it with `context` lines before and after.

    `name` is the id of a hit or a resource, or a path, also with a line as in `notes.md:12`; a path may be given from
    the folder `below` the root. Raises NotFoundError when there is no such thing in the index, InvalidValueError when
    there is no such line, a shortened id fits several, or `context` is below 0.
    """
    if context < 0:
        raise InvalidValueError(f"context {context} must not be negative")
    document, cids = find_document(legs.store, name, below)
    resource = document.resource
    part = _part(document, name, set(cids), context)
    own: dict[str, Any] = {name: getattr(resource, name) for name in _SHOWN}
    return FetchedDocument(
        **own,
        fields={key: value for key, value in resource.fields.items() if key not in _TOLD_OTHERWISE},
        links=tuple(_links(resource, legs.store)),
        supersedes=predecessors(legs.store, resource),
        superseded_by=successors(resource.rid, replaced_by(legs.store, [resource.rid])),
        heading=part.heading,
        line_start=part.line_start,
        line_end=part.line_end,
        place=part.place,
        text=document.text[part.start : part.end],
        is_whole=part.end - part.start == len(document.text),
        start=part.start,
        passage=(part.passage[0] - part.start, min(part.passage[1], part.end) - part.start),
    )


def passages(legs: Retrievers, ids: Sequence[str]) -> dict[str, str]:
    """The texts of chunks by the ids of their hits; unlike `fetch`, it reads nothing else of their documents."""
    stored = legs.store.chunks([int(one, 16) for one in ids])
    return {f"{cid:016x}": one.text for cid, one in stored.items()}


_SHOWN = ("rid", "type", "title", "path", "author", "lang", "tags", "created_at", "updated_at")
_TOLD_OTHERWISE = frozenset({"apart", "links", "messages", "supersedes", "verdicts", "versions", *MADE_BY_MODELS})
"""Fields whose content an answer tells in another way, or that only say where in the text something is."""


class _Part(NamedTuple):
    """The part of a text from `start` to `end`, where it is, and the `passage` in the text that it is shown for."""

    start: int
    end: int
    passage: tuple[int, int]
    line_start: int
    line_end: int
    place: str = ""
    heading: tuple[str, ...] = ()


def _part(document: Document, name: str, cids: Collection[int], context: int) -> _Part:
    """The part of a document that a name means: all of it, some chunks, or a line between chunks."""
    index = LineIndex(document.text)
    line = _line_in(name, document.resource)
    chunks = [chunk for chunk in document.chunks if chunk.cid in cids]
    if line is None and len(chunks) == len(document.chunks):
        first, last = _lines(document.chunks, 1, index.line_of(max(len(document.text) - 1, 0)))
        return _Part(0, len(document.text), (0, len(document.text)), first, last)
    if line is not None:
        chunks = [chunk for chunk in document.chunks if _has_line(chunk, line)]
    if chunks:
        start, end = chunks[0].start, max(chunk.end for chunk in chunks)
    else:
        start, end = _bare_line(document, index, line or 0)
    passage = start, end
    if context:
        top = max(index.line_of(start) - context, 1)
        bottom = min(index.line_of(max(end - 1, start)) + context, len(index))
        start, end = index.line_span(top)[0], index.line_span(bottom)[1]
    shown = [chunk for chunk in document.chunks if chunk.start < end and chunk.end > start]
    first, last = _lines(shown, index.line_of(start), index.line_of(max(end - 1, start)))
    place = chunks[0].places[0].label if chunks and chunks[0].places else ""
    return _Part(start, end, passage, first, last, place, chunks[0].heading if chunks else ())


def _line_in(name: str, resource: Resource) -> int | None:
    """The line that a name ends in, unless that is a part of the id."""
    before, _, line = name.rpartition(":")
    return int(line) if before and line.isdecimal() and not resource.rid.startswith(name) else None


def _has_line(chunk: Chunk, line: int) -> bool:
    first, last = line_span(chunk)
    return first <= line <= last


def _bare_line(document: Document, index: LineIndex, line: int) -> tuple[int, int]:
    """A line that lies between chunks, such as a blank one. Raises InvalidValueError when there is no such line."""
    if any(chunk.places for chunk in document.chunks) or not 1 <= line <= len(index):
        name = document.resource.path if document.resource.type == "file" else document.resource.rid
        raise InvalidValueError(f"{name} has no line {line}", hint=f"findling fetch {name}")
    return index.line_span(line)


def _lines(chunks: Sequence[Chunk], first: int, last: int) -> tuple[int, int]:
    """The lines of the file, which are those of the text unless the chunks say otherwise."""
    spans = [line_span(chunk) for chunk in chunks if chunk.places]
    return (min(top for top, _ in spans), max(bottom for _, bottom in spans)) if spans else (first, last)


def _links(resource: Resource, store: ReadStore) -> Iterator[LinkedResource]:
    """The links of a resource to what is there, for the caller's eyes; a field that holds no links has none."""
    try:
        entries = read_json(resource.fields.get("links", "[]"))
    except ValueError:
        return
    for entry in entries if isinstance(entries, list) else ():
        target = entry.get("to") if isinstance(entry, dict) else None
        document = store.document(target) if isinstance(target, str) else None
        if document is not None:
            kind, note = str(entry.get("type") or ""), str(entry.get("note") or "")
            yield LinkedResource(rid=document.resource.rid, type=kind, title=document.resource.title, note=note)
