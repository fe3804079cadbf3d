"""`findling eval` from end to end: real collections, real searches, real files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from findling.domain.results import SCHEMA_VERSION
from findling.faces.cli.output.evaluation_text import Bar, draw_bars
from findling.ranking.metrics import MEASURES

Findling = Callable[..., tuple[int, str, str]]

DOCUMENTS = {
    "cats": "A cat sleeps on the carpet all day.\n\nIt dreams of mice.",
    "dogs": "A dog guards the house at night.",
    "birds": "A bird sings on the roof in the morning.",
    "long": "\n\n".join(f"Chapter {number}. " + "The whale dives in the sea. " * 60 for number in range(8)),
}
QUERIES = {"q1": "cat carpet", "q2": "guards house", "q3": "whale sea", "q4": "nobody asked this"}
QRELS = [
    ("q1", "cats", 2),
    ("q1", "birds", 1),
    ("q2", "dogs", 1),
    ("q3", "long", 1),
    ("q3", "gone", 1),
    ("q4", "cats", 0),
]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """Four documents, one of them in many chunks; four judged queries, one of them without an answer."""
    folder = tmp_path / "animals"
    rows = [{"_id": rid, "title": "", "text": text} for rid, text in DOCUMENTS.items()]
    return write_set(folder, {"corpus.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """The same as files."""
    folder = tmp_path / "handbook"
    names = {"cats": "pets/cats.md", "dogs": "pets/dogs.md", "birds": "birds.txt", "long": "long.txt"}
    files = {f"files/{names[rid]}": text for rid, text in DOCUMENTS.items()}
    write_set(folder, files)
    rows = [(query, names[rid], grade) for query, rid, grade in QRELS if rid in names]
    write_judgements(folder, rows)
    return folder


def write_set(folder: Path, files: dict[str, str]) -> Path:
    queries = [
        {"_id": qid, "text": text, "metadata": {"category": "land" if qid in ("q1", "q2") else "water"}}
        for qid, text in QUERIES.items()
    ]
    for name, content in {**files, "queries.jsonl": "".join(json.dumps(row) + "\n" for row in queries)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    write_judgements(folder, QRELS)
    return folder


def write_judgements(folder: Path, rows: list[tuple[str, str, int]]) -> None:
    (folder / "qrels").mkdir(exist_ok=True)
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{rid}\t{grade}" for query, rid, grade in rows)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")


def run_json(findling: Findling, *args: str) -> dict[str, Any]:
    code, out, err = findling("eval", *args, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_a_collection_in_beir_layout(findling: Findling, beir: Path, tmp_path: Path) -> None:
    document = run_json(findling, str(beir), "--profile", "keyword")
    assert document["schema"] == SCHEMA_VERSION
    assert document["plan"]["gain"] == "linear"
    (collection,) = document["collections"]
    assert (collection["name"], collection["documents"]) == ("animals", 4)
    assert (collection["unanswerable"], collection["missing"]) == (1, 1)
    (run,) = collection["runs"]
    assert (run["label"], run["settings"]["search.mode"]) == ("keyword", "keyword")
    ranks = {query["qid"]: query["ranks"] for query in run["queries"]}
    assert ranks["q2"] == {"dogs": 1}
    assert ranks["q3"] == {"long": 1, "gone": None}, "what the corpus does not hold stays relevant"
    assert ranks["q1"]["cats"] == 1
    assert run["measures"]["Success@1"] == 1
    assert run["measures"]["P@5"] <= 0.4, "a document in many chunks counts once"
    assert not (tmp_path / "workspaces").exists(), "an evaluation leaves nothing behind"


def test_the_table(findling: Findling, golden: Path) -> None:
    code, out, err = findling("eval", str(golden), "--profile", "keyword", "--set", "search.min_score=0.001")
    assert code == 0
    assert "search.min_score = 0.001\n" in out
    assert "linear gain, as in trec_eval" in out
    assert "handbook: 4 documents, " in out and "3 queries, 1 more without a relevant document left out" in out
    lines = out.splitlines()
    heading = next(line for line in lines if line.startswith("collection"))
    assert heading.split() == ["collection", "run", *MEASURES, "CPU", "ms"]
    assert any(line.startswith("handbook") and line.split()[1] == "keyword" for line in lines)
    assert [line.split()[:2] for line in lines if "(" in line and ")" in line] == [["land", "(2)"], ["water", "(1)"]]
    assert "handbook: indexing" in err and "indexing" not in out


def test_several_collections_have_a_mean(findling: Findling, golden: Path, beir: Path) -> None:
    _, out, _ = findling("eval", str(golden), str(beir), "--profile", "keyword")
    figures = [float(line.split()[2]) for line in out.splitlines() if line.split()[1:2] == ["keyword"]]
    assert len(figures) == 3
    assert figures[2] == pytest.approx((figures[0] + figures[1]) / 2, abs=1e-4)


def test_two_evaluations_compare(findling: Findling, beir: Path, tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    assert findling("eval", str(beir), "--profile", "keyword", "--save", str(saved))[0] == 0
    write_judgements(beir, [("q1", "dogs", 1), ("q2", "dogs", 1), ("q3", "long", 1)])
    code, out, _ = findling("eval", str(beir), "--profile", "keyword", "--compare", str(saved), "--per-query")
    assert code == 0
    assert "saved keyword" in out
    table = out[out.index("animals, against saved keyword") :].splitlines()
    assert table[1].split()[:4] == ["query", "NDCG@10", "baseline", "change"]
    changes = [float(line.split()[3]) for line in table[2:]]
    assert table[2].startswith("q1"), "the worst loss comes first"
    assert changes == sorted(changes)
    document = run_json(findling, str(beir), "--profile", "keyword", "--compare", str(saved))
    (comparison,) = document["comparisons"]
    assert (comparison["losses"], comparison["queries"]) == (1, 3)
    _, _, err = findling("eval", "--limit-queries", "1", "--profile", "keyword", "--compare", str(saved))
    assert "was measured on these collections" in err


def test_every_profile_at_every_speed_is_held_against_the_first(findling: Findling, beir: Path) -> None:
    profiles = ("--profile", "keyword", "--profile", "hybrid", "--profile", "semantic")
    document = run_json(findling, str(beir), *profiles, "--speed", "both")
    labels = [run["label"] for run in document["collections"][0]["runs"]]
    assert labels == ["keyword", "hybrid, instant", "semantic, instant", "hybrid, refined", "semantic, refined"]
    assert [comparison["run"] for comparison in document["comparisons"]] == labels[1:]
    assert {comparison["baseline"] for comparison in document["comparisons"]} == {"keyword"}


def test_the_golden_set_that_ships(findling: Findling) -> None:
    code, out, _ = findling("eval", "--profile", "keyword", "--limit-queries", "11", "--per-query")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("golden "))
    assert float(row.split()[3]) > 0.8, "queries in the words of the pages are what a keyword search is good at"
    assert sum(line.startswith("keyword-") for line in out.splitlines()) == 11


def test_ignore_files_above_a_golden_set_have_no_say(findling: Findling, golden: Path) -> None:
    """The shipped set lies in an environment, which repositories ignore."""
    (golden.parent / ".git").mkdir()
    (golden.parent / ".gitignore").write_text("*\n")
    (collection,) = run_json(findling, str(golden), "--profile", "keyword")["collections"]
    assert collection["documents"] == 4


def test_a_judged_file_that_is_not_indexed_is_named(findling: Findling, golden: Path) -> None:
    (golden / "files" / ".gitignore").write_text("birds.txt\n")
    (golden / "files" / ".git").mkdir()
    code, out, err = findling("eval", str(golden), "--profile", "keyword")
    assert (code, out) == (2, "")
    assert "test.tsv:3: birds.txt is judged, but not indexed: ignored" in err
    (golden / "files" / "birds.txt").unlink()
    _, _, err = findling("eval", str(golden), "--profile", "keyword")
    assert "birds.txt is judged, but not indexed: there is no such file" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere",), "there is no folder nowhere"),
        ((".",), "has neither corpus.jsonl nor files/"),
        (("--profile", "magic"), "no profile is called magic"),
        (("--set", "keyword.k1=1"), "keyword.k1 is no setting any more"),
        (("--set", "search.min_score=much"), "search.min_score must be a number"),
        (("--set", "search.min_score"), "--set wants NAME=VALUE"),
        (("--set", "search.refresh=never"), "an evaluation sets search.refresh itself"),
        (("--split", "train"), "train.tsv"),
        (("--save", "nowhere/run.json"), "there is no folder nowhere"),
        (("--save", "."), "is a folder"),
        (("--compare", "nothing.json"), "nothing.json cannot be read"),
        (("--limit-queries", "0"), "0 is not in the range"),
    ],
)
@pytest.mark.usefixtures("project")
def test_mistakes_are_named(findling: Findling, args: tuple[str, ...], message: str) -> None:
    code, out, err = findling("eval", *args)
    assert (code, out) == (2, "")
    assert message in err


def test_mistakes_are_found_before_anything_is_measured(findling: Findling, beir: Path) -> None:
    for second, message in (("nowhere", "there is no folder"), (str(beir), "two collections are called animals")):
        code, out, err = findling("eval", str(beir), second)
        assert (code, out) == (2, "")
        assert message in err and "indexing" not in err


def test_the_plot(findling: Findling, beir: Path, golden: Path, tmp_path: Path) -> None:
    plot = tmp_path / "bars.svg"
    code, _, _ = findling("eval", str(beir), str(golden), "--profile", "keyword", "--save", str(plot))
    assert code == 0
    drawing = ElementTree.fromstring(plot.read_text(encoding="utf-8"))
    names = {element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"animals", "handbook", "keyword"} <= names
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) == 2, "a whisker for each bar"


def test_a_drawing_is_safe_and_its_bars_are_as_high_as_their_values() -> None:
    name = '<script>"&'
    drawn = draw_bars(name, {name: [Bar(name, 0.5, 0.4, 0.6), Bar("b", 1.0, 1.0, 1.0), Bar("c", 0, 0, 0)]})
    drawing = ElementTree.fromstring(drawn)
    assert not [element for element in drawing.iter() if "script" in element.tag]
    bars = [rect for rect in drawing.iter("{http://www.w3.org/2000/svg}rect") if len(rect)]
    half, full, none = (float(bar.get("height", "")) for bar in bars)
    assert half == pytest.approx(full / 2)
    assert none == 0
    assert "prefers-color-scheme: dark" in drawn
    assert len({bar.get("fill") for bar in bars}) == 3
