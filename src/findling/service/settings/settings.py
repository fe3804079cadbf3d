"""The value of every setting for a path, and its origin.

A later layer wins over an earlier one: default, user file, project file, environment, command-line flag.

Profiles are plans with a name, each a set of settings that it changes. A profile wins over settings files and yields to
flags. It yields to the environment, too, unless the caller chose it for the one search.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, UnknownSettingError, UntrustedSettingError
from findling.domain.plans import JUDGED, KNOBS, Plan
from findling.domain.strangers import cuts_too_fine, raises_limit
from findling.domain.values import closest_name
from findling.service.settings.setting_list import (
    ENVIRONMENT,
    KNOB_ROWS,
    PROJECT_ORIGIN,
    REMOVED,
    SETTINGS,
    Setting,
    Settings,
    Value,
    check_value,
    flatten,
    get_row,
    get_setting,
    parse_text,
    variable_of,
)

if TYPE_CHECKING:
    from findling.text.chunking.chunk_plan import ChunkPlan

__all__ = [
    "ENVIRONMENT",
    "PROFILES",
    "PROJECT_FILE",
    "SETTINGS",
    "Setting",
    "Settings",
    "Value",
    "apply_profile",
    "check_profile",
    "chunk_plan",
    "find_project_file",
    "get_row",
    "get_setting",
    "load_settings",
    "parse_text",
    "plan_of",
    "profile_names",
    "read_profiles",
    "refuse_raised",
    "user_file",
    "user_home",
]


PROFILES: Mapping[str, Mapping[str, Value]] = {
    "auto": {},
    "keyword": {"search.mode": "keyword"},
    "semantic": {"search.mode": "semantic"},
    "hybrid": {"search.mode": "hybrid"},
    "strict": {
        "search.mode": "hybrid",
        "search.words": "all",
        "search.meaning_finds": False,
        "search.typos": "suggest",
        "search.relax": False,
        "search.related": 5,
    },
    "deep": {
        "search.overfetch": 5.0,
        "search.feedback": True,
        "search.expand": "auto",
        "semantic.query_budget_ms": 2000.0,
        "rerank.depth": JUDGED,
    },
    "memory": {
        "search.types": ("memory",),
        "search.fusion": "weighted",
        "search.alpha": 0.7,
        "search.typos": "correct",
    },
    "decisions": {
        "search.types": ("decision",),
        "search.words": "all",
        "search.meaning_finds": False,
        "search.heads": True,
        "search.typos": "suggest",
        "search.relax": False,
        "search.related": 5,
    },
}
"""The built-in profiles."""

_TABLES = {knob.name for knob in KNOBS.values() if knob.profile and isinstance(knob.default, Mapping)}
_READ_BY_EACH_SEARCH = {knob.row for knob in KNOBS.values()}

PROJECT_FILE = ".findling.toml"


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


def user_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's own settings file, which need not exist; `None` when the user has no home."""
    environ = os.environ if environ is None else environ
    if environ.get("FINDLING_CONFIG"):
        return Path(environ["FINDLING_CONFIG"]).absolute()
    if sys.platform in ("win32", "darwin"):
        from platformdirs import user_config_path

        return user_config_path("findling", appauthor=False) / "config.toml"
    # platformdirs gives the same folder, but its import costs 7 ms of every search.
    base, home = environ.get("XDG_CONFIG_HOME", ""), user_home()
    if base.startswith("/"):
        return Path(base, "findling", "config.toml")
    return None if home is None else home / ".config" / "findling" / "config.toml"


def find_project_file(path: str | Path = ".") -> Path | None:
    """The nearest `.findling.toml` at or above `path`, up to a repository's top, the home folder or the root."""
    start, home = Path(path).resolve(), user_home()
    for folder in (start, *start.parents):
        candidate = folder / PROJECT_FILE
        if candidate.is_file():
            return candidate
        if folder == home or (folder / ".git").exists():
            return None
    return None


def user_home() -> Path | None:
    """The home folder of the user; None without one, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:  # no HOME and no entry in the user database
        return None


def chunk_plan(settings: Settings) -> ChunkPlan:
    """The plan that cuts texts. Raises InvalidValueError, naming the origin, for a preset that is none."""
    from findling.text.chunking.chunk_plan import read_preset

    try:
        return read_preset(settings["chunk.preset"])._replace(code=settings["chunk.code"])
    except ValueError as error:
        origin = settings.origin("chunk.preset")
        raise InvalidValueError(f"{origin}: chunk.preset: {error}", hint="chunk.preset = default") from error


def _apply_file(settings: Settings, file: Path, origin: str) -> Settings:
    from findling.service.settings.setting_files import read_file  # most searches have no file

    tables = read_file(file)
    profiles, types = tables.pop("profiles", None), tables.pop("types", None)
    values, is_project = dict(flatten(tables)), origin.startswith(PROJECT_ORIGIN)
    for name in values if is_project else ():
        if name in settings and get_row(name).user_only:
            raise UntrustedSettingError(
                f"{file} sets {name}, which a project may not set for you",
                hint=f"remove it from there; for yourself: {_own(name)}",
            )
    changed = settings.override(values, origin)
    if is_project:
        refuse_raised(changed, settings, values, origin)
    # Few files have any of these.
    if types is not None:
        from findling.service.settings.type_plugins import read_types

        changed = changed.with_types(read_types(types, origin))
    if profiles is not None:
        changed = changed.with_profiles(read_profiles(profiles, changed, origin), origin)
    return changed


def _apply_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """An empty variable counts as not set; a short name wins over the long one."""
    given = [name for name in environ if name.startswith("FINDLING_")]
    for name in given:
        if name not in _VARIABLES:
            for removed, instead in REMOVED.items():
                if name == variable_of(removed):
                    message = f"environment variable {name} sets nothing any more"
                    raise UnknownSettingError(message, hint=f"unset {name}; {instead}")
            message = f"environment variable {name} is not one that findling knows"
            raise UnknownSettingError(message, hint=closest_name(name, _VARIABLES, f"unset {name}"))
    for variable in ENVIRONMENT if given else ():
        value = environ.get(variable.name)
        if value and variable.choices and value not in variable.choices:
            message = f"environment variable {variable.name} is {value!r}"
            raise InvalidValueError(message, hint=f"one of: {', '.join(variable.choices)}")
    for name, setting in _VARIABLES.items() if given else ():
        if name in given and setting and environ[name]:
            settings = settings.override_text(setting, environ[name], f"env {name}")
    return settings


def refuse_raised(changed: Mapping[str, Any], own: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raise UntrustedSettingError, naming `where`, for limits above the user's own, and for a flood of chunks."""
    for name in names:
        if raises_limit(name, changed[name], own[name]):
            raise UntrustedSettingError(
                f"{where}: {name} is {changed[name]}, above your own {own[name]}; a project may only lower it",
                hint=f"lower it there; for yourself: {_own(name, changed[name])}",
            )
    if "chunk.preset" in names and _is_flood(changed["chunk.preset"]):
        raise UntrustedSettingError(
            f"{where}: chunk.preset would cut texts into a flood of chunks",
            hint="a size of at least 50, an overlap of at most half of it; your own settings may cut finer",
        )


def _own(name: str, value: object = "VALUE") -> str:
    """The way of people to set for themselves what a project may not set for them."""
    return f"--set {name}={value}, or a profile" if name in KNOB_ROWS else f"findling config set {name} {value}"


def _is_flood(preset: str) -> bool:
    from findling.text.chunking.chunk_plan import read_preset

    try:
        plan = read_preset(preset)
    except ValueError:
        return False  # the chunker reports it
    return cuts_too_fine(plan.size, plan.overlap)


def plan_of(settings: Settings, profile: str = "") -> Plan:
    """The plan of a profile, by default of the one that the settings name. Raises InvalidValueError."""
    name = profile or settings["search.profile"]
    changed = apply_profile(settings, name, is_chosen=bool(profile))
    values: dict[str, Any] = {knob.name: changed[knob.row] for knob in KNOBS.values() if knob.profile}
    half_lives = {kind: one.half_life_days for kind, one in settings.types.items()}
    return Plan(**values, half_lives=half_lives, profile=name)


def apply_profile(settings: Settings, name: str, *, is_chosen: bool = False) -> Settings:
    """The settings with the values of a profile; a flag, or anything nearer to the search, stays.

    `is_chosen`: the caller chose it for the one search, as a flag does, so it wins over the environment, too.
    Raises InvalidValueError for a name that no profile has.
    """
    is_chosen = is_chosen or settings.origin("search.profile").startswith("flag ")
    weaker = ("default", "user file ", PROJECT_ORIGIN, "profile ", *(("env ",) if is_chosen else ()))
    values = _values(settings, name)
    changed = {key: value for key, value in values.items() if settings.origin(key).startswith(weaker)}
    return settings.override(changed, f"profile {name}") if changed else settings


def profile_names(settings: Settings) -> list[str]:
    """The names of the built-in profiles, then of those in the settings files."""
    return [*PROFILES, *settings.profiles]


def read_profiles(tables: object, known: Settings, origin: str) -> dict[str, Mapping[str, Value]]:
    """The profiles of a settings file, each with the values of its `base`.

    A base is another profile of the same file, one of `known`, or a built-in one. Raises InvalidValueError,
    UnknownSettingError or UntrustedSettingError, naming the file and the profile: no file replaces one of `known`.
    """
    if not isinstance(tables, dict):
        raise InvalidValueError(f"{origin}: profiles must be tables, not {tables!r}", hint="[profiles.NAME]")
    for name, table in tables.items():
        if not isinstance(table, dict):
            message = f"{origin}: profiles.{name} must be a table of settings, not {table!r}"
            raise InvalidValueError(message, hint=f"[profiles.{name}]")
        if name in PROFILES:
            message = f"{origin}: profile {name} is always there and cannot be another one"
            raise InvalidValueError(message, hint=f'give it a name of its own, with base = "{name}" to start from it')
        if not name.replace("-", "a").replace("_", "a").isalnum():
            message = f"{origin}: profile {name!r} must be called by letters, digits, '-' and '_'"
            raise InvalidValueError(message, hint="rename it")
        if name in known.profiles:
            message = f"{origin}: profile {name} would replace the one of {known.profile_origin(name)}"
            raise UntrustedSettingError(message, hint="rename one of the two")
    return {name: _read(name, tables, known, origin, ()) for name in tables}


def check_profile(values: Mapping[str, object], where: str) -> dict[str, Value]:
    """The values of a profile under full names, checked. Raises UnknownSettingError or InvalidValueError."""
    return {name: check_value(get_row(name, where), value, where) for name, value in values.items()}


def _values(settings: Settings, name: str) -> Mapping[str, Value]:
    found = PROFILES.get(name, settings.profiles.get(name))
    if found is None:
        hint = closest_name(name, profile_names(settings))
        raise InvalidValueError(f"no profile is called {name}", hint=hint)
    return found


def _read(
    name: str, tables: Mapping[str, Mapping[str, object]], known: Settings, origin: str, above: tuple[str, ...]
) -> Mapping[str, Value]:
    """One profile of a file; `above` are the profiles that it is a base of."""
    where = f"{origin}: profile {name}"
    if name in above:
        raise InvalidValueError(f"{where} is its own base: {' → '.join((*above, name))}", hint="change one base")
    own = dict(tables[name])
    base = own.pop("base", "auto")
    if isinstance(base, str) and base in tables:
        inherited = _read(base, tables, known, origin, (*above, name))
    elif isinstance(base, str) and base in profile_names(known):
        inherited = _values(known, base)
    else:
        hint = closest_name(str(base), dict.fromkeys((*profile_names(known), *tables)))
        raise InvalidValueError(f"{where}: no profile is called {base}, its base", hint=hint)
    return {**inherited, **_checked(own, {**known, **inherited}, where)}


def _checked(table: Mapping[str, object], before: Mapping[str, Value], where: str) -> dict[str, Value]:
    """The settings of a profile under their full names, each a value that fits."""
    is_stranger = where.startswith(PROJECT_ORIGIN)
    values: dict[str, object] = {}
    tables = {name: value for name, value in table.items() if name in _TABLES}
    rest = {name: value for name, value in table.items() if name not in _TABLES}
    for key, value in (*tables.items(), *flatten(rest)):
        name = key if "." in key else f"search.{key}"
        if key == "legs" or key.startswith("legs."):
            raise UnknownSettingError(f"{where} sets legs, which is called leg_weights now", hint="rename it")
        if get_row(name, where).user_only and is_stranger:
            raise UntrustedSettingError(
                f"{where} sets {name}, which a project may not set for you", hint="remove it from there"
            )
        if name in values:
            raise InvalidValueError(f"{where} sets {name} twice", hint="keep one of the two")
        # A search chooses its profile: the values that made or opened the index cannot follow.
        if name == "search.profile" or not (name.startswith("search.") or name in _READ_BY_EACH_SEARCH):
            raise InvalidValueError(
                f"{where} sets {name}, which is no matter of a single search",
                hint="a profile takes search.*, weights, affinities, semantic.query_budget_ms and rerank.depth",
            )
        values[name] = value
    checked = check_profile(values, where)
    if is_stranger:
        refuse_raised(checked, before, values, where)
    return checked


_VARIABLES = {row.variable: row.name for row in (*SETTINGS, *KNOB_ROWS.values())}
_VARIABLES |= {variable.name: variable.setting for variable in ENVIRONMENT}
