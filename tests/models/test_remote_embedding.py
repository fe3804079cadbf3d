"""Vectors from a provider: batches, order, encodings, and replies that must not be believed."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from findling.domain.errors import ProviderError
from findling.models.ports import Embedder
from findling.models.remote.provider_models import RemoteEmbedder, send_batches
from findling.models.remote.providers import providers
from tests.processes import PATIENCE_S

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer


def embedder_at(server: ProviderServer, spec: str = "openai:", **options: Any) -> RemoteEmbedder:
    options.setdefault("environ", {"OPENAI_API_KEY": "sk-test-123"})
    return RemoteEmbedder(spec, base_url=f"{server.url}/v1", **options)


def expected(server: ProviderServer, texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    rows = np.array([server.vector(text) for text in texts], dtype=np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def test_vectors_come_in_the_order_of_the_texts_and_have_length_1(server: ProviderServer) -> None:
    embedder: Embedder = embedder_at(server)
    vectors = embedder.embed(["red", "green", "blue"])
    np.testing.assert_allclose(vectors, expected(server, ["red", "green", "blue"]), rtol=1e-6)
    assert vectors.dtype == np.float32
    assert embedder.dimensions == server.dimensions
    assert server.received[0].headers["Authorization"] == "Bearer sk-test-123"
    assert server.received[0].body == {
        "model": "text-embedding-3-small",
        "input": ["red", "green", "blue"],
        "encoding_format": "base64",
    }


def test_numbers_written_out_and_in_base64_are_the_same_vectors(server: ProviderServer) -> None:
    in_base64 = embedder_at(server, "openai:").embed(["one", "two"], "query")
    in_numbers = embedder_at(server, "openrouter:").embed(["one", "two"], "query")
    assert [r.body.get("encoding_format") for r in server.received] == ["base64", None]
    np.testing.assert_array_equal(in_base64, in_numbers)


@pytest.mark.parametrize(("spec", "requests"), [("openai:m", 3), ("voyage:m", 2), ("openrouter:m", 5), ("vllm:m", 1)])
def test_texts_are_sent_in_batches_of_the_provider(server: ProviderServer, spec: str, requests: int) -> None:
    texts = [f"text {number}" for number in range(205)]
    vectors = embedder_at(server, spec).embed(texts)
    np.testing.assert_allclose(vectors, expected(server, texts), rtol=1e-6)
    sizes = sorted(len(r.body["input"]) for r in server.received)
    assert len(sizes) == requests
    assert sizes[-1] <= providers()[spec.partition(":")[0]].batch


def test_five_batches_are_under_way_at_once_and_never_more(server: ProviderServer) -> None:
    # No batch is answered before five are there, and then not before a sixth had time to come.
    server.barrier = threading.Barrier(5, action=lambda: time.sleep(0.1))
    texts = [f"text {number}" for number in range(500)]
    vectors = embedder_at(server, "openrouter:").embed(texts)
    np.testing.assert_allclose(vectors, expected(server, texts), rtol=1e-6)
    assert len(server.received) == 10
    assert server.most_busy == 5


def test_voyage_is_told_what_is_a_query(server: ProviderServer) -> None:
    embedder = embedder_at(server, "voyage:voyage-4", dimensions=4)
    assert embedder.embed(["where is it"], "query").shape == (1, 4)
    embedder.embed(["it is here"])
    assert [r.body["input_type"] for r in server.received] == ["query", "document"]
    assert server.received[0].body["output_dimension"] == 4


def test_cohere_is_spoken_to_in_its_own_way(server: ProviderServer) -> None:
    embedder = RemoteEmbedder("cohere:", base_url=server.url, environ={"COHERE_API_KEY": "k"})
    np.testing.assert_allclose(embedder.embed(["a", "b"]), expected(server, ["a", "b"]), rtol=1e-6)
    embedder.embed(["a"], "query")
    assert [r.path for r in server.received] == ["/v2/embed", "/v2/embed"]
    assert [r.body["input_type"] for r in server.received] == ["search_document", "search_query"]
    assert server.received[0].body["texts"] == ["a", "b"]


def test_open_models_get_the_prefixes_they_were_trained_with(server: ProviderServer) -> None:
    embedder = embedder_at(server, "ollama:nomic-embed-text:latest")
    embedder.embed(["where"], "query")
    embedder.embed(["here"])
    assert [r.body["input"] for r in server.received] == [["search_query: where"], ["search_document: here"]]
    assert "search_query: " in embedder.fingerprint
    assert "Authorization" not in server.received[0].headers


def test_tei_is_asked_under_its_own_path(server: ProviderServer) -> None:
    embedder = RemoteEmbedder("tei:BAAI/bge-m3", base_url=server.url)
    np.testing.assert_allclose(embedder.embed(["a"]), expected(server, ["a"]), rtol=1e-6)
    assert server.received[0].path == "/v1/embeddings"


def test_a_length_that_was_asked_for_is_passed_on_and_checked(server: ProviderServer) -> None:
    embedder = embedder_at(server, dimensions=4)
    assert embedder.dimensions == 4
    assert embedder.embed(["a", "b"]).shape == (2, 4)
    assert server.received[0].body["dimensions"] == 4
    with pytest.raises(ProviderError, match="8 numbers where 16 were expected") as caught:
        embedder_at(server, dimensions=16).embed(["a"])
    assert "remote.dimensions" in caught.value.hint


def test_a_length_that_changes_between_calls_is_an_error(server: ProviderServer) -> None:
    embedder = embedder_at(server)
    embedder.embed(["a"])
    server.then(200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]})
    with pytest.raises(ProviderError, match="2 numbers where 8 were expected"):
        embedder.embed(["b"])


def test_texts_that_cannot_be_sent_as_they_are(server: ProviderServer) -> None:
    assert embedder_at(server).embed(["", " \n", "lone \ud800 half"]).shape == (3, server.dimensions)
    assert server.received[0].body["input"] == [".", ".", "lone ? half"]


def test_no_texts_need_no_request(server: ProviderServer) -> None:
    assert embedder_at(server, dimensions=4).embed([]).shape == (0, 4)
    assert server.received == []


def rows(*items: object) -> dict[str, object]:
    return {"object": "list", "data": list(items)}


def row(index: object, *numbers: float) -> dict[str, object]:
    return {"object": "embedding", "index": index, "embedding": list(numbers)}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (rows(row(0, 1, 2)), "1 items for 2 texts"),
        (rows(row(0, 1, 2), row(1, 1, 2), row(2, 1, 2)), "3 items for 2 texts"),
        (rows(row(0, 1, 2), row(0, 3, 4)), "repeated"),
        (rows(row(0, 1, 2), row(2, 3, 4)), "wrong index"),
        (rows(row(0, 1, 2), {"embedding": [3, 4]}), "missing"),
        (rows(row(0, 1, 2), row(True, 3, 4)), "index"),
        (rows(row(0, 1, 2), row(1, 3, 4, 5)), "different or no length"),
        (rows(row(0), row(1)), "different or no length"),
        (rows(row(0, 1, 2), row(1, 0, 0)), "vector 1"),
        (rows(row(0, 1, float("nan")), row(1, 1, 2)), "vector 0"),
        (rows(row(0, 1, 1e300), row(1, 1, 2)), "vector 0"),
        (rows(row(0, 1, 2), {"index": 1, "embedding": ["a", "b"]}), "not a list of numbers"),
        (rows(row(0, 1, 2), {"index": 1, "embedding": [[1, 2]]}), "not a list of numbers"),
        (rows(row(0, 1, 2), {"index": 1, "embedding": "AAA*"}), "not a list of numbers"),
        (rows(row(0, 1, 2), {"index": 1, "embedding": "AAAA"}), "not a list of numbers"),
        (rows(row(0, 1, 2), {"index": 1}), "not a list of numbers"),
        (rows(row(0, 1, 2), None), "index"),
        ({"data": None}, "no list 'data'"),
        ([1, 2], "no list 'data'"),
        (b'{"data": [{"index": 0, "embed', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_reply_that_does_not_fit_is_an_error_and_never_shifted(
    server: ProviderServer, reply: object, words: str
) -> None:
    server.then(200, reply)
    embedder = embedder_at(server)
    with pytest.raises(ProviderError, match=words) as caught:
        embedder.embed(["a", "b"])
    assert str(caught.value).startswith("openai (127.0.0.1) ")
    assert caught.value.hint
    assert embedder.attempts == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"embeddings": {"float": [[1, 2]]}}, "1 items for 2 texts"),
        ({"embeddings": {"int8": [[1, 2], [3, 4]]}}, "embeddings.float"),
        ({"embeddings": [[1, 2], [3, 4]]}, "embeddings.float"),
    ],
)
def test_a_reply_of_cohere_that_does_not_fit(server: ProviderServer, body: object, words: str) -> None:
    server.then(200, body)
    embedder = RemoteEmbedder("cohere:", base_url=server.url, environ={})
    with pytest.raises(ProviderError, match=words):
        embedder.embed(["a", "b"])


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, b"Payload Too Large"),
        (400, {"error": {"message": "Requested 400000 tokens, max 300000 tokens per request"}}),
        (400, {"error": {"message": "Too many inputs. The max number of inputs is 4."}}),
    ],
)
def test_a_batch_that_is_too_large_is_halved(server: ProviderServer, status: int, body: object) -> None:
    texts = [f"text {number}" for number in range(7)]
    server.then(status, body, times=2)
    vectors = embedder_at(server).embed(texts)
    np.testing.assert_allclose(vectors, expected(server, texts), rtol=1e-6)
    assert [len(r.body["input"]) for r in server.received] == [7, 4, 2, 2, 2, 1]


def test_a_smaller_batch_is_remembered(server: ProviderServer) -> None:
    server.most_texts = 32
    embedder = RemoteEmbedder("tei:some-model", base_url=server.url)
    texts = [f"text {number}" for number in range(200)]
    np.testing.assert_allclose(embedder.embed(texts), expected(server, texts), rtol=1e-6)
    server.received.clear()
    np.testing.assert_allclose(embedder.embed(texts), expected(server, texts), rtol=1e-6)
    assert all(len(r.body["input"]) <= 32 for r in server.received)


def test_one_text_that_is_too_large_is_an_error(server: ProviderServer) -> None:
    server.then(413, b"Payload Too Large", times=2)
    with pytest.raises(ProviderError, match="413"):
        embedder_at(server).embed(["a", "b"])
    assert len(server.received) == 2


def test_one_failed_batch_fails_the_call(server: ProviderServer) -> None:
    server.then(400, {"error": {"message": "no such luck"}})
    with pytest.raises(ProviderError, match="no such luck"):
        embedder_at(server).embed([f"text {number}" for number in range(250)])


def test_after_a_failure_no_further_batch_is_begun() -> None:
    begun, all_five = [], threading.Barrier(5)

    def send(number: int, stop: threading.Event) -> int:
        begun.append(number)
        all_five.wait(PATIENCE_S)
        if number == 4:
            raise ValueError("no such luck")
        stop.wait(PATIENCE_S)
        return number

    with pytest.raises(ValueError, match="no such luck"):
        send_batches(range(100), send, max_concurrent=5, patience_s=PATIENCE_S)
    for thread in threading.enumerate():
        if thread.name == "findling-provider":
            thread.join(PATIENCE_S)
    assert sorted(begun) == [0, 1, 2, 3, 4]


def test_name_fingerprint_and_host() -> None:
    plain = RemoteEmbedder("openai:", environ={})
    assert (plain.name, plain.host, plain.dimensions) == ("openai:text-embedding-3-small", "api.openai.com", 0)
    others = [
        RemoteEmbedder("openai:text-embedding-3-large", environ={}),
        RemoteEmbedder("openai:", dimensions=256, environ={}),
        RemoteEmbedder("openai:", base_url="https://gateway.example.org/v1", environ={}),
        RemoteEmbedder("openrouter:text-embedding-3-small", environ={}),
    ]
    assert len({plain.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert plain.fingerprint == RemoteEmbedder("openai:", environ={"OPENAI_API_KEY": "k"}).fingerprint


def test_nothing_leaves_the_machine_for_a_local_server() -> None:
    assert RemoteEmbedder("ollama:").host == ""
    assert RemoteEmbedder("ollama:", base_url="http://192.168.1.5:11434/v1").host == "192.168.1.5"
    assert RemoteEmbedder("ollama:some-model:cloud").host == "ollama.com"


def test_the_server_of_these_tests_writes_what_it_says(server: ProviderServer) -> None:
    reply = json.loads(server.embeddings({"model": "m", "input": ["a", "b"]}).body)
    assert [item["index"] for item in reply["data"]] == [1, 0]  # out of order, as a provider may


def test_batches_share_a_connection(server: ProviderServer) -> None:
    embedder = RemoteEmbedder("openai:m", base_url=server.url, environ={"OPENAI_API_KEY": "k"})
    embedder.max_concurrent = 1
    for _ in range(3):
        embedder.embed(["a"] * 250)
    assert len(server.received) == 9
    assert server.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(server: ProviderServer) -> None:
    server.then(200, {"data": [{"index": 0, "embedding": [1.0]}]}, Connection="close")
    embedder = RemoteEmbedder("openai:m", base_url=server.url, environ={"OPENAI_API_KEY": "k"}, dimensions=1)
    embedder.embed(["a"])
    embedder.embed(["a"])
    assert server.connections == embedder.attempts == 2
