"""Legs as they lie in folders of a host, whatever they are: whose they are, and which change they have reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from findling.domain.backends import EXACT, GRAPH
from findling.domain.errors import CorruptError


class LegFiles(NamedTuple):
    """A leg on this host: its folder, the mark of what it was made for and how, and the change it has reached."""

    folder: Path
    owner: str
    seq: int


def legs_in(folder: Path) -> Iterator[LegFiles]:
    """The legs of a workspace that follow from its changes alone, as far as they can be read."""
    for place in (*sorted(folder.glob("keyword*")), *sorted(folder.glob("vectors-*")), folder / GRAPH, folder / EXACT):
        if (leg := leg_at(place)) is not None and leg.seq:
            yield leg


def leg_at(folder: Path) -> LegFiles | None:
    """The leg in a folder; None without one, for a damaged one, and for vectors of a model, which the truth keeps."""
    with suppress(CorruptError, ValueError):
        return _vectors(folder) or _graph(folder) or _words(folder)
    return None


def vector_owner(store_id: str, model: str) -> str:
    """The mark of vectors of a store and model, as this version keeps them."""
    from findling.stores.vectors.vector_files import LAYOUT

    return f"{LAYOUT}|{store_id}|{model}"


def _vectors(folder: Path) -> LegFiles | None:
    if not folder.name.startswith("vectors-"):
        return None
    from findling.stores.vectors.vector_files import LAYOUT, read_header

    header = read_header(folder)
    if header is None or "mark" in header.state:
        return None
    return LegFiles(folder, f"{LAYOUT}|{header.made_for}", header.state.get("seq", 0))


def _graph(folder: Path) -> LegFiles | None:
    if folder.name != GRAPH:
        return None
    from findling.stores.graph.graph_file import read_graph

    graph = read_graph(folder)
    return LegFiles(folder, graph.owner, graph.seq) if graph is not None else None


def _words(folder: Path) -> LegFiles | None:
    if folder.name != EXACT and not folder.name.startswith("keyword"):
        return None
    from findling.stores.keyword.segment_files import read_state

    state = read_state(folder)
    return LegFiles(folder, state.note.made_for, state.seq) if state is not None else None
