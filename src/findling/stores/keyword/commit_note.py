"""The note beside a keyword index: whose it is, and which change each of its commits has reached.

It lies beside the index, not in it: an entry that changes with every commit would count in every score. A commit of
tantivy is known by its `opstamp`, a number that grows. The note is written before the commit and is right for both
states, the one before and the one after, so that no crash comes between the two.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from findling.domain.strangers import read_json

__all__ = ["NOTE_FILE", "LegNote", "LegState", "read_opstamp", "read_state", "write_note"]

NOTE_FILE = "absorbed.json"


class LegNote(NamedTuple):
    """The commit with this `opstamp` has reached `seq`, any later one `later`. `made_for` says whose the index is."""

    made_for: str
    opstamp: int
    seq: int
    later: int


class LegState(NamedTuple):
    """A note, and the commit that the index beside it is at."""

    note: LegNote
    opstamp: int

    @property
    def seq(self) -> int:
        """The change that the index has reached; 0 when it is older than its note, which says nothing about it then."""
        if self.opstamp == self.note.opstamp:
            return self.note.seq
        return self.note.later if self.opstamp > self.note.opstamp else 0


def read_state(folder: Path) -> LegState | None:
    """The state of the index in a folder; `None` when there is no index, or none with a note that can be read.

    Raises ValueError when the index is damaged.
    """
    try:
        # The note first: whoever reads the same state before and after opening an index knows that it is at it.
        note = LegNote(**read_json((folder / NOTE_FILE).read_bytes()))
        state = LegState(note, read_opstamp(folder))
    except (OSError, TypeError, json.JSONDecodeError, UnicodeDecodeError):
        return None  # as good as none: the index is rebuilt
    return state if all(isinstance(number, int) for number in note[1:]) else None


def read_opstamp(folder: Path) -> int:
    """The commit that the index in a folder is at. Raises OSError when there is none, ValueError when it is damaged."""
    try:
        return int(read_json((folder / "meta.json").read_bytes())["opstamp"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / 'meta.json'} is damaged") from error


def write_note(folder: Path, note: LegNote) -> None:
    """Replace the note in one step. The name outlives a power cut once tantivy, before it commits, syncs the folder."""
    draft = folder / f"{NOTE_FILE}.new"
    with draft.open("w") as file:
        json.dump(note._asdict(), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / NOTE_FILE)
