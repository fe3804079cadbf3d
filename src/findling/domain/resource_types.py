"""Types of resources: which fields they have, where these are looked for, how they are cut and how they age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["PLACES", "FieldRule", "ResourceType"]

PLACES = ("title", "name", "description", "tags", "author", "body", "kept")
"""Where a field of an item goes: one of the text fields of a chunk, or `kept`, which is stored and not searched."""


@dataclass(frozen=True, kw_only=True)
class FieldRule:
    """What becomes of one field of an item.

    A field in the `body` is a section under its `heading`; several fields may share any place but the title. A field
    that is `required` must be there and not be empty. `many` fields are lists.
    """

    place: str = "body"
    heading: str = ""
    required: bool = False
    many: bool = False


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """A type of resources, as data: nothing in the core knows any of them by name.

    `weights` are those of text fields in searches that are limited to this type. `lang` is that of the body, which
    chooses the chunker. Recency of a resource halves with every `half_life_days`; 0 says that it does not age. An item
    of an `immutable` type is never changed: another one supersedes it.
    """

    name: str
    fields: Mapping[str, FieldRule] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    lang: str = "markdown"
    half_life_days: float = 90.0
    immutable: bool = False
