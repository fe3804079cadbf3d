"""One million passages: the cost of a first index by size, its memory, and that of a question.

    python bench/million.py [--work DIR] [--passages 100000 300000 1000000] [--keep]

Writes synthetic text, passages of 60 words drawn as words are in a language: the n-th word is n times as rare as the
first, the commonest are stop words, and frequent words are short. Each file of 100 passages has 20 names of its own,
every twentieth word. So a million passages have some 250,000 different words, as many as English text of that length.
A question is three words of one passage, stop words left out; in every fifth question one of them is a name.

Indexes with the default settings, but for passages of 60 words and no model's reading. CPU seconds count the process
and those it started; memory is that of the largest process, with the mapped files it has read. Questions are asked in
one new process each mode; `open` is the CPU time up to its first answer. CPU a MB should not grow with the size.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import os
import random
import shutil
import statistics
from collections.abc import Iterator
from itertools import accumulate, count, islice, product
from pathlib import Path

from bench.keywords import _measure
from findling.text.analysis.analysis import STOP_WORDS

WORDS, PASSAGE, PASSAGES_A_FILE, NAMES_A_FILE, NAME_EVERY, QUESTIONS = 50_000, 60, 100, 20, 20, 50
SYLLABLES = (
    "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro".split()
)

ASK = """
import sys, time
import findling
tree, mode, questions = sys.argv[1], sys.argv[2], sys.argv[3:]
with findling.open(tree) as engine:
    engine.search("warm up", mode=mode, refresh=False)
    print(time.process_time())
    for question in questions:
        before = time.process_time()
        engine.search(question, mode=mode, refresh=False)
        print(time.process_time() - before)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench" / "million")
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--keep", action="store_true", help="leave the text and the indexes where they are")
    arguments = parser.parse_args()
    print("".join(f"{head:>10}" for head in ("passages", "MB", "CPU s", "ms/MB", "peak MB", "index MB")))
    for passages in arguments.passages:
        _measure_size(arguments.work, passages)
    if not arguments.keep:
        shutil.rmtree(arguments.work)


def write_text(tree: Path, passages: int, seed: int = 1) -> list[str]:
    """Write so many passages into files, and return questions about them."""
    chance = random.Random(seed)
    stop_words = sorted(STOP_WORDS)
    words = stop_words + list(islice(_made_words(chance), WORDS - len(stop_words)))
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(WORDS)))
    asked = dict.fromkeys(chance.sample(range(passages), QUESTIONS), "")
    for number in range(0, passages, PASSAGES_A_FILE):
        file = tree / f"{number // 100_000:03}" / f"{number // PASSAGES_A_FILE:06}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        names = ["".join(chance.choices(SYLLABLES, k=5)).capitalize() for _ in range(NAMES_A_FILE)]
        lines = []
        for passage in range(number, min(number + PASSAGES_A_FILE, passages)):
            said = chance.choices(words, cum_weights=weights, k=PASSAGE)
            if passage in asked:
                telling = sorted(set(said) - STOP_WORDS)
                name = [chance.choice(names)] if len([text for text in asked.values() if text]) % 5 == 0 else []
                asked[passage] = " ".join(name + chance.sample(telling, 3 - len(name)))
            said[::NAME_EVERY] = chance.choices(names, k=PASSAGE // NAME_EVERY)
            lines.append(" ".join(said))
        file.write_text("\n".join(lines) + "\n")
    return list(asked.values())


def _made_words(chance: random.Random) -> Iterator[str]:
    """Words that no language has, each once, the short ones first."""
    for syllables in count(1):
        made = ["".join(parts) for parts in product(SYLLABLES, repeat=syllables)]
        chance.shuffle(made)
        yield from (word for word in made if word not in STOP_WORDS)


def _measure_size(work: Path, passages: int) -> None:
    tree, home = work / f"tree-{passages}", work / f"home-{passages}"
    for folder in (tree, home):
        shutil.rmtree(folder, ignore_errors=True)
    questions = write_text(tree, passages)
    size_mb = _folder_mb(tree)
    environment = {
        **os.environ,
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": os.devnull,
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SEMANTIC_QUERY_BUDGET_MS": "0",
        "FINDLING_CHUNK_PRESET": f"fixed:{PASSAGE}:words",
    }
    indexed = _measure([sys.executable, "-m", "findling", "index", tree], environment)
    costs = indexed.cpu_s, indexed.cpu_s / size_mb * 1000, indexed.peak_mb, _folder_mb(home)
    print("".join(f"{figure:10,.0f}" for figure in (passages, size_mb, *costs)), flush=True)
    for mode in ("keyword", "hybrid"):
        asked = _measure([sys.executable, "-c", ASK, tree, mode, *questions], environment)
        opening, *times = (float(line) * 1000 for line in asked.output.split())
        p50, p95 = statistics.median(times), sorted(times)[int(len(times) * 0.95)]
        print(
            f"{mode:>10} p50 {p50:.1f} ms, p95 {p95:.1f} ms, open {opening:.0f} ms, {asked.peak_mb:.0f} MB", flush=True
        )


def _folder_mb(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


if __name__ == "__main__":
    main()
