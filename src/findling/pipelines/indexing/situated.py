"""Documents with what a language model has said about them: attached, kept over edits, and told by digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

from findling.domain.ports import TruthStore
from findling.domain.resources import Chunk, Document
from findling.text.chunking.chunk_plan import passage
from findling.text.chunking.contexts import FIELD, Sentences, sentences_of, written
from findling.text.mining.model_names import FIELD as NAMES
from findling.text.mining.model_names import SaidNames, names_of
from findling.text.mining.model_names import written as written_names


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


def named(document: Document, said: SaidNames) -> Document:
    """The document with these names, and with no others; models read it as before."""
    fields = {name: value for name, value in document.resource.fields.items() if name != NAMES}
    fields |= {NAMES: written_names(said)} if said.by else {}
    return document._replace(resource=replace(document.resource, fields=fields))


def digested(document: Document) -> Document:
    """The document with digests of what a model reads of its chunks."""
    resource, text = document.resource, document.text

    def digest(chunk: Chunk) -> bytes:
        read = passage(resource, chunk.heading, text[chunk.start : chunk.end], chunk.cid)
        return blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    return document._replace(chunks=tuple([chunk._replace(digest=digest(chunk)) for chunk in document.chunks]))


def carried(store: TruthStore, documents: Iterable[Document]) -> Iterator[Document]:
    """The documents with what the store has about them: sentences about chunks that stay, and names."""
    has_sentences, has_names = (bool(store.get_meta(name)) for name in (FIELD, NAMES))
    for document in documents:
        own = document.resource.fields
        lacks = has_sentences and FIELD not in own, has_names and NAMES not in own
        before = store.document(document.resource.rid) if any(lacks) else None
        if before is not None and lacks[1]:
            said = names_of(before.resource)
            document = named(document, said) if said.by else document
        sentences = sentences_of(before.resource) if before is not None and lacks[0] else Sentences("", {})
        stay = not sentences.of.keys().isdisjoint([chunk.cid for chunk in document.chunks])
        yield situated(document, sentences) if stay else document
