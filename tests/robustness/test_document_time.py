"""The limit of time of a document counts what it computes, so that a busy machine refuses nothing."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.processes import run_process

pytestmark = pytest.mark.skipif(not hasattr(signal, "ITIMER_PROF"), reason="only POSIX counts computing")

LIMITED = """
import os, time
from findling.pipelines.indexing.child_processes import limited_time
with limited_time(0.3):
    {work}
print("done")
"""


def test_time_that_passes_is_no_time_of_a_document() -> None:
    """A worker that waited for its turn longer than the limit was once ended, and plain text refused."""
    done = run_process([sys.executable, "-c", LIMITED.format(work="time.sleep(1.5)")])
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.parametrize("work", ["[0 for _ in iter(int, 1)]", "bytes(1 << 20) * 0 == 1 or max(range(10**12))"])
def test_computing_without_end_is_ended(work: str) -> None:
    done = run_process([sys.executable, "-c", LIMITED.format(work=work)])
    assert (done.stdout, done.returncode) == ("", -signal.SIGPROF)
