"""Related things: paths between two of them, what is around one, names as facets, and nothing that is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotIndexedError
from findling.domain.reports import RelatedAnswer
from findling.domain.resources import Resource
from findling.service.engine.async_engine import AsyncEngine
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import lazy_legs
from findling.service.settings.settings import load_settings
from tests.service.note_trees import opened_notes

NOTES = {
    "people/Marie Curie": "She was born in Warsaw.\nLater she founded the Radium Institute with friends.",
    "places/Radium Institute": "A laboratory.\nIt stands in Paris, near the Sorbonne.",
    "people/Jump for Glory": "A film of 1937, made by Raoul Walsh.",
    "people/Raoul Walsh": "He was married to Miriam Cooper for ten years.",
    "people/Miriam Cooper": "An actress of the silent era.\nHer home town was Baltimore.",
    "places/alone": "nobody has a name here",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened_notes(tmp_path, NOTES) as engine:
        yield engine


def chains(answer: RelatedAnswer) -> list[str]:
    return [" → ".join(path.names) for path in answer.paths]


def test_a_path_has_the_passage_that_proves_each_step(engine: Engine) -> None:
    answer = engine.related("Marie Curie", "Paris")
    assert chains(answer) == ["Marie Curie → Radium Institute → Paris"]
    (path,) = answer.paths
    proofs = [(step.passage.path, step.passage.line, step.passage.text) for step in path.steps]
    assert proofs == [
        ("people/Marie Curie.md", 4, "Later she founded the Radium Institute with friends."),
        ("places/Radium Institute.md", 4, "It stands in Paris, near the Sorbonne."),
    ]
    assert [(step.start, step.end) for step in path.steps] == [
        ("Marie Curie", "Radium Institute"),
        ("Radium Institute", "Paris"),
    ]
    for step in path.steps:
        assert engine.fetch(step.passage.id).path == step.passage.path


def test_a_passage_that_writes_both_names_connects_them_also_behind_its_ten_names(engine: Engine) -> None:
    many = ", ".join(f"Anna Bell{letter} Crown" for letter in "abcdefghijkl")
    note = f"# Zed Quarry\n\nIt was seen by {many}, and told in Latin.\n"
    (engine.root / "people" / "Zed Quarry.md").write_text(note)
    (engine.root / "places" / "Latin.md").write_text("# Latin\n\nA language of Rome.\n")
    engine.index()
    assert chains(engine.related("Zed Quarry", "Latin")) == ["Zed Quarry → Latin"]
    assert chains(engine.related("Latin", "Zed Quarry")) == ["Latin → Zed Quarry"]
    (engine.root / "people" / "Zed Quarry.md").write_text(note.replace("Latin", "latinate words"))
    engine.index()
    assert chains(engine.related("Zed Quarry", "Latin")) == []


def test_a_path_is_the_same_from_either_end_and_no_longer_than_allowed(engine: Engine) -> None:
    there, back = engine.related("jump for glory", "Baltimore"), engine.related("Baltimore", "jump for glory")
    assert chains(there) == ["Jump for Glory → Raoul Walsh → Miriam Cooper → Baltimore"]
    assert [path.names[::-1] for path in back.paths] == [path.names for path in there.paths]
    assert not engine.related("jump for glory", "Baltimore", hops=2).is_found
    assert not engine.related("Marie Curie", "Raoul Walsh").is_found
    assert not engine.related("Marie Curie", "Raoul Walsh").unknown


def test_files_and_passages_are_things_too(engine: Engine) -> None:
    answer = engine.related("people/Marie Curie.md", "places/Radium Institute.md")
    assert chains(answer) == ["people/Marie Curie.md → Radium Institute → places/Radium Institute.md"]
    hit = engine.search("actress").hits[0]
    (path,) = engine.related(hit.id, "Raoul Walsh").paths
    assert path.names == ("people/Miriam Cooper.md", "Miriam Cooper", "Raoul Walsh")


def test_one_thing_has_names_and_documents_around_it(engine: Engine) -> None:
    answer = engine.related("Raoul Walsh")
    assert {one.name for one in answer.names} == {"Jump for Glory", "Miriam Cooper"}
    scores = [one.score for one in answer.names]
    assert scores == sorted(scores, reverse=True)
    assert [one.passage.path for one in answer.documents] == ["people/Raoul Walsh.md", "people/Jump for Glory.md"]
    assert all(one.names == ("Raoul Walsh",) for one in answer.documents)
    around = engine.related("people/Raoul Walsh.md")
    assert {one.passage.path: one.names for one in around.documents} == {
        "people/Jump for Glory.md": ("Raoul Walsh",),
        "people/Miriam Cooper.md": ("Miriam Cooper",),
    }
    assert len(engine.related("Raoul Walsh", limit=1).names) == 1


def test_a_name_that_very_many_have_is_known_but_leads_nowhere(engine: Engine) -> None:
    engine.add(
        [
            (Resource(rid=f"note:{n}", type="note"), f"Number {n} of the Hub Club met Person{n} Smith.")
            for n in range(30)
        ]
    )
    assert len(engine.related("Hub Club", limit=50).documents) == 30
    assert not engine.related("Person3 Smith", "Person7 Smith").is_found
    assert chains(engine.related("Hub Club", "Person7 Smith")) == ["Hub Club → Person7 Smith"]


def test_what_nothing_names_is_said_and_words_in_a_row_will_do(engine: Engine) -> None:
    answer = engine.related("Napoleon", "Paris")
    assert (answer.unknown, answer.is_found) == (("Napoleon",), False)
    assert engine.related("silent era", "Raoul Walsh").paths
    with pytest.raises(InvalidValueError, match="no letters"):
        engine.related("---")
    with pytest.raises(InvalidValueError, match="hops 5"):
        engine.related("Paris", hops=5)
    with pytest.raises(InvalidValueError, match="limit 0"):
        engine.related("Paris", limit=0)


def test_the_glossary_names_things_otherwise(engine: Engine) -> None:
    engine.glossary.add("Marie Curie", ["Madame Curie"])
    assert chains(engine.related("Madame Curie", "Paris")) == ["Marie Curie → Radium Institute → Paris"]


def test_a_part_of_the_root_is_all_that_is_asked(engine: Engine) -> None:
    with open_engine(engine.root / "people", settings=engine._settings) as part:
        assert not part.related("Marie Curie", "Paris").is_found
        assert {one.passage.path for one in part.related("Radium Institute").documents} == {"people/Marie Curie.md"}


def test_a_graph_that_is_not_there_yet_is_said(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_legs, "LITTLE", 10)
    answer = engine.related("Marie Curie", "Paris")
    assert [one.what for one in answer.degraded] == ["the graph is not there yet"]
    assert engine.search("institute", facets=("entity",)).notes == (
        "facet entity is empty: the graph is not there yet",
    )
    engine.opened.level_wanted()
    assert engine.related("Marie Curie", "Paris").is_found


def test_nothing_is_connected_by_what_is_hidden(engine: Engine) -> None:
    rids = {resource.path: resource.rid for resource in engine.ls()}
    ann = engine.as_caller("user:ann")
    for path in rids.keys() - {"places/Radium Institute.md"}:
        engine.permissions.share(rids[path], "user:ann")
    hidden = ann.related("Marie Curie", "Paris")
    assert (hidden.paths, hidden.unknown) == ((), ("Paris",))
    engine.permissions.share(rids["places/Radium Institute.md"], "user:ann")
    assert chains(ann.related("Marie Curie", "Paris")) == ["Marie Curie → Radium Institute → Paris"]


def test_a_hidden_passage_that_writes_both_names_connects_nothing(engine: Engine) -> None:
    texts = {
        "note:1": ("Zed Quarry came.", ("user:eve",)),
        "note:2": ("Latin is old. They speak Latin.", ("user:eve",)),
        "note:3": ("Nothing but Zed Quarry and Latin.", ("user:ana",)),
    }
    for rid, (text, readers) in texts.items():
        engine.add([(Resource(rid=rid, type="note", title="", visibility=readers), text)])
    assert chains(engine.related("Zed Quarry", "Latin"))
    assert chains(engine.related("Zed Quarry", "Latin", principals=("user:ana",)))
    assert engine.related("Zed Quarry", "Latin", principals=("user:eve",)).paths == ()


def test_names_are_counted_as_facets(engine: Engine) -> None:
    counted = engine.search("actress OR married OR film", facets=("entity", "ext")).facets
    assert dict(counted["entity"]) == {
        "Miriam Cooper": 2,
        "Raoul Walsh": 2,
        "Baltimore": 1,
        "Jump for Glory": 1,
    }
    assert counted["ext"] == {".md": 3}
    assert engine.search("nobody", facets=("entity",)).facets == {"entity": {"alone": 1}}
    assert engine.search("zebra", facets=("entity",)).facets == {"entity": {}}
    rids = {resource.path: resource.rid for resource in engine.ls()}
    engine.permissions.share(rids["people/Raoul Walsh.md"], "user:ann")
    seen = engine.as_caller("user:ann").search("actress OR married OR film", facets=("entity",))
    assert seen.facets["entity"] == {"Miriam Cooper": 1, "Raoul Walsh": 1}


def test_only_the_most_frequent_names_are_told(engine: Engine) -> None:
    engine.add([(Resource(rid=f"n:{n}", type="note"), f"We met Person{n} Smith at the Hub Club.") for n in range(70)])
    answer = engine.search("met", facets=("entity",))
    assert next(iter(answer.facets["entity"].items())) == ("Hub Club", 70)
    assert len(answer.facets["entity"]) == 50
    assert any("50 most frequent of" in note for note in answer.notes)


def test_nothing_to_search_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    own = {"store.home": str(tmp_path / "home")}
    with (
        open_engine(tmp_path / "empty", settings=load_settings(tmp_path).override(own, "test")) as engine,
        pytest.raises(NotIndexedError),
    ):
        engine.related("Paris")


async def _asked(engine: Engine) -> RelatedAnswer:
    async with AsyncEngine(lambda: open_engine(engine.root, settings=engine._settings)) as opened:
        return await opened.related("Marie Curie", "Paris")


def test_the_async_twin_answers_the_same(engine: Engine) -> None:
    import asyncio

    assert asyncio.run(_asked(engine)) == engine.related("Marie Curie", "Paris")
