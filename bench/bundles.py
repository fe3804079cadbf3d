"""Exported, imported, asked again: does a bundle answer as the workspace did? For collections in BEIR layout.

    python bench/bundles.py FOLDER [--read N] [--queries N] [--archive]

The rows of `corpus.jsonl` become resources of one workspace; with `--read`, a model reads so many of its passages
(0: none, -1: all). The workspace is exported, the bundle is imported into a new one, and both are asked every query of
`queries.jsonl`, by words and meaning and by words alone. Answers are compared as a whole (ids, order, scores, snippets,
receipts, notes), but for the time they took. Prints how many are identical, and what the way there and back costs: CPU
seconds, bytes, and by how many bytes the peak of memory rose.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import findling
from findling.domain.strangers import TRUSTS
from findling.service.engine.engine import open_engine
from findling.service.export.bundles import export_bundle, import_bundle
from tests.jsonl_store import JsonlStore

T = TypeVar("T")
MODES = ("hybrid", "keyword")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--read", type=int, default=0, metavar="N", help="passages that a model reads; -1: all")
    parser.add_argument("--queries", type=int, default=0, metavar="N", help="how many queries; 0: all")
    parser.add_argument("--archive", action="store_true", help="one .zip instead of a folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        run(args.folder, Path(work), args.read, args.queries, args.archive)


def run(folder: Path, work: Path, read: int, most: int, archive: bool) -> None:
    values = {"store.home": str(work / "home"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    settings = findling.Settings().override(values, "bench")
    target = work / ("bundle.zip" if archive else "bundle")
    with open_engine(".", workspace="original", settings=settings) as original:
        timed("index", lambda: original.add(items(folder)))
        timed("read", lambda: refine(original, read))
        report = timed("export", lambda: export_bundle(original, target))
        print(f"{report.counts} in {report.size_bytes:,} bytes")
        timed("import", lambda: import_bundle(target, workspace="copy", settings=settings, trust=TRUSTS))
        timed("open the bundle itself", lambda: JsonlStore.open(target).close())
        queries = list(rows(folder / "queries.jsonl"))[: most or None]
        with open_engine(".", workspace="copy", settings=settings) as copy:
            for mode in MODES:
                compare(original, copy, [row["text"] for row in queries], mode)


def compare(original: findling.Engine, copy: findling.Engine, queries: list[str], mode: str) -> None:
    same, hits, speeds = 0, 0, set()
    for query in queries:
        request = findling.SearchRequest(query=query, limit=10, plan=findling.Plan(mode=mode))
        expected = original.search(request, refresh=False)
        same += told(copy.search(request, refresh=False)) == told(expected)
        hits += len(expected.hits)
        speeds.add(expected.meaning.get("speed", "none"))
    print(f"{mode}: {same} of {len(queries)} answers identical, {hits} hits, vectors: {', '.join(sorted(speeds))}")


def told(answer: findling.SearchAnswer) -> dict[str, Any]:
    return {**answer.to_dict(), "timings_ms": None}


def refine(engine: findling.Engine, wanted: int) -> None:
    done = 0

    def count(progress: Any) -> None:
        nonlocal done
        done = progress.done

    if wanted:
        engine.refine(on_progress=count, should_stop=lambda: 0 <= wanted <= done)


def items(folder: Path) -> Iterator[tuple[findling.Resource, str]]:
    for row in rows(folder / "corpus.jsonl"):
        yield findling.Resource(rid=f"doc:{row['_id']}", type="doc", title=row.get("title", "")), row["text"]


def rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def timed(what: str, do: Callable[[], T]) -> T:
    before, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = do()
    rise = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    print(f"{what}: {time.process_time() - before:.1f} s of CPU, peak memory +{rise / 1024:.0f} MB", flush=True)
    return outcome


if __name__ == "__main__":
    main()
