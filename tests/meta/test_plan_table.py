"""The table of the plan: a knob that is declared there shows everywhere, and nowhere else has to be touched."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import findling
from tests.processes import run_process

KNOB = """    novelty: float = knob(
        0.25,
        "How much what is new counts.",
        maximum=1,
        setting="search.novelty",
        flag="--novelty",
        metavar="N",
        project="any",
        http=True,
        mcp="how much what is new counts",
    )


def knobs_of("""

ASKED = """
import json, sys
from findling.domain.errors import FindlingError
from findling.domain.strangers import PROJECT_SETTINGS
from findling.domain.values import plain
from findling.faces.cli.main import cli, run
from findling.faces.http.request.bodies import PlanBody, SearchBody, SearchParameters
from findling.faces.mcp.tools.arguments import SearchArguments
from findling.pipelines.retrieve.plan_files import read_plan
from findling.service.settings.settings import plan_of
from findling.service.settings.settings import load_settings
from findling.service.workspace.scope import request_with
from findling.domain.permissions import OWNER

settings = load_settings(sys.argv[1])
made = SearchBody.model_validate({"query": "q", "novelty": 0.75}).question(OWNER).request
try:
    read_plan({"novelty": 2})
except FindlingError as error:
    refused = error.message
print(json.dumps({
    "setting": [settings["search.novelty"], settings.origin("search.novelty").split()[0]],
    "profile": plan_of(settings, "mine").novelty,
    "project": "search.novelty" in PROJECT_SETTINGS,
    "plan file": read_plan(plain(plan_of(settings))).novelty,
    "refused": refused,
    "library": dict(request_with("q", {"novelty": 0.125}).changes),
    "http": [made.changes["novelty"], "novelty" in PlanBody.model_fields, "novelty" in SearchParameters.model_fields],
    "mcp": SearchArguments.model_json_schema()["properties"]["novelty"]["description"],
}))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with one more knob in the table, and nothing else changed."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(Path(findling.__file__).parent, folder / "findling", ignore=shutil.ignore_patterns("__pycache__"))
    table = folder / "findling" / "domain" / "plans.py"
    text = table.read_text()
    assert text.count("\n\ndef knobs_of(") == 1
    table.write_text(text.replace("\n\ndef knobs_of(", KNOB, 1))
    return folder


def run_in(sources: Path, folder: Path, *arguments: str, **more: str) -> str:
    home = {"HOME": str(sources), "USERPROFILE": str(sources), "FINDLING_CONFIG": str(folder / "config.toml")}
    environ = {**home, "PYTHONPATH": str(sources), "FINDLING_SEMANTIC_MODEL": "none", **more}
    done = run_process([sys.executable, *arguments], cwd=folder, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_knob_of_the_table_shows_everywhere(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[search]\nnovelty = 0.5\n[profiles.mine]\nnovelty = 1\n")
    shown = json.loads(run_in(sources, tmp_path, "-c", ASKED, str(tmp_path)))
    assert shown == {
        "setting": [0.5, "user"],
        "profile": 1.0,
        "project": True,
        "plan file": 0.5,
        "refused": "plan: novelty must be a number of at least 0 and at most 1, not 2",
        "library": {"novelty": 0.125},
        "http": [0.75, True, True],
        "mcp": "how much what is new counts",
    }


def test_a_knob_of_the_table_is_an_option_and_in_the_answer(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nA session token.\n")
    command = ("-m", "findling", "search", "--mode", "keyword", "--json", "session")
    answer = json.loads(run_in(sources, tmp_path, *command, "--novelty", "0.875"))
    assert answer["plan"]["plan"]["novelty"] == 0.875
    assert "How much what is new counts. [setting: search.novelty]" in run_in(
        sources, tmp_path, "-m", "findling", "search", "--help", "--all", COLUMNS="200"
    )
    answer = json.loads(run_in(sources, tmp_path, *command, FINDLING_SEARCH_NOVELTY="0.75"))
    assert answer["plan"]["plan"]["novelty"] == 0.75
