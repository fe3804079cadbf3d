"""Server-sent events."""

from __future__ import annotations

__all__ = ["EVENTS", "event"]

EVENTS = "text/event-stream"


def event(name: str, data: bytes) -> bytes:
    """One event; its data must be a single line."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
