"""The instructions that a model reads first, and the state of the index that they and `status` tell."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from findling.domain.errors import FindlingError, NotIndexedError
from findling.domain.values import counted
from findling.faces.mcp.tool_context import Desk, for_caller, told
from findling.faces.mcp.tools.tool_results import iso_time
from findling.service.engine.client import LocalClient

_MOST_TYPES = 20

_COLD = "Search at once: the first answer takes about two seconds, and its degraded says what is still missing."


def make_instructions(desk: Desk) -> str:
    """Instructions for the tools, and the present content of the workspace, or the reason why there is none."""
    try:
        status = status_document(desk)
    except FindlingError as error:
        is_cold = isinstance(error, NotIndexedError) and desk.caller.is_owner and desk.looks_first
        present = f"{error.message}. {_COLD}" if is_cold else f"{told(for_caller(error, desk.caller))}."
        return f"findling searches what people have. At present: {present}\n\n{_how_to()}"
    types = ", ".join(f"{count:,} {name}" for name, count in list(status["types"].items())[:_MOST_TYPES])
    where = f" of {status['details']['root']}" if "root" in status["details"] else ""
    held = (
        f"findling searches {counted(status['resources'], 'resource')}{where} in {counted(status['chunks'], 'passage')}"
    )
    lines = [f"{held}: {types}." if types else f"{held}.", *_gaps(status["details"]), "", _how_to()]
    items = [name for name in ("directive", "tool", "knowledge") if name in status["types"]]
    if items:
        lines.append(f"- item_type={'|'.join(items)} looks for such items alone, by their names first.")
    if desk.may_remember:
        lines.append("- remember keeps a fact for later, when the user wants that; search finds it.")
    if desk.may_index:
        lines.append("- index takes in files that have changed.")
    return "\n".join(lines)


@cache
def _how_to() -> str:
    return (files("findling.faces.mcp") / "skill" / "HOW_TO.md").read_text(encoding="utf-8").rstrip("\n")


def status_document(desk: Desk) -> dict[str, Any]:
    """The content of the workspace: all of it for its owner, the visible part for others. Raises NotIndexedError."""
    with desk.reading() as client:
        alone = LocalClient(client.engine.alone(), client.principals)
        status = alone.status()
        types = visible_types(alone)
        failed = len(client.engine.failed()) if desk.caller.is_owner else 0
    shared = {"resources": status["resources"], "chunks": status["chunks"], "types": types}
    return {**shared, "details": _details(status, failed) if desk.caller.is_owner else {}}


def visible_types(client: LocalClient) -> dict[str, int]:
    """Types of resources that a caller sees, and the number of each."""
    answer = client.search("", facets=("type",), limit=1, in_context=False, within="")
    return dict(answer.facets["type"])


def _details(status: Mapping[str, Any], failed: int) -> dict[str, Any]:
    meaning = status["meaning"]
    behind = status["seq"] - status["keyword_seq"]
    age = None if status["indexed_at"] is None else max(0, round(time.time() - status["indexed_at"]))
    return {
        "root": str(status["root"]),
        "characters": status["characters"],
        "size_bytes": status["size_bytes"],
        "indexed_at": iso_time(status["indexed_at"]),
        "index_age_s": age,
        "skipped": dict(status["skipped"]),
        "failed": failed,
        "changes_behind": behind,
        "model": meaning["model"],
        "model_read": meaning["read"],
        "model_of": meaning["of"],
        "instant_vectors": meaning["instant"],
        "reranker": meaning["reranker"],
        "sent_to": meaning["sent_to"],
        "problems": list(meaning["problems"]),
    }


def _gaps(details: Mapping[str, Any]) -> list[str]:
    """Gaps of answers at present, for the owner alone."""
    if not details:
        return []
    gaps = []
    if not details["indexed_at"]:
        gaps.append("The first index run has not been completed; files may be missing.")
    if details["failed"]:
        gaps.append(f"{counted(details['failed'], 'file')} could not be read, or not all of them.")
    if details["model"] and details["model_read"] < details["model_of"]:
        share = details["model_read"] / details["model_of"]
        gaps.append(f"The model has read {share:.0%} of the passages so far; meaning counts less in the others.")
    elif not details["model"] and not details["instant_vectors"]:
        gaps.append("There are no vectors: words alone are searched.")
    return [*gaps, *details["problems"]]
