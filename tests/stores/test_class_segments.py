"""Legs of callers, put together from segments: every number is that of an index of just what is in sight.

Segments are made small here, so that a few documents fill several.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from findling.domain.permissions import Relation
from findling.domain.ports import Change
from findling.domain.queries import All, Any, Filters, Fuzzy, Near, Node, Not, Phrase, Prefix, Same, Term, Word
from findling.domain.resources import Document
from findling.domain.sight import Audiences, Population, Rights, Sight
from findling.stores.keyword import class_files, class_segments
from findling.stores.keyword.class_segments import ClassSegments
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import line_document
from tests.counts import IS_LONG, sample, tries
from tests.processes import BoundedProcess

ANN, BOB = "user:ann", "user:bob"
LISTS = [(ANN,), (BOB,), (ANN, BOB), ("everyone",), ("everyone", "!user:bob"), ("group:eng",), None]
WORDS = (
    "pool pools pooling budget budgets salary token tokens login cat carpet harbour getUser parse_url 数据库".split()
)
NODES: Sequence[Node] = (
    *map(Word, WORDS),
    Any((Word("pool"), Word("budget"), Word("login"))),
    All((Term("pools"), Not(Word("cat")))),
    Same((Word("budget"), Word("salary"))),
    Phrase("pool budget"),
    Near("pool", "token", 0),
    Near("pool", "token", 9),
    Near("getUser", "budget", 4),
    Prefix("budg"),
    Prefix("po"),
    Fuzzy("salory", 2),
    Term("pool", "title"),
    Any((Word("pool budget"), Term("login"), Phrase("cat carpet"))),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_segments, "_LEAST_CHARACTERS", 1500)
    monkeypatch.setattr(class_files, "_BLOCK_CHARACTERS", 300)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path / "index.sqlite")
    dice = random.Random(5)
    store.write([note(dice, number, LISTS[number % len(LISTS)]) for number in range(60)])
    yield store
    store.close()


def note(dice: random.Random, number: int, visibility: tuple[str, ...] | None) -> Document:
    lines = [" ".join(dice.choices(WORDS, k=dice.randint(3, 20))) for _ in range(dice.randint(0, 3))]
    title = " ".join(dice.choices(WORDS, k=2))
    return line_document(f"note:{number}", lines, visibility=visibility, path=f"docs/{number}.md", title=title)


def segments(tmp_path: Path) -> ClassSegments:
    return ClassSegments(tmp_path / "views", store_id="store", unit="chunk")


def sight(store: SqliteStore, *principals: str, relations: Sequence[Relation] = ()) -> Sight:
    rights = Rights(principals, relations, unset_is_public=True)
    return Sight(rights, Population.of(Audiences(relations), store.rights()))


def names(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "views").glob("*.seg")}


def copy_of(tmp_path: Path, store: SqliteStore, seen: Sight) -> TantivyLeg:
    """An index of its own that holds what is in sight and nothing else."""
    folder = tmp_path / f"copy{random.random()}"
    leg = TantivyLeg.open(folder, store_id="copy")
    for number, document in store.documents(seen.numbers):
        added = frozenset(chunk.cid for chunk in document.chunks)
        leg.apply([Change(0, document.resource.rid, (), added, document, number)])
    leg.commit(1)
    return leg


def assert_same(one: TantivyLeg, other: TantivyLeg, nodes: Sequence[Node] = NODES) -> None:
    assert (one.size(), one.cids()) == (other.size(), other.cids())
    assert sorted(one.vocabulary()) == sorted(other.vocabulary())
    for node in nodes:
        for filters in (Filters(), Filters(path=("docs/1",))):
            assert one.search(node, filters, 20) == other.search(node, filters, 20), node
        cids = sorted(other.cids())[::3]
        assert one.scores(node, cids) == other.scores(node, cids)
        assert one.count(node, Filters(), 0.5, most=99) == other.count(node, Filters(), 0.5, most=99)


@pytest.mark.parametrize("principals", [(ANN,), (BOB,), ("user:eve",), (ANN, BOB, "group:eng"), ()])
def test_every_number_is_that_of_an_index_of_just_what_is_in_sight(
    tmp_path: Path, store: SqliteStore, principals: tuple[str, ...]
) -> None:
    seen = sight(store, *principals)
    leg = segments(tmp_path).for_sight(seen, store)
    assert bool(leg.size()) == bool(principals)
    assert_same(leg, copy_of(tmp_path, store, seen))


def test_numbers_stay_right_whatever_is_written(tmp_path: Path, store: SqliteStore) -> None:
    pool, dice = segments(tmp_path), random.Random(8)
    turns = tries(12, short=6)
    for turn in range(turns):
        changed = [note(dice, dice.randrange(70), dice.choice(LISTS)) for _ in range(dice.randint(1, 4))]
        store.write({one.resource.rid: one for one in changed}.values(), [f"note:{dice.randrange(60)}"])
        shared = [Relation("group:eng", "viewer", "path:docs")] if turn > turns * 2 // 3 else []
        for who in ((ANN,), (BOB, "group:eng")):
            seen = sight(store, *who, relations=shared)
            assert_same(pool.for_sight(seen, store), copy_of(tmp_path, store, seen))


def test_numbers_stay_right_when_only_what_was_changed_is_compared(tmp_path: Path, store: SqliteStore) -> None:
    pool, dice = segments(tmp_path), random.Random(8)
    population, seq = Population.of(Audiences(()), store.rights()), store.seq()
    for turn in range(tries(30, short=12)):
        if turn % 3:
            store.write([note(dice, dice.randrange(70), dice.choice(LISTS))])
        else:
            store.write((), [f"note:{dice.randrange(70)}"])
        population = Population.of(Audiences(()), store.rights(seq), population).only(store.matching(Filters()))
        seq = store.seq()
        for who in [(ANN,), (BOB, "group:eng")][: dice.randint(1, 2)]:
            seen = Sight(Rights(who, (), unset_is_public=True), population)
            leg = pool.for_sight(seen, store)
            cids = {chunk.cid for _, one in store.documents(seen.numbers) for chunk in one.chunks}
            assert leg.cids() == cids
            assert pool._judge(population).broken == ClassSegments._judge(_reopened(pool), population).broken
    assert_same(leg, copy_of(tmp_path, store, seen))


def _reopened(pool: ClassSegments) -> ClassSegments:
    """The same segments, of which none has been compared yet."""
    another = ClassSegments(pool._folder, store_id="store", unit="chunk")
    another._known = pool._known
    return another


def test_an_edit_packs_the_terms_of_its_neighbours_again_and_no_others(tmp_path: Path, store: SqliteStore) -> None:
    pool = segments(tmp_path)
    pool.for_sight(sight(store, ANN, BOB), store)
    before = {block.packed for block in _all_blocks(pool)}
    store.write([note(random.Random(1), 3, LISTS[3])])
    pool.for_sight(sight(store, ANN, BOB), store)
    after = _all_blocks(pool)
    assert len(before) > 16
    assert 0 < len({block.packed for block in after} - before) <= 2
    assert sum(block.weight for block in after) == sum(one.weight for one in pool._known.values())


def _all_blocks(pool: ClassSegments) -> list[class_files.TermBlock]:
    return [block for one in pool._known.values() for block in class_files.read_terms(one)]


def test_an_edit_replaces_one_segment(tmp_path: Path, store: SqliteStore) -> None:
    pool = segments(tmp_path)
    pool.for_sight(sight(store, ANN, BOB), store)
    before = names(tmp_path)
    store.write([note(random.Random(1), 3, LISTS[3])])
    pool.for_sight(sight(store, ANN, BOB), store)
    assert len(before) > 8
    assert len(before - names(tmp_path)) == len(names(tmp_path) - before) == 1


def test_callers_share_segments_and_a_hidden_edit_costs_nothing(tmp_path: Path, store: SqliteStore) -> None:
    pool = segments(tmp_path)
    leg = pool.for_sight(sight(store, ANN), store)
    pool.for_sight(sight(store, BOB), store)
    before = names(tmp_path)
    store.write([note(random.Random(1), 1, (BOB,))])
    assert pool.for_sight(sight(store, ANN), store) is leg
    assert pool.for_sight(sight(store, ANN, "user:eve"), store) is leg
    assert names(tmp_path) == before


def test_a_class_that_gets_other_viewers_as_a_whole_keeps_its_segments(tmp_path: Path, store: SqliteStore) -> None:
    pool = segments(tmp_path)
    pool.for_sight(sight(store, ANN), store)
    before = names(tmp_path)
    assert pool.for_sight(sight(store, ANN, relations=[Relation(ANN, "member", "group:x")]), store).size()
    pool.for_sight(sight(store, ANN, relations=[Relation(ANN, "viewer", "path:docs")]), store)
    assert names(tmp_path) == before


def test_segments_of_a_class_that_is_empty_go_and_many_edits_leave_few(tmp_path: Path, store: SqliteStore) -> None:
    pool, dice = segments(tmp_path), random.Random(2)
    for _ in range(30):
        store.write([note(dice, dice.randrange(60), ("everyone",))])
        leg = pool.for_sight(sight(store, ANN), store)
    store.write((), [f"note:{number}" for number in range(60)])
    assert leg.size()
    assert len(names(tmp_path)) < 40
    pool.drop_stale(store)
    assert not names(tmp_path)


def test_what_was_deleted_stays_in_no_file(tmp_path: Path, store: SqliteStore) -> None:
    store.write([line_document("note:3", ["xylophone"], visibility=("everyone",))])
    pool = segments(tmp_path)
    assert pool.for_sight(sight(store, ANN), store).search(Word("xylophone"), Filters(), 5).total == 1
    store.write((), ["note:3"])
    assert len(pool.drop_stale(store)) == 1
    assert pool.drop_stale(store) == []
    before = names(tmp_path)
    seen = sight(store, ANN)
    assert_same(pool.for_sight(seen, store), copy_of(tmp_path, store, seen))
    assert names(tmp_path) == before, "the rest of the segment was kept when the resource was dropped"


FILES = ("held", "terms", "meta.json", "*.term", "*.idx", "*.store", "*.fast", "")
HARMS = ("cut", "empty", "gone")
DAMAGES = [
    (how, file) for at, file in enumerate(FILES) for number, how in enumerate(HARMS) if IS_LONG or at % 3 == number
]
"""Every kind of file harmed in one way, and in every way in a long run."""


@pytest.mark.parametrize(("how", "file"), DAMAGES)
def test_a_damaged_segment_is_made_anew(tmp_path: Path, store: SqliteStore, how: str, file: str) -> None:
    seen = sight(store, ANN)
    segments(tmp_path).for_sight(seen, store)
    victim = sorted((tmp_path / "views").glob("*.seg"))[0]
    for path in victim.glob(file or "*"):
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if how == "cut" else b"")
    store.write([note(random.Random(1), 3, LISTS[3])])
    seen = sight(store, ANN)
    assert_same(segments(tmp_path).for_sight(seen, store), copy_of(tmp_path, store, seen), sample(NODES, short=6))


def test_where_nothing_can_be_written_a_process_has_segments_of_its_own(tmp_path: Path, store: SqliteStore) -> None:
    (tmp_path / "views").write_text("in the way")
    pool = segments(tmp_path)
    for number in (3, 10):
        store.write([note(random.Random(1), number, ("everyone",))])
        seen = sight(store, ANN)
        assert_same(pool.for_sight(seen, store), copy_of(tmp_path, store, seen))
    own = pool._private().own
    assert any(own.iterdir())
    pool.close()
    assert not own.exists()


_CALLER = """
import random, sys
from pathlib import Path
from findling.stores.keyword import class_files, class_segments
class_files._BLOCK_CHARACTERS = 300
class_segments._LEAST_CHARACTERS = 1500
from findling.stores.sqlite.store import SqliteStore
from tests.stores.test_class_segments import note, segments, sight
folder, who, turns, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store, pool, dice = SqliteStore.open(folder / "index.sqlite"), segments(folder), random.Random(seed)
for _ in range(turns):
    store.write([note(dice, dice.randrange(60), ("everyone",))])
    seen = sight(store, who)
    leg = pool.for_sight(seen, store)
    if turns < 1000:
        cids = {chunk.cid for _, one in store.documents(seen.numbers) for chunk in one.chunks}
        assert sight(store, who).numbers._classes != seen.numbers._classes or leg.cids() == cids
print("done")
"""


def caller(tmp_path: Path, who: str, turns: int, seed: int) -> BoundedProcess:
    command = [sys.executable, "-c", _CALLER, str(tmp_path), who, str(turns), str(seed)]
    return BoundedProcess(command, cwd=Path(__file__).parents[2], stdout=-1, stderr=-1)


def test_processes_that_write_and_search_at_once(tmp_path: Path, store: SqliteStore) -> None:
    running = [caller(tmp_path, who, tries(15, short=5), seed) for seed, who in enumerate((ANN, BOB, "user:eve"))]
    told = [one.communicate() for one in running]
    assert [out for out, _ in told] == ["done\n"] * 3, told
    seen = sight(store, ANN)
    assert_same(segments(tmp_path).for_sight(seen, store), copy_of(tmp_path, store, seen))


def test_a_process_that_is_killed_leaves_nothing_wrong(tmp_path: Path, store: SqliteStore) -> None:
    dice = random.Random(3)
    for seed in range(tries(4, short=2)):
        running = caller(tmp_path, ANN, 10_000, seed)
        before = names(tmp_path)
        while names(tmp_path) == before and running.poll() is None:
            time.sleep(0.01)
        with pytest.raises(Exception, match="timed out"):
            running.wait(dice.random() / 5)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        seen = sight(store, ANN, BOB)
        assert_same(segments(tmp_path).for_sight(seen, store), copy_of(tmp_path, store, seen))
    assert not [path for path in (tmp_path / "views").iterdir() if path.suffix == ".new"]


_OWNER = """
from findling.stores.keyword.class_files import Links
links = Links()
(links.own.parent / "link").symlink_to(links.own)
print(links.own.parent, flush=True)
input()
"""


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_links_of_a_killed_process_go_and_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    running = [
        BoundedProcess([sys.executable, "-c", _OWNER], env={**os.environ, "TMPDIR": str(place)}, stdin=-1, stdout=-1)
        for _ in range(3)
    ]
    folders = [Path(one.stdout.readline().strip()) for one in running if one.stdout is not None]
    mine, unlocked, linked = class_files.Links(), place / "findling-view-new", place / "findling-view-linked"
    unlocked.mkdir()
    for folder in (elsewhere, folders[2]):
        folder.mkdir(exist_ok=True)
        (folder / "lock").touch()
    linked.symlink_to(elsewhere)
    assert all((folder / "link").is_symlink() for folder in folders)
    for one in running[:2]:
        one.kill()
        one.communicate()
    others = class_files.Links()
    left = {unlocked, linked, folders[2], mine.own.parent, others.own.parent}
    assert {*place.iterdir()} == left
    assert (elsewhere / "lock").exists()
    assert (folders[2] / "link").is_symlink()
    assert [one.name for one in folders[2].iterdir()].count("lock") == 1
    running[2].communicate("")
    mine.close()
    others.close()
    assert {*place.iterdir()} == {unlocked, linked}


def test_a_folder_of_links_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, mkdtemp = list[Path](), tempfile.mkdtemp

    def swept_once(**options: str) -> str:
        made.append(Path(mkdtemp(**options)))
        if len(made) == 1:
            made[0].rmdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", swept_once)
    links = class_files.Links()
    assert links.own.parent == made[1]
    links.close()
    assert not [*tmp_path.iterdir()]


def test_a_population_that_is_brought_up_to_date_is_that_of_everything(store: SqliteStore) -> None:
    dice = random.Random(4)
    population, seq = Population.of(Audiences(()), store.rights()), store.seq()
    for _ in range(20):
        store.write([note(dice, dice.randrange(80), dice.choice(LISTS)) for _ in range(3)])
        store.write((), [f"note:{dice.randrange(80)}"])
        population = Population.of(Audiences(()), store.rights(seq), population).only(store.matching(Filters()))
        seq = store.seq()
        whole = Population.of(Audiences(()), store.rights())
        assert (population.classes, population.audience_of) == (whole.classes, whole.audience_of)
