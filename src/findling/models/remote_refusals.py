"""Understanding why a provider refused: each words it in its own way."""

from __future__ import annotations

import json
import re

__all__ = ["is_oversize", "is_spent", "reason"]

_LONGEST_REASON = 200


def reason(body: bytes, secret: str = "") -> str:
    """What an error reply says, on one line, shortened, without control characters and without `secret`.

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
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}…"


def is_oversize(status: int, text: str) -> bool:
    """Whether a request was refused because it holds too many texts, or too much text in all."""
    return status == 413 or (status in (400, 422) and _OVERSIZE.search(text) is not None)


def is_spent(status: int, body: bytes) -> bool:
    """Whether there is no money left, which no waiting mends."""
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
    for key in ("error", "message", "detail"):
        if isinstance(reply, dict) and key in reply:
            return _message(reply[key])
    if isinstance(reply, list) and reply:
        return _message(reply[0])
    if isinstance(reply, dict):
        return _message(reply["msg"]) if "msg" in reply else ""
    return reply if isinstance(reply, str) else ""
