"""Settings as a document, for another process to work under."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from findling.domain.errors import InvalidValueError
from findling.service.settings.setting_list import Value
from findling.service.settings.settings import Settings, check_profile

_MODELS = ("semantic.model", "rerank.model")


def settings_document(settings: Settings) -> dict[str, Any]:
    """The settings that differ from the defaults, with their origins, and the profiles and types of settings files.

    Paths are absolute: another process may run in another folder, and have another `~`.
    """
    usual = Settings()
    changed = {
        name: [_anywhere(name, value), settings.origin(name)]
        for name, value in settings.items()
        if settings.origin(name) != "default" or value != usual[name]
    }
    profiles = [
        [profile, {name: _anywhere(name, value) for name, value in values.items()}, settings.profile_origin(profile)]
        for profile, values in settings.profiles.items()
    ]
    types = []
    if settings.types:
        from dataclasses import asdict

        types = [asdict(one) for one in settings.types.values()]
    return {"values": changed, "profiles": profiles, "types": types}


def read_settings(document: Mapping[str, Any]) -> Settings:
    """The settings that `settings_document` wrote. Raises UnknownSettingError or InvalidValueError."""
    try:
        by_origin: dict[str, dict[str, object]] = {}
        for name, (value, origin) in document["values"].items():
            by_origin.setdefault(origin, {})[name] = value
        settings = Settings()
        for origin, values in by_origin.items():
            settings = settings.override(values, origin)
        for name, values, origin in document["profiles"]:
            settings = settings.with_profiles({name: check_profile(values, origin)}, origin)
        if document["types"]:
            from findling.service.settings.type_plugins import read_types

            tables = {one["name"]: {key: one[key] for key in one if key != "name"} for one in document["types"]}
            settings = settings.with_types(read_types(tables, "another process"))
        return settings
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message, hint = f"these are no settings: {error!r}", "send what settings_document gives"
        raise InvalidValueError(message, hint=hint) from error


def _anywhere(name: str, value: Value) -> Value:
    """A value that means the same in every folder."""
    if name == "semantic.models" and isinstance(value, tuple):
        entries = [entry.partition(":") for entry in value]
        return tuple(f"{language}{colon}{_anywhere(_MODELS[0], model)}" for language, colon, model in entries)
    if value and (name == "store.home" or (name in _MODELS and _is_model_path(str(value)))):
        return str(Path(os.path.expanduser(str(value))).absolute())  # noqa: PTH111 - a `~name` of nobody stays one
    return value


def _is_model_path(chosen: str) -> bool:
    """Whether a model is named by its path, as `findling.models.locating` reads it."""
    if chosen in ("auto", "none"):
        return False
    from findling.models.catalogue import known_card
    from findling.models.remote.providers import is_remote_spec

    if is_remote_spec(chosen):
        return False
    is_written_so = chosen.startswith((".", "~")) or chosen.endswith(".onnx") or "\\" in chosen
    return is_written_so or (Path(chosen).is_dir() and known_card(chosen) is None)
