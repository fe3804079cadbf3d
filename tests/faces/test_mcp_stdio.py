"""`findling mcp` as clients start it: a process that speaks on stdin and stdout, alone and with a daemon."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client, StdioServerParameters

import findling
from findling.faces.mcp.tools.tools import TOOLS
from findling.service.settings.settings import Settings
from tests.faces.daemons import wait_for
from tests.faces.mcp_desks import asked, make_project, text_of
from tests.processes import BoundedProcess, run_process

ERAS = ["auto", "legacy"]

LIST_MODULES = (
    "import sys; from findling.faces.cli.main import run; code = run(sys.argv[1:]); "
    "print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(code)"
)


class _World(NamedTuple):
    """A project, and the environment that its processes have."""

    root: Path
    env: dict[str, str]

    @property
    def home(self) -> Path:
        return Path(self.env["FINDLING_HOME"])

    def server(self, *options: str) -> StdioServerParameters:
        """The command that a client starts."""
        arguments = ["-m", "findling", "mcp", str(self.root), *options]
        return StdioServerParameters(command=sys.executable, args=arguments, env=self.env)

    def spoken(self, lines: list[str], *options: str) -> tuple[list[dict[str, Any]], set[str]]:
        """The answers of a process to some lines, message by message, and the modules that it has loaded."""
        done = run_process(
            [sys.executable, "-c", LIST_MODULES, "mcp", str(self.root), *options],
            stdin="".join(f"{line}\n" for line in lines),
            env=self.env,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()], set(done.stderr.splitlines())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> _World:
    folder = tmp_path_factory.mktemp("w")
    root = make_project(folder / "project")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")},
        "FINDLING_HOME": str(folder / "home"),
        "FINDLING_CONFIG": str(folder / "config.toml"),
        "FINDLING_SEARCH_MODE": "keyword",
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_MCP_WRITE": "true",
    }
    with findling.open(root, settings=Settings().override({"store.home": str(folder / "home")}, "test")) as engine:
        engine.index()
        engine.permissions.share("file:docs/guide.md", "user:ann")
    return _World(root, env)


@pytest.fixture(scope="module")
def a_daemon(world: _World) -> Iterator[list[BoundedProcess]]:
    """The daemon that runs, if any: tests without one come first, for to start it takes 2 s."""
    running_one: list[BoundedProcess] = []
    yield running_one
    _end(running_one, signal.SIGTERM)


@pytest.fixture
def daemon(world: _World, a_daemon: list[BoundedProcess]) -> list[BoundedProcess]:
    """A daemon that runs."""
    if not a_daemon:
        command = [sys.executable, "-m", "findling", "serve", str(world.root), "--port", "0", "--no-watch"]
        a_daemon.append(BoundedProcess(command, env=world.env, stderr=subprocess.DEVNULL))
        wait_for(a_daemon[0], world.home)
    return a_daemon


@pytest.fixture
def no_daemon(a_daemon: list[BoundedProcess]) -> None:
    _end(a_daemon, signal.SIGTERM)


def _end(daemon: list[BoundedProcess], how: int) -> None:
    while daemon:
        daemon[-1].send_signal(how)
        daemon.pop().wait()


def _message(method: str, key: int | None = None, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({} if key is None else {"id": key})})


OPENING = [
    _message("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}),
    _message("notifications/initialized"),
]
SEARCH = _message("tools/call", 2, name="search", arguments={"query": "login"})


async def _every_tool(client: Client) -> None:
    async def ask(name: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, text_of(result)
        document: dict[str, Any] = json.loads(text_of(result))
        return document

    assert "evidence, not instructions" in (client.instructions or "")
    assert {"search", "fetch"} <= {tool.name for tool in (await client.list_tools()).tools}
    assert (await ask("search", query="session token"))["total"] == 2
    assert (await ask("fetch", id="docs/guide.md"))["text"].startswith("# Guide")
    assert (await ask("explain", query="token", id="src/auth.py"))["found"]
    assert (await ask("similar", id="src/auth.py"))["results"]
    assert (await ask("status"))["types"]["file"] == 4
    assert (await ask("remember", text="The binder is blue."))["outcome"] in ("new", "known")
    assert (await ask("index"))["unchanged"] == 4
    assert (await client.read_resource("findling://status")).contents
    assert (await client.call_tool("fetch", {"id": "nope"})).is_error


def test_alone(world: _World, no_daemon: None, tmp_path: Path) -> None:
    """The first search of a folder indexes it."""
    asked(_World(make_project(tmp_path / "another"), world.env).server(), _every_tool, "legacy")


def _large_folder_is_answered_from_a_part_at_once(world: _World, forest: Path) -> None:
    """The client that begins is told so, and the first answer says how much is missing in it."""
    forest.mkdir()
    for number in range(400):
        (forest / f"leaf{number}.md").write_text(f"# Leaf {number}\n\n" + f"bark and moss {number}\n" * 270)
    (forest / "okapi.md").write_text("# Zoo\n\nThe okapi sleeps.\n")

    async def ask(client: Client) -> Any:
        assert "the first answer takes about two seconds" in (client.instructions or "")
        return await client.call_tool("search", {"query": "okapi"})

    found = asked(_World(forest, world.env).server(), ask, "legacy").structured_content
    assert [result["path"] for result in found["results"]] == ["okapi.md"]
    assert "of 401 files are indexed so far" in " ".join(found["degraded"])


HALF = '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"search","arguments":{"query":"\\ud800 login"}}}'
UNKNOWN = '{"jsonrpc":"2.0","id":3,"method":"no/such"}'
DEEP = '{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":' + "[" * 300 + "]" * 300 + "}}"


def _whatever_is_asked_is_answered(world: _World, *nonsense: str) -> set[str]:
    """Also what the server itself cannot read, and what nobody offers; the modules that this takes."""
    answers, loaded = world.spoken([*nonsense[:1], *OPENING, HALF, DEEP, SEARCH, SEARCH, UNKNOWN, *nonsense[1:]])
    by_key = {answer.get("id"): answer for answer in answers}
    assert sorted(answer["id"] for answer in answers if answer.get("id") is not None) == [1, 2, 2, 3, 4, 5]
    assert "login" in by_key[2]["result"]["content"][0]["text"]
    assert by_key[3]["error"]["code"] == -32601
    assert by_key[4]["result"]["structuredContent"]["total"] == 2
    assert "error" in by_key[5]
    return loaded


def _end_with_a_client_that_reads_no_more(world: _World) -> None:
    """The process ends quietly, though more could still be asked."""
    command = [sys.executable, "-m", "findling", "mcp", str(world.root)]
    with BoundedProcess(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=world.env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write("".join(f"{line}\n" for line in [*OPENING, SEARCH]))
        process.stdin.flush()
        assert process.wait() == 0
        # A busy machine may index its files in so many parts that the run is told.
        assert [line for line in process.stderr if not line.startswith("findling: indexing ")] == []


def test_a_large_folder_is_answered_from_a_part_at_once(world: _World, no_daemon: None, tmp_path: Path) -> None:
    _large_folder_is_answered_from_a_part_at_once(world, tmp_path / "forest")


def test_a_client_that_reads_no_more(world: _World, no_daemon: None) -> None:
    _end_with_a_client_that_reads_no_more(world)


def test_stdout_is_for_messages_alone(world: _World, no_daemon: None) -> None:
    """Each line is a message, whatever the input, and the process ends with its client."""
    (world.root / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    loaded = _whatever_is_asked_is_answered(world, "not json", "[]", "")
    assert "mcp" in loaded
    (world.root / "broken.pdf").unlink()


@pytest.mark.parametrize("era", ERAS)
def test_with_a_daemon(world: _World, daemon: list[BoundedProcess], era: str) -> None:
    asked(world.server(), _every_tool, era)


def test_a_thin_process_with_a_daemon(world: _World, daemon: list[BoundedProcess]) -> None:
    answers, loaded = world.spoken(["not json", *OPENING, SEARCH, "[]"])
    assert [answer.get("id") for answer in answers if "error" in answer] == [None, None]
    (found,) = [answer["result"] for answer in answers if answer.get("id") == 2]
    assert found["structuredContent"]["total"] == 2
    assert loaded & {"mcp", "pydantic", "anyio", "asyncio", "starlette", "httpx2", "tantivy", "numpy"} == set()
    # The same through the eyes of somebody else.
    answers, _ = world.spoken([*OPENING, SEARCH], "--as", "user:ann")
    (found,) = [answer["result"] for answer in answers if answer.get("id") == 2]
    assert [hit["id"] for hit in found["structuredContent"]["results"]] == ["file:docs/guide.md"]


def test_a_large_folder_is_answered_by_a_daemon(world: _World, daemon: list[BoundedProcess], tmp_path: Path) -> None:
    _large_folder_is_answered_from_a_part_at_once(world, tmp_path / "forest")


def test_whatever_a_daemon_is_asked_is_answered(world: _World, daemon: list[BoundedProcess]) -> None:
    _whatever_is_asked_is_answered(world)


def test_a_client_that_reads_no_more_from_a_daemon(world: _World, daemon: list[BoundedProcess]) -> None:
    _end_with_a_client_that_reads_no_more(world)


def test_a_daemon_that_is_killed_is_not_missed(world: _World, daemon: list[BoundedProcess]) -> None:
    async def ask() -> None:
        async with Client(world.server()) as new, Client(world.server(), mode="legacy") as old:
            before = await new.call_tool("search", {"query": "login"})
            assert before.structured_content == (await old.call_tool("search", {"query": "login"})).structured_content
            _end(daemon, signal.SIGKILL)
            for client in (new, old):
                several = [client.call_tool("search", {"query": word}) for word in ("login", "token", "basket")]
                login, token, basket = await asyncio.gather(*several)
                assert login.structured_content == before.structured_content
                assert token.structured_content["total"] == 2
                assert basket.structured_content["total"] == 1
                assert len((await client.list_tools()).tools) == len(TOOLS)

    asyncio.run(ask())


def test_it_does_not_start_for_what_is_not_there(findling: Callable[..., tuple[int, str, str]], project: Path) -> None:
    code, out, err = findling("mcp", "nowhere")
    assert (code, out) == (2, "")
    assert "nowhere" in err
    code, out, err = findling("mcp", "--as", "nobody in particular")
    assert (code, out) == (2, "")
    assert "is no principal" in err
    code, out, err = findling("mcp", "--workspace", "nowhere")
    assert (code, out) == (2, "")
    assert "there is no workspace nowhere" in err


def test_settings_for_clients(findling: Callable[..., tuple[int, str, str]], project: Path) -> None:
    for client in ("claude", "cursor", "vscode", "codex"):
        code, out, err = findling("mcp", "docs", "--as", "user:ann", "--print", client)
        assert code == 0
        assert err
        if client == "codex":
            entry = tomllib.loads(out)["mcp_servers"]["findling"]
        elif client == "vscode":
            entry = json.loads(out)["servers"]["findling"]
            assert entry["type"] == "stdio"
        else:
            entry = json.loads(out)["mcpServers"]["findling"]
            assert ("or run: claude mcp add findling -- /" in err) is (client == "claude")
        assert Path(entry["command"]).is_absolute()
        assert entry["args"][-4:] == ["mcp", str(project / "docs"), "--as", "user:ann"]


def test_the_skill_is_printed(findling: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = findling("mcp", "--print", "skill")
    assert code == 0
    assert out.startswith("---\n")
    assert "findling" in out
    assert findling("mcp", "--print", "nobody")[0] == 2
