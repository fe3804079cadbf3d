"""Complete answers are the same, byte by byte, whatever the caller may not see: lines, files, relations."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from findling.domain.errors import FindlingError
from findling.domain.reports import GrepRequest
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Viewer
from tests.counts import tries
from tests.service.test_twin_worlds import LIMITS, SHAPES, WORDS, _worlds

Ask = Callable[[LocalClient], Any]
PER_WORLD = 100


def _grep(chance: random.Random) -> Ask:
    word = chance.choice([*WORDS, "secretiv", "zebra", "et", "."])
    pattern = chance.choice([word, word[:3], f"^{word}", f"{word}.*", r"\w+", f"{word}|merger", "(?i)POOL", "# More"])
    request = GrepRequest(
        patterns=(pattern, *chance.choice([(), (), (chance.choice(WORDS),)])),
        fixed=chance.random() < 0.3,
        case=chance.choice(["sensitive", "ignore", "smart"]),
        words=chance.random() < 0.3,
        invert=chance.random() < 0.1,
        globs=chance.choice([(), (), (), ("*.md",), ("!src",), ("docs/1*",)]),
        within=chance.choice(["", "", "docs", "src", "nowhere"]),
        before=chance.randrange(2),
        after=chance.randrange(2),
        gives=chance.choice(["lines", "lines", "counts", "files"]),
        most=chance.randrange(3),
        limit=chance.choice([0, 0, 1, 3]),
    )
    return lambda client: client.grep(request).to_dict()


def _glob(chance: random.Random) -> Ask:
    patterns = [chance.choice(["*", "*.md", "*.py", "docs", "docs/*", "1*", "!src", "[0-9].md"])]
    options = {"newest": chance.random() < 0.5, "limit": chance.choice([0, 2]), "within": chance.choice(["", "docs"])}
    return lambda client: client.glob(patterns, **options).to_dict()


def _refs(chance: random.Random) -> Ask:
    name = chance.choice([*WORDS, "secretiv", "zebra", "def", "pool"])
    options = {"limit": chance.choice([0, 2]), "within": chance.choice(["", "src", "nowhere"])}
    return lambda client: client.refs(name, **options).to_dict()


def _outline(chance: random.Random) -> Ask:
    name = f"{chance.choice(['src', 'docs'])}/{chance.randrange(30)}.{chance.choice(['py', 'md'])}"
    return lambda client: client.outline(name).to_dict()


def _ls(chance: random.Random) -> Ask:
    prefix = chance.choice(["", "docs", "src", "docs/3.md", "nowhere"])
    return lambda client: [repr(resource) for resource in client.ls(prefix)]


def _all(chance: random.Random) -> Ask:
    query = chance.choice(SHAPES).format(*chance.choices(WORDS, k=2)) + chance.choice(LIMITS)
    return lambda client: client.search(query, facets=("file",), limit=1, mode="keyword").facets


def _told(viewer: Viewer, ask: Ask) -> str:
    try:
        return json.dumps(ask(LocalClient(viewer.engine, viewer.principals)), default=dict)
    except FindlingError as error:
        return f"{error.code}: {error.message}"


def test_complete_answers_are_those_of_a_world_without_what_is_hidden() -> None:
    compared, lengths, differ = 0, set(), 0
    for seed in range(tries(10, short=1)):
        chance = random.Random(seed)
        with _worlds(seed, seen=20, hidden=20) as (without, with_hidden):
            for _ in range(PER_WORLD):
                ask = chance.choice([_grep, _grep, _grep, _glob, _ls, _all, _refs, _outline])(chance)
                one, other = _told(without, ask), _told(with_hidden, ask)
                assert one == other
                compared += 1
                lengths.add(len(one))
                # For their owner they do differ, or this could not fail.
                owners = [_told(Viewer(viewer.engine), ask) for viewer in (without, with_hidden)]
                differ += owners[0] != owners[1]
    assert compared == tries(1_000, short=100)
    assert len(lengths) > 20
    assert differ > compared / 4
