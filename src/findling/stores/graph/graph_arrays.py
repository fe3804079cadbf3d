"""The columns of a graph as arrays: put together from rows, cut down to some of them, and walked around a question.

Columns depend on their rows alone, in no order. So a leg that caught up has the bytes of a rebuilt one, and the rows
that a caller may see give the columns of a leg that holds nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from findling.domain.backends import Neighbourhood
from findling.text.mining.chunk_names import LEVEL_WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_ROWS = 800
"""Chunks of a neighbourhood."""

_MOST_OF_ONE = 60
"""Chunks that one thing adds to a neighbourhood."""

_LEAST_HUB, _HUB_SHARE = 20, 0.02
"""A thing that more resources name than both says nothing."""


class NamedRow(NamedTuple):
    """A chunk with the number of its resource, and the codes of its names: hash and level."""

    cid: int
    number: int
    codes: Sequence[int]


class RowTable(NamedTuple):
    """Rows in the order of their chunk ids, and all their codes with the row of each."""

    cids: NDArray[np.int64]
    numbers: NDArray[np.int64]
    places: NDArray[np.intp]
    codes: NDArray[np.uint32]


def rows_of(columns: Mapping[str, Any], added: Sequence[NamedRow], dropped: Collection[int]) -> RowTable:
    """The rows of columns without those dropped, and with those added, which replace others of the same chunk."""
    table = _decoded(columns)
    gone = np.array([*dropped, *(row.cid for row in added)], np.int64)
    return _joined(_kept(table, ~np.isin(table.cids, gone)) if len(gone) else table, added)


def restricted(
    columns: Mapping[str, Any], numbers: Collection[int], added: Sequence[NamedRow]
) -> dict[str, NDArray[Any]]:
    """The columns of a graph that holds the rows of these resources and those added, and nothing else."""
    table = _decoded(columns)
    allowed = np.fromiter(numbers, np.int64, len(numbers))
    return columns_of(_joined(_kept(table, np.isin(table.numbers, allowed)), added))


def columns_of(table: RowTable) -> dict[str, NDArray[Any]]:
    """The columns of rows. A thing that two of them name is a link, one that one of them names is a single."""
    hashes = table.codes >> 2
    order = np.lexsort((hashes, table.places))
    places, codes, hashes = table.places[order], table.codes[order], hashes[order]
    things, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    is_link = (counts > 1)[inverse]
    numbered = np.cumsum(counts > 1) - 1
    linked, levels = numbered[inverse[is_link]], codes[is_link] & 3
    by_thing = np.lexsort((places[is_link], -levels.astype(np.int64), linked))  # what has it as a title first
    size = len(table.cids)
    links = np.bincount(places[is_link], minlength=size)
    singles = np.bincount(places[~is_link], minlength=size)
    return {
        "cids": table.cids.astype("<i8"),
        "numbers": _narrow(table.numbers),
        "counts": (links << 4 | singles).astype("<u1"),
        "hashes": things[counts > 1].astype("<u4"),
        "degrees": _narrow(counts[counts > 1]),
        "spreads": _narrow(_spreads(linked, table.numbers[places[is_link]])),
        "links": _narrow(linked.astype(np.int64) << 2 | levels),
        "rows": _narrow(places[is_link][by_thing]),
        "singles": codes[~is_link].astype("<u4"),
    }


def to_columns(columns: Mapping[str, NDArray[Any]]) -> dict[str, tuple[str, bytes]]:
    """The columns as a file holds them."""
    codes = {1: "B", 2: "H", 4: "I", 8: "q"}
    return {name: (codes[column.itemsize], column.tobytes()) for name, column in columns.items()}


def around(graph: GraphArrays, asked: Iterable[int], cids: Sequence[int]) -> Neighbourhood:
    """The chunks near these ones and near the asked things, in the order of their ids, with the things between them."""
    named, alone = graph.rows_naming(asked)
    first = np.unique(np.concatenate([graph.rows_at(cids), alone.rows, *(rows[:_MOST_OF_ONE] for rows in named)]))
    return _linked(graph, graph.widened(graph.widened(first)), alone)


def named(graph: GraphArrays, asked: Iterable[int], cids: Sequence[int]) -> Neighbourhood:
    """These chunks and those that name the asked things, in the order of their ids, with all things that they name."""
    naming, alone = graph.rows_naming(asked, most=len(graph.cids))
    rows = np.unique(np.concatenate([graph.rows_at(cids), alone.rows, *(one[:_MOST_OF_ONE] for one in naming)]))
    flat, lengths = _spans(graph.link_starts, rows)
    links = graph.links[flat].astype(np.int64)
    single_flat, single_lengths = _spans(graph.single_starts, rows)
    singles = graph.singles[single_flat].astype(np.int64)
    places = np.concatenate([np.repeat(np.arange(len(rows)), one) for one in (lengths, single_lengths)])
    hashes = np.concatenate([graph.hashes[links >> 2].astype(np.int64), singles >> 2])
    spreads = np.concatenate([graph.spreads[links >> 2].astype(np.int64), np.ones(len(singles), np.int64)])
    things, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    levels = np.concatenate([links & 3, singles & 3])
    return _neighbourhood(graph, rows, things, spreads[first], (places, inverse, levels))


def whole(graph: GraphArrays, most: int) -> Neighbourhood:
    """The first chunks in the order of their ids, which is one by chance, with the things between them."""
    return _linked(graph, np.arange(min(most, len(graph.cids))), _Singles(np.empty(0, np.int64), _NONE))


def _linked(graph: GraphArrays, rows: NDArray[np.intp], alone: _Singles) -> Neighbourhood:
    """Rows with the things of their links, and with things that one of them alone names."""
    places, links = graph.links_of(rows)
    things, inverse = np.unique(links >> 2, return_inverse=True)
    # An asked thing that one chunk alone names is no link to another one, but leads to it.
    singles, own = np.unique(alone.codes >> 2, return_inverse=True)
    hashes = np.concatenate([graph.hashes[things], singles])
    spreads = np.concatenate([graph.spreads[things].astype(np.int64), np.ones(len(singles), np.int64)])
    places = np.concatenate([places, np.searchsorted(rows, alone.rows)])
    inverse = np.concatenate([inverse, own + len(things)])
    levels = np.concatenate([links & 3, alone.codes & 3])
    return _neighbourhood(graph, rows, hashes, spreads, (places, inverse, levels))


def _neighbourhood(
    graph: GraphArrays, rows: NDArray[np.intp], hashes: NDArray[Any], spreads: NDArray[Any], links: tuple[Any, Any, Any]
) -> Neighbourhood:
    """Rows and things, with links between both: places of rows, places of things, and levels, in any order."""
    order = np.argsort(links[0], kind="stable")
    places, things, levels = (one[order] for one in links)
    numbers = graph.numbers[rows].astype(np.int64)
    return Neighbourhood(graph.cids[rows], numbers, hashes, spreads, places, things, levels, graph.total)


class _Singles(NamedTuple):
    """Things that one row alone names: their codes, and the row of each."""

    codes: NDArray[np.int64]
    rows: NDArray[np.intp]


class GraphArrays:
    """Columns with the starts of their lists."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns = columns
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        self.cids, self.numbers = arrays["cids"], arrays["numbers"]
        self.hashes, self.spreads = arrays["hashes"], arrays["spreads"]
        self.links, self.rows, self.singles = arrays["links"], arrays["rows"], arrays["singles"]
        counts = arrays["counts"]
        self.link_starts = _starts(counts >> 4)
        self.single_starts = _starts(counts & 15)
        self.row_starts = _starts(arrays["degrees"])
        self.total = len(np.unique(self.numbers))
        self.hub = max(_LEAST_HUB, _HUB_SHARE * self.total)

    def rows_at(self, cids: Sequence[int]) -> NDArray[np.intp]:
        """The rows of those chunks that have one."""
        return _places_of(np.array(cids, np.int64), self.cids)

    def rows_naming(self, asked: Iterable[int], most: float | None = None) -> tuple[list[NDArray[np.intp]], _Singles]:
        """The rows of each asked thing that is no hub, and the asked things that one row alone names.

        Those that at most so many resources name count, in place of those that are no hubs.
        """
        wanted = np.unique(np.fromiter(asked, np.int64))
        known = _places_of(wanted, self.hashes)
        few = known[self.spreads[known] <= (self.hub if most is None else most)].tolist()
        named = [self.rows[self.row_starts[one] : self.row_starts[one + 1]].astype(np.intp) for one in few]
        # A table of the lower bits first: to compare every single with every thing takes 50 times as long.
        table = np.zeros(1 << 16, np.bool_)
        table[wanted & 0xFFFF] = True
        found = np.flatnonzero(table[self.singles >> 2 & 0xFFFF])
        found = found[np.isin(self.singles[found] >> 2, wanted)]
        rows = np.searchsorted(self.single_starts, found, side="right") - 1
        return named, _Singles(self.singles[found].astype(np.int64), rows)

    def links_of(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The links of rows to things that are no hubs, and for each the place of its row among these."""
        flat, lengths = _spans(self.link_starts, rows)
        links = self.links[flat].astype(np.int64)
        places = np.repeat(np.arange(len(rows)), lengths)
        is_telling = self.spreads[links >> 2] <= self.hub
        return places[is_telling], links[is_telling]

    def widened(self, first: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows with those that share a thing with them, by the most telling things first."""
        _, links = self.links_of(first)
        things, inverse = np.unique(links >> 2, return_inverse=True)
        if not len(things) or len(first) >= _MOST_ROWS:
            return first
        rarity = np.log1p(self.total / self.spreads[things])
        order = np.lexsort((things, -np.bincount(inverse, np.array(LEVEL_WEIGHTS)[links & 3]) * rarity))
        few = np.minimum(np.diff(self.row_starts)[things[order]], _MOST_OF_ONE)
        chosen = order[np.cumsum(few) <= _MOST_ROWS]
        flat, _ = _spans(self.row_starts, things[chosen], _MOST_OF_ONE)
        return np.unique(np.concatenate([first, self.rows[flat].astype(np.intp)]))


_NONE: NDArray[np.intp] = np.empty(0, np.intp)


def _decoded(columns: Mapping[str, Any]) -> RowTable:
    """The rows of columns."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    counts, links = arrays["counts"], arrays["links"].astype(np.int64)
    rows = np.arange(len(counts))
    linked = (arrays["hashes"][links >> 2].astype(np.int64) << 2 | links & 3).astype(np.uint32)
    return RowTable(
        arrays["cids"],
        arrays["numbers"].astype(np.int64),
        np.concatenate([np.repeat(rows, counts >> 4), np.repeat(rows, counts & 15)]),
        np.concatenate([linked, arrays["singles"].astype(np.uint32)]),
    )


def _joined(table: RowTable, added: Sequence[NamedRow]) -> RowTable:
    if not added:
        return table
    lengths = [len(row.codes) for row in added]
    codes = np.array([code for row in added for code in row.codes], np.uint32)
    places = np.repeat(np.arange(len(added)), lengths) + len(table.cids)
    cids = np.concatenate([table.cids, np.array([row.cid for row in added], np.int64)])
    numbers = np.concatenate([table.numbers, np.array([row.number for row in added], np.int64)])
    order = np.argsort(cids, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return RowTable(
        cids[order],
        numbers[order],
        rank[np.concatenate([table.places, places])],
        np.concatenate([table.codes, codes]),
    )


def _kept(table: RowTable, keep: NDArray[np.bool_]) -> RowTable:
    """The rows that are to be kept."""
    rank = np.cumsum(keep) - 1
    own = keep[table.places]
    return RowTable(table.cids[keep], table.numbers[keep], rank[table.places[own]], table.codes[own])


def _spreads(things: NDArray[Any], numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """The number of different resources of each thing."""
    order = np.lexsort((numbers, things))
    things, numbers = things[order], numbers[order]
    is_new = np.ones(len(things), np.bool_)
    is_new[1:] = (things[1:] != things[:-1]) | (numbers[1:] != numbers[:-1])
    return np.bincount(things[is_new])


def _places_of(wanted: NDArray[np.int64], ordered: NDArray[Any]) -> NDArray[np.intp]:
    """The places of those wanted values that are among the ordered ones."""
    places = np.searchsorted(ordered, wanted)
    is_there = places < len(ordered)
    is_there[is_there] = ordered[places[is_there]] == wanted[is_there]
    return places[is_there]


def _starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _spans(starts: NDArray[np.int64], which: NDArray[Any], most: int | None = None) -> tuple[Any, Any]:
    """The places of the elements of some lists, and the length of each list, at most so many."""
    lengths = starts[which + 1] - starts[which]
    lengths = lengths if most is None else np.minimum(lengths, most)
    offsets = np.repeat(starts[which] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return offsets + np.arange(int(lengths.sum())), lengths


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in as few bytes as the largest needs."""
    most = int(values.max()) if len(values) else 0
    return values.astype("<u1" if most < 1 << 8 else "<u2" if most < 1 << 16 else "<u4")
