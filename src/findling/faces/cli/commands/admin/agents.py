"""`findling agents`: entries and instructions for coding agents, and what answers have saved them."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import FindlingError, UsageError
from findling.domain.values import closest_name, plain
from findling.faces.cli.commands.admin.mcp import own_command, require_extra, skill_text
from findling.faces.cli.output.json_output import write_json, write_table
from findling.faces.cli.output.terminal import note, show_controls_in_lines, write
from findling.faces.cli.request.options import command_group, json_option, resolve
from findling.service.agents.agent_table import AGENTS, SCOPES, seen_here

if TYPE_CHECKING:
    from findling.service.agents.installing import Drafts, FileChange


@command_group(uninstall="findling agents install --remove", savings="findling agents list --savings")
def agents() -> None:
    """Have coding agents search with findling.

    \b
      findling agents install --dry-run           what would change, for every agent on this machine
      findling agents install codex cursor        for these two, in all projects
      findling agents install --scope project     in the settings of this project
      findling agents install --remove            remove what it wrote

    An agent gets an entry for `findling mcp` and a few lines of instructions. Everything else in its files stays, byte
    for byte. docs/agents.md lists the agents and their files.
    """


@agents.command("install")
@click.argument("names", nargs=-1, metavar="[AGENT]...")
@click.option("--scope", type=click.Choice(SCOPES), default="user", show_default=True, help="Whose settings.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and write nothing.")
@click.option("--force", is_flag=True, help="Replace an entry of the same name that starts something else.")
@click.option("--no-instructions", is_flag=True, help="Write the entry alone.")
@click.option("--remove", is_flag=True, help="Remove what was written; an entry of somebody else stays.")
def _install(
    names: tuple[str, ...], scope: str, dry_run: bool, force: bool, no_instructions: bool, remove: bool
) -> int:
    """Write the entry and the instructions of agents.

    Without a name, they are those of the agents that are found on this machine; with --remove, of all of them. The
    project is the current folder.
    """
    if remove:
        return _uninstall(names, scope, dry_run=dry_run)
    from findling.service.agents.installing import plan_install
    from findling.service.workspace.workspace import is_vast

    require_extra()  # an entry for a server that cannot start helps nobody
    root = Path.cwd()
    guide = "" if no_instructions else skill_text("GUIDE.md")
    own = own_command(sys.argv[0])

    def plan(name: str, drafts: Drafts) -> list[FileChange]:
        folder = str(root) if scope == "project" else AGENTS[name].folder
        if folder is None and is_vast(root):
            message = f"{AGENTS[name].title} starts servers in no project, so its entry must name one"
            raise UsageError(message, hint="cd FOLDER, and install it there")
        command = [*own, "mcp", *([str(root) if folder is None else folder] if folder != "" else [])]
        return plan_install(name, scope, root, command, guide, drafts, force=force)

    chosen = _chosen(names, scope)
    if not chosen:
        note("no agent was found on this machine", f"findling agents install {next(iter(AGENTS))}, or another name")
        return 1
    return _carry_out(chosen, plan, root, dry_run=dry_run)


def _uninstall(names: tuple[str, ...], scope: str, *, dry_run: bool) -> int:
    """Remove what install wrote for agents: those named, or all of them."""
    from findling.service.agents.installing import plan_uninstall

    root = Path.cwd()
    chosen = _chosen(names, scope) if names else [name for name, agent in AGENTS.items() if agent.files(scope)]
    others = [name for name in AGENTS if name not in chosen]
    return _carry_out(
        chosen, lambda name, drafts: plan_uninstall(name, scope, root, drafts, others), root, dry_run=dry_run
    )


@agents.command("list")
@click.option("--savings", is_flag=True, help="The tokens of answers to agents against those of the files they name.")
@json_option
def _list(savings: bool, as_json: bool) -> int:
    """List the agents: which are here, and which have our entry.

    An entry is for all projects of the user, or for this project.
    """
    if savings:
        return _savings(as_json)
    from findling.service.agents.installing import agent_state

    root = Path.cwd()
    rows: list[dict[str, Any]] = []
    for name, agent in AGENTS.items():
        states = {scope: agent_state(name, scope, root) for scope in SCOPES}
        told = {
            scope: {**plain(state), "instructions": str(state.instructions or "")}
            for scope, state in states.items()
            if state is not None
        }
        rows.append({"name": name, "title": agent.title, "found": seen_here(agent), **told})
    if as_json:
        write_json(agents=rows)
        return 0
    table = [("agent", "", "found", "user", "project", "settings of the user")]
    for row in rows:
        entries = [row[scope]["entry"] if scope in row else "-" for scope in SCOPES]
        table.append((row["name"], row["title"], "yes" if row["found"] else "no", *entries, row["user"]["settings"]))
    write_table(table)
    return 0


def _savings(as_json: bool) -> int:
    from findling.service.agents.savings import read_savings
    from findling.service.workspace.workspace import home_folder

    settings = resolve(".")
    found = read_savings(home_folder(settings["store.home"]))
    if as_json:
        keys = ("answers", "tokens", "file_tokens")
        sums = [*found.tools, found.total]
        rows = {row.tool: {key: getattr(row, key) for key in keys} for row in sums}
        write_json(since=found.since, **rows.pop(""), tools=rows)
        return 0 if found.tools else 1
    if not found.tools:
        is_on = settings["mcp.savings"]
        note("no answer was noted yet", "findling agents install" if is_on else "findling config set mcp.savings true")
        return 1
    table = [("tool", "answers", "tokens", "of the files", "share")]
    for row in (*found.tools, found.total):
        share = f"{row.tokens / row.file_tokens:.1%}" if row.file_tokens else "-"
        table.append((row.tool or "all", f"{row.answers:,}", f"{row.tokens:,}", f"{row.file_tokens:,}", share))
    write_table(table)
    note(f"since {time.strftime('%Y-%m-%d %H:%M', time.localtime(found.since))}; four letters count as one token")
    return 0


def _carry_out(
    chosen: Iterable[str], plan: Callable[[str, Drafts], list[FileChange]], root: Path, *, dry_run: bool
) -> int:
    """Plan and write file after file. An agent whose files cannot be edited keeps them, and the others go on."""
    from findling.service.agents.installing import FileChange, carry_out, installing_alone
    from findling.service.workspace.workspace import home_folder

    code, done = 0, list[FileChange]()
    drafts: Drafts = {}
    home = home_folder(resolve(".")["store.home"])
    with nullcontext() if dry_run else installing_alone(home):
        for name in chosen:
            try:
                for change in plan(name, drafts):
                    if change.is_one and not dry_run:
                        carry_out(change, root)
                    done.append(change)
            except FindlingError as error:
                note(f"{AGENTS[name].title}: {error.message}", error.hint)
                code = 2
    if dry_run:
        write("".join(_diff(change) for change in done if change.is_one))
        if not any(change.is_one for change in done):
            note("nothing would change")
        return code
    told = [change for change in done if change.is_one or change.outcome != "absent"]
    if told:
        write_table((change.agent, change.kind, change.outcome, str(change.path)) for change in told)
    return code


def _diff(change: FileChange) -> str:
    """The change of a file as a unified diff."""
    texts = [(data or b"").decode("utf-8", "replace") for data in (change.before, change.after)]
    names = [str(change.path) if data is not None else "/dev/null" for data in (change.before, change.after)]
    before, after = (text.splitlines(keepends=True) for text in texts)
    lines = difflib.unified_diff(before, after, names[0], names[1])
    shown = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return show_controls_in_lines(shown)


def _chosen(names: Iterable[str], scope: str) -> list[str]:
    """The agents that are meant. Raises UsageError for a name that no agent has."""
    unknown = [name for name in names if name not in AGENTS]
    if unknown:
        raise UsageError(f"there is no agent {unknown[0]}", hint=closest_name(unknown[0], AGENTS))
    found = [name for name, agent in AGENTS.items() if agent.files(scope) and seen_here(agent)]
    return list(dict.fromkeys(names)) or found
