"""`findling config`: which settings hold, where they come from, and how to change them."""

from __future__ import annotations

from pathlib import Path

import click

from findling.domain.errors import UntrustedSettingError, UsageError
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import json_option
from findling.service.settings.setting_files import (
    PROJECT_FILE,
    find_project_file,
    format_value,
    set_value,
    unset_value,
    user_file,
)
from findling.service.settings.setting_list import REMOVED
from findling.service.settings.settings import Settings, Value, get_setting, load_settings, parse_text, refuse_raised

__all__ = ["change_setting", "config", "project_option", "target_file"]

project_option = click.option(
    "--project", is_flag=True, help=f"Change the project's {PROJECT_FILE}, not your own file."
)


@click.group(no_args_is_help=False)
def config() -> None:
    """Show and change settings.

    A later one wins: default, user file, project file, environment, flag.
    """


@config.command("show")
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@json_option
def _show(origin: bool, as_json: bool) -> int:
    """Print every setting as it holds in the current folder, as TOML."""
    settings = load_settings()
    if as_json:
        from findling.faces.cli.output.json_output import dump, report_document

        values = {name: {"value": value, "origin": settings.origin(name)} for name, value in settings.items()}
        write(dump(report_document({"settings": values}), indent=2))
    else:
        write("".join(_row(settings, name, origin) for name in settings))
    return 0


@config.command("set", context_settings={"ignore_unknown_options": True})  # a value may begin with a dash
@click.argument("key")
@click.argument("value")
@project_option
def _set(key: str, value: str, project: bool) -> int:
    """Give the setting KEY a VALUE in your own settings file."""
    from findling.service.settings.options import check_together

    parsed = parse_text(get_setting(key), value, "config set")
    check_together(load_settings().override({key: parsed}, "config set"))
    change_setting(key, parsed, project)
    return _carry_out(key)


@config.command("unset")
@click.argument("key")
@project_option
def _unset(key: str, project: bool) -> int:
    """Take the setting KEY out of your own settings file."""
    if key not in REMOVED:
        get_setting(key)
    file = target_file(project)
    if not unset_value(file, key):
        note(f"{file} does not set {key}")
        return 1
    note(f"{file}: {key} is no longer set")
    return _carry_out(key)


@config.command("path")
def _path() -> int:
    """Print where the settings files are, or would be."""
    for kind, file in (("user", user_file()), ("project", find_project_file())):
        if file is not None:
            write(f"{kind}\t{file}{'' if file.exists() else ' (missing)'}\n")
    return 0


def change_setting(key: str, value: Value, project: bool) -> None:
    """Write one setting, and say so if something else still wins over it.

    Raises `UntrustedSettingError` for a project file and a setting that it may not set.
    """
    if project and get_setting(key).user_only:
        raise UntrustedSettingError(f"a project may not set {key}", hint=f"findling config set {key} VALUE")
    file = target_file(project)
    if project:
        refuse_raised({key: value}, load_settings(None), [key], str(file))
    set_value(file, key, value)
    note(f"{file}: {key} = {format_value(value)}")
    _tell_if_overridden(key, file)


def _carry_out(key: str) -> int:
    """Write a policy into the workspaces that there are: a daemon that runs reads no settings again."""
    if key != "permissions.unset":
        return 0
    from findling.service.engine.policies import set_policies

    changed, failed = set_policies(load_settings(None))
    for folder, error in failed.items():
        note(f"{folder} keeps its policy: {error.message}", error.hint)
    note(f"workspaces that follow: {changed:,}")
    return 2 if failed else 0


def target_file(project: bool) -> Path:
    """The file to change: the user's, or the project's nearest one, or a new one in the current folder."""
    file = (find_project_file() or Path.cwd() / PROJECT_FILE) if project else user_file()
    if file is None:
        raise UsageError("there is no home folder to keep settings in", hint="set FINDLING_CONFIG to a file")
    return file


def _tell_if_overridden(key: str, file: Path) -> None:
    """Say what wins over a value that was just written."""
    origin = load_settings().origin(key)
    if not origin.endswith(f" file {file}"):
        note(f"{key} still comes from {origin}, which wins")


def _row(settings: Settings, name: str, origin: bool) -> str:
    comment = f"  # {settings.origin(name)}" if origin else ""
    return f"{name} = {format_value(settings[name])}{comment}\n"
