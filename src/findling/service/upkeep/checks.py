"""The examination behind `findling doctor`."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import CorruptError, FormatError, ManifestError
from findling.domain.ports import KeywordLeg, SkippedPath, TruthStore
from findling.domain.reports import Status
from findling.domain.resources import Resource
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.index.embeddings import WorkspaceVectors
from findling.service.index.index_files import OpenedWorkspace
from findling.service.workspace.manifest import read_manifest
from findling.stores.filesystem import file_size
from findling.stores.local.identity import identity_problem
from findling.stores.local.snapshot_files import FOLDER, OF_DAMAGED, SUFFIX, examine, find_snapshots, way_back
from findling.text.analysis.analysis import FINGERPRINT
from findling.text.chunking.syntax_queries import SYNTAXES

__all__ = ["Finding", "check_workspace", "failures", "visible_counts", "workspace_status"]


def workspace_status(files: OpenedWorkspace, vectors: WorkspaceVectors, root: Path) -> Status:
    """What a workspace holds, and how far its legs have come."""
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
    )


def visible_counts(legs: Retrievers) -> dict[str, Any]:
    """How much there is for the eyes of whoever the legs are for."""
    return {"resources": sum(1 for _ in legs.store.resources()), "chunks": legs.keyword.size()}


def failures(skipped: Iterable[SkippedPath], resources: Iterable[Resource]) -> list[SkippedPath]:
    """Of all that was left out, the files that could not be read; and those that were read in part."""
    from findling.sources.documents.extracted import PARTIAL

    failed = [entry for entry in skipped if entry.changed_ns and entry.reason != "quota"]
    for resource in resources:
        if notes := [resource.fields[name] for name in PARTIAL if name in resource.fields]:
            failed.append(SkippedPath(resource.path or resource.rid, "read-in-part", "; ".join(notes)))
    return sorted(failed)


_LITTLE_SPACE = 200 << 20


class Finding(NamedTuple):
    """What was looked at, what was seen, the problem ("" when all is well) and the step that mends it."""

    name: str
    detail: str
    problem: str
    hint: str


def check_workspace(files: OpenedWorkspace, vectors: WorkspaceVectors) -> Iterator[Finding]:
    """Examine every part of a workspace, one finding each."""
    home, store = files.folder, _check_store(files)
    yield store
    yield from _check_notes(home)
    if not store.problem:  # nothing can be compared with a truth that is damaged
        try:
            yield from _check_leg(files.store, files.leg, files.backend.url)
        except CorruptError as error:
            yield Finding("keyword leg", "", error.message, "findling doctor --repair")
        for problem in files.backend.damage():
            yield Finding("keyword leg files", "", problem, "findling doctor --repair")
        yield from _check_vectors(files.store, vectors)
    if files.backend.capabilities.snapshots:
        yield from _check_snapshots(home)
    yield _check_modes(home)
    free = shutil.disk_usage(home).free
    short = f"only {free >> 20} MB free at {home}" if free < _LITTLE_SPACE else ""
    yield Finding("disk space", f"{free >> 30} GB free", short, "free some space")
    yield Finding("sqlite", sqlite3.sqlite_version, "", "")
    yield _check_grammars()


def _check_store(files: OpenedWorkspace) -> Finding:
    try:
        problems = files.store.integrity()
        detail = "" if problems else f"sound, {files.store.counts()['chunks']} chunks"
    except CorruptError as error:
        detail, problems = "", [error.message]
    return Finding("truth store", detail, "; ".join(problems), way_back(files.folder) if problems else "")


def _check_leg(store: TruthStore, leg: KeywordLeg, place: str) -> Iterator[Finding]:
    behind = store.seq() - leg.seq()
    state = f"{behind} changes behind, the next search catches up" if behind else f"in step, change {leg.seq()}"
    yield Finding("keyword leg", state, "", "")
    if not behind and leg.unit == "chunk":
        in_truth, in_leg = store.chunk_ids(), leg.cids()
        missing, extra = len(in_truth - in_leg), len(in_leg - in_truth)
        problem = f"{missing} chunks missing, {extra} too many in {place}" if missing or extra else ""
        yield Finding(
            "keyword leg content", f"{len(in_leg)} chunks, the same as the truth", problem, "findling doctor --repair"
        )


def _check_notes(home: Path) -> Iterator[Finding]:
    """What is kept beside the truth: the manifest and the identity."""
    try:
        read_manifest(home)
        yield Finding("manifest", "can be read", "", "")
    except (FormatError, ManifestError) as error:
        yield Finding("manifest", "", error.message, error.hint)
    if problem := identity_problem(home):
        yield Finding("identity", "", problem, "findling doctor --repair")


def _check_snapshots(home: Path) -> Iterator[Finding]:
    # What a restore has kept of a damaged store is there for people to look into.
    snapshots = [one for one in find_snapshots(home / FOLDER) if not one.problem.startswith(OF_DAMAGED)]
    wrong = {one.name: "; ".join(problems) for one in snapshots if (problems := examine(one.path))}
    for name, problem in wrong.items():
        hint = f"findling snapshot drop {name}"
        yield Finding("snapshot", "", f"{home / FOLDER / name}{SUFFIX} cannot be restored: {problem}", hint)
    if snapshots and not wrong:
        yield Finding("snapshots", f"{len(snapshots)}, all can be restored", "", "")


def _check_vectors(store: TruthStore, vectors: WorkspaceVectors) -> Iterator[Finding]:
    chunks = store.chunk_ids()
    for name, leg in vectors.legs():
        if isinstance(leg, CorruptError):
            yield Finding(name, "", leg.message, "findling doctor --repair")
            continue
        behind = store.seq() - leg.seq()
        extra = 0 if behind else len(leg.table.cids() - chunks)
        state = f"{behind} changes behind, the next search by meaning catches up" if behind else "in step"
        problem = f"{extra} vectors in {leg.table.where} of chunks that are not there" if extra else ""
        if wrong := leg.table.damaged_parts():
            problem = f"{', '.join(wrong)} in {leg.table.where}: not what was written; nothing is lost"
        yield Finding(name, f"{len(leg)} vectors, {state}", problem, "findling doctor --repair")
    if damaged := store.damaged_vectors():
        problem = f"{damaged} vectors of models are not what was put in; the model reads these passages again"
        yield Finding("stored vectors", "", problem, "findling doctor --repair")
    account = vectors.account()
    told = f"{account['model']}, {account['read']} of {account['of']} passages read" if account["model"] else "none"
    yield Finding("model", told, "; ".join(account["problems"]), "findling models list")


def _check_grammars() -> Finding:
    modules = {syntax.module for syntax in SYNTAXES.values()}
    found = sum(find_spec(module) is not None for module in modules)
    rest = "" if found == len(modules) else "; more with pip install 'findling[code]', patterns serve the others"
    return Finding("grammars", f"{found} of {len(modules)} for syntax trees{rest}", "", "")


def _check_modes(home: Path) -> Finding:
    loose = [file.name for file in home.glob("index.sqlite*") if file.stat().st_mode & 0o077]
    problem = f"others can read {', '.join(loose)}" if loose else ""
    return Finding("privacy", "only you can read the index", problem, f"chmod 600 {home}/index.sqlite*")
