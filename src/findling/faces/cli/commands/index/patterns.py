"""`findling include` and `findling exclude`: patterns that decide what is indexed."""

from __future__ import annotations

import click

from findling.domain.errors import InvalidValueError
from findling.faces.cli.commands.admin.config import change_setting, project_option, target_file
from findling.faces.cli.output.terminal import note, write
from findling.service.settings.setting_files import read_file
from findling.service.settings.settings import Settings, load_settings

__all__ = ["exclude", "include"]


def _make_group(word: str, meaning: str) -> click.Group:
    """The commands `add`, `remove` and `list` for the setting `index.<word>`."""
    key = f"index.{word}"

    @click.group(word, no_args_is_help=False, help=f"{meaning} Patterns are written as in .gitignore. [setting: {key}]")
    def group() -> None:
        pass

    @group.command(help="Add patterns to your own settings file.")
    @click.argument("patterns", nargs=-1, required=True)
    @project_option
    def add(patterns: tuple[str, ...], project: bool) -> int:
        before = _in_file(key, project)
        new = [pattern for pattern in dict.fromkeys(patterns) if pattern not in before]
        for pattern in set(patterns) - set(new):
            note(f"{pattern} is already there")
        if new:
            change_setting(key, _checked(key, (*before, *new)), project)
        return 0

    @group.command(help="Remove patterns from your own settings file.")
    @click.argument("patterns", nargs=-1, required=True)
    @project_option
    def remove(patterns: tuple[str, ...], project: bool) -> int:
        before = _in_file(key, project)
        for pattern in patterns:
            if pattern not in before:
                raise InvalidValueError(
                    f"{target_file(project)} does not {word} {pattern}", hint=f"findling {word} list"
                )
        change_setting(key, tuple(pattern for pattern in before if pattern not in patterns), project)
        return 0

    @group.command("list", help="Print the patterns that hold in the current folder.")
    def list_() -> int:
        settings = load_settings()
        write("".join(f"{pattern}\n" for pattern in settings[key]))
        return 0

    return group


def _in_file(key: str, project: bool) -> tuple[str, ...]:
    """The patterns of the file that is to be changed, and of no other."""
    file = target_file(project)
    section, _, name = key.partition(".")
    return _checked(key, read_file(file).get(section, {}).get(name, ())) if file.exists() else ()


def _checked(key: str, patterns: object) -> tuple[str, ...]:
    checked: tuple[str, ...] = Settings().override({key: patterns}, "patterns")[key]
    return checked


include = _make_group("include", "Index what a rule would leave out.")
exclude = _make_group("exclude", "Leave out what would be indexed.")
