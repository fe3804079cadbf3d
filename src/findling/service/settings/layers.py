"""Settings as values with an origin, one layer over another, and the checks of names and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, UnknownSettingError, UntrustedSettingError
from findling.domain.strangers import cuts_too_fine, raises_limit
from findling.domain.values import fit, wanted
from findling.service.settings.setting_list import REMOVED, SETTINGS, Setting, Value

if TYPE_CHECKING:
    from findling.domain.resources import ResourceType

__all__ = [
    "PROJECT_ORIGIN",
    "Settings",
    "check_value",
    "closest_name",
    "flatten",
    "get_setting",
    "parse_text",
    "refuse_raised",
    "refuse_untrusted",
]

PROJECT_ORIGIN = "project file "
"""Start of the origin of a value from a project file."""

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_SECTIONS = {setting.name.partition(".")[0] for setting in SETTINGS}

_SWITCHES = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}

_NOTHING = "auto"
"""None in a settings file or a flag: each query decides."""

_LONGEST_SHOWN = 200
"""Characters that an error shows of a value: a file may hold one of 64 KB."""


class Settings(Mapping[str, Any]):
    """An immutable value for every setting, and the origin of each; `Settings()` holds the defaults.

    `profiles` and `types` are those that settings files declare.
    """

    __slots__ = ("_origins", "_profile_origins", "_values", "profiles", "types")

    def __init__(self) -> None:
        self._values: Mapping[str, Value] = {setting.name: setting.default for setting in SETTINGS}
        self._origins: Mapping[str, str] = dict.fromkeys(_BY_NAME, "default")
        self._profile_origins: Mapping[str, str] = {}
        self.profiles: Mapping[str, Mapping[str, Value]] = {}
        self.types: Mapping[str, ResourceType] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def origin(self, name: str) -> str:
        """The origin of a value: `default`, `user file …`, `project file …`, `profile …`, `env …` or `flag …`."""
        return self._origins[name]

    def project_file(self, name: str) -> Path | None:
        """The project file that the value comes from, if it comes from one."""
        origin = self._origins[name]
        return Path(origin.removeprefix(PROJECT_ORIGIN)) if origin.startswith(PROJECT_ORIGIN) else None

    def profile_origin(self, name: str) -> str:
        """The file that a profile comes from. Raises KeyError for a name that `profiles` does not have."""
        return self._profile_origins[name]

    def with_profiles(self, profiles: Mapping[str, Mapping[str, Value]], origin: str) -> Settings:
        """The same settings with the profiles of one more file."""
        changed = copy(self)
        changed.profiles = {**self.profiles, **profiles}
        changed._profile_origins = {**self._profile_origins, **dict.fromkeys(profiles, origin)}
        return changed

    def with_types(self, types: Mapping[str, ResourceType]) -> Settings:
        """The same settings with the types of resources that one more file declares."""
        changed = copy(self)
        changed.types = {**self.types, **types}
        return changed

    def override(self, values: Mapping[str, object], origin: str) -> Settings:
        """The same settings with other values. Raises UnknownSettingError or InvalidValueError."""
        checked = {name: check_value(get_setting(name, origin), value, origin) for name, value in values.items()}
        changed = copy(self)
        changed._values = {**self._values, **checked}
        changed._origins = {**self._origins, **dict.fromkeys(checked, origin)}
        return changed

    def override_text(self, name: str, text: str, origin: str) -> Settings:
        """The same settings with one value given as text, as in the environment or on the command line."""
        return self.override({name: parse_text(get_setting(name, origin), text, origin)}, origin)


def get_setting(name: str, where: str = "") -> Setting:
    """The declaration of a setting. Raises `UnknownSettingError` that names `where` and the closest name."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    lead = f"{where}: " if where else ""
    if name in REMOVED:
        hint = f"findling config remove {name}; {REMOVED[name]}"
        raise UnknownSettingError(f"{lead}{name} is no setting any more", hint=hint)
    if name.startswith("profiles."):
        hint = f"write it into the table [{name.rpartition('.')[0]}] of a settings file"
    else:
        hint = closest_name(name, _BY_NAME)
    raise UnknownSettingError(f"{lead}no setting is called {name}", hint=hint)


def parse_text(setting: Setting, text: str, where: str) -> Value:
    """A value written as text: `true`, `4MB`, `*.log,*.tmp`. Raises `InvalidValueError` that names `where`."""
    text = text.strip()
    value: object = text
    try:
        if setting.kind == "switch":
            value = _SWITCHES[text.lower()]
        elif setting.kind == "count":
            value = int(text)
        elif setting.kind == "number" and not (setting.optional and text == _NOTHING):
            value = float(text)
        elif setting.kind == "patterns":
            value = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    except (KeyError, ValueError):
        raise _invalid(setting, text, where) from None
    return check_value(setting, value, where)


def check_value(setting: Setting, value: object, where: str) -> Value:
    """The value in its canonical form. Raises `InvalidValueError` that names `where`."""
    try:
        checked: Value = fit(setting, None if setting.optional and value == _NOTHING else value)
    except ValueError:
        raise _invalid(setting, value, where) from None
    return checked


def _invalid(setting: Setting, value: object, where: str) -> InvalidValueError:
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
    message = f"{where}: {setting.name} must be {wanted(setting, _NOTHING)}, not {shown}"
    return InvalidValueError(message, hint="findling config show")


def flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of nested tables under dotted names; an empty table counts as a value unless it is a section."""
    for key, value in table.items():
        if isinstance(value, dict) and (value or prefix + key in _SECTIONS):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def refuse_untrusted(values: Iterable[str], where: str) -> None:
    """Raise UntrustedSettingError for a setting that a project file may not set."""
    for name in values:
        if name in _BY_NAME and _BY_NAME[name].user_only:
            raise UntrustedSettingError(
                f"{where} sets {name}, which a project may not set for you",
                hint=f"remove it from there; for yourself: findling config set {name} VALUE",
            )


def refuse_raised(changed: Mapping[str, Any], own: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raise UntrustedSettingError, naming `where`, for limits above the user's own, and for a flood of chunks."""
    for name in names:
        if raises_limit(name, changed[name], own[name]):
            raise UntrustedSettingError(
                f"{where}: {name} is {changed[name]}, above your own {own[name]}; a project may only lower it",
                hint=f"lower it there; for yourself: findling config set {name} {changed[name]}",
            )
    if "chunk.preset" in names and _is_flood(changed["chunk.preset"]):
        raise UntrustedSettingError(
            f"{where}: chunk.preset would cut texts into a flood of chunks",
            hint="a size of at least 50, an overlap of at most half of it; your own settings may cut finer",
        )


def _is_flood(preset: str) -> bool:
    from findling.text.chunking.chunk_plan import read_preset

    try:
        plan = read_preset(preset)
    except ValueError:
        return False  # the chunker reports it
    return cuts_too_fine(plan.size, plan.overlap)


def closest_name(name: str, known: Iterable[str], *, lists: bool = False) -> str:
    """A hint: the known name that is nearest to an unknown one, and with `lists` all of them."""
    from difflib import get_close_matches

    names = list(known)
    matches = get_close_matches(name, names, n=1, cutoff=0.5)
    if lists:
        return f"{f'{matches[0]} instead? ' if matches else ''}there are: {', '.join(names)}"
    return f"{matches[0]} instead" if matches else "findling config show"
