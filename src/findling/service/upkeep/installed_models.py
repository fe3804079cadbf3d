"""Models on this machine: those of the catalogue, pulling them, and trying one out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from findling.domain.errors import FindlingError, InvalidValueError, ModelError, ModelNotFoundError
from findling.models.catalogue import CATALOGUE, ModelCard, known_card
from findling.models.locating import locate, verified_sha256
from findling.models.ports import Embedder, Reranker
from findling.models.pulling import pull
from findling.models.remote.providers import is_remote_spec
from findling.service.index.model_choice import choose_embedder, choose_reranker, find_model, models_home
from findling.service.settings.settings import Settings

MODEL_SETTINGS = {"embedder": "semantic.model", "reranker": "rerank.model"}


def list_models(settings: Settings, on_problem: Callable[[FindlingError], None]) -> list[dict[str, Any]]:
    """The models of the catalogue, where each is installed, and whether it is in use; a choice may have a problem."""
    home, in_use = models_home(settings), set()
    for setting in MODEL_SETTINGS.values():
        if is_remote_spec(settings[setting]):
            continue
        try:
            files = find_model(settings, setting)
        except (ModelError, InvalidValueError) as error:
            on_problem(error)
        else:
            in_use |= {files.card.name} if files is not None else set()
    return [
        {
            "name": card.name,
            "repository": card.repository,
            "kind": card.kind,
            "dimensions": card.dimensions,
            "size": card.size,
            "licence": card.licence,
            "languages": card.languages,
            "installed": _where(card, home),
            "in_use": card.name in in_use,
        }
        for card in CATALOGUE
    ]


def pull_model(
    name: str, settings: Settings, *, on_progress: Callable[[str, int, int], None] | None = None
) -> tuple[str, Path]:
    """Fetch a model of the catalogue, or ORG/NAME of the hub; its name and its folder. Raises ModelNotFoundError."""
    card = known_card(name) or (ModelCard(name, name) if name.count("/") == 1 else None)
    if card is None:
        names = ", ".join(known.name for known in CATALOGUE)
        raise ModelNotFoundError(f"no model is called {name}", hint=f"one of {names}, or ORG/NAME of the hub")
    return card.name, pull(card, models_home(settings), on_progress=on_progress)


def check_choice(name: str, settings: Settings) -> tuple[str, str]:
    """The setting and the value that choose a model, once it has read a few texts. Raises ModelError."""
    key = MODEL_SETTINGS["embedder"]
    if name in ("auto", "none"):
        return key, name
    if is_remote_spec(name):
        choose_embedder(settings.override({key: name}, "models use"))
        return key, name
    files = locate(name, models_home(settings))
    key = MODEL_SETTINGS[files.card.kind]
    # A folder is named from any folder that findling is called in next.
    value = str(Path(name).expanduser().absolute()) if files.origin.startswith("path ") else name
    _try_out(settings.override({key: value}, "models use"), key)
    return key, value


def examine_model(name: str | None, settings: Settings) -> dict[str, Any] | None:
    """Facts of a local model, by default the one in use: its file, its speed, its opinion of two pairs of texts."""
    home = models_home(settings)
    files = locate(name, home) if name else find_model(settings, "semantic.model")
    if files is None:
        return None
    sha256 = verified_sha256(files, home, read_again=True)
    key = MODEL_SETTINGS[files.card.kind]
    return {
        "name": files.card.name,
        "kind": files.card.kind,
        "origin": files.origin,
        "sha256": sha256,
        "checked": bool(files.sha256),
        **_try_out(settings.override({key: name or settings[key]}, "models use --try"), key),
    }


_QUERY = "cat sleeping on carpet"
_RELATED = "The feline dozed off upon the rug."
_UNRELATED = "Quarterly revenue rose by four per cent."
_PASSAGES = 32


def _try_out(settings: Settings, key: str) -> dict[str, Any]:
    """Rate two pairs with a model, and measure its speed. Raises ModelError for one that cannot tell them apart."""
    embedder = choose_embedder(settings) if key == MODEL_SETTINGS["embedder"] else None
    reranker = choose_reranker(settings) if embedder is None else None
    model: Embedder | Reranker | None = embedder or reranker
    if model is None:
        raise ModelError(f"{key} = {settings[key]} names no model", hint="findling models list")
    dimensions = 0
    if embedder is not None:
        vectors = embedder.embed([_RELATED, _UNRELATED]) @ embedder.embed([_QUERY], "query")[0]
        related, unrelated, dimensions = float(vectors[0]), float(vectors[1]), embedder.dimensions
    elif reranker is not None:
        related, unrelated = reranker.rerank(_QUERY, [_RELATED, _UNRELATED])
    if not related > unrelated:
        raise ModelError(
            f"{model.name} finds an unrelated passage closer ({unrelated:.3f}) than a related one ({related:.3f})",
            hint="check pooling and prefixes in the model's findling-model.json",
        )
    passages = [f"{number}. {_RELATED} {_UNRELATED * 6}" for number in range(_PASSAGES)]
    began = time.perf_counter()
    if embedder is not None:
        embedder.embed(passages)
    elif reranker is not None:
        reranker.rerank(_QUERY, passages)
    speed = _PASSAGES / max(time.perf_counter() - began, 1e-9)
    facts = {"dimensions": dimensions} if dimensions else {}
    return {
        **facts,
        "passages_per_second": round(speed, 1),
        "related": round(related, 3),
        "unrelated": round(unrelated, 3),
    }


def _where(card: ModelCard, home: Path) -> str:
    try:
        return locate(card.name, home).origin
    except ModelNotFoundError:
        return ""
    except ModelError as error:
        return f"damaged: {error.message}"
