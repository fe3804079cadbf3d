"""A package of somebody else brings a backend: the one of docs/backends.md, built from that page."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.counts import tries
from tests.forks import Program
from tests.processes import PATIENCE_S, run_process

DOCS = Path(__file__).resolve().parents[2] / "docs" / "backends.md"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package as pip would have installed it."""
    site = tmp_path / "site"
    blocks = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL))
    registered = re.findall(r'"findling\.backends"\]\n(.*?)\n```', DOCS.read_text("utf-8"), re.DOTALL)
    info = site / "tinybackend-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tinybackend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[findling.backends]\n" + registered[0].replace('"', "") + "\n")
    (site / "tinybackend.py").write_text(blocks["tinybackend.py"])
    (tmp_path / "test_tinybackend.py").write_text(blocks["test_tinybackend.py"])
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    fewer = f"from findling.testing.backend import BackendSuite\n\nBackendSuite.worlds = {tries(3, short=1)}\n"
    (tmp_path / "conftest.py").write_text(fewer)
    return tmp_path


def environment(package: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(package / "site"), os.environ.get("PYTHONPATH", "")]))
    own = {"FINDLING_HOME": str(package / "home"), "FINDLING_CONFIG": str(package / "none.toml")}
    return {
        **os.environ,
        **own,
        "PYTHONPATH": path,
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SEARCH_MODE": "keyword",
    }


def test_it_passes_every_suite(package: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_tinybackend.py"]
    run = run_process(command, cwd=package, env=environment(package), timeout=4 * PATIENCE_S)  # 9 s of CPU
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert re.search(r"\d{3} passed", run.stdout), run.stdout[-300:]


def test_a_workspace_lies_there(package: Path, request: pytest.FixtureRequest) -> None:
    tree, truth = package / "tree", package / "truth.sqlite"
    tree.mkdir()
    (tree / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at nine.\n")
    own = environment(package)
    program = Program(env=own)
    request.addfinalizer(program.close)

    def findling(*words: str, code: int = 0) -> str:
        run = program.run(*words, cwd=package, env=own)
        assert run.returncode == code, run.stdout + run.stderr
        return run.stdout + run.stderr

    findling("workspaces", "create", "port", "--root", str(tree), "--place", f"tiny:{truth}")
    findling("index", "--workspace", "port")
    assert truth.exists()
    assert not list((package / "home" / "port").glob("*.sqlite*"))
    assert "harbour.md:3" in findling("ferry at nine", "--workspace", "port")
    (tree / "harbour.md").write_text("# Harbour\n\nThe steamer leaves at ten.\n")
    assert "harbour.md:3" in findling("steamer", "--workspace", "port")
    findling("ferry", "--workspace", "port", "--mode", "keyword", code=1)
    assert f"tiny:{truth}" in findling("workspaces", "list", "--json")
    assert "without snapshots" in findling("snapshot", "create", "--workspace", "port", code=2)
    assert "without compact" in findling("compact", "--workspace", "port", code=2)
    assert "truth store" in findling("doctor", "--workspace", "port")
    findling("doctor", "--repair", "--workspace", "port")
    assert "harbour.md:3" in findling("steamer", "--workspace", "port")
    findling("workspaces", "drop", "port", "--yes")
    assert truth.exists()
