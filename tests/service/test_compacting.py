"""Compacting: smaller, and every answer as before."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import findling
from findling.domain.errors import DiskFullError, LockedError, NotIndexedError
from findling.domain.records import Access
from findling.service.index.embeddings import WorkspaceVectors
from findling.service.upkeep.compaction import CompactReport, compact, compact_if_worthwhile, is_worthwhile
from findling.stores.keyword.merge import count_entries
from findling.stores.local.legs import VectorLegs
from findling.stores.local.maintenance import absorbed_by_all
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import count_pages, rewrite_store
from findling.stores.vectors.vector_files import write_header
from tests.processes import BoundedProcess, small_disk

WORDS = ["harbour", "lantern", "meadow", "thimble", "granite", "orchard", "compass", "velvet", "saddle", "parchment"]
QUERIES = ("harbour lantern", "meadow", "granite -velvet", "orchard compass saddle")
LONG_AGO = time.time() - 40 * 86_400


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    # No model reads during a search: what it gets done depends on the time it takes.
    values = {"store.home": str(tmp_path / "home"), "semantic.refine": "never", "semantic.query_budget_ms": 0}
    return findling.Settings().override(values, "test")


@pytest.fixture
def engine(tmp_path: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(20):
        (root / f"note{number}.md").write_text(prose(number))
    with findling.open(root, settings=settings) as opened:
        opened.index()
        yield opened


def prose(number: int, turn: int = 0) -> str:
    words = [WORDS[(number * 7 + turn * 3 + place * place) % len(WORDS)] for place in range(60)]
    return f"# Note {number}\n\n{' '.join(words)} mark{'abcdefghij'[number % 10]}\n"


def churn(engine: findling.Engine, turns: int = 3) -> None:
    """Change half of the files again and again, and delete some."""
    for turn in range(1, turns + 1):
        for number in range(0, 20, 2):
            (engine.root / f"note{number}.md").write_text(prose(number, turn))
        engine.index()
    for number in range(15, 20):
        (engine.root / f"note{number}.md").unlink()
    engine.index()


def run(engine: findling.Engine, settings: findling.Settings, *, full: bool = False) -> CompactReport:
    files = engine.writer.files
    return compact(files, WorkspaceVectors(files, settings), settings, full=full)


def answers(engine: findling.Engine) -> dict[str, list[tuple[str, float]]]:
    found = {}
    for query in QUERIES:
        hits = engine.search(query, refresh=False, limit=100)
        found[query] = [(hit.id, hit.score) for hit in hits]
    return found


def rows(engine: findling.Engine, table: str) -> int:
    connection = sqlite3.connect(engine.home / "index.sqlite")
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.close()
    return int(count)


def test_what_is_dead_goes_and_answers_stay(engine: findling.Engine, settings: findling.Settings) -> None:
    churn(engine)
    before = answers(engine)
    assert all(before.values())
    assert count_entries(engine.home / "keyword").deleted > 0
    assert rows(engine, "dropped") > 0
    assert rows(engine, "deleted") > 0
    report = run(engine, settings)
    assert count_entries(engine.home / "keyword").deleted == 0
    headers = [header for _, header in VectorLegs(engine.home).headers()]
    assert [header.dead for header in headers] == [0] * len(headers)
    assert rows(engine, "dropped") == rows(engine, "deleted") == 0
    assert engine.writer.store.log_floor() == engine.writer.store.seq()
    assert "keyword leg" in report.rewritten
    assert report.log_entries_dropped > 0
    assert 0 < report.freed_bytes == sum(report.before.values()) - sum(report.after.values())
    after = answers(engine)
    for query, hits in before.items():
        # Not their scores: what was deleted counted in the statistics until now.
        assert {hit for hit, _ in after[query]} == {hit for hit, _ in hits}
    assert all(check.ok for check in engine.check() if check.name != "disk space")


def test_compacting_again_changes_nothing(engine: findling.Engine, settings: findling.Settings) -> None:
    churn(engine)
    run(engine, settings, full=True)
    before = answers(engine)
    report = run(engine, settings)
    assert (report.rewritten, report.removed, report.log_entries_dropped, report.vectors_dropped) == ((), (), 0, 0)
    assert answers(engine) == before
    assert set(run(engine, settings, full=True).rewritten) == {"keyword leg", "truth store"}
    assert answers(engine) == before


def test_a_compacted_index_answers_as_a_new_one(
    engine: findling.Engine, settings: findling.Settings, tmp_path: Path
) -> None:
    churn(engine)
    run(engine, settings, full=True)
    compacted = answers(engine)
    elsewhere = settings.override({"store.home": str(tmp_path / "other")}, "test")
    with findling.open(engine.root, settings=elsewhere) as fresh:
        fresh.index()
        assert {query: dict(hits) for query, hits in answers(fresh).items()} == {
            query: dict(hits) for query, hits in compacted.items()
        }


def test_the_next_changes_are_found(engine: findling.Engine, settings: findling.Settings) -> None:
    churn(engine)
    run(engine, settings)
    (engine.root / "late.md").write_text("# Late\n\nzanzibar harbour\n")
    (engine.root / "note1.md").unlink()
    assert [hit.path for hit in engine.search("zanzibar")] == ["late.md"]
    assert all(check.ok for check in engine.check() if check.name != "disk space")


def test_the_log_is_kept_for_a_leg_that_is_behind(engine: findling.Engine, settings: findling.Settings) -> None:
    pages = settings.override({"keyword.unit": "page"}, "test")
    with findling.open(engine.root, settings=pages) as other:
        assert other.search("harbour", refresh=False).hits
    reached = engine.writer.store.seq()
    churn(engine, turns=1)
    assert absorbed_by_all(engine.home, engine.writer.store.get_meta("store_id") or "") == reached
    run(engine, settings)
    assert engine.writer.store.log_floor() == reached < engine.writer.store.seq()
    with findling.open(engine.root, settings=pages) as other:
        found = other.search("harbour", refresh=False, limit=100)
        assert not any("rebuilt" in str(note) for note in found.degraded)
        assert {hit.path for hit in found} == {
            file.name for file in engine.root.iterdir() if "harbour" in file.read_text()
        }


def test_vectors_that_nothing_needs_go(engine: findling.Engine, settings: findling.Settings) -> None:
    store = engine.writer.store
    digest = next(iter(chunk.chunk.digest for chunk in store.unembedded("former", 1)))
    store.put_vectors("former", {digest: b"\0" * 64, b"nothing-has-this": b"\0" * 64})
    report = run(engine, settings)
    assert report.vectors_dropped == 1
    assert report.models_dropped == ()
    assert engine.writer.store.models() == {"former": 1}, "the chosen model has read nothing, so the other may serve"


def test_former_models_go_once_the_chosen_one_has_read_everything(tmp_path: Path, settings: findling.Settings) -> None:
    root = tmp_path / "small"
    root.mkdir()
    (root / "one.md").write_text(prose(1))
    with findling.open(root, settings=settings) as engine:
        engine.index()
        store = engine.writer.store
        digests = [chunk.chunk.digest for chunk in store.unembedded("former", 10)]
        store.put_vectors("former", dict.fromkeys(digests, b"\0" * 64))
        engine.refine()
        (chosen,) = store.models().keys() - {"former"}
        before = [(hit.id, hit.score) for hit in engine.search("a place for ships", refresh=False)]
        files = engine.writer.files
        quiet = compact(files, WorkspaceVectors(files, settings), settings, drops_models=False)
        assert quiet.models_dropped == ()
        assert run(engine, settings).models_dropped == ("former",)
        assert engine.writer.store.models().keys() == {chosen}
        assert [(hit.id, hit.score) for hit in engine.search("a place for ships", refresh=False)] == before


def test_wishes_for_what_is_gone_or_read_are_dropped(engine: findling.Engine, settings: findling.Settings) -> None:
    store = engine.writer.store
    store.want([chunk.chunk.cid for chunk in store.unembedded("any", 3)])
    connection = sqlite3.connect(engine.home / "index.sqlite")
    connection.execute("INSERT INTO wanted (cid) VALUES (7)")
    connection.commit()
    connection.close()
    assert rows(engine, "wanted") == 4
    run(engine, settings)
    assert rows(engine, "wanted") == 3


def test_stale_sidecars_go_and_others_stay(engine: findling.Engine, settings: findling.Settings) -> None:
    home = engine.home
    doomed = [home / "views" / "old", home / "keyword-page", home / "keyword.fresh", home.parent / ".deleted-77"]
    kept = [home.parent / ".deleted-photos", home.parent / ".deleted-78"]
    for folder in (*doomed, *kept):
        folder.mkdir(parents=True)
    engine.permissions.set_policy("public")
    assert engine.as_caller("user:ann").search("harbour").total
    kept += home.glob("views/*.seg")
    (doomed[3] / "write.lock").touch()
    (kept[1] / "holiday.jpg").touch()
    foreign = home / "vectors-000000000000"
    folder, header = next(VectorLegs(home).headers())
    shutil.copytree(folder, foreign)
    write_header(foreign, header._replace(made_for=f"another{header.made_for}"))
    for folder in doomed[:2]:
        os.utime(folder, (LONG_AGO, LONG_AGO))
    report = run(engine, settings)
    assert {"views/old", "keyword-page", "keyword.fresh", ".deleted-77", foreign.name} == set(report.removed)
    assert not any(folder.exists() for folder in (*doomed, foreign))
    assert len(kept) == 3
    assert all(folder.exists() for folder in kept)
    assert (home / "keyword" / "meta.json").exists()


def test_it_is_offered_when_what_was_deleted_would_show_in_scores(
    engine: findling.Engine, settings: findling.Settings
) -> None:
    churn(engine, turns=1)
    assert is_worthwhile(engine.home, settings)
    assert compact_if_worthwhile(engine.writer.files, settings)
    assert count_entries(engine.home / "keyword").deleted == 0


def test_it_is_not_offered_for_a_little(engine: findling.Engine, settings: findling.Settings) -> None:
    (engine.root / "note3.md").write_text(prose(3, 1))
    engine.index()
    assert not is_worthwhile(engine.home, settings)
    assert not compact_if_worthwhile(engine.writer.files, settings)
    assert count_entries(engine.home / "keyword").deleted > 0


def test_it_is_offered_for_free_pages(engine: findling.Engine, settings: findling.Settings) -> None:
    store = SqliteStore.open(engine.home / "index.sqlite")
    store.put_vectors("m", {number.to_bytes(16, "big"): b"\0" * 60_000 for number in range(100)})
    assert not is_worthwhile(engine.home, settings)
    store.drop_vectors("m")
    before = answers(engine)
    assert is_worthwhile(engine.home, settings)
    files = engine.writer.files
    with files.writing():
        with findling.open(engine.root, settings=settings) as other:
            assert not compact_if_worthwhile(other.writer.files, settings), "somebody is writing"
        assert count_pages(engine.home / "index.sqlite").free_share > 0.25
    assert compact_if_worthwhile(files, settings)
    assert count_pages(engine.home / "index.sqlite").free == 0
    assert not compact_if_worthwhile(files, settings)
    assert answers(engine) == before


def test_there_must_be_an_index(tmp_path: Path, settings: findling.Settings) -> None:
    (tmp_path / "empty").mkdir()
    with findling.open(tmp_path / "empty", settings=settings) as engine, pytest.raises(NotIndexedError):
        run(engine, settings)
    assert not (tmp_path / "home").exists()


def test_a_rewrite_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    monkeypatch.setenv("SQLITE_TMPDIR", str(disk))
    with small_disk(disk, "3m"):
        connection = sqlite3.connect(disk / "index.sqlite")
        connection.execute("CREATE TABLE held (text)")
        connection.executemany("INSERT INTO held VALUES (?)", [("x" * 4000,)] * 250)
        connection.commit()
        connection.close()
        with pytest.raises(DiskFullError, match="rewriting"):
            rewrite_store(disk / "index.sqlite")


def test_accesses_are_counted_in_and_those_to_what_is_gone_are_dropped(
    engine: findling.Engine, settings: findling.Settings
) -> None:
    kept, gone = engine.memories.remember("The harbour closes at nine.").rid, "memory:gone"
    engine.writer.store.add_accesses({gone: Access(3, 1.0)})
    assert engine.memories.recall("harbour closes", mode="keyword", limit=1).is_counted
    engine.memories.fold()
    engine.memories.recall("harbour closes", mode="keyword", limit=1)
    assert engine.writer.store.accesses([kept, gone])[kept].count == 1
    run(engine, settings)
    counted = engine.writer.store.accesses([kept, gone])
    assert {rid: access.count for rid, access in counted.items()} == {kept: 2}
    assert engine.memories.get(kept).access_count == 2, "no line of the log is counted twice"


def test_an_engine_that_stays_open_answers_as_a_new_one_after_a_compaction(
    engine: findling.Engine, settings: findling.Settings
) -> None:
    note = engine.root / "note1.md"
    before = note.read_text()
    for text in ("harbour harbour meadow\n", before):  # changed, and changed back
        note.write_text(text)
        engine.search("harbour lantern")
    with findling.open(engine.root, settings=settings) as other:
        other.compact(full=True)
    with findling.open(engine.root, settings=settings) as fresh:
        for query in QUERIES:
            found = [(hit.path, hit.score, hit.receipt.keyword_score) for hit in fresh.search(query)]
            assert [(hit.path, hit.score, hit.receipt.keyword_score) for hit in engine.search(query)] == found


HOUSEKEEPING = """
import sys, time
import findling
from contextlib import nullcontext
from findling.service.upkeep.compaction import ending_when_wanted

root, home, manner = sys.argv[1:]
settings = findling.Settings().override({"store.home": home, "semantic.refine": "never"}, "test")
with findling.open(root, settings=settings) as engine:
    files = engine.writer.files
    manners = {"yields": ending_when_wanted(files.queue), "stays": nullcontext()}
    with manners[manner], files.queue.upkeep(0.0), files.writing():
        print("holds", flush=True)
        time.sleep(600)
"""
"""A compaction that takes ten minutes, unless somebody ends it."""


@contextmanager
def housekeeping(engine: findling.Engine, settings: findling.Settings, manner: str) -> Iterator[BoundedProcess]:
    command = [sys.executable, "-c", HOUSEKEEPING, str(engine.root), settings["store.home"], manner]
    with BoundedProcess(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "holds\n"
            yield process
        finally:
            process.kill()


def test_housekeeping_ends_when_a_search_wants_to_index(engine: findling.Engine, settings: findling.Settings) -> None:
    with housekeeping(engine, settings, "yields") as process:
        (engine.root / "new.md").write_text("A zeppelin.")
        answer = engine.search("zeppelin", mode="keyword")
        assert ([hit.path for hit in answer], answer.degraded) == (["new.md"], ())
        assert process.wait() == 1
    assert answers(engine)


def test_a_search_names_the_housekeeping_that_stays(engine: findling.Engine, settings: findling.Settings) -> None:
    with housekeeping(engine, settings, "stays"):
        (engine.root / "new.md").write_text("A zeppelin.")
        (degradation,) = engine.search("zeppelin", mode="keyword").degraded
        assert degradation.what.startswith("another process is compacting; ")


def test_there_is_one_housekeeping_at_a_time(engine: findling.Engine, settings: findling.Settings) -> None:
    with housekeeping(engine, settings, "yields") as process:
        files = engine.writer.files
        with pytest.raises(LockedError, match="another process is compacting"):
            compact(files, WorkspaceVectors(files, settings), settings, patience_s=0.0)
        assert process.poll() is None
