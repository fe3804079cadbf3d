"""How much one caller may send: requests in a time, and bytes in a body."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

__all__ = ["CappedBody", "RateLimits"]

_BURST_S = 2.0
"""For how long a caller may have saved up requests."""


class RateLimits:
    """So many requests a second for each of many callers; what was not asked for two seconds may come at once.

    It remembers `most` callers, those that asked last. A rate of 0 is no limit.
    """

    def __init__(self, rate: float, *, most: int = 1024, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = 1 / rate if rate > 0 else 0.0
        self._saved = max(_BURST_S, self._pause)  # a rate below one in two seconds lets one through as well
        self._most = most
        self._clock = clock
        self._booked: dict[str, float] = {}
        """Caller → until when the rate is used up; those that asked last come last."""

    def __len__(self) -> int:
        return len(self._booked)

    def wait(self, caller: str) -> float:
        """Count a request of a caller: 0 when it may come, else the seconds after which it might, uncounted."""
        if not self._pause:
            return 0.0
        now = self._clock()
        booked = max(self._booked.pop(caller, now), now)
        until = booked + self._pause
        early = until - now - self._saved
        self._booked[caller] = booked if early > 0 else until
        if len(self._booked) > self._most:
            del self._booked[next(iter(self._booked))]
        return max(early, 0.0)


class CappedBody:
    """What is received of one request, which is cut off behind `most` bytes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    @property
    def is_too_large(self) -> bool:
        """Whether more has come than may."""
        return self._left < 0

    async def __call__(self) -> Message:
        """The next part. Raises HTTPException, which frameworks let through, when it is too much."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self.is_too_large:
            raise HTTPException(413)
        return message
