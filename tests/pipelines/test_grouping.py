"""Groups: one hit for all passages of a resource or thread, neighbours joined, the order that of the best."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from findling.domain.resources import Chunk, Place, Resource, StoredChunk
from findling.domain.results import Hit, Receipt
from findling.pipelines.answer.hits import with_passages
from findling.pipelines.answer.rankings import MOST_PASSAGES, HighlightSpec, Ranked, group_of, grouped, reach, runs
from findling.pipelines.retrieve.legs import Candidate

ASKED = HighlightSpec(("word",), {"word": "word"}, {})


def ranked(*names: str, type_: str = "file", thread: str = "") -> list[Ranked]:
    """Entries from `rid/ordinal`, best first; chunk n holds the lines 10n + 1 to 10n + 9."""
    entries = []
    for place, name in enumerate(names):
        rid, _, number = name.partition("/")
        ordinal = int(number)
        resource = Resource(rid=rid, type=type_, fields={"thread": thread} if thread else {})
        cid = abs(hash(name)) >> 2
        chunk = Chunk(cid, b"", ordinal, ordinal * 100, ordinal * 100 + 90, ordinal * 10 + 1, ordinal * 10 + 9)
        score = 1 - place / 100
        entries.append(Ranked(StoredChunk(chunk, resource, f"a word of {name}\n" * 9), Candidate(cid, score), score))
    return entries


def names(entries: Sequence[Ranked]) -> list[str]:
    return [f"{entry.stored.resource.rid}/{entry.stored.chunk.ordinal}" for entry in entries]


def hit_of(entry: Ranked) -> Hit:
    chunk = entry.stored.chunk
    return Hit(
        id=f"{chunk.cid:016x}", rid=entry.stored.resource.rid, path="", type="file", title="", heading=(),
        line_start=chunk.line_start, line_end=chunk.line_end, score=entry.score, lines=(),
        receipt=Receipt(fused_score=entry.score, final_score=entry.score),
    )  # fmt: skip


def test_without_groups_nothing_changes() -> None:
    entries = ranked("a/0", "a/1", "b/0")
    assert grouped(entries, "none") == entries
    assert reach(entries, "none", 2) == 2


def test_a_group_is_led_by_its_best_and_keeps_the_others_in_order() -> None:
    groups = grouped(ranked("a/3", "b/0", "a/0", "b/7", "a/5"), "resource")
    assert names(groups) == ["a/3", "b/0"]
    assert [names(group.others) for group in groups] == [["a/0", "a/5"], ["b/7"]]


def test_threads_bring_the_parts_of_a_chat_together_and_leave_others_alone() -> None:
    chats = ranked("chat:t.0/0", "chat:t.1/0", type_="chat", thread="s/t")
    files = ranked("file:a/0", thread="s/t")
    assert [len(group.others) for group in grouped([*chats, *files], "thread")] == [1, 0]
    assert [len(group.others) for group in grouped([*chats, *files], "resource")] == [0, 0, 0]
    lonely = Resource(rid="chat:s/u/0", type="chat")
    assert group_of(lonely, "thread") == "chat:s/u/0"


def test_how_far_down_so_many_groups_reach() -> None:
    entries = ranked("a/0", "a/1", "b/0", "a/2", "c/0")
    assert [reach(entries, "resource", wanted) for wanted in (0, 1, 2, 3, 9)] == [0, 2, 4, 5, 5]


def test_neighbours_are_joined_and_the_best_of_them_leads() -> None:
    joined = runs(ranked("a/4", "a/9", "a/3", "b/5", "a/8", "a/1"))
    assert [(names([run.best])[0], [chunk.ordinal for chunk in run.chunks]) for run in joined] == [
        ("a/4", [3, 4]),
        ("a/9", [8, 9]),
        ("b/5", [5]),
        ("a/1", [1]),
    ]


def test_what_lies_beside_the_hit_widens_it_and_the_rest_are_passages() -> None:
    (group,) = grouped(ranked("a/4", "a/9", "a/3", "a/8", "a/1"), "resource")
    hit = with_passages(hit_of(group), group, ASKED)
    assert (hit.line_start, hit.line_end) == (31, 49)
    assert [(one.line_start, one.line_end) for one in hit.passages] == [(81, 99), (11, 19)]
    best = hit.passages[0]
    assert best.id == f"{group.others[0].stored.chunk.cid:016x}"
    assert best.lines[0].number == 91 and best.lines[0].spans == ((2, 6),)
    assert best.score == group.others[0].score


def test_only_the_best_passages_are_told() -> None:
    (group,) = grouped(ranked(*[f"a/{3 * number}" for number in range(9)]), "resource")
    hit = with_passages(hit_of(group), group, ASKED)
    assert [one.line_start for one in hit.passages] == [31, 61, 91, 121, 151]
    assert len(hit.passages) == MOST_PASSAGES


def test_passages_of_files_without_lines_have_places() -> None:
    entries = [
        entry._replace(
            stored=entry.stored._replace(
                chunk=entry.stored.chunk._replace(places=(Place(entry.stored.chunk.start, f"p. {at}"),))
            )
        )
        for at, entry in enumerate(ranked("a/0", "a/5"), start=1)
    ]
    (group,) = grouped(entries, "resource")
    (passage,) = with_passages(hit_of(group), group, ASKED).passages
    assert (passage.line_start, passage.line_end, passage.place) == (0, 0, "p. 2")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), unique=True))
def test_nothing_is_lost_or_doubled(places: list[tuple[str, int]]) -> None:
    entries = ranked(*[f"{rid}/{ordinal}" for rid, ordinal in places])
    groups = grouped(entries, "resource")
    assert sorted(names([one for group in groups for one in (group, *group.others)])) == sorted(names(entries))
    assert [group.score for group in groups] == sorted((group.score for group in groups), reverse=True)
    for group in groups:
        found = runs((group, *group.others))
        assert sum(len(run.chunks) for run in found) == 1 + len(group.others)
        assert found[0].best.stored is group.stored
        ends = {run.chunks[-1].ordinal + 1 for run in found}
        assert not ends & {run.chunks[0].ordinal for run in found}
