"""The tools of memories: keep a fact, recall facts of any day, decide on facts that do not hold together."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from findling.domain.errors import InvalidValueError
from findling.domain.records import DECISIONS
from findling.domain.reports import Progress
from findling.domain.values import plain
from findling.faces.mcp.tool_context import Desk
from findling.faces.mcp.tools import arguments as given
from findling.faces.mcp.tools.budget import Budget
from findling.service.content.memories import WorkspaceMemories


class RememberResult(TypedDict):
    id: str
    outcome: str
    note: str


class MemoryResult(TypedDict):
    rows: list[dict[str, Any]]
    notes: list[str]


_SHOWN = ("rid", "text", "score", "since", "until", "source")


def remember_text(desk: Desk, asked: given.RememberArguments, on_progress: Progress | None) -> dict[str, Any]:
    """Keep a text for the caller."""
    desk.check("write")
    principals = desk.caller.principals
    # Somebody with limited rights shares what they remember with nobody else: they are not told who there is.
    own = None if principals is None else [one for one in principals if one.startswith("user:")] or principals
    with desk.connect() as client:
        memory = client.engine.memories.remember(
            asked.text,
            importance=asked.importance,
            tags=asked.tags,
            author=desk.caller.name,
            visibility=own,
            source=asked.source,
            until=asked.until,
            principals=principals,
        )
    notes = [f"it supersedes {memory.supersedes}"] if memory.supersedes else []
    notes += [f"memory undo {memory.rid} takes that back"] if memory.undo else []
    notes += [f"it may not hold together with {rid}: memory review" for rid in memory.conflicts]
    return {"id": memory.rid, "outcome": memory.outcome, "note": "; ".join(notes)}


def work_on_memories(desk: Desk, asked: given.MemoryArguments, on_progress: Progress | None) -> dict[str, Any]:
    """Recall, look back, review, decide or undo."""
    desk.check("read" if asked.action in ("recall", "history", "review") else "write")
    with desk.connect() as client:
        rows, notes = _rows(client.engine.memories, asked, desk.caller.principals)
    budget = Budget(desk.settings["mcp.max_tokens"], 1 << 62)
    result: dict[str, Any] = {"rows": [], "notes": notes}
    for row in rows:
        longer = {**result, "rows": [*result["rows"], row]}
        if not budget.allows(longer):
            result["notes"] = [*notes, f"{len(rows) - len(result['rows'])} more"]
            break
        result = longer
    return result


def _rows(
    memories: WorkspaceMemories, asked: given.MemoryArguments, principals: tuple[str, ...] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    if asked.action == "recall":
        if not asked.text.strip():
            raise InvalidValueError("recall needs a query", hint="text=…")
        answer = memories.recall(asked.text, principals=principals, at=asked.at)
        rows = [
            {name: getattr(one, name) for name in _SHOWN}
            | {"reasons": list(one.reasons), "superseded_by": list(one.hit.receipt.superseded_by)}
            for one in answer
        ]
        degraded = [one.what for one in answer.degraded]
        return rows, [*answer.notes, *degraded, *([f"time: {answer.time}"] if answer.time else [])]
    if asked.action == "review":
        review = memories.review(principals=principals)
        return [plain(pair) for pair in review.pairs], [] if review.trouble is None else [review.trouble.what]
    if asked.action == "history":
        return [plain(one) for one in memories.history(asked.text, principals=principals)], []
    if asked.action in DECISIONS:
        return [plain(memories.decide(asked.text, asked.older, asked.action, principals=principals))], []
    return [plain(memories.undo(asked.text, principals=principals))], []
