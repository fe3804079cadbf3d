"""`findling version` and `findling completion`."""

from __future__ import annotations

import click

from findling import __version__
from findling.faces.cli.terminal import write

__all__ = ["completion", "print_version", "version"]


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

    from findling.faces.cli.main import cli

    maker = get_completion_class(shell)
    assert maker is not None, "click knows every shell of the choice above"
    write(maker(cli, {}, "findling", "_FINDLING_COMPLETE").source() + "\n")
    return 0


@click.command()
def version() -> int:
    """Show the version."""
    print_version()
    return 0


def print_version() -> None:
    """Print name and version."""
    write(f"findling {__version__}\n")
