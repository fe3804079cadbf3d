"""What a second core brings to indexing, and what memory a larger tree costs.

    python bench/parallel.py [--work DIR] [--rounds 3] [--copies 4]

Indexes the tree of `bench/keywords.py` into a fresh workspace, in turn on one core and on two, and prints wall and CPU
seconds of the best round of each. Then indexes one copy and several copies of the tree and prints the peak memory of
all processes together beside that of the largest: resident, mapped files not counted, sampled 20 times a second. Needs
Linux.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.corpus import make_tree

SPEED_BAR = 1.6
INDEX = """
import sys, findling
settings = findling.Settings().override({"store.home": sys.argv[2]}, "bench")
with findling.open(sys.argv[1], settings=settings) as engine:
    report = engine.index()
print(report.added, report.chunks, report.failed)
"""


class Run(NamedTuple):
    """What indexing a tree once cost; memory in MB, of all processes and of the largest."""

    wall_s: float
    cpu_s: float
    total_mb: float
    largest_mb: float
    output: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=int, default=4)
    arguments = parser.parse_args()
    tree = make_tree(arguments.work)
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("this needs two cores")
    one, two = [], []
    for number in range(arguments.rounds):
        print(f"round {number + 1} …", file=sys.stderr, flush=True)
        one.append(index(tree, cores[:1]))
        two.append(index(tree, cores))
    single, double = min(one), min(two)
    print(f"{'':12} {'wall s':>8} {'CPU s':>8}   files, chunks, failed")
    print(f"{'one core':12} {single.wall_s:8.1f} {single.cpu_s:8.1f}   {single.output}")
    print(f"{'two cores':12} {double.wall_s:8.1f} {double.cpu_s:8.1f}   {double.output}")
    ratio = single.wall_s / double.wall_s
    print(f"two cores are {ratio:.2f} times as fast (bar {SPEED_BAR}, {'met' if ratio >= SPEED_BAR else 'MISSED'})")
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for number in range(arguments.copies):
            shutil.copytree(tree, Path(folder) / f"copy{number}")
        many = index(Path(folder), cores)
    print(f"\n{'':12} {'all MB':>8} {'largest':>8}   files, chunks, failed")
    print(f"{'1 tree':12} {double.total_mb:8.0f} {double.largest_mb:8.0f}   {double.output}")
    print(f"{f'{arguments.copies} trees':12} {many.total_mb:8.0f} {many.largest_mb:8.0f}   {many.output}")


def index(tree: Path, cores: list[int]) -> Run:
    """Index a tree into a workspace that is thrown away, on these cores alone."""
    with tempfile.TemporaryDirectory() as home:
        started = time.monotonic()
        before = os.times()
        process = subprocess.Popen(
            [sys.executable, "-c", INDEX, str(tree), home],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        total = largest = 0.0
        while process.poll() is None:
            sizes = [own_mb(pid) for pid in family(process.pid)]
            total, largest = max(total, sum(sizes)), max(largest, max(sizes, default=0.0))
            time.sleep(0.05)
        wall = time.monotonic() - started
        after = os.times()
        output = process.communicate()[0].strip()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(wall, cpu, total, largest, output)


def family(pid: int) -> list[int]:
    """A process and everything it has started."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(member for child in children for member in family(child))]


def own_mb(pid: int) -> float:
    """Resident memory of a process without the files it has mapped, which the system drops when it needs the room."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) * 1024 / 1e6
    except (OSError, IndexError):
        return 0.0


if __name__ == "__main__":
    main()
