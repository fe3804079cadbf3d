"""The chunks that lack a vector, found without a look at those that were seen to have one."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import chain

from findling.domain.values import record
from findling.stores.validation import CID_LIMIT, NO_MODEL

_LAST = CID_LIMIT - 1


@record()
class Frontier:
    """At change `seq`, no chunk of a resource below number `resource` lacked a vector of `model`."""

    model: int
    seq: int
    resource: int = _LAST

    def start(self, model: int, changed: int | None) -> int:
        """The resource to begin with; `changed` is the lowest number that was written since.

        Vectors that chunks use go only with their model, whose number never comes back.
        """
        if self.model != model or model == NO_MODEL:
            return 0
        return self.resource if changed is None else min(changed, self.resource)


def pick_unembedded(
    wanted: Iterable[tuple[int, bytes, int]],
    lacking: Iterable[tuple[int, bytes, int]],
    start: int,
    limit: int,
    skip: Container[bytes],
) -> tuple[list[int], int]:
    """Up to `limit` chunks, one for each digest that is not in `skip`, and the resource that was reached.

    Both give ids, digests and resources of chunks without a vector: first the wanted ones, then all from `start` on in
    the order of their resources.
    """
    cids: dict[bytes, int] = {}
    first = _LAST
    rows = chain(((row, _LAST) for row in wanted), ((row, row[2]) for row in lacking)) if limit > 0 else iter(())
    for (cid, digest, _), reached in rows:
        first = min(first, reached)
        if digest not in skip:
            cids.setdefault(digest, cid)
        # At once: what comes next may be far away, or of another share.
        if len(cids) == limit:
            break
    else:
        return [*cids.values()], first if limit > 0 else start
    # Cut short among the wishes, the rest has not been looked at.
    return [*cids.values()], start if first == _LAST else first
