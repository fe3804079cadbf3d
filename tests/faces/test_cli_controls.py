"""Names and texts of strangers on a terminal: no command passes their control characters on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import BoundedProcess, run_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\u202e\u2028"

COMMANDS = [
    ["ls"],
    ["glob", "*"],
    ["grep", "-l", "pilot"],
    ["pilot"],
    ["pilot", "--format", "files"],
    ["pilot", "--format", "vimgrep"],
    ["pilot", "--explain"],
    ["pilot", "--json"],
    ["fetch", "decision:1"],
    ["search", "pilot", "--explain-hit", "decision:1"],
    ["similar", "decision:1"],
    ["related", "decision:1"],
    ["related"],
    ["suggest", "pil"],
    ["index", "--dry-run"],
    ["status", "--list", "skipped"],
    ["permissions", "list"],
    ["recall"],
    ["recall", "tea"],
    ["doctor"],
    ["fetch", f"no{EVIL}thing"],
    ["permissions", "share", f"no{EVIL}where", "user:ann"],
]


@pytest.fixture
def evil(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = home / "evil"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / f"pilot{EVIL}.md").write_text(f"# Head {EVIL}\n\nThe pilot {EVIL} waits.\n")
    (root / f"blob{EVIL}.bin").write_bytes(b"\0\1")
    return root


RUN = """
import json, sys
from findling.faces.cli.main import run
for args in json.loads(sys.argv[1]):
    run(args)
    sys.stderr.flush()
    print("that was it", flush=True)
"""


def on_terminal(commands: list[list[str]]) -> list[str]:
    """All that each command writes to a terminal, which is both of its streams."""
    parent, child = os.openpty()
    environ = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
    process = BoundedProcess(
        [sys.executable, "-c", RUN, json.dumps(commands)], stdin=child, stdout=child, stderr=child, env=environ
    )
    os.close(child)
    written = b""
    while True:
        try:
            block = os.read(parent, 1 << 16)
        except OSError:  # Linux says so when the other side is closed
            break
        if not block:
            break
        written += block
    os.close(parent)
    assert process.wait() == 0
    *told, rest = written.decode("utf-8", "surrogateescape").split("that was it\r\n")
    assert (len(told), rest) == (len(commands), "")
    return told


def test_no_command_passes_controls_on(evil: Path, tmp_path: Path) -> None:
    from findling.faces.cli.main import run

    items = tmp_path / "items.jsonl"
    text = EVIL.encode("unicode_escape").decode().replace("\\x", "\\u00")
    items.write_text(
        f'{{"type": "decision", "id": "1", "title": "T{text}", "body": "pilot {text}", "author": "{text}"}}\n'
    )
    assert run(["index"]) == 0
    assert run(["add", str(items)]) == 0
    assert run(["remember", "--here", f"The pilot likes tea {EVIL}.", "--tag", f"x{EVIL}"]) == 0
    assert run(["permissions", "share", f"pilot{EVIL}.md", "user:ann"]) == 0
    for args, told in zip(COMMANDS, on_terminal(COMMANDS), strict=True):
        assert told, args
        for control in "\x1b\x07\x08\x9b\u202e\u2028":
            assert control not in told, (args, told)


def test_a_line_end_in_a_name_is_no_line_end_on_a_terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ls`, `glob` and `index --dry-run` printed two names for one; programs get the name as it is."""
    from findling.faces.cli.main import run

    root = home / "lines"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "one\nsafe.md").write_text("The pilot waits.\n")
    assert run(["index"]) == 0
    for listed in (["ls"], ["glob", "*.md"], ["index", "--dry-run"], ["grep", "-l", "pilot"], ["pilot", "-l"]):
        (told,) = on_terminal([listed])
        assert "one\u240asafe.md" in told.splitlines(), (listed, told)
        piped = run_process([sys.executable, "-m", "findling", *listed])
        assert piped.stdout == "one\nsafe.md\n"


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that root cannot write either")
def test_the_doctor_examines_the_machine_without_an_index(
    project: Path, findling: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = findling("doctor")
    assert code == 1
    assert out.startswith("BAD  index: ")
    for name in ("home", "model", "sqlite", "grammars", "compiled core", "vector kernel"):
        assert f"ok   {name}: " in out
    monkeypatch.setenv("FINDLING_HOME", "/proc/1/home")  # nobody can write there, root neither
    code, out, _ = findling("doctor")
    assert code == 1
    assert "BAD  home: /proc/1/home cannot be written" in out
