"""Names of documents: an id, the beginning of one, the id of a hit, or a path with a line or without."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.ports import ReadStore
from findling.domain.queries import Filters
from findling.domain.resources import Document

_SHORTEST_ID = 8  # characters behind the type of an id that are enough
_LONGEST_ECHO = 200  # characters of a name that an error repeats
_LONGEST_LINE_NUMBER = 9  # digits; no text has more lines


def find_document(store: ReadStore, name: str, below: str = "") -> tuple[Document, list[int]]:
    """The document that an id, the id of a hit or a path names, and the chunks that are meant.

    A path starts at the root or at the folder `below` it. Raises NotFoundError when there is none, InvalidValueError
    when a shortened id, or the path of items, fits several.
    """
    named = _named(store, name, below)
    if named is not None:
        return named
    path, _, line = name.rpartition(":")
    if path and line.isdecimal() and len(line) <= _LONGEST_LINE_NUMBER:
        named = _named(store, path, below)
        if named is not None:
            document, cids = named
            at = [chunk.cid for chunk in document.chunks if chunk.line_start <= int(line) <= chunk.line_end]
            return document, at or cids
    named = _named(store, full_id(store, name), "")
    if named is None:  # deleted since it was looked up
        raise not_there(name)
    return named


def full_id(store: ReadStore, name: str) -> str:
    """The id that a name is, or the only one that begins so: at least 8 characters, with or without the type.

    Raises NotFoundError when there is none, InvalidValueError when there are several.
    """
    is_bare = ":" not in name
    fitting = []
    for rid in store.rids():
        if rid == name:
            return rid
        # The beginning of a path alone is no name of a file.
        known = rid.partition(":")[2] if is_bare and not rid.startswith("file:") else rid
        if known.startswith(name):
            fitting.append(rid)
    if not fitting or len(name if is_bare else name.partition(":")[2]) < _SHORTEST_ID:
        raise not_there(name)
    if len(fitting) > 1:
        raise _several(name, "is the beginning of", fitting, hint="write more of it")
    return fitting[0]


def not_there(name: str) -> NotFoundError:
    """The error for an unknown name; a long name is cut."""
    return NotFoundError(f"there is no {_echoed(name)} in the index", hint="findling ls lists what is")


def _several(name: str, what: str, rids: Sequence[str], *, hint: str) -> InvalidValueError:
    some = ", ".join(rids[:5]) + (" …" if len(rids) > 5 else "")
    return InvalidValueError(f"{_echoed(name)} {what} {len(rids)} ids: {some}", hint=hint)


def _echoed(name: str) -> str:
    return name if len(name) <= _LONGEST_ECHO else f"{name[:_LONGEST_ECHO]}…"


def _named(store: ReadStore, name: str, below: str) -> tuple[Document, list[int]] | None:
    """The document with this very id, path or id of a hit."""
    path = name.removeprefix("./")
    paths = dict.fromkeys((f"{below}/{path}" if below else path, path))
    known = (store.document(rid) for rid in (name, *(f"file:{one}" for one in paths)))
    for document in chain(known, (_lying_at(store, one) for one in paths)):
        if document is not None:
            return document, [chunk.cid for chunk in document.chunks]
    if len(name) != 16 or not set(name) <= set("0123456789abcdef"):
        return None
    for cid, chunk in store.chunks([int(name, 16)]).items():
        document = store.document(chunk.resource.rid)
        if document is not None:
            return document, [cid]
    return None


def _lying_at(store: ReadStore, path: str) -> Document | None:
    """The item with this path, by which answers show it."""
    # Most names are no paths: the filter says so at once, without a look at all resources.
    if not path.strip("/") or not any(True for _ in store.matching(Filters(path=(path,)))):
        return None
    rids = [resource.rid for resource in store.resources() if resource.path == path]
    if len(rids) > 1:
        raise _several(path, "is the path of", rids, hint="name one by its id")
    return store.document(rids[0]) if rids else None
