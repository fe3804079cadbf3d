"""Two workspaces with everything in PostgreSQL that differ only in what is hidden give the same answers, byte by byte.

The worlds are those of `tests/service/test_twin_worlds.py` and of its neighbour about names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Viewer, open_engine
from findling.service.index import lazy_legs
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspaces import create_workspace
from tests.counts import IS_LONG, tries
from tests.postgres_servers import PostgresServer
from tests.service import test_exact_twin_worlds as exact
from tests.service import test_graph_twin_worlds as names
from tests.service import test_twin_worlds as twins

WORLDS = tries(20, short=2)
PER_WORLD = 134
"""Comparisons in each pair of worlds: two thousand seven hundred in a long run."""

SHARE = 1 if IS_LONG else 2
"""One in so many of them; the worlds of words and those of names ask different ones."""

PATTERNS = ('"{}"', "/{}/", "/{}.*{}/", '"{} " case:yes', "{} -/{}/", '"{}" case:no')
FACETS = ("type", "author", "tag", "year", "entity", "file")


@contextmanager
def _worlds(
    seed: int, style: twins.Style, folder: Path, server: PostgresServer, bulk: int = 0
) -> Iterator[twins.Worlds]:
    entries = twins._with_bulk(twins._entries(seed, 14, 14, style), bulk, style)
    with ExitStack() as stack:
        viewers = []
        for name, shown in (("without", [one for one in entries if one.is_seen]), ("with", entries)):
            home = folder / f"{name}{seed}"
            home.mkdir()
            own = {"store.home": str(home), "semantic.model": "auto"}
            create_workspace("twin", home=home, place=server.place(name))
            settings = load_settings(home).override(own, "test")
            engine = stack.enter_context(open_engine(".", workspace="twin", settings=settings))
            viewers.append(twins._fill(engine, shown))
            if seed % 4 == 3:
                engine.refine()
            engine.opened.lazy("exact").level_if_due()
        yield twins.Worlds(*viewers)


def _asked(seed: int, rids: list[str]) -> Iterator[Callable[[Viewer], Any]]:
    """Questions of every kind, `PER_WORLD` of them."""
    chance = random.Random(seed)
    for request in (*twins._requests(seed, 30), *names._requests(seed, 20)):
        yield partial(twins._search, request)
    for _ in range(15):
        query = chance.choice(PATTERNS).format(*chance.choices(twins.WORDS, k=2))
        yield partial(twins._search, SearchRequest(query=query, explain=True, facets=FACETS))
    for _ in range(5):
        yield partial(_through_client, exact._grep(chance))
    for rid in chance.sample(rids, 8):
        for ask in (Viewer.fetch, Viewer.similar, Viewer.related):
            yield partial(twins._about, ask, rid)
    for text in ("se", "budg", "pool mer", "sercet", "Mari", ""):
        yield partial(twins._about, Viewer.suggest, text)
    for make in (exact._glob, exact._refs, exact._outline, exact._ls, exact._all):
        for _ in range(2):
            yield partial(_through_client, make(chance))
    for rid in chance.sample(rids, 4):
        yield partial(_explained, rid)
    for word in ("sercetive", "acquisitoin", "salry", "quarterlyy", "Mraie"):
        yield partial(twins._search, SearchRequest(query=word, plan=Plan(typos="suggest"), facets=FACETS))
    for wrong in ("/(a+)+$/", "/[/", "tag:secret,x", "rid:decision:003", "is:superseded", 'title:"merger secret"'):
        yield partial(twins._search, SearchRequest(query=wrong, explain=True, facets=FACETS))
    for name in ("docs/3.md:2", "docs/4.md", "decision:"):
        yield partial(twins._about, Viewer.fetch, name)
    yield partial(_through_client, lambda client: client.themes().to_dict())
    for name in ("1", "merger", "Marie Curie"):
        yield partial(_through_client, partial(_theme, name))
    yield lambda viewer: viewer.status()
    yield twins._pages


def _explained(name: str, viewer: Viewer) -> Any:
    return viewer.explain("pool budget", name)


def _theme(name: str, client: LocalClient) -> Any:
    told = client.theme_passages(name).to_dict()
    told.pop("timings_ms", None)
    return told


def _through_client(ask: exact.Ask, viewer: Viewer) -> Any:
    return ask(LocalClient(viewer.engine, viewer.principals))


@pytest.mark.parametrize("kind", ["words", "names"])
def test_what_is_hidden_changes_no_answer(
    kind: str, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_legs, "LEAST_CHARACTERS", 100)
    style = names.STYLE if kind == "names" else twins.Style()
    compared = differ = found = 0
    for seed in range(0 if kind == "words" else 1, WORLDS, 2):
        with _worlds(seed, style, tmp_path, postgres) as worlds:
            rids = [entry.resource.rid for entry in twins._entries(seed, 14, 14, style)]
            for ask in [*_asked(seed, rids)][seed % SHARE :: SHARE]:
                told = twins._same(worlds, ask)
                found += '"rid"' in told
                compared += 1
                owners = [twins._told(ask, Viewer(viewer.engine)) for viewer in worlds] if compared % 5 == 0 else []
                differ += len({*owners}) > 1
    assert compared == PER_WORLD // SHARE * WORLDS // 2
    assert found > compared // 4
    assert differ > compared // 20, "the worlds differ for their owners, or nothing here could fail"


@pytest.mark.parametrize("bulk", names.BULKS)
def test_the_amount_of_hidden_text_decides_nothing_right_after_the_load(
    bulk: int, postgres: PostgresServer, tmp_path: Path
) -> None:
    walked = 0
    with _worlds(1, names.STYLE, tmp_path, postgres, bulk) as worlds:
        for request in names._requests(1, tries(100, short=12)):
            walked += '"state": "on"' in twins._same(worlds, partial(twins._search, request))
        for of, to, options in names._things(1, tries(50, short=5)):
            twins._same(worlds, partial(names._related, of, to, options))
    assert walked > tries(10, short=1)
