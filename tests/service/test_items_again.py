"""The same items once more: what they do not say stays, what they mean stays, and nobody else gets to see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.resources import Document, Resource
from findling.pipelines.content.items import Entry, compose
from findling.pipelines.content.items_ledger import Composed, Ledger
from findling.pipelines.content.resource_types import resource_type
from findling.service.content.items import WorkspaceItems
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from tests.memory_store import MemoryStore

ANN, BOB = ("user:ann",), ("user:bob",)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    own |= {"permissions.unset": "public"}
    (tmp_path / "root").mkdir()
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        yield opened


@pytest.fixture
def items(engine: Engine) -> WorkspaceItems:
    return engine.items


def decision(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "decision", "id": f"{number:010x}", "title": f"Decision {number}", **more}


def seen(engine: Engine, query: str, principals: tuple[str, ...]) -> list[str]:
    return [hit.rid for hit in engine.search(query, refresh=False, principals=principals)]


def test_a_change_that_does_not_say_who_may_see_it_changes_no_reader(engine: Engine, items: WorkspaceItems) -> None:
    secret = {"type": "task", "id": "t1", "title": "Secret giraffe"}
    items.add([{**secret, "visibility": list(ANN), "path": "plans/zoo"}])
    assert items.add([{**secret, "status": "done"}]).changed == 1
    resource = items.get("task:t1").resource
    assert (resource.visibility, resource.path, resource.tags) == (ANN, "plans/zoo", ("done",))
    assert (seen(engine, "giraffe", BOB), seen(engine, "giraffe", ANN)) == ([], ["task:t1"])
    assert items.add([{**secret, "status": "done", "visibility": None, "path": None}]).changed == 1
    resource = items.get("task:t1").resource
    assert (resource.visibility, resource.path) == (None, "")
    assert seen(engine, "giraffe", BOB) == ["task:t1"]


def test_what_is_told_to_two_circles_without_an_id_is_two_items(engine: Engine, items: WorkspaceItems) -> None:
    note = {"type": "decision", "title": "Buy the narwhal"}
    assert items.add([{**note, "visibility": list(ANN)}, {**note, "visibility": list(BOB)}]).added == 2
    assert len(seen(engine, "narwhal", ANN)) == len(seen(engine, "narwhal", BOB)) == 1
    assert items.add([{**note, "visibility": list(ANN)}]).unchanged == 1


def test_one_array_does_not_say_two_things_about_who_may_see_an_item(items: WorkspaceItems) -> None:
    both = [decision(1, visibility=list(ANN)), decision(1, visibility=list(BOB))]
    with pytest.raises(InvalidValueError, match="item 2: decision:0000000001 is there twice with different content"):
        items.add(both)
    assert items.add([both[0], both[0], decision(1)]).added == 1
    assert items.get("decision:0000000001").resource.visibility == ANN
    report = items.add_lines(Entry(each, f"line {number}") for number, each in enumerate(both, 1))
    assert (report.unchanged, report.changed) == (1, 1)
    assert items.get("decision:0000000001").resource.visibility == BOB


def test_an_abbreviated_id_keeps_meaning_what_it_meant(items: WorkspaceItems) -> None:
    links = [{"to": "abcdef01", "type": "depends"}, {"to": "decision:abcdef01", "type": "blocks"}]
    later = decision(2, supersedes="abcdef01", links=links)
    items.add([{**decision(1), "id": "abcdef0123"}, later])
    assert items.get("decision:0000000002").resource.fields["supersedes"] == "decision:abcdef0123"
    items.add([{**decision(3), "id": "abcdef01ff"}])
    assert items.add([later]).unchanged == 1, "another id begins so, too"
    items.delete(["decision:abcdef0123", "decision:abcdef01ff"])
    assert items.add([later]).unchanged == 1, "it was deleted"
    with pytest.raises(InvalidValueError, match="which is not there"):
        items.add([decision(4, supersedes="abcdef01")])


def test_a_circle_through_something_that_was_deleted_is_found(items: WorkspaceItems) -> None:
    items.add([decision(1), decision(2, supersedes=f"{1:010x}"), decision(3, supersedes=f"{2:010x}")])
    items.delete([f"decision:{1:010x}"])
    with pytest.raises(InvalidValueError, match="would supersede itself"):
        items.add([decision(1, supersedes=f"{3:010x}")])
    fourth = decision(4, supersedes=f"{3:010x}")
    lines = [fourth, {"delete": f"decision:{3:010x}"}, decision(3, supersedes=f"{4:010x}")]
    with pytest.raises(InvalidValueError, match=r"line 3: .* would supersede itself"):
        items.add_lines(Entry(each, f"line {number}") for number, each in enumerate(lines, 1))


def test_the_name_of_a_file_is_no_abbreviated_id(engine: Engine, items: WorkspaceItems) -> None:
    engine.add([(Resource(rid="file:deadbeefcafe", path="deadbeefcafe"), "no item")])
    assert items.add([{"delete": "deadbeef"}]).missing == ("deadbeef",)
    assert engine.fetch("deadbeefcafe").text == "no item"


class CountingStore(MemoryStore):
    """A store that counts how often a document is read."""

    reads = 0

    def document(self, rid: str) -> Document | None:
        self.reads += 1
        return super().document(rid)


def test_what_is_added_to_a_long_history_does_not_walk_through_it() -> None:
    store = CountingStore()
    kind = resource_type("decision")

    def composed(number: int) -> Composed:
        item = decision(number, supersedes=f"{number - 1:010x}" if number else None)
        return Composed(kind, *compose(kind, item), f"line {number}", frozenset(item))

    ledger = Ledger(store, 1.0)
    assert set(ledger.add([composed(number) for number in range(300)])) == {"added"}
    for number in range(300, 400):
        assert ledger.add([composed(number)]) == ["added"]
    assert store.reads < 400 * 5
