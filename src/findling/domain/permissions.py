"""Permissions: principals, and the relations between them and resources."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from findling.domain.errors import InvalidValueError

SCOPES = ("read", "write")
"""The scopes of a token: asking, and changing what is there."""

ALL_WORKSPACES = "*"
"""Stands for every workspace, in the list of a caller."""


class Caller(NamedTuple):
    """The caller, who follows from the connection and its token, never from the request.

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
"""The user that the daemon runs as."""


EVERYONE = "everyone"
"""The principal that every caller is who is anybody at all."""

MEMBER, VIEWER, DENIED = RELATIONS = ("member", "viewer", "denied")
"""A principal is a `member` of a group or role; it is a `viewer` of a resource or folder, or it is `denied` it."""

DENY = "!"
"""The mark of a principal in a visibility list that must not see the resource."""


PATH = "path:"
"""The mark of a folder or file that somebody has a right to."""


UNSET = PATH
"""Stands for all that has no list of its own and lies in no shared folder: a path that no file and no folder has."""

POLICIES = ("owner", "public")
"""Those who may see what `UNSET` stands for: the owner of the workspace alone, or every caller."""


class Relation(NamedTuple):
    """`subject` stands in a relation to `object`: a group or role, the id of a resource, or `path:` and a folder."""

    subject: str
    relation: str
    object: str


class Right(NamedTuple):
    """The facts that decide who may see one resource; `visibility` is its own list."""

    number: int
    seq: int
    rid: str
    path: str
    visibility: tuple[str, ...] | None


def check_principal(text: str) -> str:
    """The principal: `user:…`, `group:…`, `role:…` or `everyone`, letter by letter. Raises InvalidValueError."""
    if is_principal(text):
        return text
    raise InvalidValueError(f"{text!r} is no principal", hint="user:NAME, group:NAME, role:NAME or everyone")


def is_principal(text: str) -> bool:
    """Whether a text is a principal."""
    is_plain = text.isprintable() and unicodedata.is_normalized("NFC", text)
    return text == EVERYONE or (is_plain and _PRINCIPAL.fullmatch(text) is not None)


def check_visibility(entries: Iterable[str]) -> tuple[str, ...]:
    """A list of principals, those with a `!` in front being kept out. Raises InvalidValueError."""
    checked = tuple(entries)
    for entry in checked:
        check_principal(entry.removeprefix(DENY))
    return checked


def check_object(relation: str, text: str) -> str:
    """The object of a relation. Raises InvalidValueError for an unknown relation, or an object it cannot have."""
    if relation not in RELATIONS:
        raise InvalidValueError(f"{relation!r} is no relation", hint=f"one of {', '.join(RELATIONS)}")
    if relation == MEMBER and not check_principal(text).startswith(("group:", "role:")):
        raise InvalidValueError(f"nobody can be a member of {text}", hint="group:NAME or role:NAME")
    if not text:
        raise InvalidValueError("a right must be to something", hint="the id of a resource, or path:FOLDER")
    path = text.removeprefix(PATH)
    # A right that is written in another way would be kept, and never hold.
    if text.startswith(PATH) and (path != posixpath.normpath(path) or path.startswith(("/", ".."))):
        raise InvalidValueError(f"{text} is no folder below the root", hint="path:docs/plans, or path:. for all of it")
    return text


def policy_of(relations: Iterable[Relation]) -> str:
    """The policy that relations hold, one of `POLICIES`; empty where none was ever written."""
    found = {relation for _, relation, target in relations if target == UNSET}
    return "" if not found else "owner" if DENIED in found else "public"


_PRINCIPAL = re.compile(r"(user|group|role):\S+")
