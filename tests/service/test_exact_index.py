"""The exact leg of a workspace: built behind a search, kept up by index runs, rebuilt when it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.backends import EXACT
from findling.domain.errors import InvalidValueError
from findling.domain.ports import ExactLeg
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import lazy_legs
from findling.service.settings.settings import load_settings


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(lazy_legs, "LEAST_CHARACTERS", 100)
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(20):
        (root / f"file{number}.py").write_text(f"def get_backoff_{number}(self):\n    return self.delay * {number}\n")
    (root / "notes.md").write_text("# Notes\n\nThe retry waits: getBackoff( twice.\n")
    own = {"store.home": str(tmp_path / "home"), "semantic.model": "off", "semantic.instant": False}
    with open_engine(root, settings=load_settings(root).override(own, "test")) as engine:
        yield engine


def paths(answer: SearchAnswer) -> set[str]:
    return {hit.path for hit in answer.hits}


def steps(answer: SearchAnswer) -> list[str]:
    return [step["did"] for step in answer.plan["steps"] if step["name"] == "exact"]


def test_a_first_index_has_no_exact_leg_and_a_pattern_brings_it_up(engine: Engine) -> None:
    first = engine.search(r"/get_backoff_1\d/", limit=50)
    assert len(paths(first)) == 10
    assert steps(first) == [r"/get_backoff_1\d/: 10 passages by a scan of 21 texts"]
    assert not engine.opened.files.backend.legs[EXACT].exists()
    assert (_lacks(engine), engine.opened.lazy("exact").is_due()) == (True, True)
    assert engine.opened.lazy("exact").level_if_due()
    assert (_lacks(engine), engine.opened.lazy("exact").is_due()) == (False, False)
    then = engine.search(r"/get_backoff_1\d/", limit=50)
    assert steps(then) == [r"/get_backoff_1\d/: 10 passages by the exact leg, which left 11 of 21 texts"]
    assert [(hit.path, hit.score) for hit in then.hits] == [(hit.path, hit.score) for hit in first.hits]
    assert next(check for check in engine.check() if check.name == "exact leg").ok


def test_plain_questions_and_little_text_want_no_leg(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.search("backoff delay")
    assert not _lacks(engine)
    monkeypatch.setattr(lazy_legs, "LEAST_CHARACTERS", 8_000_000)
    assert len(engine.search(r"/get_backoff_1\d/", limit=50).hits) == 10
    assert not _lacks(engine) and not engine.opened.lazy("exact").level_if_due()


def test_what_has_changed_since_is_found_and_the_next_run_catches_up(engine: Engine) -> None:
    engine.search(r"/backoff_\d/")
    engine.opened.lazy("exact").level_if_due()
    reached = _reached(engine)
    (engine.root / "new.py").write_text("def fresh_backoff_99(): pass\n")
    (engine.root / "file3.py").write_text("nothing of the kind\n")
    (engine.root / "file4.py").unlink()
    found = paths(engine.search(r"/backoff_(3|4|99)\b/"))
    assert found == {"new.py"}
    assert _reached(engine) == reached < engine.status().seq
    assert engine.opened.lazy("exact").level_if_due()
    assert _reached(engine) == engine.status().seq
    assert paths(engine.search(r"/backoff_(3|4|5|99)\b/")) == {"new.py", "file5.py"}


def test_a_damaged_leg_is_scanned_around_and_rebuilt(engine: Engine) -> None:
    engine.search(r"/backoff_\d/")
    engine.opened.lazy("exact").level_if_due()
    engine.opened.lazy("exact").close()
    for part in (engine.home / "exact").glob("*.term"):
        part.write_bytes(b"\0" * part.stat().st_size)
    answer = engine.search(r"/get_backoff_7\b/")
    assert paths(answer) == {"file7.py"} and "scan" in steps(answer)[0]
    assert not all(check.ok for check in engine.check())
    assert engine.opened.lazy("exact").level_if_due()
    assert all(check.ok for check in engine.check() if "leg" in check.name)
    assert "exact leg" in steps(engine.search(r"/get_backoff_7\b/"))[0]
    engine.repair()
    assert "exact leg" in steps(engine.search(r"/get_backoff_8\b/"))[0]


def test_compaction_keeps_the_leg_and_measures_it(engine: Engine) -> None:
    engine.search(r"/backoff_\d/")
    engine.opened.lazy("exact").level_if_due()
    (engine.root / "new.py").write_text("def fresh_backoff_99(): pass\n")
    engine.index()
    report = engine.compact(full=True)
    assert "exact leg" in report.rewritten and report.after["exact leg"] > 0
    assert _reached(engine) == engine.status().seq
    assert "exact leg" in steps(engine.search("/fresh_back[o]ff/"))[0]


def test_patterns_and_words_go_together(engine: Engine) -> None:
    assert paths(engine.search("retry /getBackoff\\(/")) == {"notes.md"}
    assert paths(engine.search('"getBackoff(" case:yes')) == {"notes.md"}
    assert paths(engine.search('"getbackoff(" case:yes')) == set()
    assert paths(engine.search('"GETBACK" case:no')) == {"notes.md"}
    assert paths(engine.search(r"/get_?backoff/ file:*.md")) == {"notes.md"}
    assert len(paths(engine.search(r"self -/backoff_1?[0-5]\b/", limit=50))) == 8
    assert paths(engine.search(r"(/backoff_7\b/ OR /backoff_8\b/)")) == {"file7.py", "file8.py"}
    hit = engine.search(r"/waits: \w+\(/").hits[0]
    assert hit.line == 3 and [part.leg for part in hit.receipt.parts][-1] == "exact"
    assert "1 match" in str(hit.receipt.parts[-1].why)
    assert engine.explain(r"/waits: \w+\(/", "notes.md").found


def test_nothing_found_says_so(engine: Engine) -> None:
    answer = engine.search(r"/nowhere_\d+/")
    assert (answer.hits, answer.total) == ((), 0)
    assert any("nothing here has" in note for note in answer.notes)


def test_a_pattern_without_a_trigram_is_scanned_for(engine: Engine) -> None:
    answer = engine.search(r"/\d\d/", limit=50)
    assert "as no trigram follows from it" in steps(answer)[0]
    assert len(paths(answer)) == 10


def test_a_scan_that_is_cut_is_said(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from findling.pipelines.retrieve import pattern_matches

    monkeypatch.setattr(pattern_matches, "_MOST_CHARACTERS", 200)
    answer = engine.search(r"/\d\d|self/", limit=50)
    assert any("was not looked for in" in str(note) for note in answer.degraded)


def test_the_search_that_misses_the_leg_starts_a_run(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from findling.service.engine import background

    started: list[list[str]] = []
    monkeypatch.setattr(background, "_start", lambda arguments, *_: started.append(arguments))
    settings = load_settings(engine.root).override({"semantic.refine": "background"}, "test")
    client = LocalClient(engine, settings=settings)
    client.search(SearchRequest(query="backoff"), refresh=True)
    client.finish()
    assert not [one for one in started if one[0] == "index"]
    client.search(SearchRequest(query=r"/backoff_\d/"))
    client.finish()
    assert [one[0] for one in started if one[0] == "index"] == ["index"]


def test_a_limited_caller_sees_own_matches_and_may_not_use_every_expression(engine: Engine) -> None:
    engine.add(
        [
            (Resource(rid=f"note:{who}", type="note", visibility=(f"user:{who}",)), f"secret_{who} = [{who}]")
            for who in ("ann", "bob")
        ]
    )
    engine.search(r"/secret_\w+/")
    engine.opened.lazy("exact").level_if_due()
    ann = engine.as_caller("user:ann")
    for query in ('"SECRET_" case:no', "/secret_[ab]/", r"/secret_\w\w\w = \[/"):
        answer = ann.search(query, limit=50)
        assert {hit.rid for hit in answer.hits} == {"note:ann"}
        assert not any("leg" in one or "scan" in one for one in steps(answer))
    with pytest.raises(InvalidValueError, match="only the owner may use"):
        ann.search(r"/(a+)+b/")


def _lacks(engine: Engine) -> bool:
    return engine.opened.lacks_leg


def _reached(engine: Engine) -> int:
    leg: ExactLeg | None = engine.opened.lazy("exact").opened()
    assert leg is not None
    return leg.seq()
