"""Meaning on the command line: found without a shared word, read in the background, told and chosen."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import pytest

from findling.pipelines.indexing import embedding_run
from findling.service.engine import background
from findling.service.engine.engine import open_engine
from findling.stores.lock import WriteLock
from tests.processes import PATIENCE_S, BoundedProcess, on_mains

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture
def notes(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes, which is the current one, searched as a new user would."""
    root = home / "notes"
    root.mkdir()
    (root / "nap.md").write_text("The feline dozed off upon the rug.\n")
    (root / "money.md").write_text("Quarterly revenue rose by nine percent.\n")
    (root / "release.md").write_text("Some words first.\n\nMore words.\n\nTo ship a version, push a tag and wait.\n")
    monkeypatch.chdir(root)
    monkeypatch.delenv("FINDLING_SEARCH_MODE")
    monkeypatch.setenv("FINDLING_SEMANTIC_THREADS", "1")
    return root


def test_a_new_user_finds_what_shares_no_word(notes: Path, findling: Findling) -> None:
    code, out, _ = findling("cat sleeping on carpet", "--set", "semantic.query_budget_ms=0")
    assert code == 0
    assert out.startswith("nap.md:1 ")
    assert "The feline dozed off upon the rug." in out


def test_explain_tells_both_legs_and_the_weights(notes: Path, findling: Findling) -> None:
    findling("index")
    findling("refine")
    code, out, _ = findling("quarterly revenue growth", "--explain", "--set", "search.alpha=0.5")
    assert code == 0
    assert "why: keyword rank 1, BM25" in out
    assert "semantic rank 1, cosine 0." in out
    assert "(refined)" in out
    assert "0.50 × 1.000 keyword + 0.50 × " in out
    assert "searched by its words and its meaning; meaning weighs 50%, since as the plan says" in out
    assert "vectors: refined, minilm has read 100%" in out


def test_the_line_shown_is_the_one_that_comes_nearest(notes: Path, findling: Findling) -> None:
    code, out, _ = findling("publishing a new release", "--set", "search.snippet_lines=1")
    assert code == 0
    assert "release.md:5 " in out
    assert "5 │ To ship a version" in out


def test_modes(notes: Path, findling: Findling) -> None:
    assert findling("cat sleeping on carpet", "--mode", "keyword")[0] == 1
    assert findling("cat sleeping on carpet", "--mode", "semantic")[0] == 0
    code, _, err = findling("cat", "--mode", "psychic")
    assert code == 2
    assert "psychic" in err


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("--set", "search.alpha=1.5"), "1.5"),
        (("--set", "search.alpha=much"), "much"),
        (("--set", "search.fusion=sum"), "sum"),
        (("--set", "search.mode"), "search.mode"),
        (("--set", "search.moode=keyword"), "search.moode"),
        (("--set", "search.min_score=7"), "7"),
    ],
)
def test_bad_values_are_named(notes: Path, findling: Findling, args: tuple[str, ...], named: str) -> None:
    code, out, err = findling("cat", *args)
    assert (code, out) == (2, "")
    assert named in err


def test_refine_and_status(notes: Path, findling: Findling) -> None:
    findling("index")
    assert "minilm has read 0 of 3 (0%)" in findling("status")[1]
    code, out, _ = findling("refine")
    assert code == 0
    assert out.startswith("3 read in ")
    assert out.endswith("3 of 3 passages read\n")
    assert "minilm has read 3 of 3 (100%)" in findling("status")[1]
    document = json.loads(findling("refine", "--json")[1])
    assert (document["read"], document["covered"], document["chunks"]) == (0, 3, 3)


def test_refine_waits_for_the_process_that_reads_already(notes: Path, findling: Findling) -> None:
    """A first search starts one in the background; right after it the command failed."""
    findling("index")
    with open_engine(notes) as engine:
        lock = WriteLock(engine.home / "refine.lock")
    assert lock.acquire(PATIENCE_S)
    assert findling("refine", "--seconds", "nan")[0] == 2
    code, out, _ = findling("refine", "--seconds", "0.1")
    assert (code, out.partition("; ")[2]) == (0, "0 of 3 passages read\n")
    process = BoundedProcess([sys.executable, "-m", "findling", "refine"], stdout=PIPE, stderr=PIPE)
    with process:
        assert process.stderr is not None
        assert "another process is reading these passages" in process.stderr.readline()
        assert "findling refine --stop" in process.stderr.readline()
        lock.release()
        assert process.communicate()[0].startswith("3 read in ")
    assert process.returncode == 0


@on_mains
def test_a_gentle_reader_ends_when_somebody_wants_the_passages_read_now(notes: Path, findling: Findling) -> None:
    findling("index")
    with open_engine(notes) as engine:
        wanted = WriteLock(engine.home / "refine-now.lock")
        with wanted:
            assert engine.refine(gently=True).read == 0
        assert engine.refine(gently=True).read > 0


def test_gentle_readers_of_a_home_read_one_after_another(notes: Path, findling: Findling) -> None:
    findling("index")
    with open_engine(notes) as engine, WriteLock(engine.home.parent / ".gently.lock"):
        deadline = time.monotonic() + 1.5
        assert engine.refine(gently=True, should_stop=lambda: time.monotonic() > deadline).read == 0
        assert engine.refine().read > 0, "a reader that is asked for waits for none"


def test_nothing_is_read_in_the_background_on_battery(
    notes: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    findling("index")
    monkeypatch.setattr(os, "nice", lambda _: None)  # the other tests go on in this process
    monkeypatch.setattr(embedding_run, "is_on_battery", lambda: True)
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "background")
    started: list[list[str]] = []
    monkeypatch.setattr(background, "_start", lambda arguments, *_: started.append(arguments))
    findling("cat sleeping on carpet", "--set", "semantic.query_budget_ms=0")
    code, out, err = findling("refine", "--gently")
    assert (code, out.partition("; ")[2], started) == (0, "0 of 3 passages read\n", [])
    assert err.endswith("reading waits for power: the machine runs on battery\n  try: findling refine\n")
    assert "waiting for power, the machine runs on battery; findling refine reads the rest" in findling("status")[1]
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")
    assert "(0%); findling refine reads the rest" in findling("status")[1]
    assert findling("refine")[1].startswith("3 read in "), "who types it has it read"
    assert "power" not in findling("status")[1]


def test_refine_needs_an_index_and_a_model(notes: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = findling("refine")
    assert code == 2
    assert "not indexed" in err
    findling("index")
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")
    code, _, err = findling("refine")
    assert code == 2
    assert "no model" in err


@on_mains
def test_indexing_has_the_model_read_in_the_background(
    notes: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # It reads at the lowest priority: beside a load of 40 that is a second of CPU in 20 minutes.
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual" / "sitecustomize.py").write_text("import os\n\nos.nice = lambda step: 0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "usual"))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "background")
    monkeypatch.setenv("FINDLING_SEMANTIC_CPU_SHARE", "1")
    assert findling("index")[0] == 0
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        meaning = json.loads(findling("status", "--json")[1])["meaning"]
        if meaning["read"] == meaning["of"] and not meaning["refining"]:
            break
        time.sleep(0.1)
    assert (meaning["read"], meaning["of"]) == (3, 3)


def test_the_answer_says_which_vectors_served_it(notes: Path, findling: Findling) -> None:
    instant = json.loads(findling("cat", "--json", "--set", "semantic.query_budget_ms=0")[1])
    assert (instant["schema"], instant["strategy"]) == (6, "hybrid")
    assert instant["meaning"] == {
        "speed": "instant", "model": "", "coverage": 0.0, "reranker": "", "sent_to": [],
    }  # fmt: skip
    findling("refine")
    refined = json.loads(findling("cat sleeping on carpet", "--json")[1])
    assert (refined["meaning"]["speed"], refined["meaning"]["model"]) == ("refined", "minilm")
    assert refined["hits"][0]["receipt"]["vector_rank"] == 1


def test_a_question_in_another_language_is_answered_at_once(notes: Path, findling: Findling) -> None:
    """Before the model has read and after it: it knows English only."""
    for _ in range(2):
        answer = json.loads(findling("고양이가 카펫에서 자고 있다", "--json")[1])
        assert (answer["meaning"]["speed"], answer["degraded"]) == ("instant", [])
        assert answer["hits"][0]["path"] == "nap.md"
        findling("refine")


def test_a_passage_in_another_language_is_found(notes: Path, findling: Findling) -> None:
    (notes / "ko.md").write_text("고양이가 양탄자 위에서 잠들었다.\n")
    findling("refine")
    assert findling("고양이")[1].startswith("ko.md:1 ")
    assert "ko.md" in findling("Wo schläft die Katze auf dem Teppich?")[1]


def test_without_instant_vectors_words_answer_another_language(notes: Path, findling: Findling) -> None:
    (notes / "ko.md").write_text("고양이가 양탄자 위에서 잠들었다.\n")
    findling("refine")
    code, out, err = findling("고양이", "--set", "semantic.instant=false")
    assert (code, out[:8]) == (0, "ko.md:1 ")
    assert "minilm cannot read this language" in err
