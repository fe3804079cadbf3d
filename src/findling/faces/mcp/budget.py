"""How much an answer may take: an estimate of tokens, and what is left out when there are too many."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

__all__ = ["Budget", "compact_json", "count_tokens", "end_of_line", "fit_answer", "fit_facts", "fit_text"]

_ASCII_PER_TOKEN = 4
_LAST_LATIN = "\u024f"

_SNIPPET_STEPS = (400, 240, 120, 60, 0)
"""Characters of a snippet that are kept, step by step, before any result is dropped."""

_LEAST_DROPPED = 0.2
"""Share of a text that may be given up so that it ends with a whole line."""


_LEAST_TEXT = 200


class Budget(NamedTuple):
    """What one answer may take, both at once."""

    tokens: int
    chars: int

    def allows(self, document: object) -> bool:
        """Whether a document, as compact JSON, keeps to it."""
        text = compact_json(document)
        return len(text) <= self.chars and count_tokens(text) <= self.tokens


def compact_json(document: object) -> str:
    """A document as JSON without spaces and with letters as they are; lone surrogates, which UTF-8 lacks, become ?."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def count_tokens(text: str) -> int:
    """About how many tokens a text takes: four ASCII letters each, two Latin ones, and one of any other script.

    It errs on the high side: models of today take 1.2 to 2 Chinese letters for a token.
    """
    if text.isascii():
        return -(-len(text) // _ASCII_PER_TOKEN)
    plain = sum(map(str.isascii, text))
    latin = sum(not letter.isascii() and letter <= _LAST_LATIN for letter in text)
    return -(-plain // _ASCII_PER_TOKEN) + -(-latin // 2) + len(text) - plain - latin


def fit_answer(document: dict[str, Any], budget: Budget) -> tuple[dict[str, Any], int]:
    """The answer of a search within its budget, and how many of its results are left.

    Snippets become shorter first, then results go from the end; `truncated` and `left_out` say so. What is not about
    results goes last of all.
    """
    if budget.allows(document):
        return document, len(document["results"])
    results = document["results"]
    for shorter in _shortened(results):
        fitted = {**document, "results": shorter, "truncated": True, "left_out": "parts of snippets"}
        if budget.allows(fitted):
            return fitted, len(results)
    fewest = list(_shortened(results))[-1]

    def with_first(count: int) -> dict[str, Any]:
        told = f"the last {len(results) - count} of {len(results)} results; ask with a larger max_chars or next_cursor"
        return {**document, "results": fewest[:count], "truncated": True, "left_out": told}

    kept = _most(len(results) - 1, lambda count: budget.allows(with_first(count)))
    if kept > 0:
        return with_first(kept), kept
    return fit_facts(with_first(0), budget, kept=("left_out", "next_cursor", "search_type", "quality")), 0


def fit_facts(document: dict[str, Any], budget: Budget, kept: Collection[str] = ()) -> dict[str, Any]:
    """The document within its budget: the longest values are emptied first, and those that are `kept` never."""
    emptied: dict[type, Any] = {str: "", list: [], dict: {}}
    while not budget.allows(document):
        sizes = {
            name: len(compact_json(value))
            for name, value in document.items()
            if name not in kept and value and type(value) in emptied
        }
        if not sizes:
            break
        longest = max(sizes, key=lambda name: sizes[name])
        document = {**document, longest: emptied[type(document[longest])]}
    return document


def fit_text(document: dict[str, Any], key: str, budget: Budget) -> dict[str, Any]:
    """The document with as much of one text as its budget allows, to the end of a line where that loses little.

    Whatever the budget, there is some of it: whoever reads on must get on.
    """
    text = document[key]
    if budget.allows(document):
        return document
    size = max(_most(len(text), lambda count: budget.allows({**document, key: text[:count]})), _LEAST_TEXT)
    return {**document, key: text[: end_of_line(text, size)]}


def end_of_line(text: str, size: int) -> int:
    """Where to cut a text that may be `size` long: behind a line, unless that would give up a good part of it."""
    if size >= len(text):
        return len(text)
    end = text.rfind("\n", 0, size) + 1
    return end if end >= size * (1 - _LEAST_DROPPED) else size


def _shortened(results: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The results with ever shorter snippets; in the last steps without what can be had by other means."""
    for size in _SNIPPET_STEPS:
        yield [_cut(result, size) for result in results]
    yield [{**_cut(result, 0), "preview": "", "why": result["why"][:1], "metadata": {}} for result in results]


def _cut(result: dict[str, Any], size: int) -> dict[str, Any]:
    snippet = result["snippet"]
    return result if len(snippet) <= size else {**result, "snippet": f"{snippet[:size]}…" if size else ""}


def _most(upper: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `upper` that fits, -1 for none; whatever is below one that fits does so, too."""
    low, high = -1, upper
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
