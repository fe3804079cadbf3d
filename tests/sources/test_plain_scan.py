"""The plain scan for the words of a question, and the walk by levels that it begins with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from findling.domain.ports import SkippedPath
from findling.sources.files.discovery import FoundFile, scan
from findling.sources.files.plain_scan import LARGEST_SCANNED, needles, scanned_files


def never() -> bool:
    return False


def found(root: Path) -> list[FoundFile]:
    return [entry for entry in scan(str(root)) if not isinstance(entry, SkippedPath)]


def best(root: Path, question: str) -> list[str]:
    strengths = scanned_files(str(root), found(root), needles(question), never)
    return [file.path for file in sorted(strengths, key=lambda file: -strengths[file])]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    texts = {
        "a/tokens.py": "def make(): ...\n",
        "a/other.py": "# a token of esteem, one token\n",
        "b/long.md": "token\n" + "filler words and more of them\n" * 2_000,
        "b/Grüße.md": "Viele Grüße aus Köln\n",
        "b/KOELN.md": "KÖLN AM RHEIN\n",
        "c/none.txt": "nothing at all\n",
        "c/d/e/deep.md": "expires: sessions are expiring\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_words_become_beginnings_of_all_their_forms_without_small_words() -> None:
    assert needles("how do the sessions expire?") == [(b"session",), (b"expir",)]
    assert needles("getUserName") == [(b"getusernam",)]
    assert needles("is it to be") == []
    assert needles("") == []


def test_a_word_counts_more_in_a_short_text_than_in_a_long_one(tree: Path) -> None:
    assert best(tree, "token") == ["a/other.py", "b/long.md", "a/tokens.py"]
    assert best(tree, "when do sessions expire") == ["c/d/e/deep.md"]
    assert best(tree, "okapi") == []


def test_letters_outside_ascii_are_found_in_both_cases(tree: Path) -> None:
    assert sorted(best(tree, "köln")) == ["b/Grüße.md", "b/KOELN.md"]


def test_a_file_that_cannot_be_read_is_found_by_name(tree: Path) -> None:
    (tree / "gone-token.md").write_text("x\n")
    files = found(tree)
    (tree / "gone-token.md").unlink()
    strengths = scanned_files(str(tree), files, needles("token"), never)
    assert {file.path: strength for file, strength in strengths.items()}["gone-token.md"] == 0.0


def test_the_beginning_of_a_large_file_is_scanned(tree: Path) -> None:
    (tree / "huge.log").write_text("okapi\n" + "filler\n" * (LARGEST_SCANNED // 7) + "quagga\n")
    assert (best(tree, "okapi"), best(tree, "quagga")) == (["huge.log"], [])


def test_when_time_is_up_names_alone_count(tree: Path) -> None:
    files = found(tree)
    assert [one.path for one in scanned_files(str(tree), files, needles("token"), lambda: True)] == ["a/tokens.py"]
    turns: Iterator[int] = count()
    several = scanned_files(str(tree), files, needles("token esteem"), lambda: next(turns) >= 2)
    assert [one.path for one in several] == ["a/tokens.py", "a/other.py"], "named files first, then in their order"


def test_a_walk_by_levels_sees_the_same_and_the_upper_folders_first(tree: Path) -> None:
    (tree / "c" / "d" / ".gitignore").write_text("*.log\n")
    (tree / "c" / "d" / "x.log").write_text("x\n")
    (tree / "node_modules").mkdir()
    (tree / "node_modules" / "m.js").write_text("x\n")
    deep_first, by_level = list(scan(str(tree))), list(scan(str(tree), by_level=True))
    assert sorted(deep_first) == sorted(by_level)
    depths = [entry.path.rstrip("/").count("/") for entry in by_level]
    assert depths == sorted(depths)
