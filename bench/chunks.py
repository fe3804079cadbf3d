"""Quality of chunks: is the text that answers a question among the best chunks? For collections in BEIR layout.

    python bench/chunks.py FOLDER... [--join rows|doc|NUMBER] [--preset NAME]... [--set SETTING=VALUE]

The rows of a collection are made into files: each row one file, the rows of one document joined in order (`doc`), or
so many rows in random order (a number: what is looked for lies deep inside long files), titles as headings. Every
judged query is one keyword search. A relevant row is found when the chunks among the first k hits together hold at
least half of its visible characters. Prints, per preset, the share of relevant rows found (mean over the queries) in
the first 5, 10 and 20 chunks and in the first 4,096 tokens of the hits, which a large chunk uses up sooner; and how
many tokens chunks have and what part of them a model with 512 tokens never sees.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import findling
from findling.pipelines.indexing.document_build import make_document
from findling.service.settings.settings import chunk_plan, get_setting, parse_text
from findling.sources.extracted import Extracted
from findling.text.analysis.wordpieces import count_tokens
from findling.text.chunking.chunk_plan import PRESETS

Judgements = dict[str, dict[str, int]]
DEPTHS = (5, 10, 20)
BUDGET = 4096
DEEPEST = 100
MODEL_TOKENS = 510
"""What a model that reads 512 tokens has left for a text."""


Row = dict[str, str]


class File(NamedTuple):
    """What becomes a resource, and where in it each row stands."""

    resource: findling.Resource
    text: str
    rows: dict[str, tuple[int, int]]


class Place(NamedTuple):
    """A chunk of a file: where it stands and what it costs to read."""

    rid: str
    start: int
    end: int
    tokens: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--join", default="rows", metavar="rows|doc|NUMBER")
    parser.add_argument("--preset", action="append", choices=list(PRESETS), dest="presets")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", dest="changes")
    arguments = parser.parse_args()
    settings = findling.Settings()
    for change in arguments.changes:
        name, _, text = change.partition("=")
        settings = settings.override({name: parse_text(get_setting(name), text, "flag --set")}, "flag --set")
    print("settings:", ", ".join(arguments.changes) or "default", f"(join {arguments.join})")
    columns = ["files", "chunks", "tokens", "unseen", *(f"Pass@{depth}" for depth in DEPTHS), f"P@{BUDGET}t"]
    print(f"{'collection':20} {'preset':8}", *(f"{name:>8}" for name in columns))
    for folder in arguments.folders:
        files = list(read_files(folder, arguments.join))
        for preset in arguments.presets or PRESETS:
            row = measure(folder, files, settings.override({"chunk.preset": preset}, "flag --preset"))
            print(f"{folder.name:20} {preset:8}", *row, flush=True)


def measure(folder: Path, files: list[File], settings: findling.Settings) -> list[str]:
    """One row of the table."""
    judgements = read_judgements(folder / "qrels" / "test.tsv")
    queries = {row["_id"]: row["text"] for row in read_lines(folder / "queries.jsonl")}
    places = dict(chunk_places(files, settings))
    with tempfile.TemporaryDirectory() as home:
        own = {"store.home": home, "search.refresh": "never", "search.mode": "keyword", "semantic.instant": False}
        settings = settings.override(own, "bench")
        with findling.open(folder, settings=settings) as engine:
            engine.add((file.resource, file.text) for file in files)
            runs = {
                query: [places[hit.id] for hit in engine.search(queries[query], limit=DEEPEST)] for query in judgements
            }
    total = sum(place.tokens for place in places.values())
    unseen = sum(max(place.tokens - MODEL_TOKENS, 0) for place in places.values()) / total
    shares = [mean_share(files, judgements, {query: run[:depth] for query, run in runs.items()}) for depth in DEPTHS]
    shares.append(mean_share(files, judgements, {query: within_budget(run) for query, run in runs.items()}))
    counts = [len(files), len(places), total // len(places)]
    return [*(f"{count:8}" for count in counts), f"{unseen:8.4f}", *(f"{share:8.4f}" for share in shares)]


def mean_share(files: list[File], judgements: Judgements, runs: dict[str, list[Place]]) -> float:
    """The share of the relevant rows that each run holds, averaged over the queries."""
    where = {row: (file, span) for file in files for row, span in file.rows.items()}
    shares = []
    for query, run in runs.items():
        relevant = [row for row, grade in judgements[query].items() if grade > 0 and row in where]
        if relevant:
            shares.append(sum(is_found(*where[row], run) for row in relevant) / len(relevant))
    return sum(shares) / len(shares)


def is_found(file: File, span: tuple[int, int], run: list[Place]) -> bool:
    """Whether the chunks hold at least half of the visible characters in the span."""
    start, end = span
    held = bytearray(end - start)
    for place in run:
        if place.rid == file.resource.rid and place.start < end and place.end > start:
            first, last = max(place.start, start) - start, min(place.end, end) - start
            held[first:last] = b"\x01" * (last - first)
    visible = [not character.isspace() for character in file.text[start:end]]
    return 2 * sum(seen for seen, is_visible in zip(held, visible, strict=True) if is_visible) >= sum(visible)


def within_budget(run: list[Place]) -> list[Place]:
    spent = accumulate(place.tokens for place in run)
    return [place for place, tokens in zip(run, spent, strict=True) if tokens <= BUDGET]


def chunk_places(files: list[File], settings: findling.Settings) -> Iterator[tuple[str, Place]]:
    """The place of every chunk by its id, cut as the engine cuts it."""
    # Resources that are added, not found on disk, are cut in this process, without syntax trees.
    plan = chunk_plan(settings)._replace(code="patterns")
    for resource, text, _ in files:
        for chunk in make_document(resource, Extracted(text=text, lang=resource.lang or "text"), plan=plan).chunks:
            tokens = count_tokens(text[chunk.start : chunk.end])
            yield f"{chunk.cid:016x}", Place(resource.rid, chunk.start, chunk.end, tokens)


def read_files(folder: Path, join: str) -> Iterator[File]:
    languages = dict(document_languages(folder))
    for name, rows in grouped(folder, join):
        code = languages[document_of(rows[0])]
        prose = "markdown" if join != "rows" and any(row.get("title") for row in rows) else "text"
        title = rows[0].get("title") or "" if join == "rows" else ""
        text, spans = "", {}
        for row in rows:
            text += f"## {row['title']}\n\n" if prose == "markdown" and row.get("title") else ""
            spans[row["_id"]] = (len(text), len(text) + len(row["text"]))
            text += row["text"] + ("" if code else "\n\n")
        yield File(findling.Resource(rid=name, type="document", title=title, lang=code or prose), text, spans)


def grouped(folder: Path, join: str) -> Iterable[tuple[str, list[Row]]]:
    """The names and rows of the files."""
    rows = list(read_lines(folder / "corpus.jsonl"))
    if join == "rows":
        return [(row["_id"], [row]) for row in rows]
    if join == "doc":
        return documents(rows).items()
    size = int(join)
    # Neighbours in a collection often answer the same question: a large chunk would win by what it happens to hold.
    random.Random(1).shuffle(rows)
    return [(f"part {start // size}", rows[start : start + size]) for start in range(0, len(rows), size)]


def documents(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(document_of(row), []).append(row)
    return found


def document_of(row: Row) -> str:
    """What a row was cut out of: ids like `doc_1_chunk_0` say it, others stand for themselves."""
    return row["_id"].partition("_chunk_")[0]


def document_languages(folder: Path) -> Iterator[tuple[str, str]]:
    """The language of each document, as its file's name would tell; empty for prose."""
    for name, rows in documents(read_lines(folder / "corpus.jsonl")).items():
        text = "".join(row["text"] for row in rows)
        lang = max(CODE, key=lambda lang: len(CODE[lang].findall(text)))
        yield name, lang if CODE[lang].search(text) else ""


# The collections do not name the language of their code.
CODE = {
    "cpp": re.compile(r"^(?:#include|#pragma|namespace \w+ \{|template ?<|class \w+ [:{])", re.M),
    "rust": re.compile(r"^(?:use [\w:{]+|pub (?:fn|struct|enum|mod)|impl\b|#!?\[)", re.M),
    "java": re.compile(
        r"^(?:package [\w.]+;|import (?:static )?[\w.]+;|public (?:final |abstract )?(?:class|interface))", re.M
    ),
    "go": re.compile(r"^(?:package \w+$|func |import \()", re.M),
    "python": re.compile(r"^(?:from [\w.]+ import|import [\w., ]+$|def \w+\(|class \w+(?:\(.*\))?:)", re.M),
    "typescript": re.compile(r"^(?:import .* from ['\"]|export |const \w+ = |interface \w+ \{)", re.M),
}


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_judgements(path: Path) -> Judgements:
    judgements: Judgements = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        judgements.setdefault(query, {})[document] = int(grade)
    return judgements


if __name__ == "__main__":
    main()
