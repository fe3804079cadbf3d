"""Results of the tools, made of answers of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from typing_extensions import TypedDict

from findling.domain.results import Explanation, Hit, Line, Receipt, SearchAnswer
from findling.service.index.documents import FetchedDocument

DOCUMENT_ADDRESS = "findling://document/"
"""The beginning of a document's address; its id follows."""

ITEM_TYPES = frozenset({"directive", "tool", "knowledge"})
"""Types of items whose own description comes with every result."""

_LONGEST_LINE = 300
_SHOWN_LINES, _FULL_LINES = 3, 7
"""Lines of a snippet that cannot be shown whole."""

_LONGEST_PREVIEW = 160
_LONGEST_TEXT = 300
_MOST_REASONS = 4
_MOST_TOLD = 10
_MOST_NAMES = 20

_ALWAYS = frozenset({"results", "left_out", "next_cursor", "degraded"})
"""Keys of an answer that are there when they are empty, too: a client reads them after every answer."""


class SearchResult(TypedDict, total=False):
    path: str
    lines: str
    symbol: str
    title: str
    id: str
    passage: str
    url: str
    type: str
    score: float
    snippet: str
    preview: str
    why: list[str]
    metadata: dict[str, Any]


class SearchResults(TypedDict, total=False):
    results: list[SearchResult]
    total: int
    total_is_exact: bool
    search_type: str
    quality: str
    understood_as: str
    truncated: bool
    left_out: str
    next_cursor: str
    degraded: list[str]
    unknown_terms: list[str]
    did_you_mean: list[str]
    notes: list[str]
    files: dict[str, int]
    names: dict[str, int]
    relaxed: list[dict[str, Any]]
    related: list[dict[str, Any]]


class SimilarResults(TypedDict):
    """The same keys as those of a search, described once: the list of tools costs every session its tokens."""

    results: list[dict[str, Any]]
    total: int
    truncated: bool
    left_out: str
    degraded: list[str]


class FetchResult(TypedDict):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]
    truncated: bool
    next_offset: int | None


class ExplainResult(TypedDict):
    id: str
    path: str
    found: bool
    rank: int
    shown: int
    understood_as: str
    reasons: list[str]
    filters: dict[str, bool]
    legs: list[dict[str, Any]]
    score: float
    why: list[str]
    receipt: dict[str, Any]
    degraded: list[str]


class StatusResult(TypedDict):
    resources: int
    chunks: int
    types: dict[str, int]
    details: dict[str, Any]


def describe_search(
    answer: SearchAnswer,
    root: Path | None,
    items: Mapping[str, FetchedDocument],
    *,
    is_full: bool = False,
    whole: int = 0,
) -> dict[str, Any]:
    """An answer as `search` and `similar` give it; `root` is where files lie, for a caller who may know.

    `items` are the documents of those hits that describe themselves. The first `whole` results show all lines of
    their hits, the others a few around the best one.
    """
    document = {
        "results": [
            _result(hit, root, items.get(hit.rid), is_full=is_full, is_whole=place < whole)
            for place, hit in enumerate(answer.hits)
        ],
        "total": answer.total,
        "weaker": answer.weaker,
        "total_is_exact": answer.total_is_exact,
        "search_type": answer.strategy,
        "quality": answer.quality,
        "understood_as": cut(answer.understood_as, _LONGEST_TEXT),
        "truncated": False,
        "left_out": "",
        "next_cursor": answer.next_cursor,
        "degraded": _told(map(str, answer.degraded)),
        "unknown_terms": _told(answer.unknown_terms),
        "did_you_mean": _told(dict.fromkeys(one.query for one in answer.did_you_mean)),
        "notes": _told([*answer.notes, *_scope(answer)]),
        "files": dict(answer.facets.get("file", {})),
        "names": dict(islice(answer.facets.get("entity", {}).items(), _MOST_NAMES)),
        # Under names and in shapes of their own, so that nobody takes them for matches.
        "relaxed": [_looser(hit) for hit in answer.relaxed[:_MOST_TOLD]],
        "related": [_neighbour(hit) for hit in answer.related],
    }
    return without_empty(document)


def best_rows(answer: SearchAnswer) -> list[str]:
    """The best line of each hit, as its snippet has it."""
    return [_snippet(hit.lines[_best_of(hit) :][:1], is_whole=False) for hit in answer.hits]


def without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """An answer or a result without its empty texts, lists and maps, which would cost tokens and say nothing."""
    return {name: value for name, value in document.items() if name in _ALWAYS or value not in ("", [], {}, None)}


def describe_fetched(
    document: FetchedDocument, root: Path | None, text: str, next_offset: int | None
) -> dict[str, Any]:
    """A document, or a part of it, as `fetch` gives it."""
    facts: dict[str, Any] = {
        "type": document.type,
        "path": document.path,
        "lines": _lines(document.line_start, document.line_end, document.place),
        "heading": " › ".join(document.heading),
        "author": document.author,
        "lang": document.lang,
        "tags": list(document.tags),
        "created_at": iso_time(document.created_at),
        "updated_at": iso_time(document.updated_at),
        "fields": dict(document.fields),
        "links": [vars(link) for link in document.links],
        "supersedes": list(document.supersedes),
        "superseded_by": list(document.superseded_by),
    }
    return {
        "id": document.rid,
        "title": cut(document.title or document.path or document.rid, _LONGEST_PREVIEW),
        "text": text,
        "url": _address(
            document.rid, document.type, document.path, root, 0 if document.is_whole else document.line_start
        ),
        "metadata": {**without_empty(facts), "is_whole": document.is_whole, "characters": len(document.text)},
        "truncated": next_offset is not None,
        "next_offset": next_offset,
    }


def describe_explanation(told: Explanation) -> dict[str, Any]:
    """An explanation as `explain` gives it."""
    receipt = told.hit.receipt if told.hit else None
    return {
        "id": told.rid,
        "path": told.path,
        "found": told.found,
        "rank": told.rank,
        "shown": told.shown,
        "understood_as": cut(told.understood_as, _LONGEST_TEXT),
        "reasons": _told(told.reasons),
        "filters": {cut(name, _LONGEST_TEXT): passes for name, passes in told.filters[:_MOST_TOLD]},
        "legs": [vars(leg) for leg in told.legs],
        "score": round(told.hit.score, 4) if told.hit else 0.0,
        "why": _reasons(receipt)[:_MOST_TOLD] if receipt else [],
        "receipt": _receipt(receipt) if receipt else {},
        "degraded": _told(map(str, told.degraded)),
    }


def iso_time(seconds: float | None) -> str:
    """A moment in UTC, to the second; empty for none, and for one that no calendar has."""
    try:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


def _result(
    hit: Hit, root: Path | None, item: FetchedDocument | None, *, is_full: bool, is_whole: bool
) -> dict[str, Any]:
    reasons = _reasons(hit.receipt)
    best = _best_of(hit)
    count = _FULL_LINES if is_full else _SHOWN_LINES
    start = max(min(best, len(hit.lines) - count), 0)
    shown = hit.lines if is_whole else hit.lines[start : start + count]
    facts: dict[str, Any] = {
        "heading": " › ".join(hit.heading) if is_full or (hit.type == "file" and not hit.symbol) else "",
        "workspace": hit.workspace,
        "author": hit.author,
        "date": iso_time(hit.at)[:10],
        "superseded_by": hit.receipt.superseded_by[-1] if hit.receipt.superseded_by else "",
        **(_of_item(item) if item else {}),
    }
    if is_full:
        facts["receipt"] = _receipt(hit.receipt)
        facts["passages"] = [
            {"passage": one.id, "id": one.rid, "lines": _lines(one.line_start, one.line_end, one.place)}
            for one in hit.passages
        ]
    result = {
        "path": hit.path,
        "lines": _lines(hit.line_start, hit.line_end, hit.place),
        "symbol": cut(hit.symbol, _LONGEST_PREVIEW),
        "title": cut(hit.title or hit.path or hit.rid, _LONGEST_PREVIEW),
        "id": hit.rid,
        "passage": hit.id,
        "url": _address(hit.rid, hit.type, hit.path, None if hit.workspace else root, hit.line or hit.line_start),
        "type": hit.type,
        "score": round(hit.score, 4),
        "snippet": _snippet(shown, is_whole=is_whole),
        "preview": cut(facts.get("description") or _best_line(hit), _LONGEST_PREVIEW),
        "why": reasons[: _MOST_TOLD if is_full else _MOST_REASONS],
        "metadata": without_empty(facts),
    }
    return without_empty(result)


def _neighbour(hit: Hit) -> dict[str, Any]:
    return {"id": hit.rid, "title": cut(hit.title or hit.path or hit.rid, _LONGEST_PREVIEW), "is_match": False}


def _looser(hit: Hit) -> dict[str, Any]:
    told = {"lines": _lines(hit.line_start, hit.line_end, hit.place), "score": round(hit.score, 4)}
    return {**_neighbour(hit), "passage": hit.id, **told, "preview": cut(_best_line(hit), _LONGEST_PREVIEW)}


def _of_item(item: FetchedDocument) -> dict[str, Any]:
    """Fields of an item under the names that its author used."""
    return {**{name: cut(value, _LONGEST_TEXT) for name, value in item.fields.items()}, "tags": list(item.tags)}


def _reasons(receipt: Receipt) -> list[str]:
    """Why a hit is there, in a few words each, what counts most first."""
    fields: dict[str, list[str]] = {}
    for match in receipt.matches:
        fields.setdefault(match.term, []).append(match.field)
    reasons = [f"{term} in {', '.join(dict.fromkeys(places))}" for term, places in fields.items()]
    reasons += [f"{one.alias} for {one.typed} (glossary)" for one in receipt.aliases]
    if receipt.meaning:
        reasons.insert(0 if not reasons else 1, f"near in meaning ({receipt.meaning:.2f})")
    reasons += [f"{part.leg}: {part.remark}" for part in receipt.further if part.evidence]
    if receipt.superseded_by:
        reasons.insert(0, f"superseded by {receipt.superseded_by[-1]}")
    if receipt.missing:
        reasons.append(f"without {', '.join(receipt.missing)}")
    reasons += [f"{step.name}: {step.reason}" for step in receipt.steps]
    return [cut(reason, _LONGEST_PREVIEW) for reason in reasons] or ["fulfils the conditions"]


def _receipt(receipt: Receipt) -> dict[str, Any]:
    """The numbers behind a score."""
    return {
        "keyword": {
            "rank": receipt.keyword_rank,
            "bm25": round(receipt.keyword_score, 4),
            "evidence": round(receipt.words, 4),
        },
        "meaning": {
            "rank": receipt.vector_rank,
            "cosine": round(receipt.vector_score, 4),
            "speed": receipt.speed,
            "evidence": round(receipt.meaning, 4),
        },
        **{
            part.leg: {
                "rank": part.rank,
                part.measure: round(part.raw, 4),
                "evidence": round(part.evidence, 4),
                "why": part.why,
            }
            for part in receipt.further
        },
        "parts": {part.leg: round(part.value, 4) for part in receipt.parts},
        "factors": {step.name: round(step.factor, 4) for step in receipt.steps if step.factor != 1},
        "final": round(receipt.final_score, 4),
    }


def _scope(answer: SearchAnswer) -> list[str]:
    limits = [f"{name} {value}" for name, value in answer.scope.items() if name != "from"]
    return [f"searched only in the context of {answer.scope['from']}: {'; '.join(limits)}"] if limits else []


def _snippet(lines: Iterable[Line], *, is_whole: bool) -> str:
    """Lines, each with its number or place in front."""
    rows = []
    for line in lines:
        mark = line.place or (str(line.number) if line.number else "")
        text = line.text.rstrip("\r\n") if is_whole else _around(line)
        rows.append(f"{mark}: {text}" if mark else text)
    return "\n".join(rows).rstrip()


def _best_of(hit: Hit) -> int:
    """The place of the best line among those of a hit: by its number, or where there is none by its matches."""
    marks = [(bool(hit.line) and line.number == hit.line, len(line.spans)) for line in hit.lines]
    return max(range(len(marks)), key=lambda place: (marks[place], -place), default=0)


def _best_line(hit: Hit) -> str:
    return _around(hit.lines[_best_of(hit)]).strip() if hit.lines else ""


def _around(line: Line) -> str:
    """A line, or of a very long one the part around its first match."""
    text = line.text.rstrip("\r\n")
    if len(text) <= _LONGEST_LINE:
        return text
    start = max(0, (line.spans[0][0] if line.spans else 0) - _LONGEST_LINE // 4)
    end = start + _LONGEST_LINE
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _address(rid: str, kind: str, path: str, root: Path | None, line: int) -> str:
    """The address of a document: the file itself for a caller who may know its folder, or its resource."""
    if root is None or kind != "file" or not path:
        return DOCUMENT_ADDRESS + quote(rid, safe="")
    return (root / path).as_uri() + (f"#L{line}" if line else "")


def _lines(first: int, last: int, place: str) -> str:
    if place or not first:
        return place
    return f"{first}-{last}" if last > first else str(first)


def _told(texts: Iterable[str]) -> list[str]:
    return [cut(text, _LONGEST_TEXT) for text in list(texts)[:_MOST_TOLD]]


def cut(text: str, size: int) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    return text if len(text) <= size else f"{text[: size - 1]}…"
