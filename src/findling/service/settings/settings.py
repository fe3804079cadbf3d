"""The value of every setting for a path, and its origin.

A later layer wins over an earlier one: default, user file, project file, environment, command-line flag.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, UnknownSettingError
from findling.service.settings.layers import (
    PROJECT_ORIGIN,
    Settings,
    closest_name,
    flatten,
    get_setting,
    parse_text,
    refuse_raised,
    refuse_untrusted,
)
from findling.service.settings.setting_files import find_project_file, read_file, user_file
from findling.service.settings.setting_list import ENVIRONMENT, REMOVED, SETTINGS, Setting, Value, variable_of

if TYPE_CHECKING:
    from findling.text.chunking.chunk_plan import ChunkPlan

__all__ = [
    "ENVIRONMENT",
    "SETTINGS",
    "Setting",
    "Settings",
    "Value",
    "chunk_plan",
    "get_setting",
    "load_settings",
    "parse_text",
    "refuse_raised",
]


def load_settings(path: str | Path | None = ".", *, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings that hold for `path`, or those of the user alone.

    Raises `UnknownSettingError`, `InvalidValueError` or `UntrustedSettingError`, naming the file or variable at fault.
    """
    environ = os.environ if environ is None else environ
    settings = Settings()
    own_file = user_file(environ)
    if own_file is not None and own_file.exists():
        settings = _apply_file(settings, own_file, f"user file {own_file}")
    project_file = None if path is None else find_project_file(path)
    if project_file is not None:
        settings = _apply_file(settings, project_file, f"{PROJECT_ORIGIN}{project_file}")
    return _apply_environment(settings, environ)


def chunk_plan(settings: Settings) -> ChunkPlan:
    """The plan that cuts texts. Raises InvalidValueError, naming the origin, for a preset that is none."""
    from findling.text.chunking.chunk_plan import read_preset

    try:
        return read_preset(settings["chunk.preset"])._replace(code=settings["chunk.code"])
    except ValueError as error:
        origin = settings.origin("chunk.preset")
        raise InvalidValueError(f"{origin}: chunk.preset: {error}", hint="findling config show --origin") from error


def _apply_file(settings: Settings, file: Path, origin: str) -> Settings:
    tables = read_file(file)
    profiles, types = tables.pop("profiles", None), tables.pop("types", None)
    values = dict(flatten(tables))
    if origin.startswith(PROJECT_ORIGIN):
        refuse_untrusted(values, str(file))
    changed = settings.override(values, origin)
    if origin.startswith(PROJECT_ORIGIN):
        refuse_raised(changed, settings, values, origin)
    # Few files have any of these.
    if types is not None:
        from findling.service.settings.type_plugins import read_types

        changed = changed.with_types(read_types(types, origin))
    if profiles is not None:
        from findling.service.settings.profiles import read_profiles

        changed = changed.with_profiles(read_profiles(profiles, changed, origin), origin)
    return changed


def _apply_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """An empty variable counts as not set; a short name wins over the long one."""
    given = [name for name in environ if name.startswith("FINDLING_")]
    for name in given:
        if name not in _VARIABLES:
            for removed, instead in REMOVED.items():
                if name == variable_of(removed):
                    raise UnknownSettingError(f"environment variable {name} sets nothing any more", hint=instead)
            message = f"environment variable {name} is not one that findling knows"
            raise UnknownSettingError(message, hint=closest_name(name, _VARIABLES))
    for name, setting in _VARIABLES.items() if given else ():
        if name in given and setting and environ[name]:
            settings = settings.override_text(setting, environ[name], f"env {name}")
    return settings


_VARIABLES = {setting.variable: setting.name for setting in SETTINGS}
_VARIABLES |= {variable.name: variable.setting for variable in ENVIRONMENT}
