"""The skill file that teaches an agent to use findling: it is short, ships with the package, and says what is so."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest

from findling.faces.cli.main import run
from findling.text.query.parser import parse

SKILL = (files("findling.faces.mcp") / "skill" / "SKILL.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```sh\n(.+?)^```", SKILL, re.M | re.S) for line in block.splitlines()]
CONDITIONS = re.findall(r"`(-?[a-z]+:[^`]+)`", SKILL.partition("## How to write a query")[2].partition("\n## ")[0])


def test_it_says_what_it_is_for_and_is_short() -> None:
    found = re.match(r"---\nname: findling\ndescription: (.+)\n---\n\n# findling\n", SKILL)
    assert found is not None
    assert len(found[1]) <= 1024, "clients read no more of a description"
    assert ": " not in found[1], "in YAML that would be a key"
    assert len(SKILL.splitlines()) <= 80


def test_its_commands_work(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "src" / "tokens.py").write_text("".join(f"TOKEN_{number} = {number}\n" for number in range(60)))
    monkeypatch.chdir(folder)
    assert run(["index"]) == 0
    assert run(["remember", "--here", "We chose the database SQLite."]) == 0
    assert len(COMMANDS) >= 6
    for line in COMMANDS:
        name, *arguments = shlex.split(line)
        assert name == "findling"
        capsys.readouterr()
        assert run(arguments) == 0, line
        assert capsys.readouterr().out, line


def test_its_conditions_are_conditions() -> None:
    assert len(CONDITIONS) >= 9
    for condition in CONDITIONS:
        parsed = parse(f"word {condition}")
        assert not parsed.notes, condition
        assert parsed.operators, f"{condition} is only words"
