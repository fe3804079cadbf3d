"""Whether so much of a workspace is unused that compacting it is worthwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from findling.service.sidecars import matrices
from findling.service.workspace import STORE_FILE, keyword_folder
from findling.stores.keyword_tidying import Entries, count_entries
from findling.stores.sqlite_compacting import FREE_SHARE, count_pages

if TYPE_CHECKING:
    from findling.service.settings import Settings

__all__ = ["free_share", "is_skewed", "is_worthwhile"]

_LEAST_BYTES = 4 << 20
"""Less space than this is not worth a rewrite that nobody asked for."""

_LEAST_ENTRIES = 1_000
"""The same for rows of a matrix."""

_SKEWING_SHARE = 0.1
"""The share of deleted entries from which on a keyword leg is made anew, however small it is.

Until then tantivy counts them among all entries, in the frequencies of words and in the usual length: a tenth shifts
the weight of a word by 0.1 at most, of 5 that a telling word has."""


def is_worthwhile(folder: Path, settings: Settings) -> bool:
    """Whether a good part of a workspace is unused; a look at three headers, some 2 ms.

    Raises CorruptError for a store that cannot be read.
    """
    if not settings.get("compact.auto", True) or not (folder / STORE_FILE).exists():
        return False
    share = free_share(settings)
    pages = count_pages(folder / STORE_FILE)
    if pages.free_share >= share and pages.free * pages.size >= _LEAST_BYTES:
        return True
    if is_skewed(count_entries(keyword_folder(folder, settings["keyword.unit"])), settings):
        return True
    return any(one.dead_share >= share and one.header.dead >= _LEAST_ENTRIES for one in matrices(folder))


def is_skewed(entries: Entries, settings: Settings) -> bool:
    """Whether so many entries of a leg are deleted that its scores differ from those of a leg made of the rest."""
    return entries.deleted > 0 and entries.deleted_share >= min(_SKEWING_SHARE, free_share(settings))


def free_share(settings: Settings) -> float:
    """The share of a part that must be unused for it to be rewritten."""
    return float(settings.get("compact.free_share", FREE_SHARE))
