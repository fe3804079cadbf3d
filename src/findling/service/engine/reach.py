"""The reach of an engine: the workspaces beside the opened one that answer, too.

A person's own memories lie in a workspace without files. Questions to a folder find them beside the items of the
folders above. A question everywhere asks all workspaces of the home.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import InvalidValueError, NotFoundError, UsageError
from findling.service.engine.services import WorkspaceServices
from findling.service.settings.setting_list import PROJECT_ORIGIN
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.scope import AWAY, HOME, OWN, PERSON, Names
from findling.service.workspace.workspace import PERSONAL, Workspace, backend_at, has_items, is_name, personal_place

if TYPE_CHECKING:
    from findling.service.index.permissions import WorkspacePermissions

_FROM_FILES = ("default", "user file ", PROJECT_ORIGIN)
"""Origins of settings that another folder has its own of."""


class ReachingEngine(WorkspaceServices):
    """An opened workspace, and the engines of those within its reach."""

    def alone(self) -> Self:
        """The same opened index without anything beside it. It is not to be closed."""
        return self.reaching(OWN)

    def reaching(self, reach: int, names: Names = None) -> Self:
        """The same opened index with a shorter reach, and with the `names` of a caller. It is not to be closed."""
        key = (min(reach, self._reach), self._names if names is None else names)
        if key == (self._reach, self._names):
            return self
        if key not in self._siblings:
            self._siblings[key] = type(self)(self.workspace, self._settings, self.opened, *key)
        return self._siblings[key]

    def elsewhere(self) -> list[Self]:
        """The workspaces of other folders that hold items; a name means its workspace alone."""
        from findling.service.workspace.workspaces import all_places

        places = all_places(self._homes) if self._reach == HOME and not is_name(self.home.name) else []
        nearer = (self._top, *self._top.parents)
        others = [place for place in places if not place.name and place.root / place.only not in nearer]
        return [self._beside(place, AWAY) for place in others if self._holds_items(place)]

    def meant(self, scope: str, principals: Names) -> list[Workspace]:
        """The workspaces of a scope. Raises NotFoundError or UsageError.

        The owner may ask every workspace, a caller of a server those of its token, any other caller those that are
        shared. Personal memories are the owner's alone. All are also the opened one, wherever it lies.
        """
        from findling.service.workspace.workspaces import all_places, is_shared

        if scope not in ("all", "shared"):
            return self.named([name.strip() for name in scope.split(",")], principals)
        seen = [place for place in all_places(self._homes) if self._may_ask(place, principals)]
        if scope == "all":
            return [self.workspace, *[place for place in seen if place.folder != self.home]]
        if not (shared := [place for place in seen if is_shared(place.folder)]):
            raise UsageError("no workspace is shared", hint="findling workspaces set NAME --shared")
        return shared

    def named(self, names: Sequence[str], principals: Names) -> list[Workspace]:
        """The workspaces of these names or roots, each once. Raises NotFoundError."""
        from findling.service.workspace.workspaces import find_workspace, place_in

        places = {name: place_in(find_workspace(name, self._homes)) for name in names}
        for name, place in places.items():
            if not self._may_ask(place, principals):  # a forbidden workspace looks like a missing one
                raise NotFoundError(f"there is no workspace {name}", hint="findling workspaces list")
        return list(dict.fromkeys(places.values()))

    def release(self) -> None:
        """Close what a question has opened beside many others."""
        if self._is_extra:
            self.opened.close()

    def _may_ask(self, place: Workspace, principals: Names) -> bool:
        """Whether a caller may ask another workspace."""
        from findling.domain.permissions import ALL_WORKSPACES
        from findling.service.workspace.workspaces import is_shared

        names, is_owner = self._names, principals is None
        if place.name == PERSONAL and not (is_owner and (self._reach >= PERSON or PERSONAL in (names or ()))):
            return False
        if names is None:
            return is_owner or is_shared(place.folder)
        # A workspace without a name goes by its folder, which is for those to know who have it in their token.
        return place.label in names or (ALL_WORKSPACES in names and bool(place.name))

    def holds(self, rid: str) -> bool:
        """Whether there is a resource with this id."""
        return self._files.store.document(rid) is not None

    def status_for(self, principals: tuple[str, ...] | None) -> dict[str, Any]:
        """The status for its owner; for others, the number of resources that they may see."""
        if principals is None:
            return {**vars(self.status())}
        from findling.service.upkeep.checks import visible_counts

        self.opened.require()
        return self.opened.read(principals, [], visible_counts)

    def resource_id(self, name: str) -> str:
        """The id of the resource that a name stands for, see `fetch`. Raises NotFoundError when there is none."""
        from findling.pipelines.lookup.explain import find_document

        self.opened.require()
        return find_document(self._files.store, name, self.scope)[0].resource.rid

    @property
    def permissions(self) -> WorkspacePermissions:
        """Rights: who may see which resource."""
        from findling.service.index.permissions import WorkspacePermissions

        return WorkspacePermissions(self._files, self.root, self.opened.views.sight)

    def refuse_personal(self) -> None:
        """Raise InvalidValueError where personal memories would be handed on."""
        if self.home == personal_place(self._homes).folder:
            raise InvalidValueError("personal memories stay here", hint="findling snapshot create --workspace personal")

    def _holds_items(self, place: Workspace) -> bool:
        return self.opened.is_open_above(place.folder) or _has_items(place.folder, backend_at(place.folder).version())

    def at(self, place: Workspace) -> Self:
        """The engine of a workspace, to be released. Raises as `load_settings` does for those of its project."""
        return self.alone() if place.folder == self.home else self._beside(place)

    def _beside(self, place: Workspace, reach: int = OWN) -> Self:
        # Memories need no settings of their project, which may be broken.
        settings = self._settings_at(place, has_root=reach == OWN and place.has_files and place.root.exists())
        engine = type(self)(place, settings, self.opened.above(place, settings), reach)
        engine._is_extra, engine.asked = not self.opened.is_open_above(place.folder), self.asked
        return engine

    def _settings_at(self, place: Workspace, *, has_root: bool) -> Settings:
        """The settings of another workspace: those of its project, and what was said for this question."""
        own = self._settings
        is_plain = place.name == PERSONAL and not any(own.project_file(name) for name in own)
        if is_plain or place.root in self._top.parents:
            return own
        said = {name: own[name] for name in own if not own.origin(name).startswith(_FROM_FILES)}
        return load_settings(place.root if has_root else None).override(said, "the question")


@lru_cache(maxsize=64)
def _has_items(folder: Path, version: object) -> bool:
    """Whether a workspace may hold items, as long as its files are the same: opening a store takes 1.5 ms."""
    return has_items(folder)
