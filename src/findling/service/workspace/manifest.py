"""The manifest of a workspace: its name, root, model and quota, in a file for people and other programs.

Counts and fingerprints, which change with every file, are in the store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from findling.domain.errors import FormatError, ManifestError, StoreDamagedError
from findling.domain.values import read_json
from findling.service.workspace.quotas import Quota, effective_quota
from findling.service.workspace.workspace import is_name, place_of
from findling.stores.filesystem import write_whole

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.models.ports import Embedder
    from findling.service.settings.settings import Settings

MANIFEST_FILE = "manifest.json"

SCHEMA_VERSION = "1.0"
"""A reader of a major number reads every file with it, and keeps unknown keys."""

_QUOTA = "quota"
"""Name of the small value with the limits of the content, in a truth that hosts share."""


class Model(NamedTuple):
    """The model of the passages: its name, the length of its vectors, and whether they all have length 1."""

    name: str
    dim: int
    normalize: bool = True


class Preprocessing(NamedTuple):
    """The cut of texts before they are indexed, and the fingerprint of the analysis of words."""

    chunker: str
    strategy: str
    size: int
    overlap: int
    unit: str
    analysis: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Content of the file. `name` is empty for a workspace that goes by its folder, `root` null without files.

    `others` are the keys of a newer findling.
    """

    name: str = ""
    root: str | None = None
    model: Model | None = None
    preprocessing: Preprocessing | None = None
    created_at: str = ""
    shared: bool = False
    quota: Quota | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


_KEYS = {one.name: one.name for one in fields(Manifest) if one.name != "others"} | {"created_at": "createdAt"}
_PARTS: Mapping[str, type[Model | Preprocessing | Quota]] = {
    "model": Model,
    "preprocessing": Preprocessing,
    "quota": Quota,
}
_KINDS: Mapping[str, Any] = {"name": str, "root": str | None, "created_at": str, "shared": bool}
_INNER_KINDS = {**dict.fromkeys(("dim", "size", "overlap", *Quota._fields), int), "normalize": bool}


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of the workspace in a folder; None for one that has none yet.

    Raises FormatError for a file of a newer findling, ManifestError for a damaged one.
    """
    path = folder / MANIFEST_FILE
    try:
        document = read_json(path.read_bytes())
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        noted = document.pop("sum", None)
        if noted is not None and noted != _sum_of(document):
            raise ValueError("it is not what was written")
        version = document.pop("schemaVersion", None)
        if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+", version):
            raise ValueError(f"its schemaVersion is {version!r}")
        if version.partition(".")[0] == SCHEMA_VERSION.partition(".")[0]:
            return _manifest(document)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (TypeError, ValueError) as error:  # also: no JSON, no UTF-8
        message = f"{path} is damaged: {error}; what is indexed is safe"
        raise ManifestError(message, hint="findling doctor --repair, which brings it back, not shared") from error
    message = f"{path} has schemaVersion {version}, this findling knows {SCHEMA_VERSION}"
    raise FormatError(message, hint="upgrade findling: `pip install --upgrade findling`")


def write_manifest(folder: Path, **changes: Any) -> Manifest:
    """Update fields of the manifest, or create it. The caller holds the workspace's lock.

    An unchanged manifest is not written again. Raises as `read_manifest` and `write_whole` do.
    """
    before = read_manifest(folder)
    usual = Manifest(name=folder.name if is_name(folder.name) else "", created_at=_now())
    now = replace(before or usual, **changes)
    if now != before:
        document: dict[str, Any] = {"schemaVersion": SCHEMA_VERSION}
        for name, key in _KEYS.items():
            value = getattr(now, name)
            document[key] = value._asdict() if name in _PARTS and value is not None else value
        document |= now.others
        document["sum"] = _sum_of(document)
        write_whole(folder / MANIFEST_FILE, (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode())
    return now


def preprocessing_of(settings: Settings) -> Preprocessing:
    """The preprocessing under these settings. Raises InvalidValueError for a chunk preset that is none."""
    from findling.service.settings.settings import chunk_plan
    from findling.text.analysis.analysis import FINGERPRINT

    plan = chunk_plan(settings)
    return Preprocessing(settings["chunk.preset"], plan.strategy, plan.size, plan.overlap, plan.unit, str(FINGERPRINT))


def model_of(embedder: Embedder | None) -> Model | None:
    """The entry of a model; None until the length of its vectors is known."""
    return Model(embedder.name, embedder.dimensions) if embedder is not None and embedder.dimensions else None


def quota_of(folder: Path, settings: Settings, store: TruthStore) -> Quota:
    """The limits of the workspace in a folder: its own, then those of the settings. Raises as `read_manifest` does."""
    return effective_quota(own_quota(folder, store), settings)


def own_quota(folder: Path, store: TruthStore) -> Quota | None:
    """The limits that the workspace itself has. Raises as `read_manifest` does.

    A truth that hosts share holds those of its content; the disk is that of each host.
    """
    manifest = read_manifest(folder)
    own = (manifest.quota if manifest else None) or Quota()
    if place_of(folder) and (noted := store.get_meta(_QUOTA)) is not None:
        try:
            own = _part(Quota, _QUOTA, json.loads(noted))._replace(disk=own.disk)
        except (TypeError, ValueError) as error:
            raise StoreDamagedError(
                f"the quota of {folder.name} is damaged: {error}", hint="findling doctor"
            ) from error
    return own if any(own) else None


def share_quota(folder: Path, store: TruthStore, quota: Quota) -> None:
    """Note the limits of a workspace for all hosts that share its truth. The caller holds the write lock."""
    if place_of(folder):
        store.set_meta(_QUOTA, json.dumps({"resources": quota.resources, "text": quota.text}))


def _manifest(document: dict[str, Any]) -> Manifest:
    """The manifest. Raises TypeError or ValueError that names the wrong value."""
    values = {name: document.pop(key) for name, key in _KEYS.items() if key in document}
    for name, kind in _PARTS.items():
        values[name] = _part(kind, name, values.get(name))
    for name, kind in _KINDS.items():
        if name in values and not isinstance(values[name], kind):
            raise TypeError(f"{name} cannot be {values[name]!r}")
    if values.get("name") and not is_name(values["name"]):
        raise ValueError(f"{values['name']!r} is no workspace name")
    return Manifest(others=document, **values)


def _part(kind: type[Model | Preprocessing | Quota], name: str, value: object) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise TypeError(f"{name} cannot be {value!r}")
    known = {key: value[key] for key in kind._fields if key in value}
    for key, inner in known.items():
        if type(inner) is not _INNER_KINDS.get(key, str) or (isinstance(inner, int) and inner < 0):
            raise TypeError(f"{name}.{key} cannot be {inner!r}")
    return kind(**known)


def _sum_of(document: Mapping[str, Any]) -> int:
    return crc32(json.dumps(document, sort_keys=True).encode())


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
