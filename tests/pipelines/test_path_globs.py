"""Globs over paths."""

from __future__ import annotations

import pytest

from findling.domain.errors import InvalidValueError
from findling.pipelines.exact.path_globs import path_filter, path_order

PATHS = ["a.py", "docs/a.md", "docs/deep/b.md", "src/a.py", "src/b.ts", "src/b.tsx", "src/vendor/c.py", "vendor"]


@pytest.mark.parametrize(
    ("globs", "accepted"),
    [
        (["*.py"], "a.py src/a.py src/vendor/c.py"),
        (["/*.py"], "a.py"),
        (["src/*.py"], "src/a.py"),
        (["src/**/*.py"], "src/a.py src/vendor/c.py"),
        (["*.{ts,tsx}"], "src/b.ts src/b.tsx"),
        (["*.py", "!vendor"], "a.py src/a.py"),
        (["!*.py", "!docs/"], "src/b.ts src/b.tsx vendor"),
        (["src"], ""),
        ([], " ".join(PATHS)),
        (["!*.py", "a.py"], "a.py src/a.py"),
    ],
)
def test_globs_choose_files_as_those_of_grep(globs: list[str], accepted: str) -> None:
    assert " ".join(filter(path_filter(globs), PATHS)) == accepted


def test_globs_may_take_folders_and_count_from_a_folder() -> None:
    assert list(filter(path_filter(["docs"], takes_folders=True), PATHS)) == ["docs/a.md", "docs/deep/b.md"]
    assert list(filter(path_filter(["/*.py"], "src"), PATHS)) == ["src/a.py"]
    assert list(filter(path_filter(["!*.md"], "docs/deep"), PATHS)) == [path for path in PATHS if "deep" not in path]


def test_paths_are_sorted_folder_by_folder() -> None:
    assert sorted(["a.py", "a/b", "a-b/c", "B"], key=path_order) == ["B", "a/b", "a-b/c", "a.py"]


@pytest.mark.parametrize("glob", ["[a", "a\nb", "", "{" + ",".join("ab" * 600) + "}"])
def test_a_glob_that_matches_nothing_is_an_error(glob: str) -> None:
    with pytest.raises(InvalidValueError, match="glob"):
        path_filter([glob])
