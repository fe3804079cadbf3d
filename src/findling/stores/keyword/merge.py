"""Ridding a keyword leg of deleted entries: another index, made aside, takes its place while others search."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import tantivy

from findling.domain.values import read_json
from findling.stores.filesystem import discard, sync_folder
from findling.stores.keyword.segment_files import FORMS_FILE, NOTE_FILE, PARTS_FILE, LegNote, read_state, write_note
from findling.stores.vectors.vector_files import writing

__all__ = ["Entries", "adopt_index", "count_entries"]

_META = "meta.json"
_MANAGED = ".managed.json"
_OWN = frozenset(
    {_META, _MANAGED, NOTE_FILE, f"{NOTE_FILE}.new", PARTS_FILE, FORMS_FILE, f"{FORMS_FILE}.new"}
    | {".tantivy-meta.lock", ".tantivy-writer.lock"}
)

_HEAP_BYTES = 15_000_000
"""The least that a writer takes; this one writes nothing."""


class Entries(NamedTuple):
    """The number of entries of an index, and of those that are deleted and still there."""

    all: int
    deleted: int

    @property
    def deleted_share(self) -> float:
        """The deleted ones of all."""
        return self.deleted / self.all if self.all else 0.0


def count_entries(folder: Path) -> Entries:
    """The entries of the index in a folder, none where there is no index that can be read, at the least cost."""
    try:
        segments = read_json((folder / _META).read_bytes())["segments"]
        deleted = sum((segment["deletes"] or {"num_deleted_docs": 0})["num_deleted_docs"] for segment in segments)
        return Entries(sum(segment["max_doc"] for segment in segments), deleted)
    except (OSError, ValueError, KeyError, TypeError):
        return Entries(0, 0)  # opening it reports the damage and rebuilds it


def adopt_index(fresh: Path, folder: Path) -> None:
    """Let the index in `fresh` take the place of the one in `folder`, in one step; `fresh` is gone then.

    Readers see a commit like any other and keep what they have opened. The caller holds the write
    lock, and neither index is open for writing. Raises DiskFullError or ReadOnlyError; the old one then stands.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        parts = [file for file in fresh.iterdir() if file.name not in _OWN]
        # The list comes first: what is listed and not used is deleted by the next commit, also after a crash here.
        _write_managed(folder, {*_managed(folder), *(part.name for part in parts), _META})
        for part in parts:
            part.replace(folder / part.name)
        note = _note_for_both(fresh, folder)
        # Two indexes may count their commits alike.
        (folder / FORMS_FILE).unlink(missing_ok=True)
        sync_folder(folder)
        (fresh / _META).replace(folder / _META)
        if note is not None:
            write_note(folder, note)
        with suppress(OSError):  # a small index has none
            (fresh / FORMS_FILE).replace(folder / FORMS_FILE)
        sync_folder(folder)
    discard(fresh)
    _remove_unused(folder)


def _note_for_both(fresh: Path, folder: Path) -> LegNote | None:
    """Note in `folder` what holds while one index takes the place of another; returns the note of the new one.

    Where the two have not reached the same change, nothing holds for both: whoever is killed leaves an index without
    a note, which the next search makes anew.
    """
    new, old = read_state(fresh), None
    with suppress(ValueError):  # a damaged one gives way
        old = read_state(folder)
    if new is not None and old is not None and (old.note.made_for, old.seq) == (new.note.made_for, new.seq):
        write_note(folder, LegNote(new.note.made_for, min(old.opstamp, new.opstamp), new.seq, new.seq))
    else:
        (folder / NOTE_FILE).unlink(missing_ok=True)
    return None if new is None else LegNote(new.note.made_for, new.opstamp, new.seq, new.seq)


def _managed(folder: Path) -> list[str]:
    try:
        return [str(name) for name in read_json((folder / _MANAGED).read_bytes())]
    except (OSError, ValueError, TypeError):
        return [file.name for file in folder.iterdir() if file.name not in _OWN]


def _write_managed(folder: Path, names: Iterable[str]) -> None:
    draft = folder / f"{_MANAGED}.new"
    draft.write_text(json.dumps(sorted(names)) + "\n")
    draft.replace(folder / _MANAGED)


def _remove_unused(folder: Path) -> None:
    # tantivy deletes while it holds the lock under which others open the index. If it cannot, the next commit will.
    with suppress(ValueError):
        writer = tantivy.Index.open(str(folder)).writer(_HEAP_BYTES, num_threads=1)
        writer.garbage_collect_files()
        writer.wait_merging_threads()
