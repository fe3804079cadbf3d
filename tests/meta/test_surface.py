"""The size of the surface: the number of settings, commands and options stays small."""

from __future__ import annotations

from collections.abc import Iterator

import click

from findling.faces.cli.main import cli
from findling.service.settings.settings import SETTINGS

MOST_SETTINGS, MOST_COMMANDS, MOST_OPTIONS = 90, 74, 300


def walk(command: click.Command) -> Iterator[click.Command]:
    """A command and all below it."""
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found)


def test_settings_commands_and_options_are_few() -> None:
    commands = list(walk(cli))
    leaves = [command for command in commands if not isinstance(command, click.Group)]
    options = [each for command in commands for each in command.params if isinstance(each, click.Option)]
    assert len(SETTINGS) <= MOST_SETTINGS
    assert len(leaves) <= MOST_COMMANDS
    assert len(options) <= MOST_OPTIONS
