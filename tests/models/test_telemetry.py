"""Nothing is noted for, or sent to, the makers of a library."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.faces.warm_processes import eventually, warm_of
from tests.processes import run_process

pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs onnxruntime")

SCRIPT = """
import sys, findling
with findling.open(sys.argv[1]) as engine:
    engine.index()
    assert engine.refine().read == 1
"""


def _searched(tmp_path: Path) -> dict[str, str]:
    """A folder with one note, and the variables of a shell whose home is the folder above it."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A cat sleeps on the carpet.")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FINDLING_", "ORT_", "XDG_"))}
    return environ | {"HOME": str(tmp_path), "FINDLING_HOME": str(tmp_path / "index")}


def test_reading_with_a_model_leaves_no_record_of_the_machine(tmp_path: Path) -> None:
    environ = _searched(tmp_path)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "notes")]
    done = run_process(command, env=environ)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "notes"]


@pytest.mark.skipif(sys.platform != "linux", reason="the warm process is for Linux")
def test_a_warm_process_that_has_learned_a_model_leaves_none_and_forks_on(tmp_path: Path) -> None:
    environ = _searched(tmp_path) | {"FINDLING_SEMANTIC_REFINE": "never"}
    environ.pop("CI", None)
    with warm_of(tmp_path / "index", environ) as warm:
        read = run_process([sys.executable, "-c", SCRIPT, str(tmp_path / "notes")], env=environ)
        assert read.returncode == 0, read.stderr
        question = ("--mode", "hybrid", "sleeping animals", str(tmp_path / "notes"))
        assert warm.asked(*question)[0] == 0
        assert eventually(_maps_model(warm.process.pid)), "it has learned no model"
        assert warm.asked(*question)[0] == 0, "it does not fork any more"
        assert len([*Path(f"/proc/{warm.process.pid}/task").iterdir()]) == 1
    assert not (tmp_path / ".cache").exists(), sorted((tmp_path / ".cache").rglob("*"))


def _maps_model(pid: int) -> Callable[[], bool]:
    return lambda: "onnxruntime" in Path(f"/proc/{pid}/maps").read_text()
