"""Memory that stays true: near copies merged, newer values in the place of older ones, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import findling
from bench.memory_statements import HALVES, different_pairs, statements
from findling.domain.errors import DeniedError, InvalidValueError, NotFoundError
from findling.domain.resources import Resource
from findling.pipelines.content.memories import Memory
from findling.pipelines.content.memory_history import MOST_STATES
from findling.service.content.memories import WorkspaceMemories
from findling.service.engine.engine import Engine
from tests.counts import IS_LONG

DAY = 86_400.0
START = 1_795_000_000.0
"""Wednesday, 18 November 2026."""

ADA, BOB = ("user:ada",), ("user:bob",)


class Desk:
    """The memories of one workspace, and a clock that moves when a test says so."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.now = engine, START
        self.memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False), clock=lambda: self.now)

    def sleep(self, days: float) -> None:
        self.now += days * DAY

    def say(self, text: str, **options: object) -> Memory:
        """Remember a text a minute after the last one."""
        self.now += 60
        return self.memories.remember(text, **options)  # type: ignore[arg-type]

    def kept(self) -> dict[str, tuple[Resource, str]]:
        """Everything that is stored, by its id."""
        store = self.engine.writer.store
        documents = [store.document(rid) for rid in store.rids("memory")]
        return {one.resource.rid: (one.resource, one.text) for one in documents if one is not None}

    def recall(self, query: str, **options: object) -> list[str]:
        return [one.text for one in self.memories.recall(query, **options)]  # type: ignore[arg-type]


Open = Callable[..., Desk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Open]:
    engines = []

    def opened(name: str = "tree", **values: object) -> Desk:
        own = {"store.home": str(tmp_path / f"home-{name}"), "semantic.model": "none", "search.refresh": "never"}
        changed = {key.replace("__", "."): value for key, value in values.items()}
        (tmp_path / name).mkdir(exist_ok=True)
        engine = findling.open(tmp_path / name, settings=findling.Settings().override({**own, **changed}, "test"))
        engines.append(engine)
        return Desk(engine)

    yield opened
    for engine in engines:
        engine.close()


@pytest.fixture
def desk(open_desk: Open) -> Desk:
    return open_desk()


# The bar


@pytest.mark.parametrize("half", HALVES if IS_LONG else HALVES[-1:])
def test_of_300_statements_copies_merge_updates_supersede_and_nothing_is_lost(desk: Desk, half: str) -> None:
    listed = statements(half)
    rids = [desk.say(one.text).rid for one in listed if one.kind == "new"]
    first = desk.kept()
    assert len(first) == len(rids) == sum(one.kind == "new" for one in listed), "no first statement is a copy"
    assert not any("supersedes" in resource.fields for resource, _ in first.values())
    merged = superseded = right = 0
    decisions = []
    for one in listed[len(rids) :]:
        memory = desk.say(one.text)
        is_copy = memory.outcome == "updated"
        if memory.undo:
            decisions.append(memory.rid)
        merged += one.kind == "copy" and is_copy and memory.rid == rids[one.of]
        superseded += bool(memory.supersedes)
        right += one.kind == "update" and memory.supersedes == rids[one.of]
        assert not (is_copy and one.kind == "update"), f"{one.text!r} is no copy"
        assert not (is_copy and memory.rid != rids[one.of]), f"{one.text!r} is no copy of {memory.rid}"
    assert merged / sum(one.kind == "copy" for one in listed) >= 0.95
    assert right / superseded >= 0.9
    assert right / 60 >= 0.8
    for rid in reversed(decisions):
        desk.memories.undo(rid)
    back = desk.kept()
    assert {rid: back[rid] for rid in first} == first, "every first statement is what it was, byte for byte"
    assert sorted(text for _, text in back.values()) == sorted(one.text for one in listed)


@pytest.mark.parametrize("half", HALVES[:2] if IS_LONG else HALVES[1:2])
def test_100_pairs_that_are_alike_stay_two(desk: Desk, half: str) -> None:
    expected = set()
    for one, other in dict.fromkeys(different_pairs(half)):
        expected |= {one, other}
        desk.say(one)
        desk.say(other)
    assert {text for _, text in desk.kept().values()} == expected
    assert all("versions" not in resource.fields for resource, _ in desk.kept().values())


# Near copies


def test_a_near_copy_updates_and_undoing_gives_back_both_texts(desk: Desk) -> None:
    first = desk.say("Anna's phone number is 0341 5566.", importance=0.4, tags=["people"])
    before = desk.kept()
    again = desk.say("The telephone number of ANNA: 0341 5566", importance=0.7, tags=["phone"])
    assert (again.outcome, again.rid, again.tags) == ("updated", first.rid, ("people", "phone"))
    assert (again.importance, again.importance_original) == (0.7, 0.4)
    assert again.undo == f"findling memory undo {first.rid}"
    assert desk.recall("phone anna") == ["The telephone number of ANNA: 0341 5566"]
    assert [one.text for one in desk.memories.history(first.rid)] == [again.text, first.text]
    undone = desk.memories.undo(first.rid)
    assert (undone.text, undone.other_text) == (first.text, again.text)
    kept = desk.kept()
    assert kept[first.rid] == before[first.rid]
    assert kept[undone.other][0].tags == ("phone",), "as if it had been added"
    assert desk.say("The telephone number of ANNA: 0341 5566").outcome == "known", "it is not merged again"
    assert desk.memories.review().pairs == ()
    with pytest.raises(InvalidValueError, match="nothing was decided"):
        desk.memories.undo(first.rid)


def test_a_wording_that_was_there_before_is_known(desk: Desk) -> None:
    rid = desk.say("Anna works at Acme.").rid
    desk.say("Anna is employed at Acme.")
    again = desk.say("Anna works at  Acme.")
    assert (again.outcome, again.rid, again.text) == ("known", rid, "Anna is employed at Acme.")
    assert len(desk.memories.history(rid)) == 2


def test_a_memory_with_too_many_wordings_is_left_alone(desk: Desk) -> None:
    rid = desk.say("Anna works at Acme.").rid
    for number in range(MOST_STATES):
        desk.say(f"Anna works at Acme{'!' * (number + 1)}")
    more = desk.say("Anna is employed at Acme.")
    assert (more.outcome, more.rid == rid) == ("new", False)


def test_copies_can_be_added_instead(open_desk: Open) -> None:
    desk = open_desk(memory__copies="add", memory__conflicts="review")
    desk.say("Anna works at Acme.")
    assert desk.say("Anna is employed at Acme.").outcome == "new"
    moved = desk.say("Anna works at Globex now.")
    assert (moved.supersedes, len(moved.conflicts)) == ("", 2)


# Newer values


def test_a_newer_value_supersedes_and_the_older_one_is_kept(desk: Desk) -> None:
    berlin = desk.say("Anna lives in Berlin.")
    before = desk.kept()[berlin.rid]
    desk.sleep(40)
    hamburg = desk.say("Anna moved to Hamburg.")
    assert (hamburg.outcome, hamburg.supersedes) == ("new", berlin.rid)
    assert desk.kept()[berlin.rid] == before
    answer = desk.memories.recall("where is Anna")
    assert [one.text for one in answer] == ["Anna moved to Hamburg."]
    assert answer.memories[0].hit.receipt.supersedes == (berlin.rid,)
    assert answer.left_out == 1
    assert "--all-versions" in answer.notes[-1]
    older = desk.memories.recall("where is Anna", all_versions=True).memories[-1]
    assert (older.rid, older.hit.receipt.superseded_by) == (berlin.rid, (hamburg.rid,))
    assert desk.recall("Anna", at="2026-12-01") == ["Anna lives in Berlin."]
    assert [one.rid for one in desk.memories.list(all_versions=False)] == [hamburg.rid]
    back = desk.memories.undo(hamburg.rid)
    assert (back.rid, back.other) == (berlin.rid, hamburg.rid)
    assert len(desk.recall("where is Anna")) == 2
    assert desk.memories.review().pairs == (), "somebody has decided that both hold"


def test_what_was_superseded_may_be_true_again(desk: Desk) -> None:
    rids = [desk.say(f"Anna lives in {city} now.").rid for city in ("Berlin", "Hamburg", "Berlin", "Hamburg")]
    assert len(set(rids)) == 4
    assert desk.recall("where does Anna live") == ["Anna lives in Hamburg now."]
    assert [one.rid for one in desk.memories.history(rids[0])] == rids[::-1]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Anna speaks French.", "Anna speaks Italian."),
        ("Anna likes tea.", "Anna likes coffee."),
        ("We use Redis for Apollo.", "We use MySQL for Apollo."),
        ("Anna's brother is Ben.", "Anna's brother is Carl."),
        ("Anna eats meat.", "Anna does not eat meat."),
    ],
)
def test_where_the_rule_is_not_certain_both_stay_and_are_reviewed(desk: Desk, older: str, newer: str) -> None:
    old, new = desk.say(older), desk.say(newer)
    assert (new.supersedes, new.conflicts) == ("", (old.rid,))
    assert [(one.newer, one.older) for one in desk.memories.review().pairs] == [(new.rid, old.rid)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Anna lives in Berlin.", "Ben lives in Hamburg."),
        ("Anna lives in Berlin.", "Anna lived in Hamburg."),
        ("Anna lives in Berlin.", "Anna used to live in Hamburg."),
        ("Anna has a cat.", "Anna has a dog."),
        ("The Apollo meeting is on Friday.", "The Apollo meeting is in Leipzig."),
        ("Ben reports to Anna.", "Anna reports to Carla."),
        ("Anna visited Berlin.", "Anna visited Hamburg."),
        ("The server is slow.", "The server is in Frankfurt."),
    ],
)
def test_statements_that_may_stand_beside_each_other(desk: Desk, older: str, newer: str) -> None:
    desk.say(older)
    new = desk.say(newer)
    assert (new.outcome, new.supersedes, new.conflicts) == ("new", "", ())


def test_another_source_or_an_earlier_time_is_not_certain(desk: Desk) -> None:
    old = desk.say("The deadline of Apollo is 3 May 2027.", source="the contract")
    new = desk.say("The deadline of Apollo is 9 May 2027.", source="a rumour")
    assert (new.supersedes, new.conflicts) == ("", (old.rid,))
    since = desk.say("Ben lives in Berlin since June 2026.")
    earlier = desk.say("Ben has lived in Bonn since 2020.")
    assert (earlier.supersedes, earlier.conflicts) == ("", (since.rid,))


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        (
            "The staging database is reset every Monday.",
            "The staging database is reset every Friday.",
            "staging database reset Monday",
        ),
        ("We deploy on Tuesdays.", "We deploy on Thursdays.", "do we deploy on Tuesdays"),
        ("My sister lives in Bonn.", "My sister lives in Kiel.", "sister in Bonn"),
        ("The build is stable.", "The build is unstable.", "stable build"),
    ],
)
def test_the_newer_of_near_equal_memories_comes_first_whatever_the_score(
    desk: Desk, older: str, newer: str, question: str, mode: str
) -> None:
    old = desk.say(older, importance=1.0)
    desk.say("The car is in the garage.")
    new = desk.say(newer, importance=0.0)
    assert (new.supersedes, new.conflicts) == ("", (old.rid,))
    recalled = desk.memories.recall(question, mode=mode)
    assert [one.rid for one in recalled][:2] == [new.rid, old.rid]
    last = recalled.memories[1]
    assert last.hit.receipt.final_score == last.score <= recalled.memories[0].score
    found = desk.engine.search(question, mode=mode)
    assert [hit.rid for hit in found][:2] == [new.rid, old.rid]
    assert found.hits[0].score >= found.hits[1].score
    assert desk.memories.recall(question, mode=mode, limit=1).memories[0].rid == new.rid
    desk.memories.decide(new.rid, old.rid, "keep")
    assert [one.rid for one in desk.memories.recall(question, mode=mode)][:2] == [new.rid, old.rid]


def test_the_newer_of_statements_with_most_words_in_common_comes_first(desk: Desk) -> None:
    old, new = desk.say("The book club reads Middlemarch.", importance=1.0), desk.say("The book club reads Beloved.")
    assert (new.supersedes, new.conflicts) == ("", ())
    for question, first in (("what does the book club read", new), ("when was Middlemarch read", old)):
        assert desk.memories.recall(question, mode="keyword").memories[0].rid == first.rid
        assert desk.engine.search(question, mode="keyword").hits[0].rid == first.rid


def test_the_older_memory_comes_first_where_a_person_said_that_it_holds(desk: Desk) -> None:
    old, new = desk.say("My sister lives in Bonn."), desk.say("My sister lives in Kiel.", importance=1.0)
    desk.memories.decide(old.rid, new.rid, "supersede")
    assert desk.recall("sister") == ["My sister lives in Bonn."]
    both = desk.memories.recall("sister", all_versions=True)
    assert [one.rid for one in both] == [hit.rid for hit in desk.engine.search("sister")] == [old.rid, new.rid]


def test_somebody_elses_newer_memory_does_not_come_first(desk: Desk) -> None:
    desk.say("Ann's birthday is on 3 May.")
    new = desk.say("Anne's birthday is on 9 June.")
    assert (new.outcome, new.supersedes, new.conflicts) == ("new", "", ())
    assert desk.recall("Ann's birthday")[0] == "Ann's birthday is on 3 May."


def test_a_review_of_many_things_somebody_likes_does_not_grow_with_their_square(desk: Desk) -> None:
    things = [
        f"{first}{second}" for first in ("straw", "black", "blue", "cran", "goose") for second in ("berries", "jam")
    ]
    for thing in things:
        desk.say(f"Anna likes {thing}.")
    pairs = desk.memories.review().pairs
    assert len(things) - 1 <= len(pairs) <= 3 * len(things)
    assert {pair.newer_text for pair in pairs} == {f"Anna likes {thing}." for thing in things[1:]}


def test_a_merged_memory_has_its_own_history_again_after_undoing(desk: Desk) -> None:
    old, new = desk.say("Anna likes tea."), desk.say("Anna likes coffee.")
    assert desk.say("Anna enjoys coffee.").rid == new.rid
    before, told = desk.kept(), desk.memories.history(new.rid)
    assert [one.text for one in told] == ["Anna enjoys coffee.", "Anna likes coffee."]
    merged = desk.memories.decide(new.rid, old.rid, "merge")
    desk.memories.undo(merged.rid)
    assert desk.kept() == before
    assert desk.memories.history(new.rid) == told


def test_decisions_of_a_review_and_their_undoing(desk: Desk) -> None:
    old, new = desk.say("Anna likes tea."), desk.say("Anna likes coffee.")
    before = desk.kept()
    for decision, left in (("keep", 2), ("supersede", 1), ("merge", 1)):
        done = desk.memories.decide(new.rid, old.rid, decision)
        assert desk.memories.review().pairs == ()
        assert len(desk.recall("Anna likes")) == left
        desk.memories.undo(done.rid)
        assert len(desk.memories.review().pairs) == 1
        assert {rid: text for rid, (_, text) in desk.kept().items()} == {rid: text for rid, (_, text) in before.items()}
    with pytest.raises(InvalidValueError, match="no decision"):
        desk.memories.decide(new.rid, old.rid, "guess")
    with pytest.raises(InvalidValueError, match="no pair"):
        desk.memories.decide(new.rid, new.rid, "keep")
    desk.memories.decide(new.rid, old.rid, "supersede")
    with pytest.raises(InvalidValueError, match="already"):
        desk.memories.decide(old.rid, new.rid, "supersede")


# Validity and time words


def test_a_fact_that_has_ended_falls_out_with_a_note(desk: Desk) -> None:
    made = desk.say("Anna is on leave until Friday.")
    other = desk.say("The canteen is closed.", until="2026-11-20", source="the notice board")
    assert made.until == other.until
    assert len(desk.recall("leave")) == 1
    desk.sleep(7)
    answer = desk.memories.recall("leave")
    assert (len(answer), answer.left_out) == (0, 1)
    assert "--all-versions" in answer.notes[-1]
    assert desk.recall("canteen", all_versions=True) == ["The canteen is closed."]
    assert desk.recall("leave", at="2026-11-19") == ["Anna is on leave until Friday."]
    again = desk.say("The canteen is closed.")
    assert (again.outcome, again.until) == ("known", None), "it holds again"
    assert desk.recall("canteen") == ["The canteen is closed."]
    for wrong in ({"until": "soon"}, {"since": "2027-01-02", "until": "2027-01-01"}):
        with pytest.raises(InvalidValueError):
            desk.say("The lift is broken.", **wrong)


def test_a_fact_of_the_future_takes_the_place_when_it_begins(desk: Desk) -> None:
    desk.say("The office is located in Berlin.")
    moved = desk.say("From 3 June 2027 the office is located in Leipzig.")
    assert moved.supersedes
    assert desk.recall("office at present", at="2027-06-02") == ["The office is located in Berlin."]
    assert desk.recall("office", at="2027-06-03") == [moved.text]
    assert set(desk.recall("office")) == {"The office is located in Berlin.", moved.text}
    desk.sleep(220)
    assert desk.recall("office") == [moved.text]


def test_time_words_of_a_question_weigh(desk: Desk) -> None:
    desk.say("Boiler serviced by Ohm.")
    desk.sleep(30)
    desk.say("Boiler serviced by Volt.")
    desk.sleep(7)
    answer = desk.memories.recall("who serviced the boiler last week")
    assert answer.memories[0].text == "Boiler serviced by Volt."
    assert answer.time == "last week: 2026-12-14 to 2026-12-20"
    first, second = answer.memories
    assert (first.hit.receipt.steps[-1].name, first.hit.receipt.steps[-1].factor) == ("time", 1.2)
    assert second.hit.receipt.steps[-1].factor == 1.0, "it held then"
    assert first.hit.receipt.recomputed() == pytest.approx(first.score, abs=1e-3)
    assert desk.recall("who serviced the boiler in November")[0] == "Boiler serviced by Ohm."


def test_an_event_gets_its_day_from_the_memory_that_mentions_it(desk: Desk) -> None:
    desk.say("Anna lives in Berlin.")
    desk.sleep(30)
    event = desk.say("The move to the new house was on 10 December 2026.")
    desk.sleep(10)
    desk.say("Anna lives in Hamburg.")
    desk.sleep(30)
    answer = desk.memories.recall("where did Anna live before the move")
    assert answer.memories[0].text == "Anna lives in Berlin."
    assert answer.time == f"before the move: … to 2026-12-09, as {event.rid} says"
    assert desk.memories.recall("where did Anna live").memories[0].text == "Anna lives in Hamburg."
    desk.say("The move to the other house was on 1 January 2027.")
    unsure = desk.memories.recall("where did Anna live before the move")
    assert unsure.time == ""
    assert "no memory and no chat gives one day for the move" in unsure.notes[-1]


# Callers


def test_a_memory_never_merges_with_one_that_others_see(open_desk: Open) -> None:
    """Twin worlds: what is hidden changes no byte of what a caller is told."""
    told = []
    for name, hidden in (("one", True), ("two", False)):
        desk = open_desk(name)
        desk.say("Anna lives in Berlin.", visibility=ADA)
        if hidden:
            for readers in (None, BOB, ()):
                desk.say("Anna works at Acme.", visibility=readers)
                desk.say("Anna's phone number is 0341 5566.", visibility=readers)
                desk.say("Anna likes tea.", visibility=readers)
        desk.now = START + 5 * DAY
        said = [
            desk.say(text, visibility=ADA, principals=ADA)
            for text in (
                "Anna is employed at Acme.",
                "Anna's phone number is 7.",
                "Anna likes coffee.",
                "Anna moved to Ulm.",
            )
        ]
        seen = [
            [(one.text, one.score, one.reasons) for one in desk.memories.recall("Anna", principals=ADA, at="today")],
            desk.memories.recall("Anna", principals=ADA).notes,
            desk.memories.review(principals=ADA),
            [desk.memories.history(one.rid, principals=ADA) for one in said],
            desk.memories.list(principals=ADA),
        ]
        told.append((said, seen))
    assert told[0] == told[1]
    assert [one.outcome for one in told[0][0]] == ["new"] * 4


def test_a_caller_decides_only_about_own_memories(desk: Desk) -> None:
    shared = desk.say("Anna works at Acme.", visibility=("everyone",))
    desk.say("Anna is employed at Acme.", visibility=("everyone",))
    hidden = desk.say("Ben works at Acme.", visibility=BOB)
    own = desk.say("Carla works at Acme.", visibility=ADA)
    desk.say("Carla is employed at Acme.", visibility=ADA, principals=ADA)
    with pytest.raises(DeniedError):
        desk.memories.undo(shared.rid, principals=ADA)
    for name in (hidden.rid, "memory:none"):
        for work in (desk.memories.undo, desk.memories.history):
            with pytest.raises(NotFoundError, match=name):
                work(name, principals=ADA)
    assert desk.memories.undo(own.rid, principals=ADA).text == own.text


def test_texts_of_before_are_for_those_who_saw_them(desk: Desk) -> None:
    desk.say("The code is 1111.", id="door", visibility=ADA)
    desk.say("The code is 2222.", id="door", visibility=("everyone",))
    assert [one.text for one in desk.memories.history("door", principals=BOB)] == ["The code is 2222."]
    assert len(desk.memories.history("door")) == 2
    desk.sleep(3)
    assert desk.recall("code", principals=BOB, at="2026-11-18") == ["The code is 2222."]
    with pytest.raises(InvalidValueError, match="other people"):
        desk.memories.undo("door")
    assert "1111" not in str(desk.engine.fetch("memory:door", principals=BOB))


def test_fields_of_a_stranger_do_no_harm(desk: Desk) -> None:
    rows = [
        {"was": {"text": "Old.", "fields": 7, "tags": "x"}, "other": {"rid": "file:a.md", "text": "New."}, "at": "y"}
    ]
    for number, versions in enumerate(("", "[", "7", '[1, {"was": 2}]', json.dumps(rows))):
        rid = f"memory:strange{number}"
        fields = {"versions": versions, "verdicts": versions, "apart": versions, "valid_until": "soon"}
        desk.engine.writer.put_texts([(Resource(rid=rid, type="memory", fields=fields), "Strange.")])
        assert desk.memories.history(rid)
    with pytest.raises(InvalidValueError, match="nothing was decided"):
        desk.memories.undo("strange1")
    undone = desk.memories.undo("strange4")
    assert (undone.text, undone.other.partition(":")[0]) == ("Old.", "memory")
    assert desk.say("Anna works at Acme.").outcome == "new"
