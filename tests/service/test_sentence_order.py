"""The passages of one text in the order of their best sentences; other texts keep their places."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from findling.domain.plans import Plan
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

QUESTION = "how long is a login token kept"
SPREAD = (
    "The login is described here. A login of a person is long ago.\n{0}A token is a thing. A token is kept.\n{0}"
    "How a login is made depends. A token of a login, a login of a token: the login, the token.\n"
)
OTHER = "Nobody has asked about the weather of that day, which was fine and dry and warm.\n"
MANUAL = (
    f"# Login\n\n{SPREAD.format(OTHER * 4)}\n## Ends\n\n{OTHER * 9}A login token is kept as long as a day.\n{OTHER * 9}"
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    place = tmp_path_factory.mktemp("order")
    (place / "root").mkdir()
    (place / "root" / "manual.md").write_text(MANUAL)
    (place / "root" / "code.py").write_text('"""A token of a login."""\n\n\ndef login(token):\n    return token\n')
    for number in range(30):
        (place / "root" / f"{number}.md").write_text(f"# Note {number}\n\n{OTHER}A token is a coin.\n")
    own = {"store.home": str(place / "home"), "semantic.refine": "never", "search.mode": "keyword"}
    with open_engine(place / "root", settings=Settings().override(own, "test")) as engine:
        engine.index()
        yield engine


def test_the_passage_whose_sentence_answers_comes_first_of_its_text(engine: Engine) -> None:
    hits = engine.search(QUESTION, refresh=False).hits
    own = [hit for hit in hits if hit.path == "manual.md"]
    assert [hit.heading[-1] for hit in own[:2]] == ["Ends", "Login"]
    assert any("A login token is kept as long as a day." in line.text for line in own[0].lines)
    assert own[1].receipt.fused_score > own[0].receipt.fused_score, "words alone had the other one first"
    assert [step.name for hit in own[:2] for step in hit.receipt.steps] == ["sentences", "sentences"]
    assert own[0].receipt.recomputed() == pytest.approx(own[0].score, abs=5.1e-5)
    assert all(one.score >= other.score for one, other in pairwise(hits))


def test_other_texts_keep_their_places(engine: Engine) -> None:
    by_words = engine.search(QUESTION, refresh=False, plan=Plan(mode="keyword", diversity=0.999999)).hits
    paths = [hit.path for hit in engine.search(QUESTION, refresh=False).hits]
    assert paths[:3] == [hit.path for hit in by_words][:3]


def test_pages_of_any_size_have_one_order(engine: Engine) -> None:
    whole = [hit.id for hit in engine.search(QUESTION, refresh=False, limit=20)]
    for size in (1, 3, 7):
        pages = [engine.search(QUESTION, refresh=False, limit=size, offset=at) for at in range(0, 20, size)]
        assert [hit.id for page in pages for hit in page][:20] == whole


def test_explain_tells_the_same_rank(engine: Engine) -> None:
    for rank, hit in enumerate(engine.search(QUESTION, refresh=False, limit=3), 1):
        assert engine.explain(QUESTION, hit.id).rank == rank
