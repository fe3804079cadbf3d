"""The upkeep of a workspace's folder: measure its parts, find unused ones, rewrite them."""

from __future__ import annotations

import filecmp
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError
from findling.domain.ports import LegIndex
from findling.stores.filesystem import discard, file_size, sync_folder
from findling.stores.graph.graph_file import is_foreign
from findling.stores.graph.graph_leg import EntityGraph, graph_owner
from findling.stores.keyword.class_segments import discard_classes
from findling.stores.keyword.exact_leg import TrigramLeg, exact_owner
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.merge import Entries, adopt_index, count_entries
from findling.stores.keyword.segment_files import read_state, unsound_part
from findling.stores.local.identity import DAMAGED_FILE, EXACT, GRAPH, IDENTITY_FILE, STORE_FILE, VIEWS, keyword_folder
from findling.stores.sqlite.backup import copy_store
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import FREE_SHARE, count_pages, drop_idle, fold_log, rewrite_store, trim_log
from findling.stores.vectors.vector_files import MatrixHeader, read_header

__all__ = [
    "FREE_SHARE",
    "Matrix",
    "absorbed_by_all",
    "check_legs",
    "copy_folder",
    "drop_wishes",
    "is_worthwhile",
    "matrices",
    "measure_parts",
    "remove_stale",
    "rewrite_parts",
    "scan_kernel",
    "trim_changes",
]

_LEAST_BYTES = 4 << 20
"""The least unused space that makes a rewrite worthwhile."""

_LEAST_ENTRIES = 1_000
"""The same for rows of a matrix."""

_DEAD_SHARE = 0.1
"""The share of deleted entries from which on a keyword leg is rewritten, however small it is.

They count in no score. Until then each first question for a word counts the entries in which it lives, 10 µs or more,
and every process that opens the leg makes up for them, 1.5 ms."""

_OTHER_FILES = frozenset(
    {
        "write.lock",
        "refine.lock",
        "snapshot.lock",
        "upkeep.lock",
        "waiting.lock",
        "snapshots",
        "manifest.json",
        IDENTITY_FILE,
    }
)

_UNUSED_S = 30 * 86_400.0
"""The age from which on a part without writes counts as unused."""


class Matrix(NamedTuple):
    """A folder with vectors, and its header."""

    folder: Path
    header: MatrixHeader

    @property
    def dead_share(self) -> float:
        """The dead rows as a share of all."""
        return self.header.dead / self.header.rows if self.header.rows else 0.0


def matrices(folder: Path) -> Iterator[Matrix]:
    """The vectors of a workspace, without unreadable ones, which a search repairs."""
    for place in sorted(folder.glob("vectors-*")):
        with suppress(CorruptError):
            header = read_header(place)
            if header is not None:
                yield Matrix(place, header)


def is_worthwhile(folder: Path, unit: str) -> bool:
    """Whether a good part of a workspace is unused; a look at three headers, some 2 ms. Raises CorruptError."""
    if not (folder / STORE_FILE).exists():
        return False
    pages = count_pages(folder / STORE_FILE)
    if pages.free_share >= FREE_SHARE and pages.free * pages.size >= _LEAST_BYTES:
        return True
    if _has_many_dead(count_entries(keyword_folder(folder, unit))):
        return True
    return any(one.dead_share >= FREE_SHARE and one.header.dead >= _LEAST_ENTRIES for one in matrices(folder))


def check_legs(folder: Path) -> None:
    """Check the files of legs that nobody has checked lately; the next one that opens a damaged leg rebuilds it."""
    for place in (*folder.glob("keyword*"), folder / EXACT):
        unsound_part(place)


def _has_many_dead(entries: Entries) -> bool:
    """Whether so many entries are deleted that searches take longer."""
    return entries.deleted > 0 and entries.deleted_share >= _DEAD_SHARE


def trim_changes(folder: Path, store_id: str) -> int:
    """Forget changes that every leg has absorbed; return how many. The caller holds the write lock."""
    return trim_log(folder / STORE_FILE, absorbed_by_all(folder, store_id) or 0)


def drop_wishes(folder: Path, model: str) -> int:
    """Forget wishes for vectors of a model that has read everything; return how many."""
    return drop_idle(folder / STORE_FILE, model)


def rewrite_parts(
    folder: Path,
    store_id: str,
    unit: str,
    *,
    full: bool,
    fill: Callable[[LegIndex], object],
) -> Iterator[str]:
    """Rewrite the parts of which enough is unused, or all of them, and name each. The caller holds the write lock.

    `fill` has a new keyword leg catch up, which then takes the place of the present one.
    """
    opens: dict[Path, Callable[[Path], TantivyLeg | TrigramLeg]] = {
        keyword_folder(folder, unit): lambda fresh: TantivyLeg.open(fresh, store_id=store_id, unit=unit),
        folder / EXACT: lambda fresh: TrigramLeg.open(fresh, store_id=store_id),
    }
    for place, opened in opens.items():
        entries = count_entries(place)
        if entries.all and (full or _has_many_dead(entries)):
            with _aside(place) as fresh:
                with closing(opened(fresh)) as leg:
                    fill(leg)
                adopt_index(fresh, place)
            yield _part(place.name)
    for matrix in matrices(folder):
        if matrix.header.dead and (full or matrix.dead_share >= FREE_SHARE):
            from findling.stores.vectors.vector_matrix import rewrite_matrix

            rewrite_matrix(matrix.folder, matrix.header)
            yield matrix.folder.name
    if full or count_pages(folder / STORE_FILE).free_share >= FREE_SHARE:
        rewrite_store(folder / STORE_FILE)
        yield "truth store"
    fold_log(folder / STORE_FILE)


@contextmanager
def _aside(place: Path) -> Iterator[Path]:
    """A folder beside another one, which is gone in the end."""
    fresh = place.with_name(f"{place.name}.fresh")
    discard(fresh)
    try:
        yield fresh
    finally:
        discard(fresh)


def measure_parts(folder: Path) -> dict[str, int]:
    """The bytes of every part of a workspace, without its snapshots."""
    parts = {
        "truth store": 0,
        "write-ahead log": 0,
        "keyword leg": 0,
        "exact leg": 0,
        "graph leg": 0,
        "vectors": 0,
        "views": 0,
        "other": 0,
    }
    for path in folder.rglob("*"):
        top = path.relative_to(folder).parts[0]
        if top != "snapshots":
            parts[_part(top)] += file_size(path)
    return parts


def absorbed_by_all(folder: Path, store_id: str) -> int | None:
    """The number that every leg has absorbed which would catch up from the log; None when there is no such leg.

    The legs of callers with limited rights are not among them: they do not go by the log.
    """
    own = (one.header for one in matrices(folder) if one.header.made_for.partition("|")[0] == store_id)
    reached = [header.state.get("seq", 0) for header in own]
    for place in folder.glob("keyword*"):
        unit = place.name.removeprefix("keyword").removeprefix("-") or "chunk"
        with suppress(CorruptError):
            reached.append(TantivyLeg.open(place, store_id=store_id, unit=unit).seq())
    if (folder / EXACT).exists():
        with suppress(CorruptError):
            reached.append(TrigramLeg.open(folder / EXACT, store_id=store_id).seq())
    with suppress(CorruptError):
        reached.append(EntityGraph.open(folder / GRAPH, store_id=store_id).seq())
    # A leg that has absorbed nothing starts from nothing, with any log.
    return min(filter(None, reached), default=None)


def remove_stale(folder: Path, *, store_id: str, unit: str, models: frozenset[str]) -> list[str]:
    """Delete legs of other stores and models, and parts unused for 30 days; return their names.

    `models` are those with vectors. The caller holds the write lock.
    """
    gone = []
    for path in _stale(folder, store_id, unit, models):
        gone.append(path.name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    views = folder / VIEWS
    return gone + [f"{VIEWS}/{name}" for name in discard_classes(views, _unused(views.glob("*/")))]


def _stale(folder: Path, store_id: str, unit: str, models: frozenset[str]) -> Iterator[Path]:
    # Left by processes that were killed while they deleted a workspace, or made a leg aside.
    yield from (path for path in folder.parent.glob(".deleted-*") if _was_workspace(path))
    yield from (*folder.glob("keyword*.fresh"), *folder.glob(f"{EXACT}.fresh"))
    for matrix in matrices(folder):
        owner, _, model = matrix.header.made_for.partition("|")
        if owner != store_id or model not in models:
            yield matrix.folder
    state = read_state(folder / EXACT) if (folder / EXACT).exists() else None
    if state is not None and state.note.made_for != exact_owner(store_id):
        yield folder / EXACT
    if (folder / GRAPH).exists() and is_foreign(folder / GRAPH, graph_owner(store_id)):
        yield folder / GRAPH
    own = keyword_folder(folder, unit)
    others = (path for path in folder.glob("keyword*") if path != own and path.suffix != ".fresh")
    yield from _unused([*others, *folder.glob(f"{DAMAGED_FILE}*")])


def _unused(paths: Iterable[Path]) -> Iterator[Path]:
    then = time.time() - _UNUSED_S
    for path in paths:
        try:
            latest = max(file.lstat().st_mtime for file in (path, *path.glob("*")))
        except FileNotFoundError:
            continue  # another process is writing it
        if latest < then:
            yield path


def _was_workspace(path: Path) -> bool:
    """Whether a folder of that name is one of ours: a workspace may lie among the files of a project."""
    if not path.name.removeprefix(".deleted-").isdecimal() or not path.is_dir():
        return False
    return all(_part(file.name) != "other" or _is_own(file.name) for file in path.iterdir())


def _is_own(name: str) -> bool:
    return name in _OTHER_FILES or (name.startswith("accesses-") and name.endswith(".log"))


def _part(top: str) -> str:
    if top == STORE_FILE:
        return "truth store"
    if top.startswith(f"{STORE_FILE}-"):
        return "write-ahead log"
    starts = (
        ("keyword", "keyword leg"),
        (EXACT, "exact leg"),
        (GRAPH, "graph leg"),
        ("vectors-", "vectors"),
        (VIEWS, "views"),
    )
    return next((part for start, part in starts if top.startswith(start)), "other")


_NOT_COPIED = (
    "write.lock",
    "refine.lock",
    "upkeep.lock",
    "waiting.lock",
    STORE_FILE,
    f"{STORE_FILE}-wal",
    f"{STORE_FILE}-shm",
)


def copy_folder(source: Path, target: Path) -> None:
    """Copy a workspace, durably, and compare. Raises CorruptError when the copy is not what it was made from."""
    target.mkdir(mode=0o700)
    # SQLite copies it: vectors are written without the write lock.
    copy_store(source / STORE_FILE, target / STORE_FILE)
    with SqliteStore.open(target / STORE_FILE, readonly=True) as store:
        if problems := store.integrity():
            raise CorruptError(f"{source / STORE_FILE} is damaged: {problems[0]}", hint="findling doctor")
    for file in sorted(source.rglob("*")):
        copy = target / file.relative_to(source)
        if file.is_dir():
            copy.mkdir(mode=0o700)
        elif file.relative_to(source).as_posix() not in _NOT_COPIED:
            with file.open("rb") as old_file, copy.open("xb") as new_file:
                shutil.copyfileobj(old_file, new_file)
                new_file.flush()
                os.fsync(new_file.fileno())
            shutil.copystat(file, copy)
            if not filecmp.cmp(file, copy, shallow=False):
                raise CorruptError(f"{file} changed while it was copied", hint="try again")
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        sync_folder(folder)


def scan_kernel() -> str:
    """The code that a search by meaning multiplies vectors with on this machine."""
    from findling.stores.vectors import vector_scan  # which needs numpy

    return vector_scan.scan_kernel()
