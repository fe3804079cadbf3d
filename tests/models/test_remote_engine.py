"""A provider behind the engine: what is sent, what is never sent, and what happens when it is down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findling
from findling.domain.errors import ProviderError
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.models.remote.provider_models import RemoteEmbedder, RemoteReranker
from findling.pipelines.answer.rankings import Ranked, StepContext
from findling.pipelines.answer.steps import run_steps
from findling.pipelines.indexing.embedding_run import refine
from findling.pipelines.retrieve.legs import Candidate
from findling.pipelines.retrieve.query_planner import understand
from findling.pipelines.retrieve.vector_retrieval import Meaning
from findling.service.index.model_choice import may_send
from tests.memory_store import MemoryStore

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer

SECRET = "The vault combination is nineteen forty-two."


class FarEmbedder(RemoteEmbedder):
    """One whose server only happens to run on this machine."""

    @property
    def host(self) -> str:
        return "api.example.org"


class FarReranker(RemoteReranker):
    @property
    def host(self) -> str:
        return "api.example.org"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "diary").mkdir(parents=True)
    (root / "pool.md").write_text("The pool hands out database connections.\n")
    (root / "diary" / "today.md").write_text(SECRET + "\n")
    return root


def settings_for(tmp_path: Path, url: str, **more: object) -> findling.Settings:
    values = {
        "store.home": str(tmp_path / "home"),
        "semantic.model": "openai:text-embedding-3-small",
        "semantic.base_url": url,
        "remote.timeout_s": 5.0,
    }
    return findling.Settings().override({**values, **more}, "test")


def sent(server: ProviderServer) -> str:
    return json.dumps([received.body for received in server.received])


def test_passages_and_queries_go_to_the_provider_that_was_chosen(
    tree: Path, tmp_path: Path, server: ProviderServer
) -> None:
    settings = settings_for(tmp_path, server.url)
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        assert server.received == []
        assert engine.refine().read == 2
        answer = engine.search("database connections")
        assert answer.meaning["model"] == "openai:text-embedding-3-small"
        assert answer.meaning["coverage"] == 1
        assert not answer.degraded
    # Another process knows the length of the vectors only from the store.
    with findling.open(tree, settings=settings) as engine:
        assert engine.search("database connections").meaning["coverage"] == 1
    assert '"database connections"' in sent(server)


def test_nothing_is_sent_unless_a_provider_was_chosen(
    tree: Path, tmp_path: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    (tree / ".env").write_text(f"OPENAI_API_KEY=key\nOPENAI_BASE_URL={server.url}\n")
    monkeypatch.chdir(tree)
    settings = settings_for(tmp_path, server.url, **{"semantic.model": "auto", "semantic.threads": 1})
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        engine.refine()
        assert engine.search("database connections").meaning["sent_to"] == []
    assert server.received == []


@pytest.mark.parametrize("mark", ["pattern", "tag"])
def test_what_is_private_is_never_read_by_a_provider(
    tree: Path, tmp_path: Path, server: ProviderServer, mark: str
) -> None:
    private = {"privacy.private": ("diary/",)} if mark == "pattern" else {}
    settings = settings_for(tmp_path, server.url, **private)
    model = FarEmbedder("openai:m", base_url=server.url, environ={"OPENAI_API_KEY": "key"})
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        if mark == "tag":
            engine.forget(["diary"])
            engine.add([(findling.Resource(rid="note", tags=("private",)), SECRET)])
        store = engine._files.store
        report = refine(store, model, may_read=may_send(settings))
        assert (report.read, report.withheld) == (1, 1)
        assert "vault" not in sent(server)
        allowed = settings.override({"remote.allow_private": True}, "test")
        assert refine(store, model, may_read=may_send(allowed)).read == 1
        assert "vault" in sent(server)


def test_an_empty_answer_does_not_wait_for_what_a_provider_is_never_sent(
    tree: Path, tmp_path: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemoteEmbedder, "host", "api.example.org")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    settings = settings_for(tmp_path, server.url, **{"privacy.private": ("diary/",)})
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        before = engine.search("vogon")
        assert engine.refine().withheld == 1
        after = engine.search("vogon")
    assert (len(before.hits), len(after.hits)) == (0, 0)
    assert ["has read 0% of the passages so far" in note for note in before.notes] == [True]
    assert after.notes == ()


def test_what_is_private_is_never_reranked_by_a_provider(tree: Path, tmp_path: Path, server: ProviderServer) -> None:
    settings = settings_for(tmp_path, server.url, **{"privacy.private": ("diary/",)})
    reranker = FarReranker("vllm:m", base_url=server.url, environ={"OPENAI_API_KEY": "key"})
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        chunks = engine._files.store.chunks(sorted(engine._files.store.chunk_ids()))
    ranked = [
        Ranked(stored, Candidate(cid, 0.9 - place / 10), 0.9 - place / 10)
        for place, (cid, stored) in enumerate(chunks.items())
    ]
    meaning = Meaning(reranker=reranker, may_send=may_send(settings))
    question = understand(SearchRequest(query="database connections"), Plan(rerank_depth=20), MemoryStore())
    reordered = run_steps(ranked, StepContext(None, question, meaning, 10))
    assert len(reordered) == 2
    assert "vault" not in sent(server)
    steps = {entry.stored.resource.path: [step.name for step in entry.steps] for entry in reordered}
    assert steps == {"pool.md": ["rerank"], "diary/today.md": []}


def test_a_provider_that_is_down_degrades_to_what_is_here(tree: Path, tmp_path: Path, server: ProviderServer) -> None:
    settings = settings_for(tmp_path, server.url)
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        engine.refine()
    server.then(401, {"error": {"message": "no"}}, times=10)
    with findling.open(tree, settings=settings) as engine:
        answer = engine.search("database connections")
        assert [hit.path for hit in answer][:1] == ["pool.md"]
        assert answer.meaning["speed"] == "instant"
        assert "openai" in answer.degraded[0].what
    bare = settings.override({"semantic.instant": False}, "test")
    with findling.open(tree, settings=bare) as engine:
        answer = engine.search("database connections")
        assert answer.strategy == "keyword"
        assert [hit.path for hit in answer] == ["pool.md"]
        assert "openai" in answer.degraded[0].what
        with pytest.raises(ProviderError):
            (tree / "new.md").write_text("Something else.\n")
            engine.index()
            engine.refine()


def test_a_reranker_reorders_and_says_so(tree: Path, tmp_path: Path, server: ProviderServer) -> None:
    (tree / "other.md").write_text("Database database database database, and nothing of the rest.\n")
    settings = settings_for(
        tmp_path,
        "",
        **{"semantic.model": "none", "rerank.model": "vllm:m", "rerank.base_url": server.url},
    )
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        answer = engine.search("hands out database connections")
        assert answer.hits[0].path == "pool.md"
        assert [step.name for step in answer.hits[0].receipt.steps] == ["rerank"]
        assert answer.meaning["reranker"] == "vllm:m"
        scores = [hit.score for hit in answer]
        assert scores == sorted(scores, reverse=True)
        server.then(500, times=20)
        assert "vllm" in engine.search("hands out database connections").degraded[0].what
