"""The compiled core beside its reference in Python, in one run: CPU time, best of the rounds, interleaved.

    python bench/core.py [FOLDER] [--rounds 5] [--megabytes 3] [--vectors 78000]

Texts are pieces of 1,600 characters of the files in FOLDER, by default the standard library of this Python.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from findling.core import core_problem, native
from findling.models.local import instant
from findling.stores.vectors import vector_scan
from findling.text.analysis import analysis, lines, wordpieces

PIECE = 1_600
WANTED = dict.fromkeys("database connection pool timeout self import return value name index".split())


def _reference(text: str) -> list[bytes]:
    return instant._codes(instant._sums([text]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(argparse.__file__).parent)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=3)
    parser.add_argument("--vectors", type=int, default=78_000)
    arguments = parser.parse_args()
    if native is None:
        sys.exit(f"there is no compiled core: {core_problem}")
    texts = list(_texts(arguments.folder, int(arguments.megabytes * 1e6)))
    megabytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
    print(f"{len(texts):,} texts, {megabytes:.1f} MB; best of {arguments.rounds} rounds, CPU time")
    print(f"{'':34}{'Python':>10}{'core':>10}{'times':>8}")
    for name, plain, fast in (
        ("terms", analysis._terms_with_spaces, analysis.index_form),
        ("token counts", wordpieces._count_tokens, wordpieces.count_tokens),
        (
            "instant vectors",
            lambda text: instant._codes(instant._sums([text])),
            lambda text: instant.instant_codes([text]),
        ),
    ):
        slow, quick = _best([_each(plain, texts), _each(fast, texts)], arguments.rounds)
        _print(f"{name}, ms/MB", slow / megabytes, quick / megabytes)
    spans = [
        _each(lambda text: analysis._matching_spans(text, WANTED), texts),
        _each(lambda text: analysis.matching_spans(text, WANTED), texts),
    ]
    slow, quick = _best(spans, arguments.rounds)
    _print("matching spans, µs a passage", slow * 1e3 / len(texts), quick * 1e3 / len(texts))
    sentences = [_each(lines._sentences_of, texts), _each(lines.sentences_in, texts)]
    slow, quick = _best(sentences, arguments.rounds)
    _print("sentences, µs a passage", slow * 1e3 / len(texts), quick * 1e3 / len(texts))
    _scan(arguments.vectors, arguments.rounds)


def _scan(rows: int, rounds: int) -> None:
    assert native is not None
    chance = np.random.default_rng(1)
    codes, scales = chance.integers(-127, 128, (rows, 256), np.int8), chance.random(rows, np.float32)
    query = vector_scan.Query.of(chance.random(256, np.float32))
    out = np.empty(rows, np.float32)

    def plain() -> None:
        vector_scan._plain_cosines(query, codes, scales)

    def fast(kernel: int) -> Callable[[], None]:
        def run() -> None:
            assert native is not None
            native.scan(query.codes, codes, scales, query.scale, out, kernel)

        return run

    slow, *quick = _best([plain, *(fast(kernel) for kernel in range(len(native.KERNELS)))], rounds * 4)
    for name, spent in zip(native.KERNELS, quick, strict=True):
        _print(f"{rows:,} vectors, {name}, ms", slow, spent)


def _texts(folder: Path, size: int) -> Iterator[str]:
    for file in sorted(folder.rglob("*")):
        if size <= 0:
            return
        if file.suffix in (".py", ".rst", ".txt", ".md", ".c", ".html") and file.is_file():
            text = file.read_text("utf-8", "replace")
            size -= len(text)
            yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _each(call: Callable[[str], object], texts: list[str]) -> Callable[[], object]:
    def run() -> None:
        for text in texts:
            call(text)

    return run


def _best(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """The least milliseconds of each, in turn within every round."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            before = time.process_time()
            call()
            best[place] = min(best[place], (time.process_time() - before) * 1e3)
    return best


def _print(name: str, slow: float, quick: float) -> None:
    print(f"{name:34}{slow:10.2f}{quick:10.2f}{slow / quick:8.1f}")


if __name__ == "__main__":
    main()
