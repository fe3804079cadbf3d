"""Quotas: what a workspace may hold is counted before it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError, QuotaError
from findling.domain.resources import Document, Resource
from findling.service.settings.settings import Settings
from findling.service.workspace.quotas import (
    Allowance,
    Quota,
    disk_usage,
    effective_quota,
    parse_limit,
)
from tests.memory_store import MemoryStore


def document(rid: str, length: int) -> Document:
    return Document(Resource(rid=rid, type="note"), "x" * length, ())


def filled(*lengths: int) -> MemoryStore:
    store = MemoryStore()
    store.write([document(f"note:{number}", length) for number, length in enumerate(lengths)])
    return store


def test_no_quota_allows_everything(tmp_path: Path) -> None:
    Allowance(filled(10), tmp_path, Quota()).require(resources=10**9, text=10**12)
    assert Allowance(filled(10), tmp_path, Quota()).refusal(document("note:9", 10**6)) == ""


@pytest.mark.parametrize(
    ("quota", "added", "named"),
    [
        (Quota(resources=3), {"resources": 1}, ""),
        (Quota(resources=3), {"resources": 2}, "quota resources allows 3 resources"),
        (Quota(text=30), {"text": 0}, ""),
        (Quota(text=30), {"text": 1}, "quota text allows 30 characters"),
        (Quota(disk=500), {}, "quota disk allows 500 bytes"),
        (Quota(disk=1000), {}, ""),
    ],
)
def test_what_would_be_too_much_names_the_quota(
    tmp_path: Path, quota: Quota, added: dict[str, int], named: str
) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"x" * 600)
    store, more = filled(10, 20), {"resources": 0, "text": 0, **added}
    if not named:
        Allowance(store, tmp_path, quota).require(**more)
        return
    with pytest.raises(QuotaError, match=named) as caught:
        Allowance(store, tmp_path, quota).require(**more)
    assert caught.value.hint


def test_documents_are_counted_as_they_come(tmp_path: Path) -> None:
    allowance = Allowance(filled(10), tmp_path, Quota(text=30))
    assert allowance.refusal(document("note:a", 15)) == ""
    assert "quota text" in allowance.refusal(document("note:b", 6))
    assert allowance.refusal(document("note:c", 5)) == ""
    assert "quota text" in allowance.refusal(document("note:d", 1))


def test_what_replaces_something_counts_by_what_it_adds(tmp_path: Path) -> None:
    allowance = Allowance(filled(10, 20), tmp_path, Quota(resources=2, text=30))
    assert "quota text" in allowance.refusal(document("note:0", 11))
    assert allowance.refusal(document("note:0", 4)) == ""
    assert allowance.refusal(document("note:0", 10)) == ""
    assert "quota resources" in allowance.refusal(document("note:2", 0))


def test_what_gets_smaller_fits_even_when_there_is_too_much(tmp_path: Path) -> None:
    allowance = Allowance(filled(100, 100), tmp_path, Quota(text=50))
    assert allowance.refusal(document("note:0", 90)) == ""
    assert "quota text" in allowance.refusal(document("note:1", 101))


def test_a_batch_that_deletes_makes_room_for_what_it_brings(tmp_path: Path) -> None:
    quota = Quota(resources=2)
    with pytest.raises(QuotaError, match="note:9 does not fit"):
        Allowance(filled(1, 1), tmp_path, quota).check([document("note:9", 1)])
    Allowance(filled(1, 1), tmp_path, quota).check([document("note:9", 1)], ["note:0", "note:absent"])


def test_the_disk_is_measured_again_between_batches(tmp_path: Path) -> None:
    allowance = Allowance(filled(), tmp_path, Quota(disk=100))
    assert allowance.refusal(document("note:a", 60)) == ""
    (tmp_path / "index.sqlite").write_bytes(b"x" * 99)
    allowance.measure()
    assert "quota disk" in allowance.refusal(document("note:b", 2))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 20)), max_size=30), st.integers(1, 40))
def test_the_count_is_that_of_a_store_that_is_written(steps: list[tuple[str, int]], most: int) -> None:
    """Admitted documents never exceed the quota, in any order, and every document that fits is admitted."""
    store, written = MemoryStore(), MemoryStore()
    allowance = Allowance(store, Path(), Quota(text=most))
    for name, length in steps:
        before = written.document(f"note:{name}")
        grows = before is None or length > len(before.text)
        after = written.counts()["characters"] + length - (len(before.text) if before else 0)
        refused = bool(allowance.refusal(document(f"note:{name}", length)))
        assert refused == (grows and after > most)
        if not refused:
            written.write([document(f"note:{name}", length)])
    assert written.counts()["characters"] <= most


def test_the_quota_of_a_workspace_wins_over_the_settings() -> None:
    assert effective_quota(None, Settings()) == Quota()
    assert effective_quota(Quota(text=7), Settings()) == Quota(text=7)


def test_limits_are_written_as_people_write_them() -> None:
    assert parse_limit("text", "50MB", "flag --quota-text") == 50 << 20
    assert parse_limit("resources", "12", "flag --quota-resources") == 12
    with pytest.raises(InvalidValueError, match="flag --quota-disk"):
        parse_limit("disk", "plenty", "flag --quota-disk")
    with pytest.raises(InvalidValueError):
        parse_limit("disk", "-1", "flag --quota-disk")


def test_disk_usage_counts_files_in_all_folders(tmp_path: Path) -> None:
    (tmp_path / "keyword").mkdir()
    (tmp_path / "keyword" / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"123")
    assert disk_usage(tmp_path) == 8
