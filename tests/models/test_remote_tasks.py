"""Reranking and chat by a provider, and what a model's name means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from findling.domain.errors import InvalidValueError, ProviderError
from findling.models.ports import Chat, Reranker
from findling.models.remote.provider_models import RemoteChat, RemoteEmbedder, RemoteReranker
from findling.models.remote.providers import is_remote_spec, providers, split_spec
from tests.processes import run_process

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer

QUERY = "red fox"
TEXTS = ["a blue whale", "the red fox", "a red car"]
SCORES = [0.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("spec", "base", "path", "texts_key"),
    [
        ("cohere:", "", "/v2/rerank", "documents"),
        ("voyage:rerank-2.5", "/voyage/v1", "/voyage/v1/rerank", "documents"),
        ("tei:bge-reranker", "/tei", "/tei/rerank", "texts"),
        ("vllm:bge-reranker", "/v1", "/v1/rerank", "documents"),
        ("openrouter:", "/api/v1", "/api/v1/rerank", "documents"),
    ],
)
def test_scores_come_in_the_order_of_the_texts(
    server: ProviderServer, spec: str, base: str, path: str, texts_key: str
) -> None:
    reranker: Reranker = RemoteReranker(spec, base_url=server.url + base, environ={})
    assert reranker.rerank(QUERY, TEXTS) == SCORES
    (asked,) = server.received
    assert asked.path == path
    assert (asked.body["query"], asked.body[texts_key]) == (QUERY, TEXTS)
    assert not {"top_n", "top_k"} & set(asked.body)  # all texts are scored, not the best few


def test_raw_scores_become_probabilities_without_changing_the_order(server: ProviderServer) -> None:
    raw = [-800.0, 4.0, 0.5, 900.0]
    items = [{"index": index, "score": score} for index, score in enumerate(raw)]
    server.then(200, items[::-1])
    scores = RemoteReranker("tei:m", base_url=server.url).rerank("q", ["a", "b", "c", "d"])
    assert sorted(range(4), key=scores.__getitem__) == [0, 2, 1, 3]
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert scores[1] == pytest.approx(0.98201, abs=1e-5)


def test_many_texts_are_scored_in_batches(server: ProviderServer) -> None:
    texts = ["red fox"] * 100 + ["blue whale"] * 100
    scores = RemoteReranker("cohere:", base_url=server.url, environ={}).rerank(QUERY, texts)
    assert scores == [1.0] * 100 + [0.0] * 100
    assert sorted(len(r.body["documents"]) for r in server.received) == [8, 96, 96]
    assert RemoteReranker("cohere:", base_url=server.url, environ={}).rerank(QUERY, []) == []


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([{"index": 0, "relevance_score": 1.0}], "1 items for 2 texts"),
        ([{"index": 0, "relevance_score": 1.0}, {"index": 0, "relevance_score": 1.0}], "repeated"),
        ([{"index": 0, "relevance_score": 1.0}, {"index": 1}], "no usable score for text 1"),
        ([{"index": 0, "relevance_score": float("nan")}, {"index": 1, "relevance_score": 1}], "score for text 0"),
        ([{"index": 0, "relevance_score": "high"}, {"index": 1, "relevance_score": 1}], "score for text 0"),
    ],
)
def test_scores_that_do_not_fit_are_an_error(server: ProviderServer, items: list[object], words: str) -> None:
    server.then(200, {"results": items})
    with pytest.raises(ProviderError, match=words):
        RemoteReranker("cohere:", base_url=server.url, environ={}).rerank("q", ["a", "b"])


def test_a_reranker_that_is_down_says_so(server: ProviderServer) -> None:
    server.then(502, {}, Retry_After="0", times=3)
    reranker = RemoteReranker("cohere:", base_url=server.url, environ={})
    with pytest.raises(ProviderError, match=r"cohere \(127\.0\.0\.1\) answered 502"):
        reranker.rerank("q", ["a"])
    assert reranker.attempts == 3


def test_a_chat_answers(server: ProviderServer) -> None:
    chat: Chat = RemoteChat("ollama:qwen3", base_url=f"{server.url}/v1")
    assert chat.complete("be brief", "hello", max_tokens=9) == "system: be brief / user: hello"
    assert server.received[0].path == "/v1/chat/completions"
    assert server.received[0].body["max_tokens"] == 9
    assert server.received[0].body["model"] == "qwen3"
    assert chat.complete("", "hello") == "user: hello"


def test_openai_and_cohere_chats_are_asked_in_their_own_words(server: ProviderServer) -> None:
    RemoteChat("openai:", base_url=f"{server.url}/v1", environ={}).complete("s", "u", max_tokens=7)
    RemoteChat("cohere:", base_url=server.url, environ={}).complete("s", "u", max_tokens=7)
    assert server.received[0].body["max_completion_tokens"] == 7
    assert server.received[1].path == "/compatibility/v1/chat/completions"
    assert server.received[1].body["max_tokens"] == 7


@pytest.mark.parametrize(
    "reply",
    [{}, [], {"choices": []}, {"choices": [{}]}, {"choices": [{"message": {"content": None}}]},
     {"choices": [{"message": {"content": " "}}]}, {"choices": ["text"]}],
)  # fmt: skip
def test_a_chat_without_words_is_an_error(server: ProviderServer, reply: object) -> None:
    server.then(200, reply)
    with pytest.raises(ProviderError, match="no words"):
        RemoteChat("ollama:", base_url=server.url).complete("s", "u")


@pytest.mark.parametrize(
    ("spec", "remote"),
    [
        ("openai:", True),
        ("openai:text-embedding-3-small", True),
        ("OpenAI:text-embedding-3-small", True),
        ("openrouter:openai/text-embedding-3-small", True),
        ("ollama:nomic-embed-text:latest", True),
        ("opnai:typo", True),  # so that the error can name those there are
        ("C:\\models", False),
        ("c:/models", False),
        ("D:models", False),
        ("https://example.org/model", False),
        ("file:///models", False),
        ("BAAI/bge-small-en-v1.5", False),
        ("minilm", False),
        ("/home/me/models: old", False),
        ("my models: old", False),
        ("auto", False),
        ("none", False),
        ("", False),
        (":", False),
    ],
)
def test_what_is_a_provider_and_a_model(spec: str, remote: bool) -> None:
    assert is_remote_spec(spec) is remote


def test_anthropic_speaks_in_messages(server: ProviderServer) -> None:
    key = {"ANTHROPIC_API_KEY": "sk-ant-secret"}
    chat = RemoteChat("anthropic:claude", base_url=f"{server.url}/v1", environ=key)
    assert chat.complete("be brief", "hello", max_tokens=9) == "be brief / hello"
    (received,) = server.received
    assert received.path == "/v1/messages"
    assert received.body["max_tokens"] == 9
    headers = {name.lower(): value for name, value in received.headers.items()}
    assert headers["x-api-key"] == "sk-ant-secret"
    assert "authorization" not in headers
    replies: list[object] = [{"content": []}, {"content": [{"type": "tool_use"}]}, {"content": "text"}, []]
    for body in replies:
        server.then(200, body)
        with pytest.raises(ProviderError, match="no words in it"):
            chat.complete("s", "u")
    server.then(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(ProviderError, match="Overloaded"):
        chat.complete("s", "u")
    with pytest.raises(InvalidValueError, match="no models for the task"):
        RemoteEmbedder("anthropic:claude")
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY"):
        RemoteChat("anthropic:claude", environ={}).complete("s", "u")


def test_a_provider_that_is_not_known_is_an_error_that_names_the_others() -> None:
    with pytest.raises(InvalidValueError, match="no provider 'opnai'") as caught:
        RemoteEmbedder("opnai:x")
    for name in providers():
        assert name in caught.value.hint


def test_a_task_that_a_provider_does_not_offer() -> None:
    with pytest.raises(InvalidValueError, match="openai has no models") as caught:
        RemoteReranker("openai:gpt-4o")
    assert "cohere" in caught.value.hint
    assert "openai" not in caught.value.hint
    with pytest.raises(InvalidValueError, match="voyage has no models"):
        RemoteChat("voyage:")


def test_a_server_without_a_usual_model_wants_one_named() -> None:
    with pytest.raises(InvalidValueError, match="no default model") as caught:
        RemoteEmbedder("vllm:")
    assert "vllm:MODEL" in caught.value.hint


def test_presets() -> None:
    batches = {name: provider.batch for name, provider in providers().items()}
    assert batches == {
        "openai": 100, "voyage": 128, "cohere": 96, "openrouter": 50, "anthropic": 1,
        "ollama": 256, "llamacpp": 64, "lmstudio": 256, "vllm": 256, "tei": 256,
    }  # fmt: skip
    for provider in providers().values():
        assert provider.base_url.startswith("https://" if provider.key_variable else "http://localhost:")
    assert split_spec("voyage: ", "rerank") == (providers()["voyage"], "rerank-2.5")


def test_asking_what_a_name_means_loads_nothing_heavy() -> None:
    code = (
        "import sys; from findling.models.remote.providers import is_remote_spec; assert is_remote_spec('openai:')\n"
        "print({'numpy', 'http', 'ssl', 'socket', 'email', 'urllib.request', 'threading'} & set(sys.modules))"
    )
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"]
    run = run_process(command, check=True)
    assert run.stdout.strip() == "set()"
