"""Turns of the people that a question names."""

from pathlib import Path

import pytest

from findling.domain.resources import Resource
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
