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
