"""Memories as users of the library meet them: remembered, recalled by words and meaning, counted, forgotten."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

import findling
from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.records import Access
from findling.pipelines.content.memories import Memory, Recalled
from findling.service.content.memories import WorkspaceMemories
from findling.service.index.access_log import AccessLog
from findling.stores.sqlite.store import SqliteStore

DAY = 86_400.0
START = 1_800_000_000.0
FACTS = (
    "The feline dozed off upon the rug.",
    "Quarterly revenue rose by nine percent because prices went up.",
    "The door code of the office is in the blue binder.",
)


class Clock:
    """A time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def sleep(self, days: float) -> None:
        self.now += days * DAY


Make = Callable[..., WorkspaceMemories]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Make]:
    """Memories of one workspace, opened anew with other settings each time."""
    engines = []

    def open_memories(path: str = "", **values: object) -> WorkspaceMemories:
        own = {"store.home": str(tmp_path / "home"), "semantic.model": "none", "search.refresh": "never"}
        changed = {name.replace("__", "."): value for name, value in values.items()}
        (tmp_path / "tree" / "sub").mkdir(parents=True, exist_ok=True)
        settings = findling.Settings().override({**own, **changed}, "test")
        engine = findling.open(tmp_path / "tree" / path, settings=settings)
        engines.append(engine)
        return WorkspaceMemories(engine.writer, partial(engine.search, refresh=False), clock=clock)

    yield open_memories
    for engine in engines:
        engine.close()


@pytest.fixture
def memories(make: Make) -> WorkspaceMemories:
    return make()


def texts(answer: Iterable[Memory | Recalled]) -> list[str]:
    return [one.text for one in answer]


def test_nothing_is_made_before_something_is_remembered(memories: WorkspaceMemories) -> None:
    assert len(memories.recall("anything")) == 0
    assert memories.list() == []
    assert memories.forget(["memory:a"]) == 0
    assert not memories.folder.exists()
    with pytest.raises(NotFoundError, match="memory:a"):
        memories.get("a")


def test_what_is_remembered_twice_is_one_memory(memories: WorkspaceMemories, clock: Clock) -> None:
    first = memories.remember(FACTS[0], importance=0.4, tags=["pets"], author="Ada")
    clock.sleep(3)
    again = memories.remember(f"  {FACTS[0]} ", importance=0.7, tags=["rugs"], author="Bob")
    assert (first.outcome, again.outcome) == ("new", "known")
    assert (again.rid, again.author, again.tags) == (first.rid, "Ada", ("pets", "rugs"))
    assert (again.importance, again.importance_original) == (0.7, 0.4)
    assert (first.access_count, again.access_count, again.last_accessed_at) == (0, 1, clock.now)
    assert again.created_at == START
    lower = memories.remember(FACTS[0], importance=0.1)
    assert (lower.importance, lower.access_count) == (0.7, 2)
    assert len(memories.list()) == 1


def test_a_text_in_composed_and_decomposed_letters_is_one_memory(memories: WorkspaceMemories) -> None:
    first = memories.remember("The café opens at nine.")
    again = memories.remember("The cafe\u0301 opens\nat nine.")
    assert (again.rid, again.outcome, again.text) == (first.rid, "known", first.text)


def test_a_single_text_is_no_list_of_tags_or_principals(memories: WorkspaceMemories) -> None:
    for wrong in ({"tags": "food"}, {"visibility": "everyone"}, {"tags": None}):
        with pytest.raises(InvalidValueError, match="is no list of texts"):
            memories.remember("a", **wrong)
    assert memories.list() == []


def test_a_text_can_be_changed_under_its_id(memories: WorkspaceMemories) -> None:
    memories.remember("The code is 1111.", id="door", importance=0.9)
    changed = memories.remember("The code is 2222.", id="memory:door")
    assert (changed.rid, changed.outcome, changed.importance_original) == ("memory:door", "changed", 0.9)
    assert memories.get("door").text == "The code is 2222."
    assert texts(memories.recall("1111")) == []
    assert texts(memories.recall("2222")) == ["The code is 2222."]


def test_recall_by_words_and_by_meaning(memories: WorkspaceMemories) -> None:
    for fact in FACTS:
        memories.remember(fact)
    by_words = memories.recall("door code", mode="keyword")
    assert (texts(by_words), by_words.strategy) == ([FACTS[2]], "keyword")
    by_meaning = memories.recall("cat sleeping on carpet")
    assert (texts(by_meaning), by_meaning.strategy) == ([FACTS[0]], "hybrid")
    reasons = by_meaning.memories[0].reasons
    assert [reason.partition(":")[0] for reason in reasons] == ["near in meaning", "importance 0.50, last used today"]
    assert texts(memories.recall("cat sleeping on carpet", mode="keyword")) == []
    assert texts(memories.recall("cat sleeping on carpet", mode="semantic")) == [FACTS[0]]
    assert texts(memories.recall("speed of sound in water")) == []
    parts = {part.leg: part.weight for part in memories.recall("feline rug").memories[0].hit.receipt.parts}
    assert parts == pytest.approx({"semantic": 0.7, "keyword": 0.3})


def test_without_vectors_words_are_searched_and_the_answer_says_so(make: Make) -> None:
    memories = make(semantic__instant=False)
    memories.remember(FACTS[2])
    for mode in ("hybrid", "semantic"):
        answer = memories.recall("door code", mode=mode)
        assert (texts(answer), answer.strategy) == ([FACTS[2]], "keyword")
        assert [each.what for each in answer.degraded] == [
            "there are no vectors to recall by meaning; words were searched instead"
            if mode == "hybrid"
            else "there are no vectors to search by meaning; words were searched instead"
        ]
    assert memories.recall("door code", mode="keyword").degraded == ()


def test_what_matters_more_comes_first_until_it_is_forgotten_about(memories: WorkspaceMemories, clock: Clock) -> None:
    memories.remember("The red key opens the shed.", importance=0.9)
    memories.remember("The blue key opens the shed.", importance=0.5)
    assert texts(memories.recall("shed key", mode="keyword"))[0].startswith("The red")
    clock.sleep(20)
    blue = next(memory for memory in memories.list() if "blue" in memory.text)
    memories.remember(blue.text)  # an access, which keeps it as it was
    one, other = memories.recall("shed key", mode="keyword")
    assert (one.text, one.importance) == ("The blue key opens the shed.", 0.5)
    assert other.importance == pytest.approx(0.9 * 0.95**20, abs=1e-4)
    assert other.importance_original == 0.9
    assert "last used 20 days ago" in other.reasons[-1]
    assert one.score == one.hit.score > other.score
    assert other.hit.receipt.recomputed() == pytest.approx(other.score, abs=1e-3)


def test_only_what_is_important_enough(memories: WorkspaceMemories, clock: Clock) -> None:
    memories.remember("The red key opens the shed.", importance=0.9)
    memories.remember("The blue key opens the shed.", importance=0.3)
    assert texts(memories.recall("shed", min_importance=0.5)) == ["The red key opens the shed."]
    clock.sleep(60)
    assert texts(memories.recall("shed", min_importance=0.5)) == []
    assert len(memories.recall("shed", min_importance=0.1)) == 2


def test_importance_lifts_what_lies_far_down(memories: WorkspaceMemories) -> None:
    """The few best of many are the same as the first ones of all."""
    for number in range(34):
        filler = " and so on" * (number % 17)
        memories.remember(f"Note {number} about the boiler{filler}.", importance=(number * 37 % 100) / 100)
    every = [one.rid for one in memories.recall("boiler", limit=200, mode="keyword")]
    assert len(every) == 34
    # Other recalls have reset nothing: no time has passed.
    assert [one.rid for one in memories.recall("boiler", limit=3, mode="keyword")] == every[:3]
    assert [one.rid for one in memories.recall("boiler", limit=15, mode="keyword")] == every[:15]


def test_a_long_memory_is_recalled_once(memories: WorkspaceMemories) -> None:
    long = "\n\n".join(f"Chapter {number}: the harbour at night, {'waves ' * 120}" for number in range(30))
    memories.remember(long)
    answer = memories.recall("harbour", mode="keyword")
    assert texts(answer) == [long.strip()]
    assert memories.get(answer.memories[0].rid).access_count == 1


def test_neither_a_folder_nor_a_project_hides_memories(make: Make) -> None:
    make().remember(FACTS[2])
    assert texts(make("sub").recall("door code")) == [FACTS[2]]
    assert texts(make(context__system=("billing",)).recall("door code")) == [FACTS[2]]


def test_callers_recall_and_count_what_they_may_see(memories: WorkspaceMemories) -> None:
    for name in ("ada", "bob"):
        memories.remember(f"The safe code of {name}.", visibility=[f"user:{name}"])
    memories.remember("The safe code of the owner.")
    assert texts(memories.recall("safe code", principals=("user:ada",))) == ["The safe code of ada."]
    assert texts(memories.recall("safe code", principals=())) == []
    counts = {memory.text: memory.access_count for memory in memories.list()}
    assert counts == {"The safe code of ada.": 1, "The safe code of bob.": 0, "The safe code of the owner.": 0}
    assert texts(memories.list(principals=("user:bob",))) == ["The safe code of bob."]
    assert len(memories.recall("safe code")) == 3


def test_a_caller_learns_nothing_of_others_from_a_memory(memories: WorkspaceMemories, clock: Clock) -> None:
    """Neither who else sees it, nor what the owner does with it, which once showed in lists and in the order."""
    ada = ("user:ada",)
    memories.remember("The safe code is in the binder.", visibility=("user:ada", "user:bob", "!user:eve"))
    memories.remember("The safe code is on the wall.", visibility=("user:ada",))
    clock.sleep(30)
    listed, recalled = memories.list(principals=ada), memories.recall("safe code", principals=ada)
    assert {one.visibility for one in listed} == {ada}
    assert {one.access_count for one in listed} == {0}
    for _ in range(3):
        memories.recall("binder")
    assert memories.list(principals=ada) == listed
    told = [(one.rid, one.score, one.importance, one.last_accessed_at, one.access_count) for one in recalled]
    again = memories.recall("safe code", principals=ada)
    assert [(one.rid, one.score, one.importance, one.last_accessed_at, one.access_count) for one in again] == told
    assert any(one.visibility == ("user:ada", "user:bob", "!user:eve") for one in memories.list())
    assert max(one.access_count for one in memories.list()) > 2


def test_a_recall_counts_once_folded_or_not(memories: WorkspaceMemories, clock: Clock) -> None:
    rid = memories.remember(FACTS[2]).rid
    clock.sleep(2)
    assert [one.access_count for one in memories.recall("door")] == [0], "as it was before this recall"
    clock.sleep(2)
    assert [one.access_count for one in memories.recall("door")] == [1]
    assert memories.get(rid).last_accessed_at == clock.now
    clock.sleep(2)
    memories.recall("nothing of this kind")
    for _ in range(3):
        assert (memories.get(rid).access_count, memories.get(rid).last_accessed_at) == (2, clock.now - 2 * DAY)
        memories.fold()
    memories.recall("door")
    memories.remember("Something else.")
    assert memories.get(rid).access_count == 3


def test_what_was_forgotten_starts_anew(memories: WorkspaceMemories) -> None:
    rid = memories.remember(FACTS[2], importance=0.9).rid
    memories.recall("door")
    memories.recall("door")
    other = memories.remember(FACTS[0]).rid
    memories.recall("door")
    assert memories.forget([rid.removeprefix("memory:"), "memory:never", rid]) == 1
    assert memories.forget([rid]) == 0
    assert texts(memories.recall("door code")) == []
    assert [memory.rid for memory in memories.list()] == [other]
    again = memories.remember(FACTS[2])
    assert (again.outcome, again.rid, again.importance_original, again.access_count) == ("new", rid, 0.5, 0)


def test_bad_wishes_leave_no_trace(memories: WorkspaceMemories) -> None:
    with pytest.raises(InvalidValueError, match="nothing to remember"):
        memories.remember(" ")
    with pytest.raises(InvalidValueError, match="Unicode"):
        memories.remember("half a letter: \ud800")
    with pytest.raises(InvalidValueError, match="limit 0"):
        memories.recall("door", limit=0)
    with pytest.raises(InvalidValueError, match="guess"):
        memories.recall("door", mode="guess")
    with pytest.raises(InvalidValueError, match="importance 2"):
        memories.recall("door", min_importance=2.0)
    assert memories.list() == []


# The log by itself


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.open(tmp_path / "index.sqlite") as opened:
        yield opened


def logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("accesses-*.log"))


def everything(rid: str) -> bool:
    return bool(rid)


def test_half_a_line_is_ignored_and_spoils_no_other(tmp_path: Path, store: SqliteStore) -> None:
    log = AccessLog(tmp_path, clock=lambda: 5.0)
    assert log.append(["memory:a", "memory:ab"])
    whole = logs(tmp_path)[0].read_bytes()
    for cut in range(1, len(whole)):
        log.append(["memory:z"])
        with logs(tmp_path)[0].open("ab") as file:
            file.write(whole[:cut])
    log.append(["memory:z"])
    counts = log.counts(store, ["memory:a", "memory:ab", "memory:z"])
    assert counts["memory:z"] == Access(len(whole), 5.0)
    assert counts["memory:a"].count == 1 + sum(b"memory:a\t." in whole[:cut] for cut in range(1, len(whole)))
    assert counts["memory:ab"].count == 2, "the whole line, and the one that lacks nothing but its end"
    log.fold(store, everything)
    assert log.counts(store, counts) == counts


def test_the_end_of_a_line_may_come_after_a_fold(tmp_path: Path, store: SqliteStore) -> None:
    log = AccessLog(tmp_path)
    log.append(["memory:a"])
    with logs(tmp_path)[0].open("ab") as file:
        file.write(b"\n7.000\tmemory:b")
        file.flush()
        log.fold(store, everything)
        file.write(b"\t.\n")
    log.fold(store, everything)
    assert {rid: access.count for rid, access in store.accesses(["memory:a", "memory:b"]).items()} == {
        "memory:a": 1,
        "memory:b": 1,
    }


def test_a_full_log_is_followed_by_another_and_deleted_later(tmp_path: Path, store: SqliteStore) -> None:
    log = AccessLog(tmp_path)
    log.append(["memory:a"] * 40_000)
    (first,) = logs(tmp_path)
    log.fold(store, everything)
    assert len(logs(tmp_path)) == 2
    log.append(["memory:a"])
    assert logs(tmp_path)[1].stat().st_size > 0
    with first.open("ab") as late:  # somebody who had opened it before
        late.write(b"\n9.000\tmemory:a\t.\n")
    log.fold(store, everything)
    assert first.exists(), "somebody may still have it open"
    then = time.time() - 7200
    os.utime(first, (then, then))
    log.fold(store, everything)
    assert logs(tmp_path)[0] != first
    assert log.counts(store, ["memory:a"])["memory:a"].count == 40_002


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, store: SqliteStore) -> None:
    (tmp_path / "file").write_text("no folder")
    for folder in (tmp_path / "gone", tmp_path / "file"):
        log = AccessLog(folder)
        assert not log.append(["memory:a"])
        assert log.counts(store, ["memory:a"]) == {}
        log.fold(store, everything)
