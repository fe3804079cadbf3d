"""The library as its users meet it: open, index, search, look after."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import CorruptError, InvalidValueError, NotIndexedError, PathNotFoundError
from findling.domain.reports import IndexProgress
from findling.pipelines.indexing.freshness import is_fresh


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    return findling.Settings().override({"store.home": str(tmp_path / "home"), "search.mode": "keyword"}, "test")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "src").mkdir()
    guide = "# Guide to pools\n\nHow the stale cache is noticed.\n\n## Sharing\n\nConnection pools.\n"
    (root / "docs" / "guide.md").write_text(guide)
    (root / "src" / "pool.py").write_text("class ConnectionPool:\n    def getConnection(self):\n        return None\n")
    (root / "src" / "data.bin").write_bytes(bytes(range(256)))
    return root


@pytest.fixture
def engine(tree: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    with findling.open(tree, settings=settings) as opened:
        yield opened


def paths(answer: findling.SearchAnswer) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in answer))


def test_index_then_search(engine: findling.Engine) -> None:
    report = engine.index()
    assert (report.added, report.updated, report.removed) == (2, 0, 0)
    assert report.skipped == {"unknown-type": 1} or report.skipped == {"binary": 1}
    answer = engine.search("connection pool")
    assert set(paths(answer)) == {"docs/guide.md", "src/pool.py"}
    assert answer.strategy == "keyword"
    assert answer.understood_as == "connection OR pool"
    assert not answer.degraded
    assert answer.total == len(answer) == 2
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


def test_a_run_over_an_unchanged_tree_reports_it_and_brings_lost_legs_back(engine: findling.Engine) -> None:
    for path in (engine.root, *engine.root.rglob("*")):
        os.utime(path, (1e9, 1e9))
    time.sleep(0.06)  # what has just changed is looked at twice, and the time of that change cannot be set
    first = engine.index()
    events: list[IndexProgress] = []
    again = engine.index(on_progress=events.append)
    assert (again.added, again.unchanged, again.chunks, again.skipped) == (0, 2, 0, first.skipped)
    assert [event.stage for event in events] == ["scan", "done"]
    legs = [*engine.home.glob("vectors-*"), engine.home / "keyword"]
    before = {leg.name: len(list(leg.iterdir())) for leg in legs}
    assert len(legs) == 2
    for leg in legs:
        shutil.rmtree(leg)
    assert engine.index().unchanged == 2
    assert {leg.name: len(list(leg.iterdir())) for leg in legs} == before


def test_a_first_search_indexes_by_itself(engine: findling.Engine) -> None:
    events: list[IndexProgress] = []
    assert not engine.is_indexed()
    assert paths(engine.search("stale cache", on_progress=events.append)) == ["docs/guide.md"]
    assert engine.is_indexed()
    assert [event.stage for event in events][:1] == ["scan"]
    assert events[-1].stage == "done"
    assert events[-1].done == events[-1].total == 2


def test_without_refresh_nothing_is_indexed(engine: findling.Engine) -> None:
    with pytest.raises(NotIndexedError):
        engine.search("anything", refresh=False)
    assert not engine.home.exists()


def test_lines_are_verbatim_and_marked(engine: findling.Engine) -> None:
    (hit, *_) = engine.search("getconnection")
    assert hit.path == "src/pool.py"
    line = next(line for line in hit.lines if line.spans)
    assert (line.number, line.text) == (2, "    def getConnection(self):")
    assert [line.text[start:end] for start, end in line.spans] == ["getConnection"]


def test_a_receipt_says_what_matched_and_what_is_missing(engine: findling.Engine) -> None:
    (hit,) = engine.search("pools unicorn", filters=findling.Filters(ext=(".md",)))
    receipt = hit.receipt
    assert receipt.keyword_rank == 1
    assert {(m.term, m.field) for m in receipt.matches} >= {("pools", "body"), ("pools", "heading")}
    assert receipt.final_score == hit.score
    assert receipt.missing == ("unicorn",)
    answer = engine.search("pools unicorn")
    assert answer.unknown_terms == ("unicorn",)


def test_an_answer_without_hits_is_empty_and_says_why(engine: findling.Engine) -> None:
    answer = engine.search("unicorn")
    assert (len(answer), answer.total, answer.unknown_terms) == (0, 0, ("unicorn",))


def test_exclusion_patterns_look_at_whole_chunks_and_refill(tree: Path, engine: findling.Engine) -> None:
    for number in range(30):
        mark = "DROP" if number % 2 else "KEEP"
        (tree / f"n{number:02}.txt").write_text(f"needle {number}\n" + "filler\n" * 20 + f"{mark}\n")
    answer = engine.search("needle", limit=10, exclude_pattern="DROP")
    assert len(answer) == 10
    assert all(int(hit.path[1:3]) % 2 == 0 for hit in answer)
    assert len(engine.search("needle", limit=100, exclude_pattern="DROP")) == 15


@pytest.mark.parametrize(
    "options", [{"exclude_pattern": "("}, {"min_score": 1.5}, {"limit": -1}, {"offset": -2}], ids=str
)
def test_requests_that_cannot_be_carried_out(engine: findling.Engine, options: dict[str, Any]) -> None:
    engine.index()
    with pytest.raises(InvalidValueError):
        engine.search("pool", **options)


def test_pages_follow_each_other(tree: Path, engine: findling.Engine) -> None:
    for number in range(25):
        (tree / f"n{number:02}.txt").write_text("needle " * (number + 1))
    whole = [hit.id for hit in engine.search("needle", limit=25)]
    parts = [hit.id for start in (0, 10, 20) for hit in engine.search("needle", limit=10, offset=start)]
    assert parts == whole
    assert len(set(whole)) == 25


def test_min_score_cuts_the_tail(engine: findling.Engine) -> None:
    best, second = engine.search("connection pool")
    assert [hit.id for hit in engine.search("connection pool", min_score=best.score - 0.0001)] == [best.id]
    assert len(engine.search("connection pool", min_score=second.score - 0.0001)) == 2


def test_the_scope_of_a_subfolder_uses_the_index_of_its_parent(tree: Path, settings: findling.Settings) -> None:
    with findling.open(tree, settings=settings) as engine:
        engine.index()
    with findling.open(tree / "docs", settings=settings) as engine:
        assert engine.root == tree.resolve()
        assert engine.scope == "docs"
        assert paths(engine.search("connection")) == ["docs/guide.md"]
        assert [resource.path for resource in engine.ls()] == ["docs/guide.md"]


def test_a_single_file_is_a_workspace_of_its_own(tree: Path, settings: findling.Settings) -> None:
    (tree / "src" / "odd.unknown").write_text("a single needle\n")
    with findling.open(tree / "src" / "odd.unknown", settings=settings) as engine:
        assert paths(engine.search("needle")) == ["odd.unknown"]
        assert paths(engine.search("connection")) == []


def test_the_first_run_of_a_single_file_is_not_one_that_was_not_completed(
    tree: Path, settings: findling.Settings
) -> None:
    (tree / "alone.md").write_text("A zebra crosses.\n")
    seen: list[IndexProgress] = []
    with findling.open(tree / "alone.md", settings=settings) as engine:
        engine.index(on_progress=seen.append)
    assert next(one.reason for one in seen if one.reason) == "it has no index yet"


def test_a_named_workspace_keeps_its_root(tree: Path, tmp_path: Path, settings: findling.Settings) -> None:
    with findling.open(tree, workspace="mine", settings=settings) as engine:
        engine.index()
        assert engine.home.name == "mine"
    with findling.open(workspace="mine", settings=settings) as engine:
        assert engine.root == tree.resolve()
        assert len(paths(engine.search("connection"))) == 2
    with findling.open(tree / "src", workspace="mine", settings=settings) as engine:
        assert paths(engine.search("connection")) == ["src/pool.py"]
    with pytest.raises(InvalidValueError, match="not part of the workspace"):
        findling.open(tmp_path, workspace="mine", settings=settings)
    with pytest.raises(InvalidValueError, match="no workspace name"):
        findling.open(tree, workspace="../evil", settings=settings)


def test_a_damaged_named_workspace_can_be_rebuilt(tree: Path, settings: findling.Settings) -> None:
    with findling.open(tree, workspace="mine", settings=settings) as engine:
        engine.index()
        store_file = engine.home / "index.sqlite"
    store_file.write_bytes(b"no database at all" * 500)
    with findling.open(tree, workspace="mine", settings=settings) as engine:
        with pytest.raises(CorruptError):
            engine.search("connection")
        assert engine.index(rebuild=True).added == 2
        assert len(engine.search("connection")) == 2


def test_a_path_that_is_not_there(tmp_path: Path, settings: findling.Settings) -> None:
    with pytest.raises(PathNotFoundError):
        findling.open(tmp_path / "nowhere", settings=settings)


def test_an_index_inside_its_own_tree_does_not_index_itself(tree: Path) -> None:
    settings = findling.Settings().override({"store.home": str(tree / "index")}, "test")
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        assert engine.index().changed == 0
        assert {resource.path for resource in engine.ls()} == {"docs/guide.md", "src/pool.py"}


def test_a_home_inside_the_tree_is_not_indexed(tree: Path, tmp_path: Path) -> None:
    """The index of another workspace is a readable database: all of its texts were found there once more."""
    link = tmp_path / "link"
    link.symlink_to(tree)
    for home in (tree / "index", link / "linked"):
        settings = findling.Settings().override({"store.home": str(home)}, "test")
        with findling.open(tree / "docs", settings=settings) as other:
            other.index()
        with findling.open(tree, settings=settings) as engine:
            engine.index()
            assert {resource.path for resource in engine.ls()} == {"docs/guide.md", "src/pool.py"}
        shutil.rmtree(home)


def test_other_resources_live_beside_files(engine: findling.Engine) -> None:
    engine.index()
    decision = findling.Resource(rid="decision:1", type="decision", title="Use pools", visibility=("group:dev",))
    assert engine.add([(decision, "We pool connections because opening one costs 40 ms.")]) == 1
    assert engine.add([(decision, "We pool connections because opening one costs 40 ms.")]) == 0
    assert [hit.rid for hit in engine.search("opening", filters=findling.Filters(type=("decision",)))] == ["decision:1"]
    assert len(engine.search("opening", principals=("group:dev",))) == 1
    assert len(engine.search("opening", principals=("group:ops",))) == 0
    engine.index()
    assert len(engine.search("opening")) == 1, "an index run of the files must not drop what is not a file"


def test_forgetting(tree: Path, engine: findling.Engine) -> None:
    engine.index()
    assert engine.forget(["src"]) == 1
    assert paths(engine.search("connection", refresh=False)) == ["docs/guide.md"]
    assert set(paths(engine.search("connection"))) == {"docs/guide.md", "src/pool.py"}, "and found again on disk"
    engine.forget_everything()
    assert not engine.home.exists()
    assert (tree / "src" / "pool.py").exists()


def test_forgotten_files_come_back_however_late_the_next_search(engine: findling.Engine) -> None:
    engine.search("connection")
    time.sleep(0.1)
    engine.search("connection")
    engine.forget(["src"])
    time.sleep(0.1)
    assert "src/pool.py" in paths(engine.search("connection"))
    with pytest.raises(InvalidValueError):
        engine.forget([""])


def test_rebuilding_keeps_what_no_file_can_give_back(engine: findling.Engine) -> None:
    engine.index()
    engine.add([(findling.Resource(rid="memory:1", type="memory"), "remember the zebra")])
    engine.index(rebuild=True)
    assert [hit.rid for hit in engine.search("zebra")] == ["memory:1"]
    assert len(engine.search("connection")) == 2


def test_a_search_beside_a_first_run_answers_from_what_is_there(
    tree: Path, engine: findling.Engine, settings: findling.Settings
) -> None:
    with findling.open(tree, settings=settings) as writer, writer._files.writing():
        answer = engine.search("connection")
        assert len(answer) == 0
        assert any("first time" in note.what for note in answer.degraded)
    assert len(engine.search("connection")) == 2


def test_exclusion_looks_as_far_as_it_takes(engine: findling.Engine) -> None:
    engine.add(
        (findling.Resource(rid=f"r{n}"), f"needle {'keep' if n >= 1990 else 'drop'} " + "needle " * (n < 1990))
        for n in range(2000)
    )
    assert len(engine.search("needle", exclude_pattern="drop", refresh=False)) == 10


def test_status_check_and_repair(engine: findling.Engine) -> None:
    engine.index()
    status = engine.status()
    assert (status.resources, status.chunks) == (2, 2)
    assert status.seq == status.keyword_seq > 0
    assert status.size_bytes > 0
    assert all(check.ok for check in engine.check()), engine.check()
    before = engine.search("connection pool").hits
    assert engine.repair().chunks == 2
    assert engine.search("connection pool").hits == before
    assert all(check.ok for check in engine.check())


def test_another_chunk_size_chunks_everything_anew(tree: Path, settings: findling.Settings) -> None:
    (tree / "long.txt").write_text("\n\n".join(f"Paragraph {n} " + "words " * 40 for n in range(20)))
    with findling.open(tree, settings=settings) as engine:
        engine.search("paragraph")
        before = engine.status().chunks
    with findling.open(tree, settings=settings.override({"chunk.preset": "semantic:60:tokens"}, "test")) as engine:
        engine.search("paragraph")
        assert engine.status().chunks > 2 * before


def test_rebuilding_starts_from_nothing(engine: findling.Engine) -> None:
    engine.index()
    before = engine.search("connection pool").hits
    assert engine.index(rebuild=True).added == 2
    assert engine.search("connection pool").hits == before


def test_only_the_owner_can_read_the_index(engine: findling.Engine) -> None:
    engine.index()
    assert engine.home.stat().st_mode & 0o077 == 0
    for file in engine.home.glob("index.sqlite*"):
        assert file.stat().st_mode & 0o077 == 0


def test_whole_pages_can_be_ranked(tree: Path, settings: findling.Settings) -> None:
    filler = "\n\n".join(f"Paragraph {n}. " + "nothing to see here. " * 20 for n in range(30))
    (tree / "long.txt").write_text(f"{filler}\n\nThe needle is here.\n\n{filler}\n\nThe thread is there.\n")
    with findling.open(tree, settings=settings.override({"keyword.unit": "page"}, "test")) as engine:
        answer = engine.search("needle thread")
        assert answer.total == 1
        assert any("needle" in line.text or "thread" in line.text for line in answer.hits[0].lines)


def test_the_quick_look_never_misses_a_change(tree: Path, engine: findling.Engine) -> None:
    def fresh() -> bool:
        engine.search("settle")
        time.sleep(0.06)
        engine.search("settle")
        return is_fresh(engine._files.store, engine.root, engine._disk._options)

    engine.index()
    assert fresh()
    (tree / "empty").mkdir()
    assert fresh(), "a survey that finds nothing new is remembered"
    before = (tree / "src" / "pool.py").stat()
    (tree / "src" / "pool.py").write_text("class ConnectionPool:\n    def getConnection(self):\n        return Nope\n")
    os.utime(tree / "src" / "pool.py", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert not is_fresh(engine._files.store, engine.root, engine._disk._options)
    assert len(engine.search("nope")) == 1
    assert fresh()
    (tree / "empty" / "new.txt").write_text("appeared")
    assert not is_fresh(engine._files.store, engine.root, engine._disk._options)
    assert len(engine.search("appeared")) == 1
    assert fresh()
    (tree / "empty" / "new.txt").unlink()
    assert not is_fresh(engine._files.store, engine.root, engine._disk._options)
