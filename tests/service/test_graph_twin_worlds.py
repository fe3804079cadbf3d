"""The graph of a caller is the same, byte by byte, whatever the caller may not see: paths, slots, figures, facets."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from findling.domain.plans import Plan
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Resource
from findling.service.engine.engine import Viewer
from findling.text.mining.model_names import FIELD, SaidNames, written
from tests.counts import IS_LONG, tries
from tests.service.test_twin_worlds import ANN, Style, Worlds, _entries, _same, _search, _told, _worlds

NAMES = """Marie Curie,Pierre Curie,Radium Institute,Paul Langevin,Hertha Ayrton,Sorbonne,Warsaw,Polonium Prize,Ernest
Rutherford,Cavendish Laboratory,Lise Meitner,Otto Hahn,Kaiser Wilhelm Institute,Niels Bohr,Jump for Glory""".split(",")
NAMES = [" ".join(name.split()) for name in NAMES]
HIDDEN_NAME = "Secret Merger"

SENTENCES = ["{} worked with {}.", "It was {} who met {} there.", "{} belongs to {}.", "Nobody knew {} before {} came."]


def _text(chance: random.Random) -> str:
    names = [*NAMES, HIDDEN_NAME]
    return " ".join(chance.choice(SENTENCES).format(*chance.sample(names, 2)) for _ in range(chance.randint(1, 3)))


def _model_names(text: str) -> dict[str, str]:
    """Names as a language model gives them: words in lower case, and the first name of a text with the last one."""
    named = [name for name in [*NAMES, HIDDEN_NAME] if name in text]
    common = [word for word in ("worked", "belongs", "nobody") if word in text.casefold().split()]
    said = SaidNames("m", "", tuple(common), ((named[0], named[-1]),) if len(named) > 1 else ())
    return {FIELD: written(said)}


STYLE = Style(title=lambda chance: chance.choice(NAMES), text=_text)
STYLES = {"rules": STYLE, "model": STYLE._replace(fields=_model_names)}
"""Graphs by rules alone, and with names by a language model."""

QUESTIONS = [
    "Who worked with the head of {}?",
    "where did {} meet {}",
    "{} {}",
    "What belongs to the institute that {} left?",
    '"{}" and the prize',
    "{} -{}",
]


def _requests(seed: int, count: int) -> list[SearchRequest]:
    chance = random.Random(seed)
    asked = []
    for _ in range(count):
        query = chance.choice(QUESTIONS).format(*chance.choices([*NAMES, HIDDEN_NAME], k=2))
        plan = Plan(
            mode=chance.choice(["hybrid", "keyword"]),
            graph=chance.choice(["auto", "auto", "on"]),
            graph_mode=chance.choice(["low", "low", "high", "dual"]),
            group=chance.choice(["none", "none", "resource"]),
        )
        asked.append(
            SearchRequest(
                query=query if chance.random() < 0.8 else query.lower(),
                limit=chance.choice([3, 10]),
                offset=chance.choice([0, 0, 2]),
                filters=Filters(tag=chance.choice([(), (), ("secret",)])),
                facets=chance.choice([(), ("entity",), ("entity", "author", "file")]),
                explain=chance.random() < 0.5,
                plan=plan,
            )
        )
    return asked


OWNERS_TURN = 5
"""Owners, who must be told different things, are asked every fifth question."""


def _owners_differ(worlds: Worlds, ask: Callable[[Viewer], Any]) -> bool:
    one, other = (_told(ask, Viewer(viewer.engine)) for viewer in worlds)
    return one != other


@pytest.mark.parametrize("part", range(tries(4, short=1)))
def test_a_caller_walks_the_graph_of_what_the_caller_sees(part: int) -> None:
    walked = differ = owned = compared = 0
    for seed in range(10 * part, 10 * part + tries(10, short=1)):
        with _worlds(seed, 14, 14, style=STYLE) as worlds:
            for request in _requests(seed, 50):
                told = _same(worlds, partial(_search, request))
                walked += '"state": "on"' in told
                if compared % OWNERS_TURN == 0:
                    differ += _owners_differ(worlds, partial(_search, request))
                    owned += 1
                compared += 1
    assert compared == tries(500, short=50)
    # Otherwise this could not fail.
    assert walked > compared / 8
    assert differ > owned / 4


BULKS = (400_000, 10_000_000) if IS_LONG else (400_000,)
"""Hidden characters, more than are read at once for a graph."""


@pytest.mark.parametrize("seed", range(tries(4, short=1)))
@pytest.mark.parametrize("bulk", BULKS)
def test_the_amount_of_hidden_text_decides_nothing_right_after_the_load(bulk: int, seed: int) -> None:
    """With 400 kB hidden, 12 of 30 answers differed: a limit on all text decided who had a graph."""
    walked = 0
    with _worlds(seed, 14, 4, style=STYLE, bulk=bulk) as worlds:
        for number, request in enumerate(_requests(seed, tries(75, short=12))):
            walked += '"state": "on"' in _same(worlds, partial(_search, request))
            if number % 10 == 5:  # what others ask for, and what changes, makes no difference either
                new = Resource(rid="note:new", type="note", visibility=ANN)
                for viewer in worlds:
                    viewer.engine.search("Who worked with Marie Curie?")
                    viewer.engine.add([(new, f"{number} {NAMES[0]}")])
    assert walked > tries(5, short=1)


def _related(of: str, to: str, options: dict[str, int], viewer: Viewer) -> Any:
    return viewer.related(of, to, **options)


def _things(seed: int, count: int) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Pairs of things and single ones: names, parts of them, ids and places, seen, hidden and never there."""
    chance = random.Random(seed)
    rids = [entry.resource.rid for entry in _entries(seed, 14, 14, STYLE)]
    places = [*rids, "docs/3.md", "src/5.py:1", "note:999", "0123456789abcdef", "decision:0"]
    names = [*NAMES, *map(str.lower, NAMES), HIDDEN_NAME, "Curie", "met there", "Nobody Known"]
    for _ in range(count):
        of, to = (chance.choice(names if chance.random() < 0.7 else places) for _ in range(2))
        options = {"limit": chance.choice([1, 3, 10]), "hops": chance.choice([1, 2, 4])}
        yield of, to if chance.random() < 0.7 else "", options


@pytest.mark.parametrize("by", STYLES)
def test_a_caller_relates_what_the_caller_sees(by: str) -> None:
    found = differ = owned = compared = 0
    for seed in range(tries(20, short=1)):
        with _worlds(seed, 14, 14, style=STYLES[by]) as worlds:
            for of, to, options in _things(seed, 50):
                ask = partial(_related, of, to, options)
                told = _same(worlds, ask)
                found += '"score"' in told
                if compared % OWNERS_TURN == 0:
                    differ += _owners_differ(worlds, ask)
                    owned += 1
                compared += 1
    assert compared == tries(1_000, short=50)
    # Otherwise this could not fail.
    assert found > compared / 3
    assert differ > owned / 3


def _themes(limit: int, viewer: Viewer) -> Any:
    return viewer.engine.themes.top(limit, principals=viewer.principals)


def _theme(name: str, viewer: Viewer) -> Any:
    return viewer.engine.themes.passages(name, 5, principals=viewer.principals)


@pytest.mark.parametrize("by", STYLES)
def test_a_caller_browses_the_themes_of_what_the_caller_sees(by: str) -> None:
    found = differ = owned = compared = 0
    for seed in range(tries(30, short=1)):
        with _worlds(seed, 14, 14, style=STYLES[by]) as worlds:
            rids = [entry.resource.rid for entry in _entries(seed, 14, 14, STYLE)]
            asks = [*(partial(_themes, limit) for limit in (1, 20)), *(partial(_theme, rid) for rid in rids)]
            for ask in asks:
                told = _same(worlds, ask)
                found += '"summary"' in told or '"score"' in told
                if compared % OWNERS_TURN == 0:
                    differ += _owners_differ(worlds, ask)
                    owned += 1
                compared += 1
    # Otherwise this could not fail.
    assert found > compared / 8
    assert differ > owned / 3
