"""What a search is limited to besides what it says: the part of the root that was named, and the project's context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.errors import PathNotFoundError, UntrustedSettingError
from findling.domain.plans import Plan
from findling.domain.queries import All, Field, Filters, SearchRequest, request_with
from findling.domain.results import SearchAnswer
from findling.service.settings.settings import Settings

if TYPE_CHECKING:
    from findling.text.query.parser import Parsed

__all__ = ["NO_CONTEXT", "Scoped", "is_below", "placed", "prepared", "timings_for", "told"]

NO_CONTEXT: Mapping[str, object] = {
    "context.workspace": "",
    "context.path": "",
    "context.system": (),
    "context.types": (),
}
"""Settings under which no project file scopes a search."""


class Scoped(NamedTuple):
    """A request as the legs are asked, its filters before they were put below the part that is asked, and the context.

    The context holds what of it is in force, and where it comes from; it is empty when nothing is. `parsed` is the
    query, where it had to be read to find the plan.
    """

    request: SearchRequest
    filters: Filters
    context: dict[str, Any]
    parsed: Parsed | None = None


def placed(settings: Settings, path: str | Path | None = None, workspace: str = "") -> tuple[Settings, str | Path]:
    """The settings with only what of the context is in force, and the path: the one that is named, or the context's.

    Raises PathNotFoundError when the path of the context is not there, UntrustedSettingError when a project file leads
    out of its project.
    """
    is_named = bool(workspace or settings["workspace.name"])
    file = settings.project_file("context.workspace")
    if settings["context.workspace"] and file is not None and not is_named:
        _must_hold(settings, file)
    # The path of a context says nothing about a workspace of the user's choice, which may lie anywhere.
    is_elsewhere = is_named or bool(settings["context.workspace"] and file is None)
    idle = {"context.workspace": is_named, "context.path": is_elsewhere or path is not None}
    unused = {name: "" for name, is_idle in idle.items() if is_idle and settings[name]}
    settings = settings.override(unused, "default") if unused else settings
    return settings, _context_path(settings) if path is None else path


def prepared(
    request: SearchRequest | str,
    options: Mapping[str, Any],
    settings: Settings,
    scope: str,
    plan_of: Callable[[str], Plan],
) -> Scoped:
    """The request with its plan, limited to the part of the root that was opened and to the project's context."""
    request = request_with(request, options)
    filters, names = request.filters, ["context.workspace"]
    parsed = _parsed(request.query) if ":" in request.query else None
    types = tuple(name.lower() for name in filters.type or _types_in(parsed))
    plan = _planned(request, types, settings, plan_of)
    if request.quick:
        plan = replace(plan, budget_ms=0.0, rerank_depth=0)
    if request.within is None:
        names.append("context.path")
    if request.in_context:
        names.append("context.system")
        if not types and not plan.types:
            names.append("context.types")
    names = [name for name in names if settings[name]]
    filters = _in_context(filters, settings, names)
    within = scope if request.within is None else request.within.strip("/")
    asked = replace(request, filters=_below(filters, within), plan=plan, changes={}, within=within)
    return Scoped(asked, filters, _context(settings, names), parsed)


def _planned(
    request: SearchRequest, types: tuple[str, ...], settings: Settings, plan_of: Callable[[str], Plan]
) -> Plan:
    """The plan of the profile with what the request changes, before and after the types have had their say."""
    plan = request.plan or plan_of(request.profile)
    changes: dict[str, Any] = {}
    if request.changes:
        from findling.pipelines.retrieve.plan_files import read_changes

        changes = read_changes(request.changes)
        plan = replace(plan, **changes)
    if request.plan is None:
        plan = _for_types(plan, types, settings)
    return replace(plan, **changes) if changes else plan


def _parsed(query: str) -> Parsed:
    from findling.pipelines.retrieve.query_planner import LONGEST_QUERY
    from findling.text.query.parser import parse

    return parse(query[:LONGEST_QUERY])


def _types_in(parsed: Parsed | None) -> tuple[str, ...]:
    """The types that a query is limited to, as `type:decision` outside of any group does."""
    if parsed is None:
        return ()
    from findling.text.query.tree import split_where

    _, where = split_where(parsed.node)
    parts = where.nodes if isinstance(where, All) else (where,)
    limits = [part.values for part in parts if isinstance(part, Field) and part.name == "type"]
    return tuple(name for name in limits[0] if all(name in limit for limit in limits)) if limits else ()


def _for_types(plan: Plan, types: tuple[str, ...], settings: Settings) -> Plan:
    """The plan as it is for a search that is limited to some types: with their weights, and heads only if they agree.

    What replaces each other without ever being changed is asked for as it holds today, unless the user says no.
    """
    names = types or plan.types
    if not names:
        return plan
    from findling.pipelines.content.resource_types import replaces_only, weights_of

    weights = {**weights_of(names, settings.types), **plan.weights}
    of_profile = settings.profiles.get(plan.profile, {})
    is_open = "search.heads" not in of_profile and replaces_only(names, settings.types)
    return replace(plan, weights=weights, heads=plan.heads or is_open)


def timings_for(principals: tuple[str, ...] | None, timings: Mapping[str, float]) -> Mapping[str, float]:
    """Times as a caller is told them: all of them for the owner, for others their sum.

    Which stages there were tells whether an answer was kept, and so when something hidden was written.
    """
    return timings if principals is None else {"search": round(sum(timings.values()), 3)}


def told(scoped: Scoped, answer: SearchAnswer) -> SearchAnswer:
    """The answer with the context it was found in, and a plan that says apart what was asked for and where."""
    from findling.pipelines.retrieve.plan_files import filters_document

    asked = {"filters": filters_document(scoped.filters), "within": scoped.request.within}
    return replace(answer, scope=scoped.context, plan={**answer.plan, **asked})


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is at or below another one; everything is below an empty one."""
    return prefix in ("", ".") or path == prefix or path.startswith(prefix + "/")


def _must_hold(settings: Settings, file: Path) -> None:
    """Whoever writes a project file must not open what else its reader has: the workspace has to hold the project."""
    from findling.service.workspace.workspace import folder_of, home_folder, indexed_root

    name = settings["context.workspace"]
    root = indexed_root(folder_of(name, home_folder(settings["store.home"])))
    if root is None or not file.parent.is_relative_to(root):
        raise UntrustedSettingError(
            f"{file} names the workspace {name}, which does not hold {file.parent}",
            hint=f"--no-context, or --workspace {name} if you want that one",
        )


def _context_path(settings: Settings) -> str:
    """What is searched when no path is given: the path that the context names, or the current folder."""
    named = settings["context.path"]
    if not named:
        return "."
    file = settings.project_file("context.path")
    base = Path.cwd() if file is None else file.parent
    path = (base / named).resolve()
    if file is not None and not path.is_relative_to(base):
        raise UntrustedSettingError(f"{file} names {named}, which lies outside of it", hint="--no-context")
    if not path.exists():
        origin = settings.origin("context.path")
        raise PathNotFoundError(f"{origin} names the path {named}, which is not there", hint="--no-context")
    return str(path)


def _context(settings: Settings, names: Iterable[str]) -> dict[str, Any]:
    limits = {name.partition(".")[2]: settings[name] for name in names}
    origins = dict.fromkeys(settings.origin(name) for name in names)
    return {**limits, "from": " and ".join(origins)} if limits else {}


def _in_context(filters: Filters, settings: Settings, names: Iterable[str]) -> Filters:
    """The filters with the types and the system of the context, as far as they are among the names."""
    if "context.types" in names:
        filters = replace(filters, type=settings["context.types"])
    if "context.system" in names:
        system = Field("system", settings["context.system"])
        filters = replace(filters, where=system if filters.where is None else All((filters.where, system)))
    return filters


def _below(filters: Filters, folder: str) -> Filters:
    """The filters with their paths below one folder; without any, what lies nowhere passes as well."""
    if not folder:
        return filters
    if not filters.path:
        return replace(filters, within=folder)
    return replace(filters, path=tuple("/".join((folder, path.strip("/"))) for path in filters.path))
