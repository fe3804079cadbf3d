"""Profiles: plans with a name, each a set of settings that it changes.

A profile wins over the settings files and yields to flags. It also yields to the environment, unless it was chosen for
the one search, by a flag or by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from findling.domain.errors import InvalidValueError, UntrustedSettingError
from findling.domain.plans import KNOBS, Plan
from findling.service.settings.layers import Settings, check_value, flatten, get_setting, refuse_raised
from findling.service.settings.setting_list import Setting, Value, plan_row

__all__ = ["PROFILES", "apply_profile", "check_profile", "plan_of", "profile_names", "read_profiles", "search_plan"]

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
"""The profiles that are always there."""


def plan_of(settings: Settings, profile: str = "") -> Plan:
    """The plan of a profile, by default of the one that the settings name.

    Raises InvalidValueError for a name that no profile has.
    """
    name = profile or settings["search.profile"]
    changed, values = apply_profile(settings, name, is_chosen=bool(profile)), _values(settings, name)
    own = {knob.name: values[knob.row] for knob in KNOBS.values() if not knob.setting and knob.row in values}
    return replace(search_plan(changed), profile=name, **cast("dict[str, Any]", own))


def search_plan(settings: Settings) -> Plan:
    """How a search is carried out unless the request says otherwise; its profile is not looked at."""
    values = {name: settings[knob.setting] for name, knob in KNOBS.items() if knob.setting}
    return Plan(**values, half_lives={name: each.half_life_days for name, each in settings.types.items()})


def apply_profile(settings: Settings, name: str, *, is_chosen: bool = False) -> Settings:
    """The settings with what a profile changes; what a flag, or something nearer to the search, has set stays.

    `is_chosen` says that the caller chose it for the one search, as a flag does: it wins over the environment, too.
    Raises InvalidValueError for a name that no profile has.
    """
    values = _values(settings, name)
    is_chosen = is_chosen or settings.origin("search.profile").startswith("flag ")
    weaker = ("default", "user file ", "project file ", "profile ", *(("env ",) if is_chosen else ()))
    known = {setting: value for setting, value in values.items() if setting in settings}
    changed = {setting: value for setting, value in known.items() if settings.origin(setting).startswith(weaker)}
    return settings.override(changed, f"profile {name}") if changed else settings


def profile_names(settings: Settings) -> list[str]:
    """The names of all profiles: those that are always there, then those of the settings files in their order."""
    return [*PROFILES, *settings.profiles]


def read_profiles(tables: object, known: Settings, origin: str) -> dict[str, Mapping[str, Value]]:
    """The profiles of a settings file with everything that they take over from their `base`.

    A base is another profile of the same file, one of `known`, or one that is always there. Raises InvalidValueError,
    UnknownSettingError or UntrustedSettingError, naming the file and the profile: one of `known` is never replaced.
    """
    if not isinstance(tables, dict):
        raise InvalidValueError(f"{origin}: profiles must be tables, not {tables!r}", hint="[profiles.NAME]")
    for name, table in tables.items():
        _check_name(name, table, origin)
        if name in known.profiles:
            raise UntrustedSettingError(
                f"{origin}: profile {name} would replace the one of {known.profile_origin(name)}",
                hint="rename one of the two",
            )
    return {name: _read(name, tables, known, origin, ()) for name in tables}


_ONLY_IN_PROFILES = {knob.row: plan_row(knob) for knob in KNOBS.values() if knob.profile and not knob.setting}
_TABLES = {knob.name for knob in KNOBS.values() if knob.profile and isinstance(knob.default, Mapping)}
_READ_BY_EACH_SEARCH = {knob.setting for knob in KNOBS.values()} | _ONLY_IN_PROFILES.keys()


def _values(settings: Settings, name: str) -> Mapping[str, Value]:
    found = PROFILES.get(name, settings.profiles.get(name))
    if found is None:
        raise InvalidValueError(f"no profile is called {name}", hint=_choices(name, profile_names(settings)))
    return found


def _check_name(name: str, table: object, origin: str) -> None:
    if not isinstance(table, dict):
        raise InvalidValueError(
            f"{origin}: profiles.{name} must be a table of settings, not {table!r}", hint=f"[profiles.{name}]"
        )
    if name in PROFILES:
        raise InvalidValueError(
            f"{origin}: profile {name} is always there and cannot be another one",
            hint=f'give it a name of its own, with base = "{name}" to start from it',
        )
    if not name.replace("-", "a").replace("_", "a").isalnum():
        raise InvalidValueError(
            f"{origin}: profile {name!r} must be called by letters, digits, '-' and '_'", hint="rename it"
        )


def _read(
    name: str, tables: Mapping[str, Mapping[str, object]], known: Settings, origin: str, above: tuple[str, ...]
) -> Mapping[str, Value]:
    """One profile of a file; `above` are the profiles whose base is being looked for."""
    where = f"{origin}: profile {name}"
    if name in above:
        raise InvalidValueError(f"{where} is its own base: {' → '.join((*above, name))}", hint="change one base")
    own = dict(tables[name])
    base = own.pop("base", "auto")
    if isinstance(base, str) and base in tables:
        taken_over = _read(base, tables, known, origin, (*above, name))
    elif isinstance(base, str) and base in profile_names(known):
        taken_over = _values(known, base)
    else:
        names = dict.fromkeys((*profile_names(known), *tables))
        raise InvalidValueError(f"{where}: no profile is called {base}, its base", hint=_choices(str(base), names))
    return {**taken_over, **_checked(own, {**known, **taken_over}, where)}


def check_profile(values: Mapping[str, object], where: str) -> dict[str, Value]:
    """The values of a profile under full names, checked. Raises UnknownSettingError or InvalidValueError."""
    return {name: check_value(_row(name, where), value, where) for name, value in values.items()}


def _row(name: str, where: str) -> Setting:
    return _ONLY_IN_PROFILES.get(name) or get_setting(name, where)


def _checked(table: Mapping[str, object], before: Mapping[str, Value], where: str) -> dict[str, Value]:
    """The settings of a profile under their full names, each a value that fits."""
    values: dict[str, object] = {}
    tables = {name: value for name, value in table.items() if name in _TABLES}
    rest = {name: value for name, value in table.items() if name not in _TABLES}
    for key, value in (*tables.items(), *flatten(rest)):
        name = key if "." in key else f"search.{key}"
        if _row(name, where).user_only and where.startswith("project file "):
            raise UntrustedSettingError(
                f"{where} sets {name}, which a project may not set for you", hint="remove it from there"
            )
        if name in values:
            raise InvalidValueError(f"{where} sets {name} twice", hint="keep one of the two")
        if not _is_read_by_each_search(name):
            raise InvalidValueError(
                f"{where} sets {name}, which is no matter of a single search",
                hint="a profile takes search.*, weights, affinities, semantic.query_budget_ms and rerank.depth",
            )
        values[name] = value
    checked = check_profile(values, where)
    if where.startswith("project file "):
        usual = {name: row.default for name, row in _ONLY_IN_PROFILES.items()}
        refuse_raised(checked, {**usual, **before}, values, where)
    return checked


def _is_read_by_each_search(name: str) -> bool:
    """A profile is chosen for one search: what the index was made or opened with cannot follow it."""
    return name != "search.profile" and (name.startswith("search.") or name in _READ_BY_EACH_SEARCH)


def _choices(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    known = list(names)
    closest = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{f'{closest[0]} instead? ' if closest else ''}there are: {', '.join(known)}"
