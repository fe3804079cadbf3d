"""Questions without a name load nothing of the graph, those without a known one no numpy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

CODE = """
import json, sys
from pathlib import Path
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings
root, home, query = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
own = {"store.home": home, "search.mode": "keyword", "semantic.instant": False}
with open_engine(root, settings=load_settings(root).override(own, "test")) as engine:
    answer = engine.search(query)
    print(json.dumps([len(answer.hits), answer.plan.get("graph"), sorted(sys.modules)]))
"""


def loaded(root: Path, query: str) -> tuple[int, dict[str, object] | None, set[str]]:
    run = run_process([sys.executable, "-c", CODE, str(root), str(root.with_name("home")), query], check=True)
    hits, graph, modules = json.loads(run.stdout)
    return hits, graph, set(modules)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "Jump for Glory.md").write_text("# Jump for Glory\n\nA film, made by Raoul Walsh.\n")
    (root / "Raoul Walsh.md").write_text("# Raoul Walsh\n\nA man who made more than one film.\n")
    hits, graph, modules = loaded(root, "Who made Jump for Glory?")
    assert (hits, (graph or {})["state"], "numpy" in modules) == (2, "on", True)
    return root


def test_words_load_nothing_of_the_graph(root: Path) -> None:
    hits, graph, modules = loaded(root, "film made")
    assert (hits, graph) == (2, None)
    assert not {name for name in modules if "graph" in name and name.startswith("findling")}
    assert "numpy" not in modules


def test_a_question_without_a_known_name_loads_no_numpy(root: Path) -> None:
    hits, graph, modules = loaded(root, "who made more than one film")
    assert (hits, graph) == (2, {"state": "off", "because": "it knows no name in the question"})
    assert "numpy" not in modules
