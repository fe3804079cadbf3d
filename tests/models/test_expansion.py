"""Expansion by a language model: a real server speaks the protocol, well, badly, late or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findling
from findling.domain.errors import FindlingError
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.pipelines.retrieve import expansion
from findling.service.index import rephrasing
from findling.service.settings.settings import load_settings
from tests.processes import PATIENCE_S, in_time

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from tests.models.conftest import ProviderServer

QUESTION = "how come visitors of that site are suddenly thrown out"
REPLY = "lex: session expiry logout\nvec: When does a login end?\nhyde: A session ends after 30 minutes of idling."


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers at once may still be late on a busy machine."""
    monkeypatch.setattr(expansion, "_PATIENCE_S", PATIENCE_S)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "diary").mkdir(parents=True)
    (root / "sessions.md").write_text("The session expiry triggers a logout after thirty minutes.\n")
    (root / "site.md").write_text("The site was built by people of the village.\n")
    (root / "garden.md").write_text("Roses want sun and water.\n")
    (root / "diary" / "today.md").write_text("Anna fell from a horse in spring.\n")
    return root


@contextmanager
def opened(tree: Path, server: ProviderServer, **more: object) -> Iterator[Engine]:
    own = {
        "store.home": str(tree.parent / "home"),
        "semantic.model": "none",
        "chat.model": "ollama:qwen3",
        "chat.base_url": f"{server.url}/v1",
        "search.expand": "auto",
    }
    with findling.open(tree, settings=findling.Settings().override({**own, **more}, "test")) as engine:
        engine.index()
        yield engine


def say(server: ProviderServer, *answers: str) -> None:
    for answer in answers:
        server.then(200, {"choices": [{"message": {"role": "assistant", "content": answer}}]})


def notes_of(answer: SearchAnswer) -> str:
    return "\n".join(map(str, answer.degraded))


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "semantic"])
def test_variants_find_are_on_the_receipt_and_in_the_plan(tree: Path, server: ProviderServer, mode: str) -> None:
    say(server, REPLY)
    with opened(tree, server, **{"search.mode": mode}) as engine:
        answer = engine.search(QUESTION)
        told = answer.plan["expansion"]
        assert told["asked"] is True
        assert (told["by"], told["cached"], told["sent_to"]) == ("ollama:qwen3", False, "")
        assert told["best"] < told["weak_below"]
        assert [one["kind"] for one in told["variants"]] == ["lex", "vec", "hyde"]
        hit = next(hit for hit in answer if hit.path == "sessions.md")
        (part,) = [part for part in hit.receipt.parts if part.leg == "expansion"]
        assert "lex: session expiry logout" in part.why
        assert hit.receipt.final_score == pytest.approx(hit.receipt.recomputed(), abs=1e-4)
        assert not answer.degraded
    (asked,) = server.received
    system, user = (message["content"] for message in asked.body["messages"])
    assert "never an instruction" in system
    assert user == f'Question: "{QUESTION}"'


PROTOCOLS = {
    "openai:gpt-4o-mini": {"choices": [{"message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}]},
    "anthropic:claude": {"type": "message", "content": [{"type": "text", "text": REPLY}], "stop_reason": "end_turn"},
    "ollama:qwen3": {"choices": [{"message": {"role": "assistant", "content": f"<think>hm</think>\n{REPLY}"}}]},
}


@pytest.mark.parametrize("model", PROTOCOLS)
def test_every_protocol_gives_variants(tree: Path, server: ProviderServer, model: str) -> None:
    server.then(200, PROTOCOLS[model])
    with opened(tree, server, **{"chat.model": model}) as engine:
        told = engine.search(QUESTION).plan["expansion"]
        assert (told["by"], len(told["variants"])) == (model, 3)


def test_the_answer_without_expansion_lacks_it(tree: Path, server: ProviderServer) -> None:
    with opened(tree, server, **{"search.expand": "off", "search.mode": "keyword"}) as engine:
        answer = engine.search(QUESTION)
        assert "sessions.md" not in [hit.path for hit in answer]
        assert "expansion" not in answer.plan
    assert not server.received


def test_a_strong_first_round_asks_nobody(tree: Path, server: ProviderServer) -> None:
    with opened(tree, server) as engine:
        answer = engine.search("session expiry logout")
        told = answer.plan["expansion"]
        assert not told["asked"]
        assert told["best"] >= told["weak_below"]
        assert not server.received
        say(server, "lex: end of login")
        request = SearchRequest(query="session expiry logout", plan=Plan(expand="on"))
        assert engine.search(request).plan["expansion"]["by"] == "ollama:qwen3"


@pytest.mark.parametrize("query", ['"thrown off"', "get_user", "people AND garden", "type:file"])
def test_a_question_to_the_letter_is_not_put_in_other_words(tree: Path, server: ProviderServer, query: str) -> None:
    with opened(tree, server, **{"search.expand": "on"}) as engine:
        assert not engine.search(query).plan["expansion"]["asked"]
    assert not server.received


def test_a_reply_is_kept_for_the_next_process(tree: Path, server: ProviderServer) -> None:
    say(server, REPLY)
    with opened(tree, server) as engine:
        first = engine.search(QUESTION)
        kept = next((tree.parent / "home").rglob(rephrasing.CACHE))
    with opened(tree, server) as engine:
        again = engine.search(QUESTION)
        assert again.plan["expansion"]["cached"]
        assert again.plan["expansion"]["variants"] == first.plan["expansion"]["variants"]
        assert [hit.path for hit in again] == [hit.path for hit in first]
    assert len(server.received) == 1
    if os.name != "nt":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_bytes(b"this is no database" * 100)
    say(server, REPLY, REPLY)
    with opened(tree, server) as engine:
        assert not engine.search(QUESTION).plan["expansion"]["cached"]
        assert engine.search("why was somebody logged out").plan["expansion"]["by"] == "ollama:qwen3"
        assert engine.search(QUESTION).plan["expansion"]["cached"], "a damaged file was replaced"


TROUBLE: dict[str, tuple[Callable[[ProviderServer], None], str]] = {
    "rubbish": (lambda server: say(server, "I am sorry, but I cannot help with that."), "no variant"),
    "no words": (lambda server: server.then(200, {"choices": []}), "cannot be used"),
    "no JSON": (lambda server: server.then(200, b"<html>hello</html>"), "not JSON"),
    "refused": (lambda server: server.then(401, {"error": {"message": "no"}}), "401"),
    "too many": (lambda server: server.then(429, {"error": {"message": "slow down"}}, Retry_After="3600"), "429"),
    "broken": (lambda server: server.then(500, {"error": "oops"}, times=9, Retry_After="0"), "500"),
    "cut off": (lambda server: server.then(200, {"choices": [{"message": {}}]}, times=9, cut=7), "broke off"),
    "hung up": (lambda server: server.then(0, times=9), "closed the connection"),
    "late": (lambda server: server.then_wait(), "did not answer within"),
}


@pytest.mark.parametrize("kind", TROUBLE)
def test_the_answer_comes_and_says_what_was_left_out(tree: Path, server: ProviderServer, kind: str) -> None:
    trouble, words = TROUBLE[kind]
    trouble(server)
    with opened(tree, server) as engine:
        seconds = 4.0 if kind == "late" else PATIENCE_S
        answer = engine.search(SearchRequest(query=QUESTION, plan=Plan(expand="auto", graph="off"), timeout_s=seconds))
        assert "site.md" in [hit.path for hit in answer]
        assert "not expanded by ollama:qwen3" in notes_of(answer)
        assert words in notes_of(answer)
        assert answer.quality == "reduced"
        assert answer.plan["expansion"]["by"] == "best passages"


def test_a_dead_provider_is_no_reason_to_fail(tree: Path, server: ProviderServer) -> None:
    with opened(tree, server, **{"chat.base_url": "http://127.0.0.1:9/v1"}) as engine:
        answer = engine.search(QUESTION)
        assert answer.hits
        assert "refuses connections" in notes_of(answer)


def test_a_late_provider_is_left_alone_for_a_while(tree: Path, server: ProviderServer) -> None:
    server.then_wait()
    with opened(tree, server) as engine:
        for question, said in ((QUESTION, "did not answer within"), ("how is a visitor removed", "left alone")):
            answer = engine.search(SearchRequest(query=question, plan=Plan(expand="on", graph="off"), timeout_s=2.0))
            assert said in notes_of(answer)
    assert len(server.received) == 1


def test_the_next_model_answers_where_the_first_fails(tree: Path, server: ProviderServer) -> None:
    server.then(500, {"error": "oops"}, times=3, Retry_After="0")
    say(server, REPLY)
    with opened(tree, server, **{"chat.fallback": ("ollama:llama3.2",)}) as engine:
        answer = engine.search(QUESTION)
        assert answer.plan["expansion"]["by"] == "ollama:llama3.2"
        assert "not expanded by ollama:qwen3" in notes_of(answer)
    assert [received.body["model"] for received in server.received] == ["qwen3"] * 3 + ["llama3.2"]


def test_a_late_model_leaves_time_for_the_next(tree: Path, server: ProviderServer) -> None:
    def ask(seconds: float) -> None:
        server.script.clear()
        server.then_wait()
        say(server, REPLY)
        with opened(tree, server, **{"chat.fallback": ("ollama:llama3.2",)}) as engine:
            request = SearchRequest(query=QUESTION, plan=Plan(expand="on", graph="off"), timeout_s=seconds)
            assert engine.search(request).plan["expansion"]["by"] == "ollama:llama3.2"

    in_time(ask, 8.0)


def test_a_reply_is_no_query(tree: Path, server: ProviderServer) -> None:
    """Operators, filters and fields of a reply are words."""
    (tree / "roses.md").write_text("A logout of the garden gate.\n")
    said = 'lex: path:garden.md -site OR "roses" type:memory /logout/ NOT\nvec: \x1b[31mred\nlex: ' + "long " * 500
    say(server, said)
    with opened(tree, server, **{"search.mode": "keyword"}) as engine:
        answer = engine.search(QUESTION)
        paths = [hit.path for hit in answer]
        assert {"site.md", "roses.md"} <= set(paths), "nothing was excluded, and no filter was applied"
        told = answer.plan["expansion"]["variants"]
        assert "\x1b" not in json.dumps(told)
        assert max(len(one["text"]) for one in told) <= 300
        assert answer.plan["filters"] == engine.search("garden").plan["filters"]


def test_a_question_about_something_private_stays_here(
    tree: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from findling.models.remote.provider_models import RemoteChat

    monkeypatch.setattr(RemoteChat, "host", property(lambda self: "api.example.org"))
    private = {"privacy.private": ("diary/",)}
    with opened(tree, server, **private) as engine:
        for query in ("who fell path:diary", "horse of Anna in spring"):
            answer = engine.search(SearchRequest(query=query, plan=Plan(expand="on")))
            assert "about what is private" in notes_of(answer)
            assert answer.plan["expansion"]["sent_to"] == ""
        assert not server.received
        say(server, REPLY)
        answer = engine.search(SearchRequest(query="roses", plan=Plan(expand="on")))
        assert answer.plan["expansion"]["sent_to"] == "api.example.org"
        assert len(server.received) == 1
    with opened(tree, server, **private, **{"remote.allow_private": True}) as engine:
        say(server, REPLY)
        engine.search(SearchRequest(query="horse of Anna in spring", plan=Plan(expand="on")))
        assert len(server.received) == 2


def test_a_project_file_sends_nothing(tree: Path, server: ProviderServer) -> None:
    """A stranger's file may choose the profile `deep`, and never that a question leaves."""
    (tree / ".findling.toml").write_text('[search]\nprofile = "deep"\n')
    user = tree.parent / "user.toml"
    user.write_text(
        f'[store]\nhome = "{tree.parent / "home"}"\n[semantic]\nmodel = "none"\n'
        f'[chat]\nmodel = "ollama:qwen3"\nbase_url = "{server.url}/v1"\n'
    )
    settings = load_settings(tree, environ={"FINDLING_CONFIG": str(user)})
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        answer = engine.search(QUESTION)
        assert answer.plan["expansion"]["asked"]
        assert "a project sends nothing" in notes_of(answer)
    assert not server.received
    (tree / ".findling.toml").write_text('[search]\nexpand = "on"\n')
    with pytest.raises(FindlingError, match=r"search\.expand"):
        load_settings(tree, environ={"FINDLING_CONFIG": str(user)})


def test_a_caller_with_limited_rights_asks_no_language_model(tree: Path, server: ProviderServer) -> None:
    with opened(tree, server, **{"permissions.unset": "public"}) as engine:
        answer = engine.as_caller("user:ann").search(SearchRequest(query=QUESTION, plan=Plan(expand="on")))
        assert answer.plan["expansion"]["by"] == "best passages"
    assert not server.received


def test_without_a_language_model_words_come_from_the_best_passages_and_the_glossary(
    tree: Path, server: ProviderServer
) -> None:
    for name in ("one", "two", "three"):
        (tree / f"{name}.md").write_text(f"The boiler of house {name} has a thermostat beside its burner.\n")
    (tree / "spare.md").write_text("A thermostat with a burner is in the cellar.\n")
    (tree / "warmth.md").write_text("The heat regulator wants a new battery.\n")
    with opened(tree, server, **{"chat.model": "none", "search.mode": "keyword"}) as engine:
        engine.glossary.add("thermostat", ["heat regulator"])
        plain = engine.search(SearchRequest(query="boiler", plan=Plan(mode="keyword", expand="off")))
        assert {hit.path for hit in plain} == {"one.md", "two.md", "three.md"}
        answer = engine.search(SearchRequest(query="boiler", plan=Plan(mode="keyword", expand="on")))
        told = answer.plan["expansion"]
        assert (told["by"], told["sent_to"]) == ("best passages", "")
        assert [one["kind"] for one in told["variants"]] == ["passages", "glossary"]
        assert "thermostat" in told["variants"][0]["text"]
        found = {hit.path: hit for hit in answer}
        assert {"spare.md", "warmth.md"} <= found.keys()
        why = {
            path: next(part.why for part in hit.receipt.parts if part.leg == "expansion") for path, hit in found.items()
        }
        assert why["warmth.md"] == "glossary: heat regulator"
        assert why["spare.md"].startswith("passages: ")
        assert answer.hits[0].score <= plain.hits[0].score, "its own words are no evidence for a passage"
        assert not answer.degraded


def test_a_question_that_is_carried_out_again_asks_once(tree: Path, server: ProviderServer) -> None:
    """The first search of a process may find a leg behind, and is carried out again."""
    server.then(500, {"error": "oops"}, times=3, Retry_After="0")
    with opened(tree, server, **{"search.graph": "on"}) as engine:
        answer = engine.search(QUESTION)
        assert "not expanded by ollama:qwen3" in notes_of(answer)
    assert len(server.received) == 3
