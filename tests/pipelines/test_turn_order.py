"""Turns of the people that a question names."""

from datetime import datetime
from pathlib import Path

import pytest

from findling.domain.records import Message, Thread
from findling.domain.resources import Resource
from findling.pipelines.retrieve.turn_order import _parts
from findling.service.content.chats import WorkspaceChats
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.text.chunking.chat_messages import people_in, said_by_others, speakers_of

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


def _beside(engine: Engine, question: str) -> list[str]:
    """The words of receipts about neighbours."""
    with engine:
        hits = engine.search(question, mode="keyword").hits
    return [step.reason for hit in hits for step in hit.receipt.steps if step.name == "beside"]


def test_passages_beside_each_other_count_more_and_one_alone_does_not(engine: Engine) -> None:
    said = ["the harbour " * 30, "the old harbour wall " * 20, "a quiet lunch " * 30, "one harbour " * 30]
    start = datetime(2026, 4, 3, 12).timestamp()
    messages = [Message(str(at), text, "AnnBob"[at % 2 * 3 :][:3], start + at) for at, text in enumerate(said)]
    WorkspaceChats(engine.writer).add([Thread("talk", "birds", messages)])
    assert _beside(engine, "harbour") == 2 * ["what stands beside it was found, too"]


@pytest.mark.parametrize(
    ("rids", "titles", "beside"),
    [
        (["talk:8", "talk:10"], ["monday", "monday"], 2),
        (["talk:8", "talk:11"], ["monday", "monday"], 0),
        (["talk:8", "talk:9"], ["monday", "tuesday"], 0),
        (["talk:8", "walk:9"], ["monday", "monday"], 0),
        (["20260408", "20260409"], ["monday", "monday"], 0),
    ],
)
def test_numbered_turns_of_one_title_are_beside_each_other(
    engine: Engine, rids: list[str], titles: list[str], beside: int
) -> None:
    engine.add(
        (Resource(rid=rid, type="turn", title=title), "Ann: the harbour")
        for rid, title in zip(rids, titles, strict=True)
    )
    assert len(_beside(engine, "harbour")) == beside


def test_what_a_caller_does_not_see_is_beside_nothing(engine: Engine) -> None:
    for number, sees in enumerate([(), ("user:ann",), ()]):
        own = Resource(rid=f"talk:{number}", type="turn", visibility=sees or ("user:ann", "user:bob"))
        engine.add([(own, "Ann: the harbour")])
    engine.add([(Resource(rid="walk:7", type="turn", visibility=("user:ann", "user:bob")), "Bob: the harbour")])
    with engine:
        factors = {
            who: [
                step.factor
                for hit in engine.search("harbour", mode="keyword", principals=frozenset({who})).hits
                for step in hit.receipt.steps
                if step.name == "beside"
            ]
            for who in ("user:ann", "user:bob")
        }
    assert len(factors["user:ann"]) == 3
    assert len(factors["user:bob"]) == 2
    assert max(factors["user:bob"]) < max(factors["user:ann"])


def test_passages_of_two_days_are_not_beside_each_other(engine: Engine) -> None:
    messages = [
        Message(str(day), "the old harbour wall " * 20, "Ann", datetime(2026, 4, day, 12).timestamp())
        for day in (3, 4, 5)
    ]
    WorkspaceChats(engine.writer).add([Thread("talk", "days", messages)])
    assert not _beside(engine, "harbour")


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize(("asked", "minute"), [("Ann", 3), ("Bob", 0), ("anybody", 0)])
def test_a_hit_names_the_message_of_the_asked_person(engine: Engine, mode: str, asked: str, minute: int) -> None:
    said = [
        ("Bob", "I read many books about the sea this summer, books and books"),
        ("Ann", "Good for you! The weather was fine, was it not?"),
        ("Bob", "It was. And you?"),
        ("Ann", "I read one about whales."),
    ]
    start = datetime(2026, 4, 3, 12).timestamp()
    messages = [Message(str(at), text, author, start + 60 * at) for at, (author, text) in enumerate(said)]
    with engine:
        WorkspaceChats(engine.writer).add([Thread("talk", "books", messages)])
        (hit,) = engine.search(f"which books did {asked} read this summer", mode=mode).hits
    assert hit.at == start + 60 * minute


@pytest.mark.parametrize(
    ("asked", "others", "names"),
    [
        ({"ann", "read"}, ["Bob: hello\n"], {"ann"}),
        ({"lee"}, ["Bob: hello\n"], {"lee"}),
        ({"ann", "bob"}, [], {"ann", "bob"}),
        ({"cleo"}, [], set()),
    ],
)
def test_what_others_said(asked: set[str], others: list[str], names: set[str]) -> None:
    text = "AnnLee: hi\nBob: hello\nAnnLee: bye"
    spans, found = said_by_others(text, asked)
    assert ([text[start:end] for start, end in spans], found) == (others, names)


@pytest.mark.parametrize(
    ("question", "people"),
    [
        ("what will the report be", {"report"}),
        ("Will the report be late", {"report", "late"}),
        ("what did Will say", {"will", "say"}),
        ("who may close it, May or Ann", {"close", "may", "ann"}),
        ("what did ann read", {"ann", "read"}),
    ],
)
def test_small_words_of_a_question_name_nobody(question: str, people: set[str]) -> None:
    assert people_in(question) == people


def test_one_person_by_several_names_is_asked_once() -> None:
    (step,) = _parts(["Anna", "anna", "Anna Schmidt"], {"anna", "say"}, Resource(rid="chat:1", type="chat"), None)
    assert step.factor == pytest.approx(1.4)
    (step,) = _parts(["Anna", "Bob", "Cleo"], {"anna", "bob"}, Resource(rid="chat:1", type="chat"), None)
    assert step.factor == pytest.approx(1.4**2)
