from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from findling.domain.errors import LockedError, PathNotFoundError
from findling.stores.lock import WriteLock
from tests.processes import BoundedProcess

HOLD = """
import sys, time
from findling.stores.lock import WriteLock
lock = WriteLock(sys.argv[1])
print(lock.acquire(0), flush=True)
sys.stdin.read()
"""


def _holder(path: Path) -> BoundedProcess:
    holder = BoundedProcess([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    return holder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "write.lock"


def test_a_second_instance_waits_until_the_first_lets_go(path: Path) -> None:
    first, second = WriteLock(path), WriteLock(path)
    assert first.acquire(0)
    assert not second.acquire(0)
    assert not second.acquire(0.02)
    first.release()
    assert second.acquire(0)
    assert not first.acquire(0)
    second.release()


def test_an_instance_does_not_take_what_it_holds(path: Path) -> None:
    with WriteLock(path) as lock, pytest.raises(LockedError, match="already held"):
        lock.acquire(0)
    assert not lock.held


def test_releasing_what_is_not_held_is_fine(path: Path) -> None:
    lock = WriteLock(path)
    lock.release()
    assert lock.acquire(0)
    lock.release()
    lock.release()


def test_the_holder_is_named_when_waiting_was_in_vain(path: Path) -> None:
    holder = _holder(path)
    with pytest.raises(LockedError, match=f"process {holder.pid}") as caught, WriteLock(path, timeout_s=0):
        pass
    assert caught.value.hint
    holder.communicate()
    with WriteLock(path, timeout_s=0) as lock:
        assert lock.holder() == os.getpid()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_lock_is_gone_with_its_killed_holder(path: Path) -> None:
    holder = _holder(path)
    assert not WriteLock(path).acquire(0)
    holder.kill()
    holder.communicate()
    with WriteLock(path, timeout_s=0) as lock:
        assert lock.held


@pytest.mark.skipif(os.name == "nt", reason="processes are not forked there")
def test_a_forked_child_does_not_keep_the_lock_of_its_parent(path: Path) -> None:
    script = HOLD.replace(
        "sys.stdin.read()", "import os\nif child := os.fork():\n    print(child, flush=True)\ntime.sleep(60)"
    )
    holder = BoundedProcess([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    child = int(holder.stdout.readline())
    try:
        assert not WriteLock(path).acquire(0)
        holder.kill()
        holder.wait()
        with WriteLock(path, timeout_s=10) as lock:
            assert lock.held
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_threads_exclude_each_other(path: Path) -> None:
    inside = 0
    overlaps = 0

    def work() -> None:
        nonlocal inside, overlaps
        for _ in range(10):
            with WriteLock(path):
                inside += 1
                overlaps += inside > 1
                time.sleep(0.0005)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == 0


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_a_deleted_lock_file_guards_nothing(path: Path) -> None:
    stale = WriteLock(path)
    assert stale.acquire(0)
    path.unlink()
    with WriteLock(path, timeout_s=0), pytest.raises(LockedError), WriteLock(path, timeout_s=0):
        pass
    stale.release()


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps access lists, not modes")
def test_the_file_is_for_its_owner_only(path: Path) -> None:
    with WriteLock(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError, match="nowhere"):
        WriteLock(tmp_path / "nowhere" / "write.lock").acquire(0)


def test_nobody_is_named_before_the_first_holder(path: Path) -> None:
    assert WriteLock(path).holder() is None
    path.write_text("not a number")
    assert WriteLock(path).holder() is None
