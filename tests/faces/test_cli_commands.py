"""The command line as far as it goes without an index: routing, help, errors, settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from findling.faces.cli.main import COMMANDS, GROUPS, cli, route
from findling.service.settings.settings import SETTINGS
from tests.processes import BoundedProcess, run_process

Findling = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("args", "routed"),
    [
        ([], []),
        (["--help"], ["--help"]),
        (["-h"], ["-h"]),
        (["--version"], ["--version"]),
        (["login"], ["search", "login"]),
        (["login", "docs"], ["search", "login", "docs"]),
        (["-k", "5", "login"], ["search", "-k", "5", "login"]),
        (["-l", "status"], ["search", "-l", "status"]),
        (["--", "index"], ["search", "--", "index"]),
        (["index", "docs"], ["index", "docs"]),
        (["search", "index"], ["search", "index"]),
        (["--workspace", "w", "status"], ["status", "--workspace", "w"]),
        (["--workspace=w", "login"], ["search", "--workspace=w", "login"]),
        (["--workspace", "w"], ["search", "--workspace", "w"]),
    ],
)
def test_routing(args: list[str], routed: list[str]) -> None:
    assert route(args) == routed


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            yield from walk(inner, (*path, name))


ALL_COMMANDS = dict(walk(cli))


def test_the_commands_are_those_that_were_promised() -> None:
    promised = (
        "search grep glob refs outline fetch similar related suggest agents index refine situate add sync chats "
        "remember memory recall status ls workspaces move permissions export import compact snapshot glossary watch "
        "serve mcp token models config forget doctor eval completion"
    )
    assert set(COMMANDS) == set(promised.split())
    subcommands = {" ".join(path) for path in ALL_COMMANDS if len(path) == 2}
    groups = {
        "agents": "install uninstall list savings",
        "chats": "import list delete",
        "config": "show set add remove",
        "glossary": "add list set import",
        "memory": "history review undo",
        "models": "list pull use",
        "permissions": "list join share deny check policy",
        "snapshot": "create list restore drop",
        "token": "create revoke list",
        "watch": "add list run",
        "workspaces": "list create set drop",
    }
    assert subcommands == {f"{group} {name}" for group, names in groups.items() for name in names.split()}


def test_the_help_groups_the_commands(findling: Findling) -> None:
    out = findling("--help")[1]
    titles = [line.removesuffix(":") for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[-len(GROUPS) :] == list(GROUPS) == ["Search", "Content", "Index", "Serve", "Admin"]


@pytest.mark.parametrize(
    ("args", "instead"),
    [
        (("explain", "q", "id"), "findling search QUERY --explain-hit ID"),
        (("include", "add", "x"), "findling config add index.include PATTERN"),
        (("exclude", "list"), "findling config add index.exclude PATTERN"),
        (("repair",), "findling doctor --repair"),
        (("version",), "findling --version"),
        (("workspaces", "search", "q"), "--workspace A,B"),
        (("config", "unset", "search.limit"), "findling config remove KEY"),
        (("glossary", "pending"), "findling glossary list --pending"),
        (("permissions", "unshare", "a", "b"), "share TARGET PRINCIPAL --remove"),
        (("snapshot", "verify", "x"), "findling snapshot restore NAME --check"),
        (("models", "test"), "findling models use NAME --try"),
        (("watch", "remove"), "findling watch add PATH --remove"),
    ],
)
def test_a_command_of_an_earlier_version_names_the_new_one(
    project: Path, findling: Findling, args: tuple[str, ...], instead: str
) -> None:
    code, out, err = findling(*args)
    assert (code, out) == (2, "")
    assert "any more" in err and instead in err


@pytest.mark.parametrize("path", ALL_COMMANDS)
def test_every_command_and_option_has_help(path: tuple[str, ...], findling: Findling) -> None:
    command = ALL_COMMANDS[path]
    assert command.help
    assert len(command.get_short_help_str(limit=200)) <= 70
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.rstrip("]").endswith(".") or "[setting" in parameter.help
    code, out, err = findling(*path, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: {' '.join(('findling', *path))}")


def test_no_arguments_show_the_help(findling: Findling) -> None:
    code, out, err = findling()
    assert (code, err) == (0, "")
    assert "findling search index" in out
    assert all(f"  {name} " in out for name in COMMANDS)


def test_the_version(findling: Findling) -> None:
    code, out, _ = findling("--version")
    assert code == 0
    assert out.startswith("findling ")


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (["--limt", "5", "q"], "--limit", "findling search --help"),
        (["q", "--frobnicate"], "--frobnicate", "findling search --help"),
        (["-foo bar"], "-f", "goes behind --"),
        (["index", "--dryrun"], "--dry-run", "findling index --help"),
        (["config", "shwo"], "shwo", "findling config --help"),
        (["config"], "Missing command", "findling config --help"),
        (["config", "set", "search.limit"], "Missing argument", "findling config set --help"),
        (["completion", "tcsh"], "tcsh", "findling completion --help"),
        (["--color", "pink", "q"], "pink", "findling search --help"),
        (["-k", "many", "q"], "flag --limit: search.limit must be a whole number", "findling config show"),
        (["-C", "-1", "q"], "search.context", ""),
        (["--min-score", "high", "q"], "--min-score", "findling config show"),
        (["-e", ".ts", "-E", ".ts", "q"], "-e and -E both name .ts", "one of them"),
        (["-x", "(", "q"], "no regular expression", "backslash"),
        (["q", "nowhere"], "there is no file or folder nowhere", '"q nowhere"'),
        (["search"], "there is no query", 'findling "words'),
        (["--json", "-l", "q"], "--files and --json contradict", "one of them"),
        (["forget"], "--everything", "findling forget --help"),
        (["forget", "--everything", "x"], "--everything", "findling forget --help"),
        (["index", "nowhere"], "nowhere", "exists"),
        (["--workspace", "../x", "q"], "workspace.name must be letters", ""),
    ],
)
def test_mistakes_are_told(project: Path, findling: Findling, args: list[str], message: str, hint: str) -> None:
    code, out, err = findling(*args)
    assert (code, out) == (2, "")
    first, _, second = err.partition("\n")
    assert first.startswith("findling: ")
    assert message in first
    assert second.startswith("  try: ")
    assert hint in second
    assert "Traceback" not in err


def test_a_foreign_variable_stops_every_command(
    project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDLING_LIMIT", "3")
    code, out, err = findling("q")
    assert (code, out) == (2, "")
    assert "FINDLING_LIMIT" in err


def test_config_show_is_toml_with_origins(project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".findling.toml").write_text("[index]\nexclude = ['*.log']\n")
    monkeypatch.setenv("FINDLING_SEARCH_LIMIT", "3")
    code, out, err = findling("config", "show", "--origin")
    assert (code, err) == (0, "")
    values = tomllib.loads(out)
    assert {f"{a}.{b}" for a, table in values.items() for b in table} == {setting.name for setting in SETTINGS}
    assert "search.limit = 3  # env FINDLING_SEARCH_LIMIT\n" in out
    assert f'index.exclude = ["*.log"]  # project file {(project / ".findling.toml").resolve()}\n' in out
    assert "index.workers = 0  # default\n" in out
    assert "#" not in findling("config", "show")[1]
    document = json.loads(findling("config", "show", "--json")[1])
    assert document["schema"] == 6
    assert document["settings"]["search.limit"] == {"value": 3, "origin": "env FINDLING_SEARCH_LIMIT"}


def test_config_set_and_unset(project: Path, findling: Findling) -> None:
    own, shared = Path(os.environ["FINDLING_CONFIG"]), project / ".findling.toml"
    assert findling("config", "set", "index.max_file_size", "2MB")[:2] == (0, "")
    assert own.read_text() == "[index]\nmax_file_size = 2097152\n"
    assert "index.max_file_size = 2097152\n" in findling("config", "show")[1]

    assert findling("config", "set", "--project", "search.limit", "4")[0] == 0
    assert shared.read_text() == "[search]\nlimit = 4\n"
    code, _, err = findling("config", "set", "search.limit", "5")
    assert code == 0
    assert f"search.limit still comes from project file {shared.resolve()}" in err

    assert findling("config", "remove", "--project", "search.limit")[0] == 0
    assert findling("config", "remove", "--project", "search.limit")[0] == 1
    assert "search.limit = 5\n" in findling("config", "show")[1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["set", "search.limt", "3"], "no setting is called search.limt"),
        (["remove", "search.limt"], "no setting is called search.limt"),
        (["set", "search.snippet_lines", "-1"], "at least 0"),
        (["set", "--project", "store.home", "/x"], "a project may not set store.home"),
    ],
)
def test_config_refuses_what_would_not_load(project: Path, findling: Findling, args: list[str], message: str) -> None:
    code, _, err = findling("config", *args)
    assert code == 2
    assert message in err
    assert not Path(os.environ["FINDLING_CONFIG"]).exists()
    assert not (project / ".findling.toml").exists()


def test_config_path(project: Path, findling: Findling) -> None:
    own = os.environ["FINDLING_CONFIG"]
    assert findling("config", "show", "--path") == (0, f"user\t{own} (missing)\n", "")
    findling("config", "set", "search.limit", "5")
    findling("config", "set", "--project", "search.limit", "5")
    assert (
        findling("config", "show", "--path")[1] == f"user\t{own}\nproject\t{(project / '.findling.toml').resolve()}\n"
    )


@pytest.mark.parametrize("word", ["include", "exclude"])
def test_lists_grow_and_shrink(project: Path, findling: Findling, word: str) -> None:
    own, key = Path(os.environ["FINDLING_CONFIG"]), f"index.{word}"
    own.write_text(f"[index]\n{word} = [\n  '*.log',  # noise\n]\n")
    assert findling("config", "add", key, "build/", "*.log", "build/")[0] == 0
    assert findling("config", "show", key) == (0, f'{key} = ["*.log", "build/"]\n', "")
    assert own.read_text() == f"[index]\n{word} = [\n  '*.log',  # noise\n  \"build/\",\n]\n"
    assert findling("config", "remove", key, "build/")[0] == 0
    code, _, err = findling("config", "remove", key, "build/")
    assert code == 2
    assert f"{key} does not hold build/" in err
    assert findling("config", "add", "--project", key, "x,y")[0] == 0
    assert findling("config", "show", key) == (0, f'{key} = ["x,y"]\n', "")
    assert findling("config", "add", key, " ")[0] == 2
    assert findling("config", "add", "search.limit", "3")[0] == 2


def test_a_setting_of_an_earlier_version_is_removed_from_a_file(project: Path, findling: Findling) -> None:
    own = Path(os.environ["FINDLING_CONFIG"])
    own.write_text("[search]\nrrf_k = 20\nlimit = 3\n")
    code, _, err = findling("login")
    assert code == 2
    assert "search.rrf_k is no setting any more" in err and "findling config remove search.rrf_k" in err
    assert findling("config", "remove", "search.rrf_k")[0] == 0
    assert own.read_text() == "[search]\nlimit = 3\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(findling: Findling, shell: str) -> None:
    code, out, _ = findling("completion", shell)
    assert code == 0
    assert f"_FINDLING_COMPLETE={shell}_complete" in out


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("findling st", "status"),
        ("findling config s", "show"),
        ("findling login --exp", "--explain"),
        ("findling -k 5 login --no", "--no-index"),
        ("findling search --color al", "always"),
    ],
)
def test_completion_knows_commands_and_options(line: str, wanted: str) -> None:
    words = line.split(" ")
    environ = {
        **os.environ,
        "_FINDLING_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = run_process([sys.executable, "-c", MAIN], env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"plain,{wanted}" in done.stdout.splitlines()


MAIN = "import sys; from findling.faces.cli.main import run; sys.exit(run())"


def test_a_closed_pipe_is_no_error(project: Path) -> None:
    with BoundedProcess(
        [sys.executable, "-c", MAIN, "config", "show"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_fault_in_findling_is_no_empty_result(
    project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("the fault")

    monkeypatch.setattr("findling.faces.cli.commands.admin.config.load_settings", fail)
    code, out, err = findling("config", "show")
    assert (code, out) == (2, "")
    assert "ZeroDivisionError: the fault" in err
    assert "this is a fault in findling" in err
