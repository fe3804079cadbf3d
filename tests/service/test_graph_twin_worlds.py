"""The graph of a caller is the same, byte by byte, whatever the caller may not see: degrees, paths, slots, figures."""

from __future__ import annotations

import random
from functools import partial

from findling.domain.plans import Plan
from findling.domain.queries import Filters, SearchRequest
from findling.service.engine.engine import Viewer
from tests.counts import tries
from tests.service.test_twin_worlds import Style, _same, _search, _told, _worlds

NAMES = """Marie Curie,Pierre Curie,Radium Institute,Paul Langevin,Hertha Ayrton,Sorbonne,Warsaw,Polonium Prize,Ernest
Rutherford,Cavendish Laboratory,Lise Meitner,Otto Hahn,Kaiser Wilhelm Institute,Niels Bohr,Jump for Glory""".split(",")
NAMES = [" ".join(name.split()) for name in NAMES]
HIDDEN_NAME = "Secret Merger"

SENTENCES = ["{} worked with {}.", "It was {} who met {} there.", "{} belongs to {}.", "Nobody knew {} before {} came."]


def _text(chance: random.Random) -> str:
    names = [*NAMES, HIDDEN_NAME]
    return " ".join(chance.choice(SENTENCES).format(*chance.sample(names, 2)) for _ in range(chance.randint(1, 3)))


STYLE = Style(title=lambda chance: chance.choice(NAMES), text=_text)

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
                explain=chance.random() < 0.5,
                plan=plan,
            )
        )
    return asked


def test_a_caller_walks_the_graph_of_what_the_caller_sees() -> None:
    walked = differ = compared = 0
    for seed in range(tries(40, short=4)):
        with _worlds(seed, 14, 14, style=STYLE) as worlds:
            for request in _requests(seed, 50):
                told = _same(worlds, partial(_search, request))
                walked += '"state": "on"' in told
                compared += 1
                owners = [_told(partial(_search, request), Viewer(viewer.engine)) for viewer in worlds]
                differ += owners[0] != owners[1]
    assert compared == tries(2_000, short=200)
    # Otherwise this could not fail.
    assert walked > compared / 4
    assert differ > compared / 2
