"""The state of a workspace: its counts, and the checks of `findling doctor`."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any

from findling.core import core_problem
from findling.domain.backends import GRAPH
from findling.domain.errors import (
    CorruptError,
    FormatError,
    InvalidValueError,
    ManifestError,
    ModelNotFoundError,
    StoreDamagedError,
    WorkspaceError,
)
from findling.domain.ports import SkippedPath
from findling.domain.reports import Check, Status
from findling.domain.resources import Resource
from findling.domain.results import Degradation
from findling.domain.values import counted
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.index.embeddings import WorkspaceVectors
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.lazy_legs import LazyLeg, lazy_leg, made_legs
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.workspace import home_folder
from findling.stores.filesystem import file_size
from findling.stores.local.backend import identity_problem
from findling.stores.local.maintenance import scan_kernel
from findling.stores.local.snapshot_files import FOLDER, OF_DAMAGED, SUFFIX, examine, find_snapshots, way_back
from findling.text.analysis.analysis import FINGERPRINT
from findling.text.chunking.syntax import SYNTAXES

_LITTLE_SPACE = 200 << 20
_MOST_NAMED = 3
"""Files that one note names."""

_REPAIR = "findling doctor --repair"

_BY_RULES = frozenset("excluded hidden ignored lock-file machine-made minified secret unknown-type".split())
"""Reasons that an include rule of the user overrides."""


def workspace_status(files: OpenedWorkspace, vectors: WorkspaceVectors, root: Path) -> Status:
    """The counts of a workspace, and the progress of its legs."""
    store = files.store
    counts = store.counts()
    indexed_at = store.get_meta("indexed_at")
    return Status(
        root=root,
        home=files.folder,
        resources=counts["resources"],
        chunks=counts["chunks"],
        characters=counts["characters"],
        size_bytes=sum(map(file_size, files.folder.rglob("*"))),
        seq=store.seq(),
        keyword_seq=files.leg.seq(),
        indexed_at=float(indexed_at) if indexed_at else None,
        skipped=dict(Counter(entry.reason for entry in store.skipped())),
        format=store.format,
        analyzer=FINGERPRINT,
        meaning=vectors.account(),
        graph_seq=_graph_seq(files),
    )


def _graph_seq(files: OpenedWorkspace) -> int:
    with suppress(CorruptError):  # which doctor reports, and the next question mends
        leg = lazy_leg(files, GRAPH).opened()
        return leg.seq() if leg is not None else 0
    return 0


def visible_counts(legs: Retrievers) -> dict[str, Any]:
    """Counts of the resources and chunks that the caller of these legs may see."""
    return {"resources": sum(1 for _ in legs.store.resources()), "chunks": legs.keyword.size()}


def why_left_out(root: Path, path: str, entry: SkippedPath) -> Degradation:
    """The reason why a file or folder is not indexed, and the next step; the entry is its own or of a folder above."""
    from findling.sources.files.discovery import REASONS

    fix = "findling status --list skipped"
    if entry.reason == "too-large":
        fix = _larger_limit(root, [path])
    elif entry.reason in _BY_RULES:
        fix = f"findling config add index.include {quote('/' + path)}"
    reason = REASONS[entry.reason]
    told = reason + (f" ({entry.detail})" if entry.detail not in ("", reason) else "")
    return Degradation(what=f"{root / path} is not indexed: {told}", fix=fix)


def too_large(root: Path, paths: Sequence[str]) -> Degradation:
    """The note that files are left out by their size, and the limit that would admit them."""
    shown = ", ".join(paths[:_MOST_NAMED]) + (", …" if len(paths) > _MOST_NAMED else "")
    return Degradation(
        what=f"{counted(len(paths), 'file')} left out as too large: {shown}", fix=_larger_limit(root, paths)
    )


def _larger_limit(root: Path, paths: Sequence[str]) -> str:
    """The command that admits files; one for the other limit follows where the files have both kinds."""
    from findling.sources.files.file_types import file_type

    sizes: dict[str, int] = {}
    for path in paths:
        kind = "document" if file_type(path.rpartition("/")[2]).kind == "document" else "file"
        sizes[kind] = max(sizes.get(kind, 0), file_size((root / path).resolve()))
    return "; ".join(f"findling config set index.max_{kind}_size {(size >> 20) + 1}MB" for kind, size in sizes.items())


def failures(skipped: Iterable[SkippedPath], resources: Iterable[Resource]) -> list[SkippedPath]:
    """The skipped files that could not be read, and the resources that were read in part."""
    from findling.sources.extracted import PARTIAL

    failed = [entry for entry in skipped if entry.changed_ns and entry.reason != "quota"]
    for resource in resources:
        if notes := [resource.fields[name] for name in PARTIAL if name in resource.fields]:
            failed.append(SkippedPath(resource.path or resource.rid, "read-in-part", "; ".join(notes)))
    return sorted(failed)


def check_workspace(files: OpenedWorkspace, vectors: WorkspaceVectors) -> Iterator[Check]:
    """Examine every part of a workspace."""
    yield from files.backend.examine()
    home, store = files.folder, _check_store(files)
    yield store
    try:
        read_manifest(home)
        yield _check("manifest", "can be read")
    except (FormatError, ManifestError) as error:
        yield _check("manifest", "", error.message, error.hint)
    if problem := identity_problem(home):
        yield _check("identity", "", problem, _REPAIR)
    if store.ok:  # a damaged truth is no measure of its legs
        try:
            yield from _check_leg(files)
        except CorruptError as error:
            yield _check("keyword leg", "", error.message, _REPAIR)
        for legs in files.backend.legs.values():
            yield from (_check("leg files", "", problem, _REPAIR) for problem in legs.damage())
        yield from _check_vectors(files, vectors)
        yield from (_check_lazy(leg, files) for leg in made_legs(files))
    if files.backend.capabilities.snapshots:
        yield from _check_snapshots(home)
    loose = [file.name for file in home.glob("index.sqlite*") if file.stat().st_mode & 0o077]
    problem = f"others can read {', '.join(loose)}" if loose else ""
    yield _check("privacy", "only you can read the index", problem, f"chmod 600 {home}/index.sqlite*")
    free = shutil.disk_usage(home).free
    problem = f"only {free >> 20} MB free at {home}" if free < _LITTLE_SPACE else ""
    yield _check("disk space", f"{free >> 30} GB free", problem, "free some space")
    yield from _check_program()


def check_machine(settings: Settings, error: WorkspaceError, place: Iterable[Check] = ()) -> Iterator[Check]:
    """Examine all that a first index needs; `error` says why there is none, `place` are the checks of its place."""
    from findling.service.index.model_choice import choosing, find_model, readers_of

    yield _check("index", "", error.message, error.hint)
    yield from place
    home = home_folder(settings["store.home"])
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    problem = "" if os.access(there, os.W_OK | os.X_OK) else f"{home} cannot be written: check who owns {there}"
    yield _check("home", f"{home} can be written", problem, "choose another place with FINDLING_HOME")
    try:
        found = [find_model(choosing(settings, one.spec), "semantic.model") for one in readers_of(settings)]
        names = ", ".join([files.card.name for files in found if files is not None])
        yield _check("model", names or "none; words and instant vectors find without one")
    except (InvalidValueError, ModelNotFoundError) as wrong:
        yield _check("model", "", wrong.message, wrong.hint)
    yield from _check_program()


def _check_program() -> Iterator[Check]:
    yield _check("sqlite", sqlite3.sqlite_version)
    modules = {syntax.module for syntax in SYNTAXES.values()}
    found = sum(find_spec(module) is not None for module in modules)
    rest = "" if found == len(modules) else "; more with pip install 'findling[code]', patterns serve the others"
    yield _check("grammars", f"{found} of {len(modules)} for syntax trees{rest}")
    yield _check("compiled core", f"not in use: {core_problem}; Python does its work" if core_problem else "in use")
    yield _check("vector kernel", scan_kernel())


def _check(name: str, detail: str, problem: str = "", hint: str = "") -> Check:
    return Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")


def _check_store(files: OpenedWorkspace) -> Check:
    try:
        problems = files.store.integrity()
        detail = "" if problems else f"sound, {counted(files.store.counts()['chunks'], 'chunk')}"
    except CorruptError as error:
        detail, problems = "", [error.message]
    return _check("truth store", detail, "; ".join(problems), way_back(files.folder) if problems else "")


def _check_leg(files: OpenedWorkspace) -> Iterator[Check]:
    store, leg = files.store, files.leg
    behind = store.seq() - leg.seq()
    state = (
        f"{counted(behind, 'change')} behind, the next search catches up" if behind else f"in step, change {leg.seq()}"
    )
    yield _check("keyword leg", state)
    if not behind and leg.unit == "chunk":
        in_truth, in_leg = store.chunk_ids(), leg.cids()
        missing, extra = len(in_truth - in_leg), len(in_leg - in_truth)
        problem = (
            f"{counted(missing, 'chunk')} missing, {extra} too many in {files.backend.url}" if missing or extra else ""
        )
        yield _check("keyword leg content", f"{counted(len(in_leg), 'chunk')}, the same as the truth", problem, _REPAIR)


def _check_lazy(lazy: LazyLeg[Any], files: OpenedWorkspace) -> Check:
    """Examine a leg that somebody has wanted."""
    name = f"{lazy.name} leg"
    try:
        leg = lazy.opened()
        if leg is None or leg.seq() != files.store.seq():
            return _check(name, lazy.late)
        return _check(name, *lazy.examined(leg), _REPAIR)
    except StoreDamagedError:
        raise
    except CorruptError as error:
        return _check(name, "", error.message, _REPAIR)


def _check_vectors(files: OpenedWorkspace, vectors: WorkspaceVectors) -> Iterator[Check]:
    store = files.store
    chunks = store.chunk_ids()
    for name, leg in vectors.legs():
        if isinstance(leg, CorruptError):
            yield _check(name, "", leg.message, _REPAIR)
            continue
        behind = store.seq() - leg.seq()
        try:
            extra, wrong = 0 if behind else len(leg.table.cids() - chunks), leg.table.damaged_parts()
        except StoreDamagedError:
            raise
        except CorruptError as error:
            yield _check(name, "", error.message, _REPAIR)
            continue
        state = f"{counted(behind, 'change')} behind, the next search by meaning catches up" if behind else "in step"
        problem = f"{counted(extra, 'vector')} in {leg.table.where} of chunks that are not there" if extra else ""
        if wrong:
            problem = f"{', '.join(wrong)} in {leg.table.where}: not what was written; nothing is lost"
        yield _check(name, f"{counted(len(leg), 'vector')}, {state}", problem, _REPAIR)
    if damaged := store.damaged_vectors():
        problem = f"{counted(damaged, 'vector')} damaged; the model reads these passages again"
        yield _check("stored vectors", "", problem, _REPAIR)
    account = vectors.account()
    detail = (
        f"{account['model']}, {account['read']} of {counted(account['of'], 'passage')} read"
        if account["model"]
        else "none"
    )
    yield _check("model", detail, "; ".join(account["problems"]), "findling models list")


def _check_snapshots(home: Path) -> Iterator[Check]:
    # A restore keeps a copy of a damaged store for people to look into.
    snapshots = [one for one in find_snapshots(home / FOLDER) if not one.problem.startswith(OF_DAMAGED)]
    wrong = {one.name: "; ".join(problems) for one in snapshots if (problems := examine(one.path))}
    for name, problem in wrong.items():
        problem = f"{home / FOLDER / name}{SUFFIX} cannot be restored: {problem}"
        yield _check("snapshot", "", problem, f"findling snapshot drop {name}")
    if snapshots and not wrong:
        yield _check("snapshots", f"{len(snapshots)}, all can be restored")
