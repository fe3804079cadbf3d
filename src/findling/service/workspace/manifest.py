"""The manifest of a workspace: what it is, in a file that people and other programs can read.

What changes with every file (counts, fingerprints) is not in it: the store knows that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack
from zlib import crc32

from findling.domain.errors import FormatError, ManifestError
from findling.domain.strangers import read_json
from findling.service.workspace.quotas import Quota, effective_quota
from findling.service.workspace.workspace import is_name
from findling.stores.filesystem import write_whole

if TYPE_CHECKING:
    from findling.models.ports import Embedder
    from findling.service.settings.settings import Settings

__all__ = [
    "MANIFEST_FILE",
    "SCHEMA_VERSION",
    "Changes",
    "Manifest",
    "Model",
    "Preprocessing",
    "model_of",
    "preprocessing_of",
    "quota_of",
    "read_manifest",
    "write_manifest",
]

MANIFEST_FILE = "manifest.json"

SCHEMA_VERSION = "1.0"
"""A reader that knows a major number reads every file with it, and keeps the keys that it does not know."""


class Model(NamedTuple):
    """What has read the passages: its name, the length of its vectors, and whether they all have length 1."""

    name: str
    dim: int
    normalize: bool = True


class Preprocessing(NamedTuple):
    """What becomes of texts before they are indexed: how they are cut, and the fingerprint of the analysis of words."""

    chunker: str
    strategy: str
    size: int
    overlap: int
    unit: str
    analysis: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What the file says. `name` is empty for a workspace that goes by its folder, `root` null without files.

    `others` are the keys that a newer findling has written.
    """

    name: str = ""
    root: str | None = None
    model: Model | None = None
    preprocessing: Preprocessing | None = None
    created_at: str = ""
    shared: bool = False
    quota: Quota | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


class Changes(TypedDict, total=False):
    """What `write_manifest` may be told."""

    name: str
    root: str | None
    model: Model | None
    preprocessing: Preprocessing | None
    shared: bool
    quota: Quota | None


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of the workspace in a folder; None for one that has none yet.

    Raises FormatError when a newer findling wrote it, ManifestError when it is damaged.
    """
    path = folder / MANIFEST_FILE
    try:
        document = read_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:  # no JSON, or no UTF-8
        raise _damaged(path, str(error)) from error
    if not isinstance(document, dict):
        raise _damaged(path, "it is no JSON object")
    noted = document.pop("sum", None)
    if noted is not None and noted != _sum_of(document):
        raise _damaged(path, "it is not what was written")
    _check_version(document.pop("schemaVersion", None), path)
    try:
        return _manifest(document)
    except (TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def write_manifest(folder: Path, **changes: Unpack[Changes]) -> Manifest:
    """Bring the manifest up to date, or make it; what is not named stays. The caller holds the workspace's lock.

    An unchanged manifest is not written again. Raises as `read_manifest` and `write_whole` do.
    """
    before = read_manifest(folder)
    usual = Manifest(name=folder.name if is_name(folder.name) else "", created_at=_now())
    now = replace(before or usual, **changes)
    if now != before:
        document = _document(now)
        document["sum"] = _sum_of(document)
        write_whole(folder / MANIFEST_FILE, (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode())
    return now


def preprocessing_of(settings: Settings) -> Preprocessing:
    """What the settings say of it. Raises InvalidValueError for chunk settings that do not go together."""
    from findling.service.settings.options import chunk_plan
    from findling.text.analysis.analysis import FINGERPRINT

    plan = chunk_plan(settings)
    return Preprocessing(settings["chunk.preset"], plan.strategy, plan.size, plan.overlap, plan.unit, str(FINGERPRINT))


def model_of(embedder: Embedder | None) -> Model | None:
    """What the manifest says of a model; nothing as long as the length of its vectors is not known."""
    return Model(embedder.name, embedder.dimensions) if embedder is not None and embedder.dimensions else None


def quota_of(folder: Path, settings: Settings) -> Quota:
    """The limits of the workspace in a folder. Raises as `read_manifest` does."""
    manifest = read_manifest(folder)
    return effective_quota(manifest.quota if manifest else None, settings)


def _check_version(version: object, path: Path) -> None:
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+", version):
        raise _damaged(path, f"its schemaVersion is {version!r}")
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise FormatError(
            f"{path} has schemaVersion {version}, this findling knows {SCHEMA_VERSION}",
            hint="upgrade findling: `pip install --upgrade findling`",
        )


def _manifest(document: dict[str, Any]) -> Manifest:
    """The manifest; raises TypeError or ValueError that says what is wrong."""
    parts = {"model": Model, "preprocessing": Preprocessing, "quota": Quota}
    values = {name: _part(kind, name, document.pop(name, None)) for name, kind in parts.items()}
    manifest = Manifest(
        name=document.pop("name", ""),
        root=document.pop("root", None),
        created_at=document.pop("createdAt", ""),
        shared=document.pop("shared", False),
        others=document,
        **values,
    )
    wanted = {"name": str, "root": str | None, "created_at": str, "shared": bool}
    for name, kind in wanted.items():
        if not isinstance(getattr(manifest, name), kind):
            raise TypeError(f"{name} cannot be {getattr(manifest, name)!r}")
    if manifest.name and not is_name(manifest.name):
        raise ValueError(f"{manifest.name!r} is no workspace name")
    return manifest


_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("dim", "size", "overlap", *Quota._fields), int),
    "normalize": bool,
}


def _part(kind: type[Model | Preprocessing | Quota], name: str, value: object) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise TypeError(f"{name} cannot be {value!r}")
    known = {key: value[key] for key in kind._fields if key in value}
    for key, inner in known.items():
        wanted = _KINDS.get(key, str)
        if type(inner) is not wanted or (isinstance(inner, int) and inner < 0):
            raise TypeError(f"{name}.{key} cannot be {inner!r}")
    return kind(**known)


def _document(manifest: Manifest) -> dict[str, Any]:
    def part(value: Model | Preprocessing | Quota | None) -> dict[str, Any] | None:
        return value._asdict() if value is not None else None

    return {
        "schemaVersion": SCHEMA_VERSION,
        "name": manifest.name,
        "root": manifest.root,
        "model": part(manifest.model),
        "preprocessing": part(manifest.preprocessing),
        "createdAt": manifest.created_at,
        "shared": manifest.shared,
        "quota": part(manifest.quota),
        **manifest.others,
    }


def _sum_of(document: Mapping[str, Any]) -> int:
    return crc32(json.dumps(document, sort_keys=True).encode())


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _damaged(path: Path, why: str) -> ManifestError:
    return ManifestError(
        f"{path} is damaged: {why}; what is indexed is safe",
        hint="findling doctor --repair, which brings it back, not shared",
    )
