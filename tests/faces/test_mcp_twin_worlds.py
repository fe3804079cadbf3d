"""Answers to an MCP client are the same, byte by byte, whatever its caller may not see."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from findling.domain.permissions import OWNER, Caller
from findling.domain.resources import ResourceType
from findling.faces.mcp.tool_context import Desk, local_desk
from findling.faces.mcp.tools.budget import compact_json
from findling.faces.mcp.transport.server import make_server
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine
from findling.service.settings.settings import Settings
from tests.counts import sample, tries
from tests.faces.mcp_desks import asked, served
from tests.service import test_graph_twin_worlds as graph
from tests.service.test_twin_worlds import ANN, LIMITS, SHAPES, WORDS, Worlds, _entries, _worlds

Call = tuple[str, dict[str, Any]]

READER = Caller("ann", ANN, frozenset({"read", "write"}))
SMALL = 500


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    """Two worlds that are only read."""
    with _worlds(3) as made:
        yield made


def _servers(worlds: Worlds, caller: Caller = READER) -> list[Server[Any]]:
    """A server of the world without, and one of the world with what must not be seen."""
    return [make_server(partial(_desk, viewer.engine, caller)) for viewer in worlds]


def _desk(engine: Engine, caller: Caller) -> Desk:
    own = Settings().override({"mcp.write": True, "mcp.max_tokens": SMALL, "semantic.refine": "never"}, "test")
    return local_desk(lambda: nullcontext(LocalClient(engine, caller.principals)), caller, own)


async def _told(client: Client, name: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(name, arguments)
    return compact_json(result.model_dump(mode="json", exclude_none=True))


async def _read(client: Client, uri: str) -> str:
    try:
        return compact_json((await client.read_resource(uri)).model_dump(mode="json", exclude={"ttl_ms"}))
    except MCPError as error:
        return str(error)


async def _everything(client: Client, calls: list[Call], uris: list[str]) -> list[str]:
    """All that a client can get to know."""
    tools = [tool.model_dump(mode="json") for tool in (await client.list_tools()).tools]
    said = [client.instructions or "", compact_json(tools)]
    said += [await _told(client, name, arguments) for name, arguments in calls]
    return said + [await _read(client, uri) for uri in ("findling://status", *uris)]


def _calls(seed: int) -> list[Call]:
    """Calls of every tool that reads, about what is seen, what is hidden, and what was never there."""
    chance = random.Random(seed)
    words = [*WORDS, "secretiv", "budgett", "zebra", "merg"]
    calls: list[Call] = [("status", {})]
    for _ in range(tries(25, short=12)):
        query = chance.choice(SHAPES).format(*chance.choices(words, k=2)) + chance.choice(LIMITS)
        filters = chance.choice([{}, {}, {"tag": "secret"}, {"type": "note"}, {"author": ["Bob"]}, {"path": "docs"}])
        options = {
            "limit": chance.choice([1, 3, 10]),
            "mode": chance.choice(["auto", "keyword", "hybrid", "semantic"]),
            "detail": chance.choice(["concise", "full"]),
            "max_chars": chance.choice([1000, 8000]),
        }
        calls.append(("search", {"query": query, "filters": filters, **options}))
    for word in chance.sample(words, tries(5, short=3)):
        calls.append(("search", {"query": word, "all": True, "limit": 1}))
        for gives in ("lines", "counts", "files"):
            calls.append(("grep", {"pattern": word, "fixed": True, "gives": gives, "context": 1, "max_chars": 1000}))
        calls.append(("grep", {"pattern": f"{word}.*"}))  # refused
        calls.append(("refs", {"name": word, "limit": 2}))
    calls += [("glob", {"pattern": "*.md"}), ("glob", {"pattern": ["docs", "!3*"], "newest": True, "limit": 1})]
    for name in _names(seed):
        calls += [("fetch", {"id": name}), ("similar", {"id": name}), ("explain", {"query": "pool", "id": name})]
        calls += [("related", {"of": name}), ("related", {"of": chance.choice(words), "to": name})]
    calls.append(("search", {"query": "pool", "filters": {"type": "secretive"}}))
    calls.append(("remember", {"text": f"{chance.choice(words)} is what I know"}))
    for word in chance.sample(words, 3):
        calls.append(("remember", {"text": f"The deadline of {word} is {chance.choice(['3', '4'])} May 2027."}))
        calls.append(("memory", {"text": f"deadline {word} last week"}))
        calls.append(("memory", {"action": "history", "text": f"note:{word}"}))
    calls += [("memory", {"action": "review"}), ("memory", {"text": "pool", "at": "yesterday"})]
    return calls


def _names(seed: int) -> list[str]:
    rids = [entry.resource.rid for entry in _entries(seed, 12, 12)]
    return [*sample(rids, short=12), "note:999", "decision:00", "docs/3.md", "docs/3.md:1", "0123456789abcdef"]


@settings(max_examples=tries(3, short=1), deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
@given(seed=st.integers(0, 10**6), era=st.sampled_from(["auto", "legacy"]))
def test_every_tool_and_resource(seed: int, era: str) -> None:
    uris = [f"findling://document/{name}" for name in _names(seed)]
    with _worlds(seed) as worlds:
        ask = partial(_everything, calls=_calls(seed), uris=uris)
        without, with_hidden = (asked(server, ask, era) for server in _servers(worlds))
    assert without == with_hidden
    assert any('"results":[{' in said for said in without)


@pytest.mark.parametrize("bulk", graph.BULKS)
def test_the_amount_of_hidden_text_decides_nothing_right_after_the_load(bulk: int) -> None:
    chance = random.Random(bulk)
    calls: list[Call] = []
    for _ in range(tries(60, short=8)):
        query = chance.choice(graph.QUESTIONS).format(*chance.choices(graph.NAMES, k=2))
        calls.append(("search", {"query": query, "detail": "full", "mode": chance.choice(["keyword", "hybrid"])}))
        calls.append(("related", {"of": chance.choice(graph.NAMES), "to": chance.choice(["", *graph.NAMES])}))
    with _worlds(5, style=graph.STYLE, bulk=bulk) as worlds:
        without, with_hidden = (asked(one, partial(_everything, calls=calls, uris=[])) for one in _servers(worlds))
    assert without == with_hidden
    assert any("names Marie Curie" in said or '"path"' in said for said in without)


def test_callers_at_once(seed: int = 11) -> None:
    """Caches that one caller warms up are of no use to another, however their questions mix."""

    async def ask(servers: list[Server[Any]]) -> list[list[str]]:
        async with Client(servers[0]) as one, Client(servers[1]) as other:
            calls = _calls(seed)[:20]
            return await asyncio.gather(*[_everything(client, calls, []) for client in (one, other, one, other)])

    with _worlds(seed) as worlds:
        first, *others = asyncio.run(ask(_servers(worlds)))
    assert all(other == first for other in others)


def test_what_is_hidden_is_as_what_was_never_there(worlds: Worlds) -> None:
    _, server = _servers(worlds)
    hidden = [entry.resource.rid for entry in _entries(3, 12, 12) if not entry.is_seen]
    for rid in hidden[:4]:
        for name, arguments in (("fetch", {}), ("similar", {}), ("explain", {"query": "pool"})):
            said = [
                asked(server, partial(_told, name=name, arguments={"id": one, **arguments}))
                for one in (rid, "note:zzz")
            ]
            assert said[0].replace(rid, "note:zzz") == said[1]
        said = [asked(server, partial(_read, uri=f"findling://document/{one}")) for one in (rid, "note:zzz")]
        assert said[0].replace(rid, "note:zzz") == said[1]


def test_the_worlds_do_differ_for_their_owner(worlds: Worlds) -> None:
    """Otherwise none of the above could fail."""
    ask = partial(_told, name="search", arguments={"query": "pool"})
    one, other = (asked(server, ask) for server in _servers(worlds, OWNER))
    assert one != other


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_progress_tells_nobody_but_the_owner_what_lies_there(tmp_path: Path, era: str) -> None:
    """A search that indexes comes upon files of which its caller must not know, not even how many there are."""

    def steps(name: str, hidden: int, caller: Caller) -> tuple[list[Any], str]:
        told: list[Any] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        async def ask(client: Client) -> str:
            said = []
            for turn in range(2):  # first nothing is indexed, then something has changed
                for number in range(hidden):
                    (root / f"secret-merger-{number}.md").write_text(f"merger {turn} {number}\n")
                result = await client.call_tool("search", {"query": "merger"}, progress_callback=note)
                said.append(compact_json(result.model_dump(mode="json", exclude_none=True)))
            return " ".join(said)

        root = tmp_path / name / "project"
        root.mkdir(parents=True)
        (root / "seen.md").write_text("Nothing of that.\n")
        with served(root, caller) as one:
            said = asked(one.server, ask, era)
        return told, said

    without, with_hidden = steps("without", 0, READER), steps("with", 5, READER)
    assert without == with_hidden
    assert with_hidden[0] == []
    assert steps("own", 5, OWNER)[0]


def test_types_that_the_owner_has_declared(worlds: Worlds) -> None:
    """The names of types are those that everybody has, and those of what is seen."""

    def said(declared: dict[str, ResourceType], caller: Caller) -> str:
        desk = _desk(worlds.without.engine, caller)
        desk = desk._replace(settings=desk.settings.with_types(declared))
        arguments = {"query": "pool", "filters": {"type": "mergr"}}
        return asked(make_server(lambda: desk), partial(_told, name="search", arguments=arguments))

    merger = {"merger": ResourceType(name="merger")}
    assert said(merger, READER) == said({}, READER)
    assert "merger instead?" in said(merger, OWNER)
