"""The providers findling knows, as data: addresses, models, dialects. It loads nothing heavy, for `is_remote_spec`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError


class Provider(NamedTuple):
    """One service or server; an empty path means that it does not offer the task.

    `batch` is how many texts go into one request. `key_variable` names the environment variable of the API key and is
    empty for a server that wants none. `dialect` and `rerank_dialect` choose the form of requests and replies. `base64`
    asks for vectors in a quarter of the bytes, `output_tokens` names the limit of an answer. Cohere embeds in its own
    dialect rather than OpenAI's: only that tells a query from a document. `headers` go with every request; the key goes
    in `key_header`, as a bearer token in the usual one.
    """

    name: str
    base_url: str
    key_variable: str
    batch: int
    embed_model: str = ""
    rerank_model: str = ""
    chat_model: str = ""
    embed_path: str = "/embeddings"
    rerank_path: str = ""
    chat_path: str = "/chat/completions"
    dialect: str = "openai"
    rerank_dialect: str = "cohere"
    base64: bool = False
    output_tokens: str = "max_tokens"
    chat_dialect: str = "openai"
    headers: Mapping[str, str] = {}
    key_header: str = "Authorization"


@cache
def _table() -> dict[str, Any]:
    import json  # which a search without a provider does not need

    return json.loads(Path(__file__).with_name("data").joinpath("providers.json").read_bytes())  # type: ignore[no-any-return]


@cache
def providers() -> dict[str, Provider]:
    """The providers by name."""
    return {entry["name"]: Provider(**entry) for entry in _table()["providers"]}


def is_remote_spec(spec: str) -> bool:
    """Whether a model's name has the form PROVIDER:MODEL; not so `C:\\models`, a web address or a plain name."""
    return _SPEC.match(spec) is not None


def split_spec(spec: str, task: str) -> tuple[Provider, str]:
    """The provider and the model of `PROVIDER:MODEL` for the task `embed`, `rerank` or `chat`.

    Raises InvalidValueError for an unknown provider, a task it does not offer, and a missing model without a default.
    """
    name, _, model = spec.partition(":")
    provider = providers().get(name.lower())
    if provider is None:
        raise InvalidValueError(
            f"{spec!r}: there is no provider {name!r}", hint=f"Known providers: {', '.join(providers())}."
        )
    if not getattr(provider, f"{task}_path"):
        able = ", ".join(other.name for other in providers().values() if getattr(other, f"{task}_path"))
        raise InvalidValueError(f"{provider.name} has no models for the task {task!r}", hint=f"These have: {able}.")
    model = model.strip() or getattr(provider, f"{task}_model")
    if not model:
        raise InvalidValueError(
            f"{provider.name} has no default model for the task {task!r}",
            hint=f"Name the model that the server runs: {provider.name}:MODEL.",
        )
    return provider, model


def prefixes(model: str) -> tuple[str, str]:
    """Prefixes of a query and of a passage for a model of open weights; servers do not add them."""
    lowered = model.lower()
    for family, query, passage in _table()["prefixes"]:
        if family in lowered:
            return query, passage
    return "", ""


# Two letters at least before the colon: one is a drive.
_SPEC = re.compile(r"[A-Za-z][\w-]+:(?![/\\])\S*\Z")
