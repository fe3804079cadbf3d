"""What a keyword leg keeps: the fields of its index, and the entries that documents become."""

from __future__ import annotations

from collections.abc import Iterator

import tantivy

from findling.domain.plans import FIELDS
from findling.domain.resources import Document, Resource
from findling.stores.keyword.filter_clauses import scope_tokens
from findling.stores.keyword.scoring import PAD, padding
from findling.text.analysis.analysis import chunk_terms, index_form

__all__ = ["LAYOUT", "chunk_entries", "page_entry", "schema"]

LAYOUT = 4
"""Raised when the fields below or their values change; an index of another layout is made anew."""


_MOST_CHUNKS = 1 << 24
"""More than any document has: the `turn` of an entry tells resources in the order of their numbers, then chunks."""


def schema() -> tantivy.Schema:
    """The fields of an entry."""
    builder = tantivy.SchemaBuilder()
    # Terms come ready-made from `index_form`; tantivy only has to split them at the spaces.
    for name in FIELDS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    for name in ("author", "scope"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("cid", indexed=True, fast=True)
    builder.add_unsigned_field("turn", fast=True)
    builder.add_integer_field("updated", indexed=True, fast=True)
    return builder.build()


def chunk_entries(document: Document, added: frozenset[int], number: int) -> Iterator[tantivy.Document]:
    """One entry for each chunk of the document that was added; `number` is that of the resource."""
    common = _common_fields(document.resource)
    for position, chunk in enumerate(document.chunks):
        if chunk.cid in added:
            terms = document.terms[position] if document.terms else chunk_terms(document.text, chunk)
            body = _padded(terms.body, document.text[chunk.start : chunk.end])
            texts = [("body", body), ("heading", terms.heading), *common]
            yield _entry(document.resource, chunk.cid, number * _MOST_CHUNKS + position, texts)


def page_entry(document: Document, number: int) -> tantivy.Document:
    """One entry for the document as a whole, under the id of its first chunk; `number` is that of the resource."""
    headings = dict.fromkeys(heading for chunk in document.chunks for heading in chunk.heading)
    body = _padded(index_form(document.text), document.text)
    texts = [("body", body), ("heading", index_form("\n".join(headings)))]
    texts += _common_fields(document.resource)
    return _entry(document.resource, document.chunks[0].cid, number * _MOST_CHUNKS, texts)


def _padded(terms: str, text: str) -> str:
    """The terms of a text, behind which it has so many more words as it counts longer."""
    return terms + f" {PAD}" * padding(text) if terms else ""


def _entry(resource: Resource, cid: int, turn: int, texts: list[tuple[str, str]]) -> tantivy.Document:
    entry = tantivy.Document()
    for name, text in texts:
        if text:
            entry.add_text(name, text)
    if resource.updated_at is not None:
        entry.add_integer("updated", int(resource.updated_at))
    entry.add_unsigned("cid", cid)
    entry.add_unsigned("turn", turn)
    return entry


def _common_fields(resource: Resource) -> list[tuple[str, str]]:
    fields = [
        ("title", index_form(resource.title)),
        ("path", index_form(resource.path)),
        ("tags", index_form(" ".join(resource.tags))),
        ("name", index_form(resource.fields.get("name") or resource.path.rpartition("/")[2])),
        ("description", index_form(resource.fields.get("description", ""))),
        ("author", index_form(resource.author)),
        ("scope", " ".join(scope_tokens(resource))),
    ]
    return [(name, value) for name, value in fields if value]
