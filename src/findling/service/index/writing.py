"""Writing resources that are not files: into the truth and into every leg, under the workspace's lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from findling.domain.errors import QuotaError
from findling.domain.permissions import check_visibility
from findling.domain.ports import TruthStore
from findling.domain.resources import MADE_BY_MODELS, Document, Resource
from findling.service.index.index_files import LAZY, OpenedWorkspace
from findling.service.index.permissions import forget_rights
from findling.service.index.recovery import keep_manifest
from findling.service.workspace.manifest import preprocessing_of, quota_of, write_manifest
from findling.service.workspace.quotas import Allowance
from findling.service.workspace.workspace import place_of

if TYPE_CHECKING:
    from findling.pipelines.indexing.fanout import Legs
    from findling.service.settings.settings import Settings
    from findling.text.chunking.chunk_plan import ChunkPlan

_BATCH = 500
"""Documents of one transaction."""


class WorkspaceWriter:
    """Puts documents into one workspace. `legs` gives the legs to write; the lock is held then."""

    def __init__(self, files: OpenedWorkspace, settings: Settings, legs: Callable[[], Legs]) -> None:
        self.files = files
        self.settings = settings
        self._legs = legs

    @property
    def store(self) -> TruthStore:
        """The truth, to read. Raises NotIndexedError when there is none yet: `exists` tells."""
        return self.files.store

    @property
    def exists(self) -> bool:
        """Whether something was ever written here."""
        self.files.let_go_if_replaced()
        return self.files.exists

    @property
    def chunk_plan(self) -> ChunkPlan:
        """The plan that cuts texts in this process, without grammars: one may crash on a text."""
        from findling.service.settings.settings import chunk_plan

        return chunk_plan(self.settings)._replace(code="patterns")

    @contextmanager
    def writing(self, *, whole: bool = False) -> Iterator[Callable[[Iterable[Document], Iterable[str]], int]]:
        """Hold the lock and get a function that upserts documents and deletes ids, and tells how many changed.

        Whatever was written is durable in the truth with each batch of 500. Legs absorb it with the next search, or
        when the block ends if there is much of it: a commit to them is 24 syncs of the disk, one to the truth is 1.
        Raises LockedError when another process keeps writing, ReadOnlyError and DiskFullError when nothing can be
        written, InvalidValueError for a list of principals that is none, and QuotaError when a document does not
        fit: those before it stay, or with `whole` none is written.
        """
        with self.files.writing():
            self.files.note_subject()
            store = self.files.store
            allowance = self._allowance()
            gone: set[str] = set()
            before = store.seq() if place_of(self.files.folder) else 0

            def put(documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> int:
                changed = 0
                waiting = iter(documents)
                doomed = list(deleted_rids)
                gone.update(doomed)
                while (batch := list(waiting if whole else islice(waiting, _BATCH))) or doomed:
                    for document in batch:
                        check_visibility(document.resource.visibility or ())
                    fitting, refusal = allowance.admit(batch, doomed)
                    if refusal is not None and whole:
                        raise refusal
                    changed += len(store.write(_carried(store, fitting), doomed))
                    allowance.measure()
                    if refusal is not None:
                        raise refusal
                    doomed = []
                return changed

            try:
                yield put
            except QuotaError:
                self._finish(gone, before)
                raise
            self._finish(gone, before)

    def _finish(self, gone: Collection[str], before: int) -> None:
        """Have the workspace say what was written, and legs that are far behind absorb it."""
        store = self.files.store
        is_first = store.get_meta("indexed_at") is None and not place_of(self.files.folder)
        if is_first or self._is_far_behind(before):
            self._legs()
        if gone:
            forget_rights(self.files, gone)
        root = store.get_meta("root") or None
        write_manifest(self.files.folder, root=root, preprocessing=preprocessing_of(self.settings))
        keep_manifest(self.files)
        if store.get_meta("indexed_at") is None:
            store.set_meta("indexed_at", repr(time.time()))

    def _is_far_behind(self, before: int) -> bool:
        # Asked of its note: opening the leg takes 3 ms, a fifth of a small write. The next search finds damage.
        absorbed = self.files.keyword_seq()
        # What other hosts have written waits for a search, which keeps nobody from writing.
        return self.store.seq() - max(absorbed, before) > LAZY

    def _allowance(self) -> Allowance:
        store, folder = self.files.store, self.files.folder
        return Allowance(store, folder, quota_of(folder, self.settings, store))

    def put(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> int:
        """Upsert documents and delete resources by their ids; tells how many changed."""
        with self.writing() as put:
            return put(documents, deleted_rids)

    def put_texts(self, items: Iterable[tuple[Resource, str]], deleted_rids: Iterable[str] = ()) -> int:
        """Upsert resources, each with its text, and delete others; tells how many changed."""
        return self.put(self.documents(items), deleted_rids)

    def documents(self, items: Iterable[tuple[Resource, str]]) -> Iterator[Document]:
        """The documents of resources that come with their texts."""
        from findling.pipelines.indexing.document_build import text_documents

        return chain.from_iterable(text_documents(items, self.chunk_plan))


def _carried(store: TruthStore, documents: Sequence[Document]) -> Iterable[Document]:
    """The documents with what a language model has said about chunks that stay, if one was ever asked."""
    if not any(map(store.get_meta, MADE_BY_MODELS)):
        return documents
    from findling.pipelines.indexing.situated import carried

    return carried(store, documents)
