"""The common part of all adapters: engine, caller, filters, and closing."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any, Unpack

import pytest

import findling
from findling.domain.errors import (
    FindlingError,
    InvalidValueError,
    NotFoundError,
    NotIndexedError,
    PathNotFoundError,
    UsageError,
)
from findling.domain.queries import Field, Filters
from findling.integrations.searcher import AdapterOptions, FoundText, Searcher
from findling.service.client.written_requests import filters_document, filters_from


def paths(found: list[FoundText]) -> list[object]:
    return [one.metadata["path"] for one in found]


def test_a_passage_comes_with_all_of_its_text_and_where_it_is_from(folder: Path) -> None:
    searcher = Searcher(path=folder, options={"profile": "hybrid"})
    (found, *_) = searcher.find("login function", limit=3, filters={"ext": "py"})
    assert found.text == (folder / "src" / "auth.py").read_text()
    assert found.metadata["rid"] == "file:src/auth.py"
    assert found.metadata["path"] == "src/auth.py"
    assert (found.metadata["line_start"], found.metadata["line_end"]) == (1, 6)
    assert found.metadata["score"] == found.score > 0
    assert found.metadata["keyword_score"]
    assert found.metadata["fused_score"]
    assert found.metadata["vector_score"], "words and meaning were asked"
    assert found.metadata["at"] == pytest.approx((folder / "src" / "auth.py").stat().st_mtime)
    assert all(isinstance(value, (str, int, float)) for value in found.metadata.values())
    searcher.close()


def test_a_passage_of_a_longer_file_is_not_the_whole_file(folder: Path) -> None:
    parts = "".join(f"\n## Part {n}\n\n{'Words about something else. ' * 60}\n" for n in range(4))
    (folder / "docs" / "long.md").write_text(f"# Long\n{parts}\n## Zebra\n\nA zebra has stripes.\n")
    searcher = Searcher(path=folder, options={})
    (found, *_) = searcher.find("zebra stripes", limit=1)
    assert found.metadata["path"] == "docs/long.md"
    assert found.metadata["heading"] == "Long › Zebra"
    assert "A zebra has stripes." in found.text
    assert "Part 0" not in found.text


def test_a_single_file_can_be_searched(folder: Path) -> None:
    searcher = Searcher(path=folder / "docs" / "guide.md", options={})
    assert set(paths(searcher.find("token", limit=9))) == {"guide.md"}


def test_each_search_takes_in_what_has_changed(folder: Path) -> None:
    searcher = Searcher(path=folder, options={})
    assert not searcher.find('"purple elephant"', limit=9)
    (folder / "docs" / "new.md").write_text("A purple elephant.\n")
    assert paths(searcher.find('"purple elephant"', limit=9)) == ["docs/new.md"]


def test_without_refresh_the_index_is_asked_as_it_is(folder: Path) -> None:
    searcher = Searcher(path=folder, refresh=False, options={})
    with pytest.raises(NotIndexedError):
        searcher.find("token", limit=9)


def test_what_creates_no_index_still_follows_changes(folder: Path) -> None:
    with pytest.raises(NotIndexedError):
        Searcher(path=folder, creates=False, options={}).find("token", limit=9)
    with findling.open(folder) as engine:
        engine.index()
    (folder / "docs" / "new.md").write_text("A purple elephant.\n")
    searcher = Searcher(path=folder, creates=False, options={})
    assert paths(searcher.find('"purple elephant"', limit=9)) == ["docs/new.md"]


def test_what_has_gone_since_it_was_found_is_left_out(folder: Path) -> None:
    with findling.open(folder) as engine:
        searcher = Searcher(engine=engine, options={})
        answer = searcher.ask("token", limit=9)
        assert len(searcher.in_full(answer)) == len(answer) > 1
        (folder / "src" / "auth.py").unlink()
        engine.index()
        assert "src/auth.py" in [hit.path for hit in answer]
        assert len(searcher.in_full(answer)) == len(answer) - 1


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"ext": "md"}, {"docs/guide.md", "docs/plan.md"}),
        ({"ext": ["py", "ts"]}, {"src/auth.py", "src/shop.ts"}),
        ({"not_ext": "md", "path": "src"}, {"src/auth.py", "src/shop.ts"}),
        ({"path": "docs/plan.md"}, {"docs/plan.md"}),
        ({"where": "ext:py OR path:plan"}, {"src/auth.py", "docs/plan.md"}),
        ({"after": "2001-01-31"}, {"docs/guide.md", "docs/plan.md", "src/auth.py", "src/shop.ts"}),
        ({"before": "2001"}, set()),
        ({"before": 978307200}, set()),
        (Filters(lang=("python",)), {"src/auth.py"}),
    ],
)
def test_filters_limit_what_is_found(given: Any, expected: set[str], indexed: findling.Engine) -> None:
    asked = Searcher(engine=indexed, options={}).find("token", limit=9, filters=given)
    assert set(paths(asked)) == expected
    always = Searcher(engine=indexed, options={"filters": given})
    assert set(paths(always.find("token", limit=9))) == expected


def test_filters_of_a_question_take_the_place_of_those_that_were_set(indexed: findling.Engine) -> None:
    searcher = Searcher(engine=indexed, options={"filters": {"ext": "py"}})
    assert paths(searcher.find("token", limit=9, filters={"ext": "ts"})) == ["src/shop.ts"]
    assert paths(searcher.find("token", limit=9)) == ["src/auth.py"]


@pytest.mark.parametrize(
    "given",
    [
        {"extension": "py"},
        {"ext": 5},
        {"ext": ""},
        {"ext": "py", "not_ext": [".py"]},
        {"path": "../x"},
        {"path": ["docs", "/etc"]},
        {"after": "soon"},
        {"after": float("nan")},
        {"before": True},
        {"after": "2026-02-01", "before": "2026-01-01"},
        {"where": "some words"},
        {"principals": "everyone"},
    ],
)
def test_filters_that_do_not_fit_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(given))):
        filters_from(given)


@pytest.mark.parametrize("given", ["py", ["py"], 5])
def test_what_is_no_table_of_filters_is_refused(given: Any) -> None:
    with pytest.raises(InvalidValueError, match="filters must be a table"):
        filters_from(given)


def test_a_table_is_read_as_every_face_reads_filters() -> None:
    given = {"ext": "*.PY,md", "path": ["./docs/"], "before": "1970-01-02T00:00:00+00:00", "where": "type:file"}
    made = filters_from(given)
    assert made == Filters(ext=(".py", ".md"), path=("docs",), before=86400.0, where=Field("type", ("file",)))
    assert filters_from(filters_document(made)) == made
    assert filters_from({"path": ["docs", "."], "after": None, "where": None}) == Filters()


def test_options_are_those_of_a_search(indexed: findling.Engine) -> None:
    def ask(**options: Unpack[AdapterOptions]) -> set[object]:
        return set(paths(Searcher(engine=indexed, options=options).find("token", limit=9)))

    assert ask(exclude_pattern="basket") == {"docs/guide.md", "docs/plan.md", "src/auth.py"}
    assert ask(within="docs") == {"docs/guide.md", "docs/plan.md"}
    assert ask(profile="decisions") == ask(min_score=1.0) == set()


@pytest.mark.parametrize("name", ["principals", "limit", "querry"])
def test_an_unknown_option_is_an_error(name: str, folder: Path) -> None:
    options: Any = {name: ("user:ann",)}
    with pytest.raises(InvalidValueError, match=name):
        Searcher(path=folder, options=options)


def test_a_profile_that_is_not_there_is_an_error_of_the_engine(folder: Path) -> None:
    searcher = Searcher(path=folder, options={"profile": "nope"})
    with pytest.raises(InvalidValueError, match="no profile is called nope"):
        searcher.find("token", limit=1)


def test_only_what_the_principals_may_see_is_found(folder: Path) -> None:
    with findling.open(folder) as engine:
        engine.index()
        engine.permissions.share("path:docs/plan.md", "user:ann")
    everything = Searcher(path=folder, options={})
    assert len(set(paths(everything.find("token", limit=9)))) == 4
    for who in ("user:ann", ["user:ann"], ("group:eng", "user:ann")):
        searcher = Searcher(path=folder, principals=who, options={})
        assert paths(searcher.find("token", limit=9)) == ["docs/plan.md"]
        with pytest.raises(NotFoundError):
            searcher.fetch("docs/guide.md")
    assert not Searcher(path=folder, principals=(), options={}).find("token", limit=9)
    with pytest.raises(InvalidValueError, match="'ann' is no principal"):
        Searcher(path=folder, principals=["ann"], options={})


def test_an_open_engine_or_viewer_is_asked_and_left_open(folder: Path) -> None:
    with findling.open(folder) as engine:
        engine.index()
        engine.permissions.share("path:docs/plan.md", "user:ann")
        searcher = Searcher(engine=engine, options={})
        assert len(set(paths(searcher.find("token", limit=9)))) == 4
        viewing = Searcher(engine=engine.as_caller("user:ann"), options={})
        assert paths(viewing.find("token", limit=9)) == ["docs/plan.md"]
        searcher.close()
        viewing.close()
        assert engine.search("token").hits


def test_whom_to_ask_is_said_once(folder: Path) -> None:
    with findling.open(folder) as engine:
        with pytest.raises(UsageError, match="has a workspace already"):
            Searcher(engine=engine, path=folder, options={})
        with pytest.raises(UsageError, match="has a workspace already"):
            Searcher(engine=engine, workspace="notes", options={})
        with pytest.raises(UsageError, match="has principals already"):
            Searcher(engine=engine.as_caller("user:ann"), principals=["user:bob"], options={})


def test_a_named_workspace_is_asked_from_anywhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with findling.open(folder, workspace="notes") as engine:
        engine.index()
    monkeypatch.chdir(tmp_path)
    searcher = Searcher(workspace="notes", options={})
    assert len(set(paths(searcher.find("token", limit=9)))) == 4


def test_a_workspace_or_path_that_is_not_there_is_an_error(folder: Path, home: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no workspace notse"):
        Searcher(workspace="notse", path=folder, options={})
    with pytest.raises(PathNotFoundError):
        Searcher(path=folder / "nowhere", options={})
    assert not (home / "workspaces").exists()


def test_what_was_opened_is_closed(folder: Path) -> None:
    searcher = Searcher(path=folder, options={})
    engine: Any = searcher._opened

    def is_open() -> bool:
        return engine._files._store is not None

    searcher.find("token", limit=1)
    assert is_open()
    searcher.close()
    searcher.close()
    assert not is_open()
    searcher.find("token", limit=1)  # opens it again
    assert is_open()
    del searcher
    gc.collect()
    assert not is_open(), "nobody holds the adapter any more"


def test_a_limit_below_zero_is_an_error_and_none_of_it_is_nothing(indexed: findling.Engine) -> None:
    searcher = Searcher(engine=indexed, options=AdapterOptions())
    assert searcher.find("token", limit=0) == []
    with pytest.raises(FindlingError, match="-1"):
        searcher.find("token", limit=-1)
