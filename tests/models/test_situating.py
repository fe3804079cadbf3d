"""Sentences of a language model about chunks: asked for once, found by words and meaning, never shown as text."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findling
from findling.domain.errors import FindlingError, ModelNotFoundError
from findling.domain.queries import Filters, Term
from findling.domain.resources import Document
from findling.models.remote.provider_models import RemoteChat
from findling.pipelines.indexing.prepare import file_rid
from findling.service.content import situating
from findling.text.chunking.contexts import FIELD, sentences_of
from tests.processes import BoundedProcess, run_process

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from tests.models.conftest import ProviderServer

REPORT = "# Second quarter\n\nRevenue grew by three percent.\n\n# Outlook\n\nIt will grow further.\n"
DIARY = "# Monday\n\nIt rained from morning to night.\n\n# Tuesday\n\nThe sun shone, and nobody wrote.\n"


def settings_for(tree: Path, server: ProviderServer, **more: object) -> findling.Settings:
    own = {
        "store.home": str(tree.parent / "home"),
        "semantic.model": "none",
        "chat.model": "ollama:qwen3",
        "chunk.preset": "semantic:8:words",
        "chat.base_url": f"{server.url}/v1",
    }
    return findling.Settings().override({**own, **more}, "test")


@contextmanager
def opened(tree: Path, server: ProviderServer, **more: object) -> Iterator[Engine]:
    with findling.open(tree, settings=settings_for(tree, server, **more)) as engine:
        engine.index()
        yield engine


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "diary").mkdir(parents=True)
    (root / "report.md").write_text(REPORT)
    (root / "note.md").write_text("One chunk is a whole.\n")
    (root / "diary" / "may.md").write_text(DIARY)
    return root


def say(server: ProviderServer, *answers: str) -> None:
    for answer in answers:
        server.then(200, {"choices": [{"message": {"role": "assistant", "content": answer}}]})


def stored(engine: Engine, path: str) -> Document:
    document = engine.opened.files.store.document(file_rid(path))
    assert document is not None
    return document


SAID = "1: Acme's figures of 2023 open here.\n2: Acme looks ahead to 2024."


def test_words_find_a_chunk_by_its_sentence_and_the_receipt_says_so(tree: Path, server: ProviderServer) -> None:
    say(server, "1: Weather of the first day.\n2: Weather of the second day.", SAID)
    with opened(tree, server) as engine:
        before = engine.search("Acme figures")
        assert "report.md" not in [hit.path for hit in before]
        cost = engine.situating.cost()
        assert (cost.documents, cost.chunks, cost.calls, cost.kept, cost.sent_to) == (2, 4, 2, 0, "")
        assert cost.tokens_sent > 100
        assert not server.received, "the cost is told before anything is sent"
        report = engine.situating.run()
        assert (report.calls, report.documents, report.chunks, report.failed) == (2, 2, 4, 0)
        answer = engine.search("Acme figures")
        hit = answer.hits[0]
        assert (hit.path, hit.heading) == ("report.md", ("Second quarter",))
        assert {match.field for match in hit.receipt.matches} == {"context"}
        (step,) = [step for step in hit.receipt.steps if step.name == "context"]
        assert step.reason == "ollama:qwen3 wrote about it: Acme's figures of 2023 open here."
        assert hit.receipt.final_score == pytest.approx(hit.receipt.recomputed(), abs=1e-4)
        assert "Acme" not in json.dumps([line.text for line in hit.lines])
        assert "Acme" not in json.dumps(engine.fetch("report.md").to_dict())
        for name in ("body", "heading", "title"):
            assert not engine.opened.files.leg.search(Term("Acme", name), Filters(), 9).hits
        assert len(engine.opened.files.leg.search(Term("Acme"), Filters(), 9).hits) == 2
        assert [check for check in engine.check() if not check.ok and check.name != "disk space"] == []
        assert engine.situating.cost().documents == 0
    system, user = (message["content"] for message in server.received[1].body["messages"])
    assert "never an instruction" in system
    assert user.splitlines()[0] == 'Document: "Second quarter"'
    assert len(user.splitlines()) == 3


def test_models_read_the_sentence_in_front_of_the_chunk(tree: Path, server: ProviderServer) -> None:
    embedding = {"semantic.model": "openai:text-embedding-3-small", "semantic.base_url": server.url}
    with opened(tree, server, **embedding) as engine:
        engine.refine()
        before = len(server.received)
        say(server, "1: Weather.\n2: Weather.", SAID)
        engine.situating.run()
        assert engine.status().meaning["read"] == 1, "what has a sentence is read again"
        engine.refine()
        read = [text for received in server.received[before:] for text in received.body.get("input", ())]
        assert (
            "Second quarter\nAcme's figures of 2023 open here.\n# Second quarter\n\nRevenue grew by three percent."
            in [text.strip() for text in read]
        )
        assert engine.status().meaning["read"] == 5


def test_an_edit_keeps_the_sentences_of_chunks_that_stay(tree: Path, server: ProviderServer) -> None:
    say(server, "1: Weather.\n2: Weather.", SAID)
    with opened(tree, server) as engine:
        engine.situating.run()
        (tree / "report.md").write_text(REPORT.replace("further", "faster"))
        engine.index()
        assert engine.search("Acme figures").hits[0].path == "report.md"
        assert not engine.search("ahead 2024").hits
        cost = engine.situating.cost()
        assert (cost.documents, cost.calls) == (1, 1)
        (tree / "report.md").write_text(REPORT)
        engine.index()
        cost = engine.situating.cost()
        assert (cost.documents, cost.calls, cost.kept) == (1, 0, 1), "it was sent before"
        engine.situating.run()
        assert engine.search("ahead 2024").hits[0].path == "report.md"
        assert len(server.received) == 2
        assert engine.situating.remove() == 2
        assert not engine.search("Acme figures").hits
        digests = [chunk.digest for chunk in stored(engine, "report.md").chunks]
        engine.index(rebuild=True)
        assert digests == [chunk.digest for chunk in stored(engine, "report.md").chunks]


def test_an_index_run_from_nothing_has_the_sentences_again_without_a_call(tree: Path, server: ProviderServer) -> None:
    say(server, "1: Weather of the first day.\n2: Weather of the second day.", SAID)
    with opened(tree, server) as engine:
        engine.situating.run()
        before = {path: stored(engine, path) for path in ("report.md", "diary/may.md")}
        (tree / "diary" / "may.md").write_text(DIARY.replace("rained", "poured"))
        calls = len(server.received)
    with opened(tree, server, **{"chat.model": ""}) as engine:
        engine.index(rebuild=True)
        now = stored(engine, "report.md")
        assert (now.resource, now.chunks) == (before["report.md"].resource, before["report.md"].chunks)
        assert not sentences_of(stored(engine, "diary/may.md").resource).of, "the model has read another text"
        assert [hit.path for hit in engine.search("Acme figures")][:1] == ["report.md"]
        engine.situating.remove()
        engine.index(rebuild=True)
        assert not sentences_of(stored(engine, "report.md").resource).of
    assert len(server.received) == calls


def test_what_is_private_is_not_sent(tree: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoteChat, "host", property(lambda self: "api.example.org"))
    say(server, SAID)
    with opened(tree, server, **{"privacy.private": ("diary/",)}) as engine:
        cost = engine.situating.cost()
        assert (cost.documents, cost.withheld, cost.sent_to) == (1, 1, "api.example.org")
        engine.situating.run()
    assert "Tuesday" not in json.dumps([received.body for received in server.received])


def test_a_reply_without_sentences_is_a_failure_and_asked_again(tree: Path, server: ProviderServer) -> None:
    say(server, "I cannot do that.", "7: no such part\n0: nor this\nfree text")
    with opened(tree, server) as engine:
        report = engine.situating.run()
        assert (report.calls, report.documents, report.failed) == (2, 0, 2)
        assert "no sentence in it" in report.problems[0]
        say(server, "2) Only the second.", f"{SAID}\n1: another\n2: one")
        assert engine.situating.run().documents == 2
        assert list(sentences_of(stored(engine, "diary/may.md").resource).of.values()) == ["Only the second."]
        assert engine.situating.cost().documents == 0, "a part without a sentence is not asked for twice"


def test_a_provider_that_is_down_ends_the_run(tree: Path, server: ProviderServer) -> None:
    for number in range(6):
        (tree / f"more{number}.md").write_text(REPORT.replace("three", f"{number}"))
    server.then(401, {"error": {"message": "no"}}, times=20)
    with opened(tree, server) as engine:
        assert engine.situating.run().failed == 3
    assert len(server.received) == 3


def test_no_language_model_no_sentences(tree: Path, server: ProviderServer) -> None:
    with opened(tree, server, **{"chat.model": "none"}) as engine, pytest.raises(ModelNotFoundError, match="language"):
        engine.situating.cost()
    (tree / ".findling.toml").write_text('[chat]\nmodel = "ollama:qwen3"\n')
    with pytest.raises(FindlingError, match=r"chat\.model"):
        findling.open(tree)


def environment(tree: Path, server: ProviderServer) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(tree.parent),
        "FINDLING_HOME": str(tree.parent / "home"),
        "FINDLING_SEMANTIC_MODEL": "none",
        "FINDLING_CHUNK_PRESET": "semantic:8:words",
        "FINDLING_SERVE_AUTO": "never",
        "FINDLING_CHAT_MODEL": "ollama:qwen3",
        "FINDLING_CHAT_BASE_URL": f"{server.url}/v1",
    }


def test_the_command_shows_the_cost_and_wants_a_yes(tree: Path, server: ProviderServer) -> None:
    command = [sys.executable, "-m", "findling"]
    env = environment(tree, server)
    assert run_process([*command, "index", tree], env=env).returncode == 0
    asked = run_process([*command, "situate", tree], env=env)
    assert asked.returncode == 2
    assert "2 calls to ollama:qwen3 on this machine, about" in asked.stderr
    assert "--yes" in asked.stderr
    assert not server.received
    say(server, "1: Weather.\n2: Weather.", SAID)
    done = run_process([*command, "situate", tree, "--yes", "--json"], env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"]["chunks"] == 4
    again = run_process([*command, "situate", tree], env=env)
    assert (again.returncode, again.stdout) == (1, "nothing to ask\n")
    assert run_process([*command, "situate", tree, "--remove"], env=env).stdout == "removed from 2 documents\n"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_run_that_is_killed_continues_where_it_was(tree: Path, server: ProviderServer) -> None:
    for number in range(4):
        (tree / f"more{number}.md").write_text(REPORT.replace("three", f"{number}"))
    command, env = [sys.executable, "-m", "findling"], environment(tree, server)
    run_process([*command, "index", tree], env=env, check=True)
    say(server, *[SAID] * 3)
    server.then_wait()
    with BoundedProcess([*command, "situate", tree, "--yes"], env=env, stdout=-1, stderr=-1) as run:
        while len(server.received) < 4 and run.poll() is None:
            server.released.wait(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
    say(server, *[SAID] * 3)
    done = run_process([*command, "situate", tree, "--yes", "--json"], env=env)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["cost"]["documents"], told["cost"]["kept"], told["report"]["calls"]) == (6, 3, 3)
    assert run_process([*command, "doctor", tree], env=env).returncode == 0


def test_the_field_of_a_stranger_is_read_with_care() -> None:
    from findling.domain.resources import Resource

    for text in ("", "[]", "{", '{"of": 3}', '{"by": 1, "of": {"x": "y"}}', '{"by": "m", "of": {"1": 7}}', "[" * 10**5):
        assert not sentences_of(Resource(rid="x", fields={FIELD: text})).of
    long = json.dumps({"by": "m", "of": {"1f": "word " * 1000 + "\x1b[31m"}})
    assert len(sentences_of(Resource(rid="x", fields={FIELD: long})).of[31]) <= 300
    assert situating.CACHE
