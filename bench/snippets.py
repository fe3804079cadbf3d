"""How often the lines shown of a hit hold the answer: this project's own documentation, and long documents of others.

Usage: python -m bench.snippets [FOLDER]
       python -m bench.snippets --long [--read] [--work DIR] [--misses]

FOLDER holds `questions.tsv` (question, tab, a text that answers it) beside the documents; by default it is `docs`, and
the questions are those below. Counted are the hits among the first five whose passage holds the answer: does the
snippet hold it, too? Prints the share, and the CPU time of putting a page of ten hits together.

`--long` asks the questions of `bench/data/long_documents.json`: pages of more than 20 kB from source distributions
that are fetched, with a part of the sentence that answers, and of others that do (`also`). A question is found when
its document is among the first five hits; then one whole sentence must stand in the first 400 characters that the
document's first hit shows. With `--read` a model reads the passages first. The share among the hits whose passage
holds the sentence is printed, too: the rest of the misses is not the snippet's. The questions fall into halves by the
hash of their words: rules are tried on `a`. Those of `bench/data/later_documents.json` are asked when rules stand.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import hashlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import findling
from bench.corpus import unpack
from findling.service.settings.settings import Settings

LONG = ("long_documents.json", "later_documents.json")
FIRST = 5
MOST_SHOWN = 400

QUESTIONS = """
how long does a command wait for a process that is writing	up to 30 seconds
what happens to a damaged index file after a rebuild	30 days
who can read the manifest	only you can
where are indexes kept by default	in your data folder
is the project folder put into git	.gitignore
what if I move or rename a folder	--root ~/journal
does dropping a workspace delete memories	export it first
what happens when a quota is exceeded by files	are left out
are hits of a big workspace preferred	size of a
how large is a passage of a chat	160 tokens
what ends a passage of a conversation	for an hour
how does an edited message get updated	replaces what was
are system prompts of ChatGPT taken in	System prompts
is my export imported twice if I run it again	0 messages added
how many messages go into a batch	2,000 at a time
what is a message without an id known by	author, time and text
how do I find everything one person said	author:dee
what survives a power cut	survives a power cut
how does findling notice that files have changed	size and time of change
what happens when the disk is full	disk-full
can several processes write at once	One writer
which languages are parsed with tree-sitter	tree-sitter
why are Ruby and Perl left to patterns	crash
what is the truth of an index	SQLite is the truth
how is the id of a hit written	hexadecimal
when does a leg start from nothing	starts from
what does the background process do when indexing is done	low priority
how is the memory of indexing bounded	bounded by the batch
what may a project file set	context
how do I stop the daemon	serve --stop
how often does the daemon look for changed files	refresh_s
which port does the server listen on	8
how do I give a token to somebody	token create
how can an agent search my notes	findling mcp
how do I take a snapshot	snapshot
how do I restore an earlier state	restore
how do I share a workspace as one file	export
what does importance of a memory do	importance
how do I exclude files from the index	exclude add
how do I search only Python files	ext:py
""".strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent.parent / "docs")
    parser.add_argument("--long", action="store_true", help="long documents of others")
    parser.add_argument("--read", action="store_true", help="a model reads the passages of --long first")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench", metavar="DIR")
    parser.add_argument("--misses", action="store_true", help="print every question whose sentence is not shown")
    given = parser.parse_args()
    if given.long:
        measure_long(given.work, given.read, given.misses)
    else:
        measure_own(given.folder)


def measure_own(folder: Path) -> None:
    """Print how many snippets of a folder's passages that hold the answer show it."""
    own = folder / "questions.tsv"
    lines = (own.read_text(encoding="utf-8") if own.exists() else QUESTIONS).splitlines()
    questions = [tuple(line.split("\t")[:2]) for line in lines if "\t" in line]
    for mode in ("keyword", "hybrid"):
        held = shown = lines_shown = 0
        spent = 0.0
        with opened(folder, mode) as engine:
            for question, answer in questions:
                wanted = plain(answer)
                before = time.process_time()
                found = engine.search(question, refresh=False)
                spent += time.process_time() - before
                for hit in found.hits[:FIRST]:
                    if wanted in plain(engine.fetch(hit.id).text):
                        held += 1
                        shown += wanted in plain(" ".join(line.text for line in hit.lines))
                        lines_shown += len(hit.lines)
        share = shown / held if held else 0.0
        cost = spent / max(len(questions), 1) * 1000
        told = f"{shown} of {held} snippets hold the answer ({share:.0%})"
        print(f"{mode}: {told}, {lines_shown / max(held, 1):.1f} lines each; {cost:.1f} ms CPU a question")


def measure_long(work: Path, read: bool, misses: bool) -> None:
    """Print how many first snippets of long documents show a sentence that answers."""
    for name in LONG:
        data = json.loads((Path(__file__).parent / "data" / name).read_text("utf-8"))
        sources = unpack(work, data["packages"])
        asked = [(one["path"], each) for one in data["documents"] for each in one["questions"]]
        with tempfile.TemporaryDirectory() as place:
            tree = Path(place, "tree")
            for one in data["documents"]:
                target = tree / one["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(sources / one["path"], target)
            for label in ("keyword", "hybrid", *(["read"] if read else [])):
                with opened(tree, label) as engine:
                    for half in "ab":
                        own = [one for one in asked if half_of(one[1]["question"]) == half]
                        _report_long(f"{name.partition('_')[0]} {half}, {label}", engine, own, misses)


def half_of(question: str) -> str:
    return "ab"[hashlib.sha256(question.encode()).digest()[0] % 2]


def _report_long(label: str, engine: findling.Engine, asked: list[tuple[str, dict[str, Any]]], misses: bool) -> None:
    found = held = shown = seen = 0
    for path, each in asked:
        own = [hit for hit in engine.search(each["question"], refresh=False).hits[:FIRST] if hit.path == path]
        if not own:
            continue
        found += 1
        whole = engine.fetch(path).text
        sentences = [sentence_of(whole, part) for part in (each["answer"], *each.get("also", ()))]
        visible = plain(" ".join(line.text for line in own[0].lines))[:MOST_SHOWN]
        is_shown = holds(visible, sentences)
        shown += is_shown
        holding = [hit for hit in own if holds(plain(engine.fetch(hit.id).text), sentences)]
        held += bool(holding)
        seen += bool(holding) and holds(plain(" ".join(line.text for line in holding[0].lines))[:MOST_SHOWN], sentences)
        if misses and not is_shown:
            print(f"  {each['question']}\n    {path}: {sentences[0]}\n    shown: {visible}")
    print(f"{label}: {found} of {len(asked)} found, {shown} sentences shown ({shown / max(found, 1):.1%});", end=" ")
    print(f"{held} of the passages found hold theirs, {seen} show it ({seen / max(held, 1):.1%})", flush=True)


def holds(text: str, sentences: list[str]) -> bool:
    return any(sentence in text for sentence in sentences)


def sentence_of(text: str, part: str) -> str:
    """The sentence around a part of it, as plain text; the part alone where the text has it no longer so."""
    whole = next((one for one in map(plain, re.split(r"\n\s*\n", text)) if plain(part) in one), plain(part))
    start = whole.index(plain(part))
    before = [match.end() for match in re.finditer(r"[.!?:;][)\"]?\s+(?=\S)", whole) if match.end() <= start]
    after = re.search(r"[.!?:](?=[)\"`]*(?:\s|$))", whole[start + len(plain(part)) - 1 :])
    end = start + len(plain(part)) - 1 + after.end() if after else len(whole)
    return whole[before[-1] if before else 0 : end]


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


@contextmanager
def opened(folder: Path, label: str) -> Iterator[findling.Engine]:
    """A folder, indexed and warm; with the label `read` a model has read it."""
    with tempfile.TemporaryDirectory() as home:
        own: dict[str, object] = {"store.home": home, "search.mode": "keyword" if label == "keyword" else "hybrid"}
        own |= {} if label == "read" else {"semantic.refine": "never", "semantic.query_budget_ms": 0}
        with findling.open(folder, settings=Settings().override(own, "bench")) as engine:
            engine.index()
            if label == "read":
                engine.refine()
            engine.search("warm up", refresh=False)
            yield engine


if __name__ == "__main__":
    main()
