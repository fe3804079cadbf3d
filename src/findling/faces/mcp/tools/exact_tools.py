"""The tools `grep`, `glob`, `refs`, `outline` and `related`: lists in few tokens, cut where they are too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typing_extensions import TypedDict

from findling.domain.errors import InvalidValueError
from findling.domain.reports import ExpressionError, GrepAnswer, GrepRequest, MatchedFile, Progress, RelatedPassage
from findling.domain.strangers import checked_pattern
from findling.domain.values import counted
from findling.faces.mcp.tool_context import Desk, naming, tool
from findling.faces.mcp.tools.arguments import (
    GlobArguments,
    GrepArguments,
    OutlineArguments,
    RefsArguments,
    RelatedArguments,
)
from findling.faces.mcp.tools.budget import Budget, budget_of, most
from findling.faces.mcp.tools.tool_results import cut

_LONGEST_LINE, _LONGEST_NAME = 300, 100


class GrepResult(TypedDict):
    matches: dict[str, Any]
    files: int
    lines: int
    truncated: bool
    left_out: str
    strategy: str
    degraded: list[str]


class GlobResult(TypedDict):
    files: list[str]
    total: int
    truncated: bool


class RefsResult(TypedDict):
    defines: list[str]
    imports: list[str]
    calls: list[str]
    uses: list[str]
    total: int
    truncated: bool
    degraded: list[str]


class OutlineResult(TypedDict):
    path: str
    definitions: list[str]
    truncated: bool


class RelatedResult(TypedDict):
    found: list[str]
    notes: list[str]
    truncated: bool


def _check_grep(desk: Desk, asked: GrepArguments) -> None:
    """Raises InvalidValueError for a pattern that could take for ever."""
    if not asked.fixed:
        checked_pattern(asked.pattern, is_owner=desk.caller.is_owner, name="pattern")


@tool(GrepResult, wants_latest=True, check=_check_grep)
def grep(desk: Desk, asked: GrepArguments, on_progress: Progress | None) -> dict[str, Any]:
    """Every line that matches a regular expression, complete and unranked.

    Use it for a known name, call or message, and to count or list all uses; use search when you do not know the words.
    """
    request = GrepRequest(
        patterns=(asked.pattern,),
        fixed=asked.fixed,
        case="ignore" if asked.ignore_case else "sensitive",
        words=asked.words,
        globs=tuple(asked.glob),
        within=asked.path.strip("/"),
        before=asked.context,
        after=asked.context,
        gives=asked.gives,
        limit=asked.limit,
    )
    with desk.reading() as client:
        try:
            answer = client.grep(request, desk.notes)
        except ExpressionError as error:
            raise InvalidValueError(
                error.message, hint="fixed: true searches for the characters as they are"
            ) from error
        client.finish()
    return _matches(answer, budget_of(desk, asked.max_chars))


@tool(GlobResult, wants_latest=True)
def glob(desk: Desk, asked: GlobArguments, on_progress: Progress | None) -> dict[str, Any]:
    """Every indexed file whose path matches a gitignore glob. Use it to find files by name."""
    with desk.reading() as client:
        answer = client.glob(asked.pattern, within=asked.path.strip("/"), newest=asked.newest, limit=asked.limit)
    paths = [file.path for file in answer.files]

    def told(count: int) -> dict[str, Any]:
        return {"files": paths[:count], "total": answer.total, "truncated": count < answer.total}

    return _most(len(paths), told, budget_of(desk, asked.max_chars))


@tool(
    RefsResult,
    "Who defines, imports, calls or uses a name in code, complete. Use it instead of grep for names.",
    wants_latest=True,
)
def refs(desk: Desk, asked: RefsArguments, on_progress: Progress | None) -> dict[str, Any]:
    """The lines with a name by their kinds, each as `path:line symbol: text`; as many as fit, definitions first."""
    with desk.reading() as client:
        answer = client.refs(asked.name, within=asked.path.strip("/"), limit=asked.limit, notes=desk.notes)
    degraded = [str(one) for one in answer.degraded]
    found = answer.references

    def told(count: int) -> dict[str, Any]:
        kinds: dict[str, list[str]] = {"defines": [], "imports": [], "calls": [], "uses": []}
        for one in found[:count]:
            symbol = f" {one.symbol}" if one.symbol and one.kind != "defines" else ""
            kinds[one.kind].append(f"{one.path}:{one.line}{symbol}: {cut(one.text, _LONGEST_LINE)}")
        return {**kinds, "total": answer.total, "truncated": count < answer.total, "degraded": degraded}

    return _most(len(found), told, budget_of(desk, asked.max_chars))


@tool(OutlineResult)
def outline(desk: Desk, asked: OutlineArguments, on_progress: Progress | None) -> dict[str, Any]:
    """The definitions of a code file with their lines. Use it before fetch on a large file."""
    with desk.reading() as client, naming("glob lists the paths that are"):
        answer = client.outline(asked.id)
    rows = [
        f"{'  ' * one.level}{one.line}-{one.end}: {cut(one.signature, _LONGEST_LINE)}" for one in answer.definitions
    ]

    def told(count: int) -> dict[str, Any]:
        return {"path": answer.path, "definitions": rows[:count], "truncated": count < len(rows)}

    return _most(len(rows), told, budget_of(desk, asked.max_chars))


@tool(RelatedResult)
def related(desk: Desk, asked: RelatedArguments, on_progress: Progress | None) -> dict[str, Any]:
    """The paths that connect two things, each step with its proof; without to, what is around one."""
    with desk.reading() as client:
        answer = client.related(asked.of, asked.to, limit=asked.limit)
        client.finish()
    found = [
        *("\n  ".join([" → ".join(one.names), *(_proof(step.passage) for step in one.steps)]) for one in answer.paths),
        *(f"{answer.of} → {one.name}\n  {_proof(one.passage)}" for one in answer.names),
        *(f"{_proof(one.passage)} (by {', '.join(one.names)})" for one in answer.documents),
    ]
    notes = [f"nothing names {cut(name, _LONGEST_NAME)}" for name in answer.unknown]
    notes += dict.fromkeys(map(str, [*desk.notes, *answer.degraded]))
    if not found and not notes:
        notes = ["nothing connects them" if answer.to else "nothing is connected to it"]

    def told(count: int) -> dict[str, Any]:
        return {"found": found[:count], "notes": notes, "truncated": count < len(found)}

    return _most(len(found), told, budget_of(desk))


def _proof(passage: RelatedPassage) -> str:
    where = f" ({passage.place})" if passage.place else f":{passage.line}" if passage.line else ""
    return f"{passage.path or passage.rid}{where}: {cut(passage.text, _LONGEST_LINE)}"


def _matches(answer: GrepAnswer, budget: Budget) -> dict[str, Any]:
    """The lines as `path` → lines, as many as the budget allows, from the first file on."""
    degraded = [str(one) for one in answer.degraded]
    facts = {"files": len(answer.files), "lines": answer.total}
    rows = [(file, row) for file in answer.files for row in _rows(file)]

    def told(count: int) -> dict[str, Any]:
        matches: dict[str, Any] = {}
        for file, row in rows[:count]:
            if isinstance(row, str):
                matches.setdefault(file.path, []).append(row)
            else:
                matches[file.path] = row
        is_cut = count < len(rows) or answer.is_cut
        left_out = f"{counted(len(rows) - count, 'line')} behind these" if count < len(rows) else ""
        left_out = left_out or ("what a limit or the time has cut" if answer.is_cut else "")
        cut_off = {"truncated": is_cut, "left_out": left_out}
        return {"matches": matches, **facts, **cut_off, "strategy": answer.strategy, "degraded": degraded}

    return _most(len(rows), told, budget)


def _rows(file: MatchedFile) -> list[str | int]:
    """The lines of a file, a `-` behind the numbers of those around a match; its count without lines."""
    if not file.lines:
        return [file.total]
    marks = (":" if line.is_match else "-" for line in file.lines)
    return [
        f"{line.number}{mark}{cut(line.text.rstrip(), _LONGEST_LINE)}"
        for line, mark in zip(file.lines, marks, strict=True)
    ]


def _most(upper: int, told: Callable[[int], dict[str, Any]], budget: Budget) -> dict[str, Any]:
    """The answer with as many rows as the budget allows."""
    return told(max(most(upper, lambda count: budget.allows(told(count))), 0))
