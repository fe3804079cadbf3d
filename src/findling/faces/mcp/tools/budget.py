"""The budget of an answer: an estimate of tokens, and cuts when there are too many."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from findling.domain.values import counted
from findling.faces.mcp.tools.tool_results import DOCUMENT_ADDRESS, cut

__all__ = ["Budget", "compact_json", "count_tokens", "end_of_line", "fit_answer", "fit_facts", "fit_text"]

_ASCII_PER_TOKEN = 4
_LAST_LATIN = "\u024f"

_SNIPPET_STEPS = (400, 240, 120, 60, 0)
"""Characters of a snippet that are kept, step by step, before any result is dropped."""

_LEAST_DROPPED = 0.2
"""Share of a text that may be given up so that it ends with a whole line."""

_LEAST_TEXT = 20
"""The least characters of a text: a reader of its parts must get on."""

_LONGEST_TOLD = 90


class Budget(NamedTuple):
    """The limits of one answer; both hold."""

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


def fit_answer(document: dict[str, Any], budget: Budget, *, can_go_on: bool = True) -> tuple[dict[str, Any], int]:
    """The answer of a search within its budget, and how many of its results are left: one at least, if there is any.

    Snippets become shorter first, then results go from the end; `truncated` and `left_out` say so. What is not about
    results goes last of all. `can_go_on` says that a cursor behind what is left will be told.
    """
    results = document["results"]
    if budget.allows(document):
        return document, len(results)
    steps = list(_shortened(results))
    for shorter, told in steps:
        fitted = {**document, "results": shorter, "truncated": True, "left_out": told}
        if budget.allows(fitted):
            return fitted, len(results)
    fewest = steps[-1][0]

    def withcut(count: int, told: str = "x" * _LONGEST_TOLD) -> dict[str, Any]:
        return {**document, "results": fewest[:count], "truncated": True, "left_out": told}

    most = max(0, len(results) - 1)
    kept = max(min(1, len(results)), _most(most, lambda count: budget.allows(withcut(count))))
    # Where tokens alone would have allowed one more, it is the characters that are too few.
    is_short = kept < len(results) and Budget(budget.tokens, 1 << 62).allows(withcut(kept + 1))
    fitted = withcut(kept, _told(kept, len(results), more_chars=is_short, can_go_on=can_go_on))
    never = ("results", "left_out", "next_cursor", "search_type", "quality")
    least = fit_facts(fitted, budget, kept=never)
    if not budget.allows(least):
        barest = {**fitted, "results": [_barest(result) for result in fitted["results"]]}
        least = fit_facts(barest, budget, kept=never)
    return least, kept


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
    """The document with as much of one text as its budget allows, up to a line end where that loses little.

    Even the smallest budget gives some of it: a reader of its parts must get on.
    """
    text = document[key]
    # No text is shorter than its tokens at their longest: of 16 MB, all but the beginning need not be looked at.
    longest = min(len(text), budget.tokens * _ASCII_PER_TOKEN, budget.chars)
    if longest == len(text) and budget.allows(document):
        return document
    size = max(_most(longest, lambda count: budget.allows({**document, key: text[:count]})), _LEAST_TEXT)
    return {**document, key: text[: end_of_line(text, size)]}


def end_of_line(text: str, size: int) -> int:
    """The place to cut a text of at most `size`: behind a line, unless that would lose a good part of it."""
    if size >= len(text):
        return len(text)
    end = text.rfind("\n", 0, size) + 1
    return end if end >= size * (1 - _LEAST_DROPPED) else size


def _shortened(results: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """The results with ever shorter snippets, in the last steps without what can be had by other means; what went."""
    for size in _SNIPPET_STEPS:
        yield [_cut(result, size) for result in results], "parts of snippets"
    bare = [{**_cut(result, 0), "preview": "", "why": result["why"][:1], "metadata": {}} for result in results]
    yield bare, "snippets, previews and metadata"
    yield [_lean(result) for result in bare], "snippets, previews, metadata and what is long of addresses"


def _lean(result: dict[str, Any]) -> dict[str, Any]:
    """A result whose path is said once, in its id, and whose address is a short one."""
    path = "" if result["id"].endswith(result["path"]) else result["path"]
    short = DOCUMENT_ADDRESS + result["passage"]
    return {**result, "path": path, "url": min(result["url"], short, key=len), "title": cut(result["title"], 60)}


def _barest(result: dict[str, Any]) -> dict[str, Any]:
    """As little of a result as can still be fetched."""
    bare = {
        **result,
        "path": "",
        "symbol": "",
        "title": cut(result["title"], 20),
        "lines": cut(result["lines"], 20),
        "why": [],
    }
    return {**bare, "id": min(result["id"], result["passage"], key=len)}


def _told(kept: int, of: int, *, more_chars: bool, can_go_on: bool) -> str:
    """A note of what is left out of an answer, and how to get it."""
    if kept == of:
        return "snippets, previews, metadata and whatever else is long"
    ways = [
        *(["ask with a larger max_chars"] if more_chars else []),
        *(["go on with next_cursor"] if can_go_on else []),
    ]
    left = f"the last {of - kept} of {counted(of, 'result')}"
    return f"{left}; {' or '.join(ways)}" if ways else f"{left}; max_tokens allows no more"


def _cut(result: dict[str, Any], size: int) -> dict[str, Any]:
    snippet = result["snippet"]
    return result if len(snippet) <= size else {**result, "snippet": f"{snippet[:size]}…" if size else ""}


def _most(upper: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `upper` that fits, -1 for none; all numbers below one that fits do so, too."""
    low, high = -1, upper
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
