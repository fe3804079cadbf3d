"""The documentation is true of the code: nothing is missing, nothing is made up, nothing leads nowhere."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import findling
from findling.domain.errors import FindlingError
from findling.faces.cli.main import cli, route
from findling.faces.cli.request.command_table import GONE
from findling.service.export.evaluating import GOLDEN_SET
from findling.service.settings.setting_list import KNOB_ROWS, REMOVED
from findling.service.settings.settings import ENVIRONMENT, SETTINGS, Settings, read_profiles
from findling.service.settings.type_plugins import read_types
from findling.sources.files.discovery import REASONS
from tests.processes import run_process

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
REFERENCE = DOCS / "reference"
WRITTEN = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(DOCS.glob("*.md"))
PAGES = [*WRITTEN, *sorted(REFERENCE.glob("*.md"))]
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
"""History as it was decided: its links hold, its commands and settings may be those of its day."""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def named(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.M | re.S)


def sections(page: Path) -> dict[str, str]:
    """Heading → what stands below it."""
    _, *parts = re.split(r"^#+ (.+)\n", read(page), flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


# The reference is that of the code


def test_the_generated_reference_is_up_to_date() -> None:
    command = [sys.executable, str(DOCS / "generate.py"), "--check"]
    done = run_process(command)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun `make docs` and commit the result"


def test_the_generator_tells_and_mends_a_page_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of its own, because the real pages must stay as they are."""
    monkeypatch.syspath_prepend(DOCS)
    generator = importlib.import_module("generate")
    folder = tmp_path / "reference"
    assert generator.FOLDER == REFERENCE
    monkeypatch.setattr(generator, "FOLDER", folder)
    assert generator.main(["--check"]) == 1
    assert not folder.exists()
    assert generator.main([]) == 0
    page = folder / "errors.md"
    page.write_text(read(page) + "\nand more\n", encoding="utf-8")
    capsys.readouterr()
    assert generator.main(["--check"]) == 1
    output = capsys.readouterr().out
    assert [path.name for path in folder.iterdir() if path.name in output] == ["errors.md"]
    assert {path.name for path in folder.iterdir()} == {path.name for path in REFERENCE.iterdir()}


def all_commands(command: click.Command = cli, name: str = "findling") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from all_commands(found, f"{name} {inner}")


@pytest.mark.parametrize(("name", "command"), [*all_commands()], ids=[name for name, _ in all_commands()])
def test_every_command_and_option_is_documented(name: str, command: click.Command) -> None:
    section = sections(REFERENCE / "commands.md")[name]
    for option in command.params:
        if isinstance(option, click.Option):
            missing = [spelling for spelling in option.opts if not re.search(rf"`{spelling}[` ]", section)]
            assert not missing
            assert option.help, f"{option.opts} has no help"
            assert option.help.replace("|", r"\|") in section


def test_every_setting_and_variable_is_documented() -> None:
    page = read(REFERENCE / "settings.md")
    for setting in SETTINGS:
        row = next(row for row in page.splitlines() if row.startswith(f"| `{setting.name}` |"))
        assert f"`{setting.variable}`" in row
        assert setting.help in row
        assert ("User only" in row) == setting.user_only
    for variable in ENVIRONMENT:
        assert f"| `{variable.name}` |" in page


def test_every_variable_that_the_code_reads_is_documented() -> None:
    page = read(REFERENCE / "settings.md")
    pattern = re.compile(r"""environ(?:\.get\(|\[)["']([A-Z][A-Z_]+)["']""")
    used = {name for path in (REPOSITORY / "src").rglob("*.py") for name in pattern.findall(read(path))}
    assert "NO_COLOR" in used
    assert [name for name in sorted(used) if f"| `{name}` |" not in page] == []


def all_errors(kind: type[FindlingError] = FindlingError) -> Iterator[type[FindlingError]]:
    yield kind
    for inner in kind.__subclasses__():
        if inner.__module__ == kind.__module__:  # others are kinds that only their own module tells apart
            yield from all_errors(inner)


def test_every_error_is_documented() -> None:
    page = read(REFERENCE / "errors.md")
    codes = [error.code for error in all_errors()]
    assert len(set(codes)) == len(codes) > 10
    for error in all_errors():
        assert f"| `{error.code}` | `{error.__name__}` |" in page


def test_every_skip_reason_is_documented() -> None:
    page = read(REFERENCE / "skip-reasons.md")
    for reason, meaning in REASONS.items():
        assert f"| `{reason}` | {meaning} |" in page


def test_every_public_name_is_documented() -> None:
    found = sections(REFERENCE / "library.md")
    assert [name for name in findling.__all__ if name not in found] == []
    members = [name for name in vars(findling.Engine) if not name.startswith("_")]
    assert [name for name in members if not re.search(rf"- `{name}\b", found["Engine"])] == []


# The pages are true


def command_lines(page: Path) -> Iterator[str]:
    """Every call of findling that a page shows, in blocks for a shell and inside sentences."""
    for block in blocks(page, "sh"):
        yield from (line for line in block.splitlines() if re.search(r"(^|[|;&]\s*)(\w+=\S*\s+)*findling\b", line))
    for block in blocks(page, "text"):
        yield from (line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ findling"))
    prose = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)
    yield from re.findall(r"`(findling [^`]+)`", prose)


def arguments_of(line: str) -> list[str]:
    """The words behind `findling`, up to a pipe, a redirection or the end of the command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words = list(lexer)
    words = words[words.index("findling") + 1 :]
    ends = [position for position, word in enumerate(words) if set(word) <= set("|&;<>")]
    return words[: ends[0]] if ends else words


def parse(args: list[str]) -> click.Context | None:
    """Let click read the arguments, command by command, and run nothing; `None` for a bare name of a group."""
    if args == ["--version"]:
        return None
    name, *rest = route(args)
    command = cli.get_command(click.Context(cli), name)
    while isinstance(command, click.Group):
        if not rest:
            return None
        name, *rest = rest
        command = command.get_command(click.Context(command), name)
    assert command is not None, f"there is no command {name}"
    # A command keeps the help option of its first context, and other tests in this process show it.
    return command.make_context(name, rest, parent=click.Context(cli, **cli.context_settings))


SHOWN = [(page, line) for page in WRITTEN if page.name != "CHANGELOG.md" for line in command_lines(page)]
"""The history of changes shows commands as they were."""


def test_command_lines_are_found() -> None:
    assert len({line for page, line in SHOWN if page.name == "README.md"}) >= 6
    assert len(SHOWN) > 40


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=[f"{named(page)}: {line}" for page, line in SHOWN])
def test_a_command_line_parses(page: Path, line: str) -> None:
    context = parse(arguments_of(line))
    if context is not None and context.info_name == "search":
        assert len(context.params["words"]) <= 2, "a query of several words needs quotes"


GOLDEN = [
    (page, line)
    for page in sorted((GOLDEN_SET / "files").rglob("*.md"))
    for line in command_lines(page)
    if not re.search(r"\[|COMMAND", line)
]
"""Calls in the golden set; those with brackets show a form."""


@pytest.mark.parametrize(("page", "line"), GOLDEN, ids=[f"{page.stem}: {line}" for page, line in GOLDEN])
def test_the_golden_set_shows_commands_that_parse_or_name_their_heirs(page: Path, line: str) -> None:
    try:
        parse(arguments_of(line))
    except click.NoSuchOption as gone:  # its files stay as they are, because figures compare only on the same ones
        assert gone.ctx is not None
        command = gone.ctx.command_path.split()[-1]
        assert any(gone.option_name in heirs for path, heirs in GONE.items() if path.split()[-1] == command)


@pytest.mark.parametrize("line", ["findling --nonsense x", "findling config nonsense", "findling index a b c"])
def test_a_wrong_command_line_does_not_parse(line: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        parse(arguments_of(line))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=named)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(linked), f"{target} has no such heading"


def test_every_page_is_linked_from_the_readme() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+)\)", read(REPOSITORY / "README.md")))
    assert {named(page) for page in PAGES if DOCS in page.parents} == linked - {"docs/decisions/README.md"}


def test_every_decision_is_listed_and_has_its_parts() -> None:
    pages = {page.name: page for page in DECISIONS}
    index = pages.pop("README.md")
    numbers = [name[:4] for name in pages]
    assert len(set(numbers)) == len(numbers) > 10
    assert set(re.findall(r"\]\((\d{4}-[^)]+)\)", read(index))) == pages.keys(), "list it in docs/decisions/README.md"
    for name, page in pages.items():
        assert read(page).startswith(f"# {name[:4]} ")
        missing = [
            part
            for part in ("Context", "Decision", "Figures")
            if not re.search(rf"^(\*\*{part}|#+ {part})", read(page), re.M)
        ]
        assert not missing, f"{name} lacks {missing}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_in_the_docs_uses_what_there_is(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, named(page), "exec")
        for name in set(re.findall(r"findling\.(\w+)", block)) - set(findling.__all__):
            assert find_spec(f"findling.{name}"), f"there is no findling.{name}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_toml_in_the_docs_holds_settings(page: Path) -> None:
    for block in blocks(page, "toml"):
        tables = tomllib.loads(block)
        tables.pop("project", None)  # a package of somebody else
        if profiles := tables.pop("profiles", None):
            read_profiles(profiles, Settings(), named(page))
        if types := tables.pop("types", None):
            read_types(types, named(page))
        values = {f"{section}.{key}": value for section, table in tables.items() for key, value in table.items()}
        Settings().override(values, named(page))


def test_settings_that_the_pages_name_exist() -> None:
    sections_of_settings = {setting.name.partition(".")[0] for setting in SETTINGS}
    names = {setting.name for setting in SETTINGS}
    pattern = re.compile(rf"`((?:{'|'.join(sections_of_settings)})\.[a-z_0-9]+)")
    history = {page for page in WRITTEN if page.name == "CHANGELOG.md"}
    mentioned = {name for page in WRITTEN for name in pattern.findall(read(page)) if page not in history}
    assert {name for page in history for name in pattern.findall(read(page))} - {
        "index.sqlite"
    } <= names | REMOVED.keys()
    wildcards = {name for name in mentioned if name.endswith("_")}
    assert mentioned - wildcards - {"index.sqlite"} <= names | KNOB_ROWS.keys()
    assert all(any(name.startswith(start) for name in names) for start in wildcards)


def test_the_run_in_the_readme_shows_lines_that_are_there() -> None:
    """Scores and line numbers may move; a line that nobody can find would be an invention."""
    (run,) = blocks(REPOSITORY / "README.md", "text")
    shown = re.findall(r"^ +\d+ │ ?(.*)$", run, re.M)
    files = [read(REPOSITORY / path).splitlines() for path in re.findall(r"^(docs/\S+):\d+ ", run, re.M)]
    assert shown
    assert [line for line in shown if not any(line in lines for lines in files)] == []


# Parts that belong together agree


def test_versions_agree() -> None:
    project = tomllib.loads(read(REPOSITORY / "pyproject.toml"))["project"]
    newest = re.search(r"^## \[(\d[^\]]*)\]", read(REPOSITORY / "CHANGELOG.md"), re.M)
    assert newest is not None
    assert project["version"] == findling.__version__ == newest[1]


def test_the_readme_shows_both_commands_and_ci_runs_the_second() -> None:
    shell = "".join(blocks(REPOSITORY / "README.md", "sh"))
    assert re.search(r"^make demo\b", shell, re.M)
    assert re.search(r"^make test\b", shell, re.M)
    script = read(REPOSITORY / ".ci" / "run").splitlines()
    assert [line for line in script if "make" in line] == ["exec make test"]
    targets = re.findall(r"^([a-z]+):", read(REPOSITORY / "Makefile"), re.M)
    assert {"demo", "test"} <= set(targets)
