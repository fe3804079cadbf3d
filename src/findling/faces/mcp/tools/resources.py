"""What can be read by its address: the state of the workspace, and every document in it."""

from __future__ import annotations

from urllib.parse import unquote

import mcp_types as types

from findling.domain.errors import NotFoundError
from findling.faces.mcp.tool_context import Desk
from findling.faces.mcp.tool_errors import naming
from findling.faces.mcp.tools.budget import Budget, compact_json, fit_text
from findling.faces.mcp.tools.instructions import status_document
from findling.faces.mcp.tools.tool_results import DOCUMENT_ADDRESS

__all__ = ["STATUS", "STATUS_ADDRESS", "TEMPLATE", "read_resource"]

STATUS_ADDRESS = "findling://status"

STATUS = types.Resource(
    uri=STATUS_ADDRESS,
    name="status",
    title="What is indexed",
    description="What is indexed, of which types, how fresh it is and what is missing.",
    mime_type="application/json",
)

TEMPLATE = types.ResourceTemplate(
    uri_template=f"{DOCUMENT_ADDRESS}{{id}}",
    name="document",
    title="A document",
    description="The text of a document by its id; longer ones are read in parts with the tool fetch.",
    mime_type="text/plain",
)

_LONGEST_ECHO = 200


def read_resource(desk: Desk, uri: str) -> types.ReadResourceResult:
    """What lies at an address.

    Raises NotFoundError for one that nothing lies at, in the same words as for one that the caller may not see.
    """
    if uri == STATUS_ADDRESS:
        return _content(uri, compact_json(status_document(desk)), "application/json")
    name = unquote(uri.removeprefix(DOCUMENT_ADDRESS)) if uri.startswith(DOCUMENT_ADDRESS) else ""
    if not name:
        raise NotFoundError(
            f"there is no resource {uri:.{_LONGEST_ECHO}}", hint=f"{STATUS_ADDRESS} or {DOCUMENT_ADDRESS}ID"
        )
    with desk.reading() as client, naming():
        text = client.fetch(name).text
    fitted = fit_text({"text": text}, "text", Budget(desk.settings["mcp.max_tokens"], 1 << 62))["text"]
    if len(fitted) < len(text):
        fitted += f"\n[{len(text) - len(fitted):,} more characters: fetch with offset {len(fitted)}]"
    return _content(uri, fitted, "text/plain")


def _content(uri: str, text: str, kind: str) -> types.ReadResourceResult:
    cleaned = text.encode("utf-8", "replace").decode()
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=cleaned, mime_type=kind)])
