"""Turns of the people that a question names."""

from datetime import datetime
from pathlib import Path

import pytest

from findling.domain.records import Message, Thread
from findling.domain.resources import Resource
from findling.service.content.chats import WorkspaceChats
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.text.chunking.chat_messages import speakers_of

TURNS = [
    "Caroline: Hey Mel, what did you paint, a sunrise or a lake sunset?",
    "Melanie: I did paint the lake, Caroline, one morning last year.",
    "Caroline: Did you paint it? Melanie, that is great!",
    "Jon: the shop opens on Monday",
    "Gina: we painted the shop in blue",
]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    own = {"store.home": str(tmp_path / "home"), "search.refresh": "never", "semantic.refine": "never"}
    (tmp_path / "root").mkdir()
    return open_engine(tmp_path / "root", settings=Settings().override(own, "test"))


@pytest.mark.parametrize("question", ["what did Melanie paint", "what did melanie paint"])
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_turn_of_the_asked_person_comes_first(engine: Engine, question: str, mode: str) -> None:
    with engine:
        engine.add((Resource(rid=str(number), type="turn"), text) for number, text in enumerate(TURNS))
        answer = engine.search(question, mode=mode)
    assert answer.hits[0].rid == "1"
    steps = {step.name: step for step in answer.hits[0].receipt.steps}
    assert steps["speaker"].reason == "said by Melanie"
    assert all(one.score >= other.score for one, other in zip(answer.hits, answer.hits[1:], strict=False))
    assert not any(step.name == "speaker" for hit in answer.hits if hit.rid == "2" for step in hit.receipt.steps)


def test_a_file_is_no_turn(engine: Engine, tmp_path: Path) -> None:
    for number, text in enumerate(TURNS):
        (tmp_path / "root" / f"{number}.txt").write_text(text + "\n")
    with engine:
        engine.index()
        answer = engine.search("what did Melanie paint", mode="keyword")
    assert answer.hits
    assert not any(step.name == "speaker" for hit in answer.hits for step in hit.receipt.steps)


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("Ann: hi\nBob: hello\nAnn: bye", ["Ann", "Bob"]),
        ("[2024-01-02 10:00] Ann Lee: hi", ["Ann Lee"]),
        ("<ann> hi", ["ann"]),
        ("Note: this is no speaker", []),
        ("He was about to call Ann: hi", []),
        ("A line\nAnn: hi", []),
        ("", []),
    ],
)
def test_speakers_of_a_passage(text: str, speakers: list[str]) -> None:
    assert speakers_of(text) == speakers


@pytest.mark.parametrize("question", ["what did they paint on 20260405", "what did they paint on 5 April 2026"])
def test_a_chat_of_the_asked_day_comes_first(engine: Engine, question: str) -> None:
    said = {number: "they paint the wall" if number < 8 else f"lunch number {number}" for number in range(1, 28)}
    threads = [
        Thread("talk", str(day), [Message("1", text, "JakeWatson", datetime(2026, 4, day, 12).timestamp())])
        for day, text in said.items()
    ]
    with engine:
        WorkspaceChats(engine.writer).add(threads)
        answer = engine.search(question, mode="keyword")
    assert answer.hits[0].rid.split("/")[1] == "5"
    steps = {step.name: step.reason for step in answer.hits[0].receipt.steps}
    assert steps["time"] == "said between 2026-04-05 and 2026-04-05"


def test_a_name_without_spaces_has_its_words(engine: Engine) -> None:
    with engine:
        engine.add(
            (Resource(rid=name, type="turn"), f"{name}: we paint the wall")
            for name in ("AnnLee", "JakeWatson", "BobRay")
        )
        answer = engine.search("what does Jake Watson paint on the wall", mode="keyword")
    assert answer.hits[0].rid == "JakeWatson"


def test_a_chat_is_no_code_whatever_it_looks_like(engine: Engine) -> None:
    said = ["good morning", "the falcon has landed beside the barn", "see you later"]
    messages = [
        Message(f"{day}-{minute}", text, "Ann", datetime(2026, 4, day, 12, minute).timestamp())
        for day in range(1, 4)
        for minute, text in enumerate(said)
    ]
    with engine:
        WorkspaceChats(engine.writer).add([Thread("talk", "birds", messages)])
        answer = engine.search("falcon landed", mode="keyword")
    assert len(answer.hits) == 3
    assert not any(hit.receipt.steps for hit in answer.hits)
    assert len({hit.score for hit in answer.hits}) == 1
