"""Kept replies: bounded, private, shared by processes, and sound after a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from findling.stores.reply_cache import ReplyCache, reply_key
from tests.processes import BoundedProcess

WRITER = """
import sys
from pathlib import Path
from findling.stores.reply_cache import ReplyCache, reply_key
cache = ReplyCache(Path(sys.argv[1]), 1000)
for number in range(10 ** 6):
    cache.put_all([(reply_key(str(number), part), "x" * 500) for part in "ab"])
    print(number, flush=True)
"""


def test_a_reply_comes_back_by_all_that_it_depends_on(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies", 10)
    assert cache.get(reply_key("a", "bc")) is None
    assert not (tmp_path / "replies").exists(), "a look writes nothing"
    cache.put(reply_key("a", "bc"), "one")
    assert cache.get(reply_key("a", "bc")) == "one"
    assert cache.get(reply_key("ab", "c")) is None


def test_those_that_were_not_used_for_longest_make_room(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies", 20)
    for number in range(20):
        cache.put(reply_key(str(number)), str(number))
    assert cache.get(reply_key("0")) == "0"  # used again
    cache.put(reply_key("new"), "new")
    with sqlite3.connect(tmp_path / "replies") as connection:
        (count,) = connection.execute("SELECT count(*) FROM replies").fetchone()
    assert count <= 20
    assert cache.get(reply_key("0")) == "0"
    assert cache.get(reply_key("new")) == "new"
    assert cache.get(reply_key("1")) is None


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    ReplyCache(tmp_path / "replies", 20).put(b"key", "reply")
    assert stat.S_IMODE((tmp_path / "replies").stat().st_mode) == 0o600


def test_what_cannot_be_read_or_written_is_not_there(tmp_path: Path) -> None:
    nowhere = ReplyCache(tmp_path / "no folder" / "replies", 20)
    nowhere.put(b"key", "reply")
    assert nowhere.get(b"key") is None
    (tmp_path / "broken").write_bytes(b"no database at all" * 100)
    broken = ReplyCache(tmp_path / "broken", 20)
    assert broken.get(b"key") is None
    broken.put(b"key", "reply")
    assert broken.get(b"key") == "reply"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_kill_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "replies"
    for _ in range(3):
        with BoundedProcess(
            [sys.executable, "-c", WRITER, str(path)], stdout=-1, env={**os.environ, "PYTHONPATH": "src"}
        ) as writer:
            assert writer.stdout is not None
            last = [writer.stdout.readline() for _ in range(20)][-1]
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        cache = ReplyCache(path, 1000)
        for part in "ab":
            assert cache.get(reply_key(last.strip(), part)) == "x" * 500
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            (odd,) = connection.execute("SELECT count(*) % 2 FROM replies").fetchone()
            assert odd == 0, "replies that belong together are kept together"
