"""The files of a keyword leg, any of which may be damaged, and the note beside them.

Each file has a checksum at its end, which tantivy writes and does not look at when it reads.

The note says whose the index is, and which change each of its commits has reached. It lies beside the index, not in
it: an entry that changes with every commit would count in every score. A commit of tantivy is known by its `opstamp`, a
number that grows. The note is written before the commit and is right for both states, the one before and the one
after, so that no crash comes between the two.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from findling.domain.errors import CorruptError, DiskFullError, LockedError, ReadOnlyError
from findling.domain.values import read_json
from findling.text.analysis.analysis import FINGERPRINT

if TYPE_CHECKING:
    import tantivy  # a look at the notes does not load it

LAYOUT = 6
"""Raised when the fields of `entries` or their values change; an index of another layout is rebuilt."""

NOTE_FILE = "absorbed.json"


def made_for(store_id: str, unit: str) -> str:
    """The mark of an index of this store and unit, as this version makes it."""
    return f"{LAYOUT}|{FINGERPRINT}|{unit}|{store_id}"


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


def has_deleted(folder: Path) -> bool:
    """Whether the index in a folder has deleted entries."""
    with suppress(OSError):
        return b"num_deleted_docs" in (folder / "meta.json").read_bytes()
    return False


def files_of(folder: Path) -> tuple[int, ...]:
    """The inode, time and size of the list of an index's files; empty without one."""
    try:
        status = (folder / "meta.json").stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_note(folder: Path, note: LegNote) -> None:
    """Replace the note in one step. The name outlives a power cut once tantivy, before it commits, syncs the folder."""
    draft = folder / f"{NOTE_FILE}.new"
    with draft.open("w") as file:
        json.dump(note._asdict(), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / NOTE_FILE)


FORMS_FILE = "forms.txt"
"""Names the inflected words of the index by their stems: a query would walk a hundred terms for the forms of one."""

PARTS_FILE = "parts.txt"
"""Lists the files of a leg with their checksums: a sound file of another leg must not pass for one of this."""

_PART = re.compile(r"[0-9a-f]{32}\.(\d+\.)?[a-z]+")
_SEGMENT = re.compile(rb'"segment_id":\s*"([0-9a-f-]{36})"')
_CRC = re.compile(rb'"crc":(\d+)')
_MAGIC = (1337).to_bytes(4, "little")

_LONGEST_FOOTER = 1 << 10

_SCARCE_BYTES = 64_000_000
"""With less space than the writer may flush at once, a writer that fails has run out of it."""

_CHECKED_FILE = "checked.txt"
"""Lists the files whose checksums were right or wrong, each with its time of change, its size, and when that was."""

CHECKED_AT_ONCE = 1 << 20
"""Bytes whose checksums an open waits for: 1 ms. A process that stays, an index run and a compaction check the rest."""

_LOOK_S = 5.0
"""Seconds between two looks of a process that stays, 0.1 ms where nothing has changed; no shell lives as long."""

_CHECKED_S = 7 * 86_400
"""Seconds after which a file is checked again: bits also fall over on the disk, without a change."""

_READ_BYTES = 1 << 20


class DamageGuard:
    """Turns what tantivy says about damaged files into CorruptError: most are refused, some make it panic.

    Nothing but reading may stand inside it: a value that tantivy refuses looks like damage, too. It is a class since a
    query enters it hundreds of times, and a generator would take five times as long.
    """

    def __init__(self, folder: Path, leg: str = "keyword leg") -> None:
        self._folder = folder
        self.leg = leg
        self._damaged = ""
        self._next_look = monotonic() + _LOOK_S

    def look(self) -> None:
        """Have a thread check files from time to time, in a process that stays; the next read reports damage."""
        if monotonic() < self._next_look:
            return
        from threading import Thread

        self._next_look = monotonic() + _LOOK_S
        Thread(target=self._check_all, daemon=True).start()

    def _check_all(self) -> None:
        self._damaged = unsound_part(self._folder)

    def check(self, most: float = CHECKED_AT_ONCE) -> None:
        """Check files that were not checked lately, so many bytes of them. Raises CorruptError."""
        self._damaged = unsound_part(self._folder, most)
        self.__enter__()

    def __enter__(self) -> None:
        if self._damaged:
            what = f"{self._damaged} in the {self.leg} {self._folder} is not what was written"
            raise CorruptError(what, hint="findling doctor --repair")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # A panic arrives as an exception that is no Exception and whose class cannot be imported.
        if error is None or not (isinstance(error, ValueError) or type(error).__name__ == "PanicException"):
            return
        raise CorruptError(
            f"the {self.leg} in {self._folder} cannot be read: {error}", hint="findling doctor --repair"
        ) from error


class OpenedIndex(NamedTuple):
    """An index, the change that it has reached, its files and its commit; no change where it is empty, in memory."""

    tantivy_index: tantivy.Index
    seq: int | None = None
    files: tuple[int, ...] = ()
    opstamp: int = 0


def open_index(folder: Path, owner: str, make: Callable[[], tantivy.Schema], guard: DamageGuard) -> OpenedIndex:
    """The index in a folder, or an empty one in memory when there is none of this owner. Raises CorruptError."""
    with guard:
        while (state := read_state(folder)) is not None and state.note.made_for == owner:
            files = files_of(folder)
            index = _open_folder(folder)
            # Else another process has committed or compacted it meanwhile.
            if read_state(folder) == state and files_of(folder) == files:
                return OpenedIndex(index, state.seq, files, state.opstamp)
    return OpenedIndex(new_index(make()))


def new_index(schema: tantivy.Schema, folder: Path | None = None) -> tantivy.Index:
    """An empty index, in a folder or in memory."""
    import tantivy

    return _reloaded_on_demand(tantivy.Index(schema, path=None if folder is None else str(folder)))


def write_error(error: Exception, folder: Path, leg: str) -> Exception:
    """The error of a writer in the words of a person."""
    import shutil

    message = str(error)
    if "LockBusy" in message:
        return LockedError(f"another process is writing the {leg} in {folder}", hint="try again in a moment")
    if isinstance(error, PermissionError) or "Permission denied" in message or not os.access(folder.parent, os.W_OK):
        return ReadOnlyError(f"{folder} cannot be written", hint="check the permissions of the workspace folder")
    # A thread of the writer that ran out of space does not say why it died.
    if "No space left" in message or shutil.disk_usage(folder.parent).free < _SCARCE_BYTES:
        return DiskFullError(f"no space left to write {folder}", hint="free some space, then findling index")
    return CorruptError(f"the {leg} in {folder} cannot be written: {message}", hint="findling doctor --repair")


def _open_folder(folder: Path) -> tantivy.Index:
    import tantivy

    try:
        return _reloaded_on_demand(tantivy.Index.open(str(folder)))
    except ValueError as error:
        if "Failed to acquire Lockfile" not in str(error):
            raise
    # tantivy locks a folder for a moment even to read it. Where it may not, a folder of links to the files will do:
    # once opened, they are mapped into memory and the links are no longer needed.
    with linked(folder.glob("[!.]*")) as links:
        return _reloaded_on_demand(tantivy.Index.open(str(links)))


@contextmanager
def linked(files: Iterable[Path]) -> Iterator[Path]:
    """A folder of this process alone with links to files; gone in the end.

    Not by `tempfile`, which takes 5 ms to load: a shell that searches would wait for it after every edit.
    """
    places = [place for name in ("TMPDIR", "TEMP") if (place := os.environ.get(name))]
    view = Path(*places[:1] or ["/tmp"], f"findling-live-{os.urandom(8).hex()}")
    view.mkdir(mode=0o700)
    try:
        for file in files:
            (view / file.name).symlink_to(file.absolute())
        yield view
    finally:
        # Once it has opened an index, a thread of tantivy reads it again, and may leave a lock at this moment: of 400
        # views, 33 had one.
        for _ in range(2):
            with suppress(OSError):
                for file in view.iterdir():
                    file.unlink()
                view.rmdir()
                break


def _reloaded_on_demand(index: tantivy.Index) -> tantivy.Index:
    # Left alone, tantivy reloads in the background, and a vocabulary would be that of an older state.
    index.config_reader("manual")
    return index


def damaged_parts(folder: Path) -> list[str]:
    """The names of the files that are not what was written; every byte is looked at."""
    noted = _noted(folder)
    return [part.name for part in _parts(folder) if not _is_sound(part, noted.get(part.name))]


def unsound_part(folder: Path, most: float = inf) -> str:
    """The name of a file that is not what was written; of those not checked lately, so many bytes are read.

    Files never change, so one that was checked is known by its time and size. A file that is wrong is noted as well: a
    process that has the time checks, and the next one that opens the leg rebuilds it.
    """
    checked, noted, now = _checked(folder), _noted(folder), int(time())
    known: dict[str, tuple[int, ...]] = {}
    for part in _parts(folder):
        try:
            status = part.stat()
        except FileNotFoundError:  # merged away meanwhile
            continue
        before = checked.get(part.name, ())
        if before[:2] == (status.st_mtime_ns, status.st_size) and now - before[2] < _CHECKED_S:
            known[part.name] = before
        elif status.st_size <= most:
            most -= status.st_size
            is_sound = _is_sound(part, noted.get(part.name))
            known[part.name] = status.st_mtime_ns, status.st_size, now, int(is_sound)
    if known != checked:
        # A disk that is full, or cannot be written: the next one checks again.
        with suppress(OSError):
            lines = ["\t".join(map(str, (name, *values))) for name, values in known.items()]
            (folder / _CHECKED_FILE).write_text("".join(f"{line}\n" for line in lines))
    return next((name for name, values in known.items() if not values[3]), "")


def _checked(folder: Path) -> dict[str, tuple[int, ...]]:
    rows = _rows(folder / _CHECKED_FILE, r"^(\S+)\t(\d+)\t(\d+)\t(\d+)\t([01])$")
    return {name: tuple(map(int, values)) for name, *values in rows}


def note_parts(folder: Path) -> None:
    """List the files of the latest commit. The caller holds the lock under which they were written.

    It is not brought to the disk at once: what is not listed counts by its own checksum.
    """
    noted, parts = _noted(folder), _parts(folder)
    # A disk that is full, or cannot be written: see above.
    with suppress(OSError):
        now = {part.name: noted[part.name] if part.name in noted else _written_sum(part) for part in parts}
        if now != noted:
            draft = folder / f".{PARTS_FILE}.new"
            draft.write_text("".join(f"{name}\t{found}\n" for name, found in now.items()))
            draft.replace(folder / PARTS_FILE)


def _parts(folder: Path) -> list[Path]:
    """The files of the latest commit; what a killed process has left is none of them."""
    try:
        listed = _SEGMENT.findall((folder / "meta.json").read_bytes())
        names = {name.replace(b"-", b"").decode() for name in listed}
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [file for file in found if _PART.fullmatch(file.name) and file.name[:32] in names]


def _noted(folder: Path) -> dict[str, int]:
    return {name: int(found) for name, found in _rows(folder / PARTS_FILE, r"^(\S+)\t(-?\d+)$")}


def _rows(file: Path, form: str) -> list[tuple[str, ...]]:
    """The lines of a file that have a form; none without one."""
    try:
        return re.findall(form, file.read_text("latin-1"), re.MULTILINE)
    except OSError:
        return []


def _is_sound(part: Path, noted: int | None) -> bool:
    try:
        with part.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _LONGEST_FOOTER))
            end, found = _footer(file.read())
            left, sum_ = max(0, size - _LONGEST_FOOTER) + end, 0
            file.seek(0)
            while data := file.read(min(left, _READ_BYTES)):
                left, sum_ = left - len(data), crc32(data, sum_)
    except OSError:  # merged away meanwhile
        return True
    return found == sum_ and noted in (None, found)


def _written_sum(part: Path) -> int:
    """The checksum at the end of a file, without a look at the rest."""
    with part.open("rb") as file:
        file.seek(max(0, part.stat().st_size - _LONGEST_FOOTER))
        return _footer(file.read())[1]


def content_end(data: bytes) -> int:
    """The end of the content of a file, given by its last bytes at least."""
    return _footer(data)[0]


def with_footer(content: bytes) -> bytes:
    """Content as tantivy writes it, with a checksum behind it."""
    footer = b'{"version":{"major":0,"minor":27,"patch":0,"index_format_version":7},"crc":%d}' % crc32(content)
    return content + footer + len(footer).to_bytes(4, "little") + _MAGIC


def _footer(data: bytes) -> tuple[int, int]:
    """The end of the content, and its checksum; -1 for one that is not there."""
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    found = _CRC.search(data[max(0, end) : -8]) if data[-4:] == _MAGIC and end >= 0 else None
    return max(0, end), int(found[1]) if found else -1
