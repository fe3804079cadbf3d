"""The providers findling knows, as data: where they listen, what they call their models, which words they use.

Loads nothing heavy, so that anyone may ask whether a name means a provider.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from findling.domain.errors import InvalidValueError

__all__ = ["PROVIDERS", "Provider", "is_remote_spec", "prefixes", "split_spec"]


class Provider(NamedTuple):
    """One service or server; an empty path means that it does not offer the task.

    `batch` is how many texts go into one request. `key_variable` names the environment variable of the API key and is
    empty for a server that wants none. `dialect` and `rerank_dialect` choose the form of requests and replies. `base64`
    asks for vectors in a quarter of the bytes, `output_tokens` names the limit of an answer.
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
    local: bool = False


_ALL = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        100,
        embed_model="text-embedding-3-small",
        chat_model="gpt-4o-mini",
        base64=True,
        output_tokens="max_completion_tokens",
    ),
    Provider(
        "voyage",
        "https://api.voyageai.com/v1",
        "VOYAGE_API_KEY",
        128,
        embed_model="voyage-4",
        rerank_model="rerank-2.5",
        rerank_path="/rerank",
        chat_path="",
        dialect="voyage",
        rerank_dialect="voyage",
        base64=True,
    ),
    # Its own way to embed rather than the one modelled on OpenAI: only that tells a query from a document.
    Provider(
        "cohere",
        "https://api.cohere.com",
        "COHERE_API_KEY",
        96,
        embed_model="embed-v4.0",
        rerank_model="rerank-v3.5",
        chat_model="command-a-03-2025",
        embed_path="/v2/embed",
        rerank_path="/v2/rerank",
        chat_path="/compatibility/v1/chat/completions",
        dialect="cohere",
    ),
    Provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        50,
        embed_model="openai/text-embedding-3-small",
        rerank_model="cohere/rerank-v3.5",
        chat_model="deepseek/deepseek-chat",
        rerank_path="/rerank",
    ),
    Provider(
        "ollama",
        "http://localhost:11434/v1",
        "",
        256,
        embed_model="nomic-embed-text",
        chat_model="llama3.2",
        local=True,
    ),
    Provider(
        "lmstudio", "http://localhost:1234/v1", "", 256, embed_model="text-embedding-nomic-embed-text-v1.5", local=True
    ),
    Provider("vllm", "http://localhost:8000/v1", "", 256, rerank_path="/rerank", base64=True, local=True),
    Provider(
        "tei",
        "http://localhost:8080",
        "",
        256,
        embed_path="/v1/embeddings",
        rerank_path="/rerank",
        chat_path="",
        rerank_dialect="tei",
        local=True,
    ),
)

PROVIDERS = {provider.name: provider for provider in _ALL}


def is_remote_spec(spec: str) -> bool:
    """Whether a model's name has the form PROVIDER:MODEL; not so `C:\\models`, a web address or a plain name."""
    return _SPEC.match(spec) is not None


def split_spec(spec: str, task: str) -> tuple[Provider, str]:
    """The provider and the model of `PROVIDER:MODEL` for the task `embed`, `rerank` or `chat`.

    Raises InvalidValueError for an unknown provider, a task it does not offer, and a missing model without a default.
    """
    name, _, model = spec.partition(":")
    provider = PROVIDERS.get(name.lower())
    if provider is None:
        raise InvalidValueError(
            f"{spec!r}: there is no provider {name!r}", hint=f"Known providers: {', '.join(PROVIDERS)}."
        )
    if not getattr(provider, f"{task}_path"):
        able = ", ".join(other.name for other in _ALL if getattr(other, f"{task}_path"))
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
    for family, query, passage in _FAMILIES:
        if family in lowered:
            return query, passage
    return "", ""


# Two letters at least before the colon: one is a drive.
_SPEC = re.compile(r"[A-Za-z][\w-]+:(?![/\\])\S*\Z")

_FIND_PASSAGES = "Represent this sentence for searching relevant passages: "
_FAMILIES = (
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
    (
        "qwen3-embedding",
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        "",
    ),
    ("e5-mistral", "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ", ""),
    ("arctic-embed2", "query: ", ""),
    ("arctic-embed-m-v2", "query: ", ""),
    ("arctic-embed-l-v2", "query: ", ""),
    ("arctic-embed", _FIND_PASSAGES, ""),
    ("mxbai-embed", _FIND_PASSAGES, ""),
    ("bge-small-en", _FIND_PASSAGES, ""),
    ("bge-base-en", _FIND_PASSAGES, ""),
    ("bge-large-en", _FIND_PASSAGES, ""),
    ("e5-small", "query: ", "passage: "),
    ("e5-base", "query: ", "passage: "),
    ("e5-large", "query: ", "passage: "),
)
