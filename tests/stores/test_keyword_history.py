"""The same content gives the same scores, whatever the history of commits; how far a leg has come survives anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import tantivy

from findling.domain.plans import FIELDS
from findling.domain.queries import Any, Filters, Near, Node, Phrase, Prefix, Term, Word
from findling.domain.resources import Document
from findling.pipelines.indexing.fanout import catch_up
from findling.stores.keyword import merge
from findling.stores.keyword.entries import schema
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.merge import adopt_index, count_entries
from findling.stores.keyword.segment_files import (
    NOTE_FILE,
    LegNote,
    content_end,
    linked,
    read_opstamp,
    read_state,
    with_footer,
    write_note,
)
from findling.stores.keyword.term_weights import PAD
from findling.testing.samples import line_document
from tests.memory_store import MemoryStore
from tests.processes import BoundedProcess

WORDS = [f"{first}{second}{third}" for first in "bdfgk" for second in "aeiou" for third in "lmnr"]
QUERIES: list[Node] = [
    Word("bal"),
    Any((Word("bal"), Word("dem"), Word("gin"))),
    Any(tuple(map(Word, WORDS[::7]))),
    *(Near(first, second, 6) for first, second in pairwise(WORDS[:9])),
]


def documents(count: int = 120) -> list[Document]:
    random = Random(14)
    rarity = [1 / (place + 1) for place in range(len(WORDS))]
    return [
        line_document(f"r{number}", [" ".join(random.choices(WORDS, rarity, k=random.randint(1, 60)))])
        for number in range(count)
    ]


def made(folder: Path, store: MemoryStore, batches: Iterable[Sequence[Document]]) -> TantivyLeg:
    leg = TantivyLeg.open(folder, store_id="s")
    for batch in batches:
        store.write(batch)
        catch_up(store, leg)
    return leg


def answers(leg: TantivyLeg) -> list[list[tuple[int, float]]]:
    return [leg.search(query, Filters(), 50).hits for query in QUERIES]


def test_the_number_of_commits_does_not_show(tmp_path: Path) -> None:
    given = documents()
    once = made(tmp_path / "once", MemoryStore(), [given])
    by_and_by = made(tmp_path / "each", MemoryStore(), [given[:50], *([one] for one in given[50:])])
    assert answers(by_and_by) == answers(once)
    by_and_by.close()
    assert answers(TantivyLeg.open(tmp_path / "each", store_id="s")) == answers(once)


def test_commits_of_nothing_do_not_show(tmp_path: Path) -> None:
    store = MemoryStore()
    leg = made(tmp_path / "leg", store, [documents()])
    before, entries = answers(leg), count_entries(tmp_path / "leg")
    for seq in range(store.seq() + 1, store.seq() + 30):
        leg.commit(seq)
    leg.close()
    again = TantivyLeg.open(tmp_path / "leg", store_id="s")
    assert again.seq() == store.seq() + 29
    assert answers(again) == before
    assert count_entries(tmp_path / "leg") == entries == (120, 0)


def test_what_was_forgotten_does_not_show_in_a_leg_made_anew(tmp_path: Path) -> None:
    given, store = documents(), MemoryStore()
    leg = made(tmp_path / "leg", store, [given])
    store.write([], [one.resource.rid for one in given[:50]])
    catch_up(store, leg)
    assert count_entries(tmp_path / "leg").deleted_share > 0.1
    leg.close()
    fresh = TantivyLeg.open(tmp_path / "fresh", store_id="s")
    catch_up(store, fresh)
    fresh.close()
    adopt_index(tmp_path / "fresh", tmp_path / "leg")
    only = made(tmp_path / "only", MemoryStore(), [given[50:]])
    rewritten = TantivyLeg.open(tmp_path / "leg", store_id="s")
    assert rewritten.seq() == store.seq()
    assert [[score for _, score in hits] for hits in answers(rewritten)] == [
        [score for _, score in hits] for hits in answers(only)
    ]


PHRASES = [Phrase(f"{first} {second}") for first, second in pairwise(WORDS[:9])]
WORDED: list[Node] = [*QUERIES, *PHRASES, *map(Word, WORDS[:30]), Prefix("ba"), Word("lines"), Term("bal", "heading")]


def worded(store: MemoryStore, leg: TantivyLeg) -> list[dict[str, float]]:
    """The scores of resources for every query: each has one chunk, whose id follows from its text."""
    (numbered, cids) = ({}, [])  # type: ignore[var-annotated]
    for rid in store.rids():
        document = store.document(rid)
        assert document is not None
        numbered |= {chunk.cid: f"{rid} {chunk.ordinal}" for chunk in document.chunks}
    cids = [leg.search(query, Filters(), 500).hits for query in WORDED]
    return [{numbered[cid]: score for cid, score in hits} for hits in cids]


def edited(given: Sequence[Document], changed: range, dropped: range) -> tuple[list[Document], list[str]]:
    """Documents of which some have a longer text and a title, and the ids of others that go."""
    again = [
        line_document(given[at].resource.rid, [f"{given[at].text} zebra bal dem " * 2], title="bal gel title")
        for at in changed
    ]
    return again, [given[at].resource.rid for at in dropped]


@pytest.mark.parametrize("unit", ["chunk", "page"])
@pytest.mark.parametrize(("changed", "dropped"), [(30, 60), (1, 0), (0, 1), (140, 0), (0, 140), (20, 120)])
def test_what_is_dead_counts_in_no_statistic(tmp_path: Path, changed: int, dropped: int, unit: str) -> None:
    given, store = documents(150), MemoryStore()
    leg = TantivyLeg.open(tmp_path / "leg", store_id="s", unit=unit)
    store.write(given[:70])
    catch_up(store, leg)
    store.write(given[70:])
    catch_up(store, leg)
    again, gone = edited(given, range(changed), range(150 - dropped, 150))
    store.write(again, gone)
    catch_up(store, leg)
    assert count_entries(tmp_path / "leg").deleted
    fresh = TantivyLeg.open(tmp_path / "fresh", store_id="s", unit=unit)
    catch_up(store, fresh)
    assert count_entries(tmp_path / "fresh").deleted == 0
    leg.close()
    again_opened = TantivyLeg.open(tmp_path / "leg", store_id="s", unit=unit)
    expected = worded(store, fresh)
    for asked in (leg, again_opened):
        for found, wanted in zip(worded(store, asked), expected, strict=True):
            assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)
        ceilings = [(asked.search(query, Filters(), 1)[2], fresh.search(query, Filters(), 1)[2]) for query in WORDED]
        assert [one for one, _ in ceilings] == pytest.approx([other for _, other in ceilings], rel=1e-6)
        assert asked.frequencies([*WORDS, "zebra"]) == fresh.frequencies([*WORDS, "zebra"])
        assert sorted(asked.vocabulary("b")) == sorted(fresh.vocabulary("b"))


def test_a_word_that_only_dead_chunks_have_is_unknown(tmp_path: Path) -> None:
    store = MemoryStore()
    leg = made(tmp_path / "leg", store, [[*documents(20), line_document("z", ["a zebra stands there"])]])
    assert leg.frequencies(["zebra"]) == {"zebra": 1}
    store.write([line_document("z", ["a horse stands there"])])
    catch_up(store, leg)
    assert leg.frequencies(["zebra"]) == {"zebra": 0}
    assert [*leg.vocabulary("zeb")] == []
    assert leg.search(Word("zebra"), Filters(), 9).forms["zebra"] == ()


def test_the_segment_that_balances_is_one_of_this_tantivy(tmp_path: Path) -> None:
    writer = tantivy.Index(schema(), path=str(tmp_path)).writer(15_000_000, num_threads=1)
    writer.add_json(json.dumps(dict.fromkeys(FIELDS, PAD)))
    writer.commit()
    writer.wait_merging_threads()
    parts = {part.suffix[1:]: part.read_bytes() for part in tmp_path.glob("[0-9a-f]*.*")}
    made = {ending: data[: content_end(data)] for ending, data in parts.items()}
    kept = json.loads(Path(merge.__file__).with_name("balance.json").read_bytes())
    assert {ending: data.hex() for ending, data in made.items()} == kept
    assert all(with_footer(made[ending]) == data for ending, data in parts.items())


def test_a_reader_leaves_no_link_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    store = MemoryStore()
    leg = made(tmp_path / "leg", store, [documents(20), documents(10)[5:]])
    store.write([], ["r1"])
    catch_up(store, leg)
    assert any(answers(leg))
    assert [*(tmp_path / "tmp").iterdir()] == []


def test_a_lock_that_tantivy_leaves_at_the_last_moment_changes_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    store = MemoryStore()
    leg = made(tmp_path / "leg", store, [documents(20)])
    store.write([], ["r1"])
    catch_up(store, leg)
    remove, locks = Path.rmdir, list[Path]()

    def locked(folder: Path) -> None:
        if not locks:
            locks.append(folder / ".tantivy-meta.lock")
            locks[0].touch()
        remove(folder)

    monkeypatch.setattr(Path, "rmdir", locked)
    fresh = TantivyLeg.open(tmp_path / "fresh", store_id="s")
    catch_up(store, fresh)
    assert worded(store, leg) == [pytest.approx(wanted, rel=1e-6, abs=1e-6) for wanted in worded(store, fresh)]
    assert locks
    assert [*(tmp_path / "tmp").iterdir()] == []


@pytest.mark.parametrize("moment", ["before", "within"])
def test_a_compaction_that_ends_while_a_leg_is_opened_changes_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """What is dead counted in the scores of one answer: its files had gone, or the list of it."""
    store = MemoryStore()
    made(tmp_path / "leg", store, [documents()])
    store.write([], [f"r{number}" for number in range(0, 120, 3)])
    with closing(TantivyLeg.open(tmp_path / "leg", store_id="s")) as leg:
        catch_up(store, leg)
    for name in ("fresh", "compacted"):
        with closing(TantivyLeg.open(tmp_path / name, store_id="s")) as leg:
            catch_up(store, leg)
    assert count_entries(tmp_path / "leg").deleted

    def compact(files: Iterable[Path] = ()) -> AbstractContextManager[Path]:
        monkeypatch.setattr(merge, "linked", linked)
        listed = [*files]
        adopt_index(tmp_path / "compacted", tmp_path / "leg")
        return linked(listed)

    asked = TantivyLeg.open(tmp_path / "leg", store_id="s")
    if moment == "before":
        compact()
    else:
        monkeypatch.setattr(merge, "linked", compact)
    fresh = TantivyLeg.open(tmp_path / "fresh", store_id="s")
    assert worded(store, asked) == [pytest.approx(wanted, rel=1e-6, abs=1e-6) for wanted in worded(store, fresh)]
    assert not (tmp_path / "compacted").exists()


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"made_for": 1}', "null", "\xff"])
def test_a_leg_without_its_note_is_nobodys(tmp_path: Path, damage: str) -> None:
    made(tmp_path / "leg", MemoryStore(), [documents()]).close()
    (tmp_path / "leg" / NOTE_FILE).write_bytes(damage.encode("latin-1"))
    assert TantivyLeg.open(tmp_path / "leg", store_id="s").seq() == 0
    (tmp_path / "leg" / NOTE_FILE).unlink()
    leg = TantivyLeg.open(tmp_path / "leg", store_id="s")
    assert (leg.seq(), leg.size()) == (0, 0)


def test_a_note_that_is_ahead_of_its_index_says_nothing(tmp_path: Path) -> None:
    made(tmp_path / "leg", MemoryStore(), [documents()]).close()
    write_note(tmp_path / "leg", LegNote(read_state(tmp_path / "leg").note.made_for, 10**6, 7, 9))  # type: ignore[union-attr]
    assert TantivyLeg.open(tmp_path / "leg", store_id="s").seq() == 0


def test_a_note_is_right_before_and_after_the_commit_it_was_written_for(tmp_path: Path) -> None:
    store = MemoryStore()
    leg = made(tmp_path / "leg", store, [documents()])
    leg.close()
    before = store.seq()
    made_for = read_state(tmp_path / "leg").note.made_for  # type: ignore[union-attr]
    write_note(tmp_path / "leg", LegNote(made_for, read_opstamp(tmp_path / "leg"), before, before + 5))
    assert TantivyLeg.open(tmp_path / "leg", store_id="s").seq() == before
    store.write([line_document("later", ["bal bal"])])
    again = TantivyLeg.open(tmp_path / "leg", store_id="s")
    catch_up(store, again)
    again.close()
    assert TantivyLeg.open(tmp_path / "leg", store_id="s").seq() == store.seq()


WRITER = """
import sys
from pathlib import Path
from findling.pipelines.indexing.fanout import catch_up
from findling.testing.samples import line_document
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.sqlite.store import SqliteStore
folder = Path(sys.argv[1])
store = SqliteStore.open(folder / "store")
for number in range(10**6):
    store.write([line_document(f"r{number % 40}", [f"word w{number} bal"])])
    leg = TantivyLeg.open(folder / "leg", store_id="s")
    catch_up(store, leg)
    leg.close()
    print(number, flush=True)
"""


@pytest.mark.parametrize("commits", [1, 7, 20])
def test_a_killed_writer_leaves_a_leg_that_is_behind_at_most(tmp_path: Path, commits: int) -> None:
    from findling.stores.sqlite.store import SqliteStore

    with BoundedProcess([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        for _ in range(commits):
            assert writer.stdout.readline()
        writer.kill()
        writer.wait()
    store = SqliteStore.open(tmp_path / "store")
    leg = TantivyLeg.open(tmp_path / "leg", store_id="s")
    assert commits <= leg.seq() <= store.seq()
    catch_up(store, leg)
    leg.close()
    present = {chunk.cid for rid in store.rids() for chunk in store.document(rid).chunks}  # type: ignore[union-attr]
    assert leg.cids() == present
    assert leg.size() == len(present)
    store.close()


def test_a_leg_opens_beside_a_writer_at_one_of_its_commits(tmp_path: Path) -> None:
    with BoundedProcess([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        try:
            reached = [0]
            for _ in range(60):
                leg = TantivyLeg.open(tmp_path / "leg", store_id="s")
                reached.append(leg.seq())
                # Every commit of the writer adds one chunk, until it comes round to the first.
                assert leg.size() == min(leg.seq(), 40)
        finally:
            writer.kill()
            writer.wait()
    assert reached == sorted(reached)
