"""The examples of docs/integrations.md, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import findling
from tests.processes import run_process

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
FOLDER = re.findall(r"^```sh\n(mkdir .+?)^```", PAGE, re.M | re.S)
EXAMPLES = re.findall(r"^```python\n(.+?)^```\n\n```text\n(.+?)^```", PAGE, re.M | re.S)


@pytest.mark.parametrize("program, output", EXAMPLES, ids=["langchain", "llama-index", "haystack", "llm"])
def test_an_example_prints_what_the_page_says(
    program: str, output: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FINDLING_SEARCH_MODE")
    monkeypatch.chdir(home)
    run_process(["sh", "-ec", FOLDER[0]], cwd=home, check=True)
    with findling.open("notes") as engine:
        engine.index()
    exec(compile(program, "docs/integrations.md", "exec"), {})
    # A figure may differ by a hair between processors.
    figures = re.compile(r'(?<="score": )0\.\d+')
    assert figures.sub("0", capsys.readouterr().out) == figures.sub("0", output)
