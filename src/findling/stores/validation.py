"""The checks of every store on documents, vectors and terms before it keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from findling.domain.errors import InvalidValueError
from findling.domain.resources import RESERVED, Document, Resource

if TYPE_CHECKING:
    from findling.domain.permissions import Relation
    from findling.domain.records import Access, GlossaryTerm

T = TypeVar("T")

NEVER = -1
"""A time that no file has: everything with it is looked at again."""

NO_MODEL = 0
"""The number of a model without vectors."""

CID_LIMIT = 1 << 63
"""Chunk ids are kept as signed 64-bit integers and are never negative."""


HEADING_SEPARATOR = "\x1f"
"""ASCII's unit separator, which a store may put between headings: no heading holds one."""

MOST_WISHES = 10_000
"""The number of kept wishes for vectors: hours of work for a transformer."""


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size` values, in order."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def check_document(document: Document) -> None:
    """Raise InvalidValueError for a document that no store could hand back as it was given."""
    resource, text = document.resource, document.text
    if not resource.rid:
        raise InvalidValueError("a resource without an id cannot be stored", hint="give every resource its own rid")
    if str(resource.rid).startswith(RESERVED):
        # Its deletion would revoke the right to a folder of that name.
        raise InvalidValueError(f"{resource.rid!r} is no id of a resource", hint=f"none begins with {RESERVED[0]}")
    # A leg would fail over it once the store holds it, and then every search.
    names = (resource.rid, resource.type, resource.title, resource.path, resource.author, resource.lang)
    described: list[object] = [*names, *resource.tags, *(resource.visibility or ())]
    described += [part for item in resource.fields.items() for part in item]
    for part in described:
        if not isinstance(part, str):
            raise InvalidValueError(
                f"{resource.rid!r} is described by {part!r}, which is no text", hint="write it as a string"
            )
    if not (_is_unicode("".join(names)) and _is_unicode(text)):
        raise InvalidValueError(
            f"{resource.rid!r} holds characters that are not valid Unicode",
            hint="decode its name and text with errors='replace'",
        )
    length = len(text)
    previous = -1
    for cid, _, ordinal, start, end, _, _, heading, places in document.chunks:
        if heading and HEADING_SEPARATOR in "".join(heading):
            raise InvalidValueError(f"a heading of {resource.rid!r} holds a control character", hint="take it out")
        if places and any("\n" in place.label for place in places):
            raise InvalidValueError(f"a place of {resource.rid!r} holds a line break", hint="take it out")
        if not 0 <= cid < CID_LIMIT:
            raise InvalidValueError(f"chunk id {cid} of {resource.rid!r} is not between 0 and 2**63 - 1")
        if not 0 <= start <= end <= length:
            raise InvalidValueError(f"chunk {cid} of {resource.rid!r} lies outside the {length} characters")
        if ordinal <= previous:
            raise InvalidValueError(f"the chunks of {resource.rid!r} are not in the order of their ordinals")
        previous = ordinal
    if len({chunk[0] for chunk in document.chunks}) < len(document.chunks):
        raise InvalidValueError(f"two chunks of {resource.rid!r} have the same id")


def vector_width(model: str, vectors: Iterable[bytes]) -> int:
    """The length that all the vectors have. Raises InvalidValueError when they differ, or hold nothing."""
    widths = {len(vector) for vector in vectors}
    if len(widths) != 1 or 0 in widths:
        raise InvalidValueError(
            f"vectors of {model} have {sorted(widths)} bytes", hint="all vectors of one model have one length"
        )
    return widths.pop()


def check_width(model: str, width: int, stored: int) -> None:
    """Raise InvalidValueError for vectors of another length than those that the model has."""
    if stored != width:
        raise InvalidValueError(f"vectors of {model} have {stored} bytes, not {width}", hint="drop the old ones first")


def check_glossary(terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
    """Raise InvalidValueError for a term that no store could hand back as it was given."""
    for term in terms:
        if not _is_unicode("".join(term[:6])):
            raise _not_unicode(f"the glossary term {term.surface!r}")
        if term.decided_at is not None and math.isnan(term.decided_at):
            raise InvalidValueError(f"the glossary term {term.surface!r} was decided at no time", hint="leave it out")
    for group, key in dropped:
        if not _is_unicode(group + key):
            raise _not_unicode(f"the glossary term {key!r}")


def check_relations(relations: Iterable[Relation]) -> None:
    """Raise InvalidValueError for a relation that cannot be, or that no store could hand back."""
    from findling.domain.permissions import EVERYONE, MEMBER, UNSET, check_object, check_principal

    for subject, relation, target in relations:
        if (subject, target) == (EVERYONE, UNSET) and relation != MEMBER:
            continue  # the policy
        check_principal(subject)
        check_object(relation, target)
        if not _is_unicode(subject + target):
            raise _not_unicode(f"the right to {target!r}")


def check_accesses(accesses: Mapping[str, Access]) -> None:
    """Raise InvalidValueError for an access that cannot be counted."""
    for rid, access in accesses.items():
        if not rid or not _is_unicode(rid) or access.count < 0 or math.isnan(access.last_at):
            raise InvalidValueError(f"{access} of {rid!r} is no access", hint="count them from 0")


def predecessor(resource: Resource) -> str | None:
    """The id that the resource names in its field `supersedes`, if it can be that of another resource."""
    rid = resource.fields.get("supersedes")
    return rid if rid and rid != resource.rid and _is_unicode(rid) else None


def _not_unicode(what: str) -> InvalidValueError:
    return InvalidValueError(
        f"{what} holds characters that are not valid Unicode", hint="decode it with errors='replace'"
    )


def _is_unicode(words: str) -> bool:
    if words.isascii():
        return True
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True
