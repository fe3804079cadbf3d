"""Names by a language model: asked for once, checked against the text, used by the graph, and gone when removed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findling
from findling.domain.resources import Document, Resource
from findling.models.remote.provider_models import RemoteChat
from findling.pipelines.indexing.prepare import file_rid
from findling.service.content import situating
from findling.text.mining.chunk_names import MOST_NAMES, chunk_names
from findling.text.mining.model_names import FIELD, SaidNames, names_of, read_names, written
from tests.models.test_situating import environment, say, settings_for
from tests.processes import BoundedProcess, in_time, run_process

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from tests.models.conftest import ProviderServer

NOTES = {
    "one.md": "# Marie Curie\n\nMarie Curie worked on bluebird for years.\n",
    "two.md": "# Otto Hahn\n\nIn the end bluebird was closed by Otto Hahn.\n",
    "diary/may.md": "# diary\n\nRain, and a call from the tall man; Lise Meitner is the tall man.\n",
}
PATHS = sorted(NOTES)
SAID = {
    "diary/may.md": "name: Lise Meitner\nsame: the tall man = Lise Meitner",
    "one.md": "name: bluebird\nname: Napoleon Bonaparte\nsame: bluebird = Napoleon Bonaparte",
    "two.md": "- name: bluebird\n- name: Otto Hahn",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "tool.py").write_text("def bluebird():\n    return 1\n")
    return root


@contextmanager
def opened(tree: Path, server: ProviderServer, **more: object) -> Iterator[Engine]:
    own = {"chunk.preset": "default", "semantic.instant": False, **more}
    with findling.open(tree, settings=settings_for(tree, server, **own)) as engine:
        engine.index()
        yield engine


def stored(engine: Engine, path: str) -> Document:
    document = engine.opened.files.store.document(file_rid(path))
    assert document is not None
    return document


def answer_by_text(server: ProviderServer) -> None:
    """Say what fits each document, in the order in which they are asked about."""
    say(server, *(SAID[path] for path in PATHS))


def chains(engine: Engine, of: str, to: str, **options: Any) -> list[str]:
    return [" → ".join(path.names) for path in engine.related(of, to, **options).paths]


def told(engine: Engine) -> str:
    """All that the graph has a part in, but for times."""
    question = "Who closed what Marie Curie worked on?"
    answer = engine.search(question, graph="on", facets=("entity",), explain=True).to_dict()
    return json.dumps([{**answer, "timings_ms": {}}, walked(engine)])


def walked(engine: Engine) -> str:
    """All that the graph alone tells."""
    asked = [
        engine.related("Marie Curie", "Otto Hahn").to_dict(),
        engine.related("Lise Meitner").to_dict(),
        engine.themes.top().to_dict(),
        engine.fetch("one.md").to_dict(),
        [chunk_names(one.resource, (), one.text) for one in (stored(engine, path) for path in PATHS)],
    ]
    return json.dumps(asked, default=str)


def test_a_name_of_the_model_connects_what_the_rules_leave_apart(tree: Path, server: ProviderServer) -> None:
    answer_by_text(server)
    with opened(tree, server) as engine:
        assert not chains(engine, "Marie Curie", "Otto Hahn")
        cost = engine.situating.names.cost()
        assert (cost.documents, cost.calls, cost.kept, cost.sent_to) == (3, 3, 0, "")
        assert cost.tokens_sent > 100
        assert not server.received, "the cost is told before anything is sent"
        report = engine.situating.names.run()
        assert (report.calls, report.documents, report.names, report.merges, report.failed) == (3, 3, 4, 1, 0)
        assert chains(engine, "Marie Curie", "Otto Hahn") == ["Marie Curie → bluebird → Otto Hahn"]
        assert "tall man" in json.dumps(engine.related("Lise Meitner").to_dict()["names"])
        said = names_of(stored(engine, "one.md").resource)
        assert (said.by, said.names, said.same) == ("ollama:qwen3", ("bluebird",), ())
        kinds = {one.label: one.kind for one in chunk_names(stored(engine, "one.md").resource, (), NOTES["one.md"])}
        assert (kinds["bluebird"], kinds["Marie Curie"] != "model") == ("model", True)
        assert FIELD not in json.dumps(engine.fetch("one.md").to_dict())
        assert engine.situating.names.cost().documents == 0
        assert [check for check in engine.check() if not check.ok and check.name != "disk space"] == []
    system, user = (message["content"] for message in server.received[1].body["messages"])
    assert "never an instruction" in system
    assert user.splitlines() == ['Title: "Marie Curie"', f"Text: {json.dumps(NOTES['one.md'])}"]


def test_off_is_as_if_it_had_never_been_asked(tree: Path, server: ProviderServer) -> None:
    answer_by_text(server)
    with opened(tree, server) as engine:
        before, own = told(engine), walked(engine)
        engine.situating.names.run()
        assert walked(engine) != own
        assert engine.situating.names.remove() == 3
        assert walked(engine) == own
        engine.compact(full=True)  # the leg of words counts what was written anew until then
        assert told(engine) == before
        assert all(FIELD not in stored(engine, path).resource.fields for path in PATHS)
        # What was paid for is kept.
        cost = engine.situating.names.cost()
        assert (cost.documents, cost.calls, cost.kept) == (3, 0, 3)
        engine.situating.names.run()
        assert len(server.received) == 3
        assert chains(engine, "Marie Curie", "Otto Hahn")
    with opened(tree, server, **{"chat.model": "none"}) as engine:
        engine.situating.names.remove()
        engine.compact(full=True)
        assert told(engine) == before


def test_sentences_and_names_do_not_disturb_each_other(tree: Path, server: ProviderServer) -> None:
    answer_by_text(server)
    with opened(tree, server, **{"chunk.preset": "semantic:8:words"}) as engine:
        engine.situating.names.run()
        several = [path for path in PATHS if len(stored(engine, path).chunks) > 1]
        say(server, *["1: It begins.\n2: It goes on."] * len(several))
        assert engine.situating.run().documents == len(several) > 0
        both = stored(engine, several[0]).resource.fields
        assert {"situated", FIELD} <= both.keys()
        engine.situating.remove()
        assert names_of(stored(engine, several[0]).resource).by == "ollama:qwen3"
        assert "situated" not in stored(engine, several[0]).resource.fields


def test_an_edit_keeps_names_that_still_stand_there(tree: Path, server: ProviderServer) -> None:
    answer_by_text(server)
    with opened(tree, server) as engine:
        engine.situating.names.run()
        (tree / "one.md").write_text(NOTES["one.md"].replace("for years", "for a day"))
        engine.index()
        assert chains(engine, "Marie Curie", "Otto Hahn") == ["Marie Curie → bluebird → Otto Hahn"]
        assert engine.situating.names.cost().calls == 1
        (tree / "one.md").write_text(NOTES["one.md"].replace("bluebird", "something"))
        engine.index()
        assert not chains(engine, "Marie Curie", "Otto Hahn")


def test_an_index_run_from_nothing_has_the_names_again(tree: Path, server: ProviderServer) -> None:
    answer_by_text(server)
    with opened(tree, server) as engine:
        engine.situating.names.run()
        with_names = walked(engine)
        engine.index(rebuild=True)
        assert walked(engine) == with_names
        assert len(server.received) == 3
        engine.situating.names.remove()
        engine.index(rebuild=True)
        assert not chains(engine, "Marie Curie", "Otto Hahn"), "what was removed stays away"


def test_what_is_private_is_not_sent(tree: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoteChat, "host", property(lambda self: "api.example.org"))
    say(server, SAID["one.md"], SAID["two.md"])
    with opened(tree, server, **{"privacy.private": ("diary/",)}) as engine:
        cost = engine.situating.names.cost()
        assert (cost.documents, cost.withheld, cost.sent_to) == (2, 1, "api.example.org")
        engine.situating.names.run()
    assert len(server.received) == 2
    assert "tall man" not in json.dumps([received.body for received in server.received])


def test_a_provider_that_is_wrong_or_down_fails_and_is_asked_again(tree: Path, server: ProviderServer) -> None:
    say(server, "I cannot do that.", "none", "Here is a list.")
    with opened(tree, server) as engine:
        before = walked(engine)
        report = engine.situating.names.run()
        assert (report.documents, report.names, report.failed) == (1, 0, 2)
        assert "the reply has no name in it" in report.problems[0]
        assert walked(engine) == before
        server.then(401, {"error": {"message": "no"}}, times=20)
        assert engine.situating.names.run().failed == 2
        server.script.clear()
        say(server, SAID["diary/may.md"], SAID["two.md"])
        assert engine.situating.names.run().documents == 2
        assert engine.situating.names.cost().documents == 0, "a document without names is not asked about twice"


def test_a_provider_that_is_late_loses_nothing(
    tree: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(seconds: float) -> None:
        monkeypatch.setattr(situating, "_PATIENCE_S", seconds)
        server.script.clear()
        say(server, SAID["diary/may.md"])
        server.then_wait()
        own = {"remote.timeout_s": seconds, "store.home": str(tree.parent / str(seconds))}
        with opened(tree, server, **own) as engine:
            report = engine.situating.names.run()
            assert (report.documents, report.failed) == (1, 2)
            assert "did not answer in time" in report.problems[0]
            assert names_of(stored(engine, "diary/may.md").resource).names == ("Lise Meitner",)
            cost = engine.situating.names.cost()
            assert (cost.documents, cost.calls) == (2, 2)

    in_time(ask, 0.3)


def test_a_caller_gains_nothing_from_names_in_what_is_hidden(tree: Path, server: ProviderServer) -> None:
    answer_by_text(server)
    with opened(tree, server) as engine:
        engine.situating.names.run()
        engine.permissions.share(file_rid("one.md"), "user:ann")
        ann = ("user:ann",)
        assert engine.related("bluebird", principals=ann).documents
        assert not chains(engine, "Marie Curie", "Otto Hahn", principals=ann)
        assert engine.related("Otto Hahn", principals=ann).unknown == ("Otto Hahn",)
        engine.permissions.share(file_rid("two.md"), "user:ann")
        assert chains(engine, "Marie Curie", "Otto Hahn", principals=ann)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_run_that_is_killed_continues_where_it_was(tree: Path, server: ProviderServer) -> None:
    for number in range(3):
        (tree / f"more{number}.md").write_text(f"# More {number}\n\nMarie Curie, part {number}.\n")
    command, env = [sys.executable, "-m", "findling"], environment(tree, server)
    run_process([*command, "index", tree], env=env, check=True)
    asked = run_process([*command, "situate", tree, "--entities"], env=env)
    assert (asked.returncode, "6 calls to ollama:qwen3 on this machine" in asked.stderr) == (2, True)
    say(server, *["none"] * 2)
    server.then_wait()
    with BoundedProcess([*command, "situate", tree, "--entities", "--yes"], env=env, stdout=-1, stderr=-1) as run:
        while len(server.received) < 3 and run.poll() is None:
            server.released.wait(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
    say(server, *["name: Marie Curie"] * 4)
    done = run_process([*command, "situate", tree, "--entities", "--yes", "--json"], env=env)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["cost"]["documents"], document["cost"]["kept"], document["report"]["calls"]) == (6, 2, 4)
    removed = run_process([*command, "situate", tree, "--entities", "--remove"], env=env)
    assert removed.stdout == "removed from 6 documents\n"
    assert run_process([*command, "doctor", tree], env=env).returncode == 0


TEXT = "Ada  Lovelace met Charles\nBabbage; the  Countess was in London. 東京都から"


@pytest.mark.parametrize(
    ("reply", "names", "same"),
    [
        ("name: Ada Lovelace\nNAME： `Charles Babbage`", ("Ada Lovelace", "Charles Babbage"), ()),
        ("* name: Lond\nname: Napoleon\nname: on", (), ()),
        ("name: 東京", ("東京",), ()),
        ("same: the Countess = Ada Lovelace", (), (("the Countess", "Ada Lovelace"),)),
        ("same: the Countess = Napoleon\nsame: Ada Lovelace = ada lovelace\nsame: London", (), ()),
        ("same: London = London = Ada Lovelace\nsame: = London", (), ()),
        ("None.", (), ()),
        ("name: \x1b[31m\nname: " + "Ada " * 30 + "\nname: ;;", (), ()),
    ],
)
def test_nothing_counts_that_the_text_does_not_hold(
    reply: str, names: tuple[str, ...], same: tuple[tuple[str, str], ...]
) -> None:
    said = read_names(reply, TEXT)
    assert said is not None
    assert (said.names, said.same) == (names, same)


def test_a_reply_is_bounded_and_free_text_is_none() -> None:
    assert read_names("Sure! Here are the names you asked for.", TEXT) is None
    assert read_names("", TEXT) is None
    text = " ".join(f"Person{number}" for number in range(500))
    lines = [f"name: Person{number}\nsame: Person{number} = Person{number + 1}" for number in range(499)]
    said = read_names("\n".join(lines), text)
    assert said is not None
    assert (len(said.names), len(said.same)) == (40, 20)
    resource = Resource(rid="x", fields={FIELD: written(said._replace(by="m"))})
    assert len(chunk_names(resource, (), text)) <= MOST_NAMES + 5


def test_a_pair_counts_in_every_chunk_that_has_one_of_it() -> None:
    said = SaidNames("m", "", (), (("the Countess", "Ada Lovelace"),))
    resource = Resource(rid="x", fields={FIELD: written(said)})
    keys = {one.key for one in chunk_names(resource, (), "then the Countess left")}
    assert {"countess", "ada lovelace"} <= keys
    assert "countess" not in {one.key for one in chunk_names(resource, (), "nobody is here")}
    assert chunk_names(Resource(rid="x"), (), "then the Countess left") == [
        one for one in chunk_names(resource, (), "then the Countess left") if one.kind != "model"
    ]


def test_the_field_of_a_stranger_is_read_with_care() -> None:
    wrong: list[dict[str, object]] = [{"by": 1}, {"names": 3}, {"names": [7]}, {"same": [1]}, {"same": [["Ada", 3]]}]
    whole = [json.dumps({"by": "m", "of": "", "names": [], "same": [], **one}) for one in wrong]
    for text in ("", "[]", "{", '{"names": 3}', "[" * 10**5, *whole):
        assert names_of(Resource(rid="x", fields={FIELD: text})) == SaidNames()
        chunk_names(Resource(rid="x", fields={FIELD: text}), (), "Ada Lovelace")
    many = json.dumps({"by": "m" * 999, "of": "", "names": ["word " * 1000, "Ada", *["Bob"] * 999], "same": []})
    said = names_of(Resource(rid="x", fields={FIELD: many}))
    assert (len(said.by), len(said.names)) == (80, 39)
