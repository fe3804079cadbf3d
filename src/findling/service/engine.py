"""The engine: everything findling does, for every face that people and programs use."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    InvalidValueError,
    LockedError,
    NotIndexedError,
    ReadOnlyError,
    WorkerError,
)
from findling.domain.ports import IndexProgress, Progress, SkippedPath
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Document, Resource
from findling.domain.results import SearchAnswer
from findling.pipelines.freshness import IndexOptions, is_fresh, remember
from findling.pipelines.searching import search
from findling.service.opened import LOCK_PATIENCE_S, OpenedWorkspace
from findling.service.options import chunk_plan, index_options, scoring
from findling.service.settings import Settings, load_settings
from findling.service.workspace import Workspace, home_folder, locate
from findling.text.analysis import FINGERPRINT

if TYPE_CHECKING:
    from findling.domain.reports import Check, IndexReport, Status
    from findling.pipelines.surveying import Survey

__all__ = ["Engine", "open_engine"]


_UNSURE = {"": -1}
"""Times of folders that none can have: the next search looks closely."""

_GLANCE_S = 0.2


def open_engine(path: str | Path = ".", *, workspace: str | None = None, settings: Settings | None = None) -> Engine:
    """Open the workspace that `path` belongs to; nothing is written before something is indexed.

    Raises PathNotFoundError when the path is not there, and the errors of `load_settings`.
    """
    settings = settings or load_settings(path)
    name = workspace or settings["workspace.name"]
    found = locate(path, home=home_folder(settings["store.home"]), name=name)
    if os.fsencode(found.root).decode(errors="replace") != str(found.root):
        raise InvalidValueError(f"the name of {found.root} is not UTF-8", hint="rename the folder")
    return Engine(found, settings)


class Engine:
    """One workspace, opened: index into it, search in it, look after it. Use it as a context manager."""

    def __init__(self, workspace: Workspace, settings: Settings) -> None:
        self.home, self.root, self.scope, self._only = workspace
        self._settings = settings
        self._files = OpenedWorkspace(self.home, scoring=scoring(settings), unit=settings["keyword.unit"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files; closing twice is fine."""
        self._files.close()

    # Indexing

    def is_indexed(self) -> bool:
        """Whether an indexing run has been completed here."""
        self._files.let_go_if_replaced()
        return self._files.exists and self._files.store.get_meta("indexed_at") is not None

    def index(self, *, on_progress: Progress | None = None, rebuild: bool = False) -> IndexReport:
        """Take in everything below the root that is new, changed or gone; `rebuild` starts from nothing.

        Raises LockedError when another process keeps writing, ReadOnlyError and DiskFullError when the workspace
        cannot be written, CorruptError when it is damaged: then only `rebuild` helps.
        """
        if not rebuild:
            with self._files.writing():
                return self._update(on_progress)
        try:
            with self._files.writing():
                # A run that is stopped from here on must not pass for a complete one.
                self._files.store.set_folders(_UNSURE)
                # What no tree can give back stays; only a damaged store is thrown away as a whole.
                from_files = [r.rid for r in self._files.store.resources() if r.rid.startswith("file:")]
                self._files.store.write((), from_files)
                self._files.rebuild_leg()
                return self._update(on_progress)
        except CorruptError:
            with self._files.writing(anew=True):
                return self._update(on_progress)

    def preview(self) -> tuple[list[str], list[SkippedPath]]:
        """What an indexing run would find: the paths it would index, and what it would leave out."""
        from findling.sources.discovery import scan

        paths: list[str] = []
        skipped: list[SkippedPath] = []
        for entry in scan(str(self.root), self._options.rules, self._only):
            if isinstance(entry, SkippedPath):
                skipped.append(entry)
            else:
                paths.append(entry.path)
        return paths, skipped

    def add(self, items: Iterable[tuple[Resource, str]]) -> int:
        """Upsert resources that are not files, each with its text; returns how many changed."""
        from findling.pipelines.documents import make_document
        from findling.sources.extraction.extracted import Extracted

        # Not in this process: a grammar may crash on what it is given.
        plan = chunk_plan(self._settings)._replace(code="patterns")
        documents = (
            make_document(resource, Extracted(text=text, lang=resource.lang or "text"), plan=plan)
            for resource, text in items
        )
        changed = 0
        with self._files.writing():
            store, leg = self._files.store, self._files.sound_leg()
            for batch in _batches(documents, 500):
                changes = store.write(batch)
                leg.apply(changes)
                changed += len(changes)
            leg.commit(store.seq())
            if store.get_meta("indexed_at") is None:
                store.set_meta("indexed_at", repr(time.time()))
        return changed

    def forget(self, paths: Sequence[str]) -> int:
        """Drop files, and everything below folders, from the index; returns how many resources went.

        The files themselves stay, and come back with the next indexing unless they are excluded.
        """
        prefixes = [path.strip("/") for path in paths]
        if "" in prefixes or "." in prefixes:
            raise InvalidValueError("an empty path would forget everything", hint="findling forget --everything")
        doomed = [r.rid for r in self._resources() if any(_is_below(r.path, prefix) for prefix in prefixes)]
        with self._files.writing():
            store, leg = self._files.store, self._files.sound_leg()
            changes = store.write((), doomed)
            leg.apply(changes)
            leg.commit(store.seq())
            # The next search must not take the absence of these files for the state of the disk.
            store.set_folders(_UNSURE)
            return len(changes)

    def forget_everything(self) -> None:
        """Delete the workspace's folder; the indexed files are not touched."""
        self._files.delete()

    # Searching

    def search(
        self, request: SearchRequest | str, *, refresh: bool = True, on_progress: Progress | None = None, **options: Any
    ) -> SearchAnswer:
        """Answer a question; options are the fields of SearchRequest.

        With `refresh`, a first search indexes and every later one first takes in what has changed on disk.
        Raises NotIndexedError when there is nothing to search and `refresh` is off.
        """
        if isinstance(request, str):
            request = SearchRequest(query=request, **options)
        elif options:
            request = replace(request, **options)
        if self.scope:
            request = replace(request, filters=_within(request.filters, self.scope))
        started = time.perf_counter()
        notes = []
        if refresh and self._settings["search.refresh"] == "auto":
            notes.append(self._refresh(on_progress))
        self._must_be_indexed()
        notes.append(self._files.level_leg())
        if not self.is_indexed() and not any(notes):
            notes.append("the first index run has not been completed; files may be missing")
        refreshed_ms = round((time.perf_counter() - started) * 1000, 3)
        try:
            answer = self._answer(request, notes)
        except CorruptError as damage:
            # Damage inside a file of the leg shows only when a query comes upon it.
            answer = self._answer(request, [*notes, self._files.mend_leg(damage)])
        return replace(answer, timings_ms={"refresh": refreshed_ms, **answer.timings_ms})

    # Looking after it

    def status(self) -> Status:
        """What the workspace holds. Raises NotIndexedError when there is none."""
        from findling.domain.reports import Status

        self._must_be_indexed()
        store = self._files.store
        counts = store.counts()
        indexed_at = store.get_meta("indexed_at")
        return Status(
            root=self.root,
            home=self.home,
            resources=counts["resources"],
            chunks=counts["chunks"],
            characters=counts["characters"],
            size_bytes=sum(map(_size, self.home.rglob("*"))),
            seq=store.seq(),
            keyword_seq=self._files.leg.seq(),
            indexed_at=float(indexed_at) if indexed_at else None,
            skipped=dict(Counter(entry.reason for entry in store.skipped())),
            format=store.format,
            analyzer=FINGERPRINT,
        )

    def skipped(self) -> list[SkippedPath]:
        """What the latest run left out, and why."""
        self._must_be_indexed()
        return self._files.store.skipped()

    def failed(self) -> list[SkippedPath]:
        """The files that were opened and could not be read, or not all of it (`read-in-part`), and why."""
        from findling.sources.extraction.extracted import PARTIAL

        failed = [entry for entry in self.skipped() if entry.mtime_ns]
        for resource in self._resources():
            if notes := [resource.fields[name] for name in PARTIAL if name in resource.fields]:
                failed.append(SkippedPath(resource.path or resource.rid, "read-in-part", "; ".join(notes)))
        return sorted(failed)

    def ls(self, prefix: str = "") -> Iterator[Resource]:
        """The resources of the index in order of their ids, or those at and below a path."""
        below = "/".join(part for part in (self.scope, prefix.strip("/")) if part and part != ".")
        return (resource for resource in self._resources() if _is_below(resource.path, below))

    def check(self) -> list[Check]:
        """Examine the workspace: is every part there, sound, and in step with the others?"""
        from findling.domain.reports import Check
        from findling.service.checks import check_workspace

        self._must_be_indexed()
        return [
            Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")
            for name, detail, problem, hint in check_workspace(self._files)
        ]

    def repair(self) -> IndexReport:
        """Rebuild the leg from the truth."""
        from findling.domain.reports import IndexReport

        self._must_be_indexed()
        started = time.monotonic()
        with self._files.writing():
            self._files.rebuild_leg()
        counts = self._files.store.counts()
        seconds = time.monotonic() - started
        return IndexReport(unchanged=counts["resources"], chunks=counts["chunks"], seconds=seconds)

    # Inside

    @property
    def _options(self) -> IndexOptions:
        named = (f"/{self._only}",) if self._only else ()
        # An index that lies inside what it indexes must not take itself in.
        own = (f"/{self.home.relative_to(self.root).as_posix()}/",) if self.home.is_relative_to(self.root) else ()
        return index_options(self._settings, include=named, exclude=own)

    def _must_be_indexed(self) -> None:
        self._files.let_go_if_replaced()
        if not self._files.exists:
            raise NotIndexedError(f"{self.root} is not indexed", hint=f"findling index {self.root}")

    def _resources(self) -> Iterator[Resource]:
        self._must_be_indexed()
        return self._files.store.resources()

    def _answer(self, request: SearchRequest, notes: Sequence[str]) -> SearchAnswer:
        return search(
            self._files.store,
            self._files.leg,
            request,
            unit=self._settings["keyword.unit"],
            snippet_lines=self._settings["search.snippet_lines"],
            degraded=[note for note in notes if note],
        )

    def _survey(self) -> Survey:
        from findling.pipelines.surveying import survey

        return survey(self._files.store, self.root, self._options, self._only)

    def _update(self, on_progress: Progress | None) -> IndexReport:
        """Bring the index up to the state of the disk. The lock is held."""
        from findling.pipelines.indexing import update

        if on_progress is not None:
            on_progress(IndexProgress("scan"))
        files = self._files
        files.store.set_meta("root", str(self.root / self._only))
        return update(files.store, files.sound_leg(), self.root, self._survey(), self._options, on_progress)

    def _remember(self, found: Survey) -> None:
        """Make the next look quick; whoever cannot write now looks closely again next time."""
        with contextlib.suppress(DiskFullError, LockedError, ReadOnlyError), self._files.writing(patience_s=0.0):
            remember(self._files.store, found, found.skipped, self._options)

    def _refresh(self, on_progress: Progress | None) -> str:
        """Take in what has changed on disk; returns what stood in the way, if anything did."""
        if not self.is_indexed():
            deadline = time.monotonic() + LOCK_PATIENCE_S
            while True:
                try:
                    with self._files.writing(0.0 if self._files.exists else _GLANCE_S):
                        self._update(on_progress)
                    return ""
                except LockedError:
                    # Another process is at the first run: what it has committed so far can be searched already.
                    if self._files.exists or time.monotonic() > deadline:
                        return "another process is indexing for the first time; files may be missing"
        if not self.root.exists():
            return f"{self.root} is gone; the answer comes from the index alone"
        if is_fresh(self._files.store, self.root, self._options):
            return ""
        found = self._survey()
        if not found.differs:
            self._remember(found)
            return ""
        waiting = len(found.changed) + len(found.vanished)
        try:
            with self._files.writing(patience_s=0.0):
                self._update(on_progress)
        except LockedError:
            return f"another process is indexing; {waiting} changed files may be missing"
        except (DiskFullError, ReadOnlyError, WorkerError) as error:
            return f"{waiting} changed files may be missing: {error.message}"
        return ""


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process is writing
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _within(filters: Filters, scope: str) -> Filters:
    paths = tuple("/".join((scope, path.strip("/"))) for path in filters.path) or (scope,)
    return replace(filters, path=paths)


def _is_below(path: str, prefix: str) -> bool:
    return prefix in ("", ".") or path == prefix or path.startswith(prefix + "/")


def _batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    iterator = iter(documents)
    while batch := list(islice(iterator, size)):
        yield batch
