"""Collections are read as they are laid out, and what is wrong with them is named with its file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, PathNotFoundError, UsageError
from findling.pipelines.evaluation.evaluation_collections import (
    JudgedQuery,
    find_judgement,
    read_collection,
    read_documents,
)
from findling.service.export.evaluating import GOLDEN_SET

HEADING = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "small"
    (made / "qrels").mkdir(parents=True)
    (made / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Cats", "text": "Felines sleep."}\n\n{"_id": 2, "text": "Dogs bark.", "metadata": {}}\n'
    )
    (made / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "sleeping cat", "metadata": {"category": "animals"}}\n'
        '{"_id": "q2", "text": "barking"}\n{"_id": "q3", "text": "not judged"}\n'
    )
    (made / "qrels" / "test.tsv").write_text(f"{HEADING}q2\t2\t1\nq1\td1\t2\nq1\t2\t0\n")
    return made


def test_a_collection_in_beir_layout(folder: Path) -> None:
    collection = read_collection(folder)
    assert collection.name == "small"
    assert collection.files is None
    assert collection.queries == (
        JudgedQuery("q2", "barking", "", {"2": 1}),
        JudgedQuery("q1", "sleeping cat", "animals", {"d1": 2, "2": 0}),
    )
    assert [tuple(document) for document in read_documents(collection)] == [
        ("d1", "Cats", "Felines sleep."),
        ("2", "", "Dogs bark."),
    ]
    assert find_judgement(collection, "d1") == 3
    assert [query.qid for query in read_collection(folder, limit=1).queries] == ["q2"]


def test_a_byte_order_mark_windows_lines_and_no_heading_are_fine(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_bytes(b"\xef\xbb\xbfq1\td1\t1\r\nq2\t2\t1\r\n")
    assert [query.grades for query in read_collection(folder).queries] == [{"d1": 1}, {"2": 1}]


def test_queries_without_a_relevant_document_are_left_out_and_counted(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text(f"{HEADING}q1\td1\t0\nq2\t2\t1\n")
    collection = read_collection(folder)
    assert [query.qid for query in collection.queries] == ["q2"]
    assert collection.unanswerable == 1


def test_which_judgements_are_used(folder: Path) -> None:
    (folder / "qrels" / "dev.tsv").write_text(f"{HEADING}q1\td1\t1\n")
    assert len(read_collection(folder).queries) == 2
    assert len(read_collection(folder, split="dev").queries) == 1
    with pytest.raises(PathNotFoundError, match=r"train\.tsv") as caught:
        read_collection(folder, split="train")
    assert caught.value.hint == "--split with one of: dev, test"
    (folder / "qrels" / "test.tsv").unlink()
    assert read_collection(folder).qrels.name == "dev.tsv", "the only one there is"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("queries.jsonl", '{"_id": "q1", "text": "a"}\n{"_id"\n', r"queries\.jsonl:2: not JSON"),
        ("queries.jsonl", "[1]\n", r"queries\.jsonl:1: not a JSON object"),
        ("queries.jsonl", '{"_id": "q1"}\n', r"queries\.jsonl:1: text must be text, not None"),
        ("queries.jsonl", '{"_id": "", "text": "a"}\n', r"queries\.jsonl:1: _id must be text"),
        ("queries.jsonl", '{"_id": "q1", "text": "a"}\n', r"test\.tsv:2: the query 'q2' is not in .*queries\.jsonl"),
        ("queries.jsonl", "\udcff", r"queries\.jsonl is not UTF-8"),
        ("qrels/test.tsv", f"{HEADING}q1\td1\n", r"test\.tsv:2: not a query id"),
        ("qrels/test.tsv", f"{HEADING}q1\td1\t1\n\nq1\td2\tmuch\n", r"test\.tsv:4: not a query id"),
        ("qrels/test.tsv", HEADING, r"test\.tsv judges no document relevant"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InvalidValueError, match=message):
        read_collection(folder)


def test_documents_that_are_wrong_are_named(folder: Path) -> None:
    corpus = folder / "corpus.jsonl"
    corpus.write_text('{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n')
    with pytest.raises(InvalidValueError, match=r"corpus\.jsonl:2: the _id 'a' was there before"):
        list(read_documents(read_collection(folder)))
    corpus.write_text('{"_id": "a", "text": null}\n')
    with pytest.raises(InvalidValueError, match=r"corpus\.jsonl:1: text must be text, not None"):
        list(read_documents(read_collection(folder)))


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_part_that_is_missing_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(UsageError, match=Path(missing).name):
        read_collection(folder)
    with pytest.raises(PathNotFoundError, match="there is no folder"):
        read_collection(folder / "nowhere")


def test_the_golden_set_that_ships_is_sound() -> None:
    collection = read_collection(GOLDEN_SET)
    texts = {}
    for line in (GOLDEN_SET / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts[row["_id"]] = row["text"]
    assert collection.files is not None
    assert collection.unanswerable == 0
    assert {query.qid: query.text for query in collection.queries} == texts, "every query is judged"
    assert len(texts) >= 40
    assert {query.category for query in collection.queries} == {
        "conceptual", "identifier", "keyword", "procedural", "question",
    }  # fmt: skip
    for query in collection.queries:
        assert max(query.grades.values()) == 2, f"{query.qid} has no best answer"
        for path in query.grades:
            assert (collection.files / path).is_file(), f"{query.qid}: {path}"
    size = sum(path.stat().st_size for path in GOLDEN_SET.rglob("*") if path.is_file())
    assert size < 300_000, "it is in every wheel"
