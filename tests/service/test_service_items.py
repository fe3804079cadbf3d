"""Items in a workspace: found by every field, changed or not as their type allows, and never half written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.resources import FieldRule, Resource, ResourceType
from findling.pipelines.content.items import Entry
from findling.service.content.items import Impact, ItemReport, WorkspaceItems
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

Item = dict[str, Any]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    (tmp_path / "root").mkdir()
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        yield opened


@pytest.fixture
def items(engine: Engine) -> WorkspaceItems:
    return WorkspaceItems(engine.writer)


def decision(id_: str, title: str = "A decision", **more: Any) -> Item:
    return {"type": "decision", "id": id_, "title": title, **more}


def read_lines(values: list[object]) -> list[Entry]:
    return [Entry(value, f"line {number}") for number, value in enumerate(values, 1)]


def found(engine: Engine, query: str, **options: Any) -> list[str]:
    return [hit.rid for hit in engine.search(query, refresh=False, **options)]


FULL = decision(
    "aaaa1111",
    "Keep jobs in PostgreSQL",
    body="Jobs live in one table.",
    rationale="Backups stay simple.",
    alternatives=["Redis", {"option": "RabbitMQ", "reason": "heavyweight"}],
    confidence="moderate",
    source_url="https://wiki.example/queues",
    tags=["messaging"],
    system=["billing"],
    context={"team": {"lead": "Beatrice"}},
    links=[{"to": "policy:retention", "type": "depends", "note": "thirty days"}],
)


@pytest.mark.parametrize(
    "words",
    [
        *("postgresql", "jobs table", "backups", "rabbitmq", "heavyweight", "moderate", "wiki.example", "messaging"),
        *("billing", "beatrice", "thirty days", "retention", "system:billing jobs", "tag:messaging"),
    ],
)
def test_a_decision_is_found_by_the_words_of_every_field(engine: Engine, items: WorkspaceItems, words: str) -> None:
    items.add([FULL, decision("bbbb2222", "Something else")])
    assert found(engine, words, profile="decisions") == ["decision:aaaa1111"]


def test_what_was_superseded_is_left_out_by_the_profile_for_decisions(engine: Engine, items: WorkspaceItems) -> None:
    items.add([FULL])
    items.add([decision("bbbb2222", "Move jobs to Redis", supersedes="decision:aaaa1111")])
    assert found(engine, "jobs", profile="decisions") == ["decision:bbbb2222"]
    assert found(engine, "jobs") == ["decision:bbbb2222", "decision:aaaa1111"]
    assert found(engine, "backups", profile="decisions") == []


def test_a_decision_never_changes_but_who_may_see_it_does(items: WorkspaceItems) -> None:
    items.add([FULL])
    assert items.add([FULL]) == ItemReport(unchanged=1)
    assert items.add([{**FULL, "visibility": ["group:ops"]}]) == ItemReport(changed=1)
    assert items.get("decision:aaaa1111").resource.visibility == ("group:ops",)
    with pytest.raises(InvalidValueError, match=r"item 1: decision:aaaa1111 is there already") as caught:
        items.add([{**FULL, "rationale": "We like it."}])
    assert caught.value.hint == 'add a new one with "supersedes": "decision:aaaa1111"'
    assert "Backups stay simple" in items.get("decision:aaaa1111").text


def test_other_items_change(engine: Engine, items: WorkspaceItems) -> None:
    task = {"type": "task", "id": "7", "title": "Rotate the keys", "status": "open"}
    assert items.add([task]) == ItemReport(added=1)
    first = items.get("task:7").resource
    assert items.add([{**task, "status": "done"}]) == ItemReport(changed=1)
    second = items.get("task:7").resource
    assert (second.tags, second.created_at) == (("done",), first.created_at)
    assert second.updated_at is not None and first.updated_at is not None and second.updated_at > first.updated_at
    assert found(engine, "tag:open keys") == []


def test_times_that_are_given_stay(items: WorkspaceItems) -> None:
    items.add([decision("1", created_at="2020-01-01"), decision("2", updated_at=99.5)])
    assert items.get("decision:1").resource.updated_at == 1577836800.0
    assert items.get("decision:2").resource.updated_at == 99.5
    assert items.add([decision("1"), decision("2")]) == ItemReport(unchanged=2)


def test_the_predecessor_must_be_there_and_of_the_same_type(items: WorkspaceItems) -> None:
    items.add([{"type": "policy", "id": "p", "title": "Retention"}])
    with pytest.raises(InvalidValueError, match="item 1: it supersedes decision:nowhere, which is not there"):
        items.add([decision("1", supersedes="decision:nowhere")])
    with pytest.raises(InvalidValueError, match="a decision cannot supersede policy:p"):
        items.add([decision("1", supersedes="policy:p")])
    with pytest.raises(NotFoundError):
        items.get("decision:1")


def test_nothing_supersedes_itself(items: WorkspaceItems) -> None:
    circle = [decision("1", supersedes="3"), decision("2", supersedes="1"), decision("3", supersedes="2")]
    with pytest.raises(InvalidValueError, match="decision:1 → decision:3 → decision:2 → decision:1"):
        items.add(circle)
    note = {"type": "knowledge", "title": "Ports"}
    items.add([{**note, "id": "old"}, {**note, "id": "new", "supersedes": "old"}])
    with pytest.raises(InvalidValueError, match="would supersede itself"):
        items.add([{**note, "id": "old", "supersedes": "new"}])


def test_items_of_one_array_may_name_each_other_in_any_order(items: WorkspaceItems) -> None:
    assert items.add([decision("2", supersedes="1"), decision("1")]) == ItemReport(added=2)


def test_a_decision_whose_predecessor_was_deleted_can_be_added_again(items: WorkspaceItems) -> None:
    both = [decision("1"), decision("2", supersedes="1")]
    items.add(both)
    assert items.delete(["decision:1"]) == 1
    assert items.add(both[1:]) == ItemReport(unchanged=1)


def test_an_id_may_be_abbreviated_as_long_as_it_is_the_only_one(items: WorkspaceItems) -> None:
    long, other = "3f2a91c0-7d00-4000-8000-000000000001", "3f2a91c0-7d00-4000-8000-000000000002"
    items.add([decision(long), decision(other), decision("next", supersedes=long.replace("-", "")[:32])])
    assert items.get("decision:next").resource.fields["supersedes"] == f"decision:{long}"
    assert items.get(long.upper()).resource.rid == f"decision:{long}"
    with pytest.raises(InvalidValueError) as caught:
        items.get("decision:3f2a91c0")
    assert caught.value.message == f"decision:3f2a91c0 may be any of decision:{long}, decision:{other}"
    for too_short in ("decision:3f2a91c", "3f2a91c", "decision:zzzzzzzz"):
        with pytest.raises(NotFoundError):
            items.get(too_short)


def test_an_array_is_written_as_a_whole_or_not_at_all(items: WorkspaceItems) -> None:
    with pytest.raises(InvalidValueError, match="item 3: the item does not say its type"):
        items.add([decision("1"), decision("2"), {"title": "x"}])
    with pytest.raises(InvalidValueError, match="item 2: decision:1 is there twice with different content"):
        items.add([decision("1"), decision("1", "Another")])
    with pytest.raises(NotFoundError):
        items.get("decision:1")
    assert items.add([{"title": "x"}], type="task").added == 1


def test_lines_before_a_fault_are_done(items: WorkspaceItems) -> None:
    values: list[object] = [decision(str(number)) for number in range(700)]
    values[650] = {"type": "decision", "titel": "x"}
    with pytest.raises(Exception, match=r"line 651: items of type decision have no 'titel' \(before it: 650 added\)"):
        items.add_lines(read_lines(values))
    assert items.get("decision:649").resource.rid == "decision:649"
    with pytest.raises(NotFoundError):
        items.get("decision:651")
    values[650] = decision("650")
    assert items.add_lines(read_lines(values)) == ItemReport(added=50, unchanged=650)


def test_lines_are_carried_out_in_their_order(engine: Engine, items: WorkspaceItems) -> None:
    with pytest.raises(InvalidValueError, match="line 1: it supersedes decision:1"):
        items.add_lines(read_lines([decision("2", supersedes="1"), decision("1")]))
    values: list[object] = [
        decision("1", "Before"),
        {"delete": "decision:1"},
        decision("1", "After"),
        {"delete": "decision:gone"},
    ]
    assert items.add_lines(read_lines(values)) == ItemReport(added=2, deleted=1, missing=("decision:gone",))
    assert items.get("decision:1").resource.title == "After"
    assert found(engine, "before") == []
    assert found(engine, "after") == ["decision:1"]


def test_deleting_is_for_what_is_no_file(engine: Engine, items: WorkspaceItems) -> None:
    engine.add([(Resource(rid="file:a.txt", path="a.txt"), "text")])
    with pytest.raises(InvalidValueError) as caught:
        items.delete(["file:a.txt"])
    assert caught.value.hint == "findling forget a.txt"
    with pytest.raises(InvalidValueError, match="has nothing else"):
        items.add([{"delete": "decision:1", "title": "x"}])
    with pytest.raises(InvalidValueError, match="7 is no id to delete"):
        items.add([{"delete": 7}])


def test_links_lead_to_what_is_affected_each_once_at_its_shortest_distance(items: WorkspaceItems) -> None:
    def linked(id_: str, *targets: str, kind: str = "depends") -> Item:
        return decision(id_, f"Title {id_}", links=[{"to": f"decision:{to}", "type": kind} for to in targets])

    items.add([linked("a", "b", "c"), linked("b", "d"), linked("c", "d", "a"), linked("d", "gone"), decision("e")])
    items.add([linked("f", "a", kind="mentions"), decision("g", supersedes="f")])
    assert items.impact("decision:a") == [
        Impact("decision:b", 1, "depends", "decision:a", "Title b"),
        Impact("decision:c", 1, "depends", "decision:a", "Title c"),
        Impact("decision:d", 2, "depends", "decision:b", "Title d"),
        Impact("decision:gone", 3, "depends", "decision:d", None),
    ]
    assert [each.rid for each in items.impact("decision:a", depth=1)] == ["decision:b", "decision:c"]
    assert [each.rid for each in items.impact("decision:g")] == ["decision:f"]
    assert [each.rid for each in items.impact("decision:f", links=["mentions"])] == ["decision:a"]
    with pytest.raises(InvalidValueError, match="the depth must be 1 to 5"):
        items.impact("decision:a", depth=6)


def test_a_link_may_lead_to_what_is_not_there_but_must_be_an_id(items: WorkspaceItems) -> None:
    items.add([decision("1", links=[{"to": "file:docs/queue.md", "type": "mentions"}])])
    with pytest.raises(NotFoundError, match="item 1: there is no queue"):
        items.add([decision("2", links=[{"to": "queue", "type": "mentions"}])])


def test_a_type_of_the_settings_is_as_good_as_any(engine: Engine) -> None:
    runbook = ResourceType(name="runbook", fields={"steps": FieldRule(many=True, required=True)}, immutable=True)
    items = WorkspaceItems(engine.writer, {"runbook": runbook})
    items.add([{"type": "runbook", "id": "1", "title": "Queue", "steps": ["unplug it", "plug it in"]}])
    assert found(engine, "unplug") == ["runbook:1"]
    with pytest.raises(InvalidValueError, match="a runbook never changes"):
        items.add([{"type": "runbook", "id": "1", "title": "Queue", "steps": ["pray"]}])
    with pytest.raises(NotFoundError, match="no type of resources is called 'runbook'"):
        WorkspaceItems(engine.writer).add([{"type": "runbook", "title": "x"}])


def test_files_and_items_live_side_by_side(engine: Engine, items: WorkspaceItems) -> None:
    (engine.root / "note.md").write_text("# Queue\n\nThe queue as a file.\n")
    items.add([decision("1", "The queue as a decision")])
    assert {hit.rid for hit in engine.search("queue")} == {"decision:1", "file:note.md"}
    engine.index(rebuild=True)
    (engine.root / "note.md").unlink()
    assert {hit.rid for hit in engine.search("queue")} == {"decision:1"}


def test_a_workspace_that_was_never_written_holds_nothing(items: WorkspaceItems) -> None:
    with pytest.raises(NotFoundError, match="there is no decision:1"):
        items.get("decision:1")
