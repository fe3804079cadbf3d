"""Themes of a workspace: what it is about, over what a caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from findling.domain.values import changed

if TYPE_CHECKING:
    from findling.domain.results import SearchAnswer, ThemesAnswer
    from findling.service.engine.exact_answers import Ready
    from findling.service.index.index import Index
    from findling.service.workspace.scope import Asking, Names


class WorkspaceThemes:
    """Groups of passages that name the same things. `scope` is the part of the root that was opened."""

    def __init__(self, opened: Index, scope: str, ready: Ready) -> None:
        self._opened, self._scope, self._ready = opened, scope, ready

    def top(self, limit: int = 20, **asking: Unpack[Asking]) -> ThemesAnswer:
        """The themes with most documents, each with its names and a summary.

        With `refresh` the index first absorbs what has changed on disk. Raises InvalidValueError for a limit below 1,
        NotIndexedError when there is nothing to search.
        """
        from findling.pipelines.lookup.themes import themes

        notes = self._ready(**asking)
        answer = self._opened.read(asking.get("principals"), notes, themes, limit, below=self._scope)
        return changed(answer, degraded=(*notes, *answer.degraded)) if notes else answer

    def passages(self, name: str, limit: int = 10, *, principals: Names = None) -> SearchAnswer:
        """The best passages of the theme that a passage or a document belongs to. Raises as `Engine.fetch` does."""
        from findling.pipelines.lookup.themes import theme_passages

        notes = self._ready(principals=principals)
        answer = self._opened.read(principals, notes, theme_passages, name, limit, below=self._scope)
        return changed(answer, degraded=(*notes, *answer.degraded)) if notes else answer
