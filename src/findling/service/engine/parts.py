"""What a workspace holds besides files, each part with a service of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings

if TYPE_CHECKING:
    from findling.domain.sight import Sight
    from findling.pipelines.indexing.fanout import Legs
    from findling.service.content.chats import WorkspaceChats
    from findling.service.content.glossary import WorkspaceGlossary
    from findling.service.content.items import WorkspaceItems
    from findling.service.content.memories import WorkspaceMemories
    from findling.service.index.permissions import WorkspacePermissions
    from findling.service.index.writing import WorkspaceWriter
    from findling.service.upkeep.snapshots import WorkspaceSnapshots

__all__ = ["WorkspaceParts"]


class WorkspaceParts(ABC):
    """The parts of an engine; each is loaded when it is asked for."""

    _files: OpenedWorkspace
    _settings: Settings
    root: Path

    @property
    def writer(self) -> WorkspaceWriter:
        """What puts resources that are not files into the workspace."""
        from findling.service.index.writing import WorkspaceWriter

        return WorkspaceWriter(self._files, self._settings, self._legs)

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
    def memories(self) -> WorkspaceMemories:
        """What was remembered."""
        from findling.service.content.memories import WorkspaceMemories

        def search(request: SearchRequest) -> SearchAnswer:
            return self.alone().search(request, refresh=False)

        def above() -> dict[str, WorkspaceMemories]:
            return {str(one.root): one.memories for one in self.above()}

        return WorkspaceMemories(self.writer, search, above=above)

    @property
    def glossary(self) -> WorkspaceGlossary:
        """The words that mean the same here, and what may become one of them."""
        from findling.service.content.glossary import WorkspaceGlossary

        return WorkspaceGlossary(self._files, self._settings)

    @property
    def permissions(self) -> WorkspacePermissions:
        """Who may see what."""
        from findling.service.index.permissions import WorkspacePermissions

        return WorkspacePermissions(self._files, self.root, self._sight)

    @property
    def snapshots(self) -> WorkspaceSnapshots:
        """States of the workspace that were kept, and can be had back."""
        from findling.service.upkeep.snapshots import WorkspaceSnapshots

        return WorkspaceSnapshots(self._files, self._settings)

    @abstractmethod
    def search(self, request: Any, **options: Any) -> SearchAnswer:
        """Answer a question."""

    @abstractmethod
    def alone(self) -> Self:
        """The same workspace without the items of the folders above."""

    @abstractmethod
    def above(self) -> list[Self]:
        """The workspaces of the folders above that hold items."""

    @abstractmethod
    def _legs(self) -> Legs:
        """All legs that are written with the truth, in step with it. The lock is held."""

    @abstractmethod
    def _sight(self, principals: Iterable[str]) -> Sight:
        """What these principals may see now."""
