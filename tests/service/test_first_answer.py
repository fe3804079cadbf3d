"""A first answer from a part of a large tree: right, marked as partial, and no loss for the whole one."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.reports import IndexProgress
from findling.pipelines.indexing import first_run
from findling.pipelines.indexing.freshness import UNSURE_NS

_WORDS = [a + b + c for a in "bdfgklm" for b in "aeiou" for c in ("nt", "rk", "ss", "ll", "mp")]
_FILES, _BYTES = 420, 9_000


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree that takes longer to index than a person waits."""
    root = tmp_path_factory.mktemp("forest") / "tree"
    chance = random.Random(7)
    for number in range(_FILES):
        file = root / f"part{number % 12}" / f"leaf{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        words = chance.choices(_WORDS, k=_BYTES // 5)
        file.write_text(
            f"# Leaf {number}\n\n" + "\n\n".join(" ".join(words[at : at + 60]) for at in range(0, 1800, 60))
        )
    (root / "zoo").mkdir()
    (root / "zoo" / "okapi.md").write_text("# The okapi\n\nAn okapi sleeps in the shade of a baobab.\n")
    (root / "zoo" / "gnu.c").write_text("int count_gnus(int herds) {\n    return 7 * herds;\n}\n")  # read by a worker
    (root / "part3" / "quiet.md").write_text("# Nothing\n\n" + "barkant " * 40 + "the quagga grazes at dawn\n")
    return root


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "FIRST_S", 100.0)  # however busy the machine is


def settings(tmp_path: Path, **changes: object) -> findling.Settings:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    return findling.Settings().override({**own, "semantic.instant": False, **changes}, "test")


@pytest.fixture
def engine(forest: Path, tmp_path: Path) -> Iterator[findling.Engine]:
    with findling.open(forest, settings=settings(tmp_path)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "path"),
    [("okapi", "zoo/okapi.md"), ("quagga at dawn", "part3/quiet.md"), ("count_gnus", "zoo/gnu.c")],
)
def test_a_quick_search_finds_by_name_and_by_content(engine: findling.Engine, question: str, path: str) -> None:
    answer = engine.search(question, quick=True)
    assert answer.hits[0].path == path
    indexed = answer.plan["indexed"]
    assert 0 < indexed["files"] < indexed["of"] == _FILES + 3
    (missing,) = answer.degraded
    assert f"{indexed['files']} of {indexed['of']} files are indexed so far" in missing.what
    assert answer.quality == "reduced"
    assert not engine.is_indexed()
    assert engine.take_left_open()
    assert not engine.take_left_open()


def test_the_next_search_goes_on_and_answers_as_if_it_had_been_the_first(
    engine: findling.Engine, forest: Path, tmp_path: Path
) -> None:
    time.sleep(2 * UNSURE_NS / 1e9)  # files that were written just now would be read twice
    engine.search("okapi", quick=True)
    few = engine.status().resources
    events: list[IndexProgress] = []
    whole = engine.search("kant okapi", on_progress=events.append)
    assert events[-1].total == _FILES + 3 - few, "nothing is indexed twice"
    assert engine.is_indexed()
    assert not engine.take_left_open()
    assert ("indexed" in whole.plan, whole.degraded) == (False, ())
    with findling.open(forest, settings=settings(tmp_path / "other")) as other:
        straight = other.search("kant okapi")
    assert [(hit.id, hit.score) for hit in whole] == [(hit.id, hit.score) for hit in straight]


def test_the_vectors_that_a_first_answer_leaves_out_are_made_by_the_next_run(forest: Path, tmp_path: Path) -> None:
    own = settings(tmp_path, **{"search.mode": "hybrid", "semantic.model": "none", "semantic.instant": True})
    with findling.open(forest, settings=own) as engine:
        assert engine.search("okapi", quick=True).strategy == "keyword"
        engine.index()
        answer = engine.search("animal asleep under a tree okapi")
        assert (answer.strategy, answer.degraded) == ("hybrid", ())
        assert any(check.name == "instant leg" for check in engine.check())
        assert all(check.ok for check in engine.check()), engine.check()


def test_a_small_tree_is_indexed_at_once(tmp_path: Path) -> None:
    root = tmp_path / "small"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nthe okapi\n")
    with findling.open(root, settings=settings(tmp_path)) as engine:
        answer = engine.search("okapi", quick=True)
        assert ("indexed" in answer.plan, answer.degraded, engine.is_indexed()) == (False, (), True)


def test_for_a_limited_caller_everything_is_indexed_first(engine: findling.Engine) -> None:
    """Hidden files with the same words would take the place of visible ones in a first answer."""
    engine.search("okapi", quick=True)
    answer = engine.search("okapi", quick=True, principals=("user:ada",))
    assert engine.is_indexed()
    assert ("indexed" in answer.plan, answer.degraded) == (False, ())


def test_a_run_that_is_interrupted_keeps_the_first_answer(engine: findling.Engine) -> None:
    engine.search("okapi", quick=True)
    before = engine.status().resources

    def interrupt(event: IndexProgress) -> None:
        if event.done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.search("okapi", on_progress=interrupt)
    assert engine.status().resources >= before
    assert engine.search("okapi", refresh=False).hits[0].path == "zoo/okapi.md"
    events: list[IndexProgress] = []
    assert not engine.search("okapi", on_progress=events.append).degraded
    assert engine.status().resources == _FILES + 3


def test_many_changes_are_left_to_the_next_search(tmp_path: Path, forest: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(forest, root)
    with findling.open(root, settings=settings(tmp_path)) as engine:
        engine.index()
        for file in root.glob("part*/leaf*.md"):
            file.write_text(file.read_text() + "\n\nanother end\n")
        (root / "zoo" / "okapi.md").write_text("# The okapi\n\nIt has woken up.\n")
        answer = engine.search("okapi woken", quick=True)
        assert "woken" in str(answer.hits[0].lines)
        (missing,) = answer.degraded
        assert "changed files are not indexed yet" in missing.what
        assert engine.take_left_open()
        whole = engine.search("another end", limit=1)
        assert (whole.total, whole.degraded) == (_FILES, ())


def test_the_model_reads_first_what_was_just_written(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / f"{name}.md").write_text(f"# {name}\n\nold text of {name}\n")
    with findling.open(root, settings=settings(tmp_path)) as engine:
        engine.index()
        for name in ("d", "b"):
            (root / f"{name}.md").write_text(f"# {name}\n\nnew text of {name}\n")
        engine.index()
        waiting = engine.writer.store.unembedded("some model", 10)
        assert {one.resource.path for one in waiting[:2]} == {"b.md", "d.md"}
        assert [one.resource.path for one in waiting[2:]] == ["a.md", "c.md"]


def test_no_time_at_all_is_no_error(engine: findling.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "FIRST_S", 0.0)
    answer = engine.search("okapi", quick=True)
    assert answer.degraded
    assert not engine.is_indexed()
    assert engine.search("okapi").hits[0].path == "zoo/okapi.md"


def test_a_part_of_a_tree_is_looked_through_alone(forest: Path, tmp_path: Path) -> None:
    with findling.open(forest / "zoo", settings=settings(tmp_path)) as engine:
        answer = engine.search("quagga okapi", quick=True)
        assert [hit.path for hit in answer] == ["okapi.md"]
        assert engine.is_indexed()


def test_the_beginning_of_large_files_is_read_first_and_the_rest_by_the_next_run(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    root.mkdir()
    for number in range(3):
        lines = [f"{at} request {at % 97} of worker {at % 7}" for at in range(40_000)]
        (root / f"app{number}.log").write_text("\n".join([*lines, f"{number} quagga at the end"]) + "\n")
    time.sleep(2 * UNSURE_NS / 1e9)
    with findling.open(root, settings=settings(tmp_path)) as engine:
        first = engine.search("request worker", quick=True)
        assert first.hits
        assert first.plan["indexed"]["files"] > 0
        assert not engine.search("quagga", quick=True).hits, "it stands behind what there was time for"
        whole = engine.search("quagga")
        assert ({hit.path for hit in whole}, whole.degraded) == ({f"app{at}.log" for at in range(3)}, ())
        (root / "app0.log").write_text((root / "app0.log").read_text() + "one more line\n")
        assert "app0.log" in {hit.path for hit in engine.search("quagga", quick=True)}, "nothing indexed is given up"


def test_a_part_of_the_files_makes_no_word_unknown(engine: findling.Engine) -> None:
    first = engine.search("okapi zzyzx bakont", quick=True)
    assert "indexed" in first.plan
    assert (first.unknown_terms, first.did_you_mean) == ((), ())
    whole = engine.search("okapi zzyzx")
    assert whole.unknown_terms == ("zzyzx",)


def test_files_are_chosen_by_name_and_path_as_the_whole_answer_ranks_them(tmp_path: Path) -> None:
    """Tests repeat the words of what they test; few questions are about them."""
    root = tmp_path / "code"
    for number in range(300):
        file = root / f"pack{number}" / "cases_test.py"
        file.parent.mkdir(parents=True)
        file.write_text(f"# {number}\n" + "def test_parse():\n    assert parse_duration('string')  # duration\n" * 150)
    filler = "def other(value):\n    return value * 3\n\n\n"
    (root / "clock").mkdir()
    source = filler * 60 + "def parse_duration(string):\n    ...\n\n\n" + filler * 60
    (root / "clock" / "format.py").write_text(source)
    with findling.open(root, settings=settings(tmp_path)) as engine:
        first = engine.search("parse duration string", quick=True)
        assert "indexed" in first.plan
        assert "clock/format.py" in {resource.path for resource in engine.ls()}


def test_progress_counts_what_is_read_and_what_is_written(forest: Path, tmp_path: Path) -> None:
    events: list[IndexProgress] = []
    with findling.open(forest, settings=settings(tmp_path)) as engine:
        engine.index(on_progress=events.append)
    stages = [event.stage for event in events]
    assert stages[-2:] == ["commit", "done"]
    assert "write" in stages
    everything = events[-1].bytes_total
    last_read = next(event for event in events if event.stage == "index" and event.done == event.total)
    assert last_read.bytes_read < everything, "its batch is not written yet"
    assert [event.bytes_read for event in events[-2:]] == [everything, everything]
    counted = [event.bytes_read for event in events]
    assert counted == sorted(counted)
