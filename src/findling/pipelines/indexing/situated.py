"""Documents with sentences of a language model about their chunks: attached, kept over edits, and told by digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

from findling.domain.ports import TruthStore
from findling.domain.resources import Chunk, Document
from findling.text.chunking.chunk_plan import passage
from findling.text.chunking.contexts import FIELD, Sentences, sentences_of, written

__all__ = ["carried", "digested", "situated"]


def situated(document: Document, sentences: Sentences) -> Document:
    """The document with these sentences about its chunks, and with no others.

    Models then read other passages, so digests and instant vectors of these chunks are others, too.
    """
    own = {chunk.cid for chunk in document.chunks}
    kept = {cid: sentence for cid, sentence in sentences.of.items() if cid in own}
    fields = {name: value for name, value in document.resource.fields.items() if name != FIELD}
    fields |= {FIELD: written(Sentences(sentences.by, kept))} if kept else {}
    resource = replace(document.resource, fields=fields)
    return digested(document._replace(resource=resource, vectors=()))


def digested(document: Document) -> Document:
    """The document with digests of what a model reads of its chunks."""
    resource, text = document.resource, document.text

    def digest(chunk: Chunk) -> bytes:
        read = passage(resource, chunk.heading, text[chunk.start : chunk.end], chunk.cid)
        return blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    return document._replace(chunks=tuple([chunk._replace(digest=digest(chunk)) for chunk in document.chunks]))


def carried(store: TruthStore, documents: Iterable[Document]) -> Iterator[Document]:
    """The documents with the sentences that the store has about those of their chunks that stay as they are."""
    for document in documents:
        before = None if FIELD in document.resource.fields else store.document(document.resource.rid)
        sentences = sentences_of(before.resource) if before is not None else Sentences("", {})
        stay = not sentences.of.keys().isdisjoint([chunk.cid for chunk in document.chunks])
        yield situated(document, sentences) if stay else document
