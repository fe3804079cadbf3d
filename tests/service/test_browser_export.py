"""Exporting a page: what goes in, what stays out, what is refused, and what a kill leaves behind."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError, PathNotFoundError, ReadOnlyError
from findling.domain.queries import Filters
from findling.domain.resources import Resource
from findling.pipelines.export.browser_index import constants
from findling.service.engine.engine import Engine, open_engine
from findling.service.export.browser_bundle import BrowserReport, export_html
from tests.processes import BoundedProcess


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "workspaces"))
    monkeypatch.setenv("FINDLING_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with made(tmp_path / "project") as opened:
        yield opened


def made(root: Path) -> Engine:
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "guide.md").write_text("# Guide\n\nEvery login makes a session token.\n")
    (root / "secret.txt").write_text("The launch code is swordfish.\n")
    os.utime(root / "docs" / "guide.md", (1_700_000_000, 1_700_000_000))
    engine = open_engine(root)
    engine.index()
    return engine


def unpacked(page: Path) -> str:
    """The page with everything that is packed in it."""
    text = page.read_text("utf-8")
    blocks = re.findall(r'<script type="text/plain"[^>]*>([^<]*)</script>', text)
    assert len(blocks) == 2
    return text + "".join(zlib.decompress(base64.b64decode(block)).decode("utf-8", "replace") for block in blocks)


def test_the_report_states_the_size(engine: Engine, tmp_path: Path) -> None:
    report = export_html(engine, tmp_path / "page.html", title="My & notes")
    assert isinstance(report, BrowserReport)
    assert report.bytes == (tmp_path / "page.html").stat().st_size
    assert (report.documents, report.passages, report.related) == (2, 2, "instant")
    assert report.bytes_per_document == report.to_dict()["bytes_per_document"] == round(report.bytes / 2)
    assert report.text_bytes == sum(path.stat().st_size for path in engine.root.rglob("*.*"))
    assert "<title>My &amp; notes</title>" in (tmp_path / "page.html").read_text("utf-8")


def test_nothing_is_loaded_from_elsewhere(engine: Engine, tmp_path: Path) -> None:
    export_html(engine, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert re.findall(r"""(?:src|href)=["']?(?!#)[^"'>\s]+""", text) == []
    assert "default-src &#x27;none&#x27;" in text
    assert "unsafe" not in text


def test_filters_and_rights_keep_things_out(engine: Engine, tmp_path: Path) -> None:
    export_html(engine, tmp_path / "a.html", filters=Filters(path=("docs",)))
    export_html(engine, tmp_path / "b.html", may_see=lambda resource: resource.path != "secret.txt")
    for page in (tmp_path / "a.html", tmp_path / "b.html"):
        assert "session token" in unpacked(page)
        assert "swordfish" not in unpacked(page)
        assert "secret" not in unpacked(page)


def test_what_may_not_be_seen_leaves_no_trace(tmp_path: Path) -> None:
    """The page of a world with hidden documents is, byte by byte, that of the world without them."""
    pages = []
    for world in ("with", "without"):
        with made(tmp_path / world / "project") as engine:
            if world == "with":
                hidden = Resource(
                    rid="decision:0", type="decision", title="Hidden login", fields={"supersedes": "file:docs/guide.md"}
                )
                engine.add([(hidden, "Every login makes a hidden session token, a token of tokens.")])
            export_html(engine, tmp_path / f"{world}.html", may_see=lambda resource: resource.path == "docs/guide.md")
        pages.append((tmp_path / f"{world}.html").read_bytes())
    assert pages[0] == pages[1]


def test_nothing_to_export_is_an_error(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        export_html(engine, tmp_path / "page.html", may_see=lambda resource: False)
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_is_too_large_is_refused_with_the_next_step(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"larger than 0\.0 MB") as refused:
        export_html(engine, tmp_path / "page.html", max_bytes=5_000)
    assert "a folder of it" in refused.value.hint
    assert "--max-size" in refused.value.hint
    assert list(tmp_path.glob("*.html")) == []


def test_only_a_page_of_findling_is_replaced(engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("<p>by hand</p>")
    with pytest.raises(InvalidValueError, match="no page of findling"):
        export_html(engine, target)
    assert target.read_text() == "<p>by hand</p>"
    target.unlink()
    export_html(engine, target, title="one")
    export_html(engine, target, title="two")
    assert "<title>two</title>" in target.read_text("utf-8")
    assert [path.name for path in tmp_path.glob("*page*")] == ["page.html"]


def test_targets_that_cannot_be_written(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="is a folder"):
        export_html(engine, tmp_path)
    with pytest.raises(PathNotFoundError):
        export_html(engine, tmp_path / "nowhere" / "page.html")
    with pytest.raises(ReadOnlyError):
        export_html(engine, Path("/sys/page.html"))


def test_a_killed_export_leaves_the_old_page_or_the_new_one(engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    export_html(engine, target, title="first")
    code = (
        "import sys, itertools\n"
        "from findling.service.engine.engine import open_engine\n"
        "from findling.service.export.browser_bundle import export_html\n"
        "engine = open_engine(sys.argv[1])\n"
        "for number in itertools.count():\n"
        "    export_html(engine, sys.argv[2], title=f'round {number}', related=0)\n"
        "    print(number, flush=True)\n"
    )
    for pause in (0.0, 0.004, 0.011):
        child = BoundedProcess([sys.executable, "-c", code, str(engine.root), str(target)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        with child, child.stdout:
            child.stdout.readline()
            time.sleep(pause)
            child.send_signal(signal.SIGKILL)
        text = target.read_text("utf-8")
        assert text.rstrip().endswith("</html>")
        assert "session token" in unpacked(target)
    export_html(engine, target, title="last")
    assert "<title>last</title>" in target.read_text("utf-8")


def test_the_page_of_a_folder_holds_its_files_alone(tmp_path: Path) -> None:
    """Items that searches in the folder find went out with it, whoever was allowed to see them."""
    pages = []
    for world in ("with", "without"):
        root = tmp_path / world / "project"
        with made(root) as engine:
            if world == "with":
                only_bob = Resource(rid="decision:0", type="decision", title="Hidden login", visibility=("user:bob",))
                engine.add([(only_bob, "Every login makes a hidden session token.")])
                engine.add([(Resource(rid="memory:0", type="memory"), "Tokens are tea.")])
        with open_engine(root / "docs") as part:
            assert len(list(part.ls())) == (3 if world == "with" else 1)
            assert export_html(part, tmp_path / f"{world}.html").documents == 1
        pages.append((tmp_path / f"{world}.html").read_bytes())
    assert pages[0] == pages[1]
    assert b"<title>docs</title>" in pages[0]


def test_constants_of_the_scoring_come_from_python_and_every_script_uses_them(engine: Engine, tmp_path: Path) -> None:
    export_html(engine, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    lines = constants().splitlines()
    assert "const STANDARD_K1 = 1.2;" in lines
    for line in lines:
        name = line.split()[1]
        assert page.count(f"const {name} = ") == 1, f"{name} is typed a second time"
        assert line in page
        assert len(re.findall(rf"\b{name}\b", page)) > 1, f"no script uses {name}"
