"""Sentences and names that a language model gives documents: their cost, asked for once, kept by content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from findling.domain.errors import ModelError, ModelNotFoundError
from findling.domain.resources import Document, Resource
from findling.domain.values import record
from findling.pipelines.indexing.situated import named, situated
from findling.service.index.model_choice import choose_chat, may_send
from findling.stores.reply_cache import ReplyCache, reply_key
from findling.stores.validation import batched
from findling.text.chunking import contexts
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.mining import model_names

if TYPE_CHECKING:
    from findling.models.ports import Chat
    from findling.service.index.writing import WorkspaceWriter

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
_TOKENS_OF_NAMES = 1_000


@record(kw_only=True)
class SituateCost:
    """The work of a run before it starts: documents and chunks to ask about, and what asking costs.

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
    """The outcome of a run: calls that were made, documents that have a reply now, and failures.

    `chunks` have a sentence now; `names` were found in the documents, and of `merges` both names were.
    """

    calls: int = 0
    documents: int = 0
    chunks: int = 0
    names: int = 0
    merges: int = 0
    failed: int = 0
    problems: tuple[str, ...] = field(default=())


class SentenceTask:
    """The question that is asked by default: where each chunk stands in its document.

    `field` of resources holds the replies, and is the note of a store that some have it; `system` are the instructions.
    """

    field, system, what = contexts.FIELD, contexts.SYSTEM, "sentence"

    def request(self, document: Document) -> str:
        """The text that is sent; empty where there is nothing to ask."""
        if len(document.chunks) < 2:
            return ""
        text = document.text
        return contexts.asked(document.resource.title, [text[chunk.start : chunk.end] for chunk in document.chunks])

    def is_done(self, document: Document, model: str, kept: Callable[[], str | None]) -> bool:
        """Whether a document has it from this model; `kept` gives the reply from before, if there is one."""
        by, of = contexts.sentences_of(document.resource)
        if by != model or all(chunk.cid in of for chunk in document.chunks):
            return by == model
        given = contexts.read_reply(kept() or "", len(document.chunks))  # a model may leave some out
        return bool(given) and all(document.chunks[place].cid in of for place in given)

    def most_tokens(self, document: Document) -> int:
        """Tokens that a reply may have."""
        return _TOKENS_A_CHUNK * len(document.chunks) + _TOKENS_BESIDES

    def tokens(self, request: str, document: Document) -> tuple[int, int]:
        """About how many tokens a request sends, and how many come back."""
        return contexts.tokens(request, len(document.chunks))

    def found(self, document: Document, reply: str) -> Mapping[str, int]:
        """Numbers of the things that a reply has for a document; empty for what is no reply."""
        sentences = contexts.read_reply(reply, len(document.chunks))
        return {"chunks": len(sentences)} if sentences else {}

    def attached(self, document: Document, model: str, reply: str) -> Document:
        """The document with what a reply says; an empty one removes it."""
        found = contexts.read_reply(reply, len(document.chunks))
        of = {document.chunks[place].cid: sentence for place, sentence in found.items()}
        return situated(document, contexts.Sentences(model, of))


class NameTask:
    """The other question, with the same methods: the names in a document, and those that are one."""

    field, system, what = model_names.FIELD, model_names.SYSTEM, "name"

    def request(self, document: Document) -> str:
        # Names in code are what it defines, which the rules know.
        if document.resource.lang in CODE_LANGS or not document.text.strip():
            return ""
        return model_names.asked(document.resource.title, document.text)

    def is_done(self, document: Document, model: str, kept: Callable[[], str | None]) -> bool:
        said = model_names.names_of(document.resource)
        return said.by == model and said.of == model_names.text_mark(document.text)

    def most_tokens(self, document: Document) -> int:
        return _TOKENS_OF_NAMES

    def tokens(self, request: str, document: Document) -> tuple[int, int]:
        return model_names.tokens(request)

    def found(self, document: Document, reply: str) -> Mapping[str, int]:
        said = model_names.read_names(reply, document.text)
        return {} if said is None else {"names": len(said.names), "merges": len(said.same)}

    def attached(self, document: Document, model: str, reply: str) -> Document:
        said = model_names.read_names(reply, document.text) or model_names.SaidNames()
        return named(document, said._replace(by=model if reply else ""))


class WorkspaceSituating:
    """Has a language model say where chunks stand in their documents; a run that ends early continues with the next."""

    def __init__(self, writer: WorkspaceWriter, task: SentenceTask | NameTask | None = None) -> None:
        self._writer = writer
        self._task = task or SentenceTask()
        settings = writer.settings
        self._patient = settings.override(
            {"remote.timeout_s": max(_PATIENCE_S, settings["remote.timeout_s"])}, "findling situate"
        )
        self._cache = ReplyCache(writer.files.folder / CACHE, _MOST_KEPT)

    @property
    def names(self) -> WorkspaceSituating:
        """The same for names in documents, which the graph then knows."""
        return WorkspaceSituating(self._writer, NameTask())

    def cost(self) -> SituateCost:
        """Count what a run would ask. Raises ModelNotFoundError when no language model is chosen."""
        chat = self._chat()
        counts = dict.fromkeys(("documents", "chunks", "calls", "kept", "tokens_sent", "tokens_received"), 0)
        left_out = {"withheld": 0, "too_long": 0}
        for document, request in self._lacking(chat, left_out):
            counts["documents"] += 1
            counts["chunks"] += len(document.chunks)
            if self._kept(chat, request) is not None:
                counts["kept"] += 1
                continue
            counts["calls"] += 1
            sent, received = self._task.tokens(request, document)
            counts["tokens_sent"] += sent
            counts["tokens_received"] += received
        return SituateCost(model=chat.name, sent_to=chat.host, **counts, **left_out)

    def run(self, on_progress: Callable[[int], None] = lambda documents: None) -> SituateReport:
        """Ask about all documents that lack something; each reply is kept as it comes, so that a kill loses none.

        Raises ModelNotFoundError when no language model is chosen, and as `WorkspaceWriter.writing` does.
        """
        chat = self._chat()
        calls = documents = failed = in_a_row = 0
        counts = dict.fromkeys(("chunks", "names", "merges"), 0)
        problems: dict[str, None] = {}

        def replies() -> Iterator[tuple[Document, str]]:
            nonlocal calls, failed, in_a_row
            for document, request in self._lacking(chat, {}):
                reply = self._kept(chat, request)
                if reply is None:
                    calls += 1
                    try:
                        reply = self._ask(chat, document, request)
                    except ModelError as error:
                        failed, in_a_row = failed + 1, in_a_row + 1
                        problems[str(error.message)] = None
                        if in_a_row == _MOST_FAILURES:
                            return
                        continue
                    self._cache.put(self._key(chat, request), reply)
                in_a_row = 0
                yield document, reply

        for batch in batched(replies(), _AT_A_TIME):
            for document, reply in batch:
                for what, count in self._task.found(document, reply).items():
                    counts[what] += count
            self._write(chat.name, batch)
            documents += len(batch)
            if len(batch) == _AT_A_TIME:
                on_progress(documents)
        return SituateReport(calls=calls, documents=documents, **counts, failed=failed, problems=tuple(problems))

    def restore(self) -> None:
        """Give documents what replies from before have said, which an index run from nothing has dropped; no call."""
        model = self._writer.store.get_meta(self._task.field) or ""
        asked = self._askable() if model else ()
        lacking = ((one, request) for one, request in asked if self._task.field not in one.resource.fields)
        kept = ((one, self._cache.get(reply_key(model, self._task.system, request))) for one, request in lacking)
        for batch in batched(((one, reply) for one, reply in kept if reply), _AT_A_TIME):
            self._write(model, batch)

    def remove(self) -> int:
        """Remove all that was said; the number of documents that had some. Replies stay for another run."""
        store = self._writer.store
        rids = [resource.rid for resource in store.resources() if self._task.field in resource.fields]
        with self._writer.files.writing():
            store.set_meta(self._task.field, "")  # else they would be kept as over an edit
        for batch in batched(filter(None, map(store.document, rids)), _AT_A_TIME):
            self._write("", [(document, "") for document in batch])
        return len(rids)

    def _chat(self) -> Chat:
        chat = choose_chat(self._patient)
        if chat is None:
            hint = "findling config set chat.model ollama:qwen3"
            raise ModelNotFoundError("there is no language model to write sentences", hint=hint)
        return chat

    def _key(self, chat: Chat, request: str) -> bytes:
        return reply_key(chat.name, self._task.system, request)

    def _kept(self, chat: Chat, request: str) -> str | None:
        return self._cache.get(self._key(chat, request))

    def _ask(self, chat: Chat, document: Document, request: str) -> str:
        """The reply about a document. Raises ModelError, also for one that says nothing of what was asked."""
        reply = chat.complete(self._task.system, request, max_tokens=self._task.most_tokens(document))
        if not self._task.found(document, reply):
            raise ModelError(f"{chat.name}: the reply has no {self._task.what} in it", hint="choose another chat.model")
        return reply

    def _lacking(self, chat: Chat, left_out: dict[str, int]) -> Iterator[tuple[Document, str]]:
        """The documents to ask about, with the requests; `left_out` counts others."""
        allowed: Callable[[Resource], bool] = may_send(self._writer.settings) if chat.host else lambda resource: True
        for document, request in self._askable():
            if self._task.is_done(document, chat.name, partial(self._kept, chat, request)):
                continue
            why = "withheld" if not allowed(document.resource) else "too_long" if _is_too_long(document) else ""
            if why:
                left_out[why] = left_out.get(why, 0) + 1
            else:
                yield document, request

    def _askable(self) -> Iterator[tuple[Document, str]]:
        """The documents that something can be asked about, with the requests."""
        store = self._writer.store
        for document in filter(None, map(store.document, list(store.rids()))):
            if request := self._task.request(document):
                yield document, request

    def _write(self, model: str, found: Sequence[tuple[Document, str]]) -> None:
        """Store what was said of documents that are still what the model has read."""
        with self._writer.writing() as put:
            store = self._writer.store
            if model:
                store.set_meta(self._task.field, model)
            now = [(store.document(document.resource.rid), document, reply) for document, reply in found]
            put(
                [
                    self._task.attached(present, model, reply)
                    for present, read, reply in now
                    if present is not None and present.text == read.text and _cids(present) == _cids(read)
                ],
                (),
            )


def _is_too_long(document: Document) -> bool:
    return len(document.chunks) > _MOST_CHUNKS or len(document.text) > _MOST_CHARACTERS


def _cids(document: Document) -> list[int]:
    return [chunk.cid for chunk in document.chunks]
