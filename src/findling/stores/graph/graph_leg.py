"""The graph leg of a workspace: the names of all chunks, in one file that each commit replaces."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.backends import Neighbourhood
from findling.domain.errors import CorruptError
from findling.domain.ports import Change
from findling.stores.graph.graph_file import COLUMNS, LAYOUT, GraphFile, read_graph, stamp_of, write_graph
from findling.text.mining.chunk_names import chunk_names, hash_of, level_of

if TYPE_CHECKING:
    from findling.domain.resources import Chunk, Document
    from findling.stores.graph.graph_arrays import GraphArrays, NamedRow

_RULES = 2
"""The version of the rules of `text.mining`: a graph that others have made is made anew."""


def graph_owner(store_id: str) -> str:
    """The mark of a graph of this store, as this version makes it."""
    return f"{LAYOUT}.{_RULES}|graph|{store_id}"


class GraphView:
    """Implements `GraphRows` over columns, which a leg maps or a sight has cut down."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns
        self._arrays: GraphArrays | None = None

    def __len__(self) -> int:
        return len(self._columns["cids"])

    def holds(self, keys: Iterable[str]) -> bool:
        """Whether two chunks name any of these things; without numpy."""
        hashes = self._columns["hashes"]
        for key in keys:
            wanted = hash_of(key)
            place = bisect_left(hashes, wanted)
            if place < len(hashes) and hashes[place] == wanted:
                return True
        return False

    def around(self, keys: Iterable[str], cids: Sequence[int]) -> Neighbourhood:
        """The chunks near these ones and near the things with these keys. Raises CorruptError."""
        from findling.stores.graph.graph_arrays import around

        return self._part(lambda graph: around(graph, map(hash_of, keys), cids))

    def named(self, keys: Iterable[str], cids: Sequence[int]) -> Neighbourhood:
        """These chunks and some that name the things with these keys, with all their things. Raises CorruptError."""
        from findling.stores.graph.graph_arrays import named

        return self._part(lambda graph: named(graph, map(hash_of, keys), cids))

    def whole(self, most: int) -> Neighbourhood:
        """All chunks, or the first so many in the order of their ids, with the things of links. Raises CorruptError."""
        from findling.stores.graph.graph_arrays import whole

        return self._part(lambda graph: whole(graph, most))

    def _part(self, cut: Callable[[GraphArrays], Neighbourhood]) -> Neighbourhood:
        from findling.stores.graph.graph_arrays import GraphArrays

        columns = self._columns
        try:
            if self._arrays is None or self._arrays.columns is not columns:
                self._arrays = GraphArrays(columns)
            return cut(self._arrays)
        except (IndexError, ValueError) as error:
            raise CorruptError(f"the graph leg leads nowhere: {error}", hint="findling doctor --repair") from error


class EditedGraph(GraphView):
    """The part of a leg that knows no files: the changes since the last commit, and the rows that they lead to."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        super().__init__(columns)
        self._added: dict[int, NamedRow] = {}
        self._dropped: set[int] = set()

    def cids(self) -> set[int]:
        """All chunks that name something; for checks."""
        return set(self._columns["cids"])

    def within(self, numbers: Collection[int], others: Iterable[tuple[int, Document]] = ()) -> GraphView:
        """The same leg with nothing in it but the chunks of these resources, and of others as they are now."""
        from findling.stores.graph.graph_arrays import restricted

        seen = EditedGraph(NO_COLUMNS)
        for number, document in others:
            for chunk in document.chunks:
                seen._add(document, chunk, number)
        return GraphView(restricted(self._columns, numbers, list(seen._added.values())))

    def apply(self, changes: Iterable[Change]) -> None:
        """Absorb changes; they become visible and durable with `commit`."""
        for change in changes:
            self._dropped.update(change.dropped)
            for cid in change.dropped:
                self._added.pop(cid, None)
            document = change.document
            for chunk in document.chunks if document is not None else ():
                if document is not None and chunk.cid in change.added:
                    self._add(document, chunk, change.number)

    def _edited(self) -> dict[str, tuple[str, bytes]]:
        """Its columns with everything applied so far, as they are kept: a type code and bytes each."""
        from findling.stores.graph.graph_arrays import columns_of, rows_of, to_columns

        return to_columns(columns_of(rows_of(self._columns, list(self._added.values()), self._dropped)))

    def _add(self, document: Document, chunk: Chunk, number: int) -> None:
        from findling.stores.graph.graph_arrays import NamedRow

        levels: dict[int, int] = {}
        for one in chunk_names(document.resource, chunk.heading, document.text[chunk.start : chunk.end]):
            hash_ = hash_of(one.key)
            levels[hash_] = max(level_of(one), levels.get(hash_, 0))
        self._dropped.add(chunk.cid)
        self._added.pop(chunk.cid, None)
        if levels:
            self._added[chunk.cid] = NamedRow(
                chunk.cid, number, [hash_ << 2 | level for hash_, level in levels.items()]
            )

    def _forget(self) -> None:
        self._added.clear()
        self._dropped.clear()


class EntityGraph(EditedGraph):
    """Implements `GraphLeg` in one folder. Open it with `open`; writing needs the workspace's write lock."""

    def __init__(self, folder: Path, owner: str, opened: GraphFile | None) -> None:
        super().__init__(opened.columns if opened else NO_COLUMNS)
        self._folder, self._owner, self._opened = folder, owner, opened

    @classmethod
    def open(cls, folder: Path, *, store_id: str) -> EntityGraph:
        """Open the leg in a folder, or an empty one when there is none of this store. Raises CorruptError."""
        owner = graph_owner(store_id)
        return cls(folder, owner, read_graph(folder, owner))

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._opened.seq if self._opened else 0

    def is_current(self) -> bool:
        """Whether its file is still the one that was opened."""
        return self._opened is not None and self._opened.stamp == stamp_of(self._folder)

    def commit(self, seq: int) -> None:
        """Replace the file by one with everything applied so far, together with the number it reaches."""
        write_graph(self._folder, self._owner, seq, self._edited())
        self._forget()
        self._follow(read_graph(self._folder, self._owner))

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self._forget()
        self._follow(None)

    def close(self) -> None:
        """Release the file; what was not committed is forgotten."""
        self.clear()

    def _follow(self, opened: GraphFile | None) -> None:
        self._opened, self._columns = opened, opened.columns if opened else NO_COLUMNS


NO_COLUMNS: Mapping[str, Any] = dict.fromkeys(COLUMNS, memoryview(b"").cast("I"))
"""Those of a leg without a file, as a file has them: numbers, of which there are none."""
