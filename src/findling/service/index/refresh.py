"""The index of what lies on disk, kept in step with it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    FormatError,
    LockedError,
    ManifestError,
    ReadOnlyError,
    UsageError,
    WorkerError,
)
from findling.domain.ports import SkippedPath, TruthStore
from findling.pipelines.indexing.freshness import TRIED_AGAIN, IndexOptions, first_look, is_fresh, remember, settle
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings, chunk_plan
from findling.service.workspace.scope import is_below, told_differences, told_share, with_part
from findling.service.workspace.workspace import Workspace, home_folder
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S, REFRESH_PATIENCE_S
from findling.sources.files.rule_patterns import Rules

if TYPE_CHECKING:
    from findling.domain.reports import IndexReport, Progress
    from findling.pipelines.indexing.fanout import Legs
    from findling.pipelines.indexing.index_run import Admission
    from findling.pipelines.indexing.reading_order import Patience
    from findling.pipelines.indexing.survey import Survey

UNSURE = {"": -1}
"""Times of folders that none can have: the next search looks closely."""

_PARTS = "parts"
"""The key of the parts of the root that were asked for. An index without it is one of all of the root."""

_EVERYTHING = '[""]'

_FOUND = "found"
"""The key of the number of files that the first run has seen so far."""

_GLANCE_S, _BRIEF_S = 0.2, 0.02
"""Seconds that a search waits for another process: without an index, and with one. Another one indexes a file then."""


def options_of(settings: Settings, root: Path, only: str, *own: Path) -> IndexOptions:
    """Options of an index run below a root; `own` are folders of the index itself, which must not be indexed.

    Nor must the home: it has the texts of all other workspaces. Raises InvalidValueError for a preset that is none.
    """
    named = (f"/{only}",) if only else ()
    kept = dict.fromkeys((*own, home_folder(settings["store.home"]).resolve()))
    inside = [f"/{one.relative_to(root).as_posix()}/" for one in kept if one != root and one.is_relative_to(root)]
    switches = {name: settings[f"index.{name}"] for name in ("hidden", "follow_symlinks", "use_ignore_files")}
    sizes = {name: settings[f"index.{name}"] for name in ("max_file_size", "max_document_size")}
    rules = Rules(
        include=(*settings["index.include"], *named),
        exclude=(*settings["index.exclude"], *inside),
        # What a project includes may be sent to the user's provider.
        untrusted=() if settings.project_file("index.include") is None else settings["index.include"],
        **switches,
        **sizes,
    )
    limits = {name: settings[f"index.{name}"] for name in ("max_text", "batch_bytes", "workers", "max_seconds")}
    quota = tuple(settings[f"quota.{name}"] for name in ("resources", "text", "disk"))
    return IndexOptions(rules, chunk_plan(settings), quota=quota, **limits)


class DiskIndex:
    """The files below one root and what of them is indexed.

    `legs` gives the legs to write, `is_level` whether they lack nothing; the lock is held then.
    """

    def __init__(
        self,
        files: OpenedWorkspace,
        settings: Settings,
        workspace: Workspace,
        legs: Callable[[], Legs],
        is_level: Callable[[], bool],
    ) -> None:
        self._has_files = workspace.has_files
        self._files = files
        self._settings = settings
        self._root, self._only, self._part = workspace.root, workspace.only, workspace.part
        self._legs, self._is_level = legs, is_level

    def index(
        self, *, on_progress: Progress | None = None, rebuild: bool = False, reason: str = "as asked"
    ) -> IndexReport:
        """Index everything below the root that is new, changed or gone; `rebuild` starts from nothing.

        Raises LockedError when another process keeps writing, ReadOnlyError and DiskFullError when the workspace
        cannot be written, CorruptError when it is damaged: then only `rebuild` helps, which puts a damaged store aside;
        ManifestError for a damaged manifest, UsageError when the workspace has no files.
        """
        if not self._takes_files():
            return self._begin_anew(rebuild)
        if not rebuild:
            with self._files.writing():
                return self._update(self._why_first() or reason, on_progress)
        reason = self._why_first() or "every file is to be read again"
        from findling.service.workspace.manifest import read_manifest

        read_manifest(self._files.folder)  # before anything is dropped
        try:
            with self._files.writing(accepts_older=True):
                # A run that is stopped from here on must not pass for a complete one.
                self._files.store.set_folders(UNSURE)
                # What no tree can give back stays.
                from_files = [r.rid for r in self._files.store.resources() if r.rid.startswith("file:")]
                self._files.store.write((), from_files)
                self._files.rebuild_leg()
                return self._update(reason, on_progress)
        except CorruptError:
            # A leg or a file beside it may be what is damaged, and that is no reason to give up the truth.
            if not self._files.is_damaged():
                raise
            with self._files.writing(anew=True):
                return self._update(reason, on_progress)

    def _begin_anew(self, rebuild: bool) -> IndexReport:
        """Put a damaged store of a workspace without files aside; there is nothing else to do for it."""
        from findling.domain.reports import IndexReport
        from findling.service.workspace.host_files import refuse_files_of_others

        if self._files.exists:
            refuse_files_of_others(self._files.folder, self._files.store)
        if not rebuild or not self._files.is_damaged():
            raise UsageError(f"the workspace {self._root.name} has no files to index", hint="findling add")
        with self._files.writing(anew=True):
            return IndexReport()

    def preview(self) -> tuple[list[str], list[SkippedPath]]:
        """The paths that an indexing run would index, and those that it would leave out."""
        if not self._takes_files():
            return [], []
        from findling.sources.files.discovery import scan

        paths: list[str] = []
        skipped: list[SkippedPath] = []
        parts = with_part(self._parts(), self._part)
        for entry in chain.from_iterable(scan(str(self._root), self._options.rules, part) for part in parts):
            if isinstance(entry, SkippedPath):
                skipped.append(entry)
            else:
                paths.append(entry.path)
        return paths, skipped

    def refresh(self, on_progress: Progress | None, question: str | None = None) -> tuple[str, TruthStore | None]:
        """Index what has changed on disk, or what a first answer to a `question` needs; returns what stood in the way.

        Beside it is the truth in which there was nothing to do. One thread works at a time; others find it done.
        """
        self._files.let_go_if_replaced()
        at = self._files.store.pinned() if self._files.exists else None
        if not self._takes_files(at):
            return "", at
        seems_fresh = self._is_fresh(at)
        # A file counts as known before it can be found: what another thread has not finished yet is waited for.
        has_waited = self._files.queue.is_busy
        if seems_fresh and not has_waited:
            return "", at
        with self._files.queue.turn(REFRESH_PATIENCE_S):
            if (seems_fresh or has_waited) and self._is_fresh():
                return "", None
            if self._files.exists and not self._root.exists():
                return f"{self._root} is gone; the answer comes from the index alone", None
            return (self._take_in_changes if self.is_complete() else self._begin)(on_progress, question), None

    def is_complete(self, at: TruthStore | None = None) -> bool:
        """Whether an indexing run has been completed of the part that is asked, in that state of the truth or now."""
        self._files.let_go_if_replaced()
        # What is no file counts as indexed when it is put in, and says nothing about the tree.
        is_surveyed = self._files.exists and (at or self._files.store).get_meta("rules") is not None
        return (is_surveyed and self._part_above(at) is not None) or not self._takes_files(at)

    def is_begun(self) -> bool:
        """Whether a run of the part that is asked has begun; a lone file is the part of its index before any run."""
        return self._files.exists and self._part_above() is not None and self._files.store.get_meta("root") is not None

    def share(self) -> dict[str, int]:
        """The number of indexed files, and `of` how many, while the first run is not complete; empty afterwards."""
        if self.is_complete() or not self._files.exists:
            return {}
        files, found = sum(1 for _ in self._files.store.stamps()), int(self._files.store.get_meta(_FOUND) or 0)
        return {"files": files, "of": max(files, found)} if found else {}

    def subject(self) -> Path:
        """The folder or file that is indexed, or will be: the root, or the part of it that was asked for."""
        try:
            above = self._part_above() if self._files.exists else None
        except CorruptError:  # whoever writes next says so, and may rebuild it
            above = None
        return self._root / (self._part if above is None else above)

    def _begin(self, on_progress: Progress | None, question: str | None) -> str:
        """Carry out the first run; returns what stood in the way."""
        deadline = time.monotonic() + LOCK_PATIENCE_S
        try:
            while writer := self._update_unless_written(self._why_first(), on_progress, question):
                # What the other one has committed so far can be searched already.
                if self._files.exists or time.monotonic() > deadline:
                    return f"{writer} for the first time; {told_share(self.share())}"
        except (FormatError, ManifestError) as error:
            return f"files may be missing: {error.message}; {error.hint}"
        return ""

    def _take_in_changes(self, on_progress: Progress | None, question: str | None) -> str:
        """Bring an index that is not fresh up to date; returns what stood in the way."""
        found = self._survey()
        if not found.differs:
            self._remember(found)
            return ""
        changed, gone = len(found.changed), len(found.vanished)
        missing = f"{changed + gone} changed files may be missing"
        try:
            writer = self._update_unless_written(told_differences(changed, gone), on_progress, question)
        except (DiskFullError, ReadOnlyError, WorkerError) as error:
            return f"{missing}: {error.message}"
        except (FormatError, ManifestError) as error:
            return f"{missing}: {error.message}; {error.hint}"
        # Not after a whole run: files that have just been written count as changed until they have settled.
        if self._files.is_left_open and not writer and (left := len(self._survey().changed)):
            return f"{left:,} changed files are not indexed yet"
        return f"{writer}; {missing}" if writer else ""

    def _update_unless_written(self, reason: str, on_progress: Progress | None, question: str | None) -> str:
        """Bring the index up to the state of the disk; returns who is writing it instead, if somebody is."""
        while True:
            try:
                with self._files.writing(_BRIEF_S if self._files.exists else _GLANCE_S):
                    self._update(reason, on_progress, question)
                return ""
            except LockedError:
                if writer := self._files.queue.writer():
                    return f"{writer} is {self._files.queue.task()}"

    def is_still(self) -> bool:
        """Whether the files are watched, and certainly as they were when a search of this process last looked."""
        looks = self._files.looks
        return looks is not None and self.is_complete() and looks.holds(self._files.store, self._root)

    def _is_fresh(self, at: TruthStore | None = None) -> bool:
        if not self.is_complete(at) or not self._root.exists():
            return False
        files, store = self._files, at or self._files.store
        if not files.has_looked:  # a process that looks once, as a shell command does, watches nothing
            files.has_looked = first_look(store, self._root, self._options)
            return files.has_looked
        if files.looks is None:
            from findling.pipelines.indexing.lasting_look import LastingLooks

            files.looks = LastingLooks()
        return files.looks.is_fresh(store, self._root, self._options)

    def _takes_files(self, at: TruthStore | None = None) -> bool:
        """Whether it has files, or may get them: not when it was made by what is no file, and nobody named a path."""
        self._files.let_go_if_replaced()
        try:
            if not self._has_files or not self._files.exists:
                return self._has_files
            store = at or self._files.store.pinned()
            if self._files.is_followed_elsewhere(store):
                return False
            root, indexed_at = (store.get_meta(key) for key in ("root", "indexed_at"))
        except CorruptError:  # whoever writes next says so, and may rebuild it
            return self._has_files
        return root != "" if root is not None else self._files.subject != "" or indexed_at is None

    @property
    def _options(self) -> IndexOptions:
        return options_of(self._settings, self._root, self._only, self._files.folder)

    def _survey(self) -> Survey:
        from findling.pipelines.indexing.survey import survey

        return survey(self._files.store, self._root, self._options, self._parts())

    def _parts(self, at: TruthStore | None = None) -> tuple[str, ...]:
        """The parts of the root that were asked for so far: none while only things are held that are no files."""
        if self._only:
            return (self._only,)
        if not self._files.exists:
            return ()
        store = at or self._files.store
        kept = store.get_meta(_PARTS)
        if kept == _EVERYTHING:
            return ("",)
        if kept is not None:
            import json  # 3 ms that a search of the whole root saves

            return tuple(json.loads(kept))
        has_files = store.get_meta("rules") is not None or any(True for _ in store.stamps())
        return ("",) if has_files else ()

    def _part_above(self, at: TruthStore | None = None) -> str | None:
        """The part asked for so far that holds the one that is asked."""
        return next((part for part in self._parts(at) if is_below(self._part, part)), None)

    def _ask_for_part(self) -> None:
        """Note that the part is indexed from now on. The lock is held."""
        if self._only or self._part_above() is not None:
            return
        import json

        # A run that is stopped from here on must not pass for a complete one.
        self._files.store.set_folders(UNSURE)
        self._files.store.set_meta(_PARTS, json.dumps(with_part(self._parts(), self._part)))

    def _why_first(self) -> str:
        """Why a run is the first one; nothing when there was one."""
        try:
            if self.is_complete():
                return ""
            return "its first index run was not completed" if self.is_begun() else "it has no index yet"
        except CorruptError:
            return ""

    def _update(self, reason: str, on_progress: Progress | None, question: str | None = None) -> IndexReport:
        """Bring the index up to the state of the disk, or as far as a question needs it. The lock is held."""
        from findling.service.index.recovery import keep_manifest
        from findling.service.workspace.host_files import claim_files
        from findling.service.workspace.manifest import preprocessing_of, quota_of, write_manifest
        from findling.service.workspace.quotas import Allowance

        # The caller sees it in the first event of progress, the operator of a server in its log: nobody without one.
        if (logging := sys.modules.get("logging")) is not None:
            logging.getLogger("findling.indexing").info("indexing %s: %s", self.subject(), reason)
        self._announce(on_progress, reason)
        files = self._files
        subject = str(self._root / self._only if self._only else self._root)
        allowance = Allowance(files.store, files.folder, quota_of(files.folder, self._settings, files.store))
        write_manifest(files.folder, root=subject, preprocessing=preprocessing_of(self._settings))
        keep_manifest(files)
        claim_files(files.folder, files.store)
        files.store.set_meta("root", subject)
        self._ask_for_part()
        begun = None if question is None else self._begin_for(question, on_progress, allowance)
        files.is_left_open = begun is not None
        if begun is not None:
            return begun
        if question is None and (skipped := self._untouched()) is not None and self._is_level():
            return settle(files.store, sum(1 for _ in files.store.stamps()), skipped, on_progress)
        found = self._survey()
        self._note_found(found)
        if not found.differs and self._is_level():
            remember(files.store, found.folders, found.skipped, self._options)
            return settle(files.store, found.unchanged, found.skipped, on_progress)
        from findling.pipelines.indexing.index_run import Update

        return Update(files.store, self._legs(), self._root, found, self._options, on_progress, allowance).run()

    def _announce(self, on_progress: Progress | None, reason: str) -> None:
        if on_progress is not None:
            from findling.domain.reports import IndexProgress

            on_progress(IndexProgress("scan", path=str(self.subject()), reason=reason))

    def _untouched(self) -> list[SkippedPath] | None:
        """The paths that are left out, when nothing can have changed since the last run; else nothing."""
        store = self._files.store
        skipped = store.skipped() if self.is_complete() and is_fresh(store, self._root, self._options) else None
        return skipped if TRIED_AGAIN.isdisjoint(entry.reason for entry in skipped or ()) else None

    def _begin_for(self, question: str, on_progress: Progress | None, allowance: Admission) -> IndexReport | None:
        """Index what a first answer to a question needs; nothing when all can be indexed as quickly."""
        from findling.pipelines.indexing.first_run import begin_run, missing_files

        files, options = self._files, self._options

        def survey(patience: Patience) -> tuple[Survey, bool] | None:
            if self.is_complete():
                return self._survey(), True
            seen = missing_files(files.store, self._root, options, self._parts(), patience)
            if seen is not None:
                self._note_found(seen[0])
            return seen

        return begin_run(files.store, files.sound_leg, self._root, options, question, survey, on_progress, allowance)

    def _note_found(self, found: Survey) -> None:
        """Note how many files there are, until the first run is complete: `share` tells how many are indexed."""
        if not self.is_complete():
            self._files.store.set_meta(_FOUND, str(len(found.changed) + found.unchanged))

    def _remember(self, found: Survey) -> None:
        """Make the next look quick, unless nothing can be written now."""
        with contextlib.suppress(DiskFullError, LockedError, ReadOnlyError), self._files.writing(patience_s=0.0):
            remember(self._files.store, found.folders, found.skipped, self._options)
