"""Complete answers of a workspace: all lines that match, all files that a glob names, all uses of a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, Unpack

from findling.domain.budgets import spending
from findling.domain.values import changed
from findling.service.workspace.scope import is_below

if TYPE_CHECKING:
    from pathlib import Path

    from findling.domain.ports import SkippedPath
    from findling.domain.reports import GlobAnswer, GrepAnswer, GrepRequest, OutlineAnswer, RefsAnswer
    from findling.domain.results import Degradation
    from findling.service.index.index import Index
    from findling.service.workspace.scope import Asking, Names, Refreshing


class Ready(Protocol):
    """Refreshes the index, if that is wanted; the reasons why an answer may be incomplete."""

    def __call__(self, **asking: Unpack[Asking]) -> list[Degradation]: ...


RuleAt = Callable[[str, Callable[[str], bool]], "Degradation | None"]
"""The rule by which a path is not indexed, or the files in it that are too large and concern an answer."""


class WorkspaceExact:
    """Answers that are complete instead of ranked, over what a caller may see. `scope` is the part that was opened."""

    def __init__(
        self,
        opened: Index,
        scope: str,
        ready: Ready,
        rule_at: RuleAt,
        check_path: Callable[[str, Names], None],
        zoekt: str = "",
    ) -> None:
        """`check_path` raises PathNotFoundError for a path that a first index run cannot find.

        `zoekt` is the address of a Zoekt server that the owner's questions for lines are put to.
        """
        self._opened, self._scope, self._ready, self._zoekt = opened, scope, ready, zoekt
        self._rule_at, self._check_path = rule_at, check_path

    def grep(self, asked: GrepRequest, **refreshing: Unpack[Refreshing]) -> GrepAnswer:
        """All lines that match, in the order of their paths; with `refresh`, the default, of the files as they are now.

        `notes` are those of an earlier refresh. Raises InvalidValueError for what is no pattern and no glob,
        NotIndexedError when there is nothing to search.
        """
        from findling.pipelines.exact.grep import grep
        from findling.pipelines.exact.path_globs import path_filter

        notes = self._ready(**refreshing, principals=asked.principals)
        within = self._scope if asked.within is None else asked.within.strip("/")
        asked = changed(asked, within=within)
        with spending():
            # Zoekt knows nothing of rights.
            zoekt = self._zoekt if asked.principals is None else ""
            answer = self._opened.read(asked.principals, notes, grep, asked, self._root, zoekt)
        if asked.principals is not None:
            # Which texts had to be read depends on how far the index has come, and so on what is out of sight.
            return changed(answer, strategy="", searched=0)
        self._add_rule(notes, within, path_filter(asked.globs, asked.base))
        return changed(answer, degraded=(*notes, *answer.degraded)) if notes else answer

    def glob(
        self,
        patterns: Sequence[str],
        *,
        newest: bool = False,
        limit: int = 0,
        within: str | None = None,
        **asking: Unpack[Asking],
    ) -> GlobAnswer:
        """The indexed files that a glob matches, by their paths or the `newest` first; at most `limit`, if not 0.

        Globs count from the folder `within`, which is the part that was opened for None. Raises as `grep` does.
        """
        from findling.pipelines.exact.path_globs import glob, path_filter

        notes, principals = self._ready(**asking), asking.get("principals")
        below = self._scope if within is None else within.strip("/")
        answer = self._opened.read(principals, notes, glob, patterns, below=below, newest=newest, limit=limit)
        if principals is None and not answer.files:
            self._add_rule(notes, below, path_filter(patterns, below, takes_folders=True))
        return changed(answer, degraded=tuple(notes)) if notes else answer

    def refs(self, name: str, *, limit: int = 0, within: str | None = None, **asking: Unpack[Asking]) -> RefsAnswer:
        """All lines of code that define, import, call or use a name; the options are those of `glob` and `grep`.

        Raises InvalidValueError for what is no name, NotIndexedError when there is nothing to search.
        """
        from findling.pipelines.exact.references import is_code, references

        notes, principals = self._ready(**asking), asking.get("principals")
        below = self._scope if within is None else within.strip("/")
        answer = self._opened.read(principals, notes, references, name, below, limit)
        if principals is None:
            self._add_rule(notes, below, is_code)
        return changed(answer, degraded=(*notes, *answer.degraded)) if notes else answer

    def outline(self, name: str, **asking: Unpack[Asking]) -> OutlineAnswer:
        """The definitions of a file, given its path or id.

        Raises NotFoundError when it is not in the index, PathNotFoundError when a first index run cannot find it.
        """
        from findling.pipelines.exact.references import outline

        principals = asking.get("principals")
        if asking.get("refresh", True):
            self._check_path(name, principals)
        notes = self._ready(**asking)
        return self._opened.read(principals, notes, outline, name, self._scope)

    def _add_rule(self, notes: list[Degradation], path: str, concerns: Callable[[str], bool]) -> None:
        """Note what is left out at a path, once; for the owner, who alone knows of it."""
        rule = self._rule_at(path, concerns)
        if rule is not None and rule not in notes:
            notes.append(rule)

    @property
    def _root(self) -> str:
        """The folder of the files; empty where a workspace has none."""
        return "" if self._opened.root == self._opened.files.folder else str(self._opened.root)


def rule_at(
    root: Path, path: str, skipped: Iterable[SkippedPath], concerns: Callable[[str], bool]
) -> Degradation | None:
    """The rule by which a file or folder is not indexed, or the files in it that are too large; else `None`."""
    large = []
    for entry in skipped:
        if path and (entry.path == path or (entry.path.endswith("/") and f"{path}/".startswith(entry.path))):
            from findling.service.upkeep.checks import why_left_out

            return why_left_out(root, path, entry)
        if entry.reason == "too-large" and is_below(entry.path, path) and concerns(entry.path):
            large.append(entry.path)
    if not large:
        return None
    from findling.service.upkeep.checks import too_large

    return too_large(root, large)
