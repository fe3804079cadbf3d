"""What keeps a workspace sound: what was left out of it, whether it is in order, and how to put it right."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from findling.domain.errors import StoreDamagedError
from findling.domain.ports import SkippedPath
from findling.domain.resources import Resource
from findling.service.keeping import KeptEngine

if TYPE_CHECKING:
    from findling.domain.reports import Check, IndexReport
    from findling.service.compacting import CompactReport

__all__ = ["TendedEngine"]


class TendedEngine(KeptEngine):
    """The part of an engine that looks after what is opened."""

    def skipped(self) -> list[SkippedPath]:
        """What the latest run left out, and why."""
        self._must_be_indexed()
        return self._files.store.skipped()

    def failed(self) -> list[SkippedPath]:
        """The files that were opened and could not be read, or not all of it (`read-in-part`), and why."""
        from findling.service.accounts import failures

        return failures(self.skipped(), self._resources())

    def check(self) -> list[Check]:
        """Examine the workspace: is every part there, sound, and in step with the others?"""
        from findling.domain.reports import Check
        from findling.service.checks import check_workspace

        with suppress(StoreDamagedError):  # the first of the findings
            self._must_be_indexed()
        return [
            Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")
            for name, detail, problem, hint in check_workspace(self._files, self._vectors)
        ]

    def compact(self, *, full: bool = False) -> CompactReport:
        """Give unused space back; `full` rewrites everything. Searches go on meanwhile. Raises as `index` does."""
        from findling.service.compacting import compact

        self._must_be_indexed()
        return compact(self._files, self._vectors, self._settings, full=full)

    def repair(self) -> IndexReport:
        """Rebuild the legs from the truth, and what else can be."""
        from findling.service.mending import repair

        self._must_be_indexed()
        return repair(self._files, self._vectors)

    @abstractmethod
    def _resources(self) -> Iterator[Resource]:
        """All resources of the index."""
