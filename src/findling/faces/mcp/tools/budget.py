"""The budget of an answer: an estimate of tokens, and cuts when there are too many."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from findling.domain.values import counted
from findling.faces.mcp.tool_context import Desk
from findling.faces.mcp.tools.tool_results import DOCUMENT_ADDRESS, cut, without_empty

_ASCII_PER_TOKEN = 4
_LAST_LATIN = "\u024f"

_FEW = 3
"""Results that are kept before their snippets become shorter."""

_LEAST_LINE = 120
"""Characters of a best line that are kept where nothing else can be cut."""

_UNLIMITED = 1 << 62

_LEAST_DROPPED = 0.2
"""Share of a text that may be given up so that it ends with a whole line."""

_LEAST_TEXT = 20
"""The least characters of a text: a reader of its parts must get on."""


class Budget(NamedTuple):
    """The limits of one answer; both hold."""

    tokens: int
    chars: int

    def allows(self, document: object) -> bool:
        """Whether a document, as compact JSON, keeps to it."""
        text = compact_json(document)
        return len(text) <= self.chars and count_tokens(text) <= self.tokens


def budget_of(desk: Desk, chars: int = _UNLIMITED, tokens: int | None = None) -> Budget:
    """The limits of an answer: those that were asked for, within that of the setting."""
    allowed = desk.settings["mcp.max_tokens"]
    return Budget(min(allowed, tokens or allowed), chars)


def compact_json(document: object) -> str:
    """A document as JSON without spaces and with letters as they are; lone surrogates, which UTF-8 lacks, become ?."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def count_tokens(text: str) -> int:
    """About how many tokens a text takes: four ASCII letters each, two Latin ones, and one of any other script.

    It errs on the high side: models of today take 1.2 to 2 Chinese letters for a token.
    """
    if text.isascii():
        return -(-len(text) // _ASCII_PER_TOKEN)
    plain = sum(map(str.isascii, text))
    latin = sum(not letter.isascii() and letter <= _LAST_LATIN for letter in text)
    return -(-plain // _ASCII_PER_TOKEN) + -(-latin // 2) + len(text) - plain - latin


def fit_answer(
    document: dict[str, Any], budget: Budget, best: Sequence[str], *, can_go_on: bool = True
) -> tuple[dict[str, Any], int]:
    """The answer of a search within its budget, and how many of its results are left: one at least, if there is any.

    Extras of results go first, then results from the end, down to three. Then snippets become their `best` lines,
    from the last one up, and more results go; then other facts, and long names last of all. `truncated` and
    `left_out` say so. `can_go_on` says that a cursor behind what is left will be told.
    """
    results = document["results"]
    if budget.allows(document):
        return document, len(results)

    def said(kept: list[dict[str, Any]], *further: str, more_chars: bool = True) -> dict[str, Any]:
        told = _told(kept, results, further, more_chars=more_chars, can_go_on=can_go_on)
        return {**document, "results": kept, "truncated": True, "left_out": told}

    lean = [_lean(result) for result in results]

    def fitting(limits: Budget) -> int:
        return most(len(lean), lambda count: limits.allows(said(lean[:count])))

    # Where tokens alone would allow more results, it is the characters that are too few.
    count, by_tokens = fitting(budget), fitting(Budget(budget.tokens, _UNLIMITED))
    smaller = [lean[:count]] if count >= min(_FEW, len(lean)) else list(_smaller(lean[:_FEW], best)) or [[]]
    for kept in smaller:
        fitted = said(kept, more_chars=by_tokens > len(kept))
        if budget.allows(fitted):
            return fitted, len(kept)
    never = ("results", "left_out", "next_cursor", "search_type", "quality")
    least = document
    for barer in _barer(smaller[-1]):
        further = ["other facts", *(["long names"] if barer != smaller[-1] else [])]
        fitted = said(barer, *further, more_chars=by_tokens > len(barer))
        least = without_empty(fit_facts(fitted, budget, kept=never))
        if budget.allows(least):
            break
    return least, len(smaller[-1])


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
    size = max(most(longest, lambda count: budget.allows({**document, key: text[:count]})), _LEAST_TEXT)
    return {**document, key: text[: end_of_line(text, size)]}


def end_of_line(text: str, size: int) -> int:
    """The place to cut a text of at most `size`: behind a line, unless that would lose a good part of it."""
    if size >= len(text):
        return len(text)
    end = text.rfind("\n", 0, size) + 1
    return end if end >= size * (1 - _LEAST_DROPPED) else size


def _smaller(results: list[dict[str, Any]], best: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Ever less of a few results: their best lines alone, from the last one up; then fewer results in the same way."""
    for count in range(len(results), 0, -1):
        shown = results[:count]
        yield shown
        for place in range(count - 1, -1, -1):
            shown = [*shown[:place], _with_best(shown[place], best[place]), *shown[place + 1 :]]
            yield shown


def _barer(results: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The results as they are, with short names, with a part of their lines, and without a path that is too long."""
    yield results
    for shorten in (_with_short_names, _with_part_of_line, _without_path):
        results = [shorten(result) for result in results]
        yield results


def _lean(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what repeats its place and its snippet, and with a short address and title."""
    short = DOCUMENT_ADDRESS + result["passage"]
    title = result["title"]
    name = title.rpartition("/")[2] if result["id"].endswith(title) else title
    kept = {key: value for key, value in result.items() if key not in ("preview", "metadata", "why")}
    return {**kept, "url": min(result["url"], short, key=len), "title": cut(name, 60)}


def _with_best(result: dict[str, Any], row: str) -> dict[str, Any]:
    return {**result, "snippet": row} if len(row) < len(result.get("snippet", "")) else result


def _with_short_names(result: dict[str, Any]) -> dict[str, Any]:
    """A result that says its path once, and can still be fetched."""
    names = {"title": cut(result["title"], 20), "id": min(result["id"], result["passage"], key=len)}
    return {**result, **names, **{key: cut(result[key], 40) for key in ("lines", "symbol") if key in result}}


def _with_part_of_line(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "snippet": cut(result["snippet"], _LEAST_LINE)} if "snippet" in result else result


def _without_path(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("path", "symbol", "snippet")}


def _told(
    kept: list[dict[str, Any]],
    results: list[dict[str, Any]],
    further: Iterable[str],
    *,
    more_chars: bool,
    can_go_on: bool,
) -> str:
    """A note of what is left out of an answer, and how to get it."""
    left = len(results) - len(kept)
    pairs = zip(kept, results, strict=False)
    shortened = sum(one.get("snippet") != was.get("snippet") for one, was in pairs)
    parts = [
        *([f"the last {left} of {counted(len(results), 'result')}"] if left else []),
        *([f"parts of {counted(shortened, 'snippet')}"] if shortened else []),
        *(["why, previews, metadata and long addresses"] if results else []),
        *further,
    ]
    ways = [
        *(["ask with a larger max_chars"] if more_chars else []),
        *(["go on with next_cursor"] if can_go_on else []),
    ]
    how = f"; {' or '.join(ways) or 'max_tokens allows no more'}" if left else ""
    return f"{', '.join(parts)}{how}"


def most(upper: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `upper` that fits, -1 for none; all numbers below one that fits do so, too."""
    low, high = -1, upper
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
