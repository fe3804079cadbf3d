"""Scores after edits and deletions, asked at once: those of a fresh index, from the command and from a daemon."""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.counts import tries
from tests.faces.daemons import be_patient, daemon_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")

Findling = Callable[..., tuple[int, str, str]]

FILES = tries(150, short=40)
CHANGED, DELETED = FILES // 5, FILES * 2 // 5
QUESTIONS = (
    "how is a connection closed",
    "read a line of a file",
    "encoding of a string",
    "ImportError",
    "parse the arguments of a command",
    "which thread holds the lock",
    "default value",
    "date AND time",
)


def test_scores_do_not_tell_what_was_there_before(
    home: Path, monkeypatch: pytest.MonkeyPatch, findling: Findling
) -> None:
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    texts = [source.read_text("utf-8")[:2_500] for source in sources if source.stat().st_size > 3_000]
    root, places = home / "tree", {name: str(home / name) for name in ("alone", "served", "fresh")}
    root.mkdir()
    for number in range(FILES):
        (root / f"m{number}.py").write_text(texts[number])
    monkeypatch.chdir(root)
    monkeypatch.setenv("FINDLING_SEARCH_MODE", "hybrid")
    monkeypatch.setenv("FINDLING_SEMANTIC_QUERY_BUDGET_MS", "0")  # what a model has read by then is a matter of time
    be_patient(monkeypatch)

    def answers(place: str, *args: str) -> list[list[tuple[str, int, float]]]:
        monkeypatch.setenv("FINDLING_HOME", places[place])
        given = []
        for question in QUESTIONS:
            code, out, err = findling("search", question, "--json", "-k", "50", *args)
            assert code in (0, 1), err
            answer = json.loads(out)
            assert not answer["degraded"]
            assert (answer.get("served_by", "") != "") is (place == "served"), answer.get("served_by")
            given.append([(hit["path"], hit["line_start"], hit["score"]) for hit in answer["hits"]])
        return given

    for place in ("alone", "served"):
        monkeypatch.setenv("FINDLING_HOME", places[place])
        assert findling("index")[0] == 0
    with daemon_of(Path(places["served"]), root, "--no-watch"):
        before = answers("alone", "--set", "serve.use=never")
        for number in range(CHANGED):
            (root / f"m{number}.py").write_text(texts[-number - 1])
        for number in range(CHANGED, CHANGED + DELETED):
            (root / f"m{number}.py").unlink()
        alone, served, fresh = (
            answers("alone", "--set", "serve.use=never"),
            answers("served"),
            answers("fresh", "--set", "serve.use=never"),
        )
    assert sum(map(len, fresh)) > len(QUESTIONS)
    assert before != fresh
    for place, one in (("alone", alone), ("served", served)):
        for question, found, wanted in zip(QUESTIONS, one, fresh, strict=True):
            scores = {hit[:2]: hit[2] for hit in found}
            assert scores == pytest.approx({hit[:2]: hit[2] for hit in wanted}, abs=1e-6), (
                place,
                question,
                found,
                wanted,
            )
