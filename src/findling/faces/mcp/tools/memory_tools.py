"""The tools of memories: keep a fact, recall facts of any day, decide on facts that do not hold together."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from findling.domain.errors import InvalidValueError
from findling.domain.records import DECISIONS
from findling.domain.reports import Progress
from findling.domain.values import plain
from findling.faces.mcp.tool_context import Desk, tool
from findling.faces.mcp.tools import arguments as given
from findling.faces.mcp.tools.budget import budget_of, most
from findling.service.content.memories import WorkspaceMemories


class RememberResult(TypedDict):
    id: str
    outcome: str
    note: str


class MemoryResult(TypedDict):
    rows: list[dict[str, Any]]
    notes: list[str]


_SHOWN = ("rid", "text", "score", "since", "until", "source")


@tool(RememberResult, writes=True, is_offered=lambda desk: desk.may_remember)
def remember(desk: Desk, asked: given.RememberArguments, on_progress: Progress | None) -> dict[str, Any]:
    """Keep a short text for later. The same in other words updates it, a newer value supersedes it."""
    desk.check("write")
    principals = desk.caller.principals
    # Somebody with limited rights shares what they remember with nobody else: they are not told who there is.
    own = None if principals is None else [one for one in principals if one.startswith("user:")] or principals
    with desk.connect() as client:
        kept = client.engine.memories.remember(
            **asked.model_dump(), author=desk.caller.name, visibility=own, principals=principals
        )
    notes = [f"it supersedes {kept.supersedes}"] if kept.supersedes else []
    notes += [f"memory undo {kept.rid} takes that back"] if kept.undo else []
    notes += [f"it may not hold together with {rid}: memory review" for rid in kept.conflicts]
    return {"id": kept.rid, "outcome": kept.outcome, "note": "; ".join(notes)}


@tool(MemoryResult, writes=True, is_offered=lambda desk: desk.may_remember)
def memory(desk: Desk, asked: given.MemoryArguments, on_progress: Progress | None) -> dict[str, Any]:
    """Recall memories of a day; review conflicts; decide on a newer (text) and an older id; history, undo."""
    desk.check("read" if asked.action in ("recall", "history", "review") else "write")
    with desk.connect() as client:
        rows, notes = _rows(client.engine.memories, asked, desk.caller.principals)
    budget = budget_of(desk)
    count = max(most(len(rows), lambda count: budget.allows({"rows": rows[:count], "notes": notes})), 0)
    return {"rows": rows[:count], "notes": [*notes, f"{len(rows) - count} more"] if count < len(rows) else notes}


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
