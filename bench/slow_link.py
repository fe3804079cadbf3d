"""A link between a client and a server that takes time, and counts what comes: a proxy on 127.0.0.1.

    python bench/slow_link.py HOST:PORT [--ms 10]

It prints its own port, and passes bytes on after so many milliseconds in each direction, half of a round trip each.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress


class SlowLink:
    """A proxy to a server; `received` and `sent` count the bytes for and of its clients. `close` ends it."""

    def __init__(self, host: str, port: int, round_trip_ms: float = 0.0) -> None:
        self._server, self._delay_s = (host, port), round_trip_ms / 2000
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.received = self.sent = self.connections = 0
        self._start(self._accept)

    def close(self) -> None:
        """Take no more connections; those that are open go on."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(self._server)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pass_on(client, server, "sent")
            self._pass_on(server, client, "received")

    def _pass_on(self, source: socket.socket, target: socket.socket, counter: str) -> None:
        """Have one thread read, and another one write what was read long enough ago."""
        waiting: deque[tuple[float, bytes]] = deque()
        is_there = threading.Semaphore(0)

        def read() -> None:
            data = b"."
            while data:
                try:
                    data = source.recv(1 << 18)
                except OSError:
                    data = b""
                setattr(self, counter, getattr(self, counter) + len(data))
                waiting.append((time.monotonic() + self._delay_s, data))
                is_there.release()

        def write() -> None:
            with suppress(OSError):
                while is_there.acquire():
                    due, data = waiting.popleft()
                    time.sleep(max(0.0, due - time.monotonic()))
                    if not data:
                        break
                    target.sendall(data)
            for one in (source, target):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        self._start(read)
        self._start(write)

    def _start(self, loop: Callable[[], None]) -> None:
        threading.Thread(target=loop, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--ms", type=float, default=10.0)
    given = parser.parse_args()
    host, _, port = given.server.rpartition(":")
    link = SlowLink(host, int(port), given.ms)
    print(link.port, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
