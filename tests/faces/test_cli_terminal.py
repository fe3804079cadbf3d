from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.errors import UsageError
from findling.domain.reports import IndexProgress
from findling.faces.cli.output import progress
from findling.faces.cli.output.progress import format_progress, format_size, progress_bar
from findling.faces.cli.output.terminal import ask_before_indexing, display_width, fit, show_controls, use_color


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("wish", "environ", "on_terminal", "in_pipe"),
    [
        ("auto", {}, True, False),
        ("auto", {"NO_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": ""}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ("auto", {"TERM": "dumb"}, False, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
    ],
)
def test_when_to_color(wish: str, environ: dict[str, str], on_terminal: bool, in_pipe: bool) -> None:
    assert use_color(wish, Terminal(), environ) is on_terminal
    assert use_color(wish, io.StringIO(), environ) is in_pipe


def test_progress_in_words() -> None:
    assert format_progress(IndexProgress("scan")) == "looking for files"
    assert format_progress(IndexProgress("scan", 1200)) == "looking for files  1,200"
    event = IndexProgress("index", done=500, total=2000, chunks=900, path="src/a\x1b.py")
    assert format_progress(event) == "[#####...............]  25%  500/2,000 files  900 chunks  src/a␛.py"
    assert format_progress(event._replace(done=2000, path="")).startswith("[####################] 100%")
    later = event._replace(failed=3, bytes_read=3 << 20, bytes_total=6 << 20, seconds=30.0, path="a")
    bar = "[##########..........]  50%  500/2,000 files  900 chunks  102.4 KB/s  3 failed  0:30 left  a"
    assert format_progress(later) == bar
    assert "2:00:00 left" in format_progress(later._replace(bytes_read=1 << 20, bytes_total=241 << 20))
    assert "left" not in format_progress(later._replace(seconds=0.5)), "too early to tell"


def test_progress_names_what_takes_long_behind_the_last_file() -> None:
    event = IndexProgress("commit", 10, 10, 900, 0, 1 << 20, 1 << 20, 20.0)
    told = format_progress(event)
    assert told.endswith("finishing the index")
    assert (" 99%" in told, "left" in told) == (True, False)
    assert "50%" in format_progress(event._replace(stage="write", bytes_read=1 << 19))


def test_without_a_terminal_a_line_comes_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(progress, "note", noted.append)
    monkeypatch.setattr(progress, "_LINE_S", 0.0)
    with progress_bar(stream=io.StringIO()) as tell:
        tell(IndexProgress("index", 5, 10, 9, 0, 500, 1000, 3.0, "a.md"))
        tell(IndexProgress("done", 10, 10, 9, 0, 1000, 1000, 4.0))
    assert len(noted) == 1
    assert "5/10 files" in noted[0]
    noted.clear()
    monkeypatch.setattr(progress, "_LINE_S", 1000.0)
    with progress_bar(stream=io.StringIO()) as tell:
        tell(IndexProgress("index", 5, 10, 9, 0, 500, 1000, 3.0, "a.md"))
    assert noted == []


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (5 << 30, "5.0 GB"), (3 << 40, "3.0 TB")]
)
def test_sizes_in_words(size: int, text: str) -> None:
    assert format_size(size) == text


def test_no_bar_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plain, dumb = io.StringIO(), Terminal()
    with progress_bar(stream=plain) as bar:
        bar(IndexProgress("scan", path="/notes", reason="it has no index yet"))
        bar(IndexProgress("index", done=1, total=2))
    assert capsys.readouterr().err == "findling: indexing /notes: it has no index yet\n"
    monkeypatch.setenv("TERM", "dumb")
    with progress_bar(stream=dumb) as bar:
        bar(IndexProgress("index", done=1, total=2))
    assert plain.getvalue() == dumb.getvalue() == capsys.readouterr().err == ""


def test_the_bar_is_drawn_seldom_and_wiped_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = Terminal()
    with progress_bar(stream=stream) as bar:
        for step in range(1000):
            clock[0] += 0.001
            bar(IndexProgress("index", step, 1000, path="long/" * step))
    drawn = stream.getvalue().split("\r")
    assert 4 <= len([row for row in drawn if row.startswith("[")]) <= 10
    assert max(map(len, drawn)) < 80
    assert drawn[-1] == ""
    assert set(drawn[-2]) == {" "}


def test_a_quick_run_draws_nothing() -> None:
    stream = Terminal()
    with progress_bar(stream=stream) as bar:
        bar(IndexProgress("index", 1, 1))
    assert stream.getvalue() == ""


def test_large_places_need_consent(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_before_indexing(project, yes=False)
    for root in (home.resolve(), home.resolve().parent, Path("/")):
        ask_before_indexing(root, yes=True)
        with pytest.raises(UsageError) as caught:
            ask_before_indexing(root, yes=False)
        assert caught.value.hint == f"findling index {root} --yes"
    monkeypatch.setattr("findling.faces.cli.output.terminal.is_interactive", lambda: True)
    for answer, fits in (("y\n", True), ("n\n", False), ("\n", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        if fits:
            ask_before_indexing(home.resolve(), yes=False)
        else:
            with pytest.raises(UsageError, match="was not indexed"):
                ask_before_indexing(home.resolve(), yes=False)


def test_controls_become_visible() -> None:
    assert show_controls("a\tb\x1b\x00\x7f\x9b") == "a\tb␛␀␡\ufffd"
    assert show_controls("größe 東京") == "größe 東京"


@given(st.text(), st.integers(0, 30))
def test_what_fits_is_a_beginning_that_fits(text: str, columns: int) -> None:
    fitting = fit(text, columns)
    assert text.startswith(fitting)
    assert display_width(fitting) <= columns
    assert fitting == text or display_width(text[: len(fitting) + 1]) > columns


def test_widths() -> None:
    assert [display_width(text) for text in ("abc", "東京", "cafe\u0301", "")] == [3, 4, 4, 0]
