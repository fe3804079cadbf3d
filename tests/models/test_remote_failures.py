"""A provider that is down, slow, busy, strict or up to no good: quick errors that say what to do and tell no key."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from findling.domain.errors import InvalidValueError, OverdueError, ProviderError
from findling.models.remote import http_client
from findling.models.remote.http_client import Address, HttpClient, https_proxy, parse_address, wait_before_retry
from findling.models.remote.provider_models import (
    RemoteChat,
    RemoteEmbedder,
    send_batches,
)
from tests.processes import PATIENCE_S

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer

KEY = "sk-very-secret-key-0123456789abcdef"


def embedder_at(server: ProviderServer, **options: Any) -> RemoteEmbedder:
    return RemoteEmbedder("openai:m", base_url=f"{server.url}/v1", environ={"OPENAI_API_KEY": KEY}, **options)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def whole_story(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + str(getattr(error, "hint", "")) + repr(error)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(server: ProviderServer, status: int) -> None:
    server.then(status, {"error": {"message": "come back"}}, Retry_After="0")
    embedder = embedder_at(server)
    assert embedder.embed(["a"], "query").shape[0] == 1
    assert embedder.attempts == len(server.received) == 2


def test_a_failure_without_advice_is_tried_again_after_a_while_of_our_own(server: ProviderServer) -> None:
    server.then(500, b"<html>Internal Server Error</html>")
    assert embedder_at(server).embed(["a"], "query").shape[0] == 1
    assert len(server.received) == 2


def test_a_failure_that_stays_is_given_up(server: ProviderServer) -> None:
    server.then(503, {"detail": "loading"}, Retry_After="0", times=9)
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match=r"openai \(127\.0\.0\.1\) answered 503: loading"):
        embedder.embed(["a"])
    assert embedder.attempts == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 501])
def test_a_refusal_is_not_tried_again(server: ProviderServer, status: int) -> None:
    server.then(status, {"error": {"message": "no"}})
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match=str(status)) as caught:
        embedder.embed(["a", "b"])
    assert caught.value.code == "provider"
    assert caught.value.hint
    assert embedder.attempts == 1


def test_no_money_left_is_not_tried_again(server: ProviderServer) -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    server.then(429, {"error": error})
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match="quota") as caught:
        embedder.embed(["a"])
    assert "billing" in caught.value.hint
    assert embedder.attempts == 1


def test_a_search_does_not_wait_as_long_as_a_provider_asks_for(server: ProviderServer) -> None:
    server.then(429, {"message": "slow down"}, Retry_After="30", times=3)
    embedder = embedder_at(server, timeout_s=5.0)
    with pytest.raises(ProviderError, match="slow down"):
        embedder.embed(["a"], "query")
    assert embedder.attempts == 1


def test_an_hour_is_not_waited_for_even_in_the_background(server: ProviderServer) -> None:
    server.then(429, {"message": "slow down"}, Retry_After="3600", times=3)
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match="slow down"):
        embedder.embed(["a"])
    assert embedder.attempts == 1


def test_a_date_to_come_back_at_is_understood(server: ProviderServer) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    server.then(429, {"message": "slow down"}, Retry_After=later)
    server.then(429, {"message": "slow down"}, Retry_After="nonsense")
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match="slow down"):
        embedder.embed(["a"])
    assert embedder.attempts == 1
    assert embedder.embed(["a"]).shape[0] == 1  # what cannot be read is no reason to give up
    assert embedder.attempts == 3


def test_waits_double_and_differ() -> None:
    for attempt, longest in ((1, 0.25), (2, 0.5), (3, 1.0)):
        waits = {wait_before_retry(attempt, None) for _ in range(20)}
        assert len(waits) > 1
        assert all(longest / 2 <= wait <= longest for wait in waits)
    assert wait_before_retry(1, 7.0) == 7.0
    assert wait_before_retry(1, 61.0) == float("inf")


def test_a_connection_that_breaks_is_tried_again(server: ProviderServer) -> None:
    server.then(0)
    server.then(200, b'{"data": []}' * 50, cut=100)
    embedder = embedder_at(server)
    assert embedder.embed(["a"], "query").shape[0] == 1
    assert embedder.attempts == 3
    server.then(0, times=3)
    with pytest.raises(ProviderError, match="closed the connection"):
        embedder.embed(["a"], "query")
    server.then(200, b"x" * 99, cut=10, times=3)
    with pytest.raises(ProviderError, match="broke off"):
        embedder.embed(["a"], "query")


def test_a_local_server_that_is_not_there_fails_at_the_first_try() -> None:
    embedder = RemoteEmbedder("ollama:", base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(ProviderError, match=r"ollama \(127\.0\.0\.1\) refuses connections") as caught:
        embedder.embed(["a"], "query")
    assert embedder.attempts == 1
    assert "Start the server" in caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="0.0.0.0 leads nowhere there")
def test_another_host_that_refuses_is_tried_once_more() -> None:
    embedder = RemoteEmbedder("ollama:", base_url=f"http://0.0.0.0:{free_port()}/v1")
    with pytest.raises(ProviderError, match="refuses connections"):
        embedder.embed(["a"], "query")
    assert embedder.attempts == 2


def test_a_host_that_does_not_exist_fails_at_the_first_try() -> None:
    embedder = RemoteEmbedder("openai:", base_url="http://nowhere.invalid/v1", environ={})
    with pytest.raises(ProviderError, match=r"openai \(nowhere\.invalid\)"):
        embedder.embed(["a"], "query")
    assert embedder.attempts == 1


def test_a_provider_that_stays_silent_is_left_alone_for_a_while(server: ProviderServer) -> None:
    server.then_wait()
    embedder = embedder_at(server, timeout_s=0.2)
    for _ in range(3):
        with pytest.raises(ProviderError, match="did not answer") as caught:
            embedder.embed(["a"], "query")
        assert "remote.timeout_s" in caught.value.hint
    assert embedder.attempts == 1


def test_an_answer_that_drips_does_not_hold_a_search_up() -> None:
    """Every byte comes in time, the answer never does."""
    finished = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not finished.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        embedder = RemoteEmbedder("ollama:", base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.3)
        with pytest.raises(ProviderError, match="did not answer in time"):
            embedder.embed(["a"], "query")
        thread.join(PATIENCE_S)  # ends when the client hangs up
        given_up = not thread.is_alive()
        finished.set()
    assert given_up
    assert embedder.attempts == 1


def test_something_else_at_the_address(server: ProviderServer) -> None:
    def greet(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"220 mail.example.org ESMTP\r\n")
            connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
        embedder = RemoteEmbedder("ollama:", base_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(ProviderError, match="does not speak HTTP") as caught:
            embedder.embed(["a"], "query")
    assert "base_url" in caught.value.hint
    secure = RemoteEmbedder("ollama:", base_url=f"https://127.0.0.1:{server.port}")
    with pytest.raises(ProviderError, match="TLS"):
        secure.embed(["a"], "query")
    assert secure.attempts == 1


def test_an_endless_answer_is_refused(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_MOST_BYTES", 1000)
    server.then(200, b" " * 5000)
    with pytest.raises(ProviderError, match="sent more than 1,000 bytes"):
        embedder_at(server).embed(["a"], "query")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_so_that_the_key_stays(server: ProviderServer, status: int) -> None:
    server.then(status, Location=f"http://localhost:{server.port}/v1/embeddings")
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match=f"{status}, a redirect") as caught:
        embedder.embed(["a"])
    assert "base_url" in caught.value.hint
    assert len(server.received) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500])
def test_no_error_tells_the_key_even_if_the_server_does(server: ProviderServer, status: int) -> None:
    server.then_quote(status, times=3)
    embedder = embedder_at(server)
    with pytest.raises(ProviderError) as caught:
        embedder.embed(["a"])
    story = whole_story(caught.value) + repr(embedder) + repr(vars(embedder))
    assert str(status) in story
    assert "secret" not in story
    assert server.received[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted_is_not_quoted_in_part_either(server: ProviderServer, status: int) -> None:
    server.then(status, {"error": {"message": "Incorrect API key provided: sk-very-****cdef."}})
    with pytest.raises(ProviderError, match=f"answered {status}: the key") as caught:
        embedder_at(server).embed(["a"])
    assert "sk-very" not in whole_story(caught.value)
    assert "OPENAI_API_KEY" in caught.value.hint


@pytest.mark.parametrize("key", ["secret\r\nX-Injected: yes", "secret key", "secret\x00", "sécrèt-secret"])
def test_a_key_that_cannot_be_sent_is_not_told_either(server: ProviderServer, key: str) -> None:
    embedder = RemoteEmbedder("openai:m", base_url=server.url, environ={"OPENAI_API_KEY": key})
    with pytest.raises(ProviderError, match="characters that no key has") as caught:
        embedder.embed(["a"])
    assert "secret" not in whole_story(caught.value)
    assert "OPENAI_API_KEY" in caught.value.hint
    assert server.received == []


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:", "OPENAI_API_KEY"),
        ("voyage:", "VOYAGE_API_KEY"),
        ("cohere:", "COHERE_API_KEY"),
        ("openrouter:", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_is_asked_for_by_name_and_nothing_is_sent(spec: str, variable: str) -> None:
    embedder = RemoteEmbedder(spec, environ={variable: "  "})
    with pytest.raises(ProviderError, match=variable) as caught:
        embedder.embed(["a"])
    assert variable in caught.value.hint
    assert embedder.attempts == 0


def test_a_key_around_which_a_line_end_slipped_in_still_works(server: ProviderServer) -> None:
    embedder = RemoteEmbedder("openai:", base_url=server.url, environ={"OPENAI_API_KEY": f"{KEY}\n"})
    embedder.embed(["a"])
    assert server.received[0].headers["Authorization"] == f"Bearer {KEY}"


def test_words_of_a_server_cannot_steer_the_terminal(server: ProviderServer) -> None:
    server.then(400, {"error": f"\x1b[2J\nwiped\x07 {'long ' * 100}"})
    with pytest.raises(ProviderError) as caught:
        embedder_at(server).embed(["a"])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_words_are_found_wherever_a_server_puts_them(server: ProviderServer) -> None:
    bodies: list[object] = [
        {"error": {"message": "found me"}},
        {"error": "found me"},
        {"message": "found me"},
        {"detail": "found me"},
        {"detail": [{"loc": ["body"], "msg": "found me"}]},
    ]
    for body in bodies:
        server.then(400, body)
        with pytest.raises(ProviderError, match="answered 400: found me"):
            embedder_at(server).embed(["a"])
    for odd in (b"", b"[]", b"{}", b"null", b"<html>not me</html>", b"[" * 100_000):
        server.then(400, odd)
        with pytest.raises(ProviderError, match=r"answered 400(?!: <html)"):
            embedder_at(server).embed(["a"])


def test_certificates_are_verified() -> None:
    client = HttpClient("openai", parse_address("https://api.openai.com/v1"))
    context = client._pool.conn_kw["ssl_context"]
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_the_proxy_of_the_environment_is_used_and_never_sees_the_key(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "http_proxy", "no_proxy", "HTTP_PROXY", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:pa%20ss@127.0.0.1:{server.port}")
    server.then(403, b"")
    embedder = RemoteEmbedder("openai:m", base_url="https://api.example.test/v1", environ={"OPENAI_API_KEY": KEY})
    with pytest.raises(ProviderError, match="Tunnel connection failed: 403") as caught:
        embedder.embed(["a"])
    (asked,) = server.received
    assert (asked.method, asked.path) == ("CONNECT", "api.example.test:443")
    assert asked.headers["Proxy-Authorization"] == "Basic dXNlcjpwYSBzcw=="
    assert "Authorization" not in asked.headers
    assert "pa ss" not in whole_story(caught.value)
    assert https_proxy("localhost") is None
    monkeypatch.setenv("NO_PROXY", ".example.test")
    assert https_proxy("api.example.test") is None


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://api.openai.com/v1/", Address("https", "api.openai.com", 443, "/v1")),
        ("HTTP://Models.Example.org:8000", Address("http", "models.example.org", 8000, "")),
        ("models.example.org/v1", Address("https", "models.example.org", 443, "/v1")),
        ("localhost:8000/v1", Address("http", "localhost", 8000, "/v1")),
        ("192.168.1.5:8080", Address("http", "192.168.1.5", 8080, "")),
        ("8.8.8.8:8080", Address("https", "8.8.8.8", 8080, "")),
        ("gpu-box:8080", Address("http", "gpu-box", 8080, "")),
        ("http://[::1]:8080/v1", Address("http", "::1", 8080, "/v1")),
    ],
)
def test_addresses(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org", "https://", "https:///v1", "http://h:port", "https://h/v1?key=1", "file:///etc", "ht tp://"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InvalidValueError, match=r"base_url") as caught:
        RemoteChat("openai:", base_url=url)
    assert caught.value.hint


def test_a_password_in_an_address_is_refused_and_not_told() -> None:
    with pytest.raises(InvalidValueError, match="password") as caught:
        parse_address("https://me:secret@example.org/v1")
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_a_worker_that_hangs_in_a_name_lookup_is_not_waited_for() -> None:
    release = threading.Event()
    with pytest.raises(OverdueError):
        send_batches(["a"], lambda batch, stop: release.wait(PATIENCE_S), max_concurrent=5, patience_s=0.01)
    release.set()
