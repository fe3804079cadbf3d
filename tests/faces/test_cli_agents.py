"""`findling agents`: real settings files of every format, written surgically and restored byte for byte."""

from __future__ import annotations

import json
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from findling.domain.errors import BusyError
from findling.service.agents.agent_table import AGENTS, is_own_entry, place, places, seen_here
from findling.service.agents.installing import carry_out, plan_install
from findling.service.agents.jsonc_text import read_json
from tests.counts import tries
from tests.processes import BoundedProcess, run_process

Call = Callable[..., tuple[int, str, str]]

SETTINGS = {
    "claude": '{\n  "numStartups": 41,\n  "mcpServers": {},\n  "projects": {}\n}\n',
    "codex": '# mine\nmodel = "o9"\n\n[mcp_servers.docs]\ncommand = "docs"  # keep\n',
    "zed": '// Zed\n{\n  "theme": "One", // dark\n  "context_servers": {\n    "a": { "command": "a" },\n  },\n}\n',
    "goose": "GOOSE_MODE: auto # c\nextensions:\n  # built in\n  developer:\n    enabled: true\n",
    "vscode": '{\r\n\t"inputs": [],\r\n\t"servers": {\r\n\t\t"x": {"command": "x"}\r\n\t}\r\n}\r\n',
    "opencode": '\ufeff{"$schema": "https://opencode.ai/config.json"}',
    "amp": '{"amp.mcpServers": {"y": {"command": "y"}}, "amp.theme": "dark"}\n',
    "cursor": "",
}
READERS: dict[str, Callable[[str], Any]] = {"toml": tomllib.loads, "yaml": yaml.safe_load}


@pytest.fixture(autouse=True)
def own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent of this machine is seen, and none of its files."""
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def files(project: Path) -> dict[str, Path]:
    """A settings file of each format, with what their owner has written."""
    found = {name: place(AGENTS[name].user.settings[0], project) for name in SETTINGS}
    for name, path in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SETTINGS[name].encode())
    return found


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def entry(name: str, text: str) -> object:
    """The entry of an agent, as the standard parser of the format reads it, or ours for JSON with comments."""
    path = (*AGENTS[name].keys, "findling")
    if AGENTS[name].format == "json":
        return read_json(text.lstrip("\ufeff"), path)
    document = READERS[AGENTS[name].format](text)
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_has_its_entry_and_loses_it_again(project: Path, findling: Call, name: str, scope: str) -> None:
    before = tree(project.parent)
    if AGENTS[name].files(scope) is None:
        code, _, err = findling("agents", "install", name, "--scope", scope)
        assert code == 2 and "--scope user" in err
        return
    assert findling("agents", "install", name, "--scope", scope)[0] == 0
    written = tree(project.parent)
    agent_files = AGENTS[name].files(scope)
    assert agent_files is not None
    found = entry(name, written[str(place(agent_files.settings[0], project))].decode())
    assert is_own_entry(found)
    assert str(project) in str(found) or (scope == "user" and AGENTS[name].folder is not None)
    if agent_files.instructions:
        assert b"findling:begin" in written[str(place(agent_files.instructions, project))]
    code, out, _ = findling("agents", "install", name, "--scope", scope)
    assert (code, tree(project.parent)) == (0, written) and "added" not in out
    assert findling("agents", "install", "--remove", name, "--scope", scope)[0] == 0
    assert tree(project.parent) == before
    assert [one for one in project.rglob("*") if one.is_dir() and not any(one.iterdir())] == []


def test_what_others_wrote_stays_byte_for_byte(project: Path, findling: Call, files: dict[str, Path]) -> None:
    for path in files.values():
        path.chmod(0o640)
    before = tree(project.parent)
    assert findling("agents", "install", *files)[0] == 0
    for name, path in files.items():
        assert is_own_entry(entry(name, path.read_bytes().decode())), path.read_text()
        assert path.stat().st_mode & 0o777 == 0o640
    assert files["vscode"].read_bytes().count(b"\n") == files["vscode"].read_bytes().count(b"\r\n")
    assert findling("agents", "install", "--remove")[0] == 0
    assert tree(project.parent) == before


def test_a_dry_run_prints_a_diff_and_writes_nothing(project: Path, findling: Call, files: dict[str, Path]) -> None:
    before = tree(project.parent.parent)
    code, out, _ = findling("agents", "install", "--dry-run", "codex", "goose", "opencode")
    assert (code, tree(project.parent.parent)) == (0, before)
    assert f"--- {files['codex']}\n+++ {files['codex']}\n" in out and "+[mcp_servers.findling]\n" in out
    assert findling("agents", "install", "--remove", "--dry-run", "codex") == (
        0,
        "",
        "findling: nothing would change\n",
    )


def test_agents_that_are_found_are_installed_and_listed(project: Path, findling: Call) -> None:
    code, out, err = findling("agents", "install")
    assert (code, out) == (1, "") and "no agent was found" in err
    (project.parent / ".codex").mkdir()
    (project.parent / ".config" / "goose").mkdir(parents=True)
    code, out, _ = findling("agents", "install")
    assert code == 0 and {line.split()[0] for line in out.splitlines()} == {"codex", "goose"}
    listed = json.loads(findling("agents", "list", "--json")[1])["agents"]
    assert len(listed) == len(AGENTS)
    states = {row["name"]: (row["found"], row["user"]["entry"]) for row in listed}
    assert states["codex"] == states["goose"] == (True, "ours") and states["gemini"] == (False, "none")
    assert "JetBrains Junie" in findling("agents", "list")[1]


def test_an_entry_of_somebody_else_is_kept(project: Path, findling: Call) -> None:
    path = project.parent / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"findling": {"command": "uvx", "args": ["findling", "mcp"]}}}')
    before = path.read_bytes()
    code, _, err = findling("agents", "install", "gemini", "codex")
    assert code == 2 and "starts something else" in err and "--force" in err
    assert path.read_bytes() == before and (project.parent / ".codex" / "config.toml").exists(), "others go on"
    assert "not ours" in findling("agents", "install", "--remove", "gemini")[1]
    assert path.read_bytes() == before
    assert findling("agents", "install", "gemini", "--force")[0] == 0
    assert is_own_entry(json.loads(path.read_text())["mcpServers"]["findling"])


def test_an_entry_that_its_owner_has_changed(project: Path, findling: Call) -> None:
    findling("agents", "install", "claude", "--scope", "project")
    path = project / ".mcp.json"
    document = json.loads(path.read_text())
    document["mcpServers"]["findling"]["env"] = {"FINDLING_MCP_WRITE": "true"}
    path.write_text(json.dumps(document))
    assert "unchanged" in findling("agents", "install", "claude", "--scope", "project")[1]
    document["mcpServers"]["findling"]["args"][-1] = "/elsewhere"
    path.write_text(json.dumps(document))
    code, _, err = findling("agents", "install", "claude", "--scope", "project")
    assert code == 2 and "changed by hand" in err and json.loads(path.read_text()) == document
    del document["mcpServers"]["findling"]["env"]
    path.write_text(json.dumps(document))
    assert "updated" in findling("agents", "install", "claude", "--scope", "project")[1]
    assert json.loads(path.read_text())["mcpServers"]["findling"]["args"][-2:] == ["mcp", str(project)]


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("gemini", b'{\n"a": 1,\n"b" 2}', 3, "no JSON"),
        ("gemini", b'{"mcpServers": {},\n"mcpServers": {}}', 2, "twice"),
        ("gemini", b'{\n"a": "\xff"}', 2, "no UTF-8"),
        ("gemini", '{"a": 1}'.encode("utf-16"), 1, "no UTF-8"),
        ("codex", b"a = 1\nb =\n", 2, "no TOML"),
        ("codex", b"a = 1\nmcp_servers = 5\n", 1, "no table"),
        ("codex", b"[mcp_servers]\nx = {}\n[mcp_servers.x]\n", 3, "no TOML"),
        ("goose", b"a: [1\n", 2, "no YAML"),
        ("goose", b"a: 1\nextensions: {}\n", 2, "lines of their own"),
    ],
)
def test_a_file_that_cannot_be_edited_stays(
    project: Path, findling: Call, name: str, content: bytes, line: int, reason: str
) -> None:
    path = place(AGENTS[name].user.settings[0], project)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for verb in ("install", "--remove"):
        code, _, err = findling("agents", "install", name, *([verb] if verb == "--remove" else []))
        if verb == "--remove" and reason == "lines of their own":
            continue
        assert code == 2 and f"{path}, line {line}: " in err and reason in err, err
        assert f"--print {name}" in err
        assert path.read_bytes() == content
    assert findling("agents", "list")[0] == 0


def test_a_protected_file_a_folder_and_a_pipe(project: Path, findling: Call) -> None:
    path = project.parent / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("a = 1\n")
    path.chmod(0o444)
    code, _, err = findling("agents", "install", "codex")
    assert code == 2 and "write-protected" in err and "chmod" in err
    assert path.read_text() == "a = 1\n"
    path.unlink()
    path.mkdir()
    assert "is no file" in findling("agents", "install", "codex")[2]
    path.rmdir()
    os.mkfifo(path)
    assert "is no file" in findling("agents", "install", "codex")[2]


def test_a_link_leads_to_the_file_that_is_written(project: Path, findling: Call) -> None:
    real = project.parent / "dotfiles" / "codex.toml"
    real.parent.mkdir()
    real.write_text('model = "o9"\n')
    link = project.parent / ".codex" / "config.toml"
    link.parent.mkdir()
    link.symlink_to(real)
    assert findling("agents", "install", "codex")[0] == 0
    assert link.is_symlink() and "findling" in real.read_text()
    assert findling("agents", "install", "--remove", "codex")[0] == 0
    assert link.is_symlink() and real.read_text() == 'model = "o9"\n'


@pytest.mark.parametrize("linked", ["file", "folder", "dangling", "instructions", "link to a link"])
def test_a_link_of_a_project_that_leads_out_of_it_is_refused(project: Path, findling: Call, linked: str) -> None:
    """A repository that somebody cloned had `install --scope project` write to files outside of it."""
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "mcp.json").write_text('{"mine": 1}\n')
    (outside / "AGENTS.md").write_text("mine\n")
    if linked == "folder":
        (project / ".cursor").symlink_to(outside)
    elif linked == "instructions":
        (project / "AGENTS.md").symlink_to(outside / "AGENTS.md")
    else:
        (project / ".cursor").mkdir()
        target = outside / ("absent.json" if linked == "dangling" else "mcp.json")
        if linked == "link to a link":
            (project / "step").symlink_to(target)
            target = project / "step"
        (project / ".cursor" / "mcp.json").symlink_to(target)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    for action in ("install", "--remove"):
        flags = [action] if action == "--remove" else []
        code, _, err = findling("agents", "install", "cursor", "--scope", "project", *flags)
        assert code == 2 and "outside of the project; nothing was written" in err, (action, err)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    assert findling("agents", "list")[0] == 0


def test_a_link_within_a_project_is_followed(project: Path, findling: Call) -> None:
    (project / ".cursor").symlink_to("tools")
    (project / "tools").mkdir()
    assert findling("agents", "install", "cursor", "--scope", "project")[0] == 0
    assert "findling" in (project / "tools" / "mcp.json").read_text()


def test_shared_instructions_stay_as_long_as_an_agent_reads_them(project: Path, findling: Call) -> None:
    notes = project / "AGENTS.md"
    notes.write_text("# Ours\n")
    findling("agents", "install", "codex", "amp", "--scope", "project")
    assert "still used" in findling("agents", "install", "--remove", "codex", "--scope", "project")[1]
    assert "findling:begin" in notes.read_text()
    findling("agents", "install", "--remove", "amp", "--scope", "project")
    assert notes.read_text() == "# Ours\n"
    findling("agents", "install", "codex", "--no-instructions", "--scope", "project")
    assert notes.read_text() == "# Ours\n"


def test_an_agent_without_a_project_needs_a_folder(home: Path, findling: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    code, _, err = findling("agents", "install", "claude-desktop")
    assert code == 2 and "cd FOLDER" in err
    (home / "notes").mkdir()
    monkeypatch.chdir(home / "notes")
    assert findling("agents", "install", "claude-desktop")[0] == 0
    assert str(home / "notes") in place(AGENTS["claude-desktop"].user.settings[0], home).read_text()
    assert findling("agents", "install", "codex", "--path", "nowhere")[0] == 2, "an option of earlier versions"
    code, _, err = findling("agents", "install", "codx")
    assert code == 2 and "codex" in err


def test_a_folder_whose_name_no_file_can_hold(home: Path, findling: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.fsdecode(os.fsencode(home) + b"/n\xffte")
    os.mkdir(folder)  # noqa: PTH102
    monkeypatch.chdir(folder)
    code, _, err = findling("agents", "install", "codex", "--scope", "project")
    assert code == 2 and "not valid Unicode" in err
    assert not any(Path(folder).iterdir())


def test_a_missing_package_is_named(project: Path, files: dict[str, Path]) -> None:
    hidden = (
        "import sys; sys.modules['{}'] = None; from findling.faces.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", hidden.format("yaml"), "agents"]
    done = run_process([*command, "install", "goose", "codex"])
    assert done.returncode == 2 and "findling[mcp]" in done.stderr and "codex" in done.stdout
    assert files["goose"].read_text() == SETTINGS["goose"]
    assert "unclear" in run_process([*command, "list"], check=True).stdout
    done = run_process([sys.executable, "-c", hidden.format("mcp"), "agents", "install", "codex"])
    assert (done.returncode, done.stdout) == (2, "") and "findling[mcp]" in done.stderr


def test_a_file_that_changes_meanwhile_is_not_overwritten(project: Path, files: dict[str, Path]) -> None:
    (change, _) = plan_install("codex", "user", project, ["/bin/findling", "mcp"], "Search.", {})
    files["codex"].write_text("model = 'later'\n")
    with pytest.raises(BusyError, match="another program"):
        carry_out(change, project)
    assert files["codex"].read_text() == "model = 'later'\n"


def test_a_process_that_is_killed_leaves_every_file_whole(project: Path, files: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "findling", "agents"]
    names = list(files)
    wholes: dict[str, set[bytes]] = {str(path): {path.read_bytes()} for path in files.values()}
    assert run_process([*command, "install", *names]).returncode == 0
    for path in files.values():
        wholes[str(path)].add(path.read_bytes())
    for wait in range(tries(40, short=2)):
        flags = ["--remove"] if wait % 2 == 0 else []
        process = BoundedProcess([*command, "install", *flags, *names])
        try:
            for _ in _until_changed(files["claude"]):
                if process.poll() is not None:
                    break
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        for path in files.values():
            assert path.read_bytes() in wholes[str(path)]
    assert run_process([*command, "install", *names]).returncode == 0
    assert run_process([*command, "install", "--remove", *names]).returncode == 0
    assert {path.read_bytes() for path in files.values()} == {text.encode() for text in SETTINGS.values()}
    assert [one for path in files.values() for one in path.parent.iterdir() if one.name.endswith(".new")] == []


def _until_changed(path: Path) -> Iterator[None]:
    was = path.stat().st_ino
    while path.stat().st_ino == was:
        yield


def test_two_processes_at_once(project: Path, files: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "findling", "agents", "install", *files]
    processes = [BoundedProcess(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    for name, path in files.items():
        assert is_own_entry(entry(name, path.read_bytes().decode()))
    assert files["codex"].read_text().count("[mcp_servers.findling]") == 1


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_platform_has_its_places(platform: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, agent in AGENTS.items():
        written = [*agent.user.settings, agent.user.instructions or "~/x", *agent.signs]
        for each in written:
            found = place(each, Path("/project"), platform)
            assert "{" not in str(found) and "$" not in str(found), name
        assert place(agent.user.settings[0], Path("/project"), platform).is_relative_to(home)
    monkeypatch.setenv("CODEX_HOME", "/elsewhere")
    assert place(AGENTS["codex"].user.settings[0], Path("/project"), platform) == Path("/elsewhere/config.toml")
    assert places("cursor") == "~/.cursor/mcp.json, or .cursor/mcp.json of the project"
    assert not any(seen_here(agent) for name, agent in AGENTS.items() if name != "codex")


def test_every_agent_can_be_printed(findling: Call, project: Path) -> None:
    for name in AGENTS:
        code, out, err = findling("mcp", "--print", name)
        assert (code, str(project) in out) == (0, True)
        assert places(name) in err
