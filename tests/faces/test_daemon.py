"""`findling serve`: how it starts, what it does while it runs, and how it ends."""

from __future__ import annotations

import configparser
import json
import os
import plistlib
import shutil
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from findling.domain.errors import NotIndexedError
from findling.domain.permissions import OWNER
from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.faces.daemon import cli_routes as local
from findling.faces.daemon.background_tasks import Keeper
from findling.service.client.daemon import DaemonClient, call_daemon, request_document
from findling.service.client.daemon_state import daemon_folder, make_folder, read_state, running
from findling.service.engine.background import _started, reap
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from findling.service.settings.portable_settings import settings_document
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspace import locate
from tests.faces.daemons import Daemon, be_patient, daemon_of, search_processes
from tests.processes import PATIENCE_S, BoundedProcess, run_process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")

Findling = Callable[..., tuple[int, str, str]]

ASKED: dict[str, object] = {
    "home": "/",
    "path": ".",
    "is_here": True,
    "settings": {},
    "principals": None,
    "verb": "search",
    "arguments": {"requests": []},
    "refresh": True,
}

NOT_ASKED: tuple[object, ...] = (
    {},
    [],
    "x",
    ASKED,
    {**ASKED, "verb": "forget_everything"},
    {**ASKED, "verb": "fetch", "arguments": {"name": 1, "context": 0}},
    {**ASKED, "verb": "fetch", "arguments": {"name": "x", "context": 0, "principals": None}},
    dict.fromkeys(ASKED, 1),
)
"""Requests that the command line never sends."""


@pytest.fixture(autouse=True)
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")  # to open a model takes each daemon half a second


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The home of all workspaces, as the variables say."""
    return tmp_path / "workspaces"


def ask(daemon: Daemon, path: str, *, head: str = "") -> tuple[int, str]:
    """The status and the body that an address on TCP answers with."""
    with socket.create_connection((daemon.state.host, daemon.state.port), timeout=PATIENCE_S) as line:
        asked = f"{path} HTTP/1.1\r\nhost: localhost:{daemon.state.port}\r\nconnection: close\r\n{head}\r\n"
        line.sendall(asked.encode())
        answer = line.makefile("rb").read().decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


def hits(daemon: Daemon, query: str) -> list[str]:
    """The paths that are found over HTTP, where nothing is read from disk."""
    status, body = ask(daemon, f"GET /v1/search?q={query}")
    assert status == 200, body
    return [hit["path"] for hit in json.loads(body)["hits"]]


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_life_from_the_first_file_to_the_last_request(project: Path, place: Path, findling: Findling) -> None:
    """All that one daemon goes through: it indexes, follows its files, answers, tells nothing, and ends in order."""
    with daemon_of(place, project, "--set", "watch.wait_s=0.1", "--verbose") as daemon:
        assert stat.S_IMODE(Path(daemon.state.socket).stat().st_mode) == 0o600
        assert stat.S_IMODE(daemon_folder(place).stat().st_mode) == 0o700
        assert ask(daemon, "GET /healthz")[0] == 200
        assert eventually(lambda: ask(daemon, "GET /readyz")[0] == 200)
        assert eventually(lambda: bool(daemon.about()["documents"])), "what was never indexed is indexed"
        assert set(hits(daemon, "login")) == {"src/auth.py", "docs/guide.md"}

        assert eventually(lambda: daemon.about()["last_index_refresh"] is not None)
        refreshed = daemon.about()["last_index_refresh"]
        (project / "docs" / "walrus.md").write_text("# Walrus\n")
        assert eventually(lambda: hits(daemon, "walrus") == ["docs/walrus.md"])
        assert eventually(lambda: daemon.about()["last_index_refresh"] > refreshed)
        (project / "docs" / "walrus.md").unlink()
        assert eventually(lambda: hits(daemon, "walrus") == [])

        assert ask(daemon, "GET /")[0] == 200, "the page"
        assert ask(daemon, "POST /mcp")[0] in (400, 406, 415), "MCP is there, and was not asked in its language"
        assert ask(daemon, "GET /local/status")[0] == 404, "only on the socket of the owner"
        assert ask(daemon, "POST /local/stop")[0] == 404
        for nonsense in NOT_ASKED:
            assert call_daemon(daemon.state, "POST", "/local/ask", nonsense)[0] == 422

        code, out, err = findling("serve", ".", "--port", "0")
        assert (code, out) == (2, "")
        assert f"process {daemon.process.pid} serves {place} already at {daemon.state.address}" in err

        assert findling("serve", "--stop") == (
            0,
            "",
            f"findling: the daemon of process {daemon.process.pid} has ended\n",
        )
        said = daemon.stderr()
        assert daemon.process.returncode == 0
    assert [path.name for path in daemon_folder(place).iterdir()] == ["lock"], "nothing else stays behind"
    assert f"findling: serving {project} at {daemon.state.address}, process {daemon.process.pid}" in said
    assert "GET /v1/search 200 " in said
    assert "walrus" not in said, "nobody is told what was asked"
    assert "Traceback" not in said
    assert findling("serve", "--stop") == (1, "", "findling: no daemon runs\n")


def test_who_is_being_answered_gets_an_answer_before_it_ends(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, findling: Findling
) -> None:
    """Also in a home that lies too deep for the address of a socket."""
    be_patient(monkeypatch)
    deep = tmp_path / ("d" * 120)
    monkeypatch.setenv("FINDLING_HOME", str(deep))
    assert findling("index")[0] == 0
    questions = [SearchRequest(query=f"login {number}") for number in range(32)]
    with daemon_of(deep, project, "--no-watch") as daemon:
        path = Path(daemon.state.socket)
        assert not path.is_relative_to(deep)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        found: list[SearchAnswer] = []
        client = DaemonClient(daemon.state, deep, ".", load_settings(project))
        asking = threading.Thread(target=lambda: found.extend(client.search_many(questions, refresh=True)))
        asking.start()
        assert eventually(lambda: daemon.about()["total_queries"] > 0), "it has begun"
        daemon.process.send_signal(signal.SIGINT)
        asking.join()
        said = daemon.stderr()
    assert [len(answer.hits) for answer in found] == [2] * len(questions)
    assert (daemon.process.returncode, "Traceback" in said) == (0, False), said
    assert [path.name for path in daemon_folder(deep).iterdir()] == ["lock"]
    assert not path.parent.exists()


def test_what_a_killed_one_has_left_is_replaced(project: Path, place: Path, findling: Findling) -> None:
    with daemon_of(place, project, "--no-watch") as daemon:
        daemon.process.kill()
        daemon.process.wait()
        assert read_state(place) == daemon.state, "it had no time to clear up"
        assert running(place) is None
        code, out, err = findling("login", "--files", "--explain")
        assert (code, sorted(out.splitlines())) == (0, ["docs/guide.md", "src/auth.py"])
        assert f"searched here: the daemon of process {daemon.process.pid} does not answer" in err
        assert findling("login")[2] == "", "and nobody else is bothered with that"
        assert "daemon:" not in findling("status")[1]
    with daemon_of(place, project, "--no-watch") as another:
        assert another.state.pid != daemon.state.pid
        assert another.about()["pid"] == another.process.pid
        _one_that_hangs_is_left_alone(another, findling)
        _one_whose_state_is_damaged_can_be_ended(another, findling)


def _one_that_hangs_is_left_alone(daemon: Daemon, findling: Findling) -> None:
    pid = daemon.process.pid
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        code, out, err = findling("login", "--files", "--explain")
        assert (code, sorted(out.splitlines())) == (0, ["docs/guide.md", "src/auth.py"])
        assert f"searched here: the daemon of process {pid} does not answer: timed out" in err
        assert json.loads(findling("status", "--json")[1])["daemon"] is None
        code, _, err = findling("serve", "--stop")
        assert (code, f"the daemon of process {pid} does not answer" in err) == (2, True)
        assert f"try: kill {pid}, and kill -9 {pid} if it stays" in err
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def _one_whose_state_is_damaged_can_be_ended(daemon: Daemon, findling: Findling) -> None:
    pid, place = daemon.process.pid, daemon.home
    file = daemon_folder(place) / "state.json"
    for damage in ("{}", '{"socket": 5}', "[" * 100_000, None):
        file.unlink()
        if damage is None:
            file.mkdir()
        else:
            file.write_text(damage)
        assert findling("login", "--files") == (0, "src/auth.py\ndocs/guide.md\n", "")
        assert "daemon:" not in findling("status")[1]
        code, _, err = findling("serve", "--stop")
        assert (code, err) == (
            2,
            f"findling: process {pid} serves {place}, and cannot be reached\n"
            f"  try: kill {pid}, and kill -9 {pid} if it stays\n",
        )
        code, _, err = findling("serve", "--port", "0")
        assert (code, f"process {pid} serves {place} already\n  try: kill {pid}" in err) == (2, True)
    daemon.process.terminate()
    daemon.stderr()
    assert findling("serve", "--stop") == (1, "", "findling: no daemon runs\n")
    code, _, err = findling("serve", "--port", "0")
    assert (code, f"{file} cannot be replaced" in err) == (2, True)


def test_what_was_dropped_while_a_search_had_to_wait_does_not_come_back(
    host: Host, project: Path, place: Path, findling: Findling
) -> None:
    settings = load_settings(project)
    folder = locate(project, home=place, name="", place=settings["store.place"]).folder
    asked = {
        "home": str(place),
        "path": str(project),
        "is_here": True,
        "refresh": True,
        "settings": settings_document(settings),
        "principals": None,
        "verb": "search",
        "arguments": {"requests": [request_document(SearchRequest(query="login"))]},
    }
    prepared = local._prepare(host, json.dumps(asked).encode())
    assert findling("workspaces", "drop", str(project), "--yes")[0] == 0
    with pytest.raises(NotIndexedError):
        local._refresh(host, prepared)
    assert not folder.exists()


def test_a_port_that_is_taken_is_told(project: Path, place: Path, findling: Findling) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, err = findling("serve", "--port", str(port))
    assert code == 2
    assert err == f"findling: port {port} of 127.0.0.1 is taken\n  try: findling serve --port {port + 1}, or --port 0\n"
    assert [path.name for path in daemon_folder(place).iterdir()] == ["lock"], "nothing is left of the attempt"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--set", "serve.host=0.0.0.0"), "others could connect to 0.0.0.0, and there is no token to know them by"),
        (("--set", "serve.host=::"), "others could connect to ::, and there is no token to know them by"),
        (("--set", "serve.host=no.such.host.invalid"), "no.such.host.invalid is no address of this machine"),
        (("--set", "serve.host=192.0.2.1"), "nothing can listen on 192.0.2.1:0"),
        (("--port", "70000"), "serve.port must be"),
        (("--port", "x"), "serve.port must be"),
        (("--workspace", "nope"), "there is no workspace nope"),
        (("nowhere",), "there is no nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_served_is_told(project: Path, findling: Findling, args: tuple[str, ...], told: str) -> None:
    code, out, err = findling("serve", "--port", "0", *args)
    assert (code, out) == (2, "")
    assert told in err
    assert "try: " in err


def test_others_are_let_in_once_there_is_a_token(project: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a daemon of one process, as it is asked to be; `test_live_policy.py` has one that always wants a token."""
    monkeypatch.setenv("FINDLING_INDEX_WORKERS", "1")
    place.mkdir()
    secret = TokenBook(place).create("ann", principals=None)
    with daemon_of(place, project, "--set", "serve.host=0.0.0.0", "--no-watch") as daemon:
        assert daemon.state.address == f"http://{daemon.state.host}:{daemon.state.port}"
        assert ask(daemon, "GET /v1/workspaces")[0] == 401
        assert ask(daemon, "GET /healthz")[0] == 200
        assert ask(daemon, "GET /v1/workspaces", head=f"authorization: Bearer {secret}\r\n")[0] == 200
        assert call_daemon(daemon.state, "GET", "/v1/workspaces")[0] == 200, "the owner needs none"
        assert ask(daemon, "GET /v1/search?q=login", head=f"authorization: Bearer {secret}\r\n")[0] in (200, 409)
        assert sys.platform != "linux" or search_processes(daemon.state.pid) == set()


def test_units_start_the_same_daemon(project: Path, tmp_path: Path, findling: Findling) -> None:
    code, out, err = findling("serve", ".", "--port", "4711", "--no-watch", "--print-unit", "systemd")
    unit = configparser.RawConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(out)
    command = f"{sys.executable} -P -m findling serve {project} --port 4711 --no-watch"
    assert (code, unit["Service"]["ExecStart"]) == (0, command)
    assert unit["Install"]["WantedBy"] == "default.target"
    assert "network" not in out
    assert f'Environment="FINDLING_HOME={tmp_path / "workspaces"}"' in out
    assert "systemctl --user enable --now findling" in err
    verify = shutil.which("systemd-analyze")
    if verify:
        (tmp_path / "findling.service").write_text(out)
        done = run_process([verify, "verify", "--user", str(tmp_path / "findling.service")])
        assert "findling.service" not in done.stderr, done.stderr
    agent = plistlib.loads(findling("serve", ".", "--print-unit", "launchd")[1].encode())
    assert agent["ProgramArguments"] == [sys.executable, "-P", "-m", "findling", "serve", str(project)]
    assert agent["EnvironmentVariables"]["FINDLING_HOME"] == str(tmp_path / "workspaces")
    assert agent["RunAtLoad"] is True


def test_a_workspace_without_files_is_served(project: Path, place: Path, tmp_path: Path, findling: Findling) -> None:
    assert findling("workspaces", "create", "facts")[0] == 0
    (tmp_path / "fact.json").write_text(json.dumps({"type": "decision", "id": "1", "title": "A walrus it is"}))
    assert findling("add", str(tmp_path / "fact.json"), "--workspace", "facts")[0] == 0
    settings = load_settings(project).override({"workspace.name": "facts"}, "flag --workspace")
    host = Host(settings)
    keeper = Keeper(host, None, watches=True)
    keeper.start()
    try:
        assert eventually(lambda: host.is_ready)
        with host.client(OWNER) as client:
            assert [hit.rid for hit in client.search("walrus")] == ["decision:1"]
    finally:
        keeper.stop(PATIENCE_S)
        host.close()
    out = findling("serve", "--workspace", "facts", "--print-unit", "systemd")[1]
    assert f"ExecStart={sys.executable} -P -m findling serve --workspace facts\n" in out


@pytest.fixture
def host(project: Path, findling: Findling) -> Iterator[Host]:
    assert findling("index")[0] == 0
    made = Host(load_settings(project), project)
    yield made
    made.close()


def test_folders_on_the_list_are_followed_as_well(host: Host, project: Path, home: Path, findling: Findling) -> None:
    other = home / "other"
    other.mkdir()
    (other / "a.txt").write_text("a walrus\n")
    assert findling("watch", "add", str(other))[0] == 0
    keeper = Keeper(host, project, watches=True)
    keeper.start()
    try:
        assert eventually(lambda: findling("search", "--no-index", "walrus", str(other))[0] == 0)
        (project / "b.txt").write_text("a seal\n")
        assert eventually(lambda: findling("search", "--no-index", "seal")[0] == 0)
    finally:
        keeper.stop(PATIENCE_S)


def test_processes_that_have_ended_are_no_longer_kept() -> None:
    process = BoundedProcess([sys.executable, "-c", "pass"])
    process.returncode = 0  # as one that nobody waits for
    _started.append(process.pid)

    def is_noticed() -> bool:
        reap()
        return process.pid not in _started

    assert eventually(is_noticed)


def test_a_missing_library_is_named(project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "findling.faces.daemon.server", raising=False)
    code, _, err = findling("serve")
    assert code == 2
    assert "findling serve needs uvicorn, which is not installed" in err
    assert "pip install 'findling[serve]'" in err


def test_a_unit_is_printed_without_the_library_as_well(
    project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is not installed" not in findling("serve", "--print-unit", "systemd")[2]
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "findling.faces.daemon.server", raising=False)
    code, out, err = findling("serve", "--print-unit", "systemd")
    assert (code, "ExecStart=" in out) == (0, True)
    assert "findling serve needs uvicorn, which is not installed\n  try: pip install 'findling[serve]'" in err


def test_what_is_in_the_way_of_the_socket_is_told(project: Path, place: Path, findling: Findling) -> None:
    (make_folder(place) / "socket").write_text("")
    code, _, err = findling("serve", "--port", "0")
    assert code == 2
    assert f"no socket can be made at {daemon_folder(place) / 'socket'}: Address already in use" in err
    assert (daemon_folder(place) / "socket").exists(), "whatever it is, it is not ours"
