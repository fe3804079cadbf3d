"""The compiled core can be switched off, and nobody sees a difference but in `findling doctor`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from findling.core import native
from tests.processes import run_process

CODE = "import sys; from findling.faces.cli.main import run; sys.exit(run())"
NOTES = {
    "fox.md": "# Animals\n\nThe quick brown fox, naïve and déjà vu.\n\nIt dozed upon the rug.\n",
    "names.py": "def getUserName(user_id):\n    return IPv6Address[user_id]  # C++17, größer\n",
    "han.txt": "数据库连接超时，请检查配置。 5㎏ 👩🏽\u200d🚀\n",
}


def run_findling(home: Path, core: str, *arguments: str, check: bool = True) -> tuple[str, str]:
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": str(home / "none.toml"),
        "FINDLING_SEMANTIC_MODEL": "none",  # a search may have the model read on its way
        "FINDLING_CORE": core,
    }
    run = run_process([sys.executable, "-c", CODE, *arguments], env=environment, check=check)
    return run.stdout, run.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core") / "tree"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    return folder


@pytest.fixture(scope="module")
def homes(tree: Path) -> dict[str, Path]:
    """An index of the tree made by the core, and one made without it."""
    made = {core: tree.parent / core for core in ("on", "off")}
    for core, home in made.items():
        run_findling(home, core, "index", str(tree))
    return made


def test_doctor_tells_which_code_runs(tree: Path, homes: dict[str, Path]) -> None:
    on = run_findling(homes["on"], "on", "doctor", str(tree))[0]
    off = run_findling(homes["on"], "off", "doctor", str(tree))[0]
    assert "not in use: switched off by FINDLING_CORE=off; Python does its work" in off
    assert "simsimd, " in off
    if native is None:
        assert "not in use: it " in on
    else:
        assert "in use" in on and "not in use" not in on
        assert (native.KERNELS[-1] if len(native.KERNELS) > 1 else "simsimd, ") in on


def test_any_other_value_is_an_error(tree: Path, tmp_path: Path) -> None:
    out, err = run_findling(tmp_path / "home", "maybe", "fox", str(tree), check=False)
    assert out == ""
    assert "FINDLING_CORE is 'maybe'" in err and "on, off" in err


def test_answers_are_the_same_without_it(tree: Path, homes: dict[str, Path], tmp_path: Path) -> None:
    queries = ["fox", "user name", "C++", "where does the fox sleep on a carpet", "数据库", "kg"]
    (tmp_path / "queries").write_text("\n".join(queries), encoding="utf-8")
    answers = []
    for indexing, searching in (("on", "on"), ("off", "off"), ("off", "on")):
        home = tmp_path / f"{indexing} {searching}"
        shutil.copytree(homes[indexing], home)  # a search may leave something behind
        said = run_findling(home, searching, "-Q", str(tmp_path / "queries"), str(tree), "--json")[0]
        answers.append([_timeless(answer) for answer in json.loads(said)])
    first, *others = answers
    assert [answer["query"] for answer in first if answer["hits"]] == queries
    assert others == [first, first]


def _timeless(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if not key.endswith(("_ms", "_s"))}


def test_a_core_built_from_other_sources_is_not_used(tmp_path: Path) -> None:
    package = Path(sys.modules["findling"].__path__[0]) / "core"
    folder = tmp_path / "findling" / "core"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    shutil.copy(package / "__init__.py", folder)
    code = "from findling.core import native, core_problem; print(native is None, core_problem)"
    environment = {"PYTHONPATH": str(tmp_path)}
    said = run_process([sys.executable, "-c", code], env=environment, check=True).stdout
    assert "True it was not built" in said
    (folder / "_native.py").write_text('VERSION = "0"\n')
    said = run_process([sys.executable, "-c", code], env=environment, check=True).stdout
    assert "True it was built from other sources" in said
    (folder / "_native.py").write_text("import nothing_of_this_name_\n")
    said = run_process([sys.executable, "-c", code], env=environment, check=True).stdout
    assert "True it " in said
