"""Search across several workspaces: the named ones, or those that are marked as shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import FindlingError, NotFoundError, NotIndexedError, UsageError
from findling.domain.queries import SearchRequest
from findling.domain.results import Degradation, Hit, SearchAnswer
from findling.pipelines.lookup.federated import as_relaxed, fuse_across
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.workspace import Workspace, workspace_in
from findling.service.workspace.workspaces import FoundWorkspace, all_workspaces, find_workspace

__all__ = ["AcrossAnswer", "AcrossHit", "search_across"]


@dataclass(frozen=True, kw_only=True)
class AcrossHit:
    """A hit with its workspace; its path is relative to `root`, `rank` its place there.

    `score` is the one among all hits; the hit itself has the score and the receipt of its workspace.
    """

    workspace: str
    root: Path
    rank: int
    score: float
    hit: Hit


@dataclass(frozen=True, kw_only=True)
class AcrossAnswer:
    """The hits of several workspaces, best first.

    `asked` are the workspaces that have answered, `totals` the number of matches in each, or at least so many where
    that is 1,000. `degraded` names gaps and their workspaces. `relaxed` are hits that miss a demand of the query, when
    no workspace fulfils it.
    """

    query: str
    hits: tuple[AcrossHit, ...]
    asked: tuple[str, ...]
    totals: dict[str, int] = field(default_factory=dict)
    degraded: tuple[Degradation, ...] = ()
    relaxed: tuple[AcrossHit, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values."""
        hits = {"hits": _documents(self.hits), "relaxed": _documents(self.relaxed)}
        return {**asdict(replace(self, hits=(), relaxed=())), **hits, "total": sum(self.totals.values())}


def search_across(
    request: SearchRequest,
    *,
    home: Path,
    names: Sequence[str] = (),
    shared: bool = False,
    settings_for: Callable[[Path], Settings] = load_settings,
) -> AcrossAnswer:
    """Ask workspaces one after another and merge their answers; `settings_for` gives the settings of a folder.

    A caller with principals asks only shared workspaces, each under its own rules. `degraded` names a workspace that
    cannot answer. Raises UsageError or NotFoundError.
    """
    if request.cursor:
        raise UsageError("an answer of several workspaces has no cursor", hint="ask for more hits, or use an offset")
    meant = _meant(home, names, shared, is_owner=request.principals is None)
    # The merge needs the worth of the query's words, which only an explained answer has.
    wanted = replace(request, limit=request.offset + request.limit, offset=0, explain=True)
    answers: list[_Answered] = []
    degraded: list[Degradation] = []
    for found in meant:
        label = found.name or str(found.folder)
        try:
            place = workspace_in(found.folder)
            label = found.name or str(place.root / place.only)
            answer = _ask(found, place, wanted, settings_for)
        except FindlingError as error:
            missing = [Degradation.of(error)]
        else:
            answers.append(_Answered(label, place.root, answer))
            missing = list(answer.degraded)
        degraded += [replace(one, what=f"{label}: {one.what}") for one in missing]
    hits = _merged(answers, request)
    looser = [] if hits else [one._replace(answer=as_relaxed(one.answer)) for one in answers]
    return AcrossAnswer(
        query=request.query,
        hits=hits,
        relaxed=_merged(looser, request),
        asked=tuple(one.label for one in answers),
        totals={one.label: one.answer.total for one in answers},
        degraded=tuple(degraded),
    )


class _Answered(NamedTuple):
    label: str
    root: Path
    answer: SearchAnswer


def _merged(answers: Sequence[_Answered], request: SearchRequest) -> tuple[AcrossHit, ...]:
    return tuple(
        AcrossHit(workspace=answers[n].label, root=answers[n].root, rank=rank, score=score, hit=hit)
        for n, rank, score, hit in fuse_across([one.answer for one in answers], request.limit, request.offset)
    )


def _documents(hits: Iterable[AcrossHit]) -> list[dict[str, Any]]:
    shown = [(found, replace(found.hit, workspace=found.workspace, score=found.score)) for found in hits]
    return [{"workspace": found.workspace, "root": str(found.root), **asdict(hit)} for found, hit in shown]


def _meant(home: Path, names: Sequence[str], shared: bool, *, is_owner: bool) -> Iterable[FoundWorkspace]:
    """The workspaces to ask, each once: those named in their order, then those that are shared."""
    if not names and not shared:
        raise UsageError("no workspace was named", hint="--workspace NAME,NAME, or --shared for all that are shared")
    chosen = []
    for name in names:
        found = find_workspace(name, home)
        if not is_owner and not _is_shared(found):
            # A forbidden workspace looks like a missing one.
            raise NotFoundError(f"there is no workspace {name}", hint="findling workspaces list")
        chosen.append(found)
    if shared:
        chosen += [found for found in all_workspaces(home) if _is_shared(found)]
    if not chosen:
        raise UsageError("no workspace is shared", hint="findling workspaces set NAME --shared")
    return dict.fromkeys(chosen)


def _is_shared(found: FoundWorkspace) -> bool:
    try:
        manifest = read_manifest(found.folder)
    except FindlingError:  # an unreadable one is not shared
        return False
    return manifest is not None and manifest.shared


def _ask(
    found: FoundWorkspace, place: Workspace, request: SearchRequest, settings_for: Callable[[Path], Settings]
) -> SearchAnswer:
    settings = settings_for(place.root if place.root.exists() else found.folder)
    with Engine(place, settings) as engine:
        if not (is_indexed := engine.is_indexed()) and not engine.status().resources:
            # A first run may take long, and read files that nobody meant.
            name = f" --workspace {found.name}" if found.name else ""
            raise NotIndexedError("it has not been indexed yet", hint=f"findling index {place.root}{name}")
        return LocalClient(engine.alone()).search(request, refresh=is_indexed)
