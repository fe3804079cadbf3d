"""The scope of a search besides its filters: the part of the root that was named, and the project's context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from findling.domain.errors import PathNotFoundError, UntrustedSettingError
from findling.domain.plans import JUDGED, KNOBS, Plan
from findling.domain.queries import All, Field, Filters, Node, SearchRequest
from findling.domain.values import changed
from findling.service.settings.settings import Settings

if TYPE_CHECKING:
    from findling.domain.reports import Progress
    from findling.domain.results import Degradation
    from findling.text.query.parser import Parsed

NO_CONTEXT: Mapping[str, object] = {
    "context.workspace": "",
    "context.path": "",
    "context.system": (),
    "context.types": (),
}
"""Settings under which no project file scopes a search."""

Names = tuple[str, ...] | None

AWAY, OWN, FOLDERS, PERSON, HOME = range(-1, 4)
"""Reaches: the workspace alone, for another folder or its own; items of folders above; of the person; of the home."""


class Refreshing(TypedDict, total=False):
    """Whether the index first absorbs what has changed on disk, who hears of that, and the notes of an earlier time."""

    refresh: bool
    on_progress: Progress | None
    notes: Sequence[Degradation]


class Asking(Refreshing, total=False):
    """The options of every question: `principals` are those whose rights count, by default the owner's."""

    principals: Names


class Scoped(NamedTuple):
    """A request for the legs, its filters without the part of the root, and the context with its origin.

    `parsed` is the query, where the plan depends on it.
    """

    request: SearchRequest
    filters: Filters
    context: dict[str, Any]
    parsed: Parsed | None = None

    def account(self) -> dict[str, Any]:
        """The filters as they were asked for, and the part of the root that was searched."""
        if self.filters == Filters():  # as most
            return {"filters": {}, "within": self.request.within}
        from findling.pipelines.retrieve.plan_files import filters_document

        return {"filters": filters_document(self.filters), "within": self.request.within}


def of_a_part(request: SearchRequest) -> SearchRequest:
    """The prepared request for an index without all files: a word that it lacks may stand in the others.

    A quick one leaves vectors out, unless it asks for them alone: a first answer waits for no model.
    """
    plan = request.plan
    if plan is None:
        return request
    mode = "keyword" if request.quick and plan.mode == "hybrid" else plan.mode
    return replace(request, plan=replace(plan, mode=mode, typos="ignore"))


def told_share(share: Mapping[str, int]) -> str:
    """The share of the files that is indexed, in words."""
    return "{files:,} of {of:,} files are indexed so far".format(**share) if share else "files may be missing"


def told_differences(changed: int, gone: int) -> str:
    """The numbers of files that differ from the index, in words."""
    counts = {"new or changed": changed, "gone": gone}
    told = [f"{count:,} {'file is' if count == 1 else 'files are'} {what}" for what, count in counts.items() if count]
    return " and ".join(told)


def placed(settings: Settings, path: str | Path | None = None, workspace: str = "") -> tuple[Settings, str | Path]:
    """The settings with the context in force, and the path: the named one, or the context's.

    A `store.url` becomes the name of its workspace. Raises PathNotFoundError or UntrustedSettingError.
    """
    if settings["store.url"] and not workspace:
        from findling.service.workspace.store_url import at_store

        settings = at_store(settings, creates=True)
    is_named = bool(workspace or settings["workspace.name"])
    file = settings.project_file("context.workspace")
    if settings["context.workspace"] and file is not None and not is_named:
        _must_hold(settings, file)
    # A workspace of the user's choice may lie anywhere, so the path of a context does not apply to it.
    is_elsewhere = is_named or bool(settings["context.workspace"] and file is None)
    idle = {"context.workspace": is_named, "context.path": is_elsewhere or path is not None}
    unused = {name: "" for name, is_idle in idle.items() if is_idle and settings[name]}
    settings = settings.override(unused, "default") if unused else settings
    return settings, _context_path(settings) if path is None else path


def request_with(request: SearchRequest | str, options: Mapping[str, object]) -> SearchRequest:
    """A request with other values of its fields; names of knobs of the plan are its `changes`."""
    if isinstance(request, str):
        request = SearchRequest(query=request)
    if not options:
        return request
    changes = {name: value for name, value in options.items() if name in KNOBS and name != "profile"}
    others: dict[str, Any] = {name: value for name, value in options.items() if name not in changes}
    return replace(request, **{"changes": {**request.changes, **changes}, **others})


def prepared(request: SearchRequest, settings: Settings, scope: str, plan_of: Callable[[str], Plan]) -> Scoped:
    """The request with its plan, limited to the part of the root that was opened and to the project's context."""
    filters, names = request.filters, ["context.workspace"]
    parsed = None
    if ":" in request.query:
        from findling.pipelines.retrieve.query_planner import LONGEST_QUERY
        from findling.text.query.parser import parse

        parsed = parse(request.query[:LONGEST_QUERY])
    types = tuple(name.lower() for name in filters.type or _types_in(parsed))
    plan = _planned(request, types, settings, plan_of)
    if request.quick:
        plan = replace(plan, budget_ms=0.0, rerank_depth=0)
    elif plan.rerank_depth is None:
        is_chosen = settings["rerank.model"] not in ("auto", "none")
        plan = replace(plan, rerank_depth=JUDGED if request.patient or is_chosen else 0)
    if request.within is None:
        names.append("context.path")
    if request.in_context:
        names.append("context.system")
        if not types and not plan.types:
            names.append("context.types")
    names = [name for name in names if settings[name]]
    if "context.types" in names:
        filters = replace(filters, type=settings["context.types"])
    if "context.system" in names:
        system = Field("system", settings["context.system"])
        filters = with_condition(filters, system)
    within = scope if request.within is None else request.within.strip("/")
    asked = changed(request, filters=_below(filters, within), plan=plan, changes={}, within=within)
    context: dict[str, Any] = {name.partition(".")[2]: settings[name] for name in names}
    if context:
        context["from"] = " and ".join(dict.fromkeys(settings.origin(name) for name in names))
    return Scoped(asked, filters, context, parsed)


def _planned(
    request: SearchRequest, types: tuple[str, ...], settings: Settings, plan_of: Callable[[str], Plan]
) -> Plan:
    """The plan of the profile with the changes of the request, applied before and after those of the types."""
    changes: dict[str, Any] = {}
    if request.plan is None:
        plan = plan_of(request.profile)
    else:
        from findling.pipelines.retrieve.plan_files import read_plan

        plan = read_plan(vars(request.plan))
    if request.changes:
        from findling.pipelines.retrieve.plan_files import read_changes

        changes = read_changes(request.changes)
        plan = replace(plan, **changes)
    typed = _for_types(plan, types, settings) if request.plan is None else plan
    return replace(typed, **changes) if changes and typed is not plan else typed


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
    """The plan of a search that is limited to some types: with their weights, and heads only if all types agree.

    Immutable types that supersede each other show their heads, unless the user says no.
    """
    names = types or plan.types
    if not names:
        return plan
    from findling.pipelines.content.resource_types import replaces_only, weights_of

    weights = {**weights_of(names, settings.types), **plan.weights}
    is_said = settings.origin("search.heads") != "default" or "search.heads" in settings.profiles.get(plan.profile, {})
    is_open = not is_said and replaces_only(names, settings.types)
    return replace(plan, weights=weights, heads=plan.heads or is_open)


def timings_for(principals: tuple[str, ...] | None, timings: Mapping[str, float]) -> Mapping[str, float]:
    """Times for a caller: each stage for the owner, their sum for others.

    The stages would reveal whether an answer was cached, and so when something hidden was written.
    """
    return timings if principals is None else {"search": round(sum(timings.values()), 3)}


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is at or below another one; everything is below an empty one."""
    return prefix in ("", ".") or path == prefix or path.startswith(prefix + "/")


def _must_hold(settings: Settings, file: Path) -> None:
    """Raise UntrustedSettingError unless the workspace that a project file names holds the project."""
    from findling.service.workspace.workspace import folder_of, home_folder, indexed_root

    name = settings["context.workspace"]
    root = indexed_root(folder_of(name, home_folder(settings["store.home"])))
    if root is None or not file.parent.is_relative_to(root):
        message = f"{file} names the workspace {name}, which does not hold {file.parent}"
        raise UntrustedSettingError(message, hint=f"--no-context, or --workspace {name} if you want that one")


def _context_path(settings: Settings) -> str:
    """The path to search when none is given: that of the context, or the current folder."""
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


def with_condition(filters: Filters, node: Node) -> Filters:
    """The filters with one more condition."""
    return replace(filters, where=node if filters.where is None else All((filters.where, node)))


def with_part(parts: Sequence[str], part: str) -> tuple[str, ...]:
    """The parts with one more, each only once."""
    if any(is_below(part, known) for known in parts):
        return tuple(parts)
    return (*[known for known in parts if not is_below(known, part)], part)


def _below(filters: Filters, folder: str) -> Filters:
    """The filters with their paths below one folder; without paths, resources without a path pass, too."""
    if not folder:
        return filters
    if not filters.path:
        return replace(filters, within=folder)
    return replace(filters, path=tuple("/".join((folder, path.strip("/"))) for path in filters.path))
