"""What understanding a query costs: parse, plan, glossary, receipts, beside the whole of a warm keyword query.

    python bench/question.py [--files 600] [--rounds 5]

The peer is findling's own warm keyword query in the same run: the CPU time of its stages that understand the query and
write the plan and the receipts, as a share of all of it. The bar is 15 %. The tree is this Python's standard library.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from types import ModuleType

from findling.domain.queries import SearchRequest
from findling.pipelines.answer import hits as assembling
from findling.pipelines.answer import search as searching
from findling.service.engine import engine as service
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

QUERIES = (
    "parse command line arguments", "open a socket with a timeout", "getaddrinfo", "json decode error",
    "thread pool executor shutdown", "os.path.join", "how does the garbage collector find cycles", "zip file extract",
    '"not implemented" platform', "logging handler level -test", "cache OR memo", "path:email charset", "date* zone",
    "regular expression group", "temporary directory cleanup", "asyncio cancel task", "locale encoding", "csv dialect",
    "unit test assert raises", "sqlite connection isolation", "decimal rounding", "http client redirect",
)  # fmt: skip
BAR = 0.15


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=600)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        for number, file in enumerate(sorted(Path(sysconfig.get_path("stdlib")).glob("**/*.py"))[: given.files]):
            copy(file, root / f"{number}-{file.name}")
        own = {"store.home": str(Path(place, "home")), "search.mode": "keyword", "search.refresh": "never"}
        with open_engine(root, settings=Settings().override(own, "benchmark")) as engine:
            report = engine.index()
            print(
                f"{report.added} files, {report.chunks} chunks, {len(QUERIES)} queries, best of {given.rounds} rounds"
            )
            _ask_all(engine)
            shares = [_round(engine) for _ in range(given.rounds)]
    whole = min(whole for whole, _ in shares)
    overhead = min(part for _, part in shares)
    print(f"a query {whole * 1e3:.3f} ms CPU, of which parse, plan and receipts {overhead * 1e3:.3f} ms")
    print(f"share {overhead / whole:.1%} (bar {BAR:.0%})")
    return 0


def _ask_all(engine: Engine) -> None:
    for query in QUERIES:
        engine.search(SearchRequest(query=query), refresh=False)


def _round(engine: Engine) -> tuple[float, float]:
    """CPU seconds of a query, and of that what understanding, planning and receipts take."""
    spent = [0.0]
    watched: list[tuple[ModuleType, str]] = [
        (service, "prepared"),
        (searching, "understand"),
        (searching, "plan_account"),
    ]
    watched += [(assembling, "_matches"), (assembling, "_receipt")]
    originals = [(module, name, getattr(module, name)) for module, name in watched]
    for module, name, function in originals:
        setattr(module, name, _timed(function, spent))
    try:
        started = time.process_time()
        for _ in range(3):
            _ask_all(engine)
        whole = time.process_time() - started
    finally:
        for module, name, function in originals:
            setattr(module, name, function)
    asked = 3 * len(QUERIES)
    return whole / asked, spent[0] / asked


# Not CPU time: asking for it costs as much as what is timed. The best round is the one that nothing has interrupted.
def _timed(function: Callable[..., object], spent: list[float]) -> Callable[..., object]:
    def run(*arguments: object, **named: object) -> object:
        started = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            spent[0] += time.perf_counter() - started

    return run


if __name__ == "__main__":
    sys.exit(main())
