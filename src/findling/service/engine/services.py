"""Content and upkeep of a workspace; each part is loaded when it is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from findling.domain.errors import InvalidValueError, LockedError, NotFoundError, PathNotFoundError, StoreDamagedError
from findling.domain.results import Degradation
from findling.domain.values import changed
from findling.service.index.index import Index
from findling.service.index.refresh import UNSURE, DiskIndex
from findling.service.settings.settings import Settings, plan_of
from findling.service.workspace.scope import HOME, Asking, Names, is_below, told_share
from findling.service.workspace.workspace import Workspace, home_folder
from findling.service.workspace.writer_queue import WriterQueue

if TYPE_CHECKING:
    from findling.domain.ports import SkippedPath, TruthStore
    from findling.domain.reports import Check, IndexReport, Progress, RelatedAnswer, Status
    from findling.domain.resources import Resource
    from findling.pipelines.indexing.embedding_run import RefineProgress, RefineReport
    from findling.service.content.chats import WorkspaceChats
    from findling.service.content.glossary import WorkspaceGlossary
    from findling.service.content.items import WorkspaceItems
    from findling.service.content.situating import WorkspaceSituating
    from findling.service.engine.exact_answers import WorkspaceExact
    from findling.service.engine.theme_answers import WorkspaceThemes
    from findling.service.index.writing import WorkspaceWriter
    from findling.service.upkeep.compaction import CompactReport
    from findling.service.upkeep.snapshots import WorkspaceSnapshots


class WorkspaceServices:
    """An opened index: its files are indexed, its other content written, its state examined and repaired."""

    def __init__(
        self, place: Workspace, settings: Settings, opened: Index | None = None, reach: int = HOME, names: Names = None
    ) -> None:
        """An index that is opened already must agree with the settings; `names` are those a server's caller may ask."""
        self.workspace, self.scope, self.opened = place, place.scope, opened or Index(place, settings)
        self.home, self.root = self.opened.files.folder, self.opened.root
        self._settings, self._files = settings, self.opened.files
        self._disk = DiskIndex(self._files, settings, place, self.opened.legs, self.opened.is_level)
        self._top, self._homes = self.root / place.only, home_folder(settings["store.home"])
        self.asked = self.root / (place.only or place.scope)
        self.label, self._reach, self._names = place.label, reach, names
        self._siblings: dict[tuple[int, Names], Self] = {}
        self._plan_of, self._is_extra = cache(partial(plan_of, settings)), False

    @property
    def queue(self) -> WriterQueue:
        """The writers of this index in this process."""
        return self._files.queue

    # Indexing

    def is_indexed(self) -> bool:
        """Whether an indexing run of the opened part has been completed."""
        return self._disk.is_complete(self._files.store.pinned() if self._files.exists else None)

    @property
    def subject(self) -> Path:
        """The folder or file that is indexed, or will be: the root, or the part of it that was asked for."""
        return self._disk.subject()

    def index(
        self, *, on_progress: Progress | None = None, rebuild: bool = False, reason: str = "as asked"
    ) -> IndexReport:
        """Index everything below the root that is new, changed or gone; `rebuild` starts from nothing.

        The first event of progress names the `reason`. Raises LockedError when another process keeps writing,
        ReadOnlyError and DiskFullError when the workspace cannot be written, CorruptError when only `rebuild` helps.
        """
        report = self._disk.index(on_progress=on_progress, rebuild=rebuild, reason=reason)
        if rebuild and any(map(self._files.store.get_meta, ("situated", "model_names"))):
            self.situating.restore()
            self.situating.names.restore()
        return report

    def preview(self) -> tuple[list[str], list[SkippedPath]]:
        """The paths that an indexing run would index, and those that it would leave out."""
        return self._disk.preview()

    def refresh(
        self,
        *,
        on_progress: Progress | None = None,
        principals: tuple[str, ...] | None = None,
        question: str | None = None,
    ) -> list[Degradation]:
        """Index what has changed on disk, all of it the first time; returns what stands in the way of a full answer.

        With a `question`, and more to index than a person waits for, only what a first answer to it needs; for a
        caller with limited rights always all of it, since what others see must not decide what this caller finds. Such
        a caller also learns nothing of what stands in the way. Raises NotIndexedError when there is nothing to search.
        """
        missing, at = self._disk.refresh(on_progress, question if principals is None else None)
        return self._notes(missing, principals, at)

    def check_path(self, name: str, principals: tuple[str, ...] | None = None) -> None:
        """Raise PathNotFoundError before a first index run for a name that is neither on disk nor in the index.

        An index run cannot find it, and may take minutes. A caller with limited rights waits: the time must not say
        which paths there are.
        """
        if not name or principals is not None or self.is_indexed():
            return
        path, _, line = name.removeprefix("file:").rpartition(":")
        path = path if path and line.isdecimal() else name.removeprefix("file:")
        # Not `Path.exists`, which raises OSError for a name that is too long.
        if any(os.path.exists(self.root / below / path) for below in ("", self.scope)):  # noqa: PTH110
            return
        if self._files.exists:
            from findling.domain.queries import Filters
            from findling.pipelines.lookup.document_names import find_document

            with suppress(NotFoundError):
                store = self._files.store
                if any(store.matching(Filters(within=path))) or find_document(store, name, self.scope):
                    return
        raise PathNotFoundError(f"there is no {path}", hint="name a folder or file that exists")

    def take_left_open(self) -> bool:
        """Whether a quick search has left files out that nobody has indexed since, told once."""
        left_open, self._files.is_left_open = self._files.is_left_open, False
        return left_open

    def is_still(self) -> bool:
        """Whether the files are watched, and certainly as they were when a search of this process last looked.

        It costs 0.1 ms, however many files there are. False says nothing: only a look can tell then.
        """
        return self._disk.is_still()

    def share(self) -> dict[str, int]:
        """The number of indexed `files`, and `of` how many, while the first run is not complete; empty afterwards."""
        return self._disk.share()

    def _fresh(
        self,
        query: str | None = None,
        *,
        principals: Names = None,
        refresh: bool = False,
        on_progress: Progress | None = None,
        notes: Sequence[Degradation] = (),
    ) -> list[Degradation]:
        """Refresh the index, if that is wanted; the reasons why an answer may be incomplete, also those from before."""
        if not notes and refresh and self._settings["search.refresh"] == "auto":
            return self.refresh(on_progress=on_progress, principals=principals, question=query)
        return list(notes) or self._notes("", principals)

    def _notes(self, missing: str, who: tuple[str, ...] | None, at: TruthStore | None = None) -> list[Degradation]:
        """The reasons why an answer may be incomplete, besides what a refresh reports as `missing`.

        `at` is the truth as it was read. A caller with limited rights gets none: they may be about what is hidden.
        """
        self.opened.require()
        at = at or self._files.store.pinned()
        behind = self._files.level_leg(at)
        if not self._disk.is_complete(at) and self._disk.is_begun() and not missing and behind is None:
            missing = f"the first index run has not been completed; {told_share(self.share())}"
        if who is not None:
            return []
        notes = [Degradation(what=missing, fix="findling index")] if missing else []
        left_out = self._left_out()
        return [*self.notices(), *notes, *[note for note in (behind, left_out) if note is not None]]

    def _left_out(self) -> Degradation | None:
        """The reason why the one file that was asked for is not indexed, if it is not."""
        path = self.workspace.only or self.scope
        return self._rule_at(path) if path and (self.root / path).is_file() else None

    def _rule_at(self, path: str, concerns: Callable[[str], bool] = lambda path: True) -> Degradation | None:
        """The rule by which a file or folder is not indexed, or the files in it that are too large; else `None`.

        `concerns` says of such a file whether an answer could have held it.
        """
        from findling.service.engine.exact_answers import rule_at

        return rule_at(self.root, path or self.workspace.only, self.skipped(), concerns)

    def notices(self) -> list[Degradation]:
        """Notes about a new or rebuilt index, each once; a search gives them by itself."""
        return self._files.take_notices()

    # Content

    @property
    def writer(self) -> WorkspaceWriter:
        """The writer of resources that are not files."""
        from findling.service.index.writing import WorkspaceWriter

        return WorkspaceWriter(self._files, self._settings, self.opened.legs)

    @property
    def items(self) -> WorkspaceItems:
        """Decisions, knowledge, tasks, directives, and types of your own."""
        from findling.service.content.items import WorkspaceItems

        return WorkspaceItems(self.writer, self._settings.types)

    @property
    def chats(self) -> WorkspaceChats:
        """Threads of messages."""
        from findling.service.content.chats import WorkspaceChats

        return WorkspaceChats(self.writer)

    @property
    def glossary(self) -> WorkspaceGlossary:
        """Words that mean the same here, and candidates for them."""
        from findling.service.content.glossary import WorkspaceGlossary

        return WorkspaceGlossary(self._files, self._settings)

    @property
    def situating(self) -> WorkspaceSituating:
        """Sentences of a language model about chunks."""
        from findling.service.content.situating import WorkspaceSituating

        self.opened.require()
        return WorkspaceSituating(self.writer)

    @property
    def exact(self) -> WorkspaceExact:
        """Complete answers: all lines that match a pattern, all files that a glob names."""
        from findling.service.engine.exact_answers import WorkspaceExact

        zoekt = self._settings["exact.url"]
        ready = partial(self._fresh, refresh=True)
        return WorkspaceExact(self.opened, self.scope, ready, self._rule_at, self.check_path, zoekt)

    def related(
        self, of: str, to: str = "", *, limit: int = 10, hops: int = 4, **asking: Unpack[Asking]
    ) -> RelatedAnswer:
        """Find the paths between two things, each step with the passage that proves it; of one thing, its surroundings.

        A thing is a name, a title, a path or an id. With `refresh` the index first absorbs what has changed on disk.
        Raises InvalidValueError for what is no thing, NotIndexedError when there is nothing to search.
        """
        from findling.pipelines.lookup.related import related

        notes = self._fresh(**asking)
        answer = self.opened.read(
            asking.get("principals"), notes, related, of, to, limit=limit, hops=hops, below=self.scope
        )
        return changed(answer, degraded=(*notes, *answer.degraded)) if notes else answer

    @property
    def themes(self) -> WorkspaceThemes:
        """Groups of passages that name the same things."""
        from findling.service.engine.theme_answers import WorkspaceThemes

        return WorkspaceThemes(self.opened, self.scope, self._fresh)

    @property
    def snapshots(self) -> WorkspaceSnapshots:
        """Saved states of the workspace, which can be restored."""
        from findling.service.upkeep.snapshots import WorkspaceSnapshots

        return WorkspaceSnapshots(self._files, self._settings)

    def add(self, items: Iterable[tuple[Resource, str]]) -> int:
        """Upsert resources that are not files, each with its text; returns how many changed."""
        return self.writer.put_texts(items)

    def forget(self, paths: Sequence[str]) -> int:
        """Drop files, and everything below folders, from the index; returns the number of dropped resources.

        The files themselves stay, and come back with the next indexing unless they are excluded.
        """
        prefixes = [path.strip("/") for path in paths]
        if "" in prefixes or "." in prefixes:
            raise InvalidValueError("an empty path would forget everything", hint="findling forget --everything")
        from findling.service.index.permissions import forget_rights

        self.opened.require()
        doomed = [r.rid for r in self._files.store.resources() if any(is_below(r.path, prefix) for prefix in prefixes)]
        with self._files.writing():
            legs = self.opened.legs()
            changes = legs.write((), doomed)
            legs.commit()
            # The next search must not take the absence of these files for the state of the disk.
            self._files.store.set_folders(UNSURE)
            self._files.store.drop_vectors()
            forget_rights(self._files, doomed)
            return len(changes)

    def forget_everything(self) -> None:
        """Delete the workspace's folder; the indexed files are not touched."""
        self._files.delete()

    # Upkeep

    def refine(
        self,
        *,
        cpu_share: float = 1.0,
        on_progress: Callable[[RefineProgress], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        on_waiting: Callable[[], None] | None = None,
        gently: bool = False,
    ) -> RefineReport:
        """Have the model embed every passage that it lacks; a run that is stopped continues with the next one.

        While another process refines, a run with `on_waiting` calls that once, waits, and gives the progress of the
        other one, which ends after its batch if it runs `gently`. Raises ModelError when there is no model or it fails,
        else LockedError for another process.
        """
        self.opened.require()
        run = partial(self.opened.vectors.refine, cpu_share=cpu_share, on_progress=on_progress, should_stop=should_stop)
        if on_waiting is None:
            return run(gently=gently)
        from findling.service.index.embeddings import WANTED
        from findling.stores.lock import taken

        with taken(self._files.backend.lock(WANTED), 1.0):  # another one that waits may hold it as well
            return self._refine_after_others(run, on_waiting, on_progress, should_stop)

    def _refine_after_others(
        self,
        run: Callable[[], RefineReport],
        on_waiting: Callable[[], None],
        on_progress: Callable[[RefineProgress], None] | None,
        should_stop: Callable[[], bool],
    ) -> RefineReport:
        """Run as soon as no other process refines, and give the progress of the other one until then."""
        from findling.pipelines.indexing.embedding_run import RefineProgress, RefineReport

        started, at_first = time.monotonic(), -1
        while True:
            try:
                return run()
            except LockedError:  # after a second
                account, seconds = self.opened.vectors.account(), time.monotonic() - started
            covered, chunks, speed = account["read"], account["of"], account["speed"]
            if should_stop():
                return RefineReport(covered=covered, chunks=chunks, seconds=seconds)
            if at_first < 0:
                at_first = covered
                on_waiting()
            if on_progress is not None:
                on_progress(RefineProgress(covered, chunks, seconds, covered - at_first, speed=speed))

    def stop_refining(self) -> bool:
        """End the process that embeds in the background; returns whether there was one."""
        self.opened.require()
        return self.opened.vectors.stop()

    def reading(self) -> dict[str, Any]:
        """The progress of the model: `meaning` of the status alone, which costs less."""
        self.opened.require()
        return self.opened.vectors.account()

    def status(self) -> Status:
        """The contents of the workspace. Raises NotIndexedError when there is none."""
        from findling.service.upkeep.checks import workspace_status

        self.opened.require()
        return workspace_status(self._files, self.opened.vectors, self.root)

    def skipped(self) -> list[SkippedPath]:
        """The paths that the latest run left out, with reasons."""
        self.opened.require()
        return self._files.store.skipped()

    def failed(self) -> list[SkippedPath]:
        """The files that could not be read, or only in part (`read-in-part`), with reasons."""
        from findling.service.upkeep.checks import failures

        return failures(self.skipped(), self._files.store.resources())

    def check(self) -> list[Check]:
        """Examine the workspace: is every part there, sound, and in step with the others?"""
        from findling.service.upkeep.checks import check_workspace

        with suppress(StoreDamagedError):  # the first of the findings
            self.opened.require()
        return list(check_workspace(self._files, self.opened.vectors))

    def compact(self, *, full: bool = False) -> CompactReport:
        """Release unused space while searches continue; `full` rewrites everything. Raises as `index` does."""
        from findling.service.upkeep.compaction import compact

        self.opened.require()
        return compact(self._files, self.opened.vectors, self._settings, full=full)

    def repair(self) -> IndexReport:
        """Rebuild the legs from the truth, and everything else that can be rebuilt."""
        from findling.service.index.recovery import repair

        self.opened.require()
        return repair(self._files, self.opened.vectors)
