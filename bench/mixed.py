"""Mixed projects: sources, documentation, runbooks and configuration in one tree. Is the right file first?

    python bench/mixed.py [--work DIR] [--only nox] [--read] [--misses] [--save FILE]

`bench/data/mixed_projects.json` names three source distributions, which are fetched, documents that are laid beside
their files, and 40 questions about each. Two thirds are in prose, a third is about code. Judgements are by file: 2
answers the question, 1 helps. NDCG@10 with linear gains is over files, each at the rank of its first passage. `on` is
the default; `off` leaves out evidence about code (`order_by_resources`). Both ask the same index. With `--read` a model
reads the passages first; that index is kept below `--work`, since reading takes minutes.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import findling
from bench.corpus import unpack
from findling.pipelines.retrieve import resource_order
from findling.ranking.metrics import mean, ndcg
from findling.service.settings.settings import Settings

PROJECTS = Path(__file__).parent / "data" / "mixed_projects.json"
DEPTH = 10
HITS = 40
"""Passages asked for, so that ten files are among them."""

RUNS: dict[str, dict[str, object]] = {
    "words": {"search.mode": "keyword"},
    "instant": {"semantic.query_budget_ms": 0.0, "semantic.model": "none"},
    "read": {},
}


class Verdict(NamedTuple):
    """The judgement of one answer, with evidence about code on or off."""

    project: str
    run: str
    code: str
    kind: str
    question: str
    ndcg: float
    files: list[str]


def main() -> None:
    """Index each project, ask all questions with and without evidence about code, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench", metavar="DIR")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this project; may be repeated")
    parser.add_argument("--read", action="store_true", help="ask what a model has read, too")
    parser.add_argument("--misses", action="store_true", help="print every question that loses by evidence about code")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all verdicts as JSON")
    given = parser.parse_args()
    verdicts: list[Verdict] = []
    for project in json.loads(PROJECTS.read_text("utf-8"))["projects"]:
        name = project["package"].partition("==")[0]
        if not given.only or name in given.only:
            verdicts += judge(given.work, name, project, read=given.read)
    report(verdicts, misses=given.misses)
    if given.save:
        given.save.write_text(json.dumps([one._asdict() for one in verdicts], indent=1))


def judge(work: Path, name: str, project: dict[str, Any], *, read: bool) -> Iterator[Verdict]:
    """The verdicts on all questions about one project."""
    tree, home = lay_out(work, project), work / "mixed-homes" / project["package"]
    for run, changed in RUNS.items():
        if run == "read" and not read:
            continue
        own = {"store.home": str(home), "search.refresh": "never", "semantic.refine": "never", **changed}
        with findling.open(tree, settings=Settings().override(own, "benchmark")) as engine:
            engine.index()
            if run == "read":
                engine.refine()
            engine.search("warm up", refresh=False)
            for code in ("on", "off"):
                with evidence_about_code(code):
                    for one in project["questions"]:
                        hits = engine.search(one["question"], limit=HITS, refresh=False).hits
                        files = [*dict.fromkeys(hit.path for hit in hits)][:DEPTH]
                        value = ndcg(files, one["files"], DEPTH)
                        yield Verdict(name, run, code, one["kind"], one["question"], value, files)


def lay_out(work: Path, project: dict[str, Any]) -> Path:
    """The tree of a project: its source distribution and the documents beside it."""
    tree = work / "mixed" / str(project["package"]).replace("==", "-")
    if not tree.exists():
        shutil.copytree(unpack(work, [project["package"]]) / tree.name, tree)
    for path, lines in project["documents"].items():
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", "utf-8")
    return tree


@contextmanager
def evidence_about_code(chosen: str) -> Iterator[None]:
    """Leave out the evidence about code while it is `off`."""
    own = resource_order.order_by_resources
    if chosen == "off":
        resource_order.order_by_resources = lambda legs, question, found, resources: found
    try:
        yield
    finally:
        resource_order.order_by_resources = own


def report(verdicts: list[Verdict], *, misses: bool) -> None:
    """Print a line for each project and kind of question, and the questions that lose if they are wanted."""
    print(f"{'':10}{'':8}{'':9}{'on':>7}{'off':>7}{'on - off':>10}")
    for name in ("all", *dict.fromkeys(one.project for one in verdicts)):
        for kind in ("all", "prose", "code"):
            own = [one for one in verdicts if name in ("all", one.project) and kind in ("all", one.kind)]
            for run in dict.fromkeys(one.run for one in own):
                on, off = ([one.ndcg for one in own if (one.run, one.code) == (run, code)] for code in ("on", "off"))
                print(f"{name:10}{kind:8}{run:9}{mean(on):7.3f}{mean(off):7.3f}{mean(on) - mean(off):+10.3f}")
    before = {(one.project, one.run, one.question): one for one in verdicts if one.code == "off"}
    for one in verdicts if misses else ():
        was = before[one.project, one.run, one.question]
        if one.ndcg < was.ndcg:
            print(f"{one.project} {one.run} {one.kind}: {one.question}  {was.ndcg:.3f} -> {one.ndcg:.3f}")
            print(f"    off {' '.join(was.files[:5])}\n    on  {' '.join(one.files[:5])}")


if __name__ == "__main__":
    main()
