"""The value of every setting, and where it came from.

A later layer wins over an earlier one: default, user file, project file, environment, command-line flag.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, UnknownSettingError, UntrustedSettingError
from findling.domain.strangers import cuts_too_fine, raises_limit
from findling.service.settings.setting_files import find_project_file, read_file, user_file
from findling.service.settings.setting_list import ENVIRONMENT, SETTINGS, EnvironmentVariable, Setting, Value

if TYPE_CHECKING:
    from findling.domain.resources import ResourceType

__all__ = [
    "ENVIRONMENT",
    "SETTINGS",
    "EnvironmentVariable",
    "Setting",
    "Settings",
    "Value",
    "flatten",
    "get_setting",
    "load_settings",
    "parse_text",
    "refuse_raised",
]

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_SECTIONS = {setting.name.partition(".")[0] for setting in SETTINGS}
_PROJECT_FILE = "project file "

_CUT = ("chunk.size", "chunk.overlap")

_LONGEST_SHOWN = 200
"""Characters that an error shows of a value: a file may hold one of 64 KB."""


class Settings(Mapping[str, Any]):
    """A value for every setting, and the origin of each; never changes once made. `Settings()` holds the defaults."""

    __slots__ = ("_origins", "_profiles", "_values", "types")

    def __init__(self) -> None:
        self._profiles: dict[str, tuple[Mapping[str, Value], str]] = {}
        self._values: dict[str, Value] = {setting.name: setting.default for setting in SETTINGS}
        self._origins = dict.fromkeys(_BY_NAME, "default")
        self.types: Mapping[str, ResourceType] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def origin(self, name: str) -> str:
        """Where the value comes from: `default`, `user file …`, `project file …`, `profile …`, `env …` or `flag …`."""
        return self._origins[name]

    def project_file(self, name: str) -> Path | None:
        """The project file that the value comes from, if it comes from one."""
        origin = self._origins[name]
        return Path(origin.removeprefix(_PROJECT_FILE)) if origin.startswith(_PROJECT_FILE) else None

    @property
    def profiles(self) -> Mapping[str, Mapping[str, Value]]:
        """The profiles of the settings files, each with the settings that it changes."""
        return {name: values for name, (values, _) in self._profiles.items()}

    def profile_origin(self, name: str) -> str:
        """The file that a profile comes from. Raises KeyError for a name that `profiles` does not have."""
        return self._profiles[name][1]

    def with_profiles(self, profiles: Mapping[str, Mapping[str, Value]], origin: str) -> Settings:
        """The same settings with the profiles of one more file."""
        changed = self.override({}, origin)
        changed._profiles |= {name: (values, origin) for name, values in profiles.items()}
        return changed

    def with_types(self, types: Mapping[str, ResourceType]) -> Settings:
        """The same settings with the types of resources that one more file declares."""
        changed = self.override({}, "")
        changed.types = {**self.types, **types}
        return changed

    def override(self, values: Mapping[str, object], origin: str) -> Settings:
        """The same settings with other values.

        Raises `UnknownSettingError` for a name that is no setting, `InvalidValueError` for a value that does not fit.
        """
        changed = Settings()
        checked = {name: _check(get_setting(name, origin), value, origin) for name, value in values.items()}
        changed._values = {**self._values, **checked}
        changed._origins = {**self._origins, **dict.fromkeys(checked, origin)}
        changed._profiles = dict(self._profiles)
        changed.types = self.types
        return changed

    def override_text(self, name: str, text: str, origin: str) -> Settings:
        """The same settings with one value that is given as text, as in the environment or on the command line."""
        return self.override({name: parse_text(get_setting(name, origin), text, origin)}, origin)


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
        settings = _apply_file(settings, project_file, f"{_PROJECT_FILE}{project_file}")
    return _apply_environment(settings, environ)


def get_setting(name: str, where: str = "") -> Setting:
    """The declaration of a setting. Raises `UnknownSettingError` that names `where` it was met and the closest name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        message = f"{where}: no setting is called {name}" if where else f"no setting is called {name}"
        is_profile = name.partition(".")[0] == "profiles"
        hint = f"write it into the table [{name.rpartition('.')[0]}] of a settings file" if is_profile else ""
        raise UnknownSettingError(message, hint=hint or _closest(name, _BY_NAME)) from None


def parse_text(setting: Setting, text: str, where: str) -> Value:
    """A value written as text: `true`, `4MB`, `*.log,*.tmp`. Raises `InvalidValueError` naming `where` it was met."""
    text = text.strip()
    value: object = text
    try:
        if setting.kind == "switch":
            value = _SWITCHES[text.lower()]
        elif setting.kind == "count":
            value = int(text)
        elif setting.kind == "number":
            value = float(text)
        elif setting.kind == "patterns":
            value = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    except (KeyError, ValueError):
        raise _invalid(setting, text, where) from None
    return _check(setting, value, where)


def flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of nested tables under dotted names; an empty table counts as a value unless it is a section."""
    for key, value in table.items():
        if isinstance(value, dict) and (value or prefix + key in _SECTIONS):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


_SWITCHES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def _check(setting: Setting, value: object, where: str) -> Value:
    """The value in its canonical form."""
    checked: Value | None = None
    if setting.kind == "switch":
        checked = value if isinstance(value, bool) else None
    elif setting.kind == "patterns":
        if isinstance(value, list | tuple) and all(isinstance(part, str) and part.strip() for part in value):
            checked = tuple(value)
    elif setting.kind in ("text", "name"):
        checked = _check_text(setting, value)
    elif not isinstance(value, bool):
        checked = _check_quantity(setting, value)
    if checked is None:
        raise _invalid(setting, value, where)
    return checked


def _check_text(setting: Setting, value: object) -> str | None:
    if not isinstance(value, str) or (setting.choices and value not in setting.choices):
        return None
    if setting.kind == "name" and value:
        # The name becomes a folder: it must not lead anywhere else.
        letters = value.replace("-", "a").replace("_", "a").replace(".", "a")
        return value if letters.isalnum() and not value.startswith(".") else None
    return value


def _check_quantity(setting: Setting, value: object) -> int | float | None:
    if setting.kind == "size" and isinstance(value, str):
        value = _parse_size(value)
    # 1e300 keeps infinity out; "not a number" fails every comparison.
    if not isinstance(value, int | float) or not setting.minimum <= value <= min(setting.maximum, 1e300):
        return None
    if setting.kind == "number":
        return float(value)
    return value if isinstance(value, int) else None


def _parse_size(text: str) -> int | None:
    letters = text.strip().lower().replace("ib", "b")
    unit = letters.lstrip("0123456789.").strip()
    try:
        return int(float(letters[: len(letters) - len(unit)]) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        return None


def _invalid(setting: Setting, value: object, where: str) -> InvalidValueError:
    wanted = {
        "text": "text",
        "name": "letters, digits, '-', '_' and '.'",
        "switch": "true or false",
        "count": "a whole number",
        "size": "a number of bytes or a size such as 4MB",
        "number": "a number",
        "patterns": "a list of patterns",
    }[setting.kind]
    if setting.choices:
        wanted = " or ".join(setting.choices)
    elif setting.kind in ("count", "size", "number"):
        wanted += f" of at least {setting.minimum:g}"
        wanted += f" and at most {setting.maximum:g}" if setting.maximum != float("inf") else ""
    return InvalidValueError(
        f"{where}: {setting.name} must be {wanted}, not {_brief(value)}", hint="findling config show"
    )


def _brief(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"


def _apply_file(settings: Settings, file: Path, origin: str) -> Settings:
    tables = read_file(file)
    profiles, types = tables.pop("profiles", None), tables.pop("types", None)
    values = dict(flatten(tables))
    if origin.startswith(_PROJECT_FILE):
        _refuse_untrusted(values, file)
    changed = settings.override(values, origin)
    if origin.startswith(_PROJECT_FILE):
        refuse_raised(changed, settings, values, origin)
    settings = changed
    # Few files have any of these.
    if types is not None:
        from findling.service.settings.type_plugins import read_types

        settings = settings.with_types(read_types(types, origin))
    if profiles is not None:
        from findling.service.settings.profiles import read_profiles

        settings = settings.with_profiles(read_profiles(profiles, settings, origin), origin)
    return settings


def refuse_raised(changed: Mapping[str, Any], own: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raise UntrustedSettingError, naming `where`, for limits above the user's own, and for a flood of chunks."""
    for name in names:
        if raises_limit(name, changed[name], own[name]):
            raise UntrustedSettingError(
                f"{where}: {name} is {changed[name]}, above your own {own[name]}; a project may only lower it",
                hint=f"lower it there; for yourself: findling config set {name} {changed[name]}",
            )
    if not set(_CUT).isdisjoint(names) and cuts_too_fine(*(changed.get(name, own[name]) for name in _CUT)):
        raise UntrustedSettingError(
            f"{where}: chunk.size and chunk.overlap would cut texts into a flood of chunks",
            hint="a size of at least 50, an overlap of at most half of it; your own settings may cut finer",
        )


def _refuse_untrusted(values: Mapping[str, object], path: Path) -> None:
    for name in values:
        if name in _BY_NAME and _BY_NAME[name].user_only:
            raise UntrustedSettingError(
                f"{path} sets {name}, which a project may not set for you",
                hint=f"remove it from there; for yourself: findling config set {name} VALUE",
            )


def _apply_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """An empty variable counts as not set; a short name wins over the long one."""
    targets = {setting.variable: setting.name for setting in SETTINGS}
    targets.update((variable.name, variable.setting) for variable in ENVIRONMENT)
    for name in environ:
        if name.startswith("FINDLING_") and name not in targets:
            message = f"environment variable {name} is not one that findling knows"
            raise UnknownSettingError(message, hint=_closest(name, targets))
    for name, setting in targets.items():
        if setting and environ.get(name):
            settings = settings.override_text(setting, environ[name], f"env {name}")
    return settings


def _closest(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{matches[0]} instead" if matches else "findling config show"
