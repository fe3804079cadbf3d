"""The chunks that lack a vector, found without a look at those that were seen to have one."""

from __future__ import annotations

from collections.abc import Container, Iterable

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
    found: Iterable[tuple[int, bytes, int | None]], start: int, limit: int, skip: Container[bytes]
) -> tuple[list[int], int]:
    """Up to `limit` chunks, one for each digest that is not in `skip`, and the resource that was reached.

    `found` are ids, digests and resources of chunks without a vector: first the wanted ones, whose resource is None,
    then all from `start` on in the order of their resources.
    """
    cids: list[int] = []
    seen: set[bytes] = set()
    first = _LAST
    for cid, digest, resource in found:
        if resource is not None:
            first = min(first, resource)
        if len(cids) == limit:
            break
        if digest not in seen and digest not in skip:
            seen.add(digest)
            cids.append(cid)
    else:
        return cids, first
    # Cut short among the wishes, the rest has not been looked at.
    return cids, start if first == _LAST else first
