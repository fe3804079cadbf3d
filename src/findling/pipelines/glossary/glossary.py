"""The glossary's rules: what every decision about a term changes, as rows to put in and rows to drop.

A group is a canonical term with at least one alias. A term may be in several groups. A pair that was rejected is not
suggested again, in either direction, until somebody adds it. A protected term is in no group. Nothing is ever approved
but by a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.records import GlossaryTerm
from findling.pipelines.glossary.glossary_book import (
    ACCEPTED,
    Book,
    Edit,
    is_same,
    members,
    quoted,
    required_key,
    tidied,
)
from findling.text.mining.glossary_keys import glossary_key

__all__ = [
    "Edit",
    "Group",
    "add",
    "approve",
    "groups",
    "merge",
    "propose",
    "protect",
    "reject",
    "remove",
    "take_in",
    "unprotect",
]


class Group(NamedTuple):
    """Terms that mean the same, as people write them."""

    canonical: str
    aliases: tuple[str, ...]


def groups(terms: Iterable[GlossaryTerm]) -> list[Group]:
    """The groups that are in use, in the order of the terms, their aliases in the order they were decided on."""
    return [Group(name, tuple(term.surface for term in found[1:])) for name, found in members(terms).items()]


def add(terms: Iterable[GlossaryTerm], canonical: str, aliases: Sequence[str]) -> Edit:
    """Have a term stand for others, and they for it, also where that was rejected before.

    Raises InvalidValueError for what is no alias of the term, UsageError for protected terms.
    """
    book = Book(terms)
    canonical, aliases = tidied(canonical), [tidied(alias) for alias in aliases]
    if not aliases:
        raise InvalidValueError(f"{canonical} has no alias", hint="findling glossary add CANONICAL ALIAS...")
    group = book.spelling(canonical)
    for alias in aliases:
        if is_same(canonical, alias):
            raise InvalidValueError(
                f"{alias} and {canonical} are one term: capitals, accents, hyphens and endings make no difference",
                hint="leave it out; either finds the other",
            )
        book.accept(group, alias, source="user")
    return book.edit()


def approve(terms: Iterable[GlossaryTerm], surface: str, group: str | None = None, canonical: bool = False) -> Edit:
    """Take a pending term into use, as an alias or as the name of its group.

    With a group a rejected term will do as well, and with `canonical` an alias. Raises UsageError when there is no
    such term, when it is not clear which one is meant, or when it is protected.
    """
    book = Book(terms)
    statuses = ("pending", *(("rejected",) if group else ()), *(("alias",) if canonical else ()))
    row = book.the_one(surface, group, statuses, "approve")
    book.accept(row.group, row.surface, source=row.source)
    if canonical:
        book.rename(row.group, row.surface)
    return book.edit()


def reject(terms: Iterable[GlossaryTerm], surface: str, group: str | None = None) -> Edit:
    """Never have a term suggested for a group again; an alias leaves the group.

    With a group it need not have been suggested before. Raises as `approve` does.
    """
    book = Book(terms)
    if group is None:
        is_pending = any(row.status == "pending" for row in book.with_key(surface))
        row = book.the_one(surface, None, ("pending",) if is_pending else ("alias",), "reject")
    else:
        name, key = book.spelling(tidied(group)), required_key(surface)
        row = book.rows.get((name, key)) or GlossaryTerm(name, key, tidied(surface), "pending", "user")
    if row.key == glossary_key(row.group):
        raise InvalidValueError(
            f"{row.surface} is the name of the group", hint=f"findling glossary set {quoted(row.surface)} removed"
        )
    if row.status != "rejected":
        book.put(row._replace(status="rejected", decided_at=None))
    book.drop_reverse(row.group, row.key, ("pending",))
    book.dissolve_if_alone(row.group)
    return book.edit()


def protect(terms: Iterable[GlossaryTerm], surface: str) -> Edit:
    """Have a term taken to the letter: it leaves all groups and is never suggested. Raises InvalidValueError."""
    book = Book(terms)
    surface, key = tidied(surface), required_key(surface)
    if ("", key) in book.rows:
        return Edit()
    for row in book.with_key(surface):
        if row.status == "canonical":
            book.behead(row.group)
        elif row.status != "rejected":
            book.drop(row)
            book.dissolve_if_alone(row.group)
    for row in [row for row in book.rows.values() if row.status == "pending" and glossary_key(row.group) == key]:
        book.drop(row)
    book.put(GlossaryTerm("", key, surface, "protected", "user"))
    return book.edit()


def unprotect(terms: Iterable[GlossaryTerm], surface: str) -> Edit:
    """Let a protected term be suggested and added again. Raises UsageError when it is not protected."""
    book = Book(terms)
    row = book.rows.get(("", required_key(surface)))
    if row is None:
        raise UsageError(f"{surface} is not protected", hint="findling glossary list")
    book.drop(row)
    return book.edit()


def remove(terms: Iterable[GlossaryTerm], surface: str, group: str | None = None) -> Edit:
    """Drop a term, and with a canonical term its group; rejections stay. Raises as `approve` does."""
    book = Book(terms)
    row = book.the_one(surface, group, (*ACCEPTED, "pending"), "remove")
    for doomed in book.of_group(row.group) if row.status == "canonical" else [row]:
        if doomed.status != "rejected":
            book.drop(doomed)
    book.dissolve_if_alone(row.group)
    return book.edit()


def merge(terms: Iterable[GlossaryTerm], group: str, into: str) -> Edit:
    """Make two groups one; pending and rejected terms move along.

    Raises UsageError when there is no such group, or when a term of one and a term of the other were rejected as a
    pair.
    """
    book = Book(terms)
    source, target = book.existing(group), book.existing(into)
    if source == target:
        raise InvalidValueError(f"{group} and {into} are one group", hint="findling glossary list")
    ours, theirs = ({row.key for row in book.accepted(name)} for name in (source, target))
    for row in book.rows.values():
        head = glossary_key(row.group)
        if row.status == "rejected" and ((row.key in ours and head in theirs) or (row.key in theirs and head in ours)):
            raise UsageError(
                f"{row.surface} is rejected for {row.group}, so {source} and {target} cannot be one",
                hint=f"findling glossary add {quoted(row.group)} {quoted(row.surface)}",
            )
    book.move(source, target)
    return book.edit()


def propose(terms: Iterable[GlossaryTerm], candidates: Iterable[tuple[str, str, str, str]]) -> Edit:
    """Put candidates (surface, surface of its group, source, snippet) into the queue, but for what is decided already.

    A candidate for a word that is in a group is a candidate for that group.
    """
    book = Book(terms)
    names, homes, kin = book.names(), _homes(book), _kin(book)
    known = {frozenset((glossary_key(row.group), row.key)) for row in book.rows.values() if row.group}
    for surface, other, source, snippet in candidates:
        surface, other = " ".join(surface.split()), " ".join(other.split())
        ours, theirs = glossary_key(surface), glossary_key(other)
        if not ours or not theirs or is_same(surface, other) or ("", ours) in book.rows or ("", theirs) in book.rows:
            continue
        side, far_side = kin.get(ours, {ours}), kin.get(theirs, {theirs})
        if theirs in side or any(frozenset((one, two)) in known for one in side for two in far_side):
            continue
        if ours in homes and theirs not in homes:
            surface, other, ours, theirs = other, surface, theirs, ours
        group = homes.get(theirs) or names.setdefault(theirs, other)
        book.put(GlossaryTerm(group, ours, surface, "pending", source, snippet))
        known |= {frozenset((ours, theirs)), frozenset((ours, glossary_key(group)))}
    return book.edit()


def take_in(terms: Iterable[GlossaryTerm], rows: Iterable[GlossaryTerm], replace: bool = False) -> Edit:
    """Put in terms that were kept elsewhere; they win over what is here, unless they are pending.

    With `replace` only they remain. Raises InvalidValueError, naming the term, when that would break a rule.
    """
    book = Book(terms)
    if replace:
        book.rows.clear()
    names = book.names()
    for row in rows:
        group = names.setdefault(glossary_key(row.group), row.group) if row.group else ""
        here = book.rows.get((group, row.key))
        if here is None or (row.status != "pending" and here.status != "canonical"):
            book.put(row._replace(group=group, surface=group if row.status == "canonical" else row.surface))
    book.check()
    return book.edit()


def _homes(book: Book) -> dict[str, str]:
    """Key of a term → the group that it is in, one that it names rather than another."""
    accepted = [row for row in book.rows.values() if row.status in ACCEPTED]
    return {row.key: row.group for row in sorted(accepted, key=lambda row: row.status == "canonical")}


def _kin(book: Book) -> dict[str, set[str]]:
    """Key of a term → the keys of all terms that it shares a group with, itself among them."""
    kin: dict[str, set[str]] = {}
    for group in members(book.rows.values()).values():
        for row in group:
            kin.setdefault(row.key, set()).update(each.key for each in group)
    return kin
