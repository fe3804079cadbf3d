"""Complete answers of an engine: their limits, their time, and files that are no longer what was indexed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.budgets import WorkBudget, spending
from findling.domain.reports import GrepRequest
from findling.service.engine.engine import Engine
from findling.service.settings.settings import load_settings


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(5):
        (root / f"{number}.txt").write_text("needle\n" * 3)
    (root / "page.html").write_text("<body>\n<p class='needle'>hay</p>\n</body>\n")
    changes = {"store.home": str(tmp_path / "home"), "search.mode": "keyword"}
    with findling.open(root, settings=load_settings(root).override(changes, "test")) as opened:
        opened.index()
        yield opened


def found(engine: Engine, **asked: object) -> dict[str, int]:
    answer = engine.exact.grep(GrepRequest(patterns=("needle",), **asked), refresh=False)  # type: ignore[arg-type]
    return {file.path: file.total for file in answer.files}


def test_limits_cut_the_answer_and_the_answer_says_so(engine: Engine) -> None:
    everything = {**{f"{number}.txt": 3 for number in range(5)}, "page.html": 1}
    assert found(engine) == everything
    assert found(engine, most=2) == {path: min(total, 2) for path, total in everything.items()}
    assert found(engine, limit=4) == {"0.txt": 3, "1.txt": 1}
    assert found(engine, limit=2, gives="files") == {"0.txt": 1, "1.txt": 1}
    for asked, is_cut in (({}, False), ({"limit": 4}, True), ({"limit": 100}, False), ({"limit": 16}, True)):
        answer = engine.exact.grep(GrepRequest(patterns=("needle",), **asked))  # type: ignore[arg-type]
        assert answer.is_cut is is_cut, asked


def test_a_path_without_anything_is_named(engine: Engine) -> None:
    for within, told in (("nosuch", ["nothing of the index is at nosuch"]), ("0.txt", []), ("", [])):
        answer = engine.exact.grep(GrepRequest(patterns=("needle",), within=within), refresh=False)
        assert [one.what for one in answer.degraded] == told


def test_an_answer_whose_time_is_over_says_so(engine: Engine) -> None:
    with spending(WorkBudget(cpu_s=1e-9)):
        answer = engine.exact.grep(GrepRequest(patterns=("needle",)), refresh=False)
    assert answer.files == ()
    assert answer.is_cut
    assert "lines may be missing" in answer.degraded[0].what


def test_a_file_in_the_place_of_an_indexed_one_is_not_read(engine: Engine) -> None:
    assert found(engine, globs=("*.html",)) == {"page.html": 1}
    (engine.root / "page.html").write_text("<body>\nneedle of somebody else\nneedle\n</body>\n")
    assert found(engine, globs=("*.html",)) == {}  # the extract of what was indexed has no such word
    (engine.root / "page.html").unlink()
    (engine.root / "page.html").symlink_to(engine.root / "0.txt")
    assert found(engine, globs=("*.html",)) == {}
