"""Sentences of a language model about the chunks of a workspace: their cost, asked for once, kept by content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from findling.domain.errors import ModelError, ModelNotFoundError
from findling.domain.resources import Document
from findling.domain.values import record
from findling.pipelines.indexing.situated import situated
from findling.service.index.model_choice import choose_chat, may_send
from findling.stores.reply_cache import ReplyCache, reply_key
from findling.text.chunking.contexts import FIELD, SYSTEM, Sentences, asked, read_reply, sentences_of, tokens

if TYPE_CHECKING:
    from findling.models.ports import Chat
    from findling.service.index.writing import WorkspaceWriter

__all__ = ["SituateCost", "SituateReport", "WorkspaceSituating"]

CACHE = "contexts.sqlite"
_MOST_KEPT = 1_000_000
"""Replies that are kept, one a document: they are what a run has paid for."""

_MOST_CHUNKS = 150
_MOST_CHARACTERS = 300_000
"""Longer documents are left out: a reply has no room for so many sentences, and a model none for such a text."""

_PATIENCE_S = 120.0
"""Seconds that a reply about a whole document may take; more where `remote.timeout_s` allows it."""

_AT_A_TIME = 16
"""Documents that are written under one lock."""

_MOST_FAILURES = 3
"""Failures in a row that end a run: the provider is down, or its quota is used up."""

_TOKENS_A_CHUNK, _TOKENS_BESIDES = 80, 200


@record(kw_only=True)
class SituateCost:
    """The work of a run before it starts: documents and chunks without sentences, and what asking for them costs.

    `kept` documents have a reply from before. `withheld` ones are private, `too_long` ones are left out.
    """

    model: str
    sent_to: str
    documents: int = 0
    chunks: int = 0
    calls: int = 0
    kept: int = 0
    tokens_sent: int = 0
    tokens_received: int = 0
    withheld: int = 0
    too_long: int = 0


@record(kw_only=True)
class SituateReport:
    """The outcome of a run: calls that were made, documents and chunks that have sentences now, and failures."""

    calls: int = 0
    documents: int = 0
    chunks: int = 0
    failed: int = 0
    problems: tuple[str, ...] = field(default=())


class WorkspaceSituating:
    """Has a language model say where chunks stand in their documents; a run that ends early continues with the next."""

    def __init__(self, writer: WorkspaceWriter) -> None:
        self._writer = writer
        settings = writer.settings
        self._patient = settings.override(
            {"remote.timeout_s": max(_PATIENCE_S, settings["remote.timeout_s"])}, "findling situate"
        )
        self._cache = ReplyCache(writer.files.folder / CACHE, _MOST_KEPT)

    def cost(self) -> SituateCost:
        """Count what a run would ask. Raises ModelNotFoundError when no language model is chosen."""
        chat = self._chat()
        counts = dict.fromkeys(("documents", "chunks", "calls", "kept", "tokens_sent", "tokens_received"), 0)
        left_out = {"withheld": 0, "too_long": 0}
        for document in self._lacking(chat, left_out):
            request, chunks = _request(document), len(document.chunks)
            counts["documents"] += 1
            counts["chunks"] += chunks
            if self._cache.get(self._key(chat, request)) is not None:
                counts["kept"] += 1
                continue
            counts["calls"] += 1
            sent, received = tokens(request, chunks)
            counts["tokens_sent"] += sent
            counts["tokens_received"] += received
        return SituateCost(model=chat.name, sent_to=chat.host, **counts, **left_out)

    def run(self, on_progress: Callable[[int], None] = lambda documents: None) -> SituateReport:
        """Ask for all sentences that are missing; each reply is kept as it comes, so that a kill loses none.

        Raises ModelNotFoundError when no language model is chosen, and as `WorkspaceWriter.writing` does.
        """
        chat = self._chat()
        calls = documents = chunks = failed = in_a_row = 0
        problems: dict[str, None] = {}
        waiting: list[tuple[Document, Sentences]] = []
        for document in self._lacking(chat, {}):
            request = _request(document)
            key = self._key(chat, request)
            reply = self._cache.get(key)
            if reply is None:
                calls += 1
                try:
                    reply = _ask(chat, request, len(document.chunks))
                except ModelError as error:
                    failed, in_a_row = failed + 1, in_a_row + 1
                    problems[str(error.message)] = None
                    if in_a_row == _MOST_FAILURES:
                        break
                    continue
                self._cache.put(key, reply)
            in_a_row = 0
            sentences = _sentences(document, chat.name, reply)
            waiting.append((document, sentences))
            documents, chunks = documents + 1, chunks + len(sentences.of)
            if len(waiting) == _AT_A_TIME:
                self._write(waiting)
                on_progress(documents)
                waiting = []
        self._write(waiting)
        return SituateReport(calls=calls, documents=documents, chunks=chunks, failed=failed, problems=tuple(problems))

    def restore(self) -> None:
        """Give documents the sentences of replies from before, which an index run from nothing has dropped; no call."""
        store, waiting = self._writer.store, list[tuple[Document, Sentences]]()
        by = store.get_meta(FIELD) or ""
        for rid in list(store.rids()):
            document = store.document(rid)
            if document is None or len(document.chunks) < 2 or sentences_of(document.resource).of:
                continue
            if reply := self._cache.get(reply_key(by, SYSTEM, _request(document))):
                waiting.append((document, _sentences(document, by, reply)))
            if len(waiting) == _AT_A_TIME:
                self._write(waiting)
                waiting = []
        self._write(waiting)

    def remove(self) -> int:
        """Remove all sentences; the number of documents that had some. Replies stay for another run."""
        store = self._writer.store
        rids = [resource.rid for resource in store.resources() if sentences_of(resource).of]
        with self._writer.files.writing():
            store.set_meta(FIELD, "")  # else they would be kept as over an edit
        for start in range(0, len(rids), _AT_A_TIME):
            found = [store.document(rid) for rid in rids[start : start + _AT_A_TIME]]
            self._write([(document, Sentences("", {})) for document in found if document is not None])
        return len(rids)

    def _chat(self) -> Chat:
        chat = choose_chat(self._patient)
        if chat is None:
            hint = "findling config set chat.model ollama:qwen3"
            raise ModelNotFoundError("there is no language model to write sentences", hint=hint)
        return chat

    def _key(self, chat: Chat, request: str) -> bytes:
        return reply_key(chat.name, SYSTEM, request)

    def _lacking(self, chat: Chat, left_out: dict[str, int]) -> Iterator[Document]:
        """The documents of several chunks in which some have no sentence of this model; `left_out` counts others."""
        allowed = may_send(self._writer.settings) if chat.host else lambda resource: True
        store = self._writer.store
        for rid in list(store.rids()):
            document = store.document(rid)
            if document is None or len(document.chunks) < 2:
                continue
            by, of = sentences_of(document.resource)
            if by == chat.name and all(chunk.cid in of for chunk in document.chunks):
                continue
            why = "withheld" if not allowed(document.resource) else "too_long" if _is_too_long(document) else ""
            if why:
                left_out[why] = left_out.get(why, 0) + 1
            elif by != chat.name or not self._is_all(chat, document, of):
                yield document

    def _is_all(self, chat: Chat, document: Document, of: Mapping[int, str]) -> bool:
        """Whether a document has all sentences that a kept reply has for it; a model may leave some out."""
        kept = self._cache.get(self._key(chat, _request(document)))
        given = read_reply(kept, len(document.chunks)) if kept is not None else {}
        return bool(given) and all(document.chunks[place].cid in of for place in given)

    def _write(self, found: Sequence[tuple[Document, Sentences]]) -> None:
        """Store sentences of documents that are still what the model has read."""
        if not found:
            return
        with self._writer.writing() as put:
            store = self._writer.store
            if by := next((sentences.by for _, sentences in found if sentences.of), ""):
                store.set_meta(FIELD, by)
            now = [(store.document(document.resource.rid), document, sentences) for document, sentences in found]
            put(
                [
                    situated(present, sentences)
                    for present, read, sentences in now
                    if present is not None and present.text == read.text and _cids(present) == _cids(read)
                ],
                (),
            )


def _ask(chat: Chat, request: str, chunks: int) -> str:
    """The reply about a document. Raises ModelError, also for a reply without a sentence."""
    reply = chat.complete(SYSTEM, request, max_tokens=_TOKENS_A_CHUNK * chunks + _TOKENS_BESIDES)
    if not read_reply(reply, chunks):
        raise ModelError(f"{chat.name}: the reply has no sentence in it", hint="choose another chat.model")
    return reply


def _sentences(document: Document, by: str, reply: str) -> Sentences:
    found = read_reply(reply, len(document.chunks))
    return Sentences(by, {document.chunks[place].cid: sentence for place, sentence in found.items()})


def _request(document: Document) -> str:
    text = document.text
    return asked(document.resource.title, [text[chunk.start : chunk.end] for chunk in document.chunks])


def _is_too_long(document: Document) -> bool:
    return len(document.chunks) > _MOST_CHUNKS or len(document.text) > _MOST_CHARACTERS


def _cids(document: Document) -> list[int]:
    return [chunk.cid for chunk in document.chunks]
