"""From a resource and its text to a document: chunks with stable ids and exact places."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any

from findling.core import native
from findling.domain.resources import Chunk, Document, Piece, Place, Resource
from findling.sources.extracted import Extracted
from findling.text.analysis.lines import line_numbers
from findling.text.analysis.prose_languages import languages_of
from findling.text.chunking.chunk_plan import HEADED, ChunkPlan, context_title, in_context
from findling.text.chunking.chunker import chunk_outline, chunk_text
from findling.text.chunking.outlines import Outline

_BATCH = 500
_ID_BITS = (1 << 63) - 1
_REPEAT = 0x9E3779B97F4A7C15  # an odd constant that spreads the ids of equal chunks within one resource


def make_document(resource: Resource, content: Extracted, *, plan: ChunkPlan) -> Document:
    """Cut the text into chunks and give each its id; the first heading is the title of a resource that has none."""
    text = content.text
    if content.lang:
        pieces = chunk_text(text, content.lang, plan)
    else:
        pieces = chunk_outline(text, Outline(list(content.headings), list(content.blocks)), plan)
    if not resource.title and content.lang in HEADED:
        title = next((piece.heading[0] for piece in pieces if piece.heading), "")
        resource = replace(resource, title=title) if title else resource
    if languages := languages_of(resource.lang, resource.fields.get("language", ""), text):
        resource = replace(resource, fields={**resource.fields, "language": languages})
    chunks = _chunks(resource, text, pieces)
    if content.places or not content.lang:
        chunks = _placed(chunks, content.places)
    return Document(resource, text, tuple(chunks))


def text_documents(items: Iterable[tuple[Resource, str]], plan: ChunkPlan) -> Iterator[list[Document]]:
    """Documents of resources with a text, or else a title, in batches for one transaction each."""
    documents = (
        make_document(resource, Extracted(text=text or resource.title, lang=resource.lang or "text"), plan=plan)
        for resource, text in items
    )
    while batch := list(islice(documents, _BATCH)):
        yield batch


def with_own_ids(document: Document) -> Document:
    """The document with ids, digests and lines of its chunks computed again from its text; their places stay."""
    resource, text, chunks = document.resource, document.text, document.chunks
    made = _chunks(resource, text, [Piece(chunk.start, chunk.end, chunk.heading) for chunk in chunks])
    placed = [own._replace(places=chunk.places) for own, chunk in zip(made, chunks, strict=True)]
    if "situated" in resource.fields:
        from findling.pipelines.indexing.situated import digested

        return digested(document._replace(chunks=tuple(placed)))
    return document._replace(chunks=tuple(placed))


def _chunks(resource: Resource, text: str, pieces: Sequence[Piece]) -> list[Chunk]:
    is_counted = native is not None and text.isascii() and "\r" not in text
    lines = None if is_counted else line_numbers(text, _ends(pieces))
    given = text, list(pieces), lines, context_title(resource), _hash(_encoded(resource.rid), b"resource"), _REPEAT
    rows = _rows(*given) if native is None else native.chunk_rows(*given)
    # Not `Chunk(*row)`, which is a call of Python code for each of them.
    return list(map(partial(tuple.__new__, Chunk), rows))


def _ends(pieces: Iterable[Piece]) -> list[int]:
    """The places of the first and the last character of each piece."""
    return [offset for start, end, _ in pieces for offset in (start, max(start, end - 1))]


def _rows(
    text: str, pieces: list[Piece], lines: list[int] | None, title: str, resource_bits: int, repeat: int
) -> list[tuple[Any, ...]]:
    """The values of a chunk for each piece. Three hashes make an id: an edit elsewhere changes none of them."""
    lines = line_numbers(text, _ends(pieces)) if lines is None else lines
    seen: dict[int, int] = {}
    rows = []
    for ordinal, (start, end, heading) in enumerate(pieces):
        own = text[start:end]
        bits = _hash(_encoded(own), b"text") ^ _hash(_encoded("\x1f".join(heading)), b"heading") ^ resource_bits
        times = seen.get(bits, 0)
        seen[bits] = times + 1
        digest = blake2b(_encoded(in_context(title, heading, own)), digest_size=16).digest()
        first, last = lines[2 * ordinal : 2 * ordinal + 2]
        rows.append(((bits + times * repeat) & _ID_BITS, digest, ordinal, start, end, first, last, heading, ()))
    return rows


def _placed(chunks: Sequence[Chunk], places: Sequence[Place]) -> list[Chunk]:
    """The chunks with the places of their text; a place that begins before a chunk is moved to its start."""
    places = places if places and places[0].start == 0 else [Place(0), *places]
    starts = [place.start for place in places]
    placed = []
    for chunk in chunks:
        first, last = bisect_right(starts, chunk.start) - 1, bisect_left(starts, chunk.end)
        own = [place._replace(start=max(place.start, chunk.start)) for place in places[first:last]]
        placed.append(chunk._replace(places=tuple(own)))
    return placed


def _hash(data: bytes, purpose: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8, person=purpose).digest(), "big")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
