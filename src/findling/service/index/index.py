"""An opened index: it hands out readers, and gives its one writer the legs to write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from findling.domain.errors import (
    CorruptError,
    LockedError,
    NotIndexedError,
    ProviderError,
    ReplacedError,
    StoreDamagedError,
)
from findling.domain.results import Degradation
from findling.service.index.index_files import OpenedWorkspace, Reader
from findling.service.workspace.workspace import Workspace, home_folder

if TYPE_CHECKING:
    from findling.domain.queries import Rephraser
    from findling.models.ports import Embedder
    from findling.pipelines.indexing.fanout import Legs
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.service.index.embeddings import WorkspaceVectors
    from findling.service.index.exact_index import ExactIndex
    from findling.service.index.graph_index import GraphIndex
    from findling.service.index.model_choice import ModelTable
    from findling.service.index.views import WorkspaceSights
    from findling.service.settings.settings import Settings

__all__ = ["Index"]

_Answer = TypeVar("_Answer")
_Given = ParamSpec("_Given")

_WARM_UP = "what is this about"

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
            legs=settings["search.legs"],
        )
        self._opening = threading.RLock()
        self._vectors: WorkspaceVectors | None = None
        self._views: WorkspaceSights | None = None
        self._exact: ExactIndex | None = None
        self._graph: GraphIndex | None = None
        self._rephrasers: list[Rephraser | None] = []
        self._above: dict[Path, Index] = {}

    # Reading

    def require(self) -> None:
        """Raises NotIndexedError when there is no index; one that another process has replaced is opened anew."""
        self.files.let_go_if_replaced()
        if not self.files.exists:
            raise NotIndexedError(f"{self.root} is not indexed", hint=f"findling index {self.root}")

    def reader(self, principals: tuple[str, ...] | None = None) -> Reader:
        """The reader of these principals, kept as long as the state is the same; of the owner without any."""
        from findling.pipelines.retrieve.legs import Retrievers

        self.require()
        if principals is not None:
            return self.views.reader(principals)
        lacking: dict[Embedder, bool] = {}
        meaning = lambda: self.vectors.meaning(lacking)  # noqa: E731
        graph = lambda: self.graph.at_hand()  # noqa: E731
        rephraser = lambda: self.rephraser  # noqa: E731
        retrievers = Retrievers(
            self.files.store, self.files.leg, meaning, lambda: self.exact, graph=graph, rephraser=rephraser
        )
        return Reader(retrievers, self._mend, lacking)

    def read(
        self,
        principals: tuple[str, ...] | None,
        notes: list[Degradation],
        verb: Callable[Concatenate[Retrievers, _Given], _Answer],
        *args: _Given.args,
        **options: _Given.kwargs,
    ) -> _Answer:
        """The answer of a verb to what principals may see.

        The verb is asked again when its reader turns out to be damaged, which is mended and noted, when another process
        has replaced the index, when vectors were behind, and when something was written that a limited caller may see
        in one leg and not in the other. The reader itself writes nothing: the writer does, between two readers.
        """
        for is_last in (False, False, True):
            reader = None
            try:
                reader = self.reader(principals)
                answer = verb(reader.retrievers, *args, **options)
            except StoreDamagedError:
                raise
            except (CorruptError, ReplacedError) as error:
                if is_last:
                    raise
                if isinstance(error, CorruptError) and reader is not None:  # else a file went as it was opened
                    notes += reader.mend(error)
                continue
            # A limited caller learns nothing of what is wrong with a leg.
            gains = self._vectors is not None and self._vectors.level(
                reader.lacking, notes if principals is None else []
            )
            if self._graph is not None and principals is None:
                gains = self._graph.level_soon() or gains
                late = self._graph.lateness()
                notes += [late] if late is not None and late not in notes else []
            if is_last or (not gains and (reader.state is None or reader.state == self.views.state())):
                break
        return answer

    def _mend(self, damage: CorruptError) -> list[Degradation]:
        # Damage inside a file of a leg shows only when a query comes upon it.
        mended = Degradation(what=self.files.mend_leg(damage))
        self._mend_others()
        return [mended]

    def _mend_others(self) -> None:
        """Rebuild the legs beside the keyword leg that this process has open: damage does not tell its leg."""
        with self.files.leveling():
            self.vectors.rebuild()
            if self._graph is not None:
                self._graph.rebuild_if_open()

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

                meaning = lambda lacking: self.vectors.meaning(lacking)  # noqa: E731
                graph = lambda *sight: self.graph.at_hand(*sight)  # noqa: E731
                self._views = WorkspaceSights(
                    self.files, self._settings, meaning, lambda: self.exact, graph, self._mend_others
                )
            return self._views

    @property
    def exact(self) -> ExactIndex:
        """The exact leg, which may not be there yet."""
        with self._opening:
            if self._exact is None:
                from findling.service.index.exact_index import ExactIndex  # only patterns need it

                self._exact = ExactIndex(self.files)
            return self._exact

    @property
    def rephraser(self) -> Rephraser | None:
        """The language model that puts the owner's questions in other words; raises as `open_rephraser` does."""
        with self._opening:
            if not self._rephrasers:
                from findling.service.index.rephrasing import open_rephraser  # only a weak first round needs it

                self._rephrasers.append(open_rephraser(self._settings, self.files.folder))
            return self._rephrasers[0]

    @property
    def graph(self) -> GraphIndex:
        """The graph leg, which may not be there yet."""
        with self._opening:
            if self._graph is None:
                from findling.service.index.graph_index import GraphIndex  # only questions with names need it

                self._graph = GraphIndex(self.files)
            return self._graph

    @property
    def lacks_leg(self) -> bool:
        """Whether a search of this process has missed a leg that is made when it is wanted."""
        return any(leg is not None and leg.was_asked for leg in (self._exact, self._graph))

    def level_wanted(self) -> None:
        """Bring up the legs that searches have missed, unless somebody else is writing."""
        self.exact.level_if_due()
        self.graph.level_if_due()

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
        if self.files.backend.keyword_seq(store.get_meta("store_id") or "", self.files.unit) != store.seq():
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
            state = self.files.vectors.vector_state(store.get_meta("store_id") or "", InstantEmbedder.fingerprint)
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
        for leg in (self._exact, self._graph):
            if leg is not None:
                leg.close()
        self.files.close()


def _settle(workspace: Workspace, settings: Settings) -> list[Degradation]:
    from findling.service.workspace.workspace_folders import settle

    return settle(workspace, home_folder(settings["store.home"]))
