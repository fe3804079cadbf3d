"""The target of a bundle: the workspace that imports it, and the root of that workspace."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.strangers import is_safe_path
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.manifest import write_manifest
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.jsonl_records import Record

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore

_SAMPLE = 20
"""Files whose presence tells whether a folder is the indexed one."""


def open_target(
    bundle: Bundle, workspace: str, tree: Path | None, settings: Settings | None, trust: frozenset[str]
) -> Engine:
    """The workspace with the name, or that of the indexed folder, which must be here then.

    The caller names that folder, or a bundle that is trusted to.
    """
    settings = settings or load_settings(".")
    name = workspace or settings["workspace.name"]
    if name:
        return open_engine(".", workspace=name, settings=settings)
    place = tree or _recorded_root(bundle, trust)
    hint = "--workspace NAME for one without files, or --root PATH to where they are"
    if place is None and (named := _recorded_root(bundle, frozenset({"root"}))):
        raise UsageError(
            f"{bundle.path} says that its files are in {named}, which nobody has said here",
            hint=f"--root {named} or --trust root if that is right, or --workspace NAME for one without files",
        )
    if place is None or not place.exists():
        raise UsageError(f"the files of {bundle.path} are not here" + (f": no {place}" if place else ""), hint=hint)
    if tree is None and not _holds_files(bundle, place):
        raise UsageError(f"{place} does not hold the files of {bundle.path}", hint=hint)
    engine = open_engine(place, settings=settings)
    if engine.scope:
        engine.close()
        raise UsageError(f"{place} belongs to the workspace of {engine.root}", hint="--workspace NAME")
    return engine


def settle_root(bundle: Bundle, engine: Engine, store: TruthStore, tree: Path | None, trust: frozenset[str]) -> None:
    """Set the root of the workspace: the folder `tree`, or the one that a trusted bundle names.

    A folder with other files is no root: they would replace those of the bundle. Raises InvalidValueError.
    """
    known = store.get_meta("root")
    place = tree or (Path(known) if known else _recorded_root(bundle, trust))
    if tree is not None and not _holds_files(bundle, tree, by_name=True):
        raise InvalidValueError(
            f"{tree} holds none of the files of {bundle.path}", hint="--root PATH to where they are"
        )
    if tree is None and not known and place is not None and place.exists() and not _holds_files(bundle, place):
        place = None
    store.set_meta("root", "" if place is None else str(place))
    write_manifest(engine.home, root=None if place is None else str(place))


def check_same_files(bundle: Bundle, known: str, tree: Path | None, trust: frozenset[str]) -> None:
    """Raise InvalidValueError for files of another folder, which the next refresh would delete."""
    theirs = tree or _recorded_root(bundle, trust)
    if bundle.counts["files"] and (theirs is None or str(theirs) != known):
        message = f"the files of {bundle.path} are not those that the workspace indexes: {known or 'none'}"
        raise InvalidValueError(message, hint=f"--root {known} if they are" if known else "another --workspace")


def _recorded_root(bundle: Bundle, trust: frozenset[str]) -> Path | None:
    """The folder of the bundle's files; None when there is none, it is a secret, or it is not trusted."""
    recorded = bundle.meta().get("root") if "root" in trust and bundle.counts["files"] else None
    is_path = isinstance(recorded, str) and "\0" not in recorded and Path(recorded).is_absolute()
    return Path(str(recorded)) if is_path else None


def _holds_files(bundle: Bundle, root: Path, *, by_name: bool = False) -> bool:
    """Whether most of the first files of a bundle are there with their sizes; `by_name` one of any size suffices."""
    if not bundle.counts["files"]:
        return True
    base = root.parent if root.is_file() else root
    rows = bundle.read("resources.jsonl", _file_size)
    sizes = list(islice((row for row in rows if row is not None), _SAMPLE))
    if by_name:
        return not sizes or any(_size_of(base / path) >= 0 for path, _ in sizes)
    return bool(sizes) and 2 * sum(_size_of(base / path) == size for path, size in sizes) >= len(sizes)


def _file_size(record: Record) -> tuple[str, int] | None:
    if not record["rid"].startswith("file:") or record["fingerprint"] is None:
        return None
    if not is_safe_path(record["path"]):
        raise ValueError(f"{record['path']!r:.200} does not lie below the folder that was indexed")
    return record["path"], int(record["fingerprint"]["size"])


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # not there, or no path at all
        return -1
