"""Dialects of providers: requests as plain data, replies checked before use."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from findling.domain.values import one_line
from findling.models.remote.providers import Provider

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

_LONGEST_REASON = 200


def reason(body: bytes, secret: str = "") -> str:
    """Message of an error reply on one line, shortened, without control characters and without `secret`.

    Empty when it says nothing.
    """
    text = body[:10_000].decode("utf-8", "replace")
    try:
        text = _message(json.loads(body))
    except (ValueError, RecursionError):
        if text.lstrip().startswith("<"):  # a page meant for people
            return ""
    if secret:
        text = text.replace(secret, "…")
    words = one_line(text)
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}…"


def is_oversize(status: int, text: str) -> bool:
    """Whether a request was refused because it holds too many texts, or too much text in all."""
    return status == 413 or (status in (400, 422) and _OVERSIZE.search(text) is not None)


def is_spent(status: int, body: bytes) -> bool:
    """Whether the account has no money left: no wait helps."""
    return status == 402 or (status == 429 and b"insufficient_quota" in body)


# «batch size 64 > maximum allowed batch size 32» (TEI), «batch size is invalid, it should not be larger than 10»,
# «Too many inputs. The max number of inputs is 16», «array length must be 2048 or less», «max 300000 tokens per
# request» (OpenAI), «total number of texts must be at most 96» (Cohere), «batch size … over the limit of 128» (Voyage).
_OVERSIZE = re.compile(
    r"too many|batch size|max(?:imum)? number of (?:inputs|texts|documents)|array length|tokens per request"
    r"|number of texts|max(?:imum)?[ _]batch",
    re.IGNORECASE,
)


def _message(reply: object) -> str:
    """The words in an error reply, wherever a provider puts them."""
    for key in ("error", "message", "detail", "Error"):  # the last is that of Zoekt
        if isinstance(reply, dict) and key in reply:
            return _message(reply[key])
    if isinstance(reply, list) and reply:
        return _message(reply[0])
    if isinstance(reply, dict):
        return _message(reply["msg"]) if "msg" in reply else ""
    return reply if isinstance(reply, str) else ""


class MalformedReplyError(Exception):
    """A reply that cannot be used; its text continues «the provider's reply …»."""


def embedding_request(
    provider: Provider, model: str, texts: Sequence[str], kind: str, dimensions: int
) -> dict[str, object]:
    """The body that asks for one vector a text; `kind` is `passage` or `query`."""
    if provider.dialect == "cohere":
        return {
            "model": model,
            "texts": list(texts),
            "input_type": "search_query" if kind == "query" else "search_document",
            "embedding_types": ["float"],
            **({"output_dimension": dimensions} if dimensions else {}),
        }
    body: dict[str, object] = {"model": model, "input": list(texts)}
    if provider.base64:
        body["encoding_format"] = "base64"
    if provider.dialect == "voyage":
        body["input_type"] = "query" if kind == "query" else "document"
    if dimensions:
        body["output_dimension" if provider.dialect == "voyage" else "dimensions"] = dimensions
    return body


def embedding_vectors(provider: Provider, reply: object, count: int) -> Vectors:
    """The vectors of a reply in the order of the texts, each of length 1. Raises MalformedReplyError."""
    if provider.dialect == "cohere":
        rows = [_values(row) for row in _listed(_at(_at(reply, "embeddings"), "float"), "embeddings.float", count)]
    else:
        rows = [_values(item.get("embedding")) for item in _in_order(reply, "data", count)]
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise MalformedReplyError(f"has vectors of different or no length: {sorted(lengths)}")
    matrix = np.stack(rows)
    norms = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(norms[:, 0]) | (norms[:, 0] == 0))
    if bad.size:
        raise MalformedReplyError(f"has no usable numbers in vector {bad[0]}: zeros, infinite or not numbers at all")
    return np.asarray(matrix / norms, dtype=np.float32)


def rerank_request(provider: Provider, model: str, query: str, texts: Sequence[str]) -> dict[str, object]:
    """The body that asks how well each text answers the query; every provider then scores all of them."""
    if provider.rerank_dialect == "tei":
        return {"query": query, "texts": list(texts), "truncate": True, "raw_scores": False}
    return {"model": model, "query": query, "documents": list(texts)}


def rerank_scores(provider: Provider, reply: object, count: int) -> list[float]:
    """The scores of a reply as they are, in the order of the texts. Raises MalformedReplyError."""
    if provider.rerank_dialect == "tei":
        reply = {"results": reply}
    items = _in_order(reply, "data" if provider.rerank_dialect == "voyage" else "results", count)
    scores = [item.get("score" if provider.rerank_dialect == "tei" else "relevance_score") for item in items]
    for number, score in enumerate(scores):
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise MalformedReplyError(f"has no usable score for text {number}")
    return [float(score) for score in scores if score is not None]


def probabilities(scores: Sequence[float]) -> list[float]:
    """Scores between 0 and 1: as they are if they all lie there, else through a sigmoid; the order stays."""
    return list(scores) if all(0.0 <= score <= 1.0 for score in scores) else [_sigmoid(score) for score in scores]


def chat_request(provider: Provider, model: str, system: str, user: str, max_tokens: int) -> dict[str, object]:
    """The body that asks for an answer. No temperature: some models accept only their own."""
    if provider.chat_dialect == "anthropic":
        told: dict[str, object] = {"system": system} if system else {}
        said = [{"role": "user", "content": user}]
        return {"model": model, "messages": said, "max_tokens": max_tokens, **told}
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": user})
    return {"model": model, "messages": messages, provider.output_tokens: max_tokens}


def chat_words(provider: Provider, reply: object) -> str:
    """Answer of the model. Raises MalformedReplyError."""
    words = _blocks(reply) if provider.chat_dialect == "anthropic" else _first_choice(reply)
    if not words.strip():
        raise MalformedReplyError("has no words in it")
    return words.strip()


def _first_choice(reply: object) -> str:
    choices = _at(reply, "choices")
    content = _at(_at(choices[0] if isinstance(choices, list) and choices else None, "message"), "content")
    return content if isinstance(content, str) else ""


def _blocks(reply: object) -> str:
    """The texts of a list of blocks; thoughts and the like are none."""
    blocks = _at(reply, "content")
    texts = [_at(block, "text") for block in blocks if _at(block, "type") == "text"] if isinstance(blocks, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def _at(reply: object, key: str) -> object:
    """The value of a key; None for what is no object, or has no such key."""
    return reply.get(key) if isinstance(reply, dict) else None


def _listed(items: object, name: str, count: int) -> list[Any]:
    """The items of a list that has one for each text."""
    if not isinstance(items, list):
        raise MalformedReplyError(f"has no list {name!r}")
    if len(items) != count:
        raise MalformedReplyError(f"has {len(items)} items for {count} texts")
    return items


def _in_order(reply: object, key: str, count: int) -> list[dict[str, Any]]:
    """The items of a list by their `index`: all of them once, whatever order they came in."""
    placed: dict[int, dict[str, Any]] = {}
    for item in _listed(_at(reply, key), key, count):
        index = _at(item, "index")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count or index in placed:
            raise MalformedReplyError(f"has an item with a missing, repeated or wrong index: {index!r:.20}")
        placed[index] = item
    return [placed[index] for index in range(count)]


def _values(embedding: object) -> Vectors:
    """One vector, written as a list of numbers or as the base64 of little-endian 32-bit floats."""
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
        if isinstance(embedding, list):
            with np.errstate(over="ignore"):  # what does not fit becomes infinite, which is refused later
                row = np.asarray(embedding, dtype=np.float64).astype(np.float32)
            if row.ndim == 1:
                return row
    except (TypeError, ValueError, OverflowError, binascii.Error):
        pass
    raise MalformedReplyError("has a vector that is not a list of numbers")


def _sigmoid(score: float) -> float:
    if score >= 0:
        return 1.0 / (1.0 + math.exp(-score))
    small = math.exp(score)
    return small / (1.0 + small)
