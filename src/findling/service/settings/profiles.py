"""Profiles: plans with a name, each a set of settings that it changes.

A profile wins over the settings files and yields to flags. It also yields to the environment, unless it was chosen for
the one search, by a flag or by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from findling.domain.errors import InvalidValueError, UntrustedSettingError
from findling.domain.plans import KNOBS, Knob, Plan
from findling.service.settings.layers import Settings, flatten, get_setting, refuse_raised
from findling.service.settings.setting_list import Value

__all__ = ["PROFILES", "apply_profile", "plan_of", "profile_names", "read_profiles", "search_plan"]

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
    changed = apply_profile(settings, name, is_chosen=bool(profile))
    own = [setting for setting in _values(settings, name) if changed.origin(setting) == f"profile {name}"]
    weights = {setting.removeprefix(_WEIGHT): changed[setting] for setting in own if setting.startswith(_WEIGHT)}
    return replace(search_plan(changed), profile=name, weights=weights)


def search_plan(settings: Settings, knobs: Mapping[str, Knob] = KNOBS, kind: type[Plan] = Plan) -> Plan:
    """How a search is carried out unless the request says otherwise; its profile is not looked at.

    Raises InvalidValueError for an affinity that is none.
    """
    values = {name: settings[knob.setting] for name, knob in knobs.items() if knob.setting}
    half_lives = {name: each.half_life_days for name, each in settings.types.items()}
    return kind(**values, affinities=_affinities(settings), half_lives=half_lives)


def apply_profile(settings: Settings, name: str, *, is_chosen: bool = False) -> Settings:
    """The settings with what a profile changes; what a flag, or something nearer to the search, has set stays.

    `is_chosen` says that the caller chose it for the one search, as a flag does: it wins over the environment, too.
    Raises InvalidValueError for a name that no profile has.
    """
    values = _values(settings, name)
    is_chosen = is_chosen or settings.origin("search.profile").startswith("flag ")
    weaker = ("default", "user file ", "project file ", "profile ", *(("env ",) if is_chosen else ()))
    changed = {setting: value for setting, value in values.items() if settings.origin(setting).startswith(weaker)}
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


def _affinities(settings: Settings) -> dict[str, float]:
    """Author in lower case → how close, as the setting names them. Raises InvalidValueError naming the entry."""
    found: dict[str, float] = {}
    for entry in settings["search.affinity"]:
        name, equals, text = entry.partition("=")
        try:
            share = float(text) if equals else 1.0
        except ValueError:
            share = -1.0
        if not name.strip() or not 0 <= share <= 1:
            origin = settings.origin("search.affinity")
            raise InvalidValueError(f"{origin}: search.affinity has {entry!r}", hint="NAME=0.5, from 0 to 1")
        found[name.strip().casefold()] = share
    return found


_WEIGHT = "keyword.weight_"
_READ_BY_EACH_SEARCH = ("semantic.query_budget_ms", "rerank.depth")


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


def _checked(table: Mapping[str, object], before: Mapping[str, Value], where: str) -> dict[str, Value]:
    """The settings of a profile under their full names, each a value that fits."""
    values: dict[str, object] = {}
    for key, value in flatten(table):
        name = key if "." in key else f"search.{key}"
        setting = get_setting(name, where)
        if setting.user_only and where.startswith("project file "):
            raise UntrustedSettingError(
                f"{where} sets {name}, which a project may not set for you", hint="remove it from there"
            )
        if name in values:
            raise InvalidValueError(f"{where} sets {name} twice", hint="keep one of the two")
        if not _is_read_by_each_search(name):
            raise InvalidValueError(
                f"{where} sets {name}, which is no matter of a single search",
                hint=f"a profile takes search.*, {_WEIGHT}*, {' and '.join(_READ_BY_EACH_SEARCH)}",
            )
        values[name] = value
    checked = Settings().override(values, where)
    if where.startswith("project file "):
        refuse_raised(checked, before, values, where)
    return {name: checked[name] for name in values}


def _is_read_by_each_search(name: str) -> bool:
    """A profile is chosen for one search: what the index was made or opened with cannot follow it."""
    if name == "search.profile":
        return False
    return name.startswith(("search.", _WEIGHT)) or name in _READ_BY_EACH_SEARCH


def _choices(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    known = list(names)
    closest = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{f'{closest[0]} instead? ' if closest else ''}there are: {', '.join(known)}"
