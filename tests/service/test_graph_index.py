"""The graph of a workspace: built behind the first question with a name, walked where its gate is open, kept up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from findling.domain.backends import GRAPH
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import lazy_legs
from findling.service.settings.settings import load_settings
from findling.stores.lock import WriteLock
from tests.processes import BoundedProcess

NOTES = {
    "Jump for Glory": "Jump for Glory is a film of 1937, made by Raoul Walsh.",
    "Raoul Walsh": "He was married to Miriam Cooper for ten years.",
    "Miriam Cooper": "An actress of the silent era. Baltimore was her home town.",
    **{
        f"n{one}": f"the spouse of a maker was born where the maker was, {one} of the jump and no glory"
        for one in range(12)
    },
}
QUESTION = "Where was the spouse of the maker of Jump for Glory born?"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "tree"
    root.mkdir()
    for title, text in NOTES.items():
        (root / f"{title}.md").write_text(f"# {title}\n\n{text}\n")
    own = {"store.home": str(tmp_path / "home"), "semantic.model": "off", "semantic.instant": False}
    with open_engine(root, settings=load_settings(root).override(own, "test")) as engine:
        yield engine


def graph_of(answer: SearchAnswer) -> dict[str, Any]:
    return dict(answer.plan.get("graph", {}))


def _lacks(engine: Engine) -> bool:
    return engine.opened.lacks_leg


def ways(answer: SearchAnswer) -> dict[str, str]:
    return {hit.path: part.why for hit in answer.hits for part in hit.receipt.parts if part.leg == "graph"}


def test_a_question_is_answered_by_way_of_the_best_hit(engine: Engine) -> None:
    without = engine.search(QUESTION, graph="off", limit=5)
    assert not graph_of(without)
    assert "Raoul Walsh.md" not in [hit.path for hit in without.hits]
    answer = engine.search(QUESTION, limit=5)
    assert [hit.path for hit in answer.hits[:2]] == [hit.path for hit in without.hits[:2]]
    assert answer.hits[2].path == "Raoul Walsh.md"
    assert ways(answer)["Raoul Walsh.md"] == "via Jump for Glory → Raoul Walsh"
    told = graph_of(answer)
    assert (told["state"], told["names"]) == ("on", ["Jump for Glory"])
    assert told["brought"] >= 1
    assert answer.total == without.total + told["brought"]
    for hit in answer.hits:
        assert hit.receipt.recomputed() == pytest.approx(hit.receipt.final_score, abs=1e-4)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("question", [QUESTION.lower(), QUESTION.upper()])
def test_the_title_of_a_best_hit_is_a_name_in_any_case(engine: Engine, question: str) -> None:
    told = graph_of(engine.search(question, limit=5))
    assert (told["state"], told["names"]) == ("on", ["jump for glory"])


def test_a_long_text_asks_by_way_of_nothing(engine: Engine) -> None:
    long = f"{QUESTION} {'It is said that it was in a town by the sea. ' * 4}"
    assert graph_of(engine.search(long))["state"] == "off"
    assert graph_of(engine.search(long, graph="on"))["names"] == ["Jump for Glory"]


def test_a_hit_that_the_question_does_not_name_leads_on_as_well(engine: Engine) -> None:
    second = engine.search(QUESTION, graph="off", limit=2).hits[1]
    with (engine.root / second.path).open("a") as note:
        note.write("The spouse of the maker was born at Zed Falls.\n")
    (engine.root / "Zed Falls.md").write_text("# Zed Falls\n\nA place in the hills.\n")
    assert "Zed Falls" in ways(engine.search(QUESTION, limit=20))["Zed Falls.md"]


def test_pages_are_cut_from_one_ranking(engine: Engine) -> None:
    whole = [hit.id for hit in engine.search(QUESTION, limit=9).hits]
    assert [hit.id for hit in engine.search(QUESTION, limit=3).hits] == whole[:3]
    pages, cursor = list[str](), ""
    while len(pages) < len(whole):
        page = engine.search(QUESTION, limit=2, cursor=cursor)
        pages += [hit.id for hit in page.hits]
        cursor = page.next_cursor
    assert pages[: len(whole)] == whole
    assert len(whole) == 9


def test_a_question_without_a_name_needs_no_graph(engine: Engine) -> None:
    answer = engine.search("spouse film maker")
    assert not graph_of(answer)
    assert not engine.opened.files.backend.legs[GRAPH].exists()
    assert not _lacks(engine)
    engine.search(QUESTION)
    told = graph_of(engine.search("where was the spouse of a maker that day"))
    assert told == {"state": "off", "because": "it knows no name in the question"}


def test_a_search_waits_for_no_writer(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process holds the lock: the graph that a question misses is a wish, in this answer and in later ones."""
    engine.index()
    asked = WriteLock.acquire
    waits: list[float] = []

    def noted(lock: WriteLock, timeout_s: float) -> bool:
        waits.append(timeout_s)
        return asked(lock, timeout_s)

    monkeypatch.setattr(WriteLock, "acquire", noted)
    with _held_elsewhere(engine.home):
        for question in (QUESTION, "spouse", QUESTION):
            answer = engine.search(question, refresh=False)
            assert answer.hits
        assert graph_of(answer)["because"] == "the graph is not there yet"
    assert set(waits) == {0.0}
    assert graph_of(engine.search(QUESTION, refresh=False))["state"] == "on"


@contextmanager
def _held_elsewhere(folder: Path) -> Iterator[None]:
    """The write lock of a folder, held by another process."""
    code = "import sys; from pathlib import Path; from findling.service.workspace.workspace import backend_at\n"
    code += "backend_at(Path(sys.argv[1])).lock().acquire(0.0); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(folder)]
    with BoundedProcess(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline()
        yield
        process.stdin.close()


def test_the_gate_stays_closed_where_no_document_is_named(engine: Engine) -> None:
    engine.add([(Resource(rid="note:1", type="note", title="a day"), "We saw Ann Smith. Ann Smith saw us.")])
    engine.add([(Resource(rid="note:2", type="note", title="another day"), "Ann Smith was there again.")])
    answer = engine.search("Did we see Ann Smith there?")
    told = graph_of(answer)
    assert told["state"] == "off"
    assert (told["named"], told["bridges"]) == (0, 0)
    assert not ways(answer)
    forced = engine.search("Did we see Ann Smith there?", graph="on")
    assert (graph_of(forced)["state"], graph_of(forced)["because"]) == ("on", "the plan asks for it")


def test_a_large_workspace_gets_its_graph_behind_the_search(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_legs, "LITTLE", 100)
    first = engine.search(QUESTION)
    assert graph_of(first) == {"state": "off", "because": "the graph is not there yet"}
    assert (_lacks(engine), engine.opened.lazy("graph").is_due()) == (True, True)
    engine.opened.level_wanted()
    assert (_lacks(engine), engine.opened.lazy("graph").is_due()) == (False, False)
    assert graph_of(engine.search(QUESTION))["state"] == "on"
    # A few changes are absorbed at once.
    (engine.root / "Miriam Cooper.md").unlink()
    (engine.root / "Raoul Walsh.md").write_text("# Raoul Walsh\n\nHe was married to Lorraine Miller.\n")
    (engine.root / "Lorraine Miller.md").write_text("# Lorraine Miller\n\nShe was his third wife.\n")
    paths = [hit.path for hit in engine.search(QUESTION).hits]
    assert "Lorraine Miller.md" in paths
    assert next(check for check in engine.check() if check.name == "graph leg").ok
    assert engine.opened.lazy("graph").opened() is not None


def test_index_runs_keep_up_a_graph_that_was_wanted(engine: Engine) -> None:
    engine.index()
    engine.opened.level_wanted()
    assert engine.status().graph_seq == 0
    assert not engine.opened.files.backend.legs[GRAPH].exists()
    engine.search(QUESTION)
    (engine.root / "New.md").write_text("# New\n\nRaoul Walsh again.\n")
    engine.index()
    engine.opened.level_wanted()
    leg = engine.opened.lazy("graph").opened()
    assert leg is not None
    assert leg.seq() == engine.status().seq == engine.status().graph_seq


def test_a_damaged_graph_is_rebuilt(engine: Engine) -> None:
    before = engine.search(QUESTION)
    (file,) = (engine.home / "graph").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(bytes(data))
    found = [check for check in engine.check() if not check.ok]
    assert any("graph" in check.detail for check in found)
    file.write_bytes(bytes(data[:100]))
    engine.opened.lazy("graph").close()
    after = engine.search(QUESTION)
    assert [hit.id for hit in after.hits] == [hit.id for hit in before.hits]
    assert graph_of(after)["state"] == "on"
    file.write_bytes(b"")
    engine.repair()
    assert all(check.ok for check in engine.check() if "graph" in check.name or check.name == "leg files")


def test_a_filter_and_an_exclusion_hold_for_what_the_graph_brings(engine: Engine) -> None:
    assert "Raoul Walsh.md" in ways(engine.search(QUESTION))
    assert "Raoul Walsh.md" not in ways(engine.search(f"{QUESTION} -married"))
    answer = engine.search(f"{QUESTION} path:Jump*")
    assert {hit.path for hit in answer.hits} <= {"Jump for Glory.md"}


def test_the_glossary_names_things_otherwise(engine: Engine) -> None:
    engine.glossary.add("Jump for Glory", ["Betty's film"])
    told = graph_of(engine.search("Where was the spouse of the maker of Betty's film born?"))
    assert (told["state"], told["names"]) == ("on", ["jump for glory"])


def test_a_caller_sees_no_way_through_what_is_hidden(engine: Engine) -> None:
    engine.index()
    rids = {resource.path: resource.rid for resource in engine.ls()}
    for path in rids.keys() - {"Raoul Walsh.md"}:
        engine.permissions.share(rids[path], "user:ann")
    answer = engine.as_caller("user:ann").search(QUESTION)
    assert answer.hits
    assert "Raoul Walsh.md" not in [hit.path for hit in answer.hits]
    assert not any("Raoul" in way for way in ways(answer).values())
    engine.permissions.share(rids["Raoul Walsh.md"], "user:ann")
    assert ways(engine.as_caller("user:ann").search(QUESTION))["Raoul Walsh.md"] == "via Jump for Glory → Raoul Walsh"


def test_a_client_starts_the_process_that_builds_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_legs, "LITTLE", 100)
    started = []
    monkeypatch.setattr("findling.service.engine.background.index_on", lambda *_: started.append(1))
    client = LocalClient(engine, settings=load_settings(engine.root))
    client.search(QUESTION, refresh=True)
    client.finish()
    assert started == [1]


def test_a_long_document_is_named_by_its_title_and_does_not_fill_the_answer(engine: Engine) -> None:
    parts = "\n\n".join(
        f"## Part {one}\n\n" + f"He made picture {one} with some others, and more. " * 40 for one in range(30)
    )
    (engine.root / "Raoul Walsh.md").write_text(f"# Raoul Walsh\n\nHe was married to Miriam Cooper.\n\n{parts}\n")
    answer = engine.search(QUESTION, limit=12)
    assert graph_of(answer)["state"] == "on"
    brought = [hit.path for hit in answer.hits if hit.path in ways(answer)]
    assert brought.count("Raoul Walsh.md") <= 2
    told = graph_of(engine.search("Who was married to Raoul Walsh?"))
    assert (told["state"], told["named"]) == ("on", 1)


def test_themes_take_turns_and_are_described(engine: Engine) -> None:
    for theme, names in {"river": ["Elbe", "Moldau"], "band": ["Queen", "Abba"]}.items():
        for one in range(3):
            text = f"This {theme} text {one} tells how {names[0]} met {names[1]} 1.5 times more. It ends here."
            engine.add([(Resource(rid=f"note:{theme}{one}", type="note", title=""), text)])
    for name in ("Elbe", "Queen"):
        engine.add([(Resource(rid=f"note:{name}", type="note", title=name), f"All about {name} is here.")])
    question = "How do Elbe and Queen begin?"
    told = graph_of(engine.search(question, graph_mode="high", limit=10))
    assert (told["state"], told["mode"]) == ("on", "high")
    assert len(told["themes"]) == 2
    assert sorted(sorted(theme["names"]) for theme in told["themes"]) == [["Abba", "Queen"], ["Elbe", "Moldau"]]
    for theme in told["themes"]:
        assert theme["passages"] >= 3
        assert any(name in theme["summary"] for name in theme["names"])
        assert theme["summary"].endswith("1.5 times more."), "a point within a sentence ends none"
    high, low, dual = (
        [hit.rid for hit in engine.search(question, graph_mode=mode, limit=10).hits] for mode in ("high", "low", "dual")
    )
    assert high[:2] == low[:2] == dual[:2]
    assert set(high) & set(low) & set(dual)
    assert "themes" not in graph_of(engine.search(question))


def test_a_theme_tells_nothing_of_what_is_hidden(engine: Engine) -> None:
    for one in range(4):
        text = f"Text {one} tells how Elbe met {'Moldau' if one < 3 else 'Secret Merger'} once more."
        engine.add([(Resource(rid=f"note:{one}", type="note", title="Elbe" if one == 0 else ""), text)])
    for one in range(3):
        engine.permissions.share(f"note:{one}", "user:ann")
    told = graph_of(engine.as_caller("user:ann").search("Who met Elbe there?", graph_mode="high"))
    assert told["themes"] and "Secret" not in str(told)
    assert told["themes"][0]["passages"] == 3
