"""Copies of legs beside the truth: a host that has no leg yet fetches one instead of making it.

A copy is the files of a leg as they lie, cut into parts of 1 MB. A part is kept once, under the checksum of its bytes.
Segments never change and columns only grow, so the next copy brings few new parts. A copy that is not what was written
is passed over, and the leg is made from the truth.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import FindlingError
from findling.stores.filesystem import FileErrors, discard, make_private, sync_folder, write_whole
from findling.stores.postgres.server.arrays import byteas
from findling.stores.validation import batched

if TYPE_CHECKING:
    from findling.stores.local.legs import LegFiles
    from findling.stores.postgres.server.connections import PostgresConnections

LEAST_CHANGES = 500
"""Changes since the last copy that are worth another one: a host absorbs as many in .6 s of CPU."""

_SHIPPED_FILE = "copies.txt"

_PART_BYTES = 1 << 20
_PARTS_AT_ONCE = 8
_MOST_BYTES = 1 << 30
"""A leg above it is not copied: a million passages have some .9 GB."""

_SAMPLE_BYTES, _PAYS = 1 << 16, 0.8
"""A file is compressed if its first 64 kB shrink to so much: postings do (.7), signs and codes do not (.86)."""

_LEFT_OUT = re.compile(r".*\.(lock|new|tmp)|checked\.txt|\.tmp.*")
_NAME = re.compile(r"[\w.-]*\w[\w.-]*")

_COPIES = """
SELECT c.leg, c.owner, c.seq, greatest(%s, (SELECT count(*) FROM findling.resources r WHERE r.ws = w.ws) / 10)
FROM findling.workspaces w LEFT JOIN findling.leg_copies c ON c.ws = w.ws WHERE w.ws = %s
"""
_COPY = """
SELECT c.seq, c.files, c.parts, c.sum FROM findling.leg_copies c JOIN findling.workspaces w ON w.ws = c.ws
WHERE c.ws = %s AND c.leg = %s AND c.owner = %s AND c.seq BETWEEN w.log_floor AND %s
"""
_PUT_COPY = """
INSERT INTO findling.leg_copies (ws, leg, owner, seq, files, parts, sum) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (ws, leg, owner) DO UPDATE SET
    (seq, files, parts, sum, shipped_at) = (excluded.seq, excluded.files, excluded.parts, excluded.sum, now())
"""
_DROP_OLD = """
DELETE FROM findling.leg_copies c USING findling.workspaces w WHERE c.ws = %s AND w.ws = c.ws AND (c.seq < w.log_floor
    OR position(%s IN c.owner) = 0 OR c.leg = %s AND c.owner <> %s AND c.shipped_at < now() - interval '30 days')
"""
"""Copies from before the log of changes, of another store, and of a findling that nobody uses any more."""
_DROP_PARTS = """
DELETE FROM findling.leg_parts p WHERE p.ws = %s
    AND NOT EXISTS (SELECT FROM findling.leg_copies c WHERE c.ws = p.ws AND p.digest = ANY(c.parts))
"""
_PUT_PARTS = """
INSERT INTO findling.leg_parts (ws, digest, data) SELECT %s, * FROM unnest(%s, %s)
ON CONFLICT (ws, digest) DO UPDATE SET data = excluded.data
"""
_STATES = """
SELECT c.leg, c.seq, w.seq, sum(coalesce(length(p.data), 0))::bigint,
    bool_and(coalesce(sha256(p.data) = one.digest, false))
FROM findling.leg_copies c JOIN findling.workspaces w ON w.ws = c.ws CROSS JOIN unnest(c.parts) AS one (digest)
LEFT JOIN findling.leg_parts p ON p.ws = c.ws AND p.digest = one.digest
WHERE c.ws = %s GROUP BY c.leg, c.owner, c.seq, w.seq ORDER BY c.leg, c.owner
"""


class CopyState(NamedTuple):
    """A copy: its leg, its change and that of the truth, its bytes, and whether they are what was written."""

    leg: str
    seq: int
    latest: int
    size: int
    is_sound: bool


class _Copied(NamedTuple):
    """A file of a copy: its name, whether its parts are compressed, and how many it has."""

    name: str
    is_packed: bool
    parts: int


def read_shipped(folder: Path) -> dict[tuple[str, str], int]:
    """The changes of copies as this host has last seen them, by leg and owner; a file, so that nothing is asked."""
    with suppress(OSError, ValueError):
        lines = (folder / _SHIPPED_FILE).read_text("utf-8").splitlines()
        return {(leg, owner): int(seq) for leg, owner, seq in (line.split("\t") for line in lines)}
    return {}


def write_shipped(folder: Path, copies: Mapping[tuple[str, str], int]) -> None:
    """Note the changes of copies; without a note the database is asked again."""
    text = "".join(f"{leg}\t{owner}\t{seq}\n" for (leg, owner), seq in copies.items())
    with suppress(FindlingError, OSError):
        write_whole(folder / _SHIPPED_FILE, text.encode(), durable=False)


def ship(connections: PostgresConnections, legs: Sequence[LegFiles], store_id: str) -> dict[tuple[str, str], int]:
    """Leave copies of legs that have come far since their last one; the changes of all copies, by leg and owner.

    The caller holds the lock of the legs and that of the copies. Raises WorkspaceError and ReadOnlyError.
    """
    rows = connections.rows(_COPIES, (LEAST_CHANGES, connections.ws))
    known = {(leg, owner): seq for leg, owner, seq, _ in rows if leg is not None}
    least = rows[0][3] if rows else LEAST_CHANGES
    for leg in legs:
        key = leg.folder.name, leg.owner
        worth = least if key in known else LEAST_CHANGES
        if leg.seq - known.get(key, 0) >= worth and _size(leg.folder) < _MOST_BYTES:
            _put(connections, leg, store_id)
            known[key] = leg.seq
    return known


def fetch(connections: PostgresConnections, folder: Path, owner: str, at: int) -> bool:
    """Put the copy of a leg in its place, whatever lies there; whether there was one no newer than the change `at`.

    The caller holds the lock of the legs. A copy that is not what was written counts as none.
    """
    draft = folder.with_name(f".{folder.name}.fetched")
    discard(draft)  # of a process that was killed
    row = connections.row(_COPY, (connections.ws, folder.name, owner, at))
    if row is None:
        return False
    try:
        with FileErrors(folder):
            _write(connections, draft, owner, *row)
            discard(folder)
            draft.rename(folder)
            sync_folder(folder.parent)
    except (ValueError, TypeError, zlib.error) as error:
        if (logging := sys.modules.get("logging")) is not None:  # nobody reads a log without one
            logging.getLogger("findling.legs").warning(
                "the copy of %s in %s is passed over: %s", folder.name, connections.place.shown, error
            )
        return False
    finally:
        discard(draft)
    return True


def drop_copies(connections: PostgresConnections, folder: Path) -> None:
    """Drop all copies, of which one may be damaged, so that the next offer leaves new ones."""
    with connections.writing() as connection, connections.errors:
        connection.execute("DELETE FROM findling.leg_copies WHERE ws = %s", (connections.ws,))
    (folder / _SHIPPED_FILE).unlink(missing_ok=True)


def copy_states(connections: PostgresConnections) -> list[CopyState]:
    """The copies of all legs; the server looks at every byte of them."""
    return [CopyState(*row) for row in connections.rows(_STATES, (connections.ws,))]


def _put(connections: PostgresConnections, leg: LegFiles, store_id: str) -> None:
    """Write the parts that the database lacks, some at a time, and then the copy that lists them."""
    ws, name = connections.ws, leg.folder.name
    files: list[_Copied] = []
    digests: list[bytes] = []
    parts = chain.from_iterable(_parts_of(file, files) for file in _files(leg.folder))
    while batch := list(islice(parts, _PARTS_AT_ONCE)):
        found = {sha256(data).digest(): data for data in batch}
        digests += [sha256(data).digest() for data in batch]
        sound = "SELECT digest FROM findling.leg_parts WHERE ws = %s AND digest = ANY(%s) AND sha256(data) = digest"
        for (digest,) in connections.rows(sound, (ws, byteas(found))):
            found.pop(digest, None)
        if found:
            with connections.writing() as connection, connections.errors:
                connection.execute(_PUT_PARTS, (ws, byteas(found), byteas(found.values())))
    listed = json.dumps(files)
    with connections.writing() as connection, connections.errors:
        sum_ = _sum_of(leg.owner, leg.seq, listed, digests)
        connection.execute(_PUT_COPY, (ws, name, leg.owner, leg.seq, listed, byteas(digests), sum_))
        connection.execute(_DROP_OLD, (ws, store_id, name, leg.owner))
        connection.execute(_DROP_PARTS, (ws,))


def _parts_of(path: Path, files: list[_Copied]) -> Iterator[bytes]:
    """The parts of a file as they are kept; the file is listed once all of them are taken."""
    count, is_packed = 0, False
    with path.open("rb") as file:
        while data := file.read(_PART_BYTES):
            if not count:
                sample = data[:_SAMPLE_BYTES]
                is_packed = len(zlib.compress(sample, 1)) <= _PAYS * len(sample)
            count += 1
            yield zlib.compress(data, 1) if is_packed else data
    files.append(_Copied(path.name, is_packed, count))


def _write(
    connections: PostgresConnections, draft: Path, owner: str, seq: int, listed: str, digests: list[bytes], sum_: bytes
) -> None:
    """Write the files of a copy. Raises ValueError for one that is not what was written."""
    if sum_ != _sum_of(owner, seq, listed, digests):
        raise ValueError("its list of files is not what was written")
    make_private(draft)
    parts = _fetched(connections, digests)
    for copied in (_Copied(*one) for one in json.loads(listed)):
        if not _NAME.fullmatch(copied.name):
            raise ValueError(f"{copied.name!r} is no name of a file")
        with (draft / copied.name).open("xb") as file:
            for data in islice(parts, copied.parts):
                file.write(zlib.decompress(data) if copied.is_packed else data)
            file.flush()
            os.fsync(file.fileno())


def _fetched(connections: PostgresConnections, digests: Sequence[bytes]) -> Iterator[bytes]:
    """The parts of these checksums, in order. Raises ValueError where one is gone or damaged."""
    for batch in batched(digests, _PARTS_AT_ONCE):
        wanted = "SELECT digest, data FROM findling.leg_parts WHERE ws = %s AND digest = ANY(%s)"
        found = dict(connections.rows(wanted, (connections.ws, byteas(set(batch)))))
        for digest in batch:
            if digest not in found or sha256(found[digest]).digest() != digest:
                raise ValueError("a part of it is not what was written")
            yield found[digest]


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file() and not _LEFT_OUT.fullmatch(file.name))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in _files(folder))


def _sum_of(owner: str, seq: int, listed: str, digests: Sequence[bytes]) -> bytes:
    return sha256(b"".join((f"{owner}\n{seq}\n{listed}\n".encode(), *digests))).digest()
