"""Searching several workspaces at once: only those that were named, or those that are marked as shared."""

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
from findling.service.workspace.workspace import workspace_in
from findling.service.workspace.workspaces import FoundWorkspace, all_workspaces, find_workspace

__all__ = ["AcrossAnswer", "AcrossHit", "search_across"]


@dataclass(frozen=True, kw_only=True)
class AcrossHit:
    """A hit with the workspace that it comes from; its path is relative to `root`, `rank` its place there.

    `score` is the one among all hits; that of the hit itself, and its receipt, are those of its workspace.
    """

    workspace: str
    root: Path
    rank: int
    score: float
    hit: Hit


@dataclass(frozen=True, kw_only=True)
class AcrossAnswer:
    """What several workspaces have found: the hits of all of them, best first.

    `asked` are the workspaces that have answered, `totals` how much matches in each of them, and `degraded` says what
    is missing and in which workspace. `relaxed` are hits without what the query demands, where no workspace fulfils it.
    """

    query: str
    hits: tuple[AcrossHit, ...]
    asked: tuple[str, ...]
    totals: dict[str, int] = field(default_factory=dict)
    degraded: tuple[Degradation, ...] = ()
    relaxed: tuple[AcrossHit, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values."""
        told = {"hits": _documents(self.hits), "relaxed": _documents(self.relaxed)}
        return {**asdict(replace(self, hits=(), relaxed=())), **told, "total": sum(self.totals.values())}


def search_across(
    request: SearchRequest,
    *,
    home: Path,
    names: Sequence[str] = (),
    shared: bool = False,
    settings_for: Callable[[Path], Settings] = load_settings,
) -> AcrossAnswer:
    """Ask workspaces one after another and merge what they answer; `settings_for` gives the settings of a folder.

    A caller with principals asks only what is shared, and each workspace decides by its own rules who that is. A
    workspace that cannot answer is named in `degraded`. Raises UsageError when no workspace is meant, NotFoundError for
    a name that no workspace has, or none that the caller may ask.
    """
    if request.cursor:
        raise UsageError("an answer of several workspaces has no cursor", hint="ask for more hits, or use an offset")
    meant = _meant(home, names, shared, is_owner=request.principals is None)
    # What the words of the query could be worth is told to those who want an explanation.
    wanted = replace(request, limit=request.offset + request.limit, offset=0, explain=True)
    answers: list[tuple[_Asked, SearchAnswer]] = []
    degraded: list[Degradation] = []
    for found in meant:
        label = found.name or str(found.folder)
        try:
            asked = _asked(found)
            label = asked.label
            answer = _ask(asked, wanted, settings_for)
        except FindlingError as error:
            degraded.append(_in_workspace(label, Degradation.of(error)))
            continue
        answers.append((asked, answer))
        degraded += [_in_workspace(label, missing) for missing in answer.degraded]
    hits = _merged(answers, request)
    looser = [] if hits else [(asked, as_relaxed(answer)) for asked, answer in answers]
    return AcrossAnswer(
        query=request.query,
        hits=hits,
        relaxed=_merged(looser, request),
        asked=tuple(asked.label for asked, _ in answers),
        totals={asked.label: answer.total for asked, answer in answers},
        degraded=tuple(degraded),
    )


class _Asked(NamedTuple):
    label: str
    root: Path
    found: FoundWorkspace


def _asked(found: FoundWorkspace) -> _Asked:
    workspace = workspace_in(found.folder)
    return _Asked(found.name or str(workspace.root / workspace.only), workspace.root, found)


def _merged(answers: Sequence[tuple[_Asked, SearchAnswer]], request: SearchRequest) -> tuple[AcrossHit, ...]:
    return tuple(
        AcrossHit(workspace=answers[n][0].label, root=answers[n][0].root, rank=rank, score=score, hit=hit)
        for n, rank, score, hit in fuse_across([answer for _, answer in answers], request.limit, request.offset)
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
            # Not allowed is the same as not there.
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
    except FindlingError:  # what cannot be read does not say that it is shared
        return False
    return manifest is not None and manifest.shared


def _ask(asked: _Asked, request: SearchRequest, settings_for: Callable[[Path], Settings]) -> SearchAnswer:
    settings = settings_for(asked.root if asked.root.exists() else asked.found.folder)
    workspace = workspace_in(asked.found.folder)
    with Engine(workspace, settings) as engine:
        if not (is_indexed := engine.is_indexed()) and not engine.status().resources:
            # A first run may take long and read what nobody meant to have read: never by the way.
            raise NotIndexedError("it has not been indexed yet", hint=_index_command(asked))
        return LocalClient(engine.alone()).search(request, refresh=is_indexed)


def _in_workspace(label: str, missing: Degradation) -> Degradation:
    return replace(missing, what=f"{label}: {missing.what}")


def _index_command(asked: _Asked) -> str:
    name = asked.found.name
    return f"findling index {asked.root} --workspace {name}" if name else f"findling index {asked.root}"
