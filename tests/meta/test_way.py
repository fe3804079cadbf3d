"""The way of a query from a face to its legs: frames and modules, as `bench/house.py` counts them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.processes import run_process

HOUSE = Path(__file__).resolve().parents[2]
MOST_FRAMES, MOST_MODULES = 10, 54
MOST_MODULES_OF_HYBRID = 74
"""The figures may only shrink."""

CODE = """
import json, sys
from pathlib import Path
from bench.house import NOTES, hybrid_http, keyword_shell
root = Path(sys.argv[1])
for name, text in NOTES.items():
    (root / name).write_text(text)
print(json.dumps({**keyword_shell(root), **hybrid_http(root)}))
"""


def test_a_query_takes_a_short_way(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(HOUSE)}
    run = run_process([sys.executable, "-c", CODE, str(root)], cwd=HOUSE, env=environment, check=True)
    figures = json.loads(run.stdout)
    assert figures["frames from argv to the keyword leg"] <= MOST_FRAMES
    assert figures["modules entered, keyword, shell"] <= MOST_MODULES
    assert figures["modules entered, hybrid, HTTP"] <= MOST_MODULES_OF_HYBRID
    assert figures["parses of a query, HTTP"] == figures["plans of a query, HTTP"] == 1
