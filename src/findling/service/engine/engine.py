"""The engine: everything findling does, for every face that people and programs use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.ports import SkippedPath
from findling.domain.queries import SearchRequest
from findling.domain.reports import Progress
from findling.domain.resources import Resource
from findling.domain.results import Degradation, Explanation, Hit, SearchAnswer
from findling.pipelines.answer.search import search
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.engine.services import WorkspaceServices
from findling.service.index.index import Index
from findling.service.index.refresh import DiskIndex
from findling.service.settings.profiles import plan_of
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.backends import backend_at
from findling.service.workspace.scope import Scoped, is_below, placed, prepared, timings_for, told
from findling.service.workspace.workspace import Workspace, has_items, home_folder, locate, workspaces_above

if TYPE_CHECKING:
    from findling.domain.reports import IndexReport
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.content.memories import WorkspaceMemories
    from findling.service.engine.client import LocalClient as Viewer  # as users know it
    from findling.service.index.documents import FetchedDocument
    from findling.text.query.parser import Parsed

__all__ = ["Engine", "open_engine"]


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


class Engine(WorkspaceServices):
    """One workspace, opened: index into it, search in it, look after it. Use it as a context manager.

    Engines for several parts of a root, and under several settings, may share one opened index.
    """

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        opened: Index | None = None,
        *,
        looks_above: bool = True,
    ) -> None:
        """An index that is opened already must agree with the settings on how legs are opened."""
        super().__init__(opened or Index(workspace, settings), settings)
        self.workspace, self.scope = workspace, workspace.scope
        self._looks_above = looks_above
        self._lone = None if looks_above else self
        self._disk = DiskIndex(self._files, settings, workspace, self.opened.legs)
        self._plan_of = cache(partial(plan_of, settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files; closing twice is fine."""
        self.opened.close()

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
        request: SearchRequest | str | Scoped,
        *,
        refresh: bool = True,
        on_progress: Progress | None = None,
        notes: Sequence[Degradation] = (),
        **options: Any,
    ) -> SearchAnswer:
        """Answer a question, which may be prepared; options are the fields of SearchRequest.

        With `refresh`, a first search indexes and every later one first takes in what has changed on disk. `notes` are
        those of an earlier `refresh`. The owner finds the items of the folders above, too, unless the request has a
        cursor. Raises NotIndexedError when there is nothing to search and `refresh` is off.
        """
        scoped = request if isinstance(request, Scoped) else self.prepare(request, **options)
        asked = scoped.request
        started = time.perf_counter()
        notes = [*notes, *self._ready(refresh, on_progress, asked.principals)]
        refreshed_ms = round((time.perf_counter() - started) * 1000, 3)
        above = self._asked_above(asked)
        if above:
            from findling.service.engine.parent_items import to_be_fused, with_items_above

            asked = to_be_fused(asked)
        answer = self.answer(asked, notes, scoped.parsed)
        timings = {"refresh": refreshed_ms, **answer.timings_ms}
        answer = replace(told(scoped, answer), timings_ms=timings_for(asked.principals, timings))
        return with_items_above(answer, scoped, self, above) if above else answer

    def answer(self, asked: SearchRequest, notes: list[Degradation], parsed: Parsed | None = None) -> SearchAnswer:
        """Answer a request that was prepared, from the index as it is; `notes` are told with the answer."""
        lines = self._settings["search.snippet_lines"]
        return self.opened.read(
            asked.principals, notes, search, asked, parsed=parsed, snippet_lines=lines, degraded=notes
        )

    def search_items(self, request: SearchRequest) -> SearchAnswer:
        """Answer whoever has asked another workspace, from the index as it is; what its files miss is not told."""
        self.opened.require()
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

        scoped = self.prepare(request, **options)
        asked = scoped.request
        notes = self._ready(refresh, on_progress, asked.principals)
        above = self._asked_above(replace(asked, cursor=""))

        def here() -> Explanation:
            return self.opened.read(asked.principals, notes, explain, asked, name, self.scope, degraded=notes)

        if not above:
            return here()
        from findling.service.engine.parent_items import explained_with

        return explained_with(here, name, scoped, self, above)

    def fetch(self, name: str, *, context: int = 0, principals: tuple[str, ...] | None = None) -> FetchedDocument:
        """A document, or the passage of it that a name stands for, with what is known about it.

        `name` is as for `explain`. Raises NotFoundError when there is no such thing in the index.
        """
        from findling.service.index.documents import fetch

        self._ready(False, None)
        try:
            return self.opened.read(principals, [], fetch, name, context=context, below=self.scope)
        except NotFoundError:
            above = self.above() if principals is None else ()
            if not above:
                raise
            from findling.service.engine.parent_items import fetch_item

            return fetch_item(name, context, above)

    def passages(self, ids: Sequence[str], *, principals: tuple[str, ...] | None = None) -> dict[str, str]:
        """The whole texts of hits by their ids, without those that are not there."""
        from findling.service.index.documents import passages

        self.opened.require()
        return self.opened.read(principals, [], passages, ids)

    def similar(self, name: str, limit: int = 10, *, principals: tuple[str, ...] | None = None) -> SearchAnswer:
        """What is most like a document, by its meaning or by its words. Raises as `fetch` does."""
        from findling.pipelines.lookup.similar import similar

        self._ready(False, None)
        return self.opened.read(principals, [], similar, name, limit, below=self.scope)

    def suggest(
        self, text: str, limit: int = 10, *, principals: tuple[str, ...] | None = None
    ) -> tuple[Completion, ...]:
        """How a text that is being typed may go on."""
        from findling.pipelines.lookup.suggest import suggest

        self._ready(False, None)
        return self.opened.read(principals, [], suggest, text, limit)

    def as_caller(self, *principals: str) -> Viewer:
        """The workspace as these principals may see it. Raises InvalidValueError for what is no principal."""
        from findling.service.engine.client import LocalClient

        return LocalClient(self, principals, reads_files=False)

    def status_for(self, principals: tuple[str, ...] | None) -> dict[str, Any]:
        """What a caller may know of the status: the owner everything, others how much there is that they may see."""
        if principals is None:
            return {**vars(self.status())}
        from findling.service.upkeep.checks import visible_counts

        self.opened.require()
        return self.opened.read(principals, [], visible_counts)

    def ls(self, prefix: str = "", *, principals: tuple[str, ...] | None = None) -> Iterator[Resource]:
        """The resources of the index in order of their ids, or those at and below a path."""
        is_everywhere = not prefix.strip("/.")
        below = "/".join(part for part in (self.scope, prefix.strip("/")) if part and part != ".")
        self.opened.require()
        resources = self.opened.read(principals, [], _resources)
        return (one for one in resources if is_below(one.path, below) or (is_everywhere and not one.path))

    def resource_id(self, name: str) -> str:
        """The id of the resource that a name stands for, see `fetch`. Raises NotFoundError when there is none."""
        from findling.pipelines.lookup.explain import find_document

        self.opened.require()
        return find_document(self._files.store, name, self.scope)[0].resource.rid

    # Sharing what is opened

    def alone(self) -> Engine:
        """The same opened index without the items of the folders above. It is not to be closed."""
        if self._lone is None:
            self._lone = Engine(self.workspace, self._settings, self.opened, looks_above=False)
        return self._lone

    def above(self) -> list[Engine]:
        """The workspaces of the folders above that hold items, the nearest first. They are not to be closed."""
        return [
            Engine(place, self._settings, self.opened.above(place, self._settings), looks_above=False)
            for place in self._places_above()
            if self.opened.is_open_above(place.folder) or _has_items(place.folder, backend_at(place.folder).version())
        ]

    def holds(self, rid: str) -> bool:
        """Whether there is a resource with this id."""
        return self._files.store.document(rid) is not None

    def group_of(self, hit: Hit, by: str, *, principals: tuple[str, ...] | None = None) -> str:
        """The group of a hit. One that is gone since it was found is known by its id."""
        from findling.pipelines.answer.grouping import group_of

        fields: dict[str, str] = {}
        if by == "thread" and hit.type == "chat":
            with suppress(NotFoundError):
                fields = dict(self.fetch(hit.rid, principals=principals).fields)
        return group_of(Resource(rid=hit.rid, type=hit.type, fields=fields), by)

    @property
    def subject(self) -> Path:
        """What is indexed, or will be: the root, or the part of it that was asked for, which may be one file."""
        return self._disk.subject()

    @property
    def asked(self) -> Path:
        """What was opened: the root, or a folder or file of it."""
        return self.root / (self.workspace.only or self.scope)

    def prepare(self, request: SearchRequest | str, **options: Any) -> Scoped:
        """A request as the legs are asked: with its plan, and limited to the part of the root that was opened."""
        return prepared(request, options, self._settings, self.scope, self._plan_of)

    def asked_as(self, request: SearchRequest) -> SearchRequest:
        """The request of `prepare`."""
        return self.prepare(request).request

    def question(self, request: SearchRequest | Scoped) -> str:
        """What is asked, of which index and under which settings: whoever asks the same is answered the same."""
        settings = [(name, self._settings[name]) for name in self._settings if self._settings.origin(name) != "default"]
        scoped = request if isinstance(request, Scoped) else self.prepare(request)
        return repr((self.home, settings, scoped.request))

    def state(self) -> object:
        """Something that is another one as soon as anything has changed that answers depend on."""
        self._files.let_go_if_replaced()
        store = self._files.store
        # The numbers tell every change of content and rights; the files also one of the glossary, and of vectors.
        folders = [self.home, *[place.folder for place in self._places_above()]]
        versions = [backend_at(folder).version() for folder in folders]
        return store.get_meta("store_id"), store.seq(), store.relations_version(), *versions

    @property
    def memories(self) -> WorkspaceMemories:
        """What was remembered."""
        from findling.service.content.memories import WorkspaceMemories

        def search(request: SearchRequest) -> SearchAnswer:
            return self.alone().search(request, refresh=False)

        def above() -> dict[str, WorkspaceMemories]:
            return {str(one.root): one.memories for one in self.above()}

        return WorkspaceMemories(self.writer, search, above=above)

    # Inside

    def _asked_above(self, asked: SearchRequest) -> Sequence[Engine]:
        """The workspaces above whose items answer a request: the owner's, whose page is the first and names no path."""
        is_theirs = asked.principals is None and not asked.cursor and not asked.filters.path
        return self.above() if is_theirs else ()

    def _places_above(self) -> list[Workspace]:
        if not self._looks_above:
            return []
        return workspaces_above(self.home, self.root / self.workspace.only, home_folder(self._settings["store.home"]))

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
        self.opened.require()
        behind = self._files.level_leg()
        if not self.is_indexed() and self._disk.is_begun() and not missing and behind is None:
            missing = "the first index run has not been completed; files may be missing"
        if principals is not None:
            return []
        notes = [Degradation(what=missing, fix="findling index")] if missing else []
        return [*self.notices(), *notes, *([behind] if behind is not None else [])]


def _resources(legs: Retrievers) -> Iterator[Resource]:
    return legs.store.resources()


@lru_cache(maxsize=64)
def _has_items(folder: Path, versions: object) -> bool:
    """Whether a workspace may hold items, as long as its files are the same: opening a store takes 1.5 ms."""
    return has_items(folder)
