"""`findling grep` through the warm process against ripgrep, on the same tree and in the same run.

    python bench/grep.py [--work DIR] [--megabytes 64] [--rounds 10]

The tree is text of Python's standard library and of the packages that are installed here. For each pattern both take
turns. Figures are CPU time: of ripgrep the best of the rounds; of findling the best of the shell's process, and the
mean of the forks that answer, because the kernel counts those in steps of 10 ms. Both must print the same lines.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import compileall
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import findling
from bench.shell import Cost, spent, warm_process

PATTERNS = {
    "rare substring": ["-F", "_is_internal_class"],
    "rare word": ["-w", "zipimporter"],
    "regex with a literal": [r"def \w+_timeout\("],
    "rare, case ignored": ["-i", "zipIMPORTerror"],
    "common": ["-c", "import"],
    "common, case ignored": ["-c", "-i", "return none"],
    "no literal": ["-c", r"\d\d\d\d\d\d\d\d"],
}
KINDS = (".py", ".pyi", ".md", ".rst", ".txt", ".c", ".h", ".pyx", ".toml", ".cfg")
FINDLING = [sys.executable, "-P", "-m", "findling"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for tree and index; by default one that is deleted")
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.work or Path(folder), given.megabytes << 20, given.rounds)


def measure(work: Path, size: int, rounds: int) -> None:
    """Make the tree, its index and a warm process, and print what every pattern costs."""
    compileall.compile_dir(str(Path(findling.__file__).parent), quiet=2)  # as an installer does
    tree, home = work / "tree", work / "home"
    if not tree.exists():
        plant(tree, size)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_") and name != "CI"}
    environ |= {
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": str(work / "none.toml"),
        "FINDLING_SEMANTIC_MODEL": "none",
        "FINDLING_SEMANTIC_INSTANT": "false",
        "FINDLING_SERVE_AUTO": "always",
    }
    # Alone: a command that starts a warm process of its own would be answered by forks that nobody counts.
    alone = environ | {"FINDLING_SERVE_AUTO": "never"}
    subprocess.run([*FINDLING, "index", str(tree)], env=alone, check=True, stderr=subprocess.DEVNULL)
    keep_indexed(tree, alone)
    count, total = 0, 0
    for path in tree.rglob("*"):
        if path.is_file():
            count, total = count + 1, total + path.stat().st_size
    print(f"{count:,} files, {total / 1e6:.1f} MB, best of {rounds} rounds, CPU ms")
    print(f"{'pattern':24}{'rg':>8}{'findling':>10}{'shell':>8}{'fork':>8}{'times':>8}  strategy")
    with warm_process(home, environ) as pid:
        for name, flags in PATTERNS.items():
            compare(name, flags, tree, environ, pid, rounds)


def plant(tree: Path, size: int) -> None:
    """Copy text files of the installation until there is enough of them."""
    left = size
    for kind in ("stdlib", "purelib", "platlib"):
        root = Path(sysconfig.get_paths()[kind])
        for path in sorted(root.rglob("*")):
            if path.suffix not in KINDS or not path.is_file() or path.stat().st_size > 1 << 20 or left <= 0:
                continue
            target = tree / kind / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            os.utime(target, (1.7e9, 1.7e9))
            left -= path.stat().st_size


def keep_indexed(tree: Path, environ: dict[str, str]) -> None:
    """Delete what the index leaves out, so that both search the same files."""
    listed = subprocess.run(
        [*FINDLING, "glob", "*"], env=environ, cwd=tree, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    known = set(listed)
    for path in tree.rglob("*"):
        if path.is_file() and path.relative_to(tree).as_posix() not in known:
            path.unlink()
    time.sleep(2.5)  # files and folders that were changed a moment ago are looked at again by every search


def compare(name: str, flags: list[str], tree: Path, environ: dict[str, str], pid: int, rounds: int) -> None:
    """Check that both print the same, and print what each costs."""
    ours, theirs = [*FINDLING, "grep", *flags, str(tree)], ["rg", "-n", *flags, str(tree)]
    alone = environ | {"FINDLING_SERVE_AUTO": "never"}
    told = subprocess.run([*ours, "--explain"], env=alone, capture_output=True, check=True)
    wanted = subprocess.run([*theirs[:1], "--sort", "path", *theirs[1:]], capture_output=True, check=True)
    assert told.stdout == wanted.stdout, f"{flags}: other lines than those of ripgrep"
    costs: dict[str, list[Cost]] = {"rg": [], "findling": []}
    for turn in range(-2, rounds):
        for who, command in (("rg", theirs), ("findling", ours)):
            cost = spent(command, environ, pid)
            if turn >= 0:
                costs[who].append(cost)
    rg, shell = (min(cost.cpu for cost in costs[who]) * 1000 for who in ("rg", "findling"))
    fork = sum(cost.forks for cost in costs["findling"]) / rounds * 1000
    assert fork, "no fork was counted: another warm process has answered"
    strategy = told.stderr.decode().strip().removeprefix("findling: ")
    print(f"{name:24}{rg:8.0f}{shell + fork:10.0f}{shell:8.0f}{fork:8.0f}{(shell + fork) / rg:8.2f}  {strategy}")


if __name__ == "__main__":
    main()
