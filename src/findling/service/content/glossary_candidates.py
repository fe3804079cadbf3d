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

__all__ = ["Candidates", "candidates"]

_LOOKED_THROUGH = 20_000_000
"""Characters that are all read again: two spellings of a word are told from errors by how many texts have them.
Reading takes about 0.1 s a million characters, so in larger workspaces only what has changed is looked at."""


class Candidates(NamedTuple):
    """Pairs of terms that may mean the same, and the number of the change up to which texts were looked through.

    `trouble` is what kept the language model from answering; then the pairs are those of the texts alone.
    """

    pairs: list[SynonymCandidate]
    seq: int
    trouble: Degradation | None = None


def candidates(
    store: TruthStore, since: int, groups: Sequence[Group], settings: Settings, *, looked_through: int = _LOOKED_THROUGH
) -> Candidates:
    """What the texts suggest, and what a language model says belongs to one of the groups.

    Only what has changed `since` is looked at in stores of more characters than `looked_through`. Raises LockedError
    when the store is written meanwhile, InvalidValueError when the settings name no language model.
    """
    seq = store.seq()
    is_small = store.counts()["characters"] <= looked_through
    start = 0 if is_small or since > seq or since < store.log_floor() else since
    found = mine(_documents(store, start))
    try:
        return Candidates([*_matched(store, start, found, groups, settings), *found], seq)
    except ModelError as error:
        return Candidates(found, seq, Degradation(what=f"no language model was asked: {error.message}", fix=error.hint))


def _matched(
    store: TruthStore, start: int, found: list[SynonymCandidate], groups: Sequence[Group], settings: Settings
) -> list[SynonymCandidate]:
    """What the language model makes of the candidates. Nothing is sent that stands in private documents alone."""
    chat = choose_chat(settings)
    if chat is None or not groups:
        return []
    from findling.pipelines.glossary.glossary_matching import match

    if not chat.host:
        return match(chat, found, [group.canonical for group in groups])
    from findling.pipelines.glossary.glossary_matching import Presence

    allowed = may_send(settings)
    presence = Presence(surface for group in groups for surface in (group.canonical, *group.aliases))

    def readable() -> Iterator[Document]:
        for document in _documents(store, start):
            if allowed(document.resource):
                presence.look(f"{document.resource.title}\n\n{document.text}")
                yield document

    known = mine(readable())
    # A group goes by the first of its terms that may be sent: its own name may be the one that is private.
    names = (next((name for name in (each.canonical, *each.aliases) if name in presence.found), "") for each in groups)
    return match(chat, known, list(dict.fromkeys(filter(None, names))))


def _documents(store: TruthStore, since: int) -> Iterator[Document]:
    return (change.document for change in store.changes(since) if change.document is not None)
