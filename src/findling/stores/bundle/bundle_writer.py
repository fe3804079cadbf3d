"""Write a bundle: a folder or an archive that appears as a whole, or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.stores.bundle.bundle import FILES, KIND, MANIFEST, SCHEMA_VERSION, is_bundle
from findling.stores.bundle.jsonl_records import Record, create_file, encode
from findling.stores.filesystem import FileErrors, discard, sync_folder

Part = tuple[str, Iterable[Record]]
"""The name of a file, and what its lines hold."""

_COUNTS = {name.removesuffix(".jsonl").replace("bm25", "chunks"): name for name in FILES if name.endswith(".jsonl")}
"""Counts of the manifest, each with the file that holds one item a line."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member of an archive, so that equal content makes equal archives."""

_Add = Callable[[str, Iterable[bytes]], None]


def write_bundle(
    target: Path, parts: Iterable[Part], about: Callable[[], Mapping[str, Any]], *, force: bool = False
) -> Record:
    """Write the parts (`FILES`, in that order) one line at a time, then the manifest; return the manifest.

    `about` gives more facts for the manifest when all parts are written. A name that ends in `.zip` makes an archive.
    `force` replaces another bundle. Raises InvalidValueError when something else is there, PathNotFoundError for a
    missing folder, ReadOnlyError and DiskFullError when the target cannot be written.
    """
    check_target(target, force)
    adding = _archive if target.suffix.lower() == ".zip" else _folder
    files: dict[str, Record] = {}
    with FileErrors(target), _drafted(target) as draft, adding(draft) as add:
        for name, records in parts:
            digest, size, lines = sha256(), 0, 0

            def counted(rows: Iterable[Record] = records) -> Iterator[bytes]:
                nonlocal size, lines
                for record in rows:
                    line = encode(record) + b"\n"
                    digest.update(line)  # noqa: B023 - used up before the next part begins
                    size, lines = size + len(line), lines + 1
                    yield line

            add(name, counted())
            files[name] = {"sha256": digest.hexdigest(), "bytes": size, "lines": lines}
        assert tuple(files) == FILES, "a bundle has all of its files"
        facts = dict(about())
        counts = {what: files[name]["lines"] for what, name in _COUNTS.items()} | facts.pop("counts", {})
        manifest = {"schemaVersion": SCHEMA_VERSION, "kind": KIND, **facts, "counts": counts, "files": files}
        add(MANIFEST, [json.dumps(manifest, ensure_ascii=False, indent=2).encode() + b"\n"])
    return manifest


def check_target(target: Path, force: bool) -> None:
    """Raise InvalidValueError or PathNotFoundError when a bundle cannot be put there."""
    if not target.absolute().parent.is_dir():
        raise PathNotFoundError(f"there is no folder {target.absolute().parent}", hint="create it first")
    if not target.exists() and not target.is_symlink():
        return
    if not force:
        raise InvalidValueError(f"{target} is there already", hint="--force, or another name")
    # `--force` deletes bundles, never anything else.
    if not is_bundle(target) and not (target.is_dir() and not any(target.iterdir())):
        raise InvalidValueError(f"{target} is there and is no bundle", hint="choose another name")


@contextmanager
def _drafted(target: Path) -> Iterator[Path]:
    """The path of a draft, which takes the place of the target as a whole; after a failure nothing is left of it."""
    draft, old = _beside(target, "partial"), _beside(target, "old")
    discard(draft)
    try:
        yield draft
        discard(old)
        if target.exists() and (target.is_dir() or draft.is_dir()):  # a file takes the place of a file in one step
            target.rename(old)
        draft.replace(target)
        sync_folder(target.parent)
        discard(old)
    except BaseException:
        discard(draft)
        raise


@contextmanager
def _folder(draft: Path) -> Iterator[_Add]:
    draft.mkdir(mode=0o700)

    def add(name: str, lines: Iterable[bytes]) -> None:
        with os.fdopen(create_file(draft / name), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())

    yield add
    sync_folder(draft)


@contextmanager
def _archive(draft: Path) -> Iterator[_Add]:
    with os.fdopen(create_file(draft), "w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

            def add(name: str, lines: Iterable[bytes]) -> None:
                member = zipfile.ZipInfo(name, _EPOCH)
                member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
                with archive.open(member, "w", force_zip64=True) as opened:
                    opened.writelines(lines)

            yield add
        file.flush()
        os.fsync(file.fileno())


def _beside(target: Path, state: str) -> Path:
    """The path of a draft; it has one name, so that drafts of killed processes never pile up."""
    return target.absolute().with_name(f".{target.name}.{state}")
