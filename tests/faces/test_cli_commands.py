"""The command line as far as it goes without an index: routing, help, errors, settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from findling.faces.cli.main import COMMANDS, GROUPS, cli, route
from findling.faces.cli.request.command_table import FREQUENT, GONE
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
        "remember memory recall status ls workspaces permissions export import compact snapshot glossary watch "
        "serve mcp token models config forget doctor eval completion"
    )
    assert set(COMMANDS) == set(promised.split())
    subcommands = {" ".join(path) for path in ALL_COMMANDS if len(path) == 2}
    groups = {
        "agents": "install list",
        "chats": "import list delete",
        "config": "show set add remove",
        "glossary": "add list set import",
        "memory": "history review undo",
        "models": "list pull add use",
        "permissions": "list share check",
        "snapshot": "create list restore drop",
        "token": "create revoke list",
        "watch": "add run",
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
        (("glossary", "pending"), "findling glossary list pending"),
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
    assert {name for name in COMMANDS if f"\n  {name} " in out} == FREQUENT and len(FREQUENT) == 12
    assert "findling --help --all" in out
    whole = findling("--help", "--all")[1]
    assert all(f"\n  {name} " in whole for name in COMMANDS)


def test_the_help_of_a_search_lists_ten_options_or_all(findling: Findling) -> None:
    brief, whole = findling("search", "--help")[1], findling("search", "--help", "--all")[1]
    command = cli.get_command(click.Context(cli), "search")
    assert command is not None
    flags = [each.opts[-1] for each in command.params if isinstance(each, click.Option)]
    listed = [flag for flag in flags if re.search(rf"^  (-\w, )?{flag} ", brief, re.M)]
    assert len(listed) == 10 and f"{len(flags) - 10} more options: findling search --help --all" in brief
    assert all(f" {flag} " in whole for flag in flags)
    assert findling("login", "--help")[1] == brief, "a query takes the same options"


def test_every_option_of_an_earlier_version_is_gone_and_names_its_heir(findling: Findling) -> None:
    for name, options in GONE.items():
        command: click.Command | None = cli
        for word in name.split():
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None
        there = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        assert not there & options.keys()
        for option, instead in options.items():
            code, out, err = findling(*name.split(), option)
            assert (code, out, err) == (2, "", f"findling: there is no {option} any more\n  try: {instead}\n")


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
        (["--set", "output.color=pink", "q"], "pink", "findling config show"),
        (["-k", "many", "q"], "flag --limit: search.limit must be a whole number", "findling config show"),
        (["-C", "-1", "q"], "search.context", ""),
        (["--set", "search.min_score=high", "q"], "flag --set: search.min_score", "findling config show"),
        (["--min-score", ".3", "q"], "there is no --min-score any more", "--set search.min_score=VALUE"),
        (["search", "-E", "ts", "q"], "there is no -E any more", '"QUERY -ext:EXT"'),
        (["q", "nowhere"], "there is no file or folder nowhere", '"q nowhere"'),
        (["search"], "there is no query", 'findling "words'),
        (["--json", "-l", "q"], "--files and --json contradict", "one of them"),
        (["forget"], "--everything", "findling forget --help"),
        (["forget", "--everything", "x"], "of the current folder, and takes no path", "or findling forget x"),
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
    code, out, err = findling("config", "show")
    assert (code, err) == (0, "")
    values = tomllib.loads(out)
    assert {f"{a}.{b}" for a, table in values.items() for b in table} == {setting.name for setting in SETTINGS}
    assert "search.limit = 3  # env FINDLING_SEARCH_LIMIT\n" in out
    assert f'index.exclude = ["*.log"]  # project file {(project / ".findling.toml").resolve()}\n' in out
    assert "index.workers = 0  # default\n" in out
    document = json.loads(findling("config", "show", "--json")[1])
    assert document["schema"] == 6
    assert document["settings"]["search.limit"] == {"value": 3, "origin": "env FINDLING_SEARCH_LIMIT"}


def test_config_set_and_unset(project: Path, findling: Findling) -> None:
    own, shared = Path(os.environ["FINDLING_CONFIG"]), project / ".findling.toml"
    assert findling("config", "set", "index.max_file_size", "2MB")[:2] == (0, "")
    assert own.read_text() == "[index]\nmax_file_size = 2097152\n"
    assert "index.max_file_size = 2097152  # user file " in findling("config", "show")[1]

    assert findling("config", "set", "--project", "search.limit", "4")[0] == 0
    assert shared.read_text() == "[search]\nlimit = 4\n"
    code, _, err = findling("config", "set", "search.limit", "5")
    assert code == 0
    assert f"search.limit still comes from project file {shared.resolve()}" in err

    assert findling("config", "remove", "--project", "search.limit")[0] == 0
    assert findling("config", "remove", "--project", "search.limit")[0] == 1
    assert "search.limit = 5  # user file " in findling("config", "show")[1]


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
    assert findling("config", "show", key) == (0, f'{key} = ["*.log", "build/"]  # user file {own}\n', "")
    assert own.read_text() == f"[index]\n{word} = [\n  '*.log',  # noise\n  \"build/\",\n]\n"
    assert findling("config", "remove", key, "build/")[0] == 0
    code, _, err = findling("config", "remove", key, "build/")
    assert code == 2
    assert f"{key} does not hold build/" in err
    assert findling("config", "add", "--project", key, "x,y")[0] == 0
    assert findling("config", "show", key)[1].startswith(f'{key} = ["x,y"]  # project file ')
    assert findling("config", "add", key, " ")[0] == 2
    assert findling("config", "add", "search.limit", "3")[0] == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("search.limit = 'x'", "search.limit must be a whole number"),
        ("search.fusoin = 'rrf'", "no setting is called search.fusoin"),
        ("zzz.zzz = 1", "no setting is called zzz.zzz"),
    ],
)
def test_what_a_broken_setting_says_to_type_works_while_it_is_broken(
    project: Path, findling: Findling, text: str, problem: str
) -> None:
    name = text.partition(" ")[0]
    for file, way in ((Path(os.environ["FINDLING_CONFIG"]), ()), (project / ".findling.toml", ("--project",))):
        file.write_text(text)
        code, _, err = findling("login")
        assert code == 2 and problem in err and "config show" not in err
        assert findling("config", "remove", *way, name)[0] == 0
        assert findling("login")[0] == 0


def test_what_a_project_may_not_set_is_no_setting_to_set_where_a_profile_carries_it(
    project: Path, findling: Findling
) -> None:
    for text, value in (("search.relax = false", "VALUE"), ("search.overfetch = 9.0", "9.0")):
        (project / ".findling.toml").write_text(text)
        err, name = findling("login")[2], text.partition(" ")[0]
        assert f"for yourself: --set {name}={value}" in err and "config set" not in err


def test_a_setting_of_an_earlier_version_is_removed_from_a_file(project: Path, findling: Findling) -> None:
    own = Path(os.environ["FINDLING_CONFIG"])
    own.write_text("[search]\nrrf_k = 20\nlimit = 3\n[chunk]\nsize = 9\n")
    code, _, err = findling("login")
    assert code == 2
    assert "chunk.size is no setting any more" in err and "findling config remove chunk.size" in err
    assert findling("config", "remove", "chunk.size")[0] == 0
    code, out, err = findling("login", "--json")
    assert code == 0 and json.loads(out)["plan"]["plan"]["rrf_k"] == 20
    assert err.count("search.rrf_k is no setting any more; it still counts") == 1
    assert "findling config remove search.rrf_k; a profile carries it" in err
    assert findling("config", "remove", "search.rrf_k")[0] == 0
    assert own.read_text().startswith("[search]\nlimit = 3\n")
    assert findling("login")[2] == ""


def test_a_knob_is_set_for_one_search_and_no_setting(project: Path, findling: Findling) -> None:
    code, out, err = findling("login", "--set", "search.fusion=rrf", "--set", "search.diversity=0.7", "--json")
    plan = json.loads(out)["plan"]["plan"]
    assert (code, err, plan["fusion"], plan["diversity"]) == (0, "", "rrf", 0.7)
    code, _, err = findling("config", "set", "search.fusion", "rrf")
    assert code == 2 and "[profiles.NAME] with fusion = VALUE" in err


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
        ("findling search --mode key", "keyword"),
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
