"""The queue of the glossary fills by itself: from texts that are new, and from a language model if one was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.domain.resources import Document, Resource
from findling.pipelines.indexing.document_build import make_document
from findling.service.content.glossary import candidates
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.sources.extracted import Extracted
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_store import MemoryStore

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer

pytest_plugins = ["tests.models.conftest"]

TTL = "Records have a Time To Live (TTL)."


def document(text: str, name: str) -> Document:
    resource = Resource(rid=f"file:{name}", path=name, lang="markdown")
    return make_document(resource, Extracted(text=text, lang="markdown"), plan=ChunkPlan(size=600))


def surfaces(store: MemoryStore, since: int, looked_through: int = 0) -> tuple[list[str], int]:
    found = candidates(store, since, [], Settings(), looked_through=looked_through)
    return [candidate.surface for candidate in found.pairs], found.seq


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.write([document(TTL, "0.md"), document("We use role-based access control (RBAC).", "1.md")])
    return store


def test_only_what_changed_is_looked_at(store: MemoryStore) -> None:
    assert surfaces(store, 0) == (["RBAC", "TTL"], 2)
    assert surfaces(store, 2) == ([], 2)
    store.write([document("An access control list (ACL).", "new.md")], ["file:0.md"])
    assert surfaces(store, 2) == (["ACL"], store.seq())
    assert sorted(surfaces(store, 2, looked_through=10_000)[0]) == ["ACL", "RBAC"]


def test_a_log_that_does_not_reach_back_is_read_from_the_start(store: MemoryStore) -> None:
    store.write([document(TTL + " More.", "0.md")])
    store.compact(store.seq())
    assert store.log_floor() > 1
    assert sorted(surfaces(store, 1)[0]) == ["RBAC", "TTL"]
    assert sorted(surfaces(store, 100)[0]) == ["RBAC", "TTL"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.md").write_text(f"{TTL}\n\nA rate limiter (also throttle) helps.\n")
    (folder / "b.md").write_text("Single sign-on (SSO) is planned.\n")
    return folder


def opened(root: Path, **changes: object) -> Engine:
    own = {"store.home": str(root.parent / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    return open_engine(root, settings=Settings().override({**own, **changes}, "test"))


@pytest.fixture
def engine(root: Path) -> Iterator[Engine]:
    with opened(root) as engine:
        engine.index()
        yield engine


def test_the_queue_fills_when_it_is_looked_at(engine: Engine, root: Path) -> None:
    waiting = {(term.surface, term.group) for term in engine.glossary.pending()}
    assert {("TTL", "Time To Live"), ("SSO", "Single sign-on")} <= waiting
    assert not engine.search("TTL", refresh=False).plan.get("glossary")
    engine.glossary.approve("TTL")
    engine.glossary.reject("SSO")
    assert engine.search("TTL", refresh=False).plan["glossary"][0]["aliases"] == ("Time To Live",)
    (root / "c.md").write_text("Once more: single sign-on (SSO), and the TTL. An access control list (ACL).\n")
    engine.index()
    later = {term.surface for term in engine.glossary.pending()}
    assert "ACL" in later
    assert not {"SSO", "TTL"} & later


def with_model(server: ProviderServer, model: str = "qwen3-cloud") -> dict[str, object]:
    return {"chat.model": f"ollama:{model}", "chat.base_url": f"{server.url}/v1", "privacy.private": ("b.md",)}


def say(server: ProviderServer, answer: str) -> None:
    server.then(200, {"choices": [{"message": {"role": "assistant", "content": answer}}]})


def offered(server: ProviderServer) -> list[str]:
    """The groups that the model was asked about last."""
    user = server.received[-1].body["messages"][1]["content"]
    return [line.partition(": ")[2].strip('"') for line in user.partition("\n\n")[0].splitlines()[1:]]


def test_a_language_model_that_was_chosen_names_groups(root: Path, server: ProviderServer) -> None:
    with opened(root, **with_model(server)) as engine:
        engine.index()
        engine.glossary.add("record", ["entry"])
        say(server, "1: 1\n2: NONE")
        waiting = {(term.surface, term.group, term.source) for term in engine.glossary.pending()}
        (asked,) = server.received
        assert "SSO" not in str(asked.body), "what is private was sent"
        assert "TTL" in str(asked.body)
        assert any(group == "record" and source == "model" for _, group, source in waiting)
        assert ("SSO", "Single sign-on", "acronym") in waiting


def test_groups_that_stand_in_private_documents_alone_are_not_sent(root: Path, server: ProviderServer) -> None:
    (root / "b.md").write_text("Project Nightingale, or the Falcon, needs single sign-on.\n")
    with opened(root, **with_model(server)) as engine:
        engine.index()
        engine.glossary.add("Nightingale", ["Falcon"])
        engine.glossary.add("typed only", ["never written"])
        engine.glossary.add("record", ["entry"])
        say(server, "1: NONE")
        engine.glossary.pending()
        assert offered(server) == ["record"]
        engine.glossary.remove("record")
        (root / "a.md").write_text(f"{TTL} And more.\n")
        engine.index()
        engine.glossary.pending()
        assert len(server.received) == 1, "there was nothing to ask about"


def test_a_group_goes_by_the_term_that_may_be_sent(root: Path, server: ProviderServer) -> None:
    (root / "b.md").write_text("Project Nightingale keeps records.\n")
    with opened(root, **with_model(server)) as engine:
        engine.index()
        engine.glossary.add("Nightingale", ["keeper", "records"])
        say(server, "1: 1")
        waiting = {(term.group, term.source) for term in engine.glossary.pending()}
        assert offered(server) == ["records"]
        assert ("Nightingale", "model") in waiting, "what is found for one of its terms is for the group"


def test_a_model_on_this_machine_is_offered_every_group(root: Path, server: ProviderServer) -> None:
    with opened(root, **with_model(server, "qwen3")) as engine:
        engine.index()
        engine.glossary.add("Nightingale", ["Falcon"])
        say(server, "1: NONE")
        engine.glossary.pending()
        assert offered(server) == ["Nightingale"]


def test_a_model_that_is_down_loses_no_candidates_and_is_asked_again(root: Path, server: ProviderServer) -> None:
    with opened(root, **with_model(server)) as engine:
        engine.index()
        glossary = engine.glossary
        glossary.add("record", ["entry"])
        server.then(401, {"error": {"message": "no such key"}})
        mined = {term.surface for term in glossary.pending()}
        assert {"TTL", "SSO"} <= mined
        assert "401" in str(glossary.trouble)
        say(server, "1: 1")
        assert "model" in {term.source for term in glossary.pending()}
        assert glossary.trouble is None
        glossary.pending()
        assert len(server.received) == 2, "what the model has answered is not asked again"
