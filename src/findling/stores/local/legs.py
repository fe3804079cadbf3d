"""The files of a workspace in a folder of this host: its legs, how they are opened, examined and rewritten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.backends import EXACT, GRAPH, KEYWORD, VECTORS, VIEWS
from findling.domain.errors import CorruptError

if TYPE_CHECKING:
    from findling.domain.backends import GraphLeg, LimitedLegs, VectorTable
    from findling.domain.ports import LegIndex
    from findling.stores.vectors.vector_files import MatrixHeader

STORE_FILE = "index.sqlite"
"""The truth of a workspace; a folder that holds it is a workspace."""

IDENTITY_FILE = "truth.txt"
"""The identity of the truth, noted beside it, so that a lost one is missed."""

DAMAGED_FILE = f"{STORE_FILE}.damaged"
"""A damaged store that another one has replaced."""

_LEAST_ROWS, _LEAST_SHARE = 1_000, 0.25
"""The unused rows of a matrix that make a rewrite worthwhile, and their share of all."""

_DEAD_SHARE = 0.1
"""The share of deleted entries from which on a keyword leg is rewritten, however small it is.

They count in no score. Until then each first question for a word counts the entries in which it lives, 10 µs or more,
and every process that opens the leg makes up for them, 1.5 ms."""


def forget_identity(folder: Path) -> None:
    """Delete the note, before another store replaces its own."""
    with suppress(OSError):
        (folder / IDENTITY_FILE).unlink(missing_ok=True)


class LegFiles(NamedTuple):
    """A leg on this host: its folder, the mark of what it was made for and how, and the change it has reached."""

    folder: Path
    owner: str
    seq: int


class FolderLegs:
    """A part of `LegStore`: legs in folders whose names begin with `name`. A kind says how one is read and opened."""

    name = ""
    open: Any

    def __init__(self, base: Path, prepare: Callable[[Path, str], object] = lambda folder, owner: None) -> None:
        """`prepare` is told of each leg before it is opened, with the mark of what it is made for."""
        self._base, self._prepare = base, prepare
        self.label = self.name if self.name in (VECTORS, VIEWS) else f"{self.name} leg"
        """The name of what is measured and rewritten."""

    def folder(self, key: str = "") -> Path:
        """The folder of a leg."""
        return self._base / self.name

    def folders(self) -> list[Path]:
        """The folders of all legs of this kind, without drafts."""
        return sorted(path for path in self._base.glob(f"{self.name}*") if path.suffix != ".fresh")

    def exists(self, key: str = "") -> bool:
        """Whether there is a folder, of whatever store or version."""
        return self.folder(key).exists()

    def owner(self, store_id: str, key: str = "") -> str:
        """The mark of a leg of a store, as this version makes it."""
        return ""

    def found(self, folder: Path) -> LegFiles | None:
        """The leg in a folder, whatever it was made for. Raises CorruptError or ValueError for a damaged one."""
        return None

    def leg_at(self, folder: Path) -> LegFiles | None:
        """The same; None for a damaged one, which opening it reports."""
        with suppress(CorruptError, ValueError):
            return self.found(folder)
        return None

    def state(self, store_id: str, key: str = "") -> Mapping[str, int]:
        """The numbers of its last commit; none without a leg of this store."""
        leg = self.leg_at(self.folder(key))
        return {"seq": leg.seq} if leg is not None and leg.owner == self.owner(store_id, key) else {}

    def discard(self, key: str | None = None) -> None:
        """Delete the leg of a key, or all of this kind."""
        from findling.stores.filesystem import discard

        for folder in self.folders() if key is None else [self.folder(key)]:
            discard(folder)

    def damage(self) -> list[str]:
        """Parts that are not what was written, one sentence each."""
        found = [(folder, self._damaged(folder)) for folder in self.folders()]
        return [f"{', '.join(wrong)} in {at}: not what was written; nothing is lost" for at, wrong in found if wrong]

    def _damaged(self, folder: Path) -> list[str]:
        from findling.stores.keyword.segment_files import damaged_parts

        return damaged_parts(folder)

    # Upkeep

    def reached(self, store_id: str) -> Iterable[int]:
        """The change that each leg of a store has reached which catches up from the log."""
        return [self.state(store_id).get("seq", 0)]

    def foreign(self, store_id: str, keys: Collection[str]) -> Iterator[Path]:
        """The folders of other stores, or of none of these keys."""
        return iter(())

    def is_worn(self, key: str) -> bool:
        """Whether a good part is unused."""
        from findling.stores.keyword.merge import count_entries

        entries = count_entries(self.folder(key))
        return entries.deleted > 0 and entries.deleted_share >= _DEAD_SHARE

    def rewritten(self, store_id: str, key: str, full: bool, fill: Callable[[LegIndex], object]) -> Iterator[str]:
        """Rewrite what is worn, or all with `full`, and name each. `fill` has a new leg catch up."""
        return iter(())


class KeywordLegs(FolderLegs):
    """Keyword legs. Each unit has its own folder, so that a switch rebuilds nothing."""

    name = KEYWORD

    def folder(self, key: str = "") -> Path:
        return self._base / (self.name if key in ("", "chunk") or self.name == EXACT else f"{self.name}-{key}")

    def owner(self, store_id: str, key: str = "") -> str:
        from findling.stores.keyword.segment_files import made_for

        return made_for(store_id, key)

    def found(self, folder: Path) -> LegFiles | None:
        from findling.stores.keyword.segment_files import read_state

        state = read_state(folder)
        return LegFiles(folder, state.note.made_for, state.seq) if state is not None else None

    def at(self, folder: Path, store_id: str, key: str) -> Any:
        from findling.stores.keyword.leg import TantivyLeg

        return TantivyLeg.open(folder, store_id=store_id, unit=key)

    def reached(self, store_id: str) -> Iterable[int]:
        return [self.state(store_id, unit).get("seq", 0) for unit in ("chunk", "page")]

    def open(self, store_id: str, key: str = "", size: int = 0) -> Any:
        from findling.stores.keyword.segment_files import DamageGuard

        folder = self.folder(key)
        self._prepare(folder, self.owner(store_id, key))
        DamageGuard(folder, self.label).check()
        return self.at(folder, store_id, key)

    def rewritten(self, store_id: str, key: str, full: bool, fill: Callable[[LegIndex], object]) -> Iterator[str]:
        from findling.stores.filesystem import discard
        from findling.stores.keyword.merge import adopt_index, count_entries

        folder = self.folder(key)
        if count_entries(folder).all and (full or self.is_worn(key)):
            fresh = folder.with_name(f"{folder.name}.fresh")
            discard(fresh)
            try:
                with closing(self.at(fresh, store_id, key)) as leg:
                    fill(leg)
                adopt_index(fresh, folder)
            finally:
                discard(fresh)
            yield self.label


class ExactLegs(KeywordLegs):
    """The exact leg, an index of the same kind."""

    name = EXACT

    def owner(self, store_id: str, key: str = "") -> str:
        from findling.stores.keyword.exact_leg import exact_owner

        return exact_owner(store_id)

    def at(self, folder: Path, store_id: str, key: str) -> Any:
        from findling.stores.keyword.exact_leg import TrigramLeg

        return TrigramLeg.open(folder, store_id=store_id)

    def foreign(self, store_id: str, keys: Collection[str]) -> Iterator[Path]:
        leg = self.leg_at(self.folder())
        if leg is not None and leg.owner != self.owner(store_id):
            yield leg.folder


class GraphLegs(FolderLegs):
    """The graph leg."""

    name = GRAPH

    def owner(self, store_id: str, key: str = "") -> str:
        from findling.stores.graph.graph_leg import graph_owner

        return graph_owner(store_id)

    def found(self, folder: Path) -> LegFiles | None:
        from findling.stores.graph.graph_file import read_graph

        graph = read_graph(folder)
        return LegFiles(folder, graph.owner, graph.seq) if graph is not None else None

    def open(self, store_id: str, key: str = "", size: int = 0) -> GraphLeg:
        from findling.stores.graph.graph_leg import EntityGraph

        self._prepare(self.folder(), self.owner(store_id))
        return EntityGraph.open(self.folder(), store_id=store_id)

    def foreign(self, store_id: str, keys: Collection[str]) -> Iterator[Path]:
        from findling.stores.graph.graph_file import is_foreign

        if self.exists() and is_foreign(self.folder(), self.owner(store_id)):
            yield self.folder()

    def _damaged(self, folder: Path) -> list[str]:
        from findling.stores.graph.graph_file import damaged_columns

        return damaged_columns(folder)


class VectorLegs(FolderLegs):
    """The vectors of each model; their header names it. They tell themselves what is damaged."""

    name = VECTORS

    def folder(self, key: str = "") -> Path:
        from hashlib import blake2b  # 3 ms of OpenSSL that a search by words has no use for

        return self._base / f"{self.name}-{blake2b(key.encode(), digest_size=6).hexdigest()}"

    def owner(self, store_id: str, key: str = "") -> str:
        from findling.stores.vectors.vector_files import LAYOUT

        return f"{LAYOUT}|{store_id}|{key}"

    def found(self, folder: Path) -> LegFiles | None:
        """The leg in a folder; none for vectors of a model, which the truth keeps."""
        from findling.stores.vectors.vector_files import LAYOUT, read_header

        header = read_header(folder)
        if header is None or "mark" in header.state:
            return None
        return LegFiles(folder, f"{LAYOUT}|{header.made_for}", header.state.get("seq", 0))

    def open(self, store_id: str, key: str = "", size: int = 0) -> VectorTable:
        from findling.stores.vectors.vector_matrix import VectorMatrix

        self._prepare(self.folder(key), self.owner(store_id, key))
        return VectorMatrix.open(self.folder(key), made_for=f"{store_id}|{key}", dimensions=size)

    def state(self, store_id: str, key: str = "") -> Mapping[str, int]:
        from findling.stores.vectors.vector_files import read_header

        header = read_header(self.folder(key))
        return header.state if header is not None and header.made_for == f"{store_id}|{key}" else {}

    def headers(self) -> Iterator[tuple[Path, MatrixHeader]]:
        """Each folder and its header, without unreadable ones, which a search repairs."""
        from findling.stores.vectors.vector_files import read_header

        for folder in self.folders():
            with suppress(CorruptError):
                header = read_header(folder)
                if header is not None:
                    yield folder, header

    def reached(self, store_id: str) -> Iterable[int]:
        return [one.state.get("seq", 0) for _, one in self.headers() if one.made_for.partition("|")[0] == store_id]

    def foreign(self, store_id: str, keys: Collection[str]) -> Iterator[Path]:
        for folder, header in self.headers():
            owner, _, model = header.made_for.partition("|")
            if owner != store_id or model not in keys:
                yield folder

    def is_worn(self, key: str) -> bool:
        return any(one.dead >= max(_LEAST_ROWS, _LEAST_SHARE * one.rows) for _, one in self.headers())

    def rewritten(self, store_id: str, key: str, full: bool, fill: Callable[[LegIndex], object]) -> Iterator[str]:
        for folder, header in self.headers():
            if header.dead and (full or header.dead >= _LEAST_SHARE * header.rows):
                from findling.stores.vectors.vector_matrix import rewrite_matrix

                rewrite_matrix(folder, header)
                yield folder.name


class ViewLegs(FolderLegs):
    """The keyword legs of callers with limited rights: segments of classes, which they share."""

    name = VIEWS

    def open(self, store_id: str, key: str = "", size: int = 0) -> LimitedLegs:
        from findling.stores.keyword.class_segments import ClassSegments

        return ClassSegments(self.folder(), store_id=store_id, unit=key)

    def discard(self, key: str | None = None) -> None:
        from findling.stores.keyword.class_segments import discard_classes

        discard_classes(self.folder())

    def _damaged(self, folder: Path) -> list[str]:
        from findling.stores.keyword.class_files import SEGMENT
        from findling.stores.keyword.segment_files import damaged_parts

        segments = sorted(folder.glob(f"*{SEGMENT}"))
        return [f"{segment.name}/{part}" for segment in segments for part in damaged_parts(segment)]


_KINDS: tuple[type[FolderLegs], ...] = (KeywordLegs, ExactLegs, GraphLegs, VectorLegs, ViewLegs)
"""Every kind of leg, in the order in which they are examined."""


def folder_legs(base: Path, *prepare: Callable[[Path, str], object]) -> dict[str, FolderLegs]:
    """The legs of a workspace in its folder, by name."""
    return {kind.name: kind(base, *prepare) for kind in _KINDS}


def legs_in(base: Path) -> Iterator[LegFiles]:
    """The legs of a workspace that follow from its changes alone, as far as they can be read."""
    for kind in folder_legs(base).values():
        yield from (leg for folder in kind.folders() if (leg := kind.leg_at(folder)) is not None and leg.seq)
