"""The files of a workspace in a folder, by their names."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = [
    "DAMAGED_FILE",
    "IDENTITY_FILE",
    "STORE_FILE",
    "VIEWS",
    "keyword_folder",
    "remove_drafts",
    "vector_folder",
]

STORE_FILE = "index.sqlite"
"""The truth of a workspace; a folder that holds it is a workspace."""

IDENTITY_FILE = "truth.txt"
"""The identity of the truth, noted beside it, so that a lost one is missed."""

DAMAGED_FILE = f"{STORE_FILE}.damaged"
"""A damaged store that another one has replaced."""

VIEWS = "views"
"""The folder of a workspace that holds the keyword legs of callers."""


def keyword_folder(folder: Path, unit: str) -> Path:
    """The folder of the keyword leg; each unit has its own, so that a switch rebuilds nothing."""
    return folder / ("keyword" if unit == "chunk" else f"keyword-{unit}")


def vector_folder(folder: Path, model: str) -> Path:
    """The folder of a model's vectors; its header names the model."""
    from hashlib import blake2b  # 3 ms of OpenSSL that a search by words has no use for

    return folder / f"vectors-{blake2b(model.encode(), digest_size=6).hexdigest()}"


def remove_drafts(folder: Path) -> None:
    """Delete drafts of killed processes from a workspace. The caller holds its write lock."""
    for pattern in (".*.new", "keyword*/.tmp*", "keyword*/.*.new", "vectors-*/*.new"):
        for draft in folder.glob(pattern):
            with suppress(OSError):
                draft.unlink()
