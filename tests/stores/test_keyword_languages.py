"""A keyword leg finds the forms of the language that is asked in, or else of those that the index is written in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from findling.domain.queries import Filters, Node, Term, Word
from findling.pipelines.indexing.fanout import catch_up
from findling.stores.keyword.leg import TantivyLeg
from findling.testing.samples import line_document
from tests.memory_store import MemoryStore

GERMAN = [
    "Die Katzen schlafen auf dem Dach und sind nicht zu sehen",
    "Eine Sicherheitslücke ist nicht harmlos und wird geschlossen",
    "Die Aktualisierung der Sicherheit ist nicht schwer",
    "Sicherheitsaktualisierungen werden für den Server gebaut und geprüft",
    "Der Nachbar und die Straße sind nicht weit",
]
ENGLISH = ["The houses of the town and the market", "A guard sleeps in front of the house and the gate"] * 3


def found(folder: Path, lines: Sequence[str], node: Node) -> dict[int, float]:
    """The scores of the lines, by their places."""
    store, leg = MemoryStore(), TantivyLeg.open(folder, store_id="s")
    store.write([line_document(f"r{place}", [line]) for place, line in enumerate(lines)])
    catch_up(store, leg)
    scores = dict(leg.search(node, Filters(), 50).hits)
    places = {cid: int(stored.resource.rid[1:]) for cid, stored in store.chunks([*scores]).items()}
    leg.close()
    return {places[cid]: score for cid, score in scores.items()}


@pytest.mark.parametrize("kind", [Word, Term])
def test_a_word_has_the_forms_of_the_language_of_the_index(tmp_path: Path, kind: type[Word | Term]) -> None:
    assert found(tmp_path, GERMAN, kind("Katze")).keys() == {0}


def test_an_index_in_english_knows_english_forms_alone_unless_it_is_asked_in_another_language(tmp_path: Path) -> None:
    lines = [*ENGLISH, "Katzen"]
    assert not found(tmp_path / "told", lines, Word("Katze"))
    assert found(tmp_path / "asked", lines, Word("Katze", "german")).keys() == {6}
    assert found(tmp_path / "english", lines, Word("house")).keys() == {0, 1, 2, 3, 4, 5}


def test_an_index_in_two_languages_knows_the_forms_of_both(tmp_path: Path) -> None:
    assert found(tmp_path / "german", [*ENGLISH, *GERMAN], Word("Katze")).keys() == {6}
    assert found(tmp_path / "english", [*ENGLISH, *GERMAN], Word("house")).keys() == {0, 1, 2, 3, 4, 5}


def test_a_compound_is_found_by_its_parts_and_a_part_by_its_compounds(tmp_path: Path) -> None:
    compound = found(tmp_path / "compound", GERMAN, Word("Sicherheitsaktualisierungen"))
    assert compound.keys() == {2, 3}
    assert max(compound, key=compound.__getitem__) == 3
    part = found(tmp_path / "part", GERMAN, Word("Sicherheit"))
    assert part.keys() == {1, 2, 3}
    assert max(part, key=part.__getitem__) == 2


def test_english_has_no_compounds(tmp_path: Path) -> None:
    lines = [*ENGLISH, "a guard house", "the houseguard"]
    assert found(tmp_path / "whole", lines, Word("houseguard")).keys() == {7}
    assert 7 not in found(tmp_path / "part", lines, Word("house"))
