"""The glossary of one workspace: its terms, and every decision about them, written under the lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError, ModelError
from findling.domain.ports import TruthStore
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Document
from findling.domain.results import Degradation
from findling.pipelines.glossary import glossary as rules
from findling.pipelines.glossary.glossary import STATUSES, Edit, Group
from findling.pipelines.glossary.glossary_mining import Presence, match, mine
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.model_choice import choose_chat, may_send
from findling.service.settings.settings import Settings
from findling.text.mining.keys import glossary_key
from findling.text.mining.synonyms import SynonymCandidate

_LOOKED_THROUGH = 20_000_000
"""Most characters that are all read again: the number of texts tells a spelling from an error. Reading takes 0.1 s a
million characters, so of larger workspaces only changed texts are read."""

_MINED_AT = "glossary_mined"
"""Name of the meta value with the number of the last change that was searched for candidates."""

_FORMAT_HINT = "findling glossary list export shows the format"


class WorkspaceGlossary:
    """The glossary of one workspace. Every change raises as `OpenedWorkspace.writing` does, besides its own errors."""

    trouble: Degradation | None = None
    """The failure of the language model in the latest `pending`."""

    def __init__(self, files: OpenedWorkspace, settings: Settings) -> None:
        self._files = files
        self._settings = settings

    def terms(self) -> list[GlossaryTerm]:
        """All terms, ordered by group and key."""
        self._files.let_go_if_replaced()
        return self._files.store.glossary() if self._files.exists else []

    def groups(self) -> list[Group]:
        """The groups that searches use."""
        return rules.groups(self.terms())

    def protected(self) -> list[GlossaryTerm]:
        """The terms that searches take literally."""
        return self._with_status("protected")

    def pending(self, *, refill: bool = True) -> list[GlossaryTerm]:
        """The terms that wait for a decision; `refill` first looks for candidates in changed texts.

        When the chosen language model fails, `trouble` says so, and the next call asks it again.
        """
        self.trouble = None
        if refill:
            self._refill()
        return self._with_status("pending")

    def add(self, canonical: str, aliases: Sequence[str]) -> Edit:
        """Make terms aliases of a canonical one. Raises UsageError for terms that cannot be."""
        return self._change(lambda terms: rules.add(terms, canonical, aliases))

    def approve(self, surface: str, group: str | None = None, *, canonical: bool = False) -> Edit:
        """Approve a pending term. Raises UsageError when there is none, or more than one."""
        return self._change(lambda terms: rules.approve(terms, surface, group, canonical))

    def reject(self, surface: str, group: str | None = None) -> Edit:
        """Never have a term suggested for a group again. Raises UsageError when there is none, or more than one."""
        return self._change(lambda terms: rules.reject(terms, surface, group))

    def protect(self, surface: str) -> Edit:
        """Have searches take a term literally, in no group. Raises UsageError for text that is no term."""
        return self._change(lambda terms: rules.protect(terms, surface))

    def unprotect(self, surface: str) -> Edit:
        """Allow a protected term to be suggested and added again. Raises UsageError when it is not protected."""
        return self._change(lambda terms: rules.unprotect(terms, surface))

    def remove(self, surface: str, group: str | None = None) -> Edit:
        """Drop a term, and with a canonical term its group. Raises UsageError when there is none, or more than one."""
        return self._change(lambda terms: rules.remove(terms, surface, group))

    def merge(self, group: str, into: str) -> Edit:
        """Merge two groups. Raises UsageError when one is not there, or a rejection stands between them."""
        return self._change(lambda terms: rules.merge(terms, group, into))

    def propose(self, candidates: Iterable[tuple[str, str, str, str]]) -> Edit:
        """Queue undecided candidates: surface, surface of its group, source, snippet."""
        listed = list(candidates)
        return self._change(lambda terms: rules.propose(terms, listed))

    def export_rows(self) -> list[dict[str, Any]]:
        """Every term with all its fields, ready for JSON."""
        return [term._asdict() for term in self.terms()]

    def import_rows(self, rows: Sequence[Mapping[str, Any]], *, replace: bool = False) -> Edit:
        """Import rows of `export_rows`: all or, when one is wrong, none; `replace` drops the other terms.

        Raises InvalidValueError that names the row.
        """
        terms: dict[tuple[str, str], GlossaryTerm] = {}
        for number, row in enumerate(rows, start=1):
            term = _term(number, row)
            at = (glossary_key(term.group), term.key)
            if at in terms:
                raise _wrong(number, f"{term.surface} is the same as {terms[at].surface} before it")
            terms[at] = term
        return self._change(lambda present: rules.import_terms(present, terms.values(), replace))

    def _refill(self) -> None:
        """Look for candidates in the texts that have changed since the last time."""
        files = self._files
        files.let_go_if_replaced()
        if not files.exists or files.store.get_meta(_MINED_AT) == str(files.store.seq()):
            return

        since = int(files.store.get_meta(_MINED_AT) or 0)
        found = candidates(files.store, since, self.groups(), self._settings)
        self.propose(found.pairs)
        self.trouble = found.trouble
        # Without the mark the next call reads the texts again, and asks the model.
        if found.trouble is None:
            with files.writing():
                files.store.set_meta(_MINED_AT, str(found.seq))

    def _with_status(self, status: str) -> list[GlossaryTerm]:
        return [term for term in self.terms() if term.status == status]

    def _change(self, decide: Callable[[list[GlossaryTerm]], Edit]) -> Edit:
        # An edit without effect, or an impossible one, needs no lock and creates no workspace.
        if not any(decide(self.terms())):
            return Edit()
        with self._files.writing():
            edit = decide(self._files.store.glossary())
            edit = edit._replace(put=_dated(edit.put))
            self._files.store.write_glossary(edit.put, edit.dropped)
        return edit


class GlossaryCandidates(NamedTuple):
    """Pairs of terms that may mean the same, and the number of the last change that was read.

    `trouble` is the failure of the language model; then the pairs are those of the texts alone.
    """

    pairs: list[SynonymCandidate]
    seq: int
    trouble: Degradation | None = None


def candidates(
    store: TruthStore, since: int, groups: Sequence[Group], settings: Settings, *, looked_through: int = _LOOKED_THROUGH
) -> GlossaryCandidates:
    """Candidates from the texts, and from a language model that assigns terms to the groups.

    Of stores with more characters than `looked_through` only texts changed `since` are read. Raises LockedError when
    the store is written meanwhile, InvalidValueError when the settings name no language model.
    """
    seq = store.seq()
    is_small = store.counts()["characters"] <= looked_through
    start = 0 if is_small or since > seq or since < store.log_floor() else since
    found = mine(_documents(store, start))
    try:
        return GlossaryCandidates([*_matched(store, start, found, groups, settings), *found], seq)
    except ModelError as error:
        trouble = Degradation(what=f"no language model was asked: {error.message}", fix=error.hint)
        return GlossaryCandidates(found, seq, trouble)


def _matched(
    store: TruthStore, start: int, found: list[SynonymCandidate], groups: Sequence[Group], settings: Settings
) -> list[SynonymCandidate]:
    """The judgement of the language model. Terms of private documents alone are never sent."""
    chat = choose_chat(settings)
    if chat is None or not groups:
        return []
    if not chat.host:
        return match(chat, found, [group.canonical for group in groups])
    allowed = may_send(settings)
    presence = Presence(surface for group in groups for surface in (group.canonical, *group.aliases))

    def readable() -> Iterator[Document]:
        for document in _documents(store, start):
            if allowed(document.resource):
                presence.look(f"{document.resource.title}\n\n{document.text}")
                yield document

    known = mine(readable())
    # A group goes by the first of its terms that may be sent: its own name may be private.
    names = (next((name for name in (each.canonical, *each.aliases) if name in presence.found), "") for each in groups)
    return match(chat, known, list(dict.fromkeys(filter(None, names))))


def _documents(store: TruthStore, since: int) -> Iterator[Document]:
    return (change.document for change in store.changes(since) if change.document is not None)


def _dated(terms: Sequence[GlossaryTerm]) -> tuple[GlossaryTerm, ...]:
    """The terms with the time of their decision, increasing, so that their order stays."""
    now = time.time()
    return tuple(
        term
        if term.status == "pending" or term.decided_at is not None
        else term._replace(decided_at=now + count * 1e-6)
        for count, term in enumerate(terms)
    )


def _term(number: int, row: object) -> GlossaryTerm:
    """One row of a file as a term; its key is computed again, as it depends on the analysis of words here."""
    if not isinstance(row, Mapping):
        raise _wrong(number, "it is no object")
    if unknown := sorted(str(name) for name in set(row) - set(GlossaryTerm._fields)):
        raise _wrong(number, f"unknown: {', '.join(unknown)}")
    texts = {name: row.get(name, "") for name in GlossaryTerm._fields if name != "decided_at"}
    if wrong := [name for name, text in texts.items() if not isinstance(text, str)]:
        raise _wrong(number, f"{wrong[0]} is no text")
    group, surface = " ".join(texts["group"].split()), " ".join(texts["surface"].split())
    key, status, decided_at = glossary_key(surface), texts["status"], row.get("decided_at")
    if isinstance(decided_at, bool) or not isinstance(decided_at, int | float | None):
        raise _wrong(number, "decided_at is no number of seconds")
    if status not in STATUSES:
        raise _wrong(number, f"status is {status!r}, not one of {', '.join(STATUSES)}")
    if not key:
        raise _wrong(number, f"surface {surface!r} has no word in it")
    if bool(glossary_key(group)) == (status == "protected"):
        raise _wrong(number, "a protected term has no group" if group else f"a term that is {status} needs a group")
    if (key == glossary_key(group)) != (status == "canonical"):
        raise _wrong(number, f"{surface} is {status} in the group {group}: a canonical term is the name of its group")
    return GlossaryTerm(group, key, surface, status, texts["source"], texts["snippet"], decided_at)


def _wrong(number: int, problem: str) -> InvalidValueError:
    return InvalidValueError(f"row {number} of the glossary: {problem}", hint=_FORMAT_HINT)
