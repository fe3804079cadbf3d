"""Whether an answer is empty where nothing answers, and not where something does: 200 questions of each kind.

    python bench/no_answer.py WORK [--only notes docs code] [--states words instant] [--read-code]
                              [--save FILE] [--beside FILE] [--misses] [--check] [--set NAME=VALUE]

Three collections, with default settings: notes (`data/notes.toml`), our documentation as it was at one commit, and the
sources of eight packages (36,000 passages). 100 questions are gibberish; 100 ask for what the collection does not hold,
and half of these have a content word that it does. For each of the others a file is judged to be the answer. WORK keeps
what was fetched, the indexes and what the model has read. The model reads the packages only with `--read-code`: that
takes an hour. `--only library` asks the standard library, whose questions chose the constants of the scale.

Columns: the share of each kind that has hits; good questions with a judged file first, among the first ten, and with an
empty answer; the share of questions without an answer whose best hit reaches the median score of the judged files.
`--beside` compares with a saved run: good questions that had the file among ten and lost it, and those that gained it.
Bars: gibberish 2 %; absent 45 % by words, 30 % instant, 15 % read; lost 1 %. `--check` looks whether the questions are
what they claim to be: no word of gibberish and of `absent` occurs, the named word of `shared` does, the files exist.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import re
import shutil
import subprocess
import sysconfig
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.corpus import source_tree
from findling.faces.cli.request.options import apply_changes
from findling.pipelines.evaluation.evaluation import no_answer
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

DATA = Path(__file__).parent / "data"
COMMIT = "b13a6693f616ffa4887103dc7827708ccd064f1b"
"""The state of our documentation that the questions were written for."""
PACKAGES = (
    "aiohttp==3.14.5",
    "celery==5.7.0",
    "mailman==3.3.10",
    "mercurial==7.2.4",
    "nltk==3.10.4",
    "paramiko==5.1.0",
    "scrapy==2.19.0",
    "tornado==6.6.1",
)
STATES: dict[str, dict[str, object]] = {
    "words": {"search.mode": "keyword"},
    "instant": {"semantic.query_budget_ms": 0.0, "semantic.model": "none"},
    "read": {},
}
KINDS = ("gibberish", "absent", "shared", "good")
SMALL_WORDS = frozenset(
    "a an and are by can do does for from go how i in is it my of on the to what where why with".split()
)


class Question(NamedTuple):
    """A question, its kind, and what stands behind its arrow: the judged files, or the word that occurs."""

    kind: str
    text: str
    judged: tuple[str, ...]


class Asked(NamedTuple):
    """An answer: the number of hits, the best score, the rank and score of the judged file, 0 without one."""

    hits: int
    best: float
    rank: int
    score: float


def main() -> int:
    """Ask every question in every state and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(TREES), default=["notes", "docs", "code"])
    parser.add_argument("--states", nargs="+", choices=list(STATES), default=["words", "instant"])
    parser.add_argument("--read-code", action="store_true", help="have the model read the packages, too")
    parser.add_argument("--save", type=Path, help="write every outcome, for --beside")
    parser.add_argument("--beside", type=Path, help="the outcomes of another version")
    parser.add_argument("--misses", action="store_true", help="name the questions that went wrong")
    parser.add_argument("--set", action="append", default=[], help="such as rerank.model=FOLDER")
    parser.add_argument("--check", action="store_true", help="look at the questions, ask nothing")
    given = parser.parse_args()
    former = json.loads(given.beside.read_text()) if given.beside else {}
    outcomes: dict[str, dict[str, Asked]] = {}
    told: dict[str, dict[Question, Asked]] = defaultdict(dict)
    for name in given.only:
        tree = TREES[name](given.work / name)
        questions = list(read_questions(name))
        if given.check:
            print(
                "\n".join(find_problems(tree, questions)) or f"{name}: {len(questions)} questions are what they claim"
            )
            continue
        for state in given.states:
            if state == "read" and name == "code" and not given.read_code:
                continue
            asked = ask(given.work / name, tree, state, questions, given.set)
            key = f"{name} {state}"
            outcomes[key] = {question.text: one for question, one in asked.items()}
            report(key, asked, former.get(key, {}), given.misses)
            told[state] |= asked
    for state, asked in told.items() if len(given.only) > 1 else ():
        before = {text: one for key, own in former.items() if key.endswith(state) for text, one in own.items()}
        report(f"all {state}", asked, before, misses=False)
    if given.save:
        given.save.write_text(json.dumps(outcomes, indent=0))
    return 0


def notes_tree(work: Path) -> Path:
    """The notes as files."""
    tree = work / "tree"
    for path, text in tomllib.loads((DATA / "notes.toml").read_text("utf-8"))["notes"].items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        if not (tree / path).exists() or (tree / path).read_text("utf-8") != text:
            (tree / path).write_text(text, "utf-8")
    return tree


def docs_tree(work: Path) -> Path:
    """Our documentation at one commit."""
    tree = work / "tree"
    if not tree.exists():
        tree.mkdir(parents=True)
        pages = [f":(glob){pattern}" for pattern in ("docs/**/*.md", "README.md", "CONTRIBUTING.md")]
        packed = subprocess.run(
            ["git", "archive", COMMIT, "--", *pages], cwd=DATA.parents[1], check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", str(tree)], input=packed.stdout, check=True)
    return tree


def code_tree(work: Path) -> Path:
    """The sources of the packages."""
    return source_tree(work, PACKAGES)


def library_tree(work: Path) -> Path:
    """The standard library of the running interpreter, without tests and installed packages."""
    tree, source = work / "tree", Path(sysconfig.get_path("stdlib"))
    for path in sorted(source.rglob("*.py")) if not tree.exists() else ():
        inside = path.relative_to(source)
        if not {"site-packages", "test", "tests", "idle_test", "__pycache__"}.intersection(inside.parts):
            (tree / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tree / inside)
    return tree


TREES = {"notes": notes_tree, "docs": docs_tree, "code": code_tree, "library": library_tree}


def read_questions(name: str) -> Iterator[Question]:
    """The questions of a collection."""
    kinds = tomllib.loads((DATA / "no_answer.toml").read_text("utf-8"))[name]
    for kind in KINDS:
        for line in kinds[kind].strip().splitlines():
            text, _, behind = line.partition(" -> ")
            yield Question(kind, text, tuple(behind.split(" | ")) if behind else ())


def find_problems(tree: Path, questions: list[Question]) -> Iterator[str]:
    """What a question claims and is not so."""
    files = [path for path in tree.rglob("*") if path.is_file()]
    occurring = {word for path in files for word in words_of(path.read_text("utf-8", errors="replace"))}
    for kind, text, judged in questions:
        known = sorted(words_of(text) & occurring - SMALL_WORDS)
        if kind in ("gibberish", "absent") and known:
            yield f"{kind}: {text}: {', '.join(known)} occurs"
        if kind == "shared" and judged[0].lower() not in known:
            yield f"{kind}: {text}: {judged[0]} does not occur in both"
        if kind == "good":
            yield from (f"{kind}: {text}: there is no {path}" for path in judged if not (tree / path).is_file())


def words_of(text: str) -> set[str]:
    """The words of a text in lower case."""
    return set(re.findall(r"[^\W\d_]+", text.lower()))


def ask(work: Path, tree: Path, state: str, questions: list[Question], changes: list[str]) -> dict[Question, Asked]:
    """The answers in one state, with other values of settings."""
    with opened(work, tree, state, changes) as engine:
        return {question: answered(engine, question) for question in questions}


def opened(work: Path, tree: Path, state: str, changes: Iterable[str] = ()) -> Engine:
    """A tree in one state, indexed below `work` and, if the state says so, read."""
    own = {"store.home": str(work / "home"), "search.refresh": "never", "semantic.refine": "never"}
    with open_engine(tree, settings=Settings().override(own, "benchmark")) as engine:
        engine.index()
        if state == "read" and not (done := work / "read").exists():
            engine.refine()
            done.touch()
    settings = apply_changes(Settings().override({**own, **STATES[state]}, "benchmark"), changes)
    engine = open_engine(tree, settings=settings)
    engine.search("warm up", refresh=False)
    return engine


def answered(engine: Engine, question: Question) -> Asked:
    """One answer of ten hits; places count by file."""
    hits = engine.search(question.text, limit=10, refresh=False).hits
    best = hits[0].score if hits else 0.0
    if question.kind == "good":
        for rank, hit in enumerate(hits, 1):
            if hit.path in question.judged:
                return Asked(len(hits), best, rank, hit.score)
    return Asked(len(hits), best, 0, 0.0)


def report(key: str, asked: dict[Question, Asked], former: dict[str, list[float]], misses: bool) -> None:
    """Print one line, and what went wrong if wanted."""
    of = {kind: [(question, one) for question, one in asked.items() if question.kind == kind] for kind in KINDS}
    with_hits = {kind: sum(one.hits > 0 for _, one in of[kind]) for kind in KINDS}
    foreign = with_hits["absent"] + with_hits["shared"]
    good = [one for _, one in of["good"]]
    nothing = [one.best for kind in KINDS[:3] for _, one in of[kind]]
    scale = no_answer([one.score for one in good], nothing)
    print(
        f"{key:16} with hits: gibberish {percent(with_hits['gibberish'], len(of['gibberish']))}"
        f"  absent {percent(foreign, len(of['absent']) + len(of['shared']))}"
        f" (no word {with_hits['absent']} of {len(of['absent'])}, a word {with_hits['shared']} of {len(of['shared'])})"
        f"  good: first {sum(one.rank == 1 for one in good)}, in ten {sum(one.rank > 0 for one in good)},"
        f" empty {sum(not one.hits for one in good)} of {len(good)}"
        f"  median {scale.median:.2f}, reached {scale.reaching:.1%}",
        flush=True,
    )
    if former:
        lost = [question.text for question, one in of["good"] if not one.rank and former.get(question.text, [0] * 4)[2]]
        gained = [
            question.text for question, one in of["good"] if one.rank and not former.get(question.text, [0] * 4)[2]
        ]
        print(f"{'':16} lost {percent(len(lost), len(good))}: {lost}; gained {len(gained)}: {gained}", flush=True)
    for question, one in asked.items() if misses else ():
        if question.kind != "good" and one.hits:
            print(f"    {question.kind}: {question.text}: {one.hits} hits, best {one.best:.2f}")
        elif question.kind == "good" and not one.rank:
            print(f"    good: {question.text}: {one.hits} hits, none of {' '.join(question.judged)}")


def percent(part: int, whole: int) -> str:
    """A share as text."""
    return f"{part / whole:.1%}" if whole else "-"


if __name__ == "__main__":
    raise SystemExit(main())
