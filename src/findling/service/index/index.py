"""An opened index: it hands out readers, and gives its one writer the legs to write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from findling.domain.backends import KEYWORD, lazy_names
from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    LockedError,
    NotIndexedError,
    ProviderError,
    ReadOnlyError,
    ReplacedError,
    StoreDamagedError,
)
from findling.domain.results import Degradation
from findling.service.index.index_files import OpenedWorkspace
from findling.service.workspace.workspace import Workspace, home_folder

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.domain.queries import Rephraser
    from findling.pipelines.indexing.fanout import Legs
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.pipelines.retrieve.vector_retrieval import Meaning
    from findling.service.index.embeddings import WorkspaceVectors
    from findling.service.index.lazy_legs import LazyLeg
    from findling.service.index.model_choice import ModelTable
    from findling.service.index.views import Seen, WorkspaceSights
    from findling.service.settings.settings import Settings

_Answer = TypeVar("_Answer")
_Given = ParamSpec("_Given")

_WARM_UP = "what is this about"

_CHANGING = Degradation(what="files are being indexed; passages that have just gone are missing", fix="ask again")

_MOST_BESIDE = 16
"""Other workspaces that stay open beside one: each keeps some ten files open, and a process may have 1,024."""


class Index:
    """The index of one workspace, which engines for parts of its root share. May be used by several threads."""

    def __init__(self, workspace: Workspace, settings: Settings, models: ModelTable | None = None) -> None:
        """Indexes with the same table of models share them."""
        self.root = workspace.root
        self._models = models
        self._settings = settings
        self.files = OpenedWorkspace(
            workspace.folder,
            unit=settings["keyword.unit"],
            subject=workspace.subject,
            before_first_write=partial(_settle, workspace, settings),
            auto_bytes=settings["snapshot.auto_bytes"],
            vectors=settings["store.vectors"],
        )
        self._opening = threading.RLock()
        self._vectors: WorkspaceVectors | None = None
        self._views: WorkspaceSights | None = None
        self._lazy: dict[str, LazyLeg[Any]] = {}
        self._rephrasers: list[Rephraser | None] = []
        self._above: dict[Path, Index] = {}

    # Reading

    def require(self) -> None:
        """Raises NotIndexedError when there is no index; one that another process has replaced is opened anew."""
        self.files.let_go_if_replaced()
        if not self.files.exists:
            raise NotIndexedError(f"{self.root} is not indexed", hint=f"findling index {self.root}")

    def at(self, principals: tuple[str, ...] | None = None) -> Retrievers:
        """The index as these principals see it now, the owner without any; nothing in it is exchanged afterwards.

        It writes nothing. What it lacks are its wishes, which the writer may fulfil behind the search.
        """
        from findling.pipelines.retrieve.legs import Retrievers

        self.require()
        wishes, seen = dict[Any, bool](), None if principals is None else self.views.seen(tuple(principals))
        store = self.files.store.pinned() if seen is None else seen.store
        return Retrievers(
            store if seen is None else seen.visible(),
            self.files.leg if seen is None else seen.leg,
            partial(self._meaning, store, wishes, seen),
            leg=partial(self._leg, store, seen),
            rephraser=self._rephraser if seen is None else None,
            wishes=wishes,
            state=seen and seen.state,
        )

    def read(
        self,
        principals: tuple[str, ...] | None,
        notes: list[Degradation],
        verb: Callable[Concatenate[Retrievers, _Given], _Answer],
        *args: _Given.args,
        **options: _Given.kwargs,
    ) -> _Answer:
        """The answer of a verb to what principals may see.

        Another one is given, twice at most, where the legs turn out to be damaged, which is mended and noted, where
        another process has replaced the index, and where a wish could be fulfilled without waiting for anybody. It is
        noted where passages go faster than they are read, and nothing stands in their place.
        """
        is_second = False
        for is_last in (False, False, True):
            legs = None
            try:
                legs = self.at(principals)
                answer = verb(legs, *args, **options)
            except (CorruptError, ReplacedError) as error:
                if is_last or isinstance(error, StoreDamagedError):
                    raise
                if isinstance(error, CorruptError) and legs is not None:  # else a file went as it was opened
                    self._mend(error, legs, principals, notes)
                continue
            is_short = is_second and not is_last and principals is None and not notes
            if is_short and (legs.wishes or {}).get(KEYWORD):
                notes.append(_CHANGING)
            elif is_second or not self._fulfil(legs, notes if principals is None else []):
                break
            is_second = True
        return answer

    def _fulfil(self, legs: Retrievers, notes: list[Degradation]) -> bool:
        """Bring up what an answer lacked, unless somebody else is writing; whether another one would have more.

        A limited caller learns nothing of what is wrong with a leg.
        """
        wishes = legs.wishes or {}
        # A note says already what the answer may lack.
        if wishes.pop(KEYWORD, None) is not None and legs.state is None and not notes:
            behind = self.files.level_leg()
            notes += [behind] if behind is not None else []
            return True
        gains = self._vectors is not None and self._vectors.level(wishes, notes)
        if legs.state is not None:
            return gains or legs.state != self.views.state()
        for leg in list(self._lazy.values()):
            gains = leg.level_soon() or gains
            late = leg.lateness()
            notes += [late] if late is not None and late not in notes else []
        return gains

    def _mend(
        self, damage: CorruptError, legs: Retrievers, principals: tuple[str, ...] | None, notes: list[Degradation]
    ) -> None:
        """Rebuild what this process has open: damage inside a file shows only to a query, and tells not its leg."""
        if principals is None:
            notes.append(Degradation(what=self.files.mend_leg(damage)))
            self._rebuild_others()
            return
        self.views.discard(legs.keyword)  # a limited caller is not told of it
        with suppress(DiskFullError, LockedError, ReadOnlyError):
            self._rebuild_others()

    def _rebuild_others(self) -> None:
        with self.files.leveling():
            self.vectors.rebuild()
            for leg in self._lazy.values():
                leg.rebuild_if_open()

    def _meaning(self, store: TruthStore, wishes: dict[Any, bool], seen: Seen | None) -> Meaning:
        at_hand = self.vectors.meaning(store, wishes)
        return at_hand if seen is None else seen.limited(at_hand)

    def _leg(self, store: TruthStore, seen: Seen | None, name: str) -> Any:
        sight = () if seen is None else (seen.sight.numbers, seen.sight.latest)
        return self.lazy(name).at_hand(store, *sight)

    def _rephraser(self) -> Rephraser | None:
        """The language model that puts the owner's questions in other words; raises as `open_rephraser` does."""
        with self._opening:
            if not self._rephrasers:
                from findling.service.index.rephrasing import open_rephraser  # only a weak first round needs it

                self._rephrasers.append(open_rephraser(self._settings, self.files.folder))
            return self._rephrasers[0]

    # Opening

    @property
    def vectors(self) -> WorkspaceVectors:
        """The vectors and models of the workspace."""
        with self._opening:
            if self._vectors is None:
                from findling.service.index.embeddings import WorkspaceVectors

                self._vectors = WorkspaceVectors(self.files, self._settings, self._table())
            return self._vectors

    @property
    def views(self) -> WorkspaceSights:
        """The readers of callers with limited rights."""
        with self._opening:
            if self._views is None:
                from findling.service.index.views import WorkspaceSights

                self._views = WorkspaceSights(self.files, self._settings)
            return self._views

    def lazy(self, name: str) -> Any:
        """A leg that is made when it is wanted."""
        with self._opening:
            if name not in self._lazy:
                from findling.service.index.lazy_legs import lazy_leg  # only patterns and names need one

                self._lazy[name] = lazy_leg(self.files, name)
            return self._lazy[name]

    @property
    def lacks_leg(self) -> bool:
        """Whether a search of this process has missed a leg that is made when it is wanted."""
        return any(leg.was_asked for leg in self._lazy.values())

    def level_wanted(self) -> None:
        """Bring up the legs that searches have missed, and offer legs to other hosts, unless somebody is writing."""
        at = self.files.store.pinned() if self.files.exists else None
        for name in lazy_names(self.files.backend.legs):
            self.lazy(name).level_if_due(at)
        self.files.offer_legs()

    def level_all(self) -> None:
        """Bring the legs that every search asks in step with the truth."""
        self.require()
        self.files.level_leg()
        self.vectors.level_all()

    def _table(self) -> ModelTable:
        from findling.service.index.model_choice import ModelTable

        with self._opening:
            self._models = self._models or ModelTable()
            return self._models

    def legs(self) -> Legs:
        """All legs that are written with the truth, in step with it. The caller holds the lock."""
        from findling.pipelines.indexing.fanout import Legs

        return Legs(self.files.store, self.files.sound_leg(), *self.vectors.writable(), turn=self.files.queue.host_lock)

    def is_level(self) -> bool:
        """Whether all legs of `legs` are in step; a keyword leg that was not is now. The caller holds the lock."""
        store = self.files.store
        if self.files.keyword_seq() != store.seq():
            self.files.sound_leg()
        return self.has_level_instants()

    def has_level_instants(self) -> bool:
        """Whether instant vectors, if any are wanted, are in step with the truth.

        A leg in step is not opened for that, which costs more than all the rest of a run that finds nothing to do.
        """
        if not self._settings["semantic.instant"]:
            return True
        from findling.models.local.instant import InstantEmbedder

        store = self.files.store
        try:
            state = self.files.vectors.state(store.get_meta("store_id") or "", InstantEmbedder.fingerprint)
        except (CorruptError, LockedError, ProviderError):
            return False
        return state.get("seq", 0) == store.seq()

    def above(self, place: Workspace, settings: Settings) -> Index:
        """The index of a workspace above or beside, which is closed with this one; of many, the caller closes it."""
        with self._opening:
            index = self._above.get(place.folder) or self._made_beside(place, settings)
            if len(self._above) < _MOST_BESIDE:
                self._above[place.folder] = index
            return index

    def _made_beside(self, place: Workspace, settings: Settings) -> Index:
        return Index(place, settings, self._table())

    def is_open_above(self, folder: Path) -> bool:
        """Whether the index in a folder above is open."""
        return folder in self._above

    def warm_up(self, notes: list[Degradation]) -> dict[str, float]:
        """Load the legs and the model; how many seconds each of them took. Raises NotIndexedError, CorruptError."""
        times: dict[str, float] = {}
        started = time.perf_counter()
        self.require()
        behind = self.files.level_leg()
        notes += [behind] if behind is not None else []
        self.files.leg.size()
        times["keyword_load"] = time.perf_counter() - started
        started = time.perf_counter()
        meaning = self.vectors.level_all()
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

    def loaded(self) -> dict[str, bool]:
        """The parts in memory: the keyword leg, vectors, a model."""
        vectors, model = self._vectors.loaded() if self._vectors is not None else (False, False)
        return {"keyword": self.files.exists, "vectors": vectors, "model": model}

    def unload(self) -> bool:
        """Let vectors and models go, which come back when they are needed; tells whether there were any."""
        with self._opening:
            opened: tuple[Any, ...] = (self._views, self._vectors)
            self._views = self._vectors = None
            above, self._above = self._above, {}
        for one in (*opened, *above.values()):
            if one is not None:
                one.close()
        return opened[1] is not None

    def close(self) -> None:
        """Release files; closing twice is fine."""
        self.unload()
        for leg in self._lazy.values():
            leg.close()
        self.files.close()


def _settle(workspace: Workspace, settings: Settings) -> list[Degradation]:
    from findling.service.workspace.workspace_folders import settle

    return settle(workspace, home_folder(settings["store.home"]))
