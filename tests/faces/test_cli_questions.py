from __future__ import annotations

import io
from pathlib import Path

import pytest

from findling.domain.errors import FindlingError, InvalidValueError, PathNotFoundError, UsageError
from findling.faces.cli.request.request_builder import SearchOptions, build_request, choose_format, read_queries
from findling.service.settings.settings import Settings


def test_a_query_and_a_path(project: Path) -> None:
    assert read_queries(SearchOptions(words=("login",))) == (["login"], None)
    assert read_queries(SearchOptions(words=("login", "docs"))) == (["login"], "docs")
    assert read_queries(SearchOptions(words=("login", "docs/guide.md"))) == (["login"], "docs/guide.md")
    assert read_queries(SearchOptions(words=("docs",))) == (["docs"], None)


def test_queries_from_a_file(project: Path) -> None:
    (project / "queries.txt").write_text("first one\n\n  second  \r\n")
    wanted = ["first one", "second"]
    assert read_queries(SearchOptions(queries="queries.txt")) == (wanted, None)
    assert read_queries(SearchOptions(queries="queries.txt", words=("docs",))) == (wanted, "docs")


def test_queries_from_stdin(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    assert read_queries(SearchOptions(queries="-")) == (["one", "two"], None)


@pytest.mark.parametrize(
    ("options", "kind", "message", "hint"),
    [
        (SearchOptions(), UsageError, "no query", "findling"),
        (SearchOptions(words=("  ",)), InvalidValueError, "empty", "findling"),
        (SearchOptions(words=("a", "b", "c")), UsageError, "only one path", '"a b c"'),
        (SearchOptions(words=("stale", "index")), PathNotFoundError, "index", '"stale index"'),
        (SearchOptions(queries="missing.txt"), PathNotFoundError, "missing.txt", "--queries"),
        (SearchOptions(queries="empty.txt"), InvalidValueError, "empty.txt holds no query", "one query"),
        (SearchOptions(queries="blob.bin"), InvalidValueError, "UTF-8", "UTF-8"),
        (SearchOptions(queries="docs/index.md", words=("a", "b")), UsageError, "only one path", ""),
        (SearchOptions(queries="docs/index.md", words=("nowhere",)), PathNotFoundError, "nowhere", "exists"),
    ],
)
def test_bad_questions(
    project: Path, options: SearchOptions, kind: type[FindlingError], message: str, hint: str
) -> None:
    (project / "empty.txt").write_text("\n")
    (project / "blob.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(kind) as caught:
        read_queries(options)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_request_takes_everything_over() -> None:
    options = SearchOptions(
        ext=("py", ".MD,*.rst"),
        path_prefix=("./docs/", "src/app"),
        type_=("file",),
        explain=True,
    )
    settings = Settings().override({"search.limit": 3, "search.context": 2}, "test")
    request = build_request("q", options, settings)
    filters = request.filters
    assert (request.query, request.limit, request.context) == ("q", 3, 2)
    assert request.explain
    assert (filters.ext, filters.path, filters.type) == ((".py", ".md", ".rst"), ("docs", "src/app"), ("file",))
    assert request.principals is None


def test_the_searched_folder_itself_limits_nothing() -> None:
    assert build_request("q", SearchOptions(path_prefix=("docs", "./")), Settings()).filters.path == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SearchOptions(ext=("py,,md",)), "-e 'py,,md' names no extension"),
        (SearchOptions(path_prefix=("../x",)), "--path ../x does not lie"),
        (SearchOptions(path_prefix=("/x",)), "--path /x does not lie"),
    ],
)
def test_bad_options(options: SearchOptions, message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        build_request("q", options, Settings())
    assert message in caught.value.message
    assert caught.value.hint


def test_formats() -> None:
    assert choose_format(SearchOptions()) == "text"
    assert choose_format(SearchOptions(files=True)) == "files"
    assert choose_format(SearchOptions(as_json=True, format_="json")) == "json"
    assert choose_format(SearchOptions(format_="vimgrep")) == "vimgrep"
    with pytest.raises(UsageError, match="--files and --json contradict"):
        choose_format(SearchOptions(as_json=True, files=True))
