"""The fields of a keyword index, and the entries that documents become; `LAYOUT` of `segment_files` is theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import NamedTuple

import tantivy

from findling.core import native
from findling.domain.plans import FIELDS
from findling.domain.resources import Document, Resource
from findling.stores.keyword.query_builder import scope_tokens
from findling.stores.keyword.term_weights import PAD
from findling.text.analysis.analysis import chunk_terms, index_form
from findling.text.analysis.scripts import is_mostly_unspaced

PADDING = 20
"""Words by which a passage of prose counts longer than it is. A few words more or less say nothing about a turn of a
chat, and much about an abstract: the length of a turn of 20 words counts half as much, that of 200 words nine tenths.
NDCG@10 with 0, 20 and 40 words, on development sets: turns of chats .373, .430, .450; short abstracts .429, .440, .434;
long ones .716, .715; functions of code .382, .362; Korean documents, cut into pairs of letters, .922, .915. So code and
text without spaces are left as they are."""

_CODE_SIGNS = b"(){}[]=_<>;"
_CHARACTERS_A_SIGN, _FREE_SIGNS = 40, 2
"""Code has one of these signs in fewer characters: 95 of 100 pieces of code, 1 of 100 passages of prose. A pair of
parentheses is free: a turn of a chat is short."""

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
    for name in FIELDS:  # lengths of text fields, whose sum over living entries tantivy does not know
        builder.add_unsigned_field(length_field(name), fast=True)
    return builder.build()


def length_field(field: str) -> str:
    """The field with the number of terms of a text field."""
    return f"n_{field}"


class PreparedResource(NamedTuple):
    """A resource in the words of the index: fields that its entries share, and `(cid, turn, body, heading, defines)`.

    A chunk that a language model wrote a sentence about has that as a sixth one. It is plain data, so that it can be
    kept and made entries of again, without another look at the text.
    """

    number: int
    updated: int | None
    common: Sequence[tuple[str, str]]
    rows: Sequence[tuple[int, int, str, str, str] | tuple[int, int, str, str, str, str]]

    @property
    def weight(self) -> int:
        """Characters that are indexed."""
        common = sum([len(text) for _, text in self.common])
        return sum([len(body) + len(heading) + common for _, _, body, heading, *_ in self.rows])

    def texts(self) -> Iterator[str]:
        """The terms of its text fields."""
        yield from (text for name, text in self.common if name in FIELDS)
        for _, _, body, heading, _, *sentence in self.rows:
            yield body
            yield heading
            yield from sentence


def prepare(document: Document, number: int, *, unit: str, added: frozenset[int] | None = None) -> PreparedResource:
    """A document with an entry for each chunk that was added, of all without `added`; or as one page.

    `number` is that of the resource. A page has the id of its first chunk.
    """
    from findling.text.chunking.defined_names import defined_terms  # a search needs no patterns of languages

    resource, first = document.resource, number * _MOST_CHUNKS
    rows: list[tuple[int, int, str, str, str] | tuple[int, int, str, str, str, str]] = []
    sentences = _sentences(resource)
    if unit == "page" and document.chunks:
        headings = dict.fromkeys(heading for chunk in document.chunks for heading in chunk.heading)
        body = _padded(index_form(document.text), document.text)
        defines = " ".join(defined_terms(document.text, resource.lang, document.chunks))
        rows.append((document.chunks[0].cid, first, body, index_form("\n".join(headings)), defines))
    elif unit != "page":
        text, chunks, known = document.text, document.chunks, document.terms
        names = [] if known else defined_terms(text, resource.lang, chunks)
        for position, chunk in enumerate(chunks):
            cid, _, _, start, end, _, _, _, _ = chunk
            if added is None or cid in added:
                body, heading, defines = known[position] if known else chunk_terms(text, chunk, names[position])
                row = cid, first + position, _padded(body, text[start:end]), heading, defines
                rows.append((*row, index_form(sentences[cid])) if cid in sentences else row)
    updated = None if resource.updated_at is None else int(resource.updated_at)
    return PreparedResource(number, updated, _common_fields(resource), rows)


def entries(prepared: PreparedResource) -> Iterator[str]:
    """The entries of a resource as tantivy reads them from JSON: one call each, where fields one by one are nine.

    No term holds a character that JSON escapes; a name or a path may.
    """
    _, updated, common, rows = prepared
    described = next((text for name, text in common if name == "description"), "")
    shared = "".join(
        [f',"{name}":{encode_basestring(text)}{_length(name, text)}' for name, text in common if name != "description"]
    )
    if updated is not None:
        shared += f',"updated":{updated}'
    for cid, turn, body, heading, defines, *sentence in rows:
        own = f',"body":"{body}"{_length("body", body)}' if body else ""
        if heading:
            own += f',"heading":"{heading}"{_length("heading", heading)}'
        if defines:
            own += f',"defines":"{defines}"'
        # Only `in:description` asks for a sentence of a language model by name.
        if description := " ".join([described, *sentence] if sentence else [described]):
            own += f',"description":{encode_basestring(description)}{_length("description", description)}'
        yield f'{{"cid":{cid},"turn":{turn}{own}{shared}}}'


def _length(field: str, text: str) -> str:
    return f',"{length_field(field)}":{text.count(" ") + 1}' if field in FIELDS else ""


def _sentences(resource: Resource) -> Mapping[int, str]:
    """The sentences of a language model about chunks."""
    if "situated" not in resource.fields:
        return {}
    from findling.text.chunking.contexts import sentences_of

    return sentences_of(resource).of


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


def padding(text: str) -> int:
    """By how many words a text counts longer than it is, which depends on nothing but the text."""
    if not text.isascii() and is_mostly_unspaced(text):
        return 0
    enough = len(text) // _CHARACTERS_A_SIGN + _FREE_SIGNS + 1
    signs = _count_signs(text, enough) if native is None else native.count_bytes(text, _CODE_SIGNS, enough)
    return 0 if not text or signs >= enough else PADDING


def _count_signs(text: str, most: int) -> int:
    # One pass over bytes takes a third of the time that a count of each sign takes.
    data = text.encode("utf-8", "surrogatepass")
    return min(most, len(data) - len(data.translate(None, _CODE_SIGNS)))
