"""Replies of language models on disk: one private SQLite file, bounded, which may be lost at any time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from findling.stores.filesystem import create_private

_BUSY_S = 0.5
"""Seconds to wait for another process; then the reply is asked for again, or not kept."""

_SPARE = 10
"""Parts of the file of which one is emptied when it is full, so that not every reply has to make room."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL, used REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replies_used ON replies (used);
"""


def reply_key(*parts: str) -> bytes:
    """The key of a reply: model, instructions and question, or whatever else it depends on."""
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


class ReplyCache:
    """Keeps the `most` replies that were used last. Every call opens the file, so processes and threads share it.

    A kill leaves a reply kept or not kept. What cannot be read or written counts as not there; a file that is no
    database is deleted.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most = path, most

    def get(self, key: bytes) -> str | None:
        """The reply of a key, which counts as used now; `None` without one."""
        if not self._path.exists():
            return None
        with suppress(sqlite3.Error, OSError), self._opened() as connection:
            row = connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            if row is not None:
                connection.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time(), key))
                return str(row[0])
        return None

    def put(self, key: bytes, reply: str) -> None:
        """Keep a reply; those that were not used for longest make room."""
        self.put_all([(key, reply)])

    def put_all(self, replies: Sequence[tuple[bytes, str]]) -> None:
        """Keep replies, all of them or none."""
        with suppress(sqlite3.Error, OSError), self._opened() as connection:
            now = time.time()
            connection.executemany(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", [(key, reply, now) for key, reply in replies]
            )
            (count,) = connection.execute("SELECT count(*) FROM replies").fetchone()
            if count > self._most:
                surplus = count - self._most + self._most // _SPARE
                oldest = "SELECT key FROM replies ORDER BY used LIMIT ?"
                connection.execute(f"DELETE FROM replies WHERE key IN ({oldest})", (surplus,))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        create_private(self._path)
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as connection:
                connection.executescript(_SCHEMA)
                with connection:
                    yield connection
        except sqlite3.OperationalError:  # locked, or a disk without room: it may pass
            raise
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            raise
