"""A client that keeps a server busy: some connections, each of which asks as soon as it has its answer.

    python -m bench.load PORT --connections 8 --requests 1000 --mode keyword --queries new --seed 1

It runs in a process of its own, so that its work is not counted as that of the server, and prints one line of JSON.
Plain sockets and bytes: a client library takes more CPU for a request than the server does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterator

__all__ = ["WORDS", "bodies", "percentile"]

WORDS = """database connection pool timeout register custom template tag class view mixin parse directive options
integration rational functions reactor shutdown event protocol inference migrations dependencies shortest path weight
fixture scope teardown query prefetch related user authentication backend request headers thread local storage plugin
entry point file descriptor leak unicode decode error regular expression match group date zone conversion cache key
prefix session cookie expiry load workers serialize json foreign constraint delete command option parser test client
form stack trace matrix determinant polynomial abstract syntax tree visitor type annotation decorators async generator
ssl certificate logging handler level configuration precedence role variable inventory host pattern node edge""".split()

REPEATED = 200


def bodies(mode: str, queries: str, seed: int) -> Iterator[bytes]:
    """What is asked: three words each time, other ones for ever (`new`), or 200 such questions again and again."""
    chance = random.Random(seed)

    def body() -> bytes:
        query = " ".join(chance.sample(WORDS, 3))
        return json.dumps({"query": query, "mode": mode, "limit": 10}).encode()

    if queries == "new":
        while True:
            yield body()
    kept = [body() for _ in range(REPEATED)]
    yield from kept
    while True:
        yield chance.choice(kept)


def percentile(times: list[float], share: float) -> float:
    """Of times in ascending order."""
    return times[min(int(len(times) * share), len(times) - 1)]


async def _ask(
    port: int, asked: Iterator[bytes], times: list[float], failed: list[int], left: Iterator[int], end: float
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    head = "POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
    try:
        for _ in left:
            body = next(asked)
            started = time.perf_counter()
            if started > end:
                return
            writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            size = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            times.append(time.perf_counter() - started)
            if not answer.startswith(b"HTTP/1.1 200"):
                failed.append(int(answer.split()[1]))
    finally:
        writer.close()
        await writer.wait_closed()


async def _load(arguments: argparse.Namespace) -> dict[str, object]:
    times: list[float] = []
    failed: list[int] = []
    asked = bodies(arguments.mode, arguments.queries, arguments.seed)
    if arguments.queries == "repeated":  # the first time of each is not what is measured
        await _ask(arguments.port, asked, [], [], iter(range(REPEATED)), float("inf"))
    left = iter(range(arguments.requests))
    before_s = time.process_time()
    started = time.perf_counter()
    end = started + arguments.seconds
    await asyncio.gather(*(_ask(arguments.port, asked, times, failed, left, end) for _ in range(arguments.connections)))
    seconds = time.perf_counter() - started
    times.sort()
    return {
        "asked": len(times),
        "failed": len(failed),
        "seconds": seconds,
        "per_second": len(times) / seconds,
        "p50_ms": percentile(times, 0.5) * 1000,
        "p99_ms": percentile(times, 0.99) * 1000,
        "client_cpu_s": time.process_time() - before_s,
    }


def main() -> None:
    """Ask, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--requests", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--mode", default="keyword", choices=("keyword", "hybrid", "semantic"))
    parser.add_argument("--queries", default="new", choices=("new", "repeated"))
    parser.add_argument("--seed", type=int, default=1)
    print(json.dumps(asyncio.run(_load(parser.parse_args()))))


if __name__ == "__main__":
    main()
