"""Candidates for the glossary: from the texts themselves, and from a language model where the user has chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from findling.domain.ports import TruthStore
from findling.domain.resources import Document
from findling.pipelines.glossary_mining import mine
from findling.service.model_choice import choose_chat
from findling.service.privacy import may_send
from findling.service.settings import Settings
from findling.text.mining import Candidate

__all__ = ["candidates"]

_LOOKED_THROUGH = 20_000_000
"""Characters that are all read again: two spellings of a word are told from errors by how many texts have them.
Reading takes about 0.1 s a million characters, so in larger workspaces only what has changed is looked at."""


def candidates(
    store: TruthStore, since: int, groups: Sequence[str], settings: Settings, *, looked_through: int = _LOOKED_THROUGH
) -> tuple[list[Candidate], int]:
    """Pairs of terms that may mean the same, and the number of the change up to which texts were looked through.

    Only what has changed `since` is looked at in stores of more characters than `looked_through`. Raises LockedError
    when the store is written meanwhile, ModelError when the language model fails.
    """
    seq = store.seq()
    is_small = store.counts()["characters"] <= looked_through
    start = 0 if is_small or since > seq or since < store.log_floor() else since
    found = mine(_documents(store, start))
    chat = choose_chat(settings)
    if chat is not None and groups:
        from findling.pipelines.glossary_matching import match

        allowed = may_send(settings) if chat.host else None
        readable = found
        if allowed is not None:
            readable = mine(document for document in _documents(store, start) if allowed(document.resource))
        found = [*match(chat, readable, groups), *found]
    return found, seq


def _documents(store: TruthStore, since: int) -> Iterator[Document]:
    return (change.document for change in store.changes(since) if change.document is not None)
