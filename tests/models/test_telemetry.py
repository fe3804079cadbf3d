"""Nothing is noted for, or sent to, the makers of a library."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.processes import run_process

pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs onnxruntime")

SCRIPT = """
import sys, findling
with findling.open(sys.argv[1]) as engine:
    engine.index()
    assert engine.refine().read == 1
"""


def test_reading_with_a_model_leaves_no_record_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A cat sleeps on the carpet.")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FINDLING_", "ORT_", "XDG_"))}
    environ |= {"HOME": str(tmp_path), "FINDLING_HOME": str(tmp_path / "index")}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "notes")]
    done = run_process(command, env=environ)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "notes"]
