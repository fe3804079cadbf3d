"""The glossary's rules: every decision about a term as an edit, rows to put in and rows to drop.

A group is a canonical term with at least one alias. A term may be in several groups. A pair that was rejected is not
suggested again, in either direction, until somebody adds it. A protected term is in no group. Only a person approves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Concatenate, NamedTuple, ParamSpec

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.records import GlossaryTerm
from findling.pipelines.glossary.glossary_expansion import ACCEPTED, members
from findling.text.mining.keys import LONGEST_TERM, glossary_key, lower_key

STATUSES = ("canonical", "alias", "rejected", "pending", "protected")
"""The statuses of a term. Of two in one group the earlier one holds."""

_P = ParamSpec("_P")


class Edit(NamedTuple):
    """The changes of a decision: terms to put in, and group and key of terms to drop before."""

    put: tuple[GlossaryTerm, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()


class Group(NamedTuple):
    """Terms that mean the same, as people write them."""

    canonical: str
    aliases: tuple[str, ...]


def groups(terms: Iterable[GlossaryTerm]) -> list[Group]:
    """The groups that are in use, in the order of the terms, their aliases in the order of the decisions."""
    return [Group(name, tuple(term.surface for term in found[1:])) for name, found in members(terms).items()]


class _Book:
    """All terms by group and key. The keys of their names tell groups apart."""

    def __init__(self, terms: Iterable[GlossaryTerm]) -> None:
        self._before = {(term.group, term.key): term for term in terms}
        self.rows = dict(self._before)

    def edit(self) -> Edit:
        """All changes. A rejection that has moved with its group also drops the pending row of that pair."""
        refused = {_pair(row) for row in self.rows.values() if row.status == "rejected"}
        for row in [row for row in self.rows.values() if row.status == "pending" and _pair(row) in refused]:
            self.drop(row)
        put = tuple(row for at, row in self.rows.items() if self._before.get(at) != row)
        return Edit(put, tuple(at for at in self._before if at not in self.rows))

    def put(self, row: GlossaryTerm) -> None:
        self.rows[row.group, row.key] = row

    def drop(self, row: GlossaryTerm) -> None:
        self.rows.pop((row.group, row.key), None)

    def with_key(self, surface: str) -> list[GlossaryTerm]:
        """The rows of a term in all groups."""
        key = _required_key(surface)
        return [row for row in self.rows.values() if row.key == key and row.group]

    def of_group(self, name: str, statuses: Sequence[str] = STATUSES) -> list[GlossaryTerm]:
        return [row for row in self.rows.values() if row.group == name and row.status in statuses]

    def names(self) -> dict[str, str]:
        """Key → name of each group as it is written here, also of groups without an accepted term."""
        return {glossary_key(row.group): row.group for row in self.rows.values() if row.group}

    def spelling(self, name: str) -> str:
        """The name of the group as it is written here, or the name itself for a new one."""
        return self.names().get(_required_key(name), name)

    def existing(self, name: str) -> str:
        """The name of a group as it is written here. Raises UsageError when there is none."""
        group = self.spelling(name)
        if not self.of_group(group, ACCEPTED):
            raise UsageError(f"there is no group {name}", hint="findling glossary list")
        return group

    def the_one(self, surface: str, group: str | None, statuses: Sequence[str], command: str) -> GlossaryTerm:
        """The term that a command is about. Raises UsageError when there is none, or more than one."""
        self.refuse_protected(surface)
        known = self.with_key(surface)
        if group is not None:
            key = _required_key(group)
            known = [row for row in known if glossary_key(row.group) == key]
        found = [row for row in known if row.status in statuses]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                f"{surface} is in several groups: {', '.join(row.group for row in found)}",
                hint=f"findling glossary {command} {_quoted(surface)} --group {_quoted(found[0].group)}",
            )
        facts = ", ".join(f"{row.status} in {row.group}" for row in known)
        problem = f"is {facts} already" if known else f"is not in {group or 'the glossary'}"
        raise UsageError(f"{surface} {problem}", hint="findling glossary list all")

    def refuse_protected(self, surface: str) -> None:
        if ("", _required_key(surface)) in self.rows:
            raise UsageError(f"{surface} is protected", hint=f"findling glossary set {_quoted(surface)} unprotected")

    def accept(self, group: str, alias: str, source: str) -> None:
        """Make a term an alias of a group, which is created if need be. Raises UsageError for protected terms."""
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
        """Drop the rows of the same pair in the other direction."""
        head = glossary_key(group)
        for row in list(self.rows.values()):
            if row.key == head and row.status in statuses and glossary_key(row.group) == key:
                self.drop(row)

    def move(self, source: str, target: str) -> None:
        """Move all terms of a group to another; of two statuses of a term the stronger one holds."""
        head = glossary_key(target)
        for row in self.of_group(source):
            self.drop(row)
            here = self.rows.get((target, row.key))
            moved = row._replace(group=target, status="alias" if row.status == "canonical" else row.status)
            is_stronger = here is None or STATUSES.index(moved.status) < STATUSES.index(here.status)
            if row.key != head and is_stronger:
                self.put(moved)

    def rename(self, group: str, surface: str) -> None:
        """Make one of the aliases the name of its group. Raises UsageError when it names another one."""
        if any(row.status == "canonical" for row in self.with_key(surface)):
            raise UsageError(
                f"{surface} is the name of a group already",
                hint=f"findling glossary set {_quoted(group)} merged --group {_quoted(surface)}",
            )
        alias = self.rows[group, glossary_key(surface)]
        name = self.spelling(surface)
        self.put(alias._replace(group=name, surface=name, status="canonical", decided_at=None))
        self.move(group, name)

    def behead(self, group: str) -> None:
        """Remove the canonical term of a group, which keeps another name if two terms are left."""
        rejected, aliases = self.of_group(group, ("rejected",)), self.of_group(group, ("alias",))
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
        accepted = self.of_group(group, ACCEPTED)
        if len(accepted) == 1:
            self.drop(accepted[0])


_Terms = Iterable[GlossaryTerm]


def _decision(decide: Callable[Concatenate[_Book, _P], None]) -> Callable[Concatenate[_Terms, _P], Edit]:
    """A function from the terms of a glossary to the edit of a decision."""

    @wraps(decide)
    def decided(terms: _Terms, /, *args: _P.args, **options: _P.kwargs) -> Edit:
        book = _Book(terms)
        decide(book, *args, **options)
        return book.edit()

    return decided


@_decision
def add(book: _Book, canonical: str, aliases: Sequence[str]) -> None:
    """Have a term stand for others, and they for it. Raises InvalidValueError, and UsageError for protected terms."""
    canonical, aliases = _tidied(canonical), [_tidied(alias) for alias in aliases]
    if not aliases:
        raise InvalidValueError(f"{canonical} has no alias", hint="findling glossary add CANONICAL ALIAS...")
    group = book.spelling(canonical)
    for alias in aliases:
        if _is_same(canonical, alias):
            raise InvalidValueError(
                f"{alias} and {canonical} are one term: capitals, accents, hyphens and endings make no difference",
                hint="leave it out; either finds the other",
            )
        book.accept(group, alias, source="user")


@_decision
def approve(book: _Book, surface: str, group: str | None = None, canonical: bool = False) -> None:
    """Accept a pending term as an alias, or with `canonical` as the name of its group.

    With a group a rejected term will do as well, and with `canonical` an alias. Raises UsageError for an unknown,
    ambiguous or protected term.
    """
    statuses = ("pending", *(("rejected",) if group else ()), *(("alias",) if canonical else ()))
    row = book.the_one(surface, group, statuses, "approve")
    book.accept(row.group, row.surface, source=row.source)
    if canonical:
        book.rename(row.group, row.surface)


@_decision
def reject(book: _Book, surface: str, group: str | None = None) -> None:
    """Never suggest a term for a group again, be it new, pending or an alias. Raises as `approve` does."""
    if group is None:
        is_pending = any(row.status == "pending" for row in book.with_key(surface))
        row = book.the_one(surface, None, ("pending",) if is_pending else ("alias",), "reject")
    else:
        name, key = book.spelling(_tidied(group)), _required_key(surface)
        row = book.rows.get((name, key)) or GlossaryTerm(name, key, _tidied(surface), "pending", "user")
    if row.key == glossary_key(row.group):
        hint = f"findling glossary set {_quoted(row.surface)} removed"
        raise InvalidValueError(f"{row.surface} is the name of the group", hint=hint)
    if row.status != "rejected":
        book.put(row._replace(status="rejected", decided_at=None))
    book.drop_reverse(row.group, row.key, ("pending",))
    book.dissolve_if_alone(row.group)


@_decision
def protect(book: _Book, surface: str) -> None:
    """Take a term to the letter: it leaves all groups and is never suggested. Raises InvalidValueError."""
    surface, key = _tidied(surface), _required_key(surface)
    if ("", key) in book.rows:
        return
    for row in book.with_key(surface):
        if row.status == "canonical":
            book.behead(row.group)
        elif row.status != "rejected":
            book.drop(row)
            book.dissolve_if_alone(row.group)
    for row in [row for row in book.rows.values() if row.status == "pending" and glossary_key(row.group) == key]:
        book.drop(row)
    book.put(GlossaryTerm("", key, surface, "protected", "user"))


@_decision
def unprotect(book: _Book, surface: str) -> None:
    """Let a protected term be suggested and added again. Raises UsageError when it is not protected."""
    row = book.rows.get(("", _required_key(surface)))
    if row is None:
        raise UsageError(f"{surface} is not protected", hint="findling glossary list")
    book.drop(row)


@_decision
def remove(book: _Book, surface: str, group: str | None = None) -> None:
    """Drop a term, and with a canonical term its group; rejections stay. Raises as `approve` does."""
    row = book.the_one(surface, group, (*ACCEPTED, "pending"), "remove")
    for doomed in book.of_group(row.group, (*ACCEPTED, "pending")) if row.status == "canonical" else [row]:
        book.drop(doomed)
    book.dissolve_if_alone(row.group)


@_decision
def merge(book: _Book, group: str, into: str) -> None:
    """Make two groups one, with pending and rejected terms. Raises UsageError for unknown groups and rejected pairs."""
    source, target = book.existing(group), book.existing(into)
    if source == target:
        raise InvalidValueError(f"{group} and {into} are one group", hint="findling glossary list")
    ours, theirs = ({row.key for row in book.of_group(name, ACCEPTED)} for name in (source, target))
    for row in book.rows.values():
        head = glossary_key(row.group)
        if row.status == "rejected" and ((row.key in ours and head in theirs) or (row.key in theirs and head in ours)):
            raise UsageError(
                f"{row.surface} is rejected for {row.group}, so {source} and {target} cannot be one",
                hint=f"findling glossary add {_quoted(row.group)} {_quoted(row.surface)}",
            )
    book.move(source, target)


@_decision
def propose(book: _Book, candidates: Iterable[tuple[str, str, str, str]]) -> None:
    """Queue undecided candidates (surface, surface of its group, source, snippet) for the groups of their words."""
    accepted = [row for row in book.rows.values() if row.status in ACCEPTED]
    homes = {row.key: row.group for row in sorted(accepted, key=lambda row: row.status == "canonical")}
    kin: dict[str, set[str]] = {}
    for group_rows in members(accepted).values():
        for row in group_rows:
            kin.setdefault(row.key, set()).update(each.key for each in group_rows)
    names, known = book.names(), {_pair(row) for row in book.rows.values() if row.group}
    for surface, other, source, snippet in candidates:
        surface, other = " ".join(surface.split()), " ".join(other.split())
        ours, theirs = glossary_key(surface), glossary_key(other)
        if not ours or not theirs or _is_same(surface, other) or ("", ours) in book.rows or ("", theirs) in book.rows:
            continue
        side, far_side = kin.get(ours, {ours}), kin.get(theirs, {theirs})
        if theirs in side or any(frozenset((one, two)) in known for one in side for two in far_side):
            continue
        if ours in homes and theirs not in homes:
            surface, other, ours, theirs = other, surface, theirs, ours
        group = homes.get(theirs) or names.setdefault(theirs, other)
        book.put(GlossaryTerm(group, ours, surface, "pending", source, snippet))
        known |= {frozenset((ours, theirs)), frozenset((ours, glossary_key(group)))}


@_decision
def import_terms(book: _Book, rows: Iterable[GlossaryTerm], replace: bool = False) -> None:
    """Import terms that were kept elsewhere; they win over those here, unless they are pending.

    With `replace` only they remain. Raises InvalidValueError, naming the term, when that would break a rule.
    """
    if replace:
        book.rows.clear()
    names = book.names()
    for row in rows:
        group = names.setdefault(glossary_key(row.group), row.group) if row.group else ""
        here = book.rows.get((group, row.key))
        if here is None or (row.status != "pending" and here.status != "canonical"):
            book.put(row._replace(group=group, surface=group if row.status == "canonical" else row.surface))
    for row in book.rows.values():
        canonical = book.rows.get((row.group, glossary_key(row.group)))
        if row.status == "alias" and (canonical is None or canonical.status != "canonical"):
            raise InvalidValueError(
                f"{row.surface} is an alias of {row.group}, which has no canonical term",
                hint=f"add a row for {row.group} with the status canonical",
            )
        if row.status in (*ACCEPTED, "pending") and ("", row.key) in book.rows:
            raise InvalidValueError(
                f"{row.surface} is protected and cannot be {row.status} in {row.group}",
                hint=f"findling glossary set {_quoted(row.surface)} unprotected",
            )


def _pair(row: GlossaryTerm) -> frozenset[str]:
    return frozenset((glossary_key(row.group), row.key))


def _tidied(surface: str) -> str:
    """The surface with single spaces. Raises InvalidValueError for one that no query can hold."""
    surface = " ".join(surface.split())
    _required_key(surface)
    if len(surface.split()) > LONGEST_TERM:
        raise InvalidValueError(f"{surface} has more than {LONGEST_TERM} words", hint="terms of a glossary are short")
    return surface


def _required_key(surface: str) -> str:
    key = glossary_key(surface)
    if not key:
        raise InvalidValueError(f"{surface!r} has no word in it", hint="name a word or a few of them")
    return key


def _is_same(one: str, other: str) -> bool:
    """Whether two surfaces are ways to write one term, which a search finds by either."""
    return glossary_key(one) == glossary_key(other) or lower_key(one) == lower_key(other)


def _quoted(surface: str) -> str:
    return f'"{surface}"' if " " in surface else surface
