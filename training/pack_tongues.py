"""Pack a trained table of other languages as findling ships it: `python training/pack_tongues.py tongues.npz`.

The pieces become one compressed list, the rows one file that is read where it lies in memory, the turn whole numbers.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

SOURCES = Path(__file__).parents[1] / "src" / "findling"
VECTORS = SOURCES / "models" / "local" / "data"
PIECES = SOURCES / "text" / "analysis" / "data" / "tongue-pieces.txt.gz"

TURN = 2**18
"""Parts of 1 that the turn is counted in: the largest of its numbers takes 15 bits."""


def pack(trained: Path) -> None:
    """Write the three files of a table."""
    with np.load(trained) as file:
        pieces = zlib.decompress(file["pieces"].tobytes())
        codes, scales, turn = file["codes"], file["scales"], file["turn"]
    names = pieces.decode().split("\n")
    assert names == sorted(names, key=str.encode)
    rows: Any = np.empty(len(codes), dtype=[("scale", "<f2"), ("codes", "u1", (codes.shape[1],))])
    rows["scale"], rows["codes"] = scales, codes
    np.save(VECTORS / "tongue-rows.npy", rows)
    np.save(VECTORS / "tongue-turn.npy", np.rint(turn.astype(np.float64) * TURN).astype("<i2"))
    with PIECES.open("wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write(pieces + b"\n")


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
