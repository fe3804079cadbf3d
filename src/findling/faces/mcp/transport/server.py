"""The MCP server: tools, resources and instructions.

It has handlers rather than decorated functions, because all of it depends on the caller: tools, instructions, answers.
The SDK speaks the protocol.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

import mcp_types as types
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError

from findling import __version__
from findling.domain.errors import FindlingError, NotFoundError
from findling.domain.reports import IndexProgress, Progress
from findling.domain.results import Degradation
from findling.faces.mcp.tool_context import Desk, Tool, for_caller, naming, told
from findling.faces.mcp.tools.arguments import Arguments, input_schema, output_schema, read_arguments
from findling.faces.mcp.tools.budget import Budget, compact_json, count_tokens, fit_text
from findling.faces.mcp.tools.instructions import make_instructions, status_document
from findling.faces.mcp.tools.tool_results import DOCUMENT_ADDRESS
from findling.faces.mcp.tools.tools import offered_tools
from findling.service.agents.savings import note_answer
from findling.service.workspace.workspace import home_folder
from findling.service.workspace.writer_queue import REFRESH_PATIENCE_S, WriterQueue

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
    """The content of an address.

    Raises NotFoundError for an unknown address, in the same words as for a hidden one.
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


_Result = TypeVar("_Result")
_log = logging.getLogger("findling.mcp")

_PROGRESS_EVERY_S = 0.2

_WRITERS = CapacityLimiter(8)
"""Threads that write: an index run takes as long as it takes, and must not have a thread that answers questions."""

_MOST_NOTED = 50
"""Documents of an answer whose tokens are counted; each takes 0.2 ms."""

_FAULT = "this is a fault in findling; its log says more"


class Runner(Protocol):
    """Does work that blocks where it holds up nobody else."""

    def __call__(self, work: Callable[[], _Result], /) -> Awaitable[_Result]: ...


def make_server(desk: Callable[[], Desk], run: Runner = run_sync) -> Server[Any]:
    """A server that asks for its desk with every request, in a thread that sees the context of the request."""
    handlers = _Handlers(desk, run)
    server = Server[Any](
        "findling",
        version=__version__,
        title="findling",
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    server.middleware.append(handlers.with_instructions)
    return server


class _Handlers:
    """A handler for each kind of request."""

    def __init__(self, desk: Callable[[], Desk], run: Runner) -> None:
        self._desk = desk
        self._run = run

    async def list_tools(self, ctx: ServerRequestContext[Any], params: object) -> types.ListToolsResult:
        tools = await self._run_or_refuse(offered_tools)
        return types.ListToolsResult(tools=[_described(tool) for tool in tools])

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            call = await self._run(lambda: self._at_desk(partial(_prepare, params.name, params.arguments or {})))
            return _answered(await self._carry_out(call, _reporter(ctx)))
        except FindlingError as error:
            return _failed(told(error))
        except Exception:  # the last place where a fault can be kept from the client
            _log.exception("the tool %.60r failed", params.name)
            return _failed(_FAULT)

    async def list_resources(self, ctx: ServerRequestContext[Any], params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[STATUS])

    async def list_templates(self, ctx: ServerRequestContext[Any], params: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(
        self, ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        return await self._run_or_refuse(lambda desk: read_resource(desk, uri))

    async def with_instructions(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Tell a client that begins what is there at this moment, as far as it may know."""
        result = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
            return result
        return {**result, "instructions": await self._run_or_refuse(make_instructions)}

    async def _carry_out(self, call: _Call, on_progress: Progress) -> dict[str, Any]:
        """Run a tool. Writers wait and work in threads of their own, which hold up no question."""
        desk, tool, arguments, home = call
        if tool.writes and home is not None:
            return await _in_turn(home, lambda: _at(desk, lambda: tool.work(desk, arguments, on_progress)))
        if home is not None:
            question = _question(arguments)  # a client that waits is told what is missing instead
            # A complete answer of a part is of little use: the process that indexes the rest is often soon done.
            patience_s = 0.0 if hasattr(arguments, "query") else REFRESH_PATIENCE_S

            def refresh() -> Sequence[Degradation]:
                return _at(desk, lambda: desk.refresh(on_progress, question, patience_s=patience_s))

            desk = desk._replace(notes=await _in_turn(home, refresh, REFRESH_PATIENCE_S))
        return await self._run(lambda: _at(desk, lambda: _noted(desk, tool, tool.work(desk, arguments, on_progress))))

    def _at_desk(self, work: Callable[[Desk], _Result]) -> _Result:
        """Run work. Raises FindlingError that says no more than the caller may know."""
        desk = self._desk()
        return _at(desk, lambda: work(desk))

    async def _run_or_refuse(self, work: Callable[[Desk], _Result]) -> _Result:
        """The same. Raises MCPError for anything that goes wrong: these requests have no other way to say so."""
        try:
            return await self._run(lambda: self._at_desk(work))
        except FindlingError as error:
            code = types.INVALID_PARAMS if isinstance(error, NotFoundError) else types.INTERNAL_ERROR
            raise MCPError(code=code, message=told(error)) from error
        except Exception as error:  # as above
            _log.exception("a request failed")
            raise MCPError(code=types.INTERNAL_ERROR, message=_FAULT) from error


async def _in_turn(home: Path, work: Callable[[], _Result], patience_s: float | None = None) -> _Result:
    """Run work once nobody else in this process writes the index of a folder, or patience ends."""
    async with WriterQueue.of(home).awaited(patience_s) as run:
        return await run_sync(partial(run, work), limiter=_WRITERS)


class _Call(NamedTuple):
    """A call of a tool, and the folder of the index that it writes, if it does."""

    desk: Desk
    tool: Tool
    arguments: Arguments
    home: Path | None


def _prepare(name: str, arguments: dict[str, Any], desk: Desk) -> _Call:
    """The call of a tool. Raises UsageError for a tool that there is none of, or for arguments it cannot use."""
    offered = offered_tools(desk)
    tool = next((tool for tool in offered if tool.name == name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in offered)
        raise NotFoundError(f"there is no tool {name:.60}", hint=f"there are: {known}")
    asked = read_arguments(tool.arguments, arguments)
    if not tool.writes:
        desk.check("read")
    tool.check(desk, asked)
    if not tool.writes and not (tool.wants_latest and desk.looks_first):
        return _Call(desk, tool, asked, None)
    with desk.connect() as client:
        if not tool.writes:
            client.engine.check_path(getattr(asked, "path", "").strip("/"), client.principals)
        return _Call(desk, tool, asked, client.home)


def _at(desk: Desk, work: Callable[[], _Result]) -> _Result:
    """Run work. Raises FindlingError that says no more than the caller may know."""
    try:
        return work()
    except FindlingError as error:
        raise for_caller(error, desk.caller) from error


def _question(arguments: Arguments) -> str | None:
    """The words that a first answer needs: a query, the pattern of lines, a name. A list of files needs all of them."""
    asked = [getattr(arguments, key, None) for key in ("query", "pattern", "name")]
    return next((one for one in asked if isinstance(one, str)), None)


def _noted(desk: Desk, tool: Tool, document: dict[str, Any]) -> dict[str, Any]:
    """The answer of a tool, whose tokens are noted beside those of the documents that it names."""
    if desk.notes:
        with desk.reading() as client:
            client.finish()  # a process indexes what a first answer has left out
    if desk.settings["mcp.savings"]:
        results = document.get("results") or ([document] if "text" in document else [])
        named = [str(result.get("id") or result.get("path") or "") for result in results]
        tokens = 0
        with desk.reading() as client:
            for name in list(dict.fromkeys([*named, *document.get("matches", ())]))[:_MOST_NOTED]:
                with suppress(FindlingError):  # deleted since it was found
                    tokens += count_tokens(client.fetch(name).text)
        home = home_folder(desk.settings["store.home"])
        note_answer(home, tool.name, count_tokens(compact_json(document)), tokens)
    return document


@cache
def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=not tool.writes, open_world_hint=False)
    if tool.writes:  # the same text again is the same memory; only a second undoing goes further back
        hints = hints.model_copy(update={"destructive_hint": False, "idempotent_hint": tool.name != "memory"})
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema(tool.arguments),
        output_schema=output_schema(tool.result),
        annotations=hints,
    )


def _answered(document: dict[str, Any]) -> types.CallToolResult:
    """The same object twice: for clients that read what is structured, and for those that read text."""
    text = compact_json(document)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=json.loads(text)
    )


def _failed(text: str) -> types.CallToolResult:
    cleaned = text.encode("utf-8", "replace").decode()
    return types.CallToolResult(content=[types.TextContent(type="text", text=cleaned)], is_error=True)


def _reporter(ctx: ServerRequestContext[Any]) -> Progress:
    """Tells the client how far an indexing run is, from whichever thread does the work, a few times a second."""
    loop = asyncio.get_running_loop()
    latest = 0.0

    def report(progress: IndexProgress) -> None:
        nonlocal latest
        if progress.stage != "done" and progress.seconds - latest < _PROGRESS_EVERY_S:
            return
        latest = progress.seconds
        where = f"{progress.stage} {progress.path}".strip()
        sending = ctx.session.report_progress(progress.done, progress.total or None, where)
        with suppress(TimeoutError):  # a client that does not read must not stop the work
            asyncio.run_coroutine_threadsafe(sending, loop).result(timeout=1.0)

    return report
