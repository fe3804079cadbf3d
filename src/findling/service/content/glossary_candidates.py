"""Candidates for the glossary: from the texts themselves, and from a language model where the user has chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from findling.domain.errors import ModelError
from findling.domain.ports import TruthStore
from findling.domain.resources import Document
from findling.domain.results import Degradation
from findling.pipelines.glossary.glossary import Group
from findling.pipelines.glossary.glossary_mining import mine
from findling.service.index.model_choice import choose_chat
from findling.service.index.privacy import may_send
from findling.service.settings.settings import Settings
from findling.text.mining.synonyms import SynonymCandidate

__all__ = ["GlossaryCandidates", "candidates"]

_LOOKED_THROUGH = 20_000_000
"""Most characters that are all read again: the number of texts tells a spelling from an error. Reading takes 0.1 s a
million characters, so of larger workspaces only changed texts are read."""


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
    from findling.pipelines.glossary.glossary_matching import Presence, match

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
