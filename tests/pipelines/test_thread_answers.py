"""Answers by thread: the best passage leads, its receipt counts the others, and callers count what they see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from findling.domain.records import Message, Thread
from findling.domain.resources import Resource
from findling.domain.results import Hit
from findling.service.content.chats import WorkspaceChats
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

DAY, START = 86_400.0, 1_775_637_480.0
SHORT = "the falcon has landed"
LONG = "the falcon has landed beside the barn"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "root").mkdir()
    own = {"store.home": str(tmp_path / "home"), "search.refresh": "never", "semantic.refine": "never"}
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        yield opened


def talk(id_: str, *texts: str) -> Thread:
    """A thread with a message a day, each between two others."""
    messages = []
    for day, text in enumerate(texts):
        for minute, said in enumerate(("good morning", text, "see you later")):
            messages.append(Message(f"{day}-{minute}", said, "Ann", START + day * DAY + minute * 60))
    return Thread("test", id_, messages, title=f"about {id_}")


def fillers() -> list[Thread]:
    return [talk(f"other{number}", "nothing but lunch and trains today") for number in range(30)]


def steps_of(hit: Hit) -> dict[str, str]:
    return {step.name: step.reason for step in hit.receipt.steps}


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_the_best_passage_leads_and_its_receipt_counts_the_others(engine: Engine, mode: str) -> None:
    WorkspaceChats(engine.writer).add([talk("once", SHORT), talk("often", LONG, LONG, LONG), *fillers()])
    passages = engine.search("falcon landed", mode=mode, limit=100)
    answer = engine.search("falcon landed", mode=mode, group="thread")
    first, second = answer.hits[:2]
    assert (first.rid.split("/")[1], second.rid.split("/")[1]) == ("once", "often")
    assert "group" not in steps_of(first)
    assert steps_of(second)["group"] == f"3 passages of this thread among the best {len(passages)}"
    assert len(second.passages) == 2
    for hit in answer.hits:
        assert hit.receipt.recomputed() == pytest.approx(hit.score, abs=5.1e-5)
        assert hit.score in {one.score for one in passages if one.id == hit.id}


def test_a_hit_of_a_thread_has_its_turn_and_the_turns_around_it(engine: Engine) -> None:
    WorkspaceChats(engine.writer).add([talk("often", LONG, LONG, LONG), *fillers()])
    (hit,) = engine.search("falcon landed", mode="keyword", group="thread")
    assert any(LONG in line.text for line in hit.lines)
    assert [(line.number, line.text.rpartition(": ")[2]) for line in hit.around] == [
        (-1, "good morning"),
        (1, "see you later"),
    ]


def test_a_file_counts_its_own_passages(engine: Engine, tmp_path: Path) -> None:
    sections = [f"# Part {number}\n\n{LONG}. {'Nothing else was said. ' * 60}\n" for number in range(3)]
    (tmp_path / "root" / "birds.md").write_text("\n".join(sections))
    engine.index()
    for by in ("resource", "thread"):
        (hit,) = engine.search("falcon landed", mode="keyword", group=by)
        assert steps_of(hit)["group"] == "3 passages of it among the best 3"


def test_pages_of_threads_are_one_ranking(engine: Engine) -> None:
    threads = [talk(f"t{number}", *[f"falcon {'and more ' * number}"] * (1 + number % 4)) for number in range(25)]
    WorkspaceChats(engine.writer).add(threads)
    whole = [hit.id for hit in engine.search("falcon", mode="keyword", group="thread", limit=25)]
    assert len(whole) == 25
    paged, cursor = list[str](), ""
    while len(paged) < 25:
        page = engine.search("falcon", mode="keyword", group="thread", limit=7, cursor=cursor)
        paged += [hit.id for hit in page]
        cursor = page.next_cursor
        if not cursor:
            break
    assert paged == whole


def test_a_limited_caller_counts_what_it_sees(engine: Engine) -> None:
    def parts(name: str, text: str, visibilities: Sequence[tuple[str, ...]]) -> Iterator[tuple[Resource, str]]:
        for number, visibility in enumerate(visibilities):
            rid = f"chat:test/{name}/{number}"
            fields = {"thread": f"test/{name}"}
            yield Resource(rid=rid, type="chat", fields=fields, visibility=visibility), text

    ann, both = ("user:ann",), ("user:ann", "user:bob")
    engine.add(parts("once", SHORT, [both]))
    engine.add(parts("often", LONG, [both, ann, ann]))
    engine.add(parts("other", "nothing but lunch and trains today", [both] * 30))

    def told(principal: str) -> list[tuple[str, str, int]]:
        hits = engine.as_caller(principal).search("falcon landed", mode="keyword", group="thread").hits
        return [(hit.rid.split("/")[1], steps_of(hit).get("group", ""), len(hit.passages)) for hit in hits]

    assert told("user:ann") == [("once", "", 0), ("often", "3 passages of this thread among the best 4", 2)]
    assert told("user:bob") == [("once", "", 0), ("often", "", 0)]
