"""The plan of the house: small folders, arrows without circles."""

from __future__ import annotations

from tests.meta.structure import circles, folder_sizes, folders_of, imports_between

MOST_FILES = 15


def test_a_folder_is_small_enough_to_be_seen_at_once() -> None:
    large = {str(folder): size for folder, size in folder_sizes().items() if size > MOST_FILES}
    assert large == {}


def test_folders_do_not_import_each_other_in_a_circle() -> None:
    assert circles(folders_of(imports_between())) == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert circles(imports_between()) == []


def test_a_circle_is_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles(graph) == [["a", "b", "c"]]
    assert circles({"x.a": {"y.b"}, "y.b": {"x.c"}}) == []
    assert circles(folders_of({"x.a": {"y.b"}, "y.b": {"x.c"}})) == [["x", "y"]]
