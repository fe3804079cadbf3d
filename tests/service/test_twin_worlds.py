"""Two worlds that differ only in what the caller may not see give the same answers, byte by byte.

The first holds what the caller may see. The second holds the same and, in between, whatever else: other words, equal
texts, successors of what may be seen, and what was once shared and is no longer.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import findling
from findling.domain.errors import FindlingError
from findling.domain.plans import Plan
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Resource
from findling.service.engine.engine import Viewer
from findling.service.settings.settings import load_settings
from findling.stores.filesystem import discard
from tests.counts import tries

WORDS = """pool pools pooling budget budgets salary salaries token tokens login logins cat cats carpet kitten harbour
merger merge acquisition secret secretive quarterly roadmap roadmaps database retry retries timeout node.js C++ café
naïve 数据库 연결 getUser parse_url""".split()

ANN = ("user:ann",)
SEEN = [
    ("user:ann",),
    ("group:eng",),
    ("group:all",),
    ("everyone",),
    ("user:bob", "user:ann"),
    ("group:eng", "!user:bob"),
]
HIDDEN = [(), None, ("user:bob",), ("group:ops",), ("group:all", "!user:ann"), ("everyone", "!group:eng")]


class Entry(NamedTuple):
    """One resource of a world. `was_seen` was shared with the caller for a while."""

    resource: Resource
    text: str
    is_seen: bool
    was_seen: bool = False


class Worlds(NamedTuple):
    """The caller in the world without and in the world with what must not be seen."""

    without: Viewer
    with_hidden: Viewer


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 14))) + chance.choice(["", ".", "\n\n# More\n\nbudget"])


def _title(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=2))


class Style(NamedTuple):
    """The writing of titles and texts in a world."""

    title: Callable[[random.Random], str] = _title
    text: Callable[[random.Random], str] = _text
    fields: Callable[[str], dict[str, str]] = lambda text: {}


def _entries(seed: int, seen: int, hidden: int, style: Style = Style()) -> list[Entry]:  # noqa: B008 - it is a value
    """The content of the worlds, in the order of arrival."""
    chance = random.Random(seed)
    kinds = [True] * seen + [False] * hidden
    chance.shuffle(kinds)
    texts = [style.text(chance) for _ in kinds]
    entries: list[Entry] = []
    for number, is_seen in enumerate(kinds):
        earlier = [entry.resource.rid for entry in entries if not is_seen or entry.is_seen]
        fields = {"supersedes": chance.choice(earlier)} if earlier and chance.random() < 0.2 else {}
        resource = Resource(
            rid=f"decision:{number:03}" if chance.random() < 0.5 else f"note:{number:03}",
            type=chance.choice(["decision", "note"]),
            title=style.title(chance),
            path=chance.choice(["", f"docs/{number}.md", f"src/{number}.py"]),
            author=chance.choice(["", "Ann", "Bob"]),
            tags=tuple(chance.sample(["a", "b", "secret"], chance.randint(0, 2))),
            visibility=chance.choice(SEEN if is_seen else HIDDEN),
            updated_at=chance.choice([None, 1.7e9, 1.7e9 + number]),
            fields=fields,
        )
        # A hidden text may repeat a visible one.
        text = texts[number] if is_seen or chance.random() < 0.6 else chance.choice(texts)
        resource = replace(resource, fields={**fields, **style.fields(text)})
        entries.append(Entry(resource, text, is_seen, not is_seen and chance.random() < 0.3))
    return entries


def _with_bulk(entries: Sequence[Entry], characters: int, style: Style = Style()) -> list[Entry]:  # noqa: B008
    """The same with so many hidden characters in the middle, in texts of 40,000."""
    chance, bulk = random.Random(characters), list[Entry]()
    for number in range(characters // 40_000):
        text = ""
        while len(text) < 40_000:
            text += style.text(chance) + "\n\n"
        resource = Resource(rid=f"note:bulk{number}", type="note", title=style.title(chance), visibility=("user:bob",))
        bulk.append(Entry(resource, text, is_seen=False))
    return [*entries[::2], *bulk, *entries[1::2]]


@contextmanager
def _worlds(
    seed: int,
    seen: int = 12,
    hidden: int = 12,
    changes: dict[str, Any] | None = None,
    *,
    refined: bool = False,
    half_read: bool = False,
    style: Style = Style(),  # noqa: B008 - it is a value
    bulk: int = 0,
) -> Iterator[Worlds]:
    entries = _with_bulk(_entries(seed, seen, hidden, style), bulk, style)
    with tempfile.TemporaryDirectory() as folder:
        viewers = []
        engines = []
        for name, shown in (("without", [entry for entry in entries if entry.is_seen]), ("with", entries)):
            engine = _engine(Path(folder) / name, changes)
            engines.append(engine)
            viewers.append(_fill(engine, shown, half_read=half_read))
            if refined:
                engine.refine()
        try:
            yield Worlds(*viewers)
        finally:
            for engine in engines:
                engine.close()


def _engine(folder: Path, changes: dict[str, Any] | None) -> findling.Engine:
    (folder / "tree").mkdir(parents=True)
    own = {"store.home": str(folder / "home"), "semantic.model": "auto", **(changes or {})}
    return findling.open(folder / "tree", settings=load_settings(folder / "tree").override(own, "test"))


def _fill(engine: findling.Engine, entries: Sequence[Entry], *, half_read: bool = False) -> Viewer:
    """Take everything in, in three steps between which the caller asks, so that whatever is kept is warm.

    A world that is `half_read` has had a model read what came with the first step.
    """
    permissions, viewer = engine.permissions, engine.as_caller(*ANN)
    for member, group in (("user:ann", "group:eng"), ("group:eng", "group:all"), ("user:bob", "group:ops")):
        permissions.join(member, group)
    third = max(1, len(entries) // 3)
    for start in range(0, len(entries), third):
        part = entries[start : start + third]
        engine.add([(entry.resource, entry.text) for entry in part])
        shared = [entry.resource.rid for entry in part if entry.was_seen]
        for rid in shared:
            permissions.share(rid, "group:eng")
        viewer.search("pool budget")
        if half_read and not start:
            engine.refine()
        for rid in shared:
            permissions.unshare(rid, "group:eng")
    return viewer


def _search(request: SearchRequest, viewer: Viewer) -> Any:
    return viewer.search(request)


def _about(ask: Callable[[Viewer, str], Any], name: str, viewer: Viewer) -> Any:
    return ask(viewer, name)


def _explain(viewer: Viewer, name: str) -> Any:
    return viewer.explain("pool budget", name)


def _same(worlds: Worlds, ask: Callable[[Viewer], Any]) -> Any:
    one, other = (_told(ask, viewer) for viewer in worlds)
    assert one == other
    return one


def _told(ask: Callable[[Viewer], Any], viewer: Viewer) -> str:
    """All that the caller is told, but for how long it took."""
    try:
        answer = ask(viewer)
    except FindlingError as error:
        return f"{type(error).__name__}: {error.message} / {error.hint}"
    told = answer.to_dict() if hasattr(answer, "to_dict") else answer
    if isinstance(told, dict):
        told.pop("timings_ms", None)
    return json.dumps(told, default=str, ensure_ascii=False, sort_keys=True)


SHAPES = ["{} {}", '"{} {}"', "{} AND {}", "{} -{}", "{}* {}~", "{} OR {}", "{} NEAR {}", "{}", "type:note"]
LIMITS = ["", "", "", " is:head", " is:superseded", " path:docs", " author:bob", " after:2020"]


def _requests(seed: int, count: int) -> Iterator[SearchRequest]:
    """Questions of all kinds; of words that are in both worlds, in one, and in none."""
    chance = random.Random(seed)
    words = [*WORDS, "secretiv", "budgett", "zebra", "merg"]
    for _ in range(count):
        query = chance.choice(SHAPES).format(*chance.choices(words, k=2)) + chance.choice(LIMITS)
        plan = Plan(
            mode=chance.choice(["hybrid", "keyword", "semantic"]),
            fusion=chance.choice(["weighted", "rrf", "rrf_weighted"]),
            typos=chance.choice(["correct", "suggest", "ignore"]),
            feedback=chance.random() < 0.3,
            expand=chance.choice(["off", "auto", "on"]),
            boosts=chance.random() < 0.3,
            collapse=chance.random() < 0.3,
            diversity=chance.choice([1.0, 1.0, 0.7]),
            adaptive_k=chance.random() < 0.2,
            group=chance.choice(["none", "none", "resource"]),
            heads=chance.random() < 0.2,
            graph=chance.choice(["auto", "auto", "on", "off"]),
        )
        yield SearchRequest(
            query=query,
            limit=chance.choice([1, 3, 10]),
            offset=chance.choice([0, 0, 2]),
            filters=Filters(tag=chance.choice([(), (), ("secret",)])),
            facets=chance.choice([(), ("type", "author", "tag", "year")]),
            explain=chance.random() < 0.5,
            plan=plan,
        )


def worlds_tried(count: int) -> settings:
    """Nothing is shrunk: every try makes two indexes, and a seed says all."""
    return settings(max_examples=count, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck])


seeds = st.integers(0, 10**6)


@worlds_tried(tries(25, short=2))
@given(seed=seeds)
def test_searches(seed: int) -> None:
    with _worlds(seed) as worlds:
        for request in _requests(seed, 40):
            _same(worlds, partial(_search, request))


@worlds_tried(tries(8, short=1))
@given(seed=seeds)
def test_names_completions_lists_and_pages(seed: int) -> None:
    with _worlds(seed) as worlds:
        rids = [entry.resource.rid for entry in _entries(seed, 12, 12)]
        for rid in [*rids, "decision:", "note:999", "decision:00", "docs/3.md", "0123456789abcdef"]:
            for ask in (Viewer.fetch, Viewer.similar, _explain):
                _same(worlds, partial(_about, ask, rid))
        for text in ("se", "sec", "budg", "pool mer", "sercet", "x", ""):
            _same(worlds, partial(_about, Viewer.suggest, text))
        _same(worlds, lambda viewer: [resource.rid for resource in viewer.ls()])
        _same(worlds, lambda viewer: [resource.rid for resource in viewer.ls("docs")])
        _same(worlds, _pages)


def _pages(viewer: Viewer) -> list[Any]:
    """The answer in pages of two, each asked for with the cursor of the one before."""
    pages: list[Any] = []
    cursor = ""
    while True:
        answer = viewer.search("pool budget token cat", limit=2, cursor=cursor)
        pages.append(([hit.id for hit in answer], answer.next_cursor))
        cursor = answer.next_cursor
        if not cursor:
            return pages


@pytest.mark.parametrize("fast", [True, False])
@worlds_tried(tries(40, short=1))
@given(seed=seeds)
def test_searches_with_a_model(fast: bool, seed: int) -> None:
    with _worlds(seed, 6, 6, {"semantic.fast": fast}, refined=True) as worlds:
        for request in _requests(seed, 20):
            _same(worlds, partial(_search, request))


@pytest.mark.parametrize("fast", [True, False])
@worlds_tried(tries(14, short=1))
@given(seed=seeds)
def test_searches_when_a_model_has_read_a_part(fast: bool, seed: int) -> None:
    with _worlds(seed, 6, 6, {"semantic.fast": fast}, half_read=True) as worlds:
        for request in _requests(seed, 15):
            _same(worlds, partial(_search, request))


def test_searches_when_the_index_is_behind() -> None:
    """Only the owner learns the obstacles to a full answer."""
    with _worlds(5) as worlds:
        hidden = worlds.with_hidden.engine
        (hidden.root / "secret.md").write_text("budget pool secret")
        with hidden._files.writing():
            hidden._files.store.write((), [])
        discard(hidden.home / "keyword")
        for query in ("pool budget", "secret"):
            _same(worlds, partial(_search, SearchRequest(query=query, explain=True)))


@pytest.mark.parametrize("changes", [{"keyword.unit": "page"}, {"permissions.unset": "owner"}])
def test_searches_under_other_settings(changes: dict[str, Any]) -> None:
    with _worlds(7, changes=changes) as worlds:
        for query in ("pool budget", "secret merger", '"budget"', "budgett", "sec*", "cat -carpet"):
            _same(worlds, partial(_search, SearchRequest(query=query, explain=True)))


def test_the_worlds_do_differ_for_their_owner() -> None:
    """Otherwise all of the above could not fail."""
    with _worlds(3) as worlds:
        one, other = (viewer.engine for viewer in worlds)
        assert one.search("pool budget", refresh=False).total < other.search("pool budget", refresh=False).total
        assert worlds.without.search("pool budget").total > 0
