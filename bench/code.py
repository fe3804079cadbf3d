"""Code search: is the right file first? Judged questions about repositories, beside what others have published.

    python bench/code.py FOLDER [--speed words|instant|both] [--only NAME] [--misses] [--save FILE]

FOLDER is a copy of semble's benchmark (MIT): `specs.json`, a checkout and `NAME.json` for each repository. `specs.json`
is a list of `name`, `language` and `benchmark_root`, the folder that is indexed. `NAME.json` is a list of questions:
`query`, `relevant` and `secondary` (paths, or objects with `path`, `start_line`, `end_line`), `category`. Without a
category, one word is a symbol, "how …" asks about architecture, and anything else is semantic.

NDCG@10 is over hits as they are shown, passages and not files. Each target counts once, at the first hit that matches
it: the same path, and a line in common where lines are given. All settings are the default, but no model reads:
`instant` is a search right after indexing, `words` one without vectors. `MCP` is the share of questions whose first
2,000 tokens of the tool's answer name a relevant file. The figures of others are theirs, of April 2026.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import findling
from findling.domain.permissions import OWNER
from findling.domain.results import Hit
from findling.faces.mcp.tool_context import local_desk
from findling.faces.mcp.tools.arguments import SearchArguments
from findling.faces.mcp.tools.budget import compact_json, count_tokens
from findling.faces.mcp.tools.tools import TOOLS
from findling.service.engine.client import LocalClient
from findling.service.settings.settings import Settings

MODES = {"words": "keyword", "instant": "hybrid"}
DEPTH = 10
TOKENS = 2_000
OTHERS = ("semble", "CodeRankEmbed + BM25", "ColGREP", "BM25", "ripgrep")
PUBLISHED: dict[str, tuple[float, ...]] = {
    "aiohttp": (0.852, 0.851, 0.763, 0.553, 0.135),
    "axum": (0.801, 0.780, 0.695, 0.689, 0.082),
    "express": (0.964, 0.930, 0.910, 0.834, 0.106),
    "fastapi": (0.787, 0.851, 0.717, 0.619, 0.182),
    "fmtlib": (0.935, 0.895, 0.733, 0.760, 0.121),
    "gin": (0.860, 0.839, 0.766, 0.577, 0.181),
    "gson": (0.917, 0.907, 0.588, 0.492, 0.141),
    "lazy.nvim": (0.682, 0.790, 0.741, 0.535, 0.000),
    "rack": (0.893, 0.903, 0.737, 0.814, 0.278),
}


class Target(NamedTuple):
    """A file that answers a question, or some lines of it; without lines, all of it does."""

    path: str
    first: int = 0
    last: int = 0

    def is_met(self, path: str, hit: Hit) -> bool:
        """Whether a hit, whose file has this path in the repository, shows some of it."""
        return path == self.path and (not self.last or (hit.line_start <= self.last and hit.line_end >= self.first))


class Verdict(NamedTuple):
    """The judgement of one answer: its NDCG@10, the rank of the first target (0: none), and whether MCP names one."""

    repository: str
    mode: str
    category: str
    query: str
    ndcg: float
    rank: int
    in_mcp: bool
    cpu_ms: float


def main() -> None:
    """Index each repository once, ask all questions, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--speed", choices=[*MODES, "both"], default="both")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this repository; may be repeated")
    parser.add_argument("--misses", action="store_true", help="print every question whose answer is not perfect")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all verdicts as JSON")
    given = parser.parse_args()
    modes = [*MODES] if given.speed == "both" else [given.speed]
    verdicts: list[Verdict] = []
    for spec in json.loads((given.folder / "specs.json").read_text()):
        if not given.only or spec["name"] in given.only:
            verdicts += judge(given.folder, spec["name"], spec.get("benchmark_root", "."), modes)
    for mode in modes:
        report([one for one in verdicts if one.mode == mode], mode, misses=given.misses)
    if given.save:
        given.save.write_text(json.dumps([one._asdict() for one in verdicts], indent=1))


def judge(folder: Path, name: str, root: str, modes: Sequence[str]) -> Iterator[Verdict]:
    """The verdicts on all questions about one repository."""
    questions = json.loads((folder / f"{name}.json").read_text())
    with tempfile.TemporaryDirectory() as home:
        own = {"store.home": home, "semantic.refine": "never", "semantic.query_budget_ms": 0, "search.refresh": "never"}
        settings = Settings().override(own, "benchmark")
        with findling.open(folder / name / root, settings=settings) as engine:
            engine.index()
            for mode in modes:
                for question in questions:
                    yield ask(engine, settings, name, root, mode, question)


def ask(
    engine: findling.Engine, settings: Settings, name: str, root: str, mode: str, question: dict[str, Any]
) -> Verdict:
    """The verdict on one question."""
    query, targets = question["query"], [*_targets(question.get("relevant")), *_targets(question.get("secondary"))]
    before = time.process_time()
    hits = engine.search(query, limit=DEPTH, mode=MODES[mode], refresh=False).hits
    spent = time.process_time() - before
    paths = [hit.path if root == "." else f"{root}/{hit.path}" for hit in hits]
    ranks = [_rank(target, paths, hits) for target in targets]
    ideal = sum(1 / log2(1 + rank) for rank in range(1, min(len(targets), DEPTH) + 1))
    gained = sum(1 / log2(1 + rank) for rank in ranks if rank)
    met = [rank for rank in ranks if rank]
    return Verdict(
        name,
        mode,
        question.get("category") or _category(query),
        query,
        gained / ideal if ideal else 0.0,
        min(met, default=0),
        _is_in_mcp(engine, settings, mode, query, root, _targets(question.get("relevant"))),
        spent * 1e3,
    )


def report(verdicts: Sequence[Verdict], mode: str, *, misses: bool) -> None:
    """Print a table of repositories, one of categories, and the misses if they are wanted."""
    print(f"\n{mode}: {len(verdicts)} questions, CPU {fmean([one.cpu_ms for one in verdicts]):.1f} ms each")
    print(f"{'':14}{'findling':>9}{'MCP':>7}" + "".join(f"{other:>22}" for other in OTHERS))
    names = list(dict.fromkeys(one.repository for one in verdicts))
    for name in names:
        _print_row(name, [one for one in verdicts if one.repository == name], PUBLISHED.get(name, ()))
    known = [one for one in verdicts if one.repository in PUBLISHED]
    means = (
        [fmean([PUBLISHED[one.repository][place] for one in known]) for place in range(len(OTHERS))] if known else []
    )
    _print_row("all", verdicts, means)
    for category in sorted({one.category for one in verdicts}):
        _print_row(category, [one for one in verdicts if one.category == category], ())
    for one in sorted(verdicts, key=lambda one: one.ndcg) if misses else ():
        if one.ndcg < 1:
            print(f"{one.ndcg:.3f}  first at {one.rank:2}  {one.repository:10} {one.category:12} {one.query}")


def _print_row(name: str, verdicts: Sequence[Verdict], others: Sequence[float]) -> None:
    own = f"{fmean([one.ndcg for one in verdicts]):>9.3f}{fmean([one.in_mcp for one in verdicts]):>7.3f}"
    print(f"{name:14}{own}" + "".join(f"{other:>22.3f}" for other in others))


def _targets(given: Sequence[Any] | None) -> list[Target]:
    return [
        Target(one)
        if isinstance(one, str)
        else Target(one["path"], one.get("start_line") or 0, one.get("end_line") or 0)
        for one in given or ()
    ]


def _category(query: str) -> str:
    return "symbol" if len(query.split()) == 1 else "architecture" if query.lower().startswith("how ") else "semantic"


def _rank(target: Target, paths: Sequence[str], hits: Sequence[Hit]) -> int:
    """The rank of the first hit that meets a target, 0 for none."""
    places = enumerate(zip(paths, hits, strict=True), start=1)
    return next((rank for rank, (path, hit) in places if target.is_met(path, hit)), 0)


def _is_in_mcp(
    engine: findling.Engine, settings: Settings, mode: str, query: str, root: str, targets: Sequence[Target]
) -> bool:
    """Whether the beginning of the MCP tool's answer has the path of a relevant file, as its own value."""
    client = LocalClient(engine, OWNER.principals, settings=settings)
    desk = local_desk(lambda: nullcontext(client), OWNER, settings)
    search = next(tool for tool in TOOLS if tool.name == "search")
    text = compact_json(search.work(desk, SearchArguments.model_validate({"query": query, "mode": MODES[mode]}), None))
    shown = text[: TOKENS * 4]
    while count_tokens(shown) > TOKENS:
        shown = shown[: len(shown) * TOKENS // count_tokens(shown)]
    prefix = 0 if root == "." else len(root) + 1
    return any(f'"{target.path[prefix:]}"' in shown for target in targets)


if __name__ == "__main__":
    main()
