"""The terms of a glossary while a decision about them is carried out, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.records import GlossaryTerm
from findling.text.mining.glossary_keys import LONGEST_TERM, glossary_key, lower_key

__all__ = ["ACCEPTED", "STATUSES", "Book", "Edit", "is_same", "members", "quoted", "required_key", "tidied"]

STATUSES = ("canonical", "alias", "rejected", "pending", "protected")
"""What a term can be. Where a group says two things about one term, the earlier one holds."""

ACCEPTED = ("canonical", "alias")


class Edit(NamedTuple):
    """What a decision changes: terms to put in, and group and key of terms to drop before."""

    put: tuple[GlossaryTerm, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()


def members(terms: Iterable[GlossaryTerm]) -> dict[str, list[GlossaryTerm]]:
    """Group → the terms that are in it, the canonical one first, the others in the order they were decided on."""
    found: dict[str, list[GlossaryTerm]] = {}
    for term in terms:
        if term.status in ACCEPTED:
            found.setdefault(term.group, []).append(term)
    for group in found.values():
        group.sort(key=lambda term: (term.status != "canonical", term.decided_at or 0.0))
    return found


class Book:
    """All terms by group and key. Groups are told apart by the keys of their names."""

    def __init__(self, terms: Iterable[GlossaryTerm]) -> None:
        self._before = {(term.group, term.key): term for term in terms}
        self.rows = dict(self._before)

    def edit(self) -> Edit:
        """What has changed. A rejection that has moved with its group also strikes out what is pending of that pair."""
        refused = {_pair(row) for row in self.rows.values() if row.status == "rejected"}
        for row in [row for row in self.rows.values() if row.status == "pending" and _pair(row) in refused]:
            self.drop(row)
        put = tuple(row for at, row in self.rows.items() if self._before.get(at) != row)
        return Edit(put, tuple(at for at in self._before if at not in self.rows))

    def put(self, row: GlossaryTerm) -> None:
        """Put a term in, in the place of what its group says about it."""
        self.rows[row.group, row.key] = row

    def drop(self, row: GlossaryTerm) -> None:
        """Take a term out of its group."""
        self.rows.pop((row.group, row.key), None)

    # Looking up

    def with_key(self, surface: str) -> list[GlossaryTerm]:
        """What the groups say about a term."""
        key = required_key(surface)
        return [row for row in self.rows.values() if row.key == key and row.group]

    def of_group(self, name: str) -> list[GlossaryTerm]:
        """What a group says."""
        return [row for row in self.rows.values() if row.group == name]

    def accepted(self, name: str) -> list[GlossaryTerm]:
        """The terms that are in a group."""
        return [row for row in self.of_group(name) if row.status in ACCEPTED]

    def names(self) -> dict[str, str]:
        """Key → how the group is written here, also of groups that have nothing but pending or rejected terms."""
        return {glossary_key(row.group): row.group for row in self.rows.values() if row.group}

    def spelling(self, name: str) -> str:
        """How the group is written here, or the name itself when nothing is known of it."""
        return self.names().get(required_key(name), name)

    def existing(self, name: str) -> str:
        """The name of a group as it is written here. Raises UsageError when there is none."""
        group = self.spelling(name)
        if not self.accepted(group):
            raise UsageError(f"there is no group {name}", hint="findling glossary list")
        return group

    def the_one(self, surface: str, group: str | None, statuses: Sequence[str], command: str) -> GlossaryTerm:
        """The term that a command is about. Raises UsageError when there is none, or more than one."""
        self.refuse_protected(surface)
        known = self.with_key(surface)
        if group is not None:
            key = required_key(group)
            known = [row for row in known if glossary_key(row.group) == key]
        found = [row for row in known if row.status in statuses]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                f"{surface} is in several groups: {', '.join(row.group for row in found)}",
                hint=f"findling glossary {command} {quoted(surface)} --group {quoted(found[0].group)}",
            )
        where = "in the glossary" if group is None else f"in {group}"
        facts = ", ".join(f"{row.status} in {row.group}" for row in known)
        raise UsageError(
            f"{surface} is {facts} already" if known else f"{surface} is not {where}",
            hint="findling glossary list --all",
        )

    def refuse_protected(self, surface: str) -> None:
        """Raise UsageError when a term is protected."""
        if ("", required_key(surface)) in self.rows:
            raise UsageError(f"{surface} is protected", hint=f"findling glossary set {quoted(surface)} unprotected")

    # Changing

    def accept(self, group: str, alias: str, source: str) -> None:
        """Make a term an alias of a group, which comes to be if need be. Raises UsageError for protected terms."""
        self.refuse_protected(group)
        self.refuse_protected(alias)
        head, key = glossary_key(group), glossary_key(alias)
        if (group, head) not in self.rows:
            self.put(GlossaryTerm(group, head, group, "canonical", source))
        row = self.rows.get((group, key))
        if row is None:
            self.put(GlossaryTerm(group, key, alias, "alias", source))
        elif row.status != "alias":
            self.put(row._replace(surface=alias, status="alias", decided_at=None))
        self.drop_reverse(group, key, ("pending", "rejected"))

    def drop_reverse(self, group: str, key: str, statuses: Sequence[str]) -> None:
        """Drop what is said of the same pair from the other side."""
        head = glossary_key(group)
        for row in list(self.rows.values()):
            if row.key == head and row.status in statuses and glossary_key(row.group) == key:
                self.drop(row)

    def move(self, source: str, target: str) -> None:
        """Let all terms of a group be those of another; of two statuses of a term the stronger one holds."""
        head = glossary_key(target)
        for row in self.of_group(source):
            self.drop(row)
            here = self.rows.get((target, row.key))
            moved = row._replace(group=target, status="alias" if row.status == "canonical" else row.status)
            is_stronger = here is None or STATUSES.index(moved.status) < STATUSES.index(here.status)
            if row.key != head and is_stronger:
                self.put(moved)

    def rename(self, group: str, surface: str) -> None:
        """Let one of the aliases be the name of its group. Raises UsageError when it names another one."""
        if any(row.status == "canonical" for row in self.with_key(surface)):
            raise UsageError(
                f"{surface} is the name of a group already",
                hint=f"findling glossary set {quoted(group)} merged --group {quoted(surface)}",
            )
        alias = self.rows[group, glossary_key(surface)]
        name = self.spelling(surface)
        self.put(alias._replace(group=name, surface=name, status="canonical", decided_at=None))
        self.move(group, name)

    def behead(self, group: str) -> None:
        """Take the canonical term out of a group, which goes on under another name if two terms are left."""
        rejected = [row for row in self.of_group(group) if row.status == "rejected"]
        aliases = [row for row in self.of_group(group) if row.status == "alias"]
        heads = {row.key for row in self.rows.values() if row.status == "canonical"}
        heir = next((row for row in aliases if row.key not in heads), None)
        if heir is not None and len(aliases) > 1:
            self.rows.pop((group, glossary_key(group)))
            self.rename(group, heir.surface)
        else:
            for row in self.of_group(group):
                self.drop(row)
        for row in rejected:
            self.put(row)

    def dissolve_if_alone(self, group: str) -> None:
        """Drop the canonical term of a group without any alias: it says nothing."""
        accepted = self.accepted(group)
        if len(accepted) == 1:
            self.drop(accepted[0])

    def check(self) -> None:
        """Raise InvalidValueError for a term that is where none can be."""
        for row in self.rows.values():
            canonical = self.rows.get((row.group, glossary_key(row.group)))
            if row.status == "alias" and (canonical is None or canonical.status != "canonical"):
                raise InvalidValueError(
                    f"{row.surface} is an alias of {row.group}, which has no canonical term",
                    hint=f"add a row for {row.group} with the status canonical",
                )
            if row.status in (*ACCEPTED, "pending") and ("", row.key) in self.rows:
                raise InvalidValueError(
                    f"{row.surface} is protected and cannot be {row.status} in {row.group}",
                    hint=f"findling glossary set {quoted(row.surface)} unprotected",
                )


def _pair(row: GlossaryTerm) -> frozenset[str]:
    return frozenset((glossary_key(row.group), row.key))


def tidied(surface: str) -> str:
    """The surface with single spaces. Raises InvalidValueError for what could never be found in a query."""
    surface = " ".join(surface.split())
    required_key(surface)
    if len(surface.split()) > LONGEST_TERM:
        raise InvalidValueError(f"{surface} has more than {LONGEST_TERM} words", hint="terms of a glossary are short")
    return surface


def required_key(surface: str) -> str:
    """The key of a surface. Raises InvalidValueError when there is no word in it."""
    key = glossary_key(surface)
    if not key:
        raise InvalidValueError(f"{surface!r} has no word in it", hint="name a word or a few of them")
    return key


def is_same(one: str, other: str) -> bool:
    """Whether two surfaces are ways to write one term, which a search finds by either."""
    return glossary_key(one) == glossary_key(other) or lower_key(one) == lower_key(other)


def quoted(surface: str) -> str:
    """A surface as it is typed in a shell."""
    return f'"{surface}"' if " " in surface else surface
