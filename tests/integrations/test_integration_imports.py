"""Imports of adapters: their modules, the error without their library, and no traffic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.processes import run_process

HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("haystack", "langchain_core", "llama_index", "llm"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from findling.domain.errors import MissingExtraError
for module in ("haystack", "langchain", "llama_index", "llm_plugin"):
    try:
        __import__(f"findling.integrations.{module}")
    except MissingExtraError as error:
        print(error.message, error.hint, sep="; ")
"""

WATCHED = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto") and not isinstance(arguments[-1], str):
        print("goes out:", event, arguments)

sys.addaudithook(refuse)
folder = sys.argv[1]
from findling.integrations import haystack, langchain, llama_index, llm_plugin
print(len(langchain.FindlingRetriever(path=folder).invoke("plan")))
print(len(llama_index.FindlingRetriever(path=folder).retrieve("plan")))
print(len(haystack.FindlingRetriever(path=folder).run("plan")["documents"]))
print(llm_plugin.Findling(path=folder).search("plan").count('"id"'))
"""

SEARCHED = """
import sys
from findling.faces.cli.main import run

run(["search", "plan", sys.argv[1]])
print("loaded:", *[name for name in sys.modules if name.startswith("findling.integrations")])
"""

PLUGGED = """
import findling.integrations.llm_plugin, sys
print(*sorted(name for name in sys.modules if name.startswith("findling")))
"""


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = run_process(command)
    assert done.returncode == 0, done.stderr
    return done


def test_without_its_library_an_adapter_names_the_extra() -> None:
    assert python(HIDDEN).stdout.splitlines() == [
        "haystack-ai is not installed; pip install 'findling[haystack]'",
        "langchain-core is not installed; pip install 'findling[langchain]'",
        "llama-index-core is not installed; pip install 'findling[llama-index]'",
        "llm is not installed; pip install 'findling[llm]'",
    ]


def test_nothing_is_sent_anywhere(folder: Path) -> None:
    assert python(WATCHED, str(folder)).stdout.split() == ["1", "1", "1", "1"]


def test_a_search_loads_no_adapter(folder: Path) -> None:
    said = python(SEARCHED, str(folder)).stdout
    assert "docs/plan.md" in said
    assert said.splitlines()[-1] == "loaded:"


def test_every_run_of_llm_pays_for_the_plugin_alone() -> None:
    loaded = python(PLUGGED).stdout.split()
    assert loaded == ["findling", "findling.integrations", "findling.integrations.llm_plugin"]
