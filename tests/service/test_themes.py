"""Themes of a workspace: groups of passages that name the same things, of what a caller sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError, NotIndexedError
from findling.domain.resources import Resource
from findling.domain.results import ThemesAnswer
from findling.pipelines.lookup import themes as lookup
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import lazy_legs
from findling.service.settings.settings import load_settings
from tests.service.note_trees import opened_notes

NOTES = {
    "science/Marie Curie": "She was born in Warsaw. She founded the Radium Institute with version 2.5 of a plan.",
    "science/Radium Institute": "A laboratory that Marie Curie led.",
    "science/letters": "To Marie Curie at the Radium Institute: come soon.",
    "films/Jump for Glory": "A film of 1937, made by Raoul Walsh.",
    "films/Raoul Walsh": "He made [[Jump for Glory]] in a hurry.",
    "films/alone": "nobody has a name here",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened_notes(tmp_path, NOTES) as engine:
        yield engine


def named(answer: ThemesAnswer) -> list[set[str]]:
    return [{one.name for one in theme.names} for theme in answer.themes]


def test_themes_have_names_sizes_and_a_sentence(engine: Engine) -> None:
    answer = engine.themes.top()
    assert named(answer) == [{"Marie Curie", "Radium Institute"}, {"Jump for Glory", "Raoul Walsh"}]
    science, films = answer.themes
    assert (science.resources, science.passages, films.resources, answer.total) == (3, 3, 2, 2)
    assert {one.name: one.resources for one in science.names} == {"Marie Curie": 3, "Radium Institute": 3}
    assert science.summary in "To Marie Curie at the Radium Institute: come soon."
    assert not answer.degraded
    assert engine.themes.top(1).themes == (science,)
    assert engine.themes.top(1).total == 2


def test_a_theme_has_its_passages_as_hits(engine: Engine) -> None:
    theme = engine.themes.top().themes[0]
    answer = engine.themes.passages(theme.id)
    assert {hit.path for hit in answer.hits} == {one + ".md" for one in NOTES if one.startswith("science")}
    assert (answer.hits[0].id, answer.hits[0].score, answer.total) == (theme.id, 1.0, 3)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(hit.receipt.recomputed() == pytest.approx(hit.score) for hit in answer.hits)
    assert {hit.receipt.parts[0].why for hit in answer.hits} == {"names Radium Institute, Marie Curie"}
    marked = [line.text[start:end] for hit in answer.hits for line in hit.lines for start, end in line.spans]
    assert {"Marie", "Curie", "Radium", "Institute"} <= set(marked)
    assert answer.understood_as.startswith("the theme ")
    # A document of the theme stands for it, too.
    assert engine.themes.passages("science/letters.md").hits == answer.hits
    assert len(engine.themes.passages(theme.id, 2).hits) == 2


def test_a_number_ends_no_sentence(engine: Engine) -> None:
    for name in ("science/Radium Institute.md", "science/letters.md"):
        (engine.root / name).write_text("# Radium Institute\n\nMarie Curie.\n")
    engine.index()
    summary = engine.themes.top().themes[0].summary
    assert summary == "She founded the Radium Institute with version 2.5 of a plan."


def test_a_long_document_does_not_fill_a_theme(engine: Engine) -> None:
    parts = "\n\n".join(f"## Part {one}\n\n" + "Marie Curie wrote this down once more. " * 60 for one in range(8))
    (engine.root / "science" / "letters.md").write_text(f"# letters\n\n{parts}\n")
    engine.index()
    theme = engine.themes.top().themes[0]
    assert (theme.resources, theme.passages > 8) == (3, True)
    answer = engine.themes.passages(theme.id, 20)
    assert [hit.path for hit in answer.hits].count("science/letters.md") == 2
    assert answer.total == theme.passages


def test_what_belongs_to_no_theme_is_said(engine: Engine) -> None:
    answer = engine.themes.passages("films/alone.md")
    assert (answer.hits, answer.notes) == ((), ("films/alone.md belongs to no theme",))
    with pytest.raises(NotFoundError):
        engine.themes.passages("0123456789abcdef")
    with pytest.raises(InvalidValueError, match="limit 0"):
        engine.themes.top(0)


def test_a_part_of_the_root_is_all_that_is_asked(engine: Engine) -> None:
    with open_engine(engine.root / "films", settings=engine._settings) as part:
        assert named(part.themes.top()) == [{"Jump for Glory", "Raoul Walsh"}]
        assert part.themes.passages("science/letters.md").hits == ()


def test_a_caller_learns_of_nothing_else(engine: Engine) -> None:
    rids = {resource.path: resource.rid for resource in engine.ls()}
    for path in ("science/Marie Curie.md", "films/Raoul Walsh.md"):
        engine.permissions.share(rids[path], "user:ann")
    ann = ("user:ann",)
    assert engine.themes.top(principals=ann) == ThemesAnswer()
    assert engine.themes.passages("films/Raoul Walsh.md", principals=ann).hits == ()
    engine.permissions.share(rids["films/Jump for Glory.md"], "user:ann")
    assert named(engine.themes.top(principals=ann)) == [{"Jump for Glory", "Raoul Walsh"}]
    assert len(engine.themes.passages("films/Raoul Walsh.md", principals=ann).hits) == 2
    with pytest.raises(NotFoundError):
        engine.themes.passages("science/letters.md", principals=ann)


def test_a_graph_that_is_cut_or_not_there_is_said(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(lazy_legs, "LITTLE", 10)
        assert [one.what for one in engine.themes.top().degraded] == ["the graph is not there yet"]
        assert engine.themes.passages("films/alone.md").degraded
    assert engine.themes.top().themes
    monkeypatch.setattr(lookup, "_MOST_PASSAGES", 4)
    answer = engine.themes.top()
    assert [one.what for one in answer.degraded] == ["themes are made of 4 of 6 passages"]
    assert sum(theme.passages for theme in answer.themes) <= 4


def test_a_name_that_very_many_have_is_no_theme(engine: Engine) -> None:
    engine.add(
        [(Resource(rid=f"note:{n}", type="note"), f"Number {n} of the Hub Club met once more.") for n in range(30)]
    )
    assert not any("Hub Club" in names for names in named(engine.themes.top()))


def test_nothing_to_search_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    own = {"store.home": str(tmp_path / "home")}
    with (
        open_engine(tmp_path / "empty", settings=load_settings(tmp_path).override(own, "test")) as engine,
        pytest.raises(NotIndexedError),
    ):
        engine.themes.top()
