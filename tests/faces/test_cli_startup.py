"""The modules that a command may import. Milliseconds differ between machines, modules do not."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from findling.core import native
from tests.processes import run_process

LIST_MODULES = (
    "import sys; from findling.faces.cli.main import run; code = run(sys.argv[1:]); "
    "print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(code)"
)

HEAVY = {
    "argparse",
    "asyncio",
    "concurrent.futures",
    "difflib",
    "email",
    "http",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "numpy",
    "pathspec",
    "pydantic",
    "rich",
    "socket",
    "ssl",
    "subprocess",
    "tomllib",
    "typing_extensions",
    "unittest",
    "urllib.request",
    "xml",
}


@cache
def bare_modules() -> frozenset[str]:
    """The modules of a bare interpreter."""
    return frozenset(run_process([sys.executable, "-c", "import sys; print('\\n'.join(sys.modules))"]).stdout.split())


def imported_by(*args: str, code: int = 0) -> set[str]:
    """The modules that a command has loaded, beyond those of a bare interpreter."""
    done = run_process([sys.executable, "-c", LIST_MODULES, *args])
    assert done.returncode == code, done.stderr
    return set(done.stderr.splitlines()) - bare_modules()


def test_a_search_imports_little(project: Path) -> None:
    imported_by("login")
    loaded = imported_by("login")
    assert loaded & HEAVY == set()
    thirds = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    made_by_stemmer = {"cython_runtime"}
    assert {name for name in thirds if not name.startswith("_")} - made_by_stemmer <= {
        "click",
        "findling",
        "Stemmer",
        "tantivy",
    }
    assert loaded & {"findling.faces.cli.commands.admin.config", "findling.faces.cli.output.json_output"} == set()


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["config", "show", "--path"], ["completion", "fish"]])
def test_small_commands_do_not_load_the_engine(project: Path, args: list[str]) -> None:
    loaded = imported_by(*args)
    assert loaded & {"findling.service.engine.engine", "sqlite3", "tantivy", "Stemmer"} == set()


def test_a_run_over_an_unchanged_tree_loads_nothing_that_reads_or_searches(project: Path) -> None:
    imported_by("index", ".")
    loaded = imported_by("index", ".")
    assert (
        loaded
        & {
            "findling.pipelines.answer.search",
            "findling.service.upkeep.compaction",
            "findling.stores.vectors.vector_matrix",
            "findling.text.chunking.chunker",
            "logging",
            "numpy",
            "tantivy",
        }
        == set()
    )


@pytest.mark.skipif(native is None, reason="without the compiled core numpy does its work")
def test_a_run_that_writes_vectors_does_without_numpy(project: Path) -> None:
    for text in ("# Guide\n\nhow to log in\n", "# Guide\n\nhow to log out\n"):
        (project / "docs" / "guide.md").write_text(text)
        assert "numpy" not in imported_by("index", ".")
    assert imported_by("--profile", "semantic", "leaving a session") >= {"numpy"}
