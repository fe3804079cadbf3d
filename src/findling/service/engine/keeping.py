"""What is opened, and what a server does with it: have it ready, share it, tell whether it has changed, let go."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import NotIndexedError, StoreDamagedError
from findling.domain.ports import SkippedPath
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import Degradation
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.model_table import ModelTable
from findling.service.index.refresh import DiskIndex
from findling.service.settings.profiles import plan_of
from findling.service.settings.settings import Settings
from findling.service.workspace.scope import prepared
from findling.service.workspace.workspace import Workspace, has_items, home_folder, workspaces_above
from findling.service.workspace.writer_queue import WriterQueue
from findling.stores.local.layout import STORE_FILE

if TYPE_CHECKING:
    from findling.domain.reports import Check, IndexReport
    from findling.service.index.embeddings import WorkspaceVectors
    from findling.service.index.views import WorkspaceSights
    from findling.service.upkeep.compaction import CompactReport

__all__ = ["KeptEngine", "TendedEngine"]


_WARM_UP = "what is this about"


class KeptEngine(ABC):
    """The part of an engine that says what is opened, and what only a server makes use of."""

    home: Path
    root: Path
    scope: str
    _only: str
    _files: OpenedWorkspace
    _settings: Settings
    _disk: DiskIndex
    _plan_of: Any
    _legs: Any
    _models: ModelTable
    _opening: threading.RLock
    _opened_vectors: WorkspaceVectors | None
    _opened_sights: WorkspaceSights | None
    _opened_above: dict[Path, Self]
    _looks_above: bool

    @abstractmethod
    def __init__(self, workspace: Workspace, settings: Settings, models: ModelTable | None = None) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Release files; closing twice is fine."""

    def beside(self, workspace: Workspace, settings: Settings) -> Self:
        """The same opened index, for another part of its root and under settings that agree on how legs are opened.

        It is not to be closed.
        """
        _ = (self._vectors, self._sights)  # so that both share them
        other = copy(self)
        other.scope, other._settings = workspace.scope, settings
        other._disk = DiskIndex(self._files, settings, workspace, self._legs)
        other._plan_of = cache(partial(plan_of, settings))
        return other

    def alone(self) -> Self:
        """The same opened index without the items of the folders above. It is not to be closed."""
        _ = (self._vectors, self._sights)
        other = copy(self)
        other._looks_above = False
        return other

    def above(self) -> list[Self]:
        """The workspaces of the folders above that hold items, the nearest first. They are not to be closed."""
        found = []
        for place in self._places_above():
            if place.folder in self._opened_above or _has_items(place.folder, _versions(place.folder)):
                with self._opening:
                    if place.folder not in self._opened_above:
                        self._opened_above[place.folder] = type(self)(place, self._settings, self._models)
                    found.append(self._opened_above[place.folder].beside(place, self._settings).alone())
        return found

    def holds(self, rid: str) -> bool:
        """Whether there is a resource with this id."""
        return self._files.store.document(rid) is not None

    @property
    def subject(self) -> Path:
        """What is indexed, or will be: the root, or the part of it that was asked for, which may be one file."""
        return self._disk.subject()

    @property
    def asked(self) -> Path:
        """What was opened: the root, or a folder or file of it."""
        return self.root / (self._only or self.scope)

    def asked_as(self, request: SearchRequest) -> SearchRequest:
        """A request as the legs are asked: with its plan, and limited to the part of the root that was opened."""
        return prepared(request, {}, self._settings, self.scope, self._plan_of).request

    def question(self, request: SearchRequest) -> str:
        """What is asked, of which index and under which settings: whoever asks the same is answered the same."""
        settings = [(name, self._settings[name]) for name in self._settings if self._settings.origin(name) != "default"]
        return repr((self.home, settings, self.asked_as(request)))

    def state(self) -> object:
        """Something that is another one as soon as anything has changed that answers depend on."""
        self._files.let_go_if_replaced()
        store = self._files.store
        # The numbers tell every change of content and rights; the files also one of the glossary, and of vectors.
        folders = [self.home, *[place.folder for place in self._places_above()]]
        return store.get_meta("store_id"), store.seq(), store.relations_version(), *map(_versions, folders)

    def warm_up(self, notes: list[Degradation]) -> dict[str, float]:
        """Load the legs and the model; how many seconds each of them took. Raises NotIndexedError, CorruptError."""
        times: dict[str, float] = {}
        started = time.perf_counter()
        self._must_be_indexed()
        behind = self._files.level_leg()
        notes += [behind] if behind is not None else []
        self._files.leg.size()
        times["keyword_load"] = time.perf_counter() - started
        started = time.perf_counter()
        meaning = self._vectors.meaning()
        notes += meaning.degraded
        if meaning.spaces:
            times["vector_warmup"] = time.perf_counter() - started
        for space in meaning.spaces:
            # A provider elsewhere is sent nothing that nobody asked.
            if space.leg.speed == "refined" and space.embedder.in_process:
                started = time.perf_counter()
                space.embedder.embed([_WARM_UP], "query")
                times["model_load"] = time.perf_counter() - started
        return times

    def reading(self) -> dict[str, Any]:
        """How far the model has come: `meaning` of the status alone, which costs less."""
        self._must_be_indexed()
        return self._vectors.account()

    def is_gone(self) -> bool:
        """Whether what is opened was deleted, or made anew, by another process."""
        return self._files.is_replaced()

    def has_written(self) -> bool:
        """Whether this process was the last one to write the index."""
        return self._files.queue.was_last()

    @property
    def queue(self) -> WriterQueue:
        """The writers of this index in this process."""
        return self._files.queue

    def loaded(self) -> dict[str, bool]:
        """What is in memory: the keyword leg, vectors, a model."""
        vectors, model = self._opened_vectors.loaded() if self._opened_vectors is not None else (False, False)
        return {"keyword": self._files.exists, "vectors": vectors, "model": model}

    def unload(self) -> bool:
        """Let vectors and models go, which come back when they are needed; tells whether there were any."""
        with self._opening:
            vectors, sights = self._opened_vectors, self._opened_sights
            self._opened_vectors = self._opened_sights = None
            self._close_above()
        if sights is not None:
            sights.close()
        if vectors is not None:
            vectors.close()
        return vectors is not None

    def _places_above(self) -> list[Workspace]:
        if not self._looks_above:
            return []
        return workspaces_above(self.home, self.root / self._only, home_folder(self._settings["store.home"]))

    def _close_above(self) -> None:
        while self._opened_above:
            self._opened_above.popitem()[1].close()

    @property
    def _vectors(self) -> WorkspaceVectors:
        with self._opening:
            if self._opened_vectors is None:
                from findling.service.index.embeddings import WorkspaceVectors

                self._opened_vectors = WorkspaceVectors(self._files, self._settings, self._models)
            return self._opened_vectors

    @property
    def _sights(self) -> WorkspaceSights:
        with self._opening:
            if self._opened_sights is None:
                from findling.service.index.views import WorkspaceSights

                self._opened_sights = WorkspaceSights(self._files, self._settings, self._vectors.meaning)
            return self._opened_sights

    def _must_be_indexed(self) -> None:
        self._files.let_go_if_replaced()
        if not self._files.exists:
            raise NotIndexedError(f"{self.root} is not indexed", hint=f"findling index {self.root}")


@lru_cache(maxsize=64)
def _has_items(folder: Path, versions: object) -> bool:
    """Whether a workspace may hold items, as long as its files are the same: opening a store takes 1.5 ms."""
    return has_items(folder)


def _versions(folder: Path) -> tuple[tuple[int, int, int], ...]:
    return tuple([_version(folder / (STORE_FILE + suffix)) for suffix in ("", "-wal")])


def _version(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return status.st_ino, status.st_mtime_ns, status.st_size


class TendedEngine(KeptEngine):
    """The part of an engine that looks after what is opened."""

    def skipped(self) -> list[SkippedPath]:
        """What the latest run left out, and why."""
        self._must_be_indexed()
        return self._files.store.skipped()

    def failed(self) -> list[SkippedPath]:
        """The files that were opened and could not be read, or not all of it (`read-in-part`), and why."""
        from findling.service.upkeep.checks import failures

        return failures(self.skipped(), self._resources())

    def check(self) -> list[Check]:
        """Examine the workspace: is every part there, sound, and in step with the others?"""
        from findling.domain.reports import Check
        from findling.service.upkeep.checks import check_workspace

        with suppress(StoreDamagedError):  # the first of the findings
            self._must_be_indexed()
        return [
            Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")
            for name, detail, problem, hint in check_workspace(self._files, self._vectors)
        ]

    def compact(self, *, full: bool = False) -> CompactReport:
        """Give unused space back; `full` rewrites everything. Searches go on meanwhile. Raises as `index` does."""
        from findling.service.upkeep.compaction import compact

        self._must_be_indexed()
        return compact(self._files, self._vectors, self._settings, full=full)

    def repair(self) -> IndexReport:
        """Rebuild the legs from the truth, and what else can be."""
        from findling.service.index.recovery import repair

        self._must_be_indexed()
        return repair(self._files, self._vectors)

    @abstractmethod
    def _resources(self) -> Iterator[Resource]:
        """All resources of the index."""
