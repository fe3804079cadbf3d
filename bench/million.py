"""One million passages: the cost of a first index by size, its memory, and that of a hybrid question.

    python bench/million.py [--work DIR] [--passages 100000 1000000] [--keep]

Writes synthetic text, passages of 60 words drawn from a vocabulary as words are in a language: a few often, most
rarely. A tenth of the words are names of their own, so that the vocabulary grows with the text. Indexes it with the
default settings, but for passages of 60 words and no model's reading in the background. CPU seconds count the process
and those it started; memory is that of the largest process. CPU a MB should not grow with the number of passages.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path, and this one holds a `keyword` that the standard library would import.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import os
import random
import shutil
import statistics
from itertools import accumulate
from pathlib import Path

from bench.keyword import _measure

WORDS, PASSAGE, PASSAGES_A_FILE = 50_000, 60, 100
SYLLABLES = (
    "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro".split()
)

ASK = """
import sys, time
import findling
tree, questions = sys.argv[1], sys.argv[2:]
with findling.open(tree) as engine:
    engine.search("warm up", refresh=False)
    for question in questions:
        before = time.process_time()
        engine.search(question, refresh=False)
        print(time.process_time() - before)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench" / "million")
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--keep", action="store_true", help="leave the text and the indexes where they are")
    arguments = parser.parse_args()
    heads = ("passages", "MB", "CPU s", "CPU ms/MB", "peak MB", "index MB", "hybrid p50 ms", "its MB")
    print("".join(f"{head:>15}" for head in heads))
    for passages in arguments.passages:
        _measure_size(arguments.work, passages)
    if not arguments.keep:
        shutil.rmtree(arguments.work)


def write_text(tree: Path, passages: int, seed: int = 1) -> list[str]:
    """Write so many passages into files, and return some questions about them."""
    chance = random.Random(seed)
    words = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(WORDS)]
    # Zipf: the n-th word is n times as rare as the first.
    weights = list(accumulate(1 / (rank + 10) for rank in range(WORDS)))
    for number in range(0, passages, PASSAGES_A_FILE):
        file = tree / f"{number // 100_000:03}" / f"{number // PASSAGES_A_FILE:06}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for passage in range(number, min(number + PASSAGES_A_FILE, passages)):
            said = chance.choices(words, cum_weights=weights, k=PASSAGE)
            for place in range(0, PASSAGE, 10):
                said[place] = f"{said[place]}{passage:x}"
            lines.append(" ".join(said))
        file.write_text("\n".join(lines) + "\n")
    return [" ".join(chance.choices(words, k=3)) for _ in range(20)]


def _measure_size(work: Path, passages: int) -> None:
    tree, home = work / f"tree-{passages}", work / f"home-{passages}"
    for folder in (tree, home):
        shutil.rmtree(folder, ignore_errors=True)
    questions = write_text(tree, passages)
    size_mb = sum(file.stat().st_size for file in tree.rglob("*.txt")) / 1e6
    environment = {
        **os.environ,
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": os.devnull,
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_CHUNK_PRESET": f"fixed:{PASSAGE}:words",
    }
    indexed = _measure([sys.executable, "-m", "findling", "index", tree], environment)
    asked = _measure([sys.executable, "-c", ASK, tree, *questions], environment)
    index_mb = sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) / 1e6
    p50 = statistics.median(map(float, asked.output.split())) * 1000
    costs = indexed.cpu_s, indexed.cpu_s / size_mb * 1000, indexed.peak_mb, index_mb, p50, asked.peak_mb
    print("".join(f"{figure:15,.1f}" for figure in (passages, size_mb, *costs)), flush=True)


if __name__ == "__main__":
    main()
