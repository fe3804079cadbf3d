"""Hybrid search against local-semantic-search 0.5.7 with local embeddings, on one corpus and in one run.

    python bench/hybrid.py [--work DIR] [--files 150] [--rounds 2] [--peer-tokens 512]

The corpus is documentation out of the tree of `bench/corpus.py`: 463 files of at least 4 KB, 11 MB, of which `--files`
are taken evenly (0: all). Embedding them costs both sides minutes of CPU, hence the small default.

The peer's own model, bge-small (12 layers, 512 tokens), lies on a hub; here it runs on the very MiniLM file (6 layers)
that findling uses, which favours the peer. `--peer-tokens` is how much of a chunk it reads. Both have one thread.

CPU time is user + system of a whole process, unless it is of a query in a process. Each figure is the best of the
rounds, since noise only ever adds. One is an exception: findling's first query reads passages for some wall time
(`semantic.query_budget_ms`), of which a busy machine makes less CPU time. "recorded" is what the peer needed for 497
files of the Python documentation on another machine. Needs tokenizers.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import venv
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpus import make_tree
from bench.keywords import QUERIES, REPOSITORY, Run

PEER = "local-semantic-search[local]==0.5.7"
LEAST_BYTES = 4000
FIRST_QUERIES = QUERIES[:3]
Command = Sequence[str | Path]
ANY_SPEED = ("instant", "mixed", "refined")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "FINDLING_SEMANTIC_THREADS"), "1")

# In a process of its own, because a child's peak memory is never below what its parent held when it was started.
MAKE_MODEL = """
import sys
from pathlib import Path
from bench.embedding import write_model_folder
from findling.models.locating import locate
folder, tokens = Path(sys.argv[1]), int(sys.argv[2])
files = locate("minilm", folder)
write_model_folder(files._replace(card=files.card._replace(max_tokens=tokens)), folder)
"""
PEER_MODEL = """
import functools, os, sys
import fastembed
from fastembed.common.model_description import ModelSource, PoolingType
name, folder = os.environ["LSS_LOCAL_MODEL"], os.environ["BENCH_MODEL"]
fastembed.TextEmbedding.add_custom_model(
    model=name, pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf=name),
    dim=int(os.environ["LSS_LOCAL_DIM"]), model_file="model.onnx",
)
fastembed.TextEmbedding = functools.partial(fastembed.TextEmbedding, specific_model_path=folder, threads=1)
"""
PEER_SHELL = f"{PEER_MODEL}\nfrom lss_cli import main\nsys.exit(main())"
PEER_QUERIES = f"""{PEER_MODEL}
import json, time
from semantic_search import semantic_search
tree, database, queries = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for query in queries:
    before = time.process_time()
    hits, = semantic_search(tree, [query], db_path=database, indexed_only=True)
    print(json.dumps([time.process_time() - before, sorted({{hit["rank_stage"] for hit in hits}})]))
"""
OUR_QUERIES = """
import json, sys, time
import findling
tree, limit, queries = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
with findling.open(tree) as engine:
    for query in queries:
        before = time.process_time()
        answer = engine.search(query, limit=limit, refresh=False)
        print(json.dumps([time.process_time() - before, [answer.meaning.get("speed"), *answer.degraded]]))
"""


class Row(NamedTuple):
    """One comparison; `bar` is the share of the peer's figure, here and on record, that must not be exceeded."""

    name: str
    ours: float
    theirs: float
    bar: float
    recorded: float
    unit: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--files", type=int, default=150, help="size of the corpus; 0: all 463 files")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peer-tokens", type=int, default=512, help="how much of a chunk the peer's model reads")
    arguments = parser.parse_args()
    work: Path = arguments.work.absolute()
    files, source_bytes = make_documentation(make_tree(work), work / "hybrid" / "tree", arguments.files)
    print(f"{files} files, {source_bytes / 1e6:.1f} MB; best of {arguments.rounds} rounds, interleaved", flush=True)
    bench = Bench(work, arguments.peer_tokens)
    bench.prepare()
    for number in range(arguments.rounds):
        _tell(f"round {number + 1} …")
        bench.round()
    bench.report()


def make_documentation(tree: Path, target: Path, wanted: int) -> tuple[int, int]:
    """Lay out the larger files of documentation, or so many of them; returns how many they are, and their bytes."""
    shutil.rmtree(target, ignore_errors=True)
    pages = [
        file
        for folder in sorted([*tree.glob("*/doc"), *tree.glob("*/docs")])
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".rst", ".txt") and file.stat().st_size >= LEAST_BYTES
    ]
    count = min(wanted, len(pages)) or len(pages)
    chosen = [pages[number * len(pages) // count] for number in range(count)]
    for file in chosen:
        copy = target / file.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
    return len(chosen), sum(file.stat().st_size for file in chosen)


class Bench:
    """Both programs in environments of their own, indexes in every state, and the best figures seen."""

    def __init__(self, work: Path, peer_tokens: int) -> None:
        self._peer = _environment(work / "hybrid-peer-env", PEER)
        self._ours = _environment(work / "findling-env", str(REPOSITORY), "--force-reinstall", "--no-deps")
        _environment(work / "findling-env", str(REPOSITORY))
        self._states = work / "hybrid"
        self._tree = self._states / "tree"
        self._model = self._states / "model"
        _make_model(self._model, peer_tokens)
        self._best: dict[str, float] = {}

    def prepare(self) -> None:
        """Index, and then have all vectors made: the peer's by asking every query, ours by refining."""
        for state in ("peer-indexed", "ours-indexed", "ours-keyword"):
            shutil.rmtree(self._states / state, ignore_errors=True)
        _tell("indexing …")
        self._note("peer index", self._run("peer-indexed", [self._peer / "lss", "index", self._tree]))
        for state, instant in (("ours-keyword", "off"), ("ours-indexed", "on")):
            index: Command = [self._ours / "findling", "index", self._tree]
            self._note(f"{state} index", self._run(state, index, FINDLING_SEMANTIC_INSTANT=instant))
        _tell("embedding; this takes minutes …")
        self._copy("peer-indexed", "peer-filled")
        self._note("peer fill", self._ask_peer("peer-filled", QUERIES)[0])
        self._copy("ours-indexed", "ours-refined")
        self._note("ours refine", self._run("ours-refined", [self._ours / "findling", "refine", self._tree]))

    def round(self) -> None:
        """Measure everything once, the two programs in turn."""
        for query in FIRST_QUERIES:
            self._copy("peer-indexed", "peer-scratch")
            self._note(f"peer first {query}", self._ask_peer("peer-scratch", [query])[0])
            self._copy("ours-indexed", "ours-scratch")
            self._note(f"ours first {query}", self._ask_ours("ours-scratch", [query], speeds=ANY_SPEED)[0])
            self._copy("ours-indexed", "ours-scratch")
            unread = self._ask_ours("ours-scratch", [query], speeds=("instant",), FINDLING_SEMANTIC_QUERY_BUDGET_MS="0")
            self._note("ours first, unread", unread[0])
            self._from_the_shell(query)
        # Asked twice, so that all of the peer's caches are warm; findling has none that would help a query again.
        run, times = self._ask_peer("peer-filled", [*QUERIES, *QUERIES])
        self._times("peer warm", run, times[len(QUERIES) :])
        for limit in (10, 20):
            run, times = self._ask_ours("ours-refined", ["warm up", *QUERIES], speeds=("refined",), limit=limit)
            self._times(f"ours warm {limit}", run, times[1:])

    def report(self) -> None:
        """Print what was measured, the comparisons with a bar first."""
        best = self._best
        theirs, ours = self._chunks()
        print(f"chunks: findling {ours:,}, peer {theirs:,}")
        _print_table(self._rows())
        print("\nalso, CPU s:")
        for name, label in (
            ("ours-keyword index", "findling index, without instant vectors"),
            ("ours-indexed index", "findling index"),
            ("peer index", "peer index"),
            ("ours refine", "findling refine, all chunks"),
            ("peer fill", f"peer, {len(QUERIES)} queries for the first time"),
            ("ours first, unread", "findling, first query, query_budget_ms 0"),
            ("ours warm 10", f"findling, a process of {len(QUERIES) + 1} warm queries"),
            ("peer warm", f"peer, a process of {2 * len(QUERIES)} warm queries"),
            ("shell keyword", "findling QUERY --mode keyword"),
            ("shell instant", "findling QUERY, only instant vectors yet"),
            ("shell refined", "findling QUERY, refined"),
            ("shell peer", "peer's QUERY, vectors cached"),
        ):
            print(f"  {label:46} {best[name]:8.2f}  peak {best[f'{name} peak']:6.0f} MB")

    def _rows(self) -> list[Row]:
        best = self._best
        p50, p95 = best["peer warm p50"], best["peer warm p95"]

        def first(side: str, what: str = "") -> float:
            return statistics.median(best[f"{side} first {query}{what}"] for query in FIRST_QUERIES)

        return [
            Row("query in process, 10 hits, p50", best["ours warm 10 p50"], p50, 1 / 10, 115, "CPU ms"),
            Row("query in process, 10 hits, p95", best["ours warm 10 p95"], p95, 1 / 10, 167, "CPU ms"),
            Row("query in process, 20 hits, p50", best["ours warm 20 p50"], p50, 1 / 10, 115, "CPU ms"),
            Row("first query after indexing", first("ours"), first("peer"), 1 / 20, 14.5, "CPU s"),
            Row("peak memory, first query", first("ours", " peak"), first("peer", " peak"), 1 / 3, 2273, "MB"),
        ]

    def _from_the_shell(self, query: str) -> None:
        ask: Command = [self._ours / "findling", query, self._tree]
        self._note("shell keyword", self._run("ours-refined", [*ask, "--mode", "keyword"]))
        self._note("shell refined", self._run("ours-refined", ask))
        self._copy("ours-indexed", "ours-scratch")
        self._note("shell instant", self._run("ours-scratch", ask))
        self._note("shell peer", self._run("peer-filled", [self._peer / "python", "-c", PEER_SHELL, query, self._tree]))

    def _ask_peer(self, state: str, queries: Sequence[str]) -> tuple[Run, list[float]]:
        arguments: Command = [self._tree, self._states / state / "lss.db", json.dumps(queries)]
        run = self._run(state, [self._peer / "python", "-c", PEER_QUERIES, *arguments])
        return run, _read(run, lambda stages: all(stage.startswith("S3") for stage in stages))

    def _ask_ours(
        self, state: str, queries: Sequence[str], *, speeds: tuple[str, ...], limit: int = 10, **more: str
    ) -> tuple[Run, list[float]]:
        arguments: Command = [self._tree, str(limit), json.dumps(queries)]
        run = self._run(state, [self._ours / "python", "-c", OUR_QUERIES, *arguments], **more)
        return run, _read(run, lambda told: len(told) == 1 and told[0] in speeds)

    def _run(self, state: str, command: Command, **more: str) -> Run:
        environment = {
            **os.environ,
            **ONE_THREAD,
            "LSS_DIR": str(self._states / state),
            "LSS_PROVIDER": "local",
            "LSS_LOCAL_MODEL": "bench/minilm",
            "LSS_LOCAL_DIM": "384",
            "BENCH_MODEL": str(self._model),
            "HF_HUB_OFFLINE": "1",
            "FINDLING_HOME": str(self._states / state),
            "FINDLING_CONFIG": os.devnull,
            "FINDLING_SEMANTIC_REFINE": "never",
            **more,
        }
        # Both programs run from byte code, as they do for their users.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return _measure(command, environment, self._states)

    def _copy(self, state: str, target: str) -> None:
        shutil.rmtree(self._states / target, ignore_errors=True)
        shutil.copytree(self._states / state, self._states / target)

    def _chunks(self) -> tuple[int, int]:
        with closing(sqlite3.connect(self._states / "peer-indexed" / "lss.db")) as database:
            (theirs,) = database.execute("SELECT count(*) FROM fts").fetchone()
        status = self._run("ours-indexed", [self._ours / "findling", "status", "--json", self._tree])
        return theirs, json.loads(status.output)["chunks"]

    def _note(self, name: str, run: Run) -> None:
        self._keep(name, run.cpu_s)
        self._keep(f"{name} peak", run.peak_mb)

    def _times(self, name: str, run: Run, times: Sequence[float]) -> None:
        self._note(name, run)
        self._keep(f"{name} p50", statistics.median(times) * 1000)
        self._keep(f"{name} p95", sorted(times)[int(len(times) * 0.95)] * 1000)

    def _keep(self, name: str, value: float) -> None:
        self._best[name] = min(value, self._best.get(name, value))


def _read(run: Run, is_right: Callable[[list[Any]], bool]) -> list[float]:
    """The seconds of each query of a run; ends the program if one was not answered by words and meaning."""
    times = []
    for line in run.output.splitlines():
        seconds, told = json.loads(line)
        if not is_right(told):
            raise SystemExit(f"a query was not answered as it should be: {told}")
        times.append(seconds)
    return times


def _make_model(folder: Path, tokens: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-c", MAKE_MODEL, str(folder), str(tokens)]
    subprocess.run(command, check=True, cwd=REPOSITORY)


def _environment(folder: Path, *packages: str) -> Path:
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    return folder / "bin"


def _measure(command: Command, environment: dict[str, str], folder: Path) -> Run:
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            cwd=folder,  # the peer obeys a file `.env` in the folder it is started in
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{command} ended with {process.returncode}\n{errors.read()}")
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def _print_table(rows: Sequence[Row]) -> None:
    print(f"{'':32} {'findling':>9} {'peer':>9} {'ratio':>7} {'bar':>6}{'':16} {'recorded':>9} {'ratio':>7}")
    for name, ours, theirs, bar, recorded, unit in rows:
        here, there = (f"{ours / figure:7.3f}" for figure in (theirs, recorded))
        verdicts = ["ok" if ours <= bar * figure else "MISSED" for figure in (theirs, recorded)]
        print(
            f"{name:32} {ours:9.2f} {theirs:9.2f} {here} {bar:6.3f} {unit:7} {verdicts[0]:7} "
            f"{recorded:9.1f} {there} {verdicts[1]}"
        )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
