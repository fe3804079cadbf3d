"""Ridding a vector matrix of dead rows, on demand: a commit does it by itself only when a third of them is dead."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from findling.stores.vectors.vector_files import (
    Header,
    RowWriter,
    next_generation,
    remove_generation,
    remove_litter,
    write_header,
    writing,
)
from findling.stores.vectors.vector_graph import grow_graph, is_behind
from findling.stores.vectors.vector_view import VectorView

__all__ = ["rewrite_matrix"]

_COPIED_ROWS = 16_384


def rewrite_matrix(folder: Path, header: Header, graph_from: int) -> None:
    """Write the live rows of a matrix once more; those who search it go on with what they have opened.

    The caller holds the write lock. Raises CorruptError, DiskFullError or ReadOnlyError; the old rows then stand.
    """
    with writing(folder):
        fresh = _copied(folder, header, graph_from)
        _publish(folder, fresh)
        if is_behind(folder, fresh, graph_from):
            for grown in grow_graph(folder, fresh, VectorView(folder, fresh, graph_from).columns.codes):
                _publish(folder, grown)


def _copied(folder: Path, header: Header, graph_from: int) -> Header:
    old = VectorView(folder, header, graph_from)
    fresh = Header(header.made_for, header.dimensions, next_generation(folder), state=header.state)
    try:
        with closing(RowWriter(folder, fresh)) as writer:
            for start in range(0, header.rows, _COPIED_ROWS):
                rows = start + np.flatnonzero(old.alive[start : start + _COPIED_ROWS])
                writer.append([np.take(column, rows, axis=0) for column in old.columns[:-1]])
            writer.sync()
            return fresh._replace(rows=writer.rows, sums=writer.sums)
    except OSError:
        remove_generation(folder, fresh)
        raise


def _publish(folder: Path, header: Header) -> None:
    write_header(folder, header)
    remove_litter(folder, header)
