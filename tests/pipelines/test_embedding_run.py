"""Runs of a model over what it has not read: the share of a core, the power, the pace, and what is withheld."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.resources import ALL
from findling.pipelines.indexing.embedding_run import (
    READ_UP_TO,
    RefineProgress,
    account_of,
    is_on_battery,
    least_s,
    refine,
)
from findling.service.index.model_choice import ModelTable, instant_embedder
from findling.service.settings.settings import Settings
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import line_document

BATTERY = {"type": "Battery", "scope": "System", "status": "Discharging"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.open(tmp_path / "index.sqlite") as opened:
        yield opened


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="they tell it otherwise")
@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ([], False),
        ([{"type": "Mains", "online": "1"}], False),
        ([{"type": "Mains", "online": "0"}], False),
        ([{"type": "Mains", "online": "0"}, BATTERY], True),
        ([{"type": "Mains", "online": "0"}, BATTERY | {"status": "Unknown"}], True),
        ([{"type": "Mains", "online": "1"}, BATTERY], False),
        ([{"type": "USB", "online": "0"}, {"type": "USB", "online": "1"}, BATTERY | {"status": "Charging"}], False),
        ([BATTERY], True),
        ([BATTERY | {"status": "Full"}], False),
        ([BATTERY | {"scope": "Device"}], False),
        ([{"type": "Battery", "status": "Discharging"}], True),
        ([{}], False),
    ],
)
def test_a_machine_tells_whether_it_runs_on_battery(
    tmp_path: Path, supplies: list[dict[str, str]], expected: bool
) -> None:
    for number, supply in enumerate(supplies):
        (tmp_path / f"supply{number}").mkdir()
        for name, value in supply.items():
            (tmp_path / f"supply{number}" / name).write_text(f"{value}\n")
    assert is_on_battery(tmp_path) == expected
    assert not is_on_battery(tmp_path / "none")


def test_work_of_several_cores_rests_for_all_of_them() -> None:
    assert least_s(2.0, 0.5) == 4.0, "a second of two cores rests for three"
    assert least_s(0.5, 0.5) == 1.0
    assert least_s(1.0, 0.0) == 100.0
    assert least_s(8.0, 1.0) == 0.0, "who wants all cores has no rest"


def test_all_threads_together_take_their_share_of_one_core(store: SqliteStore) -> None:
    """Two threads took half of the time of two cores. A load of others makes the share only smaller."""
    embedder = ModelTable().embedder(Settings().override({"semantic.threads": 2}, "test"))
    assert embedder is not None
    embedder.embed(["the start of the model is not what is measured"])
    store.write([line_document("a", [f"Line {number} of many words: {'reading ' * 60}" for number in range(12)])])
    began, spent = time.monotonic(), time.process_time()
    assert refine(store, embedder, cpu_share=0.4).read == 12
    assert time.process_time() - spent <= 0.4 * (time.monotonic() - began) + 0.02


def test_time_left_is_told_at_the_speed_of_late() -> None:
    assert RefineProgress(40, 100, 8.0, read=40).seconds_left is None, "the first batch waits for the model"
    assert RefineProgress(40, 100, 8.0, read=40, speed=3.0).seconds_left == 20.0
    assert RefineProgress(100, 100, 8.0, read=40, speed=3.0).seconds_left == 0.0


def test_what_is_withheld_is_told_and_the_rest_comes_to_its_end(store: SqliteStore) -> None:
    """Withheld twins counted once: the index of a provider was never read to its end."""
    private = line_document("private", [*(f"hidden {number}" for number in range(20)), "twin", "twin"])
    store.write([private, line_document("public", [f"line {number}" for number in range(30)])])
    model, seen = instant_embedder(), list[RefineProgress]()
    report = refine(store, model, may_read=lambda resource: resource.rid != "private", on_progress=seen.append)
    assert (report.read, report.withheld, report.covered, report.chunks) == (30, 22, 30, 52)
    assert seen[0].seconds_left is None
    assert seen[-1].seconds_left is not None
    assert (seen[-1].done, seen[-1].total, seen[-1].withheld) == (30, 31, 21)
    assert not account_of(store, [(model, ALL)], is_running=False)["withheld"], "no run has been over all of it"
    store.set_meta(READ_UP_TO + model.fingerprint, str(store.seq()))
    account = account_of(store, [(model, ALL)], is_running=True)
    assert (account["read"], account["withheld"], account["seconds_left"]) == (30, 22, None)


def test_another_process_can_tell_how_fast_a_run_is_and_when_it_ends(store: SqliteStore) -> None:
    store.write([line_document("a", [f"line {number}" for number in range(60)])])
    model, seen = instant_embedder(), list[RefineProgress]()
    refine(store, model, on_progress=seen.append, should_stop=lambda: len(seen) == 3)
    account = account_of(store, [(model, ALL)], is_running=True)
    assert account["speed"] == float(f"{seen[1].speed:.4g}"), "noted as soon as it is known"
    assert account["seconds_left"] == round(12 / account["speed"])
    assert account_of(store, [(model, ALL)], is_running=False)["seconds_left"] is None
