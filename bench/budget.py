"""The dearest requests that a read token can send: CPU seconds of each, and what others notice of three at once.

    python bench/budget.py [--work DIR] [--files 5000] [--tree DIR] [--seconds 10]

The corpus and the daemon are those of `bench/serve.py`. The CPU time is that of the whole daemon, until it has
settled after the answer, so what goes on behind an answer counts, too. Needs Linux.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import random
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bench.serve import Daemon, environment_of, findling, index_tree, lay_out, serving

_WORDS = (
    "return self value import error parser field number string method index node array result option module "
    "default context request response client handler import_module get_user read_file test_case"
).split()
_FACETS = ["type", "ext", "lang", "author", "tag", "system", "path", "year"]


class Told(NamedTuple):
    """What came back: status, size of the body, and how long it took."""

    status: int
    size: int
    seconds: float
    degraded: int = 0


def main() -> None:
    """Ask for each of the dear things alone, then for three of them at once while somebody else asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--tree", type=Path, help="a folder to search instead; the index comes beside it")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long three dear requests go on at once")
    arguments = parser.parse_args()
    tree = arguments.tree
    folder, tree = (tree.parent, tree) if tree else lay_out(arguments.work, arguments.files)
    environment = {**environment_of(folder, "instant"), "FINDLING_PERMISSIONS_UNSET": "public"}
    index_tree(tree, environment, refined=False)
    tokens = [_token(name, environment) for name in ("greedy", "other")]
    with serving(tree, environment) as daemon:
        for token in tokens:
            # The first question of somebody with limited rights makes their view, in as many tries as that takes.
            while ask(daemon, token, "/v1/search", {"query": "warm up"}).status != 200:
                time.sleep(1)
        _settled(daemon)
        print(f"{'request':<28}{'CPU s':>7}{'wall s':>8}{'status':>8}{'KB':>9}{'degraded':>10}")
        for name, path, body in attacks():
            before = daemon.cpu_s()
            told = ask(daemon, tokens[0], path, body)
            cost = _settled(daemon) - before
            row = f"{cost:>7.2f}{told.seconds:>8.2f}{told.status:>8}{told.size / 1000:>9.1f}{told.degraded:>10}"
            print(f"{name:<28}{row}", flush=True)
        _three_at_once(daemon, tokens, arguments.seconds)


def attacks() -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """A name, the route, and the body; without one it is a GET."""
    chance = random.Random(7)
    many = [chance.choice(_WORDS) + chance.choice("abcdefgh") for _ in range(400)]
    common = {"query": "return self import value"}
    everything = {"collapse": True, "boosts": True, "diversity": 0.5, "overfetch": 100, "group": "resource"}
    yield "plain", "/v1/search", {"query": "parse a url"}
    yield "60 words in any spelling", "/v1/search", {"query": " ".join(f"{word}~2" for word in many[:60])}
    yield "400 beginnings", "/v1/search", {"query": " OR ".join(f"{word[:2]}*" for word in many)}
    yield "10,000 characters", "/v1/search", {"query": " ".join(many * 9)[:10_000]}
    yield (
        "phrases",
        "/v1/search",
        {"query": " ".join(f'"{a} {b}"' for a, b in pairwise(many))[:9999]},
    )
    yield "exclusions", "/v1/search", {"query": "self " + " ".join(f"-{word}" for word in many)}
    yield "path globs", "/v1/search", {**common, "filters": {"path": ["*a*e*i*o*u*" * 50] * 100}}
    yield "limit 1,000", "/v1/search", {**common, "limit": 1000}
    yield "limit 1,000, context 100", "/v1/search", {**common, "limit": 1000, "context": 100, "explain": True}
    yield "collapse, overfetch 100", "/v1/search", {
        **common, "limit": 1000, "plan": {"collapse": True, "overfetch": 100}}  # fmt: skip
    yield "all stages", "/v1/search", {**common, "limit": 1000, "plan": everything}
    yield "feedback", "/v1/search", {**common, "limit": 1000, "plan": {"feedback": True, "overfetch": 100}}
    yield "offset 100,000", "/v1/search", {**common, "offset": 100_000}
    yield "min_score 1", "/v1/search", {**common, "limit": 1000, "min_score": 1.0}
    yield "exclude everything", "/v1/search", {**common, "limit": 1000, "exclude_pattern": "."}
    yield "all facets", "/v1/search", {**common, "facets": _FACETS}
    yield "suggest", f"/v1/suggest?limit=1000&q={'self%20' * 1000}re", None
    yield "suggest one letter", "/v1/suggest?limit=1000&q=s", None


def ask(daemon: Daemon, token: str, path: str, body: dict[str, Any] | None) -> Told:
    """Send one request and read the answer to its end."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}{path}", data, headers)
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            status, text = response.status, response.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    seconds = time.perf_counter() - started
    degraded = json.loads(text).get("degraded", []) if text[:1] == b"{" else []
    return Told(status, len(text), seconds, len(degraded))


def _three_at_once(daemon: Daemon, tokens: list[str], seconds: float) -> None:
    dear = [(path, body) for name, path, body in attacks() if name in ("60 words in any spelling", "all stages")]
    ends = time.perf_counter() + seconds

    def keep_asking(number: int) -> None:
        while time.perf_counter() < ends:
            ask(daemon, tokens[0], *dear[number % len(dear)])

    threads = [threading.Thread(target=keep_asking, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    others: list[Told] = []
    while time.perf_counter() < ends:
        told = ask(
            daemon, tokens[1], "/v1/search", {"query": f"parse {_WORDS[len(others) % len(_WORDS)]} {len(others)}"}
        )
        others.append(told)
    for thread in threads:
        thread.join()
    waits = sorted(told.seconds for told in others)
    failed = sum(told.status != 200 for told in others)
    shares = {"p50": 0.5, "p99": 0.99}
    told_shares = ", ".join(f"{name} {waits[int(share * (len(waits) - 1))]:.2f} s" for name, share in shares.items())
    print(f"others, while three dear requests run at once: {len(waits)} requests, {failed} failed, {told_shares}")


def _settled(daemon: Daemon) -> float:
    """The CPU time of the daemon once it does nothing any more."""
    last = daemon.cpu_s()
    while True:
        time.sleep(0.4)
        now = daemon.cpu_s()
        if now - last <= 0.01:
            return now
        last = now


def _token(name: str, environment: dict[str, str]) -> str:
    subprocess.run(findling("token", "revoke", name), env=environment, check=False, capture_output=True)
    made = subprocess.run(
        findling("token", "create", name, "--as", f"user:{name}", "--json"),
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return str(json.loads(made.stdout)["token"])


if __name__ == "__main__":
    main()
