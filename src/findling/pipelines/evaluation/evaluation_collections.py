"""Collections with judgements: documents to index, queries, and relevant documents.

corpus.jsonl     documents in BEIR layout: _id, title, text, one JSON object a line
files/           or instead of it a folder of files: then judgements name their paths below it
queries.jsonl    _id, text, and metadata.category for a table by category
qrels/test.tsv   query-id, corpus-id, score with tabs between them, below a line of headings
unanswerable.jsonl   if it is there: questions like those of queries.jsonl that nothing in the corpus answers
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.domain.values import read_json
from findling.ranking.metrics import Grades


class JudgedQuery(NamedTuple):
    """A query with its judgements."""

    qid: str
    text: str
    category: str
    grades: Grades


class CollectedDocument(NamedTuple):
    """One document of a corpus in BEIR layout."""

    rid: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class JudgedCollection:
    """The content of a folder; `files` is the folder to index, `None` for a corpus of documents.

    `unanswerable` counts the judged queries without a relevant document. `without` are questions that nothing answers.
    """

    name: str
    folder: Path
    qrels: Path
    files: Path | None
    queries: tuple[JudgedQuery, ...]
    unanswerable: int = 0
    without: tuple[str, ...] = ()


def read_collection(folder: Path, *, split: str | None = None, limit: int | None = None) -> JudgedCollection:
    """Read queries and judgements, only of the first `limit` judged queries if that is given.

    Raises PathNotFoundError for a missing part, InvalidValueError naming the file and the line.
    """
    if not folder.is_dir():
        raise PathNotFoundError(f"there is no folder {folder}", hint="name a folder with queries.jsonl and qrels/")
    files = folder / "files" if (folder / "files").is_dir() else None
    if files is None and not (folder / "corpus.jsonl").is_file():
        raise PathNotFoundError(
            f"{folder} has neither corpus.jsonl nor files/", hint="name a folder in BEIR layout, or a golden set"
        )
    texts = _read_queries(folder / "queries.jsonl")
    unanswerable = folder / "unanswerable.jsonl"
    without = _read_queries(unanswerable) if unanswerable.exists() else {}
    qrels = _find_qrels(folder / "qrels", split)
    judged = list(_judged_queries(qrels, texts))
    answerable = [query for query in judged if any(grade > 0 for grade in query.grades.values())]
    if not answerable:
        raise InvalidValueError(f"{qrels} judges no document relevant", hint="give a score of 1 or more")
    return JudgedCollection(
        name=folder.resolve().name,
        folder=folder,
        qrels=qrels,
        files=files,
        queries=tuple(answerable[:limit]),
        unanswerable=len(judged) - len(answerable),
        without=tuple(text for text, _ in without.values())[:limit],
    )


def read_documents(collection: JudgedCollection) -> Iterator[CollectedDocument]:
    """The documents of the corpus. Raises InvalidValueError naming the line of a wrong or repeated one."""
    path = collection.folder / "corpus.jsonl"
    seen: set[str] = set()
    for line, row in _read_objects(path):
        rid = _text_of(row, "_id", path, line)
        if rid in seen:
            raise InvalidValueError(f"{path}:{line}: the _id {rid!r} was there before", hint="give each its own _id")
        seen.add(rid)
        title = _text_of(row, "title", path, line) if row.get("title") else ""
        yield CollectedDocument(rid, title, _text_of(row, "text", path, line))


def find_judgement(collection: JudgedCollection, rid: str) -> int:
    """The line of the first judgement of a document; 0 when there is none."""
    return next((line for line, _, judged, _ in _read_judgements(collection.qrels) if judged == rid), 0)


def _read_queries(path: Path) -> dict[str, tuple[str, str]]:
    """Id → text and category."""
    queries = {}
    for line, row in _read_objects(path):
        metadata = row.get("metadata") or {}
        category = metadata.get("category") if isinstance(metadata, dict) else None
        queries[_text_of(row, "_id", path, line)] = _text_of(row, "text", path, line), str(category or "")
    return queries


def _judged_queries(path: Path, texts: dict[str, tuple[str, str]]) -> Iterator[JudgedQuery]:
    """The queries in the order of the judgements."""
    judgements: dict[str, dict[str, int]] = {}
    for line, qid, rid, grade in _read_judgements(path):
        if qid not in texts:
            raise InvalidValueError(
                f"{path}:{line}: the query {qid!r} is not in {path.parent.parent / 'queries.jsonl'}",
                hint="add the query, or take its judgements out",
            )
        judgements.setdefault(qid, {})[rid] = grade
    for qid, grades in judgements.items():
        yield JudgedQuery(qid, *texts[qid], grades)


def _read_judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    for line, text in _read_lines(path):
        columns = text.split("\t")
        if line == 1 and columns[-1].strip() == "score":
            continue
        try:
            qid, rid, grade = columns
            yield line, qid, rid, int(grade)
        except ValueError:
            raise InvalidValueError(
                f"{path}:{line}: not a query id, a document id and a whole number with tabs between them: {text!r}",
                hint="write one judgement a line",
            ) from None


def _find_qrels(folder: Path, split: str | None) -> Path:
    """The file of a split; without one `test`, or the only file there is."""
    there = sorted(folder.glob("*.tsv"))
    chosen = folder / f"{split or 'test'}.tsv"
    if chosen in there:
        return chosen
    if split is None and len(there) == 1:
        return there[0]
    choices = ", ".join(path.stem for path in there)
    raise PathNotFoundError(
        f"there are no judgements in {chosen}", hint=f"--split with one of: {choices}" if choices else "add the file"
    )


def _read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in _read_lines(path):
        try:
            row = read_json(text)
        except ValueError as error:
            raise InvalidValueError(f"{path}:{line}: not JSON: {error}", hint="write one object a line") from None
        if not isinstance(row, dict):
            raise InvalidValueError(f"{path}:{line}: not a JSON object", hint="write one object a line")
        yield line, row


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            yield from ((number, text.rstrip("\r\n")) for number, text in enumerate(lines, 1) if text.strip())
    except OSError as error:
        raise PathNotFoundError(f"{path} cannot be read: {error.strerror}", hint="add the file") from error
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{path} is not UTF-8", hint="convert it") from error


def _text_of(row: dict[str, Any], key: str, path: Path, line: int) -> str:
    """The value of a key as text; some collections number their ids."""
    value = row.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or (key == "_id" and not value):
        raise InvalidValueError(f"{path}:{line}: {key} must be text, not {value!r}", hint="see the layout of BEIR")
    return value
