"""A leg with a table of forms answers as one without, whatever was written, deleted, merged or damaged since."""

from __future__ import annotations

import statistics
import string
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from findling.domain.ports import KeywordHits
from findling.domain.queries import Any, Filters, Node, Word
from findling.domain.resources import Document
from findling.pipelines.indexing.fanout import catch_up
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.merge import adopt_index
from findling.stores.keyword.segment_files import FORMS_FILE
from findling.stores.keyword.term_weights import SegmentStatistics
from findling.testing.samples import line_document
from tests.memory_store import MemoryStore

TEXTS = [Path(str(module.__file__)).read_text() for module in (statistics, string, textwrap)]
ASKED = ("using", "values", "format", "computes", "raised", "wrapping", "иностранные", "нет", "ads", "dying", "zebras")


@pytest.fixture(autouse=True)
def _a_table_for_any_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findling.stores.keyword.leg._TABLE_FROM", 1)


def documents() -> list[Document]:
    lines = [line for text in TEXTS for line in text.splitlines() if line.strip()]
    return [line_document(f"r{start}", lines[start : start + 20]) for start in range(0, len(lines), 20)]


def written(folder: Path, store: MemoryStore, given: Sequence[Document], deleted: Sequence[str] = ()) -> None:
    """A run of its own that writes and closes."""
    leg = TantivyLeg.open(folder, store_id="s")
    store.write(given, deleted)
    catch_up(store, leg)
    leg.close()


def answers(folder: Path) -> list[KeywordHits]:
    leg = TantivyLeg.open(folder, store_id="s")
    nodes: list[Node] = [*map(Word, ASKED), Any(tuple(map(Word, ASKED)))]
    return [leg.search(node, Filters(), 50) for node in nodes]


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The beginnings for which the vocabulary was walked."""
    walked, begun = list[str](), SegmentStatistics.begun

    def noted(self: SegmentStatistics, field: str, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        walked.append(prefix)
        return begun(self, field, prefix, limit)

    monkeypatch.setattr(SegmentStatistics, "begun", noted)
    yield walked


def assert_same_without(folder: Path, walks: list[str]) -> None:
    """The table serves, and makes no difference."""
    walks.clear()
    by_table = answers(folder)
    assert not walks
    table = (folder / FORMS_FILE).read_bytes()
    (folder / FORMS_FILE).unlink()
    assert answers(folder) == by_table
    assert walks
    (folder / FORMS_FILE).write_bytes(table)


def test_a_table_follows_every_write(tmp_path: Path, walks: list[str]) -> None:
    given, store, leg = documents(), MemoryStore(), tmp_path / "leg"
    written(leg, store, given[:10])
    assert_same_without(leg, walks)
    before = (leg / FORMS_FILE).read_bytes()
    written(leg, store, [line_document("new", ["a zebra raises иностранных ads while dying", "нет"])])
    assert b"zebra" not in before
    assert any(hits.forms.get("zebras") == ("zebra",) for hits in answers(leg))
    assert_same_without(leg, walks)
    written(leg, store, given[10:], ["new", given[3].resource.rid])
    assert_same_without(leg, walks)
    written(leg, store, [], [one.resource.rid for one in given[:20]])
    assert_same_without(leg, walks)


def test_a_small_write_does_not_read_the_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, store, leg = documents(), MemoryStore(), tmp_path / "leg"
    written(leg, store, given[:10])
    reads, words = list[object](), SegmentStatistics.words

    def noted(self: SegmentStatistics) -> set[str]:
        reads.append(self)
        return set(words(self))

    monkeypatch.setattr(SegmentStatistics, "words", noted)
    written(leg, store, given[10:12])
    assert not reads
    monkeypatch.setattr("findling.stores.keyword.query_builder._MOST_NEWS", 100)
    written(leg, store, given[12:14])
    assert len(reads) == 1


def test_a_table_serves_its_own_commit_alone(tmp_path: Path, walks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given, store, leg = documents(), MemoryStore(), tmp_path / "leg"
    written(leg, store, given[:10])
    with monkeypatch.context() as killed:
        killed.setattr("findling.stores.keyword.query_builder.FormsFile.finish", lambda *_: None)
        written(leg, store, given[10:])
    walks.clear()
    answers(leg)
    assert walks
    written(leg, store, [line_document("new", ["a zebra"])])
    assert_same_without(leg, walks)


def test_a_commit_of_nothing_keeps_the_table(tmp_path: Path, walks: list[str]) -> None:
    store, leg = MemoryStore(), tmp_path / "leg"
    written(leg, store, documents())
    reader = TantivyLeg.open(leg, store_id="s")
    reader.commit(store.seq() + 5)
    assert_same_without(leg, walks)


@pytest.mark.parametrize("damage", [b"", b"\n", b"none\nuse: used\n"])
def test_a_damaged_table_serves_nobody(tmp_path: Path, walks: list[str], damage: bytes) -> None:
    store, leg = MemoryStore(), tmp_path / "leg"
    written(leg, store, documents())
    sound = answers(leg)
    table = (leg / FORMS_FILE).read_bytes()
    for found in (damage, table.replace(b"used", b"usex"), table[:-30]):
        (leg / FORMS_FILE).write_bytes(found)
        walks.clear()
        assert answers(leg) == sound
        assert walks
    written(leg, store, [line_document("new", ["a zebra"])])
    assert_same_without(leg, walks)


def test_a_compacted_index_brings_its_table(tmp_path: Path, walks: list[str]) -> None:
    given, store, leg = documents(), MemoryStore(), tmp_path / "leg"
    written(leg, store, given)
    written(leg, store, [], [one.resource.rid for one in given[5:]])
    fresh = TantivyLeg.open(tmp_path / "fresh", store_id="s")
    catch_up(store, fresh)
    fresh.close()
    expected = (tmp_path / "fresh" / FORMS_FILE).read_bytes()
    adopt_index(tmp_path / "fresh", leg)
    assert (leg / FORMS_FILE).read_bytes() == expected
    assert_same_without(leg, walks)


def test_a_small_index_has_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findling.stores.keyword.leg._TABLE_FROM", 10_000)
    written(tmp_path / "leg", MemoryStore(), documents())
    assert not (tmp_path / "leg" / FORMS_FILE).exists()
