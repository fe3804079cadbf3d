"""What a search is limited to besides what it says: the part of the root that was named, and the project's context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from findling.domain.errors import PathNotFoundError, UntrustedSettingError
from findling.domain.plans import Plan
from findling.domain.queries import All, Field, Filters, SearchRequest
from findling.service.setting_files import find_project_file
from findling.service.settings import Settings

__all__ = ["NO_CONTEXT", "context_of", "default_path", "is_below", "prepared"]

NO_CONTEXT: Mapping[str, object] = {
    "context.workspace": "",
    "context.path": "",
    "context.system": (),
    "context.types": (),
}
"""Settings under which no project file scopes a search."""


def default_path(settings: Settings) -> str:
    """What is searched when no path is given: the path that the project file names, or the current folder.

    Raises PathNotFoundError when that path is not there, UntrustedSettingError when it leads out of the project.
    """
    named = settings["context.path"]
    if not named:
        return "."
    project_file = find_project_file(".")
    is_project = project_file is not None and settings.origin("context.path").startswith("project file")
    base = project_file.parent if project_file is not None and is_project else Path.cwd()
    path = (base / named).resolve()
    if is_project and not path.is_relative_to(base.resolve()):
        raise UntrustedSettingError(f"{project_file} names {named}, which lies outside of it", hint="--no-context")
    if not path.exists():
        origin = settings.origin("context.path")
        raise PathNotFoundError(f"{origin} names the path {named}, which is not there", hint="--no-context")
    return str(path)


def prepared(
    request: SearchRequest | str,
    options: Mapping[str, Any],
    settings: Settings,
    scope: str,
    plan_of: Callable[[str], Plan],
) -> SearchRequest:
    """The request with its plan, limited to the part of the root that was opened and to the project's context."""
    if isinstance(request, str):
        request = SearchRequest(query=request, **options)
    elif options:
        request = replace(request, **options)
    filters = _in_context(request.filters, settings) if request.in_context else request.filters
    filters = _within(filters, scope) if scope else filters
    return replace(request, filters=filters, plan=request.plan or plan_of(request.profile))


def context_of(settings: Settings) -> dict[str, Any]:
    """The context that is in force, and where it comes from; empty when there is none."""
    names = [name for name in NO_CONTEXT if settings[name]]
    if not names:
        return {}
    scope = {name.partition(".")[2]: settings[name] for name in names}
    return {**scope, "from": settings.origin(names[0])}


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is at or below another one; everything is below an empty one."""
    return prefix in ("", ".") or path == prefix or path.startswith(prefix + "/")


def _in_context(filters: Filters, settings: Settings) -> Filters:
    """The filters with the types and the system of the context, as far as they say nothing of their own about them."""
    if settings["context.types"] and not filters.type:
        filters = replace(filters, type=settings["context.types"])
    if settings["context.system"]:
        system = Field("system", settings["context.system"])
        filters = replace(filters, where=system if filters.where is None else All((filters.where, system)))
    return filters


def _within(filters: Filters, scope: str) -> Filters:
    """The filters with their paths below one folder."""
    paths = tuple("/".join((scope, path.strip("/"))) for path in filters.path) or (scope,)
    return replace(filters, path=paths)
