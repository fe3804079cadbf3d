"""One name is found whole; a question that nothing answers has no hit; a model has no say in what it cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.pipelines.answer import whole_names
from findling.ranking.evidence import is_best, is_hit

CODE = {
    "session.py": "class Session:\n    def send(self, request):\n        return self.adapter.deliver(request)\n",
    "radio.py": "class Radio:\n    def send(self, wave):\n        return self.antenna.emit(wave)\n",
    "client.py": "from session import Session\n\n\ndef ask(conn, request):\n    return conn.send(request)\n",
    "flags.py": "RETRY = 3\n\n\ndef retry(times):\n    return range(times)\n",
    "again.py": "def again(retry):\n    return retry + 1\n",
}
NOTES = {
    f"{place}.md": f"# {place}\n\nIn {place} we looked at {thing}, and {end}.\n"
    for place, thing, end in zip(
        "Berlin Paris Rome Oslo Cairo Lima Delhi Kyoto Quito Sofia Minsk Dakar Hanoi Perth Boston Dallas "
        "Austin Turin Genoa Basel Lyon Nice Bonn Kiel".split(),
        "castles bridges fountains fjords pyramids ruins temples gardens volcanoes churches parks beaches lakes reefs "
        "harbours ranches rivers factories lighthouses museums kitchens promenades chancelleries ferries".split(),
        ["the cabaret closed late", "the train back was late", "it rained", "the queue was long"] * 6,
        strict=True,
    )
}


def opened(root: Path, files: dict[str, str]) -> findling.Engine:
    for name, text in files.items():
        (root / name).write_text(text)
    own = {"store.home": str(root.parent / "homes"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    engine = findling.open(root, settings=findling.Settings().override(own, "test"))
    engine.index()
    return engine


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    with opened(tmp_path_factory.mktemp("code"), CODE) as engine:
        yield engine


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    with opened(tmp_path_factory.mktemp("notes"), NOTES) as engine:
        yield engine


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("Session.send", ["session.py"]),
        ("Radio.send", ["radio.py"]),
        ("conn.send", ["client.py"]),
        ("RETRY", ["flags.py"]),
    ],
)
def test_a_name_is_found_whole_with_its_definition(code: findling.Engine, name: str, paths: list[str]) -> None:
    answer = code.search(name, refresh=False)
    assert [hit.path for hit in answer.hits] == paths
    assert (answer.total, answer.total_is_exact) == (len(paths), True)
    assert answer.weaker > 0, "others share a part of it"


def test_a_rare_name_is_found_whole_though_its_word_stands_everywhere(
    code: findling.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NONE stands in 27 of 14,023 passages; the 7,235 with its word were hits, and none of the 27 among the first."""
    monkeypatch.setattr(whole_names, "_MOST_HOLDING", 1)
    answer = code.search("RETRY", refresh=False)
    assert ([hit.path for hit in answer.hits], answer.total, answer.total_is_exact) == (["flags.py"], 1, True)
    monkeypatch.setattr(whole_names, "_MOST_READ", 4)
    assert len(code.search("RETRY", refresh=False, limit=9).hits) == 2, "not all of a large index is read"


@pytest.mark.parametrize(
    "question", ["castles of sand and how to build them cheaply", "late medieval Flemish painters"]
)
def test_a_word_in_common_answers_nothing(notes: findling.Engine, question: str) -> None:
    answer = notes.search(question, refresh=False)
    assert not answer.hits
    assert answer.related, "the nearest passages are named beside"


def test_a_question_in_another_language_finds_the_relative_of_a_word(notes: findling.Engine) -> None:
    answer = notes.search("Wann schloss das Kabarett", refresh=False)
    assert answer.hits
    assert all("cabaret" in NOTES[hit.path] for hit in answer.hits)


def test_the_best_of_many_passages_needs_more() -> None:
    assert is_hit(0.2, 0.25, "instant", 3)
    assert is_best(0.2, 0.25, "instant", 3, 100)
    assert not is_best(0.2, 0.25, "instant", 3, 36_000)
    assert is_best(0.3, 0.3, "instant", 3, 36_000)
    assert is_best(0.0, 0.36, "refined", 2, 100), "what stands out needs no word"
    assert not is_best(0.0, 0.36, "refined", 2, 36_000)
