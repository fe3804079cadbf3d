"""The vector matrix beside usearch, faiss-HNSW, hnswlib and sqlite-vec: speed, recall, memory and opening, in one run.

    python bench/vectors.py [--sizes 20000 200000] [--text FOLDER | --vectors FILE.npy] [--work DIR]

Vectors are those of real text: means of static token vectors (wordllama's, 256 values, read from its package with
safetensors and tokenizers) over windows of 64 tokens, or any file of unit vectors. Queries are 12 tokens of the same
texts. Every engine builds and answers in processes of its own, on one thread; a peer that is not installed is named.
Peers' graphs have a shape that finds 99 of 100. Rows belong to resources of eight; a filter allows a random
tenth or hundredth of the resources. Recall is that of the ten best by exact 32-bit cosines; a row that equals the
tenth counts. CPU time is the figure to read. Opening is wall time up to the first answer, the files out of memory
before. Needs Linux.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.vector_engines import BATCH, ENGINES, RESOURCE_ROWS, SHARES, Vectors, allowed_mask, missing, shape_for

QUERIES = 200
WINDOW, QUERY_WINDOW = 64, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--text", type=Path, help="a folder of texts; otherwise the tree of bench/keywords.py")
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--phase", choices=["build", "ask"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.phase:
        (_build if arguments.phase == "build" else _ask)(arguments.engines[0], arguments.work)
        return
    for size in arguments.sizes:
        folder = arguments.work / f"vectors-{size}"
        _prepare(folder, size, arguments)
        _print_table(folder, [_measure(name, folder) for name in arguments.engines if _takes_part(name)])


class Figures(NamedTuple):
    """What one engine was measured at; recall and milliseconds by the share of resources allowed."""

    name: str
    build_s: float
    disk_mb: float
    open_ms: float
    own_mb: float
    mapped_mb: float
    recall: dict[str, float]
    query_ms: dict[str, float]


def _measure(name: str, folder: Path) -> Figures:
    print(f"{name} …", file=sys.stderr, flush=True)
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir()
    built, asked = _run("build", name, folder), _run("ask", name, folder)
    truth, queries = np.load(folder / "vectors.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    tenths = np.load(folder / "tenths.npy")
    recall = {
        share: statistics.mean(
            float((truth[rows] @ query >= tenth - 1e-5).sum()) / 10
            for rows, query, tenth in zip(asked["rows"][share], queries, tenths[place], strict=True)
        )
        for place, share in enumerate(SHARES)
    }
    disk = sum(file.stat().st_size for file in (folder / name).rglob("*") if file.is_file()) / 1e6
    memory = asked["own_mb"], asked["mapped_mb"]
    return Figures(name, built["cpu_s"], disk, asked["open_ms"], *memory, recall, asked["query_ms"])


def _run(phase: str, name: str, folder: Path) -> dict[str, Any]:
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--phase", phase, "--engines", name, "--work", str(folder)]
    done = subprocess.run(command, env=os.environ | one_thread, stdout=subprocess.PIPE, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _build(name: str, folder: Path) -> None:
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    started = time.process_time()
    ENGINES[name][0](folder / name, vectors, np.load(folder / "lots.npy"), shape_for(len(vectors)))
    print(json.dumps({"cpu_s": time.process_time() - started}))


def _ask(name: str, folder: Path) -> None:
    queries, lots = np.load(folder / "queries.npy"), np.load(folder / "lots.npy")
    dimensions, shape = queries.shape[1], shape_for(len(lots) * RESOURCE_ROWS)
    _evict(folder / name)
    before = _memory()
    started = time.perf_counter()
    search = ENGINES[name][1](folder / name, dimensions, lots, shape)
    search(queries[0], 100)
    figures: dict[str, Any] = {"open_ms": (time.perf_counter() - started) * 1e3, "rows": {}, "query_ms": {}}
    for share, lot in SHARES.items():
        times = []
        figures["rows"][share] = []
        for query in queries:
            asked = time.process_time()
            rows = search(query, lot)
            times.append(time.process_time() - asked)
            figures["rows"][share].append(rows)
        figures["query_ms"][share] = statistics.median(times) * 1e3
    own, mapped = (after - earlier for after, earlier in zip(_memory(), before, strict=True))
    print(json.dumps(figures | {"own_mb": own, "mapped_mb": mapped}))


def _takes_part(name: str) -> bool:
    if reason := missing(name):
        print(f"{name} {reason}: left out")
    return not reason


# --- the vectors, and the truth about them ---


def _prepare(folder: Path, size: int, arguments: argparse.Namespace) -> None:
    size -= size % RESOURCE_ROWS
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.vectors:
        vectors = np.load(arguments.vectors, mmap_mode="r")
        queries = np.load(arguments.queries)[:QUERIES] if arguments.queries else vectors[-QUERIES:]
        vectors = vectors[: min(size, len(vectors) - (0 if arguments.queries else QUERIES))]
        vectors = vectors[: len(vectors) // RESOURCE_ROWS * RESOURCE_ROWS]
    else:
        vectors, queries = _text_vectors(arguments, size)
    lots = np.random.default_rng(1).integers(0, 100, len(vectors) // RESOURCE_ROWS)
    for name, values in (("vectors", vectors), ("queries", queries), ("lots", lots)):
        np.save(folder / f"{name}.npy", np.ascontiguousarray(values))
    np.save(folder / "tenths.npy", _tenth_best(vectors, queries, lots))


def _text_vectors(arguments: argparse.Namespace, size: int) -> tuple[Vectors, Vectors]:
    from safetensors.numpy import load_file  # type: ignore[import-not-found, unused-ignore]

    package = importlib.util.find_spec("wordllama")
    if package is None or package.origin is None:
        sys.exit("wordllama is not installed: give --vectors instead")
    home = Path(package.origin).parent
    (table,) = load_file(home / "weights" / "l2_supercat_256.safetensors").values()
    tokens = _tokens(arguments, home / "tokenizers" / "l2_supercat_tokenizer_config.json")
    stride = (len(tokens) - WINDOW) / size
    note = "" if stride >= WINDOW else f": {len(tokens):,} tokens are not enough for windows that do not overlap"
    print(f"{size:,} windows of {WINDOW} tokens, one every {stride:.1f}{note}")
    starts = np.linspace(0, len(tokens) - WINDOW, size).astype(np.int64)
    asked = np.random.default_rng(2).integers(0, len(tokens) - WINDOW, QUERIES)
    return _means(table, tokens, starts, WINDOW), _means(table, tokens, asked, QUERY_WINDOW)


def _tokens(arguments: argparse.Namespace, tokenizer_file: Path) -> NDArray[np.int64]:
    from tokenizers import Tokenizer

    kept = arguments.work / "vector-tokens.npy"
    if arguments.text is None and kept.exists():
        return np.asarray(np.load(kept))
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    texts = _texts(arguments.text or _default_tree(arguments.work))
    ids = [np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.int64) for text in texts]
    tokens = np.concatenate(ids)
    if arguments.text is None:
        np.save(kept, tokens)
    return tokens


def _texts(folder: Path) -> Iterator[str]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".py", ".rst", ".txt", ".md") and file.is_file():
            yield file.read_text("utf-8", "replace")


def _default_tree(work: Path) -> Path:
    from bench.corpus import make_tree

    return make_tree(work)


def _means(table: NDArray[Any], tokens: NDArray[np.int64], starts: NDArray[np.int64], length: int) -> Vectors:
    rows = np.empty((len(starts), table.shape[1]), np.float32)
    for place in range(0, len(starts), 500):
        windows = tokens[starts[place : place + 500, None] + np.arange(length)]
        rows[place : place + 500] = table[windows].astype(np.float32).mean(axis=1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _tenth_best(vectors: Vectors, queries: Vectors, lots: NDArray[np.int64]) -> Vectors:
    """The exact cosine of the tenth best row, for every share and query."""
    best = np.full((len(SHARES), len(queries), 10), -2, np.float32)
    for start in range(0, len(vectors), BATCH):
        cosines = queries @ vectors[start : start + BATCH].T
        for place, lot in enumerate(SHARES.values()):
            passing = cosines[:, allowed_mask(lots, lot)[start : start + BATCH]]
            best[place] = np.sort(np.hstack((best[place], passing)), axis=1)[:, -10:]
    return best[:, :, 0]


def _evict(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _memory() -> tuple[float, float]:
    """Megabytes of this process: its own, and those of mapped files."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) / 1e3, int(lines["RssFile"].split()[0]) / 1e3


def _print_table(folder: Path, rows: list[Figures]) -> None:
    count, dimensions = np.load(folder / "vectors.npy", mmap_mode="r").shape
    print(f"\n{count:,} vectors of {dimensions}; graphs {shape_for(count)}")
    shares = "".join(f"{'recall ' + share:>13}{'ms ' + share:>10}" for share in SHARES)
    print(f"{'':12}{'build CPU s':>12}{'disk MB':>9}{'open ms':>9}{'own MB':>8}{'mapped':>8}{shares}")
    for row in rows:
        found = "".join(f"{row.recall[share]:13.4f}{row.query_ms[share]:10.3f}" for share in SHARES)
        sizes = f"{row.disk_mb:9.0f}{row.open_ms:9.1f}{row.own_mb:8.0f}{row.mapped_mb:8.0f}"
        print(f"{row.name:12}{row.build_s:12.2f}{sizes}{found}")
    ours = next((row for row in rows if row.name == "findling"), None)
    for row in rows:
        if ours is not None and row is not ours:
            times = ", ".join(f"{share} {ours.query_ms[share] / row.query_ms[share]:.2f}" for share in SHARES)
            print(f"findling / {row.name}: build {ours.build_s / row.build_s:.2f}, query {times}")


if __name__ == "__main__":
    main()
