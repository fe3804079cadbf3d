"""Fetching a model from a hub: only when asked, resumable, checked, and used only when all of it is there."""

from __future__ import annotations

import errno
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from findling.domain.errors import DiskFullError, ModelDamagedError, ModelError, ProviderError
from findling.models.catalogue import ModelCard, card_of_folder, known_card, recorded_sha256, write_card
from findling.models.locating import digest_of, model_folder

PullProgress = Callable[[str, int, int], None]
"""Called with the name of a file, its bytes so far, and its size (0 when unknown)."""

_TIMEOUT_S = 10.0
_BLOCK = 1 << 18
_MOST_BREAKS = 3
"""Breaks in a row after which a transfer fails."""


def pull(
    card: ModelCard,
    models_home: Path,
    *,
    endpoint: str = "",
    on_progress: PullProgress | None = None,
    timeout: float = _TIMEOUT_S,
) -> Path:
    """Fetch the files of a model and return their folder; what is there and unharmed is not fetched again.

    `endpoint` is the hub, else HF_ENDPOINT, else huggingface.co. Raises ProviderError when the hub is unreachable,
    breaks off or lacks the model. Raises ModelDamagedError for a file with another sha256 than expected.
    """
    if not card.repository:
        raise ModelError(f"it is not known where {card.name} comes from", hint="findling models list")
    hub = (endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    if not hub.startswith(("http://", "https://")):
        raise ModelError(f"{hub} is no address of a hub", hint="set HF_ENDPOINT to an address such as https://host")
    folder = model_folder(card, models_home)
    base = f"{hub}/{quote(card.repository)}/resolve/main/"
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        known = recorded_sha256(folder)
        found = {}
        for file in _files_of(card):
            sha256 = known.get(file.target) or file.sha256
            digest = _present(folder / file.target, sha256) or _fetch(base, file, folder, sha256, on_progress, timeout)
            if digest:
                found[file.target] = digest
        write_card(folder, _completed(card, folder), found)
    return folder


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Name the folder of a model when it cannot be written. Raises DiskFullError or ModelError."""
    try:
        yield
    except OSError as error:
        kind = DiskFullError if error.errno == errno.ENOSPC else ModelError
        raise kind(
            f"{folder} cannot be written: {error.strerror}", hint="free some space, or set store.home"
        ) from error


class _ModelFile(NamedTuple):
    """A file to fetch: any of `sources` in the repository becomes `target`; one that is optional may be missing."""

    sources: tuple[str, ...]
    target: str
    sha256: str = ""
    optional: bool = False


def _files_of(card: ModelCard) -> list[_ModelFile]:
    known = known_card(card.name) is not None
    sources = (card.file,) if known else (card.file, "model.onnx")
    # The card of a package's model names the package's file, not the hub's.
    files = [_ModelFile(sources, "model.onnx", "" if card.package else card.sha256)]
    files.append(_ModelFile(tuple(f"{source}_data" for source in sources), "model.onnx_data", optional=True))
    files.append(_ModelFile(("tokenizer.json",), "tokenizer.json"))
    about = ("config.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json")
    return files + [_ModelFile((name,), name, optional=True) for name in about if not known]


def _completed(card: ModelCard, folder: Path) -> ModelCard:
    """The card to keep: that of the catalogue, or what the files of an unknown model say."""
    if known_card(card.name) is None:
        card = card_of_folder(folder)._replace(name=card.name, repository=card.repository)
    return card._replace(package="", sha256="")


def _present(target: Path, sha256: str) -> str:
    """The sha256 of a file that is there as it was; nothing when it has to be fetched."""
    if not sha256 or not target.is_file():
        return ""
    actual = digest_of(target)
    return actual if actual == sha256 else ""


def _fetch(
    base: str, file: _ModelFile, folder: Path, sha256: str, on_progress: PullProgress | None, timeout: float
) -> str:
    """Fetch one file and return its sha256; nothing for an optional one that the hub does not have."""
    target = folder / file.target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    if not any(_transfer(base + quote(source), part, on_progress, timeout) for source in file.sources):
        if file.optional:
            return ""
        raise ProviderError(f"the hub has no {base}{file.sources[0]}", hint="findling models list")
    actual = digest_of(part)
    _tag_file(part).unlink(missing_ok=True)
    if sha256 and actual != sha256:
        part.unlink()
        raise ModelDamagedError(
            f"{base}{file.sources[0]} has the sha256 {actual[:12]}… instead of {sha256[:12]}…",
            hint=f"if the model was renewed on purpose, remove {folder} and pull it again",
        )
    part.replace(target)
    return actual


def _transfer(url: str, part: Path, on_progress: PullProgress | None, timeout: float) -> bool:
    """Bring all of `url` into `part`, going on where an earlier transfer broke off; False when it is not there."""
    breaks = 0
    while True:
        before = _size(part)
        try:
            is_whole = _transfer_once(url, part, on_progress, timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 401, 403):  # the hub answers 401 for a model that does not exist
                return False
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not before:
                message = f"{url} was refused: {error.code} {error.reason}"
                raise ProviderError(message, hint="try again later") from error
            part.unlink()
            continue
        except (http.client.HTTPException, ConnectionError, TimeoutError, urllib.error.URLError) as error:
            if isinstance(error, urllib.error.URLError) or not _size(part):
                reason = getattr(error, "reason", error) or error
                message = f"{url} cannot be reached: {reason}"
                raise ProviderError(
                    message, hint="check the network; a model folder can be used by its path"
                ) from error
            is_whole = False
        if is_whole:
            return True
        breaks = 1 if _size(part) > before else breaks + 1
        if breaks >= _MOST_BREAKS:
            raise ProviderError(f"{url} broke off", hint="run the command again: it continues where it stopped")


def _transfer_once(url: str, part: Path, on_progress: PullProgress | None, timeout: float) -> bool:
    """One request; whether all of the file is there after it."""
    tag = _tag_file(part)
    here, headers = _size(part), {"User-Agent": "findling"}
    if here and tag.is_file():
        # The tag makes sure that the rest belongs to the same file as the beginning.
        headers |= {"Range": f"bytes={here}-", "If-Range": tag.read_text(encoding="utf-8")}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            here = 0
            tag.unlink(missing_ok=True)
            # Only a strong tag names one file byte for byte.
            if (mark := response.headers.get("ETag", "")) and not mark.startswith("W/"):
                tag.write_text(mark, encoding="utf-8")
        length = response.headers.get("Content-Length")
        size = here + int(length) if length else 0
        with part.open("ab" if here else "wb") as stream:
            while block := response.read(_BLOCK):
                stream.write(block)
                here += len(block)
                if on_progress is not None:
                    on_progress(part.name.removesuffix(".part"), here, size)
    return not size or here == size


def _tag_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
