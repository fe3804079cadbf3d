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
