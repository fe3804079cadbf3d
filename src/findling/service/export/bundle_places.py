"""Where a bundle goes: which workspace takes it in, and which folder that workspace follows from then on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, PathNotFoundError, UsageError
from findling.domain.strangers import is_safe_path
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.manifest import write_manifest
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.jsonl_records import Record

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore

__all__ = ["check_same_files", "existing", "open_target", "recorded_root", "settle_root"]

_SAMPLE = 20
"""Files that are looked for to tell whether a folder is the one that was indexed."""


def open_target(
    bundle: Bundle, workspace: str, tree: Path | None, settings: Settings | None, trust: frozenset[str]
) -> Engine:
    """The workspace with the name, or that of the folder that was indexed, which must be here then.

    Where that folder is says the caller, or a bundle that is trusted to.
    """
    settings = settings or load_settings(".")
    name = workspace or settings["workspace.name"]
    if name:
        return open_engine(".", workspace=name, settings=settings)
    place = tree or recorded_root(bundle, trust)
    hint = "--workspace NAME for one without files, or --root PATH to where they are"
    if place is None and (told := recorded_root(bundle, frozenset({"root"}))):
        raise UsageError(
            f"{bundle.path} says that its files are in {told}, which nobody has said here",
            hint=f"--root {told} or --trust root if that is right, or --workspace NAME for one without files",
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
    """Say what the workspace follows from now on.

    That is the folder that was named, or the one that a trusted bundle names unless other files are there: they would
    take the place of those in the bundle. Raises InvalidValueError when none of the files is in the folder that was
    named.
    """
    known = store.get_meta("root")
    place = tree or (Path(known) if known else recorded_root(bundle, trust))
    if tree is not None and not _holds_files(bundle, tree, by_name=True):
        raise InvalidValueError(
            f"{tree} holds none of the files of {bundle.path}", hint="--root PATH to where they are"
        )
    if tree is None and not known and place is not None and place.exists() and not _holds_files(bundle, place):
        place = None
    store.set_meta("root", "" if place is None else str(place))
    write_manifest(engine.home, root=None if place is None else str(place))


def check_same_files(bundle: Bundle, known: str, tree: Path | None, trust: frozenset[str]) -> None:
    """Raise InvalidValueError for files of another folder, which would be gone with the next look at this one."""
    theirs = tree or recorded_root(bundle, trust)
    if bundle.counts["files"] and (theirs is None or str(theirs) != known):
        raise InvalidValueError(
            f"the files of {bundle.path} are not those that the workspace indexes: {known or 'none'}",
            hint=f"--root {known} if they are" if known else "another --workspace",
        )


def existing(root: Path | str) -> Path:
    """The path, in full. Raises PathNotFoundError when it is not there."""
    try:
        return Path(root).expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise PathNotFoundError(f"there is no {root}", hint="name a folder or file that exists") from error


def recorded_root(bundle: Bundle, trust: frozenset[str]) -> Path | None:
    """The folder that the bundle's files were in; None when there is none, it is a secret, or it is not trusted."""
    if "root" not in trust:
        return None
    recorded = bundle.meta().get("root")
    is_path = isinstance(recorded, str) and "\0" not in recorded and Path(recorded).is_absolute()
    is_place = is_path and bundle.counts["files"]
    return Path(str(recorded)) if is_place else None


def _holds_files(bundle: Bundle, root: Path, *, by_name: bool = False) -> bool:
    """Whether most of the first files of a bundle are there, each with its size; `by_name` one of any size will do."""
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
