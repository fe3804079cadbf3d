"""The order in which files are indexed, and the patience of a person who waits for a first answer."""

from __future__ import annotations

import time

import pytest

from findling.pipelines.indexing.reading_order import Patience, is_much, needs_process, touched_first
from findling.sources.files.discovery import FoundFile
from findling.text.chunking.chunk_plan import PRESETS

NOW = 1_800_000_000.0
DAY = 86_400.0


def file(path: str, *, days: float = 400, size: int = 100) -> FoundFile:
    return FoundFile(path, size, int((NOW - days * DAY) * 1e9))


def ordered(*files: FoundFile) -> list[str]:
    return [one.path for one in touched_first(files, NOW)]


def test_recent_files_come_first_and_those_of_one_age_by_path() -> None:
    given = [file("a.md"), file("b.md", days=20), file("c.md", days=0.5, size=3), file("d.md", days=21, size=7)]
    assert ordered(*given) == ["c.md", "b.md", "d.md", "a.md"]


@pytest.mark.parametrize(
    "path",
    [
        "locale/de/words.md", "src/vendor/lib.c", "third_party/x.py", "api/schema_pb2.py", "po/de.po",
        "web/dist/app.js", "LOCALE/x.md",
    ],
)  # fmt: skip
def test_what_few_people_write_comes_last(path: str) -> None:
    assert ordered(file(path, days=0), file("z.md")) == ["z.md", path]


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_pool.py", "src/pool.test.ts", "examples/pool.py", "pool.pyi", "CHANGELOG.md",
        "docs/changes-1.x.rst", "docs/whatsnew/3.12.rst", "rows.csv",
    ],
)  # fmt: skip
def test_definitions_and_prose_come_before_tests_and_change_logs(path: str) -> None:
    last = file("vendor/a.py", days=0)
    assert ordered(last, file(path, days=0), file("src/z.py"), file("z.md")) == ["src/z.py", "z.md", path, last.path]


@pytest.mark.parametrize("path", ["src/history.py", "src/changes/store.py", "2024/01/notes.md"])
def test_what_is_only_named_like_them_does_not(path: str) -> None:
    assert ordered(file("z/notes.md", size=5), file(path, days=0)) == [path, "z/notes.md"]


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("docs/en/guide.md", ["docs/de/guide.md", "docs/zh-cn/guide.md"]),
        ("docs/guide.md", ["docs/v1/guide.md", "docs/version-2.1/guide.md", "docs/3.x/guide.md"]),
        ("docs/v10/guide.md", ["docs/v2/guide.md", "docs/v9/guide.md"]),
        ("README.md", ["README.ja.md", "README.zh-CN.md"]),
    ],
)
def test_documents_in_other_languages_and_of_older_releases_come_last(first: str, others: list[str]) -> None:
    given = [file(path, days=0, size=at) for at, path in enumerate([*others, first])]
    assert ordered(*given, file("z.md")) == [first, "z.md", *others]
    code = [file(path.replace(".md", ".py"), size=at) for at, path in enumerate(sorted([*others, first]))]
    assert ordered(*code) == [one.path for one in code], "definitions of other packages are no twins"


def test_twins_and_large_files_come_last() -> None:
    first, twin, large = file("a/LICENSE", size=11), file("b/LICENSE", size=11), file("c/data.json", size=900_000)
    assert ordered(first, large, twin, file("z.md", size=12)) == ["a/LICENSE", "z.md", "c/data.json", "b/LICENSE"]


def test_many_bytes_or_many_files_are_much() -> None:
    assert not is_much([file("a.md", size=1_000_000)])
    assert is_much([file("a.md", size=3_000_000)])
    assert not is_much([file(f"{number}.md", size=10) for number in range(1_000)])
    assert is_much([file(f"{number}.md", size=10) for number in range(10_000)]), "a search waited for all of them"


def test_documents_and_trees_need_a_process_of_their_own() -> None:
    plan = PRESETS["default"]._replace(code="auto")
    assert needs_process(plan, "a/report.pdf", 1)
    assert needs_process(plan, "a/main.c", 9_000)
    assert not needs_process(plan, "a/main.c", 2_400)  # one piece
    assert not needs_process(plan, "a/notes.md", 9_000)


def test_patience_lasts_as_long_as_nothing_could_be_done_but_not_for_ever() -> None:
    assert not Patience(1_000.0).is_over()
    waited = Patience(0.01)
    time.sleep(0.1)  # without work, as on a machine that is busy with other things
    assert waited.is_over()
    assert not Patience(1_000.0).is_over(0.5)
