"""Deleted entries of a keyword leg: searches in which they count nowhere, and another index that is rid of them.

tantivy counts deleted entries in the frequencies of terms, in the number of entries and in average lengths, until it
merges them away. Weights correct the frequencies (`term_weights`). For the averages a reader adds a segment to its view
of the index, of entries that are all deleted: so many of them, with so many terms, that each average is that of the
living entries. The segment is made of the bytes of a small one in `balance.json`, with its counts replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from findling.domain.plans import FIELDS
from findling.domain.values import read_json
from findling.stores.filesystem import discard, sync_folder
from findling.stores.keyword.entries import length_field
from findling.stores.keyword.segment_files import (
    FORMS_FILE,
    NOTE_FILE,
    PARTS_FILE,
    LegNote,
    content_end,
    linked,
    read_state,
    with_footer,
    write_note,
)
from findling.stores.keyword.term_weights import LiveIndex
from findling.stores.vectors.vector_files import writing

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


def live_index(folder: Path, opstamp: int, plain: tantivy.Searcher) -> LiveIndex:
    """The state of a commit that is open as `plain`; that itself, where another process has replaced it meanwhile."""
    # A file that is gone or damaged is reported by whoever asks the index for more than an average.
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        meta = read_json((folder / _META).read_bytes())
        if meta["opstamp"] == opstamp and plain.num_docs:
            return _balanced(folder, meta, plain)
    return LiveIndex(plain)


_BALANCE = "ba1a0ce0-0000-4000-8000-000000000000"
"""The id of the segment that is added; those of tantivy are random."""

_MOST_ADDED = 1 << 24
"""Entries that are added at most: 2 MB of marks. A field whose terms are nearly all dead would need any number."""

_TAIL_BYTES = 1 << 12
"""Bytes at the end of a file of postings, within which its directory of fields lies: 10 bytes a field."""


def _balanced(folder: Path, meta: dict[str, Any], plain: tantivy.Searcher) -> LiveIndex:
    fields = [field["name"] for field in meta["schema"]]
    parts, alive = meta["segments"], plain.num_docs
    wanted = {field: {"sum": {"field": length_field(field)}} for field in FIELDS}
    sums = plain.aggregate(tantivy.Query.all_query(), wanted)
    living = {field: int(sums[field]["value"]) for field in FIELDS}
    held = dict.fromkeys(FIELDS, 0)
    for part in parts:
        for field, terms in _held_terms(folder / f"{part['segment_id'].replace('-', '')}.idx", fields).items():
            held[field] += terms
    entries = sum(part["max_doc"] for part in parts)
    # A whole multiple of the living entries, so that no average is rounded; and half as many again as there are, so
    # that no term looks as if all had it, whose rarity 32 bits hold badly.
    least = ceil(1.5 * entries / alive)
    times = max(least, *(ceil(held[field] / living[field]) for field in FIELDS if living[field]))
    times = min(times, max(least, _MOST_ADDED // alive))
    added = times * alive - entries
    lengths = {field: max(0, times * living[field] - held[field]) for field in FIELDS}
    part = {"segment_id": _BALANCE, "max_doc": added, "deletes": {"num_deleted_docs": added, "opstamp": 1}}
    with linked(file for file in folder.glob("*.*") if file.name not in _OWN) as view:
        for name, data in _balance_files(lengths, fields, added):
            (view / name).write_bytes(data)
        (view / _META).write_text(json.dumps({**meta, "segments": [*parts, part]}))
        # Once opened, files are mapped into memory, and the links are no longer needed.
        return LiveIndex(tantivy.Index.open(str(view)).searcher(), times * alive)


def _balance_files(lengths: Mapping[str, int], fields: Sequence[str], entries: int) -> Iterator[tuple[str, bytes]]:
    """The files of a segment of so many deleted entries, with fields of these lengths in all."""
    name = _BALANCE.replace("-", "")
    for ending, text in read_json(Path(__file__).with_name("balance.json").read_bytes()).items():
        content = bytearray.fromhex(text)
        for field, start in _starts(content, fields).items() if ending == "idx" else ():
            content[start : start + 8] = lengths.get(field, 0).to_bytes(8, "little")
        yield f"{name}.{ending}", with_footer(bytes(content))
    yield f"{name}.1.del", with_footer(entries.to_bytes(4, "little") + bytes(8 * -(-entries // 64)))


def _held_terms(path: Path, fields: Sequence[str]) -> dict[str, int]:
    """The number of terms in each text field of a segment, dead entries included."""
    with path.open("rb") as file:
        first = max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES)
        file.seek(first)
        tail = file.read()
        found = {}
        for field, start in _starts(tail[: content_end(tail)], fields).items():
            if field in FIELDS:
                file.seek(start)
                found[field] = int.from_bytes(file.read(8), "little")
    return found


def _starts(content: bytes | bytearray, fields: Sequence[str]) -> dict[str, int]:
    """The beginnings of the postings of fields, by the directory at the end of a file: first, their number of terms."""
    end = len(content) - 4
    at = end - int.from_bytes(content[end:], "little")

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            at += 1
            value |= (content[at - 1] & 127) << shift
            shift += 7
            if content[at - 1] & 128:
                return value

    found, start = {}, 0
    for _ in range(number()):
        start += number()
        found[fields[int.from_bytes(content[at : at + 4], "little")]] = start
        at += 4
        number()
    return found


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
