"""Model files on this machine: their folders, and a check of their sha256. Nothing here asks the network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import ModelDamagedError, ModelError, ModelNotFoundError
from findling.domain.values import read_json
from findling.models.catalogue import CARD_FILE, CATALOGUE, ModelCard, card_of_folder, known_card, recorded_sha256

VERIFIED_FILE = "verified.json"
"""Record of checked model files: size, time of change and sha256, so that no search reads them whole again."""

_READ_HERE: dict[tuple[object, ...], str] = {}
"""The sha256 of files that this process has read: the next workspace with a home of its own saves 25 ms."""


class ModelFiles(NamedTuple):
    """A model that is here: its card, its files, and where it was found.

    `sha256` is what the model file must have (empty: nothing is known), `tokenizer` is `None` for a model that reads
    BERT's own vocabulary and does not bring it.
    """

    card: ModelCard
    model: Path
    tokenizer: Path | None
    origin: str
    sha256: str = ""


def locate(name_or_path: str, models_home: Path) -> ModelFiles:
    """The files of a model by name, by hub id, or in a folder.

    A path comes first, then an installed package, findling's own folder, the hub's cache, fastembed's cache.
    Raises ModelNotFoundError when it is in none of them, ModelError when its folder is not complete.
    """
    path = Path(name_or_path).expanduser()
    if _looks_like_path(name_or_path) or (path.is_dir() and known_card(name_or_path) is None):
        return _in_path(path)
    card = known_card(name_or_path) or ModelCard(name_or_path, name_or_path if "/" in name_or_path else "")
    found = _in_package(card) or _in_home(card, models_home) or next(_in_caches(card), None)
    if found is not None:
        return found
    if known_card(name_or_path) or card.repository:
        raise ModelNotFoundError(
            f"the model {name_or_path} is not installed", hint=f"findling models pull {name_or_path}"
        )
    names = ", ".join(known.name for known in CATALOGUE)
    raise ModelNotFoundError(f"no model is called {name_or_path}", hint=f"findling models list ({names})")


def model_folder(card: ModelCard, models_home: Path) -> Path:
    """Folder of a pulled model."""
    return models_home / card.name.replace("/", "--")


def verified_sha256(files: ModelFiles, models_home: Path, *, read_again: bool = False) -> str:
    """The sha256 of the model file, read only when the file has changed since it was read last.

    Raises ModelDamagedError when it is not the one that the model's card names.
    """
    actual = file_sha256(files.model, models_home, read_again=read_again)
    if files.sha256 and actual != files.sha256:
        raise ModelDamagedError(
            f"{files.model} is not the file that {files.card.name} should be: sha256 {actual[:12]}… "
            f"instead of {files.sha256[:12]}…",
            hint=f"reinstall {files.card.package}" if files.card.package else f"findling models pull {files.card.name}",
        )
    return actual


def file_sha256(path: Path, models_home: Path, *, read_again: bool = False) -> str:
    """The sha256 of a file, remembered under `models_home` for as long as its size and time of change stay."""
    try:
        facts = path.stat()
        memory = models_home / VERIFIED_FILE
        known = kept_lists(memory, 3)
        stamp = [facts.st_size, facts.st_mtime_ns]
        entry = known.get(str(path.absolute()))
        if not read_again and entry is not None and entry[:2] == stamp:
            return str(entry[2])
        file = (str(path.absolute()), facts.st_dev, facts.st_ino, *stamp, facts.st_ctime_ns)
        sha256 = "" if read_again else _READ_HERE.get(file, "")
        if not sha256:
            sha256 = _READ_HERE[file] = digest_of(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", hint="findling models list") from error
    keep(memory, json.dumps({**known, str(path.absolute()): [*stamp, sha256]}).encode())
    return sha256


def digest_of(path: Path) -> str:
    """The sha256 of a file. Raises OSError."""
    import hashlib  # 3 ms of OpenSSL that a search on a known file does not need

    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def keep(path: Path, data: bytes) -> None:
    """Keep what the next process would do again, all of it or nothing: a folder may be one that cannot be written."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_bytes(data)
        fresh.replace(path)


def kept_lists(path: Path, length: int) -> dict[str, list[Any]]:
    """Lists of this length by name, as `keep` has kept them in JSON; none from a file that is missing or damaged."""
    try:
        known = read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_sound = isinstance(known, dict) and all(isinstance(one, list) and len(one) == length for one in known.values())
    return known if is_sound else {}


def _looks_like_path(text: str) -> bool:
    return text.startswith((".", "~", "/")) or text.endswith(".onnx") or "\\" in text or Path(text).is_absolute()


def _in_path(path: Path) -> ModelFiles:
    if path.suffix == ".onnx" and path.is_file():
        folder = path.parent.parent if path.parent.name == "onnx" else path.parent
        return _files(card_of_folder(folder), path, folder, f"path {path}")
    if not path.is_dir():
        raise ModelNotFoundError(
            f"there is no model at {path}", hint="name a folder with model.onnx and tokenizer.json"
        )
    model = _model_in(path, "")
    if model is None:
        raise ModelNotFoundError(f"{path} holds no model.onnx", hint="name a folder with model.onnx and tokenizer.json")
    card = card_of_folder(path)
    return _files(card, model, path, f"path {path}", recorded_sha256(path).get(model.name) or card.sha256)


def _in_package(card: ModelCard) -> ModelFiles | None:
    spec = find_spec(card.package) if card.package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    model = folder / "model.onnx"
    return _files(card, model, folder, f"package {card.package}", card.sha256) if model.is_file() else None


def _in_home(card: ModelCard, models_home: Path) -> ModelFiles | None:
    folder = model_folder(card, models_home)
    # The card file is written last: a folder without it is a download that did not finish.
    if not (folder / CARD_FILE).is_file():
        return None
    model = folder / "model.onnx"
    if not model.is_file():
        raise ModelError(f"{folder} has lost its model.onnx", hint=f"findling models pull {card.name}")
    sha256 = recorded_sha256(folder).get("model.onnx", "")
    return _files(card_of_folder(folder), model, folder, f"folder {folder}", sha256)


def _in_caches(card: ModelCard) -> Iterator[ModelFiles]:
    """Snapshots of the model in the caches of the hub and of fastembed, which share one layout."""
    for cache in _cache_folders():
        for repository in filter(None, (card.repository, *card.mirrors)):
            for snapshot in _snapshots(cache / f"models--{repository.replace('/', '--')}"):
                model = _model_in(snapshot, card.file)
                if model is not None:
                    known = known_card(repository) is not None
                    own = card if known else card_of_folder(snapshot)._replace(name=card.name)
                    yield _files(own, model, snapshot, f"cache {cache}")


def _cache_folders() -> Iterator[Path]:
    hub = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    with suppress(RuntimeError):  # no home folder, hence no cache in it
        yield Path(hub).expanduser() if hub else Path(home).expanduser() / "hub"
    if os.environ.get("FASTEMBED_CACHE_PATH"):
        yield Path(os.environ["FASTEMBED_CACHE_PATH"])


def _snapshots(repository: Path) -> list[Path]:
    """The snapshots of a cached repository: that of its main branch first, then the newest."""
    try:
        snapshots = sorted((repository / "snapshots").iterdir(), key=lambda path: -path.stat().st_mtime)
    except OSError:
        return []
    main = repository / "refs" / "main"
    current = main.read_text(encoding="utf-8").strip() if main.is_file() else ""
    return sorted(snapshots, key=lambda path: path.name != current)


def _model_in(folder: Path, wanted: str) -> Path | None:
    """The model file of a folder: the wanted one, a plain one, or any other."""
    candidates = [folder / file for file in (wanted, "onnx/model.onnx", "model.onnx") if file]
    candidates += sorted(folder.glob("onnx/model*.onnx")) + sorted(folder.glob("model*.onnx"))
    return next((path for path in candidates if path.is_file()), None)


def _files(card: ModelCard, model: Path, folder: Path, origin: str, sha256: str = "") -> ModelFiles:
    places = (folder / "tokenizer.json", model.parent / "tokenizer.json")
    tokenizer = next((path for path in places if path.is_file()), None)
    if tokenizer is None and not card.package:
        raise ModelError(f"{folder} holds no tokenizer.json", hint="put the model's tokenizer.json beside it")
    return ModelFiles(card, model, tokenizer, origin, sha256)
