"""The daemon under load: time of an answer, answers a second, CPU, memory; and the command line through it.

    python bench/serve.py [--work DIR] [--files 5000] [--seconds 5] [--connections 1 8 64] [--parts keyword instant cli]
    python bench/serve.py --parts refined            reads everything with the model first, which takes long
    python bench/serve.py --parts soak --soak 100000

The corpus is the first `--files` files of the tree of `bench/corpus.py`, in the order of their paths. The daemon is a
real one, `findling serve`, without its limit of requests a second; the client is `bench/load.py` in a process of its
own, or wrk with `--wrk`, if that is installed.

| part | asks |
| --- | --- |
| keyword | by words alone |
| instant | by words and instant vectors, no model |
| refined | by words and a model that has read everything |
| cli | `findling search` with the daemon and without it: CPU seconds of a call |
| soak | `--soak` requests by words, with the memory of the daemon in ten steps |

"new" is every question for the first time, "repeated" 200 questions over and over, each of which was asked before.
`--processes 1 auto` compares a daemon that answers by itself with one that has search processes, in turns. "front",
"search" and "client" are CPU ms for each answer: of the daemon's first process, of its search processes, and of the
client. Load is how busy all cores of the machine were meanwhile, with everybody else's work. Needs Linux.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpus import make_tree
from bench.load import bodies

REPOSITORY = Path(__file__).resolve().parent.parent
PEER_CPU_S = 2.45
"""What a call of the peer's command line costs, recorded on another machine."""

PARTS = ("keyword", "instant", "refined", "cli", "soak")
_TICKS = os.sysconf("SC_CLK_TCK")


class Daemon(NamedTuple):
    """A daemon that runs."""

    pid: int
    port: int
    environment: dict[str, str]

    def processes(self) -> list[int]:
        """Its search processes."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def cpu_s(self) -> float:
        """The time that it and its search processes have used since their start."""
        return sum(map(_cpu_s, (self.pid, *self.processes())))

    def rss_mb(self) -> float:
        """The memory that they hold; what they share counts once."""
        return sum(map(_pss_mb, (self.pid, *self.processes())))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _pss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.findall(r"Pss:\s+(\d+)", text)[0]) / 1024


def main() -> None:
    """Measure the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--every", type=int, default=1, help="take only every such file of the tree")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each load lasts")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["keyword", "instant", "cli"])
    parser.add_argument("--processes", nargs="+", default=["auto"], help="auto, 1 (the daemon alone), 2, …; in turns")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--soak", type=int, default=2000, help="requests of the soak")
    parser.add_argument("--calls", type=int, default=5, help="calls of the command line, each way")
    parser.add_argument("--wrk", action="store_true", help="load with wrk")
    arguments = parser.parse_args()
    folder, tree = lay_out(arguments.work, arguments.files, arguments.every)
    files = sum(1 for file in tree.rglob("*") if file.is_file())
    print(f"{platform.python_version()} on {os.cpu_count()} cores of {platform.machine()}; {files:,} files")
    for part in arguments.parts:
        environment = environment_of(folder, part)
        index_tree(tree, environment, refined=part == "refined")
        if part in ("soak", "cli"):
            with serving(tree, environment) as daemon:
                if part == "soak":
                    _soak(daemon, arguments.soak)
                else:
                    _command_line(daemon, tree, arguments.calls)
            continue
        with ExitStack() as stack:
            daemons = {}
            for name in arguments.processes:
                # A home has one daemon: each has a copy of the index.
                own = environment_of(folder, part, name)
                index_tree(tree, own, refined=part == "refined")
                daemons[name] = stack.enter_context(serving(tree, own))
            _load(daemons, part, arguments)


def lay_out(work: Path, count: int, every: int = 1) -> tuple[Path, Path]:
    """The folder of this benchmark, and the first files of the corpus in it, or every such file of them."""
    whole = make_tree(work)
    folder = work / (f"serve-{count}" if every == 1 else f"serve-{count}-{every}")
    tree = folder / "tree"
    if not (folder / ".complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        files = sorted(file for file in whole.rglob("*") if file.is_file() and file.name != ".complete")
        files = files[::every][:count]
        for file in files:
            target = tree / file.relative_to(whole)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        (folder / ".complete").touch()
    return folder, tree


def environment_of(folder: Path, part: str, processes: str = "auto") -> dict[str, str]:
    home = "refined" if part == "refined" else "home"
    own = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
    settings = {
        # An index of its own: what a model has read stays read.
        "FINDLING_HOME": str(folder / (home if processes == "auto" else f"{home}-{processes}")),
        "FINDLING_INDEX_WORKERS": "0" if processes == "auto" else processes,
        "FINDLING_CONFIG": str(folder / "config.toml"),
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SEMANTIC_MODEL": "auto" if part == "refined" else "none",
        "FINDLING_SERVE_RATE": "0",
    }
    return {**own, **settings, "PYTHONPATH": str(REPOSITORY / "src")}


def findling(*words: str) -> list[str]:
    return [sys.executable, "-m", "findling", *words]


def index_tree(tree: Path, environment: dict[str, str], *, refined: bool) -> None:
    subprocess.run(findling("index", str(tree)), env=environment, check=True, stdout=subprocess.DEVNULL)
    if refined:
        subprocess.run(findling("refine", str(tree)), env=environment, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def serving(tree: Path, environment: dict[str, str]) -> Iterator[Daemon]:
    """A daemon that is ready, and is ended in the end."""
    command = findling("serve", str(tree), "--port", "0", "--no-watch", "--yes")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield Daemon(process.pid, wait_until_ready(process, Path(environment["FINDLING_HOME"])), environment)
        except ChildProcessError as error:
            log.seek(0)
            raise SystemExit(f"{error}: {log.read().decode()}") from error
        finally:
            process.terminate()
            process.wait(30)


def wait_until_ready(process: subprocess.Popen[bytes], home: Path) -> int:
    """The port of a daemon that answers. Raises ChildProcessError when it has ended."""
    state, found = home / ".daemon" / "state.json", dict[str, Any]()
    while found.get("pid") != process.pid:
        if process.poll() is not None:
            raise ChildProcessError("the daemon did not start")
        time.sleep(0.05)
        found = json.loads(state.read_text()) if state.exists() else {}
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{found['port']}/readyz", timeout=10):
                return int(found["port"])
        except OSError:
            time.sleep(0.1)


def _load(daemons: dict[str, Daemon], part: str, arguments: argparse.Namespace) -> None:
    mode = "keyword" if part == "keyword" else "hybrid"
    memory = ", ".join(f"{name} {daemon.rss_mb():.0f} MB" for name, daemon in daemons.items())
    print(f"\n{part}: {mode}; {memory}")
    print(
        f"{'queries':<10}{'connections':>12}{'processes':>11}{'req/s':>7}{'p50 ms':>8}{'p99 ms':>8}"
        f"{'front':>8}{'search':>8}{'client':>8}{'load':>6}{'failed':>8}"
    )
    rows = [(queries, count) for queries in ("new", "repeated") for count in arguments.connections]
    for place, (queries, count) in enumerate(rows * arguments.rounds):
        for name, daemon in daemons.items():
            _measure(daemon, name, mode, queries, count, arguments, seed=1000 * place + count)


def _measure(
    daemon: Daemon, name: str, mode: str, queries: str, count: int, arguments: argparse.Namespace, seed: int
) -> None:
    """Print the figures of one load; CPU is in ms for each answer, of all search processes together."""
    seed = seed if queries == "new" else 0
    before, front, busy = daemon.cpu_s(), _cpu_s(daemon.pid), _busy()
    measure = _wrk if arguments.wrk and shutil.which("wrk") else own_client
    told = measure(daemon, mode, queries, count, arguments.seconds, seed)
    answers = max(told.get("asked", told["per_second"] * arguments.seconds), 1.0) / 1000
    front = _cpu_s(daemon.pid) - front
    search = daemon.cpu_s() - before - front
    load, client = _share(busy, _busy()), told.get("client_cpu_s", 0.0)
    print(
        f"{queries:<10}{count:>12}{name:>11}{told['per_second']:>7.0f}{told['p50_ms']:>8.1f}{told['p99_ms']:>8.1f}"
        f"{front / answers:>8.2f}{search / answers:>8.2f}{client / answers:>8.2f}{load:>6.0%}{told['failed']:>8.0f}",
        flush=True,
    )


def own_client(
    daemon: Daemon, mode: str, queries: str, count: int, seconds: float, seed: int, requests: int = 10**9
) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.load", str(daemon.port)]
    command += ["--connections", str(count), "--mode", mode, "--queries", queries, "--seed", str(seed)]
    command += ["--seconds", str(seconds), "--requests", str(requests)]
    told: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=REPOSITORY).stdout
    )
    return told


def _wrk(daemon: Daemon, mode: str, queries: str, count: int, seconds: float, seed: int) -> dict[str, float]:
    """The same by wrk, which goes through so many questions that none comes twice in this time."""
    asked = bodies(mode, queries, seed)
    lines = [next(asked).decode() for _ in range(200 if queries == "repeated" else 50_000)]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        listed = ",\n".join(f"[==[{line}]==]" for line in lines)
        script.write(f"local asked = {{{listed}}}\nlocal place = 0\n")
        script.write('wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n')
        script.write("request = function()\n  place = place % #asked + 1\n")
        script.write("  return wrk.format(nil, nil, nil, asked[place])\nend\n")
        script.flush()
        address = f"http://127.0.0.1:{daemon.port}/v1/search"
        command = ["wrk", "-t1", f"-c{count}", f"-d{seconds:.0f}s", "--latency", "-s", script.name, address]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return {
        "per_second": float(re.findall(r"Requests/sec:\s+([\d.]+)", text)[0]),
        "p50_ms": _milliseconds(re.findall(r"50%\s+(\S+)", text)[0]),
        "p99_ms": _milliseconds(re.findall(r"99%\s+(\S+)", text)[0]),
        "failed": float(failed[1]) if failed else 0.0,
    }


def _milliseconds(text: str) -> float:
    number, unit = re.findall(r"([\d.]+)(\D+)", text)[0]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[str(unit)]


def _soak(daemon: Daemon, requests: int) -> None:
    print(f"\nsoak: {requests:,} questions by words over 8 connections, one in five of them new")
    print(f"{'requests':>10}{'MB':>8}{'CPU ms each':>13}")
    print(f"{0:>10,}{daemon.rss_mb():>8.0f}")
    step = max(requests // 10, 1)
    for number in range(1, 11):
        before = daemon.cpu_s()
        own_client(daemon, "keyword", "new", 8, 1e9, number, step // 5)
        own_client(daemon, "keyword", "repeated", 8, 1e9, number, step - step // 5)
        each = (daemon.cpu_s() - before) / step * 1000
        print(f"{step * number:>10,}{daemon.rss_mb():>8.0f}{each:>13.2f}", flush=True)


def _command_line(daemon: Daemon, tree: Path, calls: int) -> None:
    print(f"\ncommand line: CPU s of `findling search`, best of {calls}")
    search = findling("search", "database connection pool", str(tree), "--format", "files")
    before = daemon.cpu_s()
    through = min(_cpu_of(search, daemon.environment) for _ in range(calls))
    served = (daemon.cpu_s() - before) / calls
    alone = min(_cpu_of(search, {**daemon.environment, "FINDLING_SERVE_USE": "never"}) for _ in range(calls))
    print(f"through the daemon {through:.3f} (and {served:.3f} in the daemon), without it {alone:.3f}")
    bar = PEER_CPU_S / 10
    print(f"a tenth of the peer's {PEER_CPU_S} is {bar:.3f}: {'met' if through <= bar else 'NOT met'}")


def _cpu_of(command: Sequence[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _busy() -> tuple[float, float]:
    """How long all cores have worked, and how long there were any, since the start of the machine."""
    numbers = [int(part) for part in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return float(sum(numbers) - numbers[3] - numbers[4]), float(sum(numbers))


def _share(before: tuple[float, float], after: tuple[float, float]) -> float:
    return (after[0] - before[0]) / max(after[1] - before[1], 1.0)


if __name__ == "__main__":
    main()
