"""Finding a daemon: its state, a killed one, and one that answers nonsense."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from findling import __version__
from findling.domain.errors import DaemonError
from findling.faces.cli.commands.admin.serve import launchd_plist, systemd_unit
from findling.service.client.daemon import ask_daemon, call_daemon
from findling.service.client.daemon_state import (
    DaemonState,
    daemon_folder,
    make_folder,
    process_that_holds,
    read_state,
    remove_state,
    running,
    socket_path,
    write_state,
)
from findling.stores.lock import WriteLock
from tests.processes import PATIENCE_S, in_time

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")


def state_at(path: Path | str, version: str = __version__) -> DaemonState:
    return DaemonState(os.getpid(), version, str(path), "127.0.0.1", 3463, 1.0)


@contextmanager
def listening(
    path: Path, answer: bytes | None = None, *, then: bytes = b"", after_s: float = 0.0
) -> Iterator[list[bytes]]:
    """A socket at a path that answers everybody with the same bytes, and notes what they have sent.

    `then` follows `after_s` seconds later.
    """
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def reply() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    heard.append(caller.recv(65536))
                    if answer and heard[-1]:
                        caller.sendall(answer)
                        if then:
                            time.sleep(after_s)
                            with suppress(BrokenPipeError):  # it was not waited for
                                caller.sendall(then)

        thread = threading.Thread(target=reply)
        thread.start()
        try:
            yield heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    make_folder(tmp_path)
    write_state(tmp_path, state_at("/somewhere"))
    assert read_state(tmp_path) == state_at("/somewhere")
    assert stat.S_IMODE(daemon_folder(tmp_path).stat().st_mode) == 0o700
    assert stat.S_IMODE((daemon_folder(tmp_path) / "state.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"pid": 1}',
        b'{"surprise": 1}',
        b"\xff",
        b"[" * 100_000,
        json.dumps({**state_at("/x")._asdict(), "socket": 5}).encode(),
        json.dumps({**state_at("/x")._asdict(), "socket": "/a\0b"}).encode(),
        json.dumps({**state_at("/x")._asdict(), "socket": "/\ud800"}).encode(),
        json.dumps({**state_at("/x")._asdict(), "started_at": "now"}).encode(),
    ],
)
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (make_folder(tmp_path) / "state.json").write_bytes(content)
    assert read_state(tmp_path) is None
    assert running(tmp_path) is None
    assert ask_daemon(tmp_path, "GET", "/local/status") is None
    remove_state(tmp_path)
    assert list(daemon_folder(tmp_path).iterdir()) == []


def test_a_state_of_a_later_version_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    document = {**state_at("/somewhere", "99.0")._asdict(), "surprise": [1]}
    (make_folder(tmp_path) / "state.json").write_text(json.dumps(document))
    assert read_state(tmp_path) == state_at("/somewhere", "99.0")


def test_a_folder_in_the_place_of_the_state_is_no_state(tmp_path: Path) -> None:
    (make_folder(tmp_path) / "state.json").mkdir()
    assert read_state(tmp_path) is None
    assert running(tmp_path) is None
    with pytest.raises(DaemonError, match=r"state\.json cannot be replaced"):
        remove_state(tmp_path)


def test_who_holds_the_lock_is_known_without_a_state(tmp_path: Path) -> None:
    assert process_that_holds(tmp_path) is None, "no daemon was ever there"
    lock = WriteLock(make_folder(tmp_path) / "lock")
    assert lock.acquire(0.0)
    assert process_that_holds(tmp_path) == os.getpid()
    lock.release()
    assert process_that_holds(tmp_path) is None, "it has ended"


def test_a_daemon_that_was_killed_counts_for_nothing(tmp_path: Path) -> None:
    path = make_folder(tmp_path) / "socket"
    write_state(tmp_path, state_at(path))
    assert running(tmp_path) is None, "there is no socket at all"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert running(tmp_path) is None, "nobody listens"
    assert ask_daemon(tmp_path, "GET", "/local/status") is None
    remove_state(tmp_path)
    assert list(daemon_folder(tmp_path).iterdir()) == []


def test_a_daemon_that_listens_is_found(tmp_path: Path) -> None:
    path = make_folder(tmp_path) / "socket"
    write_state(tmp_path, state_at(path))
    with listening(path, b'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"a": "b"}') as heard:
        assert running(tmp_path) == state_at(path)
        assert ask_daemon(tmp_path, "POST", "/x", {"c": "ü"}, {"findling-path": "/y"}) == (200, {"a": "b"})
    assert heard[-1].startswith(b"POST /x HTTP/1.1\r\nhost: localhost\r\n")
    assert b"\r\nfindling-path: /y\r\n" in heard[-1]
    assert heard[-1].endswith(b'\r\n\r\n{"c": "\\u00fc"}')


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        b"hello",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{]}",
        b"HTTP/1.1 what OK\r\ncontent-length: 2\r\n\r\n{}",
        b"hello\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"[" * 100_000,
    ],
    ids=lambda answer: ascii(answer and answer[:60]),
)
def test_one_that_answers_nonsense_is_as_if_there_were_none(tmp_path: Path, answer: bytes | None) -> None:
    path = make_folder(tmp_path) / "socket"
    write_state(tmp_path, state_at(path))
    with listening(path, answer):
        assert ask_daemon(tmp_path, "GET", "/local/status") is None
        with pytest.raises(DaemonError, match="does not answer"):
            call_daemon(state_at(path), "GET", "/local/status")


def test_one_that_is_silent_is_not_waited_for(tmp_path: Path) -> None:
    path = make_folder(tmp_path) / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with pytest.raises(DaemonError, match="does not answer: timed out"):
            call_daemon(state_at(path), "POST", "/local/ask", {}, patience_s=0.2, answer_s=3600)


def test_one_that_has_begun_is_waited_for(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"

    def ask(seconds: float) -> None:
        path = make_folder(tmp_path) / f"socket{seconds}"
        with listening(path, b"HTTP/1.1 100 Continue\r\n\r\n", then=answer, after_s=2.5 * seconds) as heard:
            state = state_at(path)
            found = call_daemon(state, "POST", "/local/ask", {}, patience_s=seconds, answer_s=PATIENCE_S)
            assert found == (200, {})
            assert b"\r\nexpect: 100-continue\r\n" in heard[-1]
            with pytest.raises(DaemonError, match="timed out"):
                call_daemon(state, "POST", "/local/ask", {}, patience_s=seconds)

    in_time(ask, 0.2)


def test_a_socket_of_somebody_else_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_folder(tmp_path) / "socket"
    write_state(tmp_path, state_at(path))
    with listening(path, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as heard:
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        assert running(tmp_path) is None
        with pytest.raises(DaemonError, match="is no socket of yours"):
            call_daemon(state_at(path), "POST", "/local/stop", {}, any_version=True)
        assert heard == []


def test_one_of_another_version_is_asked_nothing_but_to_stop(tmp_path: Path) -> None:
    path = make_folder(tmp_path) / "socket"
    with listening(path, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as heard:
        with pytest.raises(DaemonError, match=r"is findling 0\.0\.1"):
            call_daemon(state_at(path, "0.0.1"), "POST", "/local/ask", {})
        assert heard == []
        assert call_daemon(state_at(path, "0.0.1"), "POST", "/local/stop", {}, any_version=True) == (200, {})


def test_a_home_that_lies_deep_has_its_socket_elsewhere(tmp_path: Path) -> None:
    near = tmp_path / "near"
    assert socket_path(near) == daemon_folder(near) / "socket" or len(os.fsencode(near)) > 80
    deep = tmp_path / ("d" * 120)
    make_folder(deep)
    path = socket_path(deep)
    try:
        assert len(os.fsencode(path)) < 104
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        write_state(deep, state_at(path))
        remove_state(deep)
        assert not path.parent.exists(), "nothing stays behind"
    finally:
        path.unlink(missing_ok=True)
        if path.parent.exists():
            path.parent.rmdir()


def test_clearing_away_touches_nothing_but_sockets(tmp_path: Path) -> None:
    make_folder(tmp_path)
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    write_state(tmp_path, state_at(precious))
    remove_state(tmp_path)
    assert precious.read_text() == "mine"


def test_an_address_of_ipv6_is_written_as_browsers_want_it() -> None:
    assert state_at("")._replace(host="::1").address == "http://[::1]:3463"


def test_a_unit_keeps_every_character_of_a_command() -> None:
    odd = 'a "b" $HOME %h\\ c'
    unit = systemd_unit(["/bin/python", "-m", "findling", odd], {"FINDLING_HOME": "/x y"}, "100%")
    assert 'ExecStart=/bin/python -m findling "a \\"b\\" $$HOME %%h\\\\ c"\n' in unit
    assert 'Environment="FINDLING_HOME=/x y"\n' in unit
    assert "Description=findling: search over 100%%\n" in unit
    assert "network" not in unit


def test_a_property_list_keeps_every_character_of_a_command() -> None:
    import plistlib

    agent = plistlib.loads(launchd_plist(["python", 'a & <b> "c"'], {"FINDLING_HOME": "/ü"}, "/log").encode())
    assert agent["ProgramArguments"] == ["python", 'a & <b> "c"']
    assert agent["EnvironmentVariables"] == {"FINDLING_HOME": "/ü"}
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
