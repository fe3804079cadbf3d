"""An explanation says what is true: what keeps a passage out, how many hits there are, and nothing of hidden things."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.plans import Plan
from findling.domain.resources import Resource
from findling.domain.results import Explanation
from findling.faces.cli.main import run
from findling.pipelines.indexing.freshness import UNSURE_NS
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from tests.counts import sample

FILLER = "\n\n".join(f"Paragraph {n}. " + "nothing to see here. " * 20 for n in range(10))
LONG = f"The tapir is shy.\n\n{FILLER}\n\nIt lives alone.\n\n{FILLER}\n\nA tapir, a tapir and a tapir.\n"
TWIN = "The gateway answers every request for a badger with a list of all the burrows in the wood, newest first."

Opened = Callable[..., Engine]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Open an engine with settings of its own over a folder that holds nothing."""
    (tmp_path / "root").mkdir()
    with ExitStack() as engines:

        def open_with(**changes: object) -> Engine:
            own = {"store.home": str(tmp_path / "home"), "semantic.refine": "never", "search.mode": "keyword"}
            named = {name.replace("__", "."): value for name, value in changes.items()}
            settings = Settings().override({**own, **named}, "test")
            return engines.enter_context(open_engine(tmp_path / "root", settings=settings))

        yield open_with


@pytest.fixture
def engine(opened: Opened) -> Engine:
    engine = opened()
    engine.add(_notes({"long": LONG, "short": "A tapir was seen.", "other": "Nothing of that kind."}))
    return engine


def _notes(texts: dict[str, str], **fields: Any) -> list[tuple[Resource, str]]:
    return [(Resource(rid=f"n:{name}", type="note", title=name, **fields), text) for name, text in texts.items()]


def _ask(engine: Engine, query: str, name: str, **options: Any) -> Explanation:
    return engine.explain(query, name, refresh=False, **options)


def _ids(engine: Engine, rid: str) -> list[str]:
    document = engine._files.store.document(rid)
    assert document is not None
    return [f"{chunk.cid:016x}" for chunk in document.chunks]


PLANS = {
    "keyword": Plan(mode="keyword"),
    "semantic": Plan(mode="semantic", budget_ms=0.0),
    "high scores by both": Plan(min_score=0.5, budget_ms=0.0),
    "few": Plan(mode="keyword", adaptive_k=True, diversity=0.5),
    "moved": Plan(mode="keyword", boosts=True, phrase_boost=3.0, overfetch=1.0),
}


@pytest.mark.parametrize("unit", ["chunk", "page"])
@pytest.mark.parametrize("plan", PLANS)
def test_found_is_what_a_search_finds_and_all_else_has_a_reason(opened: Opened, plan: str, unit: str) -> None:
    engine = opened(keyword__unit=unit, search__mode="hybrid")
    texts = {"long": LONG, "short": "A tapir was seen.", "other": "Burrows of animals.", "empty": ""}
    engine.add(_notes({**texts, "one": f"badger {TWIN}", "two": TWIN}))
    rids = [f"n:{name}" for name in (*texts, "one", "two")]
    chunks = [id_ for rid in rids for id_ in _ids(engine, rid)]
    ids = [*rids, *sample(chunks, short=5)]
    queries = (
        "tapir",
        "tapir AND alone",
        "type:note",
        "-tapir",
        '"lives alone"',
        "shy animal",
        "badger burrows",
        "!!!",
    )
    for query in queries:
        for options in ({"limit": 2, "offset": 1}, {"exclude_pattern": "newest|shy"}):
            hits = engine.search(query, refresh=False, plan=PLANS[plan], **options).hits
            shown = {hit.id for hit in hits} | {hit.rid for hit in hits}
            shown |= {name for hit in hits for one in hit.passages for name in (one.id, one.rid)}
            for id_ in ids:
                told = _ask(engine, query, id_, plan=PLANS[plan], **options)
                assert told.found == (id_ in shown), (query, options, id_, told)
                assert told.found == (not told.reasons), (query, options, id_, told)
                assert told.shown == len(hits)


@pytest.mark.parametrize("options", [{"min_score": 0.99}, {"plan": Plan(mode="keyword", min_score=0.99)}])
def test_a_score_below_what_is_asked_for_is_the_reason(engine: Engine, options: dict[str, Any]) -> None:
    told = _ask(engine, "tapir", "n:short", **options)
    assert (told.found, told.shown, told.rank > 0) == (False, 0, True)
    (reason,) = told.reasons
    assert "is below the 0.99 that is asked for" in reason
    assert told.hit is not None and told.hit.score < 0.99


def test_a_twin_that_another_hit_stands_for(engine: Engine, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "root" / f"{name}.md").write_text(TWIN)
    engine.add(_notes({"one": TWIN}))
    engine.index()
    shown = engine.search("badger burrows", limit=5)
    assert [len(hit.passages) for hit in shown if hit.type == "file"] == [1]
    assert (len(shown), shown.total) == (2, 3)
    for name in ("one.md", "two.md"):
        told = _ask(engine, "badger burrows", name)
        assert (told.found, told.shown) == (True, 2)


def test_browsing_shows_one_passage_of_a_resource(engine: Engine) -> None:
    (shown,) = [hit for hit in engine.search("type:note", refresh=False) if hit.rid == "n:long"]
    others = [id_ for id_ in _ids(engine, "n:long") if id_ != shown.id]
    assert others
    for other in others:
        told = _ask(engine, "type:note", other)
        assert not told.found
        (reason,) = told.reasons
        assert f"another passage of it, {shown.id}, stands for all of it as hit " in reason
    assert _ask(engine, "type:note", shown.id).found


def test_a_page_is_asked_for_by_the_id_of_any_of_its_passages(opened: Opened) -> None:
    engine = opened(keyword__unit="page")
    engine.add(_notes({"long": LONG, "other": "Nothing of that kind."}))
    ids = _ids(engine, "n:long")
    (hit,) = engine.search("tapir", refresh=False).hits
    assert hit.id != ids[0], "the leg has another id for the page than the hit"
    for query in ("tapir", "tapir AND alone"):
        told = _ask(engine, query, hit.id if query == "tapir" else "n:long")
        assert (told.found, told.rank, told.reasons) == (True, 1, ())
        assert [(leg.leg, leg.found, leg.rank) for leg in told.legs] == [("keyword", True, 1)]
    told = _ask(engine, "tapir", ids[1])
    assert (told.found, told.legs[0].found) == (False, True)
    assert told.reasons == (f"another passage of it, {hit.id}, stands for all of it as hit 1",)
    told = _ask(engine, "tapir AND unicorn", hit.id)
    assert told.reasons == ("it does not have unicorn",)
    told = _ask(engine, "tapir", "n:long", exclude_pattern="a tapir and")
    assert told.reasons == ("the pattern a tapir and excludes it",)


def test_an_excluding_pattern_is_tested(engine: Engine) -> None:
    told = _ask(engine, "tapir", "n:short", exclude_pattern="was se+n")
    assert told.reasons == ("the pattern was se+n excludes it",)
    told = _ask(engine, "tapir", "n:long", exclude_pattern="(The|a) tapir")
    passages = len(_ids(engine, "n:long"))
    assert told.reasons == (f"the pattern (The|a) tapir excludes 2 of its {passages} passages",)
    told = _ask(engine, "tapir", "n:other", exclude_pattern="was se+n")
    assert told.reasons == ("it does not have tapir",)


def test_shown_is_how_many_hits_the_answer_has(engine: Engine) -> None:
    hits = engine.search("tapir", refresh=False).hits
    assert 1 < len(hits) < 10
    assert _ask(engine, "tapir", "n:short").shown == len(hits)
    assert _ask(engine, "tapir", "n:other", limit=1).shown == 1
    assert _ask(engine, "unicorn", "n:other").shown == 0
    last = hits[-1].id
    told = _ask(engine, "tapir", last, limit=1)
    (reason,) = told.reasons
    assert reason == f"it is hit {len(hits)}, and at most 1 are shown; findling search -k {len(hits)}"
    told = _ask(engine, "tapir", hits[0].id, offset=1)
    assert told.reasons == ("it is hit 1, and the answer leaves out the first 1",)
    told = _ask(engine, "tapir", last, offset=1)
    assert (told.found, told.rank, told.shown) == (True, len(hits), len(hits) - 1)


def test_the_command_line_counts_the_hits_and_tells_what_was_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FINDLING_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "workspaces"))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")
    monkeypatch.setenv("FINDLING_SEARCH_MODE", "keyword")
    root = tmp_path / "root"
    root.mkdir()
    for name, text in {"tapir.md": "One tapir.", "okapi.md": "An okapi.", "pair.md": "Okapi and eland."}.items():
        (root / name).write_text(text)
    time.sleep(2 * UNSURE_NS / 1e9)  # what has just changed is looked at twice

    def first_line(*args: str) -> tuple[int, str, str]:
        code = run(["search", args[0], str(root), "--explain-hit", args[1]])
        out, err = capfd.readouterr()
        return code, out.partition("\n")[0], err

    code, line, err = first_line("unicorn", "tapir.md")
    assert (code, line) == (1, "tapir.md is not in the answer: there are no hits")
    assert err == f"findling: indexing {root}: it has no index yet\n"
    assert first_line("tapir", "okapi.md") == (1, "okapi.md is not in the answer: there is one other hit", "")
    assert first_line("okapi", "tapir.md") == (1, "tapir.md is not among the 2 hits", "")
    assert first_line("tapir", "tapir.md") == (0, "tapir.md is hit 1 of 1", "")
    monkeypatch.setenv("FINDLING_SEARCH_MODE", "hybrid")
    monkeypatch.setenv("FINDLING_KEYWORD_UNIT", "page")
    code, line, err = first_line("tapir", "tapir.md")
    assert (code, line) == (0, "tapir.md is hit 1 of 1")
    assert "findling: whole pages are ranked by their words only\n" in err


def test_an_answer_that_ends_where_scores_fall_says_so(engine: Engine) -> None:
    near = {f"okapi {n}": "okapi okapi okapi" for n in range(3)}
    far = {f"far {n}": f"An okapi among {'many other ' * (60 + n)} words." for n in range(4)}
    engine.add(_notes(near | far))
    plan = Plan(mode="keyword", adaptive_k=True)
    shown = {hit.id for hit in engine.search("okapi", refresh=False, plan=plan)}
    cut = [hit for hit in engine.search("okapi", refresh=False) if hit.id not in shown]
    assert cut
    told = _ask(engine, "okapi", cut[-1].id, plan=plan)
    assert (told.found, told.shown, told.rank) == (False, len(shown), len(shown) + len(cut))
    (reason,) = told.reasons
    assert "adaptive_k ends the answer there" in reason


def test_what_stands_in_the_way_of_a_full_answer_is_told(opened: Opened) -> None:
    engine = opened(search__mode="hybrid", keyword__unit="page")
    engine.add(_notes({"short": "A tapir was seen."}))
    engine.root.rmdir()
    told, answer = engine.explain("tapir", "n:short"), engine.search("tapir")
    assert [one.what for one in told.degraded] == [
        f"{engine.root} is gone; the answer comes from the index alone",
        "whole pages are ranked by their words only",
    ]
    assert told.degraded == answer.degraded
    assert told.to_dict()["degraded"][0]["fix"] == "findling index"


def test_a_leg_that_turns_out_to_be_damaged_is_mended_and_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _ask(engine, "tapir", "n:short")
    # As in an index whose files are larger than an open checks.
    monkeypatch.setattr("findling.stores.keyword.segment_files.unsound_part", lambda folder, most=0: "")
    engine._files._release_leg()
    for file in (engine.home / "keyword").glob("*.idx"):
        # All but the end, which holds the length that is checked when the file is opened.
        content = file.read_bytes()
        file.write_bytes(b"\xff" * (len(content) - 200) + content[-200:])
    assert engine._files.level_leg() is None, "only a query comes upon it"
    told = _ask(engine, "tapir", "n:short")
    assert [one.what for one in told.degraded] == ["the keyword leg was damaged and has been rebuilt"]
    assert _ask(engine, "tapir", "n:short") == before


@pytest.mark.parametrize(
    "name",
    [":1" * 3000, "n:short" + ":1" * 3000, "n:short:" + "9" * 5000, ":", "::", "f" * 16, "0" * 16, "n:\x00"],
)
def test_no_name_is_too_odd_to_be_looked_for(engine: Engine, name: str) -> None:
    with pytest.raises(NotFoundError):
        _ask(engine, "tapir", name)


def test_a_line_names_the_passage_around_it(engine: Engine) -> None:
    document = engine._files.store.document("n:long")
    assert document is not None
    last = document.chunks[-1]
    told = _ask(engine, "tapir", f"n:long:{last.line_end}")
    assert told.hit is not None and told.hit.id == f"{last.cid:016x}"


def test_what_a_caller_may_not_see_is_not_there(engine: Engine) -> None:
    engine.add(_notes({"secrets-plan": "Our tapir.", "secrets-diary": "My tapir."}, visibility=("user:boss",)))
    engine.add(_notes({"secrets-open": "Your tapir."}, visibility=("user:boss", "user:ann")))
    (hidden,) = _ids(engine, "n:secrets-plan")
    ann = ("user:ann",)
    for name in ("n:secrets-plan", "n:secrets-p", hidden, "n:secrets-plan:1", f"{hidden}:1", "n:secrets-nothing"):
        with pytest.raises(NotFoundError) as error:
            _ask(engine, "tapir", name, principals=ann)
        assert str(error.value).startswith(f"there is no {name} in the index")
    assert _ask(engine, "tapir", "n:secrets-", principals=ann).rid == "n:secrets-open"
    for everything in (None, ("user:boss",)):
        with pytest.raises(InvalidValueError, match="is the beginning of 3 ids"):
            _ask(engine, "tapir", "n:secrets-", principals=everything)


def test_a_hidden_file_does_not_stand_in_the_way_of_another(engine: Engine) -> None:
    engine.add(
        [(Resource(rid="a.md", visibility=("user:boss",)), "tapir"), (Resource(rid="file:a.md", path="a.md"), "tapir")]
    )
    assert _ask(engine, "tapir", "a.md").rid == "a.md"
    with pytest.raises(NotFoundError):
        _ask(engine, "tapir", "a.md", principals=("user:ann",))
    engine.add([(Resource(rid="file:a.md", path="a.md", visibility=("user:ann",)), "tapir")])
    assert _ask(engine, "tapir", "a.md", principals=("user:ann",)).rid == "file:a.md"


def test_a_filter_on_what_holds_does_not_name_what_no_longer_does(engine: Engine) -> None:
    engine.add(_notes({"hidden": "An old tapir."}, visibility=("user:boss",)))
    engine.add(_notes({"heir": "A tapir."}, visibility=("user:ann",), fields={"supersedes": "n:hidden"}))
    for query in ("tapir is:superseded", "tapir is:head", "tapir (type:chat OR is:superseded)"):
        told = _ask(engine, query, "n:heir", principals=("user:ann",))
        assert "hidden" not in str(told.filters) + str(told.reasons), query
    told = _ask(engine, "tapir is:superseded", "n:heir")
    assert ("is:superseded", False) in told.filters
    assert told.reasons == ("the filter is:superseded leaves it out",)
