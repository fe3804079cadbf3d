"""The engine: everything findling does, for every face that people and programs use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from findling.domain.errors import CorruptError, InvalidValueError, NotFoundError, ReplacedError, StoreDamagedError
from findling.domain.ports import SkippedPath
from findling.domain.queries import SearchRequest
from findling.domain.reports import Progress
from findling.domain.resources import Resource
from findling.domain.results import Degradation, Explanation, SearchAnswer
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.fanout import Legs
from findling.pipelines.retrieve.candidates import Retrievers
from findling.service.engine.keeping import TendedEngine
from findling.service.engine.parts import WorkspaceParts
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.model_table import ModelTable
from findling.service.index.refresh import UNSURE, DiskIndex
from findling.service.settings.options import scoring
from findling.service.settings.profiles import plan_of
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.scope import is_below, placed, prepared, timings_for, told
from findling.service.workspace.workspace import Workspace, home_folder, locate

if TYPE_CHECKING:
    from findling.domain.reports import IndexReport, Status
    from findling.domain.sight import Sight
    from findling.pipelines.indexing.embedding_run import RefineProgress, RefineReport
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.engine.viewer import Viewer
    from findling.service.index.documents import FetchedDocument
    from findling.service.index.embeddings import WorkspaceVectors
    from findling.service.index.views import WorkspaceSights

__all__ = ["Engine", "open_engine"]

_Answer = TypeVar("_Answer")


def open_engine(
    path: str | Path | None = None, *, workspace: str | None = None, settings: Settings | None = None
) -> Engine:
    """Open the workspace that `path` belongs to; nothing is written before something is indexed.

    Without a path it is the one that the project file names, or the current folder. Raises PathNotFoundError when the
    path is not there, UntrustedSettingError when a project file leads out of its project; as `load_settings` does.
    """
    settings = settings or load_settings("." if path is None else path)
    settings, path = placed(settings, path, workspace or "")
    name = workspace or settings["workspace.name"] or settings["context.workspace"]
    home = home_folder(settings["store.home"])
    found = locate(path, home=home, name=name, place=settings["store.place"])
    if os.fsencode(found.root).decode(errors="replace") != str(found.root):
        raise InvalidValueError(f"the name of {found.root} is not UTF-8", hint="rename the folder")
    return Engine(found, settings)


class Engine(TendedEngine, WorkspaceParts):
    """One workspace, opened: index into it, search in it, look after it. Use it as a context manager."""

    def __init__(self, workspace: Workspace, settings: Settings, models: ModelTable | None = None) -> None:
        """Engines with the same table of models share them."""
        self.home, self.root, self.scope, self._only, *_ = workspace
        self._settings = settings
        self._files = OpenedWorkspace(
            self.home,
            scoring=scoring(settings),
            unit=settings["keyword.unit"],
            subject=workspace.subject,
            before_first_write=partial(_settle, workspace, settings),
            auto_bytes=settings["snapshot.auto_bytes"],
        )
        self._models = models or ModelTable()
        self._opening = threading.RLock()
        self._opened_vectors: WorkspaceVectors | None = None
        self._opened_sights: WorkspaceSights | None = None
        self._opened_above: dict[Path, Self] = {}
        self._looks_above = True
        self._disk = DiskIndex(self._files, settings, workspace, self._legs)
        self._plan_of = cache(partial(plan_of, settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files; closing twice is fine."""
        if self._opened_sights is not None:
            self._opened_sights.close()
        if self._opened_vectors is not None:
            self._opened_vectors.close()
        with self._opening:
            self._close_above()
        self._files.close()

    # Indexing

    def is_indexed(self) -> bool:
        """Whether an indexing run of what was opened has been completed."""
        return self._disk.is_complete()

    def index(
        self, *, on_progress: Progress | None = None, rebuild: bool = False, reason: str = "as asked"
    ) -> IndexReport:
        """Take in everything below the root that is new, changed or gone; `rebuild` starts from nothing.

        The `reason` is told when it starts. Raises LockedError when another process keeps writing, ReadOnlyError and
        DiskFullError when the workspace cannot be written, CorruptError when it is damaged: then only `rebuild` helps.
        """
        return self._disk.index(on_progress=on_progress, rebuild=rebuild, reason=reason)

    def preview(self) -> tuple[list[str], list[SkippedPath]]:
        """What an indexing run would find: the paths it would index, and what it would leave out."""
        return self._disk.preview()

    def add(self, items: Iterable[tuple[Resource, str]]) -> int:
        """Upsert resources that are not files, each with its text; returns how many changed."""
        return self.writer.put_texts(items)

    def forget(self, paths: Sequence[str]) -> int:
        """Drop files, and everything below folders, from the index; returns how many resources went.

        The files themselves stay, and come back with the next indexing unless they are excluded.
        """
        prefixes = [path.strip("/") for path in paths]
        if "" in prefixes or "." in prefixes:
            raise InvalidValueError("an empty path would forget everything", hint="findling forget --everything")
        from findling.service.index.permissions import forget_rights

        doomed = [r.rid for r in self._resources() if any(is_below(r.path, prefix) for prefix in prefixes)]
        with self._files.writing():
            legs = self._legs()
            changes = legs.write((), doomed)
            legs.commit()
            # The next search must not take the absence of these files for the state of the disk.
            self._files.store.set_folders(UNSURE)
            self._files.store.drop_vectors()
            forget_rights(self.home, self._files.store, doomed)
            return len(changes)

    def notices(self) -> list[Degradation]:
        """What is to be told since an index was made, or made anew; a search tells it by itself."""
        return self._files.take_notices()

    def forget_everything(self) -> None:
        """Delete the workspace's folder; the indexed files are not touched."""
        self._files.delete()

    def refine(
        self,
        *,
        cpu_share: float = 1.0,
        on_progress: Callable[[RefineProgress], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> RefineReport:
        """Have the model read every passage that it has not read yet; it can be stopped at any time and goes on later.

        Raises ModelError when there is no model or it fails, LockedError when another process is at it already.
        """
        self._must_be_indexed()
        return self._vectors.refine(cpu_share=cpu_share, on_progress=on_progress, should_stop=should_stop)

    def stop_refining(self) -> bool:
        """End the process that has passages read in the background; tells whether there was one."""
        self._must_be_indexed()
        return self._vectors.stop()

    # Searching

    def refresh(
        self, *, on_progress: Progress | None = None, principals: tuple[str, ...] | None = None
    ) -> list[Degradation]:
        """Index what has changed on disk, all of it the first time; returns what stands in the way of a full answer.

        A caller with limited rights is told nothing. Raises NotIndexedError when there is nothing to search.
        """
        return self._notes(self._disk.refresh(on_progress), principals)

    def search(
        self,
        request: SearchRequest | str,
        *,
        refresh: bool = True,
        on_progress: Progress | None = None,
        notes: Sequence[Degradation] = (),
        **options: Any,
    ) -> SearchAnswer:
        """Answer a question; options are the fields of SearchRequest.

        With `refresh`, a first search indexes and every later one first takes in what has changed on disk. `notes` are
        those of an earlier `refresh`. The owner finds the items of the folders above, too, unless the request has a
        cursor. Raises NotIndexedError when there is nothing to search and `refresh` is off.
        """
        scoped = prepared(request, options, self._settings, self.scope, self._plan_of)
        asked = scoped.request
        started = time.perf_counter()
        notes = [*notes, *self._ready(refresh, on_progress, asked.principals)]
        refreshed_ms = round((time.perf_counter() - started) * 1000, 3)
        above = self._asked_above(asked)
        if above:
            from findling.service.engine.parent_items import to_be_fused, with_items_above

            asked = to_be_fused(asked)
        answer = self.answer(asked, notes)
        timings = {"refresh": refreshed_ms, **answer.timings_ms}
        answer = replace(told(scoped, answer), timings_ms=timings_for(asked.principals, timings))
        return with_items_above(answer, scoped, self, above) if above else answer

    def answer(self, asked: SearchRequest, notes: list[Degradation]) -> SearchAnswer:
        """Answer a request that was prepared, from the index as it is; `notes` are told with the answer."""
        lines = self._settings["search.snippet_lines"]
        return self._ask(asked.principals, notes, lambda legs: search(legs, asked, snippet_lines=lines, degraded=notes))

    def search_items(self, request: SearchRequest) -> SearchAnswer:
        """Answer whoever has asked another workspace, from the index as it is; what its files miss is not told."""
        self._must_be_indexed()
        self._files.level_leg()
        return self.answer(self.asked_as(request), [])

    def explain(
        self,
        request: SearchRequest | str,
        name: str,
        *,
        refresh: bool = True,
        on_progress: Progress | None = None,
        **options: Any,
    ) -> Explanation:
        """Why a document is in the answer to a question, or what keeps it out.

        `name` is the id of a hit or a resource, or a path, also with a line as in `notes.md:12`. Raises NotFoundError
        when there is no such thing in the index.
        """
        from findling.pipelines.lookup.explain import explain

        scoped = prepared(request, options, self._settings, self.scope, self._plan_of)
        asked = scoped.request
        notes = self._ready(refresh, on_progress, asked.principals)
        above = self._asked_above(replace(asked, cursor=""))

        def ask(legs: Retrievers) -> Explanation:
            return explain(legs, asked, name, self.scope, degraded=notes)

        if not above:
            return self._ask(asked.principals, notes, ask)
        from findling.service.engine.parent_items import explained_with

        return explained_with(lambda: self._ask(None, notes, ask), name, scoped, self, above)

    def fetch(self, name: str, *, context: int = 0, principals: tuple[str, ...] | None = None) -> FetchedDocument:
        """A document, or the passage of it that a name stands for, with what is known about it.

        `name` is as for `explain`. Raises NotFoundError when there is no such thing in the index.
        """
        from findling.service.index.documents import fetch

        self._ready(False, None)
        try:
            return self._ask(principals, [], lambda legs: fetch(legs, name, context=context, below=self.scope))
        except NotFoundError:
            above = self.above() if principals is None else ()
            if not above:
                raise
            from findling.service.engine.parent_items import fetch_item

            return fetch_item(name, context, above)

    def passages(self, ids: Sequence[str], *, principals: tuple[str, ...] | None = None) -> dict[str, str]:
        """The whole texts of hits by their ids, without those that are not there."""
        from findling.service.index.documents import passages

        self._must_be_indexed()
        return self._ask(principals, [], lambda legs: passages(legs, ids))

    def similar(self, name: str, limit: int = 10, *, principals: tuple[str, ...] | None = None) -> SearchAnswer:
        """What is most like a document, by its meaning or by its words. Raises as `fetch` does."""
        from findling.pipelines.lookup.similar import similar

        self._ready(False, None)
        return self._ask(principals, [], lambda legs: similar(legs, name, limit, below=self.scope))

    def suggest(
        self, text: str, limit: int = 10, *, principals: tuple[str, ...] | None = None
    ) -> tuple[Completion, ...]:
        """How a text that is being typed may go on."""
        from findling.pipelines.lookup.suggest import suggest

        self._ready(False, None)
        return self._ask(principals, [], lambda legs: suggest(legs, text, limit))

    def as_caller(self, *principals: str) -> Viewer:
        """The workspace as these principals may see it. Raises InvalidValueError for what is no principal."""
        from findling.service.engine.viewer import Viewer

        return Viewer(self, principals)

    # Looking after it

    def status(self) -> Status:
        """What the workspace holds. Raises NotIndexedError when there is none."""
        from findling.service.upkeep.checks import workspace_status

        self._must_be_indexed()
        return workspace_status(self._files, self._vectors, self.root)

    def status_for(self, principals: tuple[str, ...] | None) -> dict[str, Any]:
        """What a caller may know of the status: the owner everything, others how much there is that they may see."""
        if principals is None:
            return {**vars(self.status())}
        from findling.service.upkeep.checks import visible_counts

        self._must_be_indexed()
        return self._ask(principals, [], visible_counts)

    def ls(self, prefix: str = "", *, principals: tuple[str, ...] | None = None) -> Iterator[Resource]:
        """The resources of the index in order of their ids, or those at and below a path."""
        is_everywhere = not prefix.strip("/.")
        below = "/".join(part for part in (self.scope, prefix.strip("/")) if part and part != ".")
        self._must_be_indexed()
        resources = self._ask(principals, [], lambda legs: legs.store.resources())
        return (one for one in resources if is_below(one.path, below) or (is_everywhere and not one.path))

    def resource_id(self, name: str) -> str:
        """The id of the resource that a name stands for, see `fetch`. Raises NotFoundError when there is none."""
        from findling.pipelines.lookup.explain import find_document

        self._must_be_indexed()
        return find_document(self._files.store, name, self.scope)[0].resource.rid

    # Inside

    def _legs(self) -> Legs:
        """All legs that are written with the truth, in step with it. The lock is held."""
        return Legs(self._files.store, self._files.sound_leg(), *self._vectors.writable())

    def _resources(self) -> Iterator[Resource]:
        self._must_be_indexed()
        return self._files.store.resources()

    def _asked_above(self, asked: SearchRequest) -> Sequence[Self]:
        """The workspaces above whose items answer a request: the owner's, whose page is the first and names no path."""
        is_theirs = asked.principals is None and not asked.cursor and not asked.filters.path
        return self.above() if is_theirs else ()

    def _ready(
        self, refresh: bool, on_progress: Progress | None, principals: tuple[str, ...] | None = None
    ) -> list[Degradation]:
        """Bring the index up to date as far as that is wanted and possible; what stands in the way of a full answer."""
        if refresh and self._settings["search.refresh"] == "auto":
            return self.refresh(on_progress=on_progress, principals=principals)
        return self._notes("", principals)

    def _notes(self, missing: str, principals: tuple[str, ...] | None) -> list[Degradation]:
        """What stands in the way of a full answer, besides what a refresh reports as `missing`.

        Somebody with limited rights is not told: it may be about what they must not know of.
        """
        self._must_be_indexed()
        behind = self._files.level_leg()
        if not self.is_indexed() and self._disk.is_begun() and not missing and behind is None:
            missing = "the first index run has not been completed; files may be missing"
        if principals is not None:
            return []
        notes = [Degradation(what=missing, fix="findling index")] if missing else []
        return [*self.notices(), *notes, *([behind] if behind is not None else [])]

    def _ask(
        self, principals: tuple[str, ...] | None, notes: list[Degradation], ask: Callable[[Retrievers], _Answer]
    ) -> _Answer:
        """What is answered from what a caller searches: everything, or legs that hold what anybody else may see.

        A leg that turns out to be damaged is made anew, and a note is taken of it. When another process makes the index
        anew meanwhile, the new one is asked.
        """
        try:
            return self._ask_once(principals, notes, ask)
        except ReplacedError:
            self._must_be_indexed()
            return self._ask_once(principals, notes, ask)

    def _ask_once(
        self, principals: tuple[str, ...] | None, notes: list[Degradation], ask: Callable[[Retrievers], _Answer]
    ) -> _Answer:
        if principals is not None:
            return self._sights.ask(principals, ask)
        legs = partial(Retrievers, meaning=lambda: self._vectors.meaning())
        try:
            return ask(legs(self._files.store, self._files.leg))
        except StoreDamagedError:
            raise
        except CorruptError as damage:
            # Damage inside a file of the leg shows only when a query comes upon it.
            notes.append(Degradation(what=self._files.mend_leg(damage)))
            with self._files.writing():
                self._vectors.rebuild()
            return ask(legs(self._files.store, self._files.leg))

    def _sight(self, principals: Iterable[str]) -> Sight:
        return self._sights.sight(principals)


def _settle(workspace: Workspace, settings: Settings) -> list[Degradation]:
    from findling.service.workspace.locations import settle

    return settle(workspace, home_folder(settings["store.home"]))
