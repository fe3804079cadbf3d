"""The exact leg: a tantivy index over the trigrams of every resource, which narrows the texts that may match a pattern.

It has one entry a resource and no positions: 13 % of the text, and candidates within a millisecond at 64 MB.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path

import tantivy

from findling.core import native
from findling.domain.ports import Change
from findling.domain.queries import Required
from findling.stores.keyword.leg import IndexedLeg
from findling.stores.keyword.segment_files import DamageGuard, OpenedIndex, open_index
from findling.text.query.patterns import coded, fold, trigram_form

EXACT_LAYOUT = 1
"""Raised when the fields of an entry or their terms change; an index of another layout is rebuilt."""

_TRIGRAMS = "trigrams"
_Occur, _Query = tantivy.Occur, tantivy.Query


def exact_owner(store_id: str) -> str:
    """The mark of an index of this store, as this version and this table of letters make it."""
    return f"{EXACT_LAYOUT}|{unicodedata.unidata_version}|exact|{store_id}"


class TrigramLeg(IndexedLeg):
    """Implements `ExactLeg` in one folder. Open it with `open`; writing needs the workspace's write lock."""

    def __init__(self, opened: OpenedIndex, folder: Path, owner: str) -> None:
        super().__init__(opened, folder, owner, _schema, DamageGuard(folder, "exact leg"))

    @classmethod
    def open(cls, folder: Path, *, store_id: str) -> TrigramLeg:
        """Open the leg in a folder, or an empty one when there is none of this store. Raises CorruptError."""
        owner = exact_owner(store_id)
        return cls(open_index(folder, owner, _schema, DamageGuard(folder, "exact leg")), folder, owner)

    def apply(self, changes: Iterable[Change]) -> None:
        """Index changes; they become visible and durable with `commit`."""
        is_new = self._seq is None
        for change in changes:
            if not is_new:
                self._delete("rid", change.rid)
            if change.document is not None:
                with self._writing() as writer:
                    writer.add_document(_entry(change.rid, change.number, change.document.text))

    def candidates(self, required: Required, allowed: Collection[int] | None = None) -> list[int]:
        """The numbers of those allowed resources that hold the trigrams, in order. Raises CorruptError."""
        schema = self._index.schema
        query = _all_of([_one_of([_all_of(_terms(schema, one)) for one in clause]) for clause in required.clauses])
        with self._reading:
            searcher = self._searcher()
            hits = searcher.search(_Query.const_score_query(query, 1.0), max(1, searcher.num_docs), count=False).hits
            numbers = searcher.fast_field_values("number", [address for _, address in hits]) if hits else []
        found = (int(number) for number in numbers if number is not None)
        return sorted(found if allowed is None else (number for number in found if number in allowed))

    def numbers(self) -> set[int]:
        """The numbers of all resources that it holds; for checks. Raises CorruptError."""
        return self._values("number")

    def _begun(self, index: tantivy.Index) -> None:
        # The core gives the trigrams, each once; without it tantivy cuts the text, at twice the time: 0.083 s a MB.
        split = tantivy.Tokenizer.whitespace() if native is not None else tantivy.Tokenizer.ngram(3, 3, False)
        index.register_tokenizer(_TRIGRAMS, tantivy.TextAnalyzerBuilder(split).build())


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(_TRIGRAMS, tokenizer_name=_TRIGRAMS, index_option="basic")
    builder.add_text_field("rid", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("number", fast=True)
    return builder.build()


def _entry(rid: str, number: int, text: str) -> tantivy.Document:
    folded = fold(text)
    entry = tantivy.Document()
    entry.add_text(_TRIGRAMS, trigram_form(folded) if native is not None else coded(folded))
    entry.add_text("rid", rid)
    entry.add_unsigned("number", number)
    return entry


def _terms(schema: tantivy.Schema, trigrams: Iterable[str]) -> list[tantivy.Query]:
    return [_Query.term_query(schema, _TRIGRAMS, coded(one), index_option="basic") for one in sorted(trigrams)]


def _all_of(parts: list[tantivy.Query]) -> tantivy.Query:
    return parts[0] if len(parts) == 1 else _Query.boolean_query([(_Occur.Must, part) for part in parts])


def _one_of(parts: list[tantivy.Query]) -> tantivy.Query:
    return parts[0] if len(parts) == 1 else _Query.boolean_query([(_Occur.Should, part) for part in parts])
