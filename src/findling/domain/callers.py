"""Who asks a server, and what they may do there."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ALL_WORKSPACES", "OWNER", "SCOPES", "Caller"]

SCOPES = ("read", "write")
"""What a token may be good for: asking, and changing what is there."""

ALL_WORKSPACES = "*"
"""Stands for every workspace, in the list of a caller."""


class Caller(NamedTuple):
    """Who asks. It follows from the connection and its token, never from what is asked.

    `principals` are those whose rights hold, `None` for the owner, who sees everything. `workspaces` are names of those
    that may be asked besides the one that is served; ALL_WORKSPACES stands for all of them.
    """

    name: str
    principals: tuple[str, ...] | None = ()
    scopes: frozenset[str] = frozenset()
    workspaces: tuple[str, ...] = ()

    @property
    def is_owner(self) -> bool:
        """Whether everything may be seen."""
        return self.principals is None

    def may(self, scope: str) -> bool:
        """Whether a scope is among those of the caller."""
        return scope in self.scopes


OWNER = Caller("owner", None, frozenset(SCOPES), (ALL_WORKSPACES,))
"""Whoever uses the machine as the user that the daemon runs as."""
