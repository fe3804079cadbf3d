"""Building a wheel: with a C compiler it holds the core, without one it is pure Python, and both install."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.processes import run_process

pytest.importorskip("hatchling")
pytest.importorskip("setuptools")

ROOT = Path(__file__).resolve().parents[2]
CORE = "src/findling/core"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The least of the repository that a wheel can be built of."""
    folder = tmp_path / "sources"
    shutil.copytree(ROOT / CORE, folder / CORE, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "src" / "findling" / "__init__.py", folder / "src" / "findling")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    return folder


def build(sources: Path, target: str, **environment: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(sources / "dist")]
    run_process(command, cwd=sources, env=os.environ | environment, check=True)
    (made,) = (sources / "dist").iterdir()
    return made


def test_a_wheel_without_a_compiler_is_pure_python(sources: Path) -> None:
    wheel = build(sources, "wheel", CC="/bin/false")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "findling/core/__init__.py" in names
    assert not [name for name in names if name.endswith((".so", ".pyd", ".c"))]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_wheel_holds_the_core(sources: Path, tmp_path: Path) -> None:
    wheel = build(sources, "wheel")
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as packed:
        assert [name for name in packed.namelist() if "_native" in name] == ["findling/core/_native.abi3.so"]
        packed.extractall(tmp_path / "installed")
    code = "from findling.core import native; print(native.index_form('getUserName', {}), native.KERNELS)"
    environment = {"PYTHONPATH": str(tmp_path / "installed")}
    said = run_process([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True).stdout
    assert said.startswith("getusername get user name ('plain C'")
    assert not list((sources / CORE).glob("_native*"))


def test_the_source_archive_holds_what_the_core_is_built_of(sources: Path) -> None:
    with tarfile.open(build(sources, "sdist")) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    written = {f"{CORE}/{path.name}" for path in (ROOT / CORE).glob("*.[ch]")}
    assert len(written) >= 4
    assert written | {"hatch_build.py"} <= names
