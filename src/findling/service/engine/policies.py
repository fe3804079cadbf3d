"""The policy of every workspace at once: who may see what has no list of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from findling.domain.errors import FindlingError
from findling.service.engine.engine import Engine
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import home_folder, workspace_in
from findling.service.workspace.workspaces import all_workspaces

__all__ = ["set_policies"]


def set_policies(settings: Settings) -> tuple[int, Mapping[Path, FindlingError]]:
    """Write what `permissions.unset` says into all workspaces of the home.

    Returns how many it now holds in, and what stood in the way of the others.
    """
    changed, failed = 0, {}
    for found in all_workspaces(home_folder(settings["store.home"])):
        try:
            with Engine(workspace_in(found.folder), settings) as engine:
                engine.permissions.set_policy(settings["permissions.unset"])
            changed += 1
        except FindlingError as error:
            failed[found.folder] = error
    return changed, failed
