"""A writer that is killed, or runs out of space, leaves the last commit; readers go on while others write."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from findling.domain.errors import DiskFullError
from findling.stores.vectors.vector_matrix import VectorMatrix
from tests.counts import tries
from tests.processes import BoundedProcess, run_process

KILLS = tries(5, short=2)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")

WRITER = """
import sys
from pathlib import Path
import numpy as np
from findling.stores.vectors.vector_matrix import VectorMatrix

matrix = VectorMatrix.open(Path(sys.argv[1]), made_for="model", dimensions=16)
turn = matrix.state.get("seq", 0)
while True:
    turn += 1
    # Chunk n of turn t holds the direction of t in its first two values: rows can be told from the numbers alone.
    cids = [turn * 400 + n for n in range(400)]
    vectors = np.zeros((400, 16), np.float32)
    vectors[:, 0], vectors[:, 1] = np.cos(turn), np.sin(turn)
    matrix.add(cids[:200], [turn] * 200, vectors[:200])
    matrix.drop(range((turn - 8) * 400, (turn - 7) * 400))
    matrix.add(cids[200:], [turn] * 200, vectors[200:])
    matrix.commit(seq=turn)
    sys.stdout.write(f"{turn}\\n")
    sys.stdout.flush()
"""

LIMITED_WRITER = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from findling.domain.errors import DiskFullError
from findling.stores.vectors.vector_matrix import VectorMatrix

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
matrix = VectorMatrix.open(Path(sys.argv[1]), made_for="model", dimensions=16)
try:
    for turn in range(1, 1_000):
        matrix.add(range(turn * 100, turn * 100 + 100), [1] * 100, np.eye(100, 16, dtype=np.float32))
        matrix.commit(seq=turn)
except DiskFullError as error:
    print(matrix.state["seq"], error.message)
"""

# The list of 3,000 dead rows fits below the limit; the codes of the other 3,000 do not.
LIMITED_DROPPER = """
import resource, signal, sys
from pathlib import Path
from findling.stores.vectors.vector_matrix import VectorMatrix

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
matrix = VectorMatrix.open(Path(sys.argv[1]), made_for="model", dimensions=16)
matrix.drop(range(3_000))
matrix.commit(seq=2)
"""


def test_a_killed_writer_leaves_its_last_commit(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    moments = random.Random(5)
    reported = 0
    for _ in range(KILLS):
        writer = BoundedProcess([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        assert first, "the writer could not start after the crash before"
        time.sleep(moments.uniform(0, 0.2))
        writer.send_signal(signal.SIGKILL)
        lines = [first, *writer.stdout.read().splitlines()]
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        # The line being written when the signal came may be cut short.
        reported = max(reported, *(int(line) for line in lines[:-1] or lines))
        matrix = VectorMatrix.open(folder, made_for="model", dimensions=16)
        assert matrix.state["seq"] >= reported
        _assert_whole(matrix)
    assert reported >= KILLS


def test_readers_go_on_while_another_process_writes_and_sweeps(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    writer = BoundedProcess([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        held = VectorMatrix.open(folder, made_for="model", dimensions=16)
        seen = 0
        for _ in range(tries(60, short=20)):
            # Each look meets a state of its own, however far the writer came since the last one.
            while int(writer.stdout.readline()) <= seen:
                pass
            _assert_whole(held)
            newer = VectorMatrix.open(folder, made_for="model", dimensions=16)
            _assert_whole(newer)
            assert newer.state["seq"] > seen
            seen = newer.state["seq"]
        assert writer.poll() is None
        assert not (folder / f"{held._header.generation}-codes").exists(), "nothing was swept out"
    finally:
        writer.kill()
        writer.stdout.close()
        writer.wait()


def test_running_out_of_space_keeps_what_was_committed(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    done = run_process([sys.executable, "-c", LIMITED_WRITER, str(folder)], check=True)
    seq, _, message = done.stdout.partition(" ")
    assert message.strip() == f"no space left to write {folder}"
    matrix = VectorMatrix.open(folder, made_for="model", dimensions=16)
    assert matrix.state == {"seq": int(seq)}
    assert len(matrix) == 100 * int(seq) > 0
    matrix.add([1], [2], np.eye(1, 16, dtype=np.float32))
    matrix.commit(seq=5_000)
    assert matrix.search(np.eye(1, 16, dtype=np.float32)[0], 1, allowed=[2]).hits == [(1, 1.0)]


def test_without_room_to_sweep_rows_are_dropped_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    matrix = VectorMatrix.open(folder, made_for="model", dimensions=16)
    matrix.add(range(6_000), [1] * 6_000, np.eye(6_000, 16, dtype=np.float32))
    matrix.commit(seq=1)
    run_process([sys.executable, "-c", LIMITED_DROPPER, str(folder)], check=True)
    matrix = VectorMatrix.open(folder, made_for="model", dimensions=16)
    assert (len(matrix), matrix.state) == (3_000, {"seq": 2})
    assert not (folder / "2-codes").exists()
    matrix.commit(seq=3)
    assert (folder / "2-codes").stat().st_size == 3_000 * 16


def test_a_failed_commit_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "vectors"
    matrix = VectorMatrix.open(folder, made_for="model", dimensions=16)
    matrix.add(range(3_000), [1] * 3_000, np.eye(3_000, 16, dtype=np.float32))
    matrix.commit(seq=1)
    matrix.drop(range(2_000))
    matrix.add([7], [1], np.eye(1, 16, dtype=np.float32))
    (folder / "header.json.new").symlink_to("/dev/full")
    with pytest.raises(DiskFullError):
        matrix.commit(seq=2)
    assert (len(matrix), matrix.state) == (3_000, {"seq": 1})
    (folder / "header.json.new").unlink()
    matrix.commit(seq=2)
    for seen in (matrix, VectorMatrix.open(folder, made_for="model", dimensions=16)):
        assert seen.cids() == {7, *range(2_000, 3_000)}
        assert seen.state == {"seq": 2}


def _assert_whole(matrix: VectorMatrix) -> None:
    """Every row belongs to one of the turns that count, and points where that turn points."""
    last = matrix.state["seq"]
    turns = range(max(1, last - 7), last + 1)
    assert matrix.cids() == {turn * 400 + n for turn in turns for n in range(400)}
    query = np.zeros(16, np.float32)
    query[0], query[1] = np.cos(last), np.sin(last)
    answer = matrix.search(query, 5, also=[turn * 400 for turn in turns])
    assert answer.rows == 400 * len(turns)
    assert answer.hits[0][1] == pytest.approx(1, abs=1e-3)
    assert answer.scores == {turn * 400: pytest.approx(np.cos(turn - last), abs=2e-3) for turn in turns}
