"""The command `findling`: it finds the command that is meant, and gives its outcome to the shell.

Exit codes are those of grep: 0 something was found or done, 1 nothing was found, 2 an error; 130 after Ctrl-C.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from findling import __version__
from findling.domain.errors import FindlingError, UsageError
from findling.faces.cli.output.terminal import hush, note, prepare_streams, write
from findling.faces.cli.request.command_table import COMMANDS, FREQUENT, GONE, GROUPS, MOVED
from findling.faces.cli.request.options import is_whole, takes_all

__all__ = ["COMMANDS", "GROUPS", "cli", "completion", "route", "run"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script that completes commands and options in a shell.

    \b
      bash:  findling completion bash >> ~/.bashrc
      zsh:   findling completion zsh >> ~/.zshrc
      fish:  findling completion fish > ~/.config/fish/completions/findling.fish
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None, "click knows every shell of the choice above"
    write(maker(cli, {}, "findling", "_FINDLING_COMPLETE").source() + "\n")
    return 0


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        prepare_streams()
        given = list(sys.argv[1:] if args is None else args)
        if "_FINDLING_COMPLETE" in os.environ:
            cli.main(given, prog_name="findling")
        try:
            # Not cli.main(): it turns a closed pipe into exit code 1.
            with cli.make_context("findling", given) as ctx:
                code = int(cli.invoke(ctx) or 0)
        except click.exceptions.Exit as done:
            code = done.exit_code
        sys.stdout.flush()
        return code
    except FindlingError as error:
        note(error.message, _MORE_MEMORY if _is_short_of_memory(error) else error.hint)
    except click.ClickException as error:
        note(*_usage_error(error))
    except (click.Abort, KeyboardInterrupt, EOFError):
        if sys.stderr.isatty():
            click.echo(err=True)  # behind the ^C that the terminal shows
        note("interrupted")
        return 130
    except BrokenPipeError:
        hush(sys.stdout)
        return 0
    except OSError as error:
        note(*_refusal(error))
    except Exception as error:
        if _is_short_of_memory(error):
            note("there is too little memory for this command", _MORE_MEMORY)
            return 2
        import traceback

        traceback.print_exc()
        note("this is a fault in findling", "report it together with the lines above")
    return 2


def _refusal(error: OSError) -> tuple[str, str]:
    """The message and the next step for an error of the system."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the current folder is gone", "change to a folder that exists, then ask again"
    hint = _MORE_MEMORY if _is_short_of_memory(error) else "findling doctor"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error), hint


_MORE_MEMORY = "allow more of it (ulimit -v); a search with --mode keyword needs the least"

_NO_MEMORY = ("failed to map segment", "Cannot allocate memory", "Failed to spawn")
"""Parts of messages by which loaders and libraries report that memory was refused."""


def _is_short_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that the system has refused memory."""
    while error is not None:
        if isinstance(error, MemoryError) or any(part in str(error) for part in _NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def route(args: Sequence[str]) -> list[str]:
    """The arguments with the command first: `search` unless another one is named.

    A leading `--workspace NAME` or `--store URL` moves behind the command.
    """
    size = 0
    if args and args[0] in ("--workspace", "--store"):
        size = 2
    elif args and args[0].startswith(("--workspace=", "--store=")):
        size = 1
    lead, rest = list(args[:size]), list(args[size:])
    if rest and (rest[0] in COMMANDS or rest[0] in MOVED):
        return [rest[0], *lead, *rest[1:]]
    return rest if not lead and (not rest or rest[0] in ("-h", "--help", "--version")) else ["search", *lead, *rest]


class _LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write them group by group."""
        whole = is_whole(ctx)
        for title, names in GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names if whole or name in FREQUENT]
            with formatter.section(title):
                formatter.write_dl([(name, found.get_short_help_str(80)) for name, found in commands if found])
        if not whole:
            formatter.write(f"\n{len(COMMANDS) - len(FREQUENT)} more commands: findling --help --all\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = route(args)
        args = takes_all(ctx, args) if args and args[0].startswith("-") else args
        if args and args[0] in MOVED and not ctx.resilient_parsing:
            hint = f"{MOVED[args[0]]}; to search for the word: findling search {args[0]}"
            raise UsageError(f"there is no findling {args[0]} any more", hint=hint)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"findling.faces.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        write(f"findling {__version__}\n")
        ctx.exit()


@click.command(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    options_metavar="",
    subcommand_metavar="QUERY [PATH] | COMMAND ...",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Search over what you already have; every result says why it is there.

    \b
      findling "session token"            search the current folder
      findling "session token" docs       search another folder or file
      findling -e py -k 5 "parse url"     five hits, Python files only
      findling index --dry-run            what would be indexed, and what not

    The first search of a folder indexes it; every later one indexes what has changed. A first word that is no
    command is a query, and takes every option of `findling search`. To search for a word that is the name of a
    command, write `findling search index`.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _usage_error(error: click.ClickException) -> tuple[str, str]:
    """The message and the next step for a command line that cannot be; an option of earlier versions names its heir."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None:
        return error.format_message(), ""
    hint = f"{ctx.command_path} --help"
    if isinstance(error, click.NoSuchOption):
        command = ctx.command_path.removeprefix("findling ")
        if instead := GONE.get(command, {}).get(error.option_name):
            return f"there is no {error.option_name} any more", instead
        hint += "; a query that starts with a dash goes behind --" if command == "search" else ""
    return error.format_message(), hint
