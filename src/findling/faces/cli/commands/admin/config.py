"""`findling config`: which settings hold, where they come from, and how to change them."""

from __future__ import annotations

from pathlib import Path

import click

from findling.domain.errors import FindlingError, InvalidValueError, UntrustedSettingError, UsageError
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import command_group, json_option
from findling.service.index.model_choice import readers_of
from findling.service.settings.setting_files import format_value, read_file, set_value, unset_value
from findling.service.settings.setting_list import REMOVED
from findling.service.settings.settings import (
    PROJECT_FILE,
    SETTINGS,
    Settings,
    Value,
    chunk_plan,
    find_project_file,
    get_setting,
    load_settings,
    parse_text,
    refuse_raised,
    user_file,
)

_project_option = click.option(
    "--project", is_flag=True, help=f"Change the project's {PROJECT_FILE}, not your own file."
)


@command_group(path="findling config show --path", unset="findling config remove KEY")
def config() -> None:
    """Show and change settings.

    A later one wins: default, user file, project file, environment, flag.
    """


@config.command("show")
@click.argument("key", required=False)
@click.option("--path", "paths", is_flag=True, help="Print where the settings files are, or would be, instead.")
@json_option
def _show(key: str | None, paths: bool, as_json: bool) -> int:
    """Print every setting of the current folder and its origin, as TOML.

    With KEY only that one is printed.
    """
    if paths:
        for kind, file in (("user", user_file()), ("project", find_project_file())):
            if file is not None:
                write(f"{kind}\t{file}{'' if file.exists() else ' (missing)'}\n")
        return 0
    settings = load_settings()
    names = [get_setting(key).name] if key else [setting.name for setting in SETTINGS]
    from findling.faces.cli.output.json_output import write_report

    shown = {name: {"value": _shown(name, settings[name]), "origin": settings.origin(name)} for name in names}
    lines = [f"{name} = {format_value(one['value'])}  # {one['origin']}\n" for name, one in shown.items()]
    write_report(as_json, {"settings": shown}, "".join(lines))
    return 0


@config.command("set", context_settings={"ignore_unknown_options": True})  # a value may begin with a dash
@click.argument("key")
@click.argument("value")
@_project_option
def _set(key: str, value: str, project: bool) -> int:
    """Give the setting KEY a VALUE in your own settings file."""
    parsed = parse_text(get_setting(key), value, "config set")
    chunk_plan(load_settings().override({key: parsed}, "config set"))
    change_setting(key, parsed, project)
    return _carry_out(key)


@config.command("add", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@_project_option
def _add(key: str, values: tuple[str, ...], project: bool) -> int:
    """Add to a list, such as index.exclude, in your own settings file."""
    before = _in_file(key, project)
    new = tuple(value for value in dict.fromkeys(values) if value not in before)
    for value in sorted(set(values) - set(new)):
        note(f"{value} is already there")
    if new:
        change_setting(key, _listed(key, (*before, *new)), project)
    return 0


@config.command("remove", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@_project_option
def _remove(key: str, values: tuple[str, ...], project: bool) -> int:
    """Take KEY, or values of a list, out of your own settings file."""
    if values:
        before = _in_file(key, project)
        for value in values:
            if value not in before:
                told = f"{_target_file(project)}: {key} does not hold {value}"
                raise InvalidValueError(told, hint=f"findling config show {key}")
        change_setting(key, tuple(value for value in before if value not in values), project)
        return 0
    file = _target_file(project)
    if not unset_value(file, key):
        if key not in REMOVED:
            get_setting(key)
        note(f"{file} does not set {key}")
        return 1
    note(f"{file}: {key} is no longer set")
    return _carry_out(key)


def _in_file(key: str, project: bool) -> tuple[str, ...]:
    """The list of the file that is to be changed, and of no other. Raises UsageError for a setting that is no list."""
    if get_setting(key).kind != "patterns":
        raise UsageError(f"{key} is no list", hint=f"findling config set {key} VALUE")
    file = _target_file(project)
    section, _, name = key.partition(".")
    return _listed(key, read_file(file).get(section, {}).get(name, ())) if file.exists() else ()


def _listed(key: str, values: object) -> tuple[str, ...]:
    listed: tuple[str, ...] = Settings().override({key: values}, "config")[key]
    return listed


def change_setting(key: str, value: Value, project: bool) -> None:
    """Write one setting, and say so if something else still wins over it.

    Raises `UntrustedSettingError` for a project file and a setting that it may not set.
    """
    if project and get_setting(key).user_only:
        raise UntrustedSettingError(f"a project may not set {key}", hint=f"findling config set {key} VALUE")
    readers_of(Settings().override({key: value}, "findling config"))
    file = _target_file(project)
    if project:
        refuse_raised({key: value}, load_settings(None), [key], str(file))
    set_value(file, key, value, private=key == "store.url")
    note(f"{file}: {key} = {format_value(_shown(key, value))}")
    origin = load_settings().origin(key)
    if not origin.endswith(f" file {file}"):
        note(f"{key} still comes from {origin}, which wins")


def _shown(key: str, value: Value) -> Value:
    """A value as people may see it: without a password."""
    if key != "store.url":
        return value
    from findling.service.workspace.backends import shown_url

    return shown_url(str(value))


def _carry_out(key: str) -> int:
    """Write a policy into the workspaces that there are: a daemon that runs reads no settings again."""
    if key != "permissions.unset":
        return 0
    from findling.service.engine.engine import Engine
    from findling.service.workspace.workspace import home_folder, workspace_in
    from findling.service.workspace.workspaces import all_workspaces

    settings, changed, code = load_settings(None), 0, 0
    for found in all_workspaces(home_folder(settings["store.home"])):
        try:
            with Engine(workspace_in(found.folder), settings) as engine:
                engine.permissions.set_policy(settings["permissions.unset"])
            changed += 1
        except FindlingError as error:
            note(f"{found.folder} keeps its policy: {error.message}", error.hint)
            code = 2
    note(f"workspaces that follow: {changed:,}")
    return code


def _target_file(project: bool) -> Path:
    """The file to change: the user's, or the project's nearest one, or a new one in the current folder."""
    file = (find_project_file() or Path.cwd() / PROJECT_FILE) if project else user_file()
    if file is None:
        raise UsageError("there is no home folder to keep settings in", hint="set FINDLING_CONFIG to a file")
    return file
