"""The content of a workspace besides files, and the upkeep of its index; each part is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, StoreDamagedError
from findling.service.index.index import Index
from findling.service.index.refresh import UNSURE
from findling.service.workspace.scope import is_below
from findling.service.workspace.writer_queue import WriterQueue

if TYPE_CHECKING:
    from findling.domain.ports import SkippedPath
    from findling.domain.reports import Check, IndexReport, Status
    from findling.domain.resources import Resource
    from findling.domain.results import Degradation
    from findling.pipelines.indexing.embedding_run import RefineProgress, RefineReport
    from findling.service.content.chats import WorkspaceChats
    from findling.service.content.glossary import WorkspaceGlossary
    from findling.service.content.items import WorkspaceItems
    from findling.service.index.permissions import WorkspacePermissions
    from findling.service.index.writing import WorkspaceWriter
    from findling.service.settings.settings import Settings
    from findling.service.upkeep.compaction import CompactReport
    from findling.service.upkeep.snapshots import WorkspaceSnapshots

__all__ = ["WorkspaceServices"]


class WorkspaceServices:
    """An opened index and everything that is done to it as a whole, whichever part of its root is searched."""

    def __init__(self, opened: Index, settings: Settings) -> None:
        self.opened = opened
        self.home, self.root = opened.files.folder, opened.root
        self._settings = settings
        self._files = opened.files

    @property
    def queue(self) -> WriterQueue:
        """The writers of this index in this process."""
        return self._files.queue

    # Content

    @property
    def writer(self) -> WorkspaceWriter:
        """What puts resources that are not files into the workspace."""
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
        """The words that mean the same here, and what may become one of them."""
        from findling.service.content.glossary import WorkspaceGlossary

        return WorkspaceGlossary(self._files, self._settings)

    @property
    def permissions(self) -> WorkspacePermissions:
        """Who may see what."""
        from findling.service.index.permissions import WorkspacePermissions

        return WorkspacePermissions(self._files, self.root, self.opened.views.sight)

    @property
    def snapshots(self) -> WorkspaceSnapshots:
        """States of the workspace that were kept, and can be had back."""
        from findling.service.upkeep.snapshots import WorkspaceSnapshots

        return WorkspaceSnapshots(self._files, self._settings)

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

    def notices(self) -> list[Degradation]:
        """What is to be told since an index was made, or made anew; a search tells it by itself."""
        return self._files.take_notices()

    def forget_everything(self) -> None:
        """Delete the workspace's folder; the indexed files are not touched."""
        self._files.delete()

    # Looking after it

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
        self.opened.require()
        return self.opened.vectors.refine(cpu_share=cpu_share, on_progress=on_progress, should_stop=should_stop)

    def stop_refining(self) -> bool:
        """End the process that has passages read in the background; tells whether there was one."""
        self.opened.require()
        return self.opened.vectors.stop()

    def reading(self) -> dict[str, Any]:
        """How far the model has come: `meaning` of the status alone, which costs less."""
        self.opened.require()
        return self.opened.vectors.account()

    def status(self) -> Status:
        """What the workspace holds. Raises NotIndexedError when there is none."""
        from findling.service.upkeep.checks import workspace_status

        self.opened.require()
        return workspace_status(self._files, self.opened.vectors, self.root)

    def skipped(self) -> list[SkippedPath]:
        """What the latest run left out, and why."""
        self.opened.require()
        return self._files.store.skipped()

    def failed(self) -> list[SkippedPath]:
        """The files that were opened and could not be read, or not all of it (`read-in-part`), and why."""
        from findling.service.upkeep.checks import failures

        return failures(self.skipped(), self._files.store.resources())

    def check(self) -> list[Check]:
        """Examine the workspace: is every part there, sound, and in step with the others?"""
        from findling.service.upkeep.checks import check_workspace

        with suppress(StoreDamagedError):  # the first of the findings
            self.opened.require()
        return list(check_workspace(self._files, self.opened.vectors))

    def compact(self, *, full: bool = False) -> CompactReport:
        """Give unused space back; `full` rewrites everything. Searches go on meanwhile. Raises as `index` does."""
        from findling.service.upkeep.compaction import compact

        self.opened.require()
        return compact(self._files, self.opened.vectors, self._settings, full=full)

    def repair(self) -> IndexReport:
        """Rebuild the legs from the truth, and what else can be."""
        from findling.service.index.recovery import repair

        self.opened.require()
        return repair(self._files, self.opened.vectors)

    def has_written(self) -> bool:
        """Whether this process was the last one to write the index."""
        return self._files.queue.was_last()
