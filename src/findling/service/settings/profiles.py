"""Profiles: plans with a name, each a set of settings that it changes.

A profile wins over settings files and yields to flags. It yields to the environment, too, unless the caller chose it
for the one search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from findling.domain.errors import InvalidValueError, UntrustedSettingError
from findling.domain.plans import KNOBS, Plan
from findling.service.settings.layers import (
    PROJECT_ORIGIN,
    Settings,
    check_value,
    closest_name,
    flatten,
    get_setting,
    refuse_raised,
)
from findling.service.settings.setting_list import Setting, Value, plan_row

__all__ = ["PROFILES", "apply_profile", "check_profile", "plan_of", "profile_names", "read_profiles"]

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
        "search.boosts": True,
        "search.collapse": True,
        "semantic.query_budget_ms": 2000.0,
        "rerank.depth": 100,
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

_ONLY_IN_PROFILES = {knob.row: plan_row(knob) for knob in KNOBS.values() if knob.profile and not knob.setting}
_TABLES = {knob.name for knob in KNOBS.values() if knob.profile and isinstance(knob.default, Mapping)}
_READ_BY_EACH_SEARCH = {knob.setting for knob in KNOBS.values()} | _ONLY_IN_PROFILES.keys()


def plan_of(settings: Settings, profile: str = "") -> Plan:
    """The plan of a profile, by default of the one that the settings name. Raises InvalidValueError."""
    name = profile or settings["search.profile"]
    changed, own = apply_profile(settings, name, is_chosen=bool(profile)), _values(settings, name)
    values: dict[str, Any] = {"half_lives": {kind: one.half_life_days for kind, one in settings.types.items()}}
    for knob in KNOBS.values():
        if knob.setting:
            values[knob.name] = changed[knob.setting]
        elif knob.row in own:
            values[knob.name] = own[knob.row]
    return Plan(**{**values, "profile": name})


def apply_profile(settings: Settings, name: str, *, is_chosen: bool = False) -> Settings:
    """The settings with the values of a profile; a flag, or anything nearer to the search, stays.

    `is_chosen`: the caller chose it for the one search, as a flag does, so it wins over the environment, too.
    Raises InvalidValueError for a name that no profile has.
    """
    is_chosen = is_chosen or settings.origin("search.profile").startswith("flag ")
    weaker = ("default", "user file ", PROJECT_ORIGIN, "profile ", *(("env ",) if is_chosen else ()))
    values = {key: value for key, value in _values(settings, name).items() if key in settings}
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
    return {name: check_value(_row(name, where), value, where) for name, value in values.items()}


def _row(name: str, where: str) -> Setting:
    return _ONLY_IN_PROFILES.get(name) or get_setting(name, where)


def _values(settings: Settings, name: str) -> Mapping[str, Value]:
    found = PROFILES.get(name, settings.profiles.get(name))
    if found is None:
        hint = closest_name(name, profile_names(settings), lists=True)
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
        hint = closest_name(str(base), dict.fromkeys((*profile_names(known), *tables)), lists=True)
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
        if _row(name, where).user_only and is_stranger:
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
        usual = {name: row.default for name, row in _ONLY_IN_PROFILES.items()}
        refuse_raised(checked, {**usual, **before}, values, where)
    return checked
