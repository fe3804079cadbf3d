"""Fields and their values: conditions on resources, and when things changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, pairwise

import pytest

from findling.domain.queries import All, Any, Field, Node, Not, Range
from findling.sources.files.file_types import EXTENSIONS, KNOWN_NAMES, FileType
from findling.text.query.dates import moment
from findling.text.query.leaves import CODE_LANGUAGES, condition, nearest_field
from findling.text.query.parser import parse
from findling.text.query.tree import canonical

NOW = datetime(2026, 3, 31, 15, 30, 12, 500_000).timestamp()


def at(*parts: int) -> float:
    return datetime(*parts).timestamp()  # type: ignore[arg-type]


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if not hasattr(time, "tzset"):
        pytest.skip("the time zone of a process cannot be changed here")
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("path:src/findling", Field("path", ("src/findling",))),
        ("path:*.{py,go}", Field("path", ("*.py", "*.go"))),
        ("path:src/{a,b}/*.{c,d},x", Field("path", ("src/a/*.c", "src/a/*.d", "src/b/*.c", "src/b/*.d", "x"))),
        ('path:"a{b,c}d",e', Field("path", ("a{b,c}d", "e"))),
        ("path:{{cookiecutter.name}}", Field("path", ("{{cookiecutter.name}}",))),
        ("path:*.{py", Field("path", ("*.{py",))),
        (f"path:{'{a,b}' * 9}", Field("path", ("{a,b}" * 9,))),
        ('path:"my docs",*.md', Field("path", ("my docs", "*.md"))),
        ("path:src\\text", Field("path", ("src/text",))),
        ("path:report(1).txt", Field("path", ("report(1).txt",))),
        ("Ext:PY", Field("ext", ("PY",))),
        ("ext:*.tar.gz", Field("ext", (".tar.gz",))),
        ("lang:c++,", Field("lang", ("c++",))),
        ('author:"Lovelace, Ada"', Field("author", ("Lovelace, Ada",))),
        ("tag:a,b,a", Field("tag", ("a", "b"))),
        ("system:auth", Field("system", ("auth",))),
        ("is:code", Field("lang", CODE_LANGUAGES)),
        ("is:chat", Field("type", ("chat",))),
        ("is:head", Field("is", ("head",))),
        ("is:Superseded", Field("is", ("superseded",))),
        ("is:chat,head", Any((Field("type", ("chat",)), Field("is", ("head",))))),
        ("is:code lang:go", All((Field("lang", CODE_LANGUAGES), Field("lang", ("go",))))),
        ("-is:superseded", Not(Field("is", ("superseded",)))),
        ('path:"unclosed name', Field("path", ("unclosed name",))),
    ],
)
def test_a_field_is_a_condition(text: str, node: Node) -> None:
    parsed = parse(text)
    assert parsed.node == node
    assert parse(canonical(node)).node == node
    assert text.partition(":")[0].lstrip("-").lower() + ":" in parsed.operators


@pytest.mark.parametrize(
    ("text", "after", "before"),
    [
        ("after:2026-01-31", at(2026, 1, 31), None),
        ("before:2026-01-31", None, at(2026, 1, 31)),
        ("after:2026", at(2026, 1, 1), None),
        ("before:2026-2", None, at(2026, 2, 1)),
        ("date:2026", at(2026, 1, 1), at(2027, 1, 1)),
        ("date:2026-12", at(2026, 12, 1), at(2027, 1, 1)),
        ("date:2026-02-28", at(2026, 2, 28), at(2026, 3, 1)),
        ("date:2026-01..2026-03", at(2026, 1, 1), at(2026, 4, 1)),
        ("date:2026-03..2026-01", at(2026, 1, 1), at(2026, 4, 1)),
        ("date:2026-01..", at(2026, 1, 1), None),
        ("date:..2026-01", None, at(2026, 2, 1)),
        ("date:yesterday..today", at(2026, 3, 30), at(2026, 4, 1)),
        ("after:today", at(2026, 3, 31), None),
        ("date:yesterday", at(2026, 3, 30), at(2026, 3, 31)),
        ("after:7d", at(2026, 3, 24), None),
        ("date:2w", at(2026, 3, 17), None),
        ("after:1m", at(2026, 2, 28), None),
        ("after:3M", at(2025, 12, 31), None),
        ("after:1y", at(2025, 3, 31), None),
        ("after:12h", at(2026, 3, 31, 3, 30, 12), None),
        ("date:2026-01-31T10:30", at(2026, 1, 31, 10, 30), at(2026, 1, 31, 10, 31)),
        ('date:"2026-01-31 10"', at(2026, 1, 31, 10), at(2026, 1, 31, 11)),
        ("after:2026-01-31T10:30:15", at(2026, 1, 31, 10, 30, 15), None),
        ("after:1970-01-02T00:00:00Z", 86_400.0, None),
        ("after:1970-01-02T02:00:00+02:00", 86_400.0, None),
        ("after:2025 before:2026-02 after:2026", at(2026, 1, 1), at(2026, 2, 1)),
    ],
)
def test_dates(text: str, after: float | None, before: float | None) -> None:
    parsed = parse(text, now=NOW)
    assert parsed.node == Range(after, before)
    assert not parsed.notes
    assert parse(canonical(parsed.node)).node == parsed.node


@pytest.mark.parametrize(
    "text",
    [
        *("before:soon", "after:2026-13", "after:2026-02-30", "date:..", "date:x..2026", "after:999999y", "after:9999"),
        *(
            "after:999999d",
            "after:26",
            "after:2026-01-31T25:00",
            "is:blue",
            "is:code,blue",
            "ext:.",
            'tag:""',
            "in:foot",
        ),
        *("author:!!!", "after:٢٠٢٦", "date:2026-01..soon"),
    ],
)
def test_an_impossible_value_is_words_and_a_note(text: str) -> None:
    parsed = parse(text, now=NOW)
    assert not isinstance(parsed.node, Field | Range | Any | All)
    assert len(parsed.notes) == 1 and "takes" in parsed.notes[0]
    assert parse(canonical(parsed.node)).node == parsed.node


@pytest.mark.usefixtures("zone")
def test_moments_read_back_in_every_zone() -> None:
    # Clocks are turned at midnight in São Paulo, Apia skipped a whole day in 2011, Berlin has 02:30 twice.
    moments = [*range(1_293_840_000, 1_325_376_000, 40_000), 1_792_888_200, 1_792_891_800, -2_000_000_000, 0]
    for seconds in moments:
        assert condition("after", [moment(float(seconds))]) == Range(after=float(seconds))


@pytest.mark.usefixtures("zone")
def test_a_day_ends_where_the_next_one_begins() -> None:
    days = [f"2018-{month:02}-{day:02}" for month in (2, 3, 10, 11) for day in range(1, 29)]
    for day, following in pairwise(days):
        this, following_day = condition("date", [day]), condition("date", [following])
        assert isinstance(this, Range) and isinstance(following_day, Range)
        assert this.before == following_day.after or following.endswith("-01")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("pth", "path"),
        ("titel", "title"),
        ("autor", "author"),
        ("tags", "tag"),
        ("language", "lang"),
        ("from", "author"),
    ],
)
def test_a_name_that_is_nearly_a_field_has_a_nearest_one(typed: str, meant: str) -> None:
    assert nearest_field(typed) == meant


@pytest.mark.parametrize("typed", ["foo", "data", "text", "localhost", "note", "std", "time", "todo", "mailto", "it"])
def test_other_names_have_none(typed: str) -> None:
    assert nearest_field(typed) == ""


def test_the_languages_of_code_are_those_that_files_are_recognised_as() -> None:
    types = [type_ for type_ in chain(EXTENSIONS.values(), KNOWN_NAMES.values()) if isinstance(type_, FileType)]
    assert set(CODE_LANGUAGES) == {type_.lang for type_ in types if type_.kind == "code"}
    assert list(CODE_LANGUAGES) == sorted(CODE_LANGUAGES)
