"""The fields of a keyword index, and the entries that documents become; `LAYOUT` of `segment_files` is theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tantivy

from findling.domain.plans import FIELDS
from findling.domain.resources import Document, Resource
from findling.stores.keyword.query_builder import scope_tokens
from findling.stores.keyword.term_weights import PAD, padding
from findling.text.analysis.analysis import chunk_terms, index_form

__all__ = ["PreparedResource", "entries", "prepare", "schema"]

_MOST_CHUNKS = 1 << 24
"""More than any document has: the `turn` of an entry orders resources by their numbers, then chunks."""


def schema() -> tantivy.Schema:
    """The fields of an entry."""
    builder = tantivy.SchemaBuilder()
    # Terms come ready-made from `index_form`; tantivy only has to split them at the spaces.
    for name in FIELDS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    for name in ("author", "defines", "scope"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("cid", indexed=True, fast=True)
    builder.add_unsigned_field("turn", fast=True)
    builder.add_integer_field("updated", indexed=True, fast=True)
    return builder.build()


class PreparedResource(NamedTuple):
    """A resource in the words of the index: fields that its entries share, and `(cid, turn, body, heading, defines)`.

    It is plain data, so that it can be kept and made entries of again, without another look at the text.
    """

    number: int
    updated: int | None
    common: Sequence[tuple[str, str]]
    rows: Sequence[tuple[int, int, str, str, str]]

    @property
    def weight(self) -> int:
        """Characters that are indexed."""
        common = sum([len(text) for _, text in self.common])
        return sum([len(body) + len(heading) + common for _, _, body, heading, _ in self.rows])

    def texts(self) -> Iterator[str]:
        """The terms of its text fields."""
        yield from (text for name, text in self.common if name in FIELDS)
        for _, _, body, heading, _ in self.rows:
            yield body
            yield heading


def prepare(document: Document, number: int, *, unit: str, added: frozenset[int] | None = None) -> PreparedResource:
    """A document with an entry for each chunk that was added, of all without `added`; or as one page.

    `number` is that of the resource. A page has the id of its first chunk.
    """
    from findling.text.chunking.defined_names import defined_terms  # a search needs no patterns of languages

    resource, first = document.resource, number * _MOST_CHUNKS
    rows = []
    if unit == "page" and document.chunks:
        headings = dict.fromkeys(heading for chunk in document.chunks for heading in chunk.heading)
        body = _padded(index_form(document.text), document.text)
        defines = " ".join(defined_terms(document.text, resource.lang, document.chunks))
        rows.append((document.chunks[0].cid, first, body, index_form("\n".join(headings)), defines))
    elif unit != "page":
        names = [] if document.terms else defined_terms(document.text, resource.lang, document.chunks)
        for position, chunk in enumerate(document.chunks):
            if added is None or chunk.cid in added:
                terms = (
                    document.terms[position] if document.terms else chunk_terms(document.text, chunk, names[position])
                )
                body = _padded(terms.body, document.text[chunk.start : chunk.end])
                rows.append((chunk.cid, first + position, body, terms.heading, terms.defines))
    updated = None if resource.updated_at is None else int(resource.updated_at)
    return PreparedResource(number, updated, _common_fields(resource), rows)


def entries(prepared: PreparedResource) -> Iterator[tantivy.Document]:
    """The entries of a resource."""
    _, updated, common, rows = prepared
    for cid, turn, body, heading, defines in rows:
        entry = tantivy.Document()
        add_text, add_unsigned = entry.add_text, entry.add_unsigned
        if body:
            add_text("body", body)
        if heading:
            add_text("heading", heading)
        if defines:
            add_text("defines", defines)
        for name, text in common:
            add_text(name, text)
        if updated is not None:
            entry.add_integer("updated", updated)
        add_unsigned("cid", cid)
        add_unsigned("turn", turn)
        yield entry


def _padded(terms: str, text: str) -> str:
    """The terms of a text, behind which it has so many more words as it counts longer."""
    return terms + f" {PAD}" * padding(text) if terms else ""


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
