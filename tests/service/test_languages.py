"""A question in another language: the forms of its words are found, and are no errors of spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

import findling

TEXTS = {f"part{number}.md": f"The server keeps the part {number} of the house.\n" for number in range(30)}
GERMAN = "Die Sicherungen liegen auf dem Server.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {**TEXTS, "notiz.md": GERMAN}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_form_of_the_language_that_is_asked_in_is_no_error_of_spelling(root: Path) -> None:
    with findling.open(root) as engine:
        engine.index()
        answer = engine.search("wo ist die Sicherung", mode="keyword")
        assert [hit.path for hit in answer.hits] == ["notiz.md"]
        assert not answer.did_you_mean and not answer.unknown_terms
        assert "taken for German" in str(answer.plan)


def test_a_profile_may_name_the_languages(root: Path) -> None:
    """One noun tells no language, and most of the index is English."""
    with findling.open(root) as engine:
        engine.index()
        plain = {"mode": "keyword", "typos": "ignore"}
        assert not engine.search("Sicherung", changes=plain).hits
        named = engine.search("Sicherung", changes={**plain, "languages": ["german"]})
        assert [hit.path for hit in named.hits] == ["notiz.md"]


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("lang:de", {"notiz.md"}),
        ("Server lang:German", {"notiz.md"}),
        ("server lang:de,python", {"notiz.md", "server.py"}),
        ("server ext:md lang:de", {"notiz.md"}),
        ("server part:3 lang:es", set[str]()),
    ],
)
def test_a_language_of_people_is_a_filter_as_one_of_code_is(root: Path, query: str, paths: set[str]) -> None:
    (root / "server.py").write_text("def server():\n    return 'the server of the house and that of the port'\n")
    with findling.open(root) as engine:
        engine.index()
        answer = engine.search(query, mode="keyword", limit=50)
        assert {hit.path for hit in answer.hits} == paths
        assert engine.search(answer.understood_as, mode="keyword", limit=50).total == answer.total


def test_languages_are_counted_and_filtered_without_a_query(root: Path) -> None:
    (root / "both.md").write_text(f"{TEXTS['part1.md'] * 40}\n\n{GERMAN * 40}")
    with findling.open(root) as engine:
        engine.index()
        answer = engine.search("server", mode="keyword", facets=["language"], limit=50)
        assert answer.facets["language"] == {"english": 31, "german": 2}
        german = engine.search("server", mode="keyword", filters=findling.Filters(lang=("de",)))
        assert {hit.path for hit in german.hits} == {"both.md", "notiz.md"}
        assert engine.fetch("both.md").fields["language"] == "english, german"
