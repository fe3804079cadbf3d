"""Suggesting: completions of a text that is being typed, by indexed words and titles, and corrections."""

from __future__ import annotations

import unicodedata
from itertools import islice

from findling.domain.budgets import spending
from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import All, Filters, Prefix, SearchRequest, Term
from findling.domain.results import Completion
from findling.pipelines.answer.no_results import standing
from findling.pipelines.answer.search import misspelled
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.query_planner import understand
from findling.text.analysis.analysis import phrase_terms, prefix_terms

__all__ = ["Completion", "suggest"]

_TITLES_READ = 5  # passages that are looked at for one title: a resource has several
_SHORTEST_BEGINNING = 2  # letters of a word to look for in titles: one letter begins too many
_MOST_DELETED = 200  # words of deleted texts to pass over; a compaction comes with a tenth of all passages
_MOST_CHARACTERS = 20_000  # characters of all completions together, about


@spending()
def suggest(legs: Retrievers, text: str, limit: int = 10) -> tuple[Completion, ...]:
    """Completions of a text that is being typed: corrected, then completed, then titles that begin so.

    Raises InvalidValueError for a text without a word, and for a limit below 0.
    """
    if limit < 0:
        raise InvalidValueError(f"limit {limit} must not be negative")
    if not phrase_terms(text):
        raise InvalidValueError(f"there is no word in {text!r:.200} to complete", hint="type a letter")
    limit = min(limit, max(1, _MOST_CHARACTERS // len(text)))  # each completion repeats what is typed
    head, last = _split(text)
    head = _corrected(legs, head)
    words = _completions(legs, head, last, limit)
    titles = _titles(legs, head, last, limit)
    meant = head + last if words or titles else _corrected(legs, text)
    found = [Completion(text=meant, kind="spelling")][:limit] if meant != text else []
    room = limit - len(found)
    # Titles have half of the room, and what the words leave.
    shown = words[: max(room - len(titles), room - room // 2)]
    return (*found, *shown, *titles[: room - len(shown)])


def _split(text: str) -> tuple[str, str]:
    """The text, and the word that is being typed; empty behind a space."""
    size = len(text)
    while size and (unicodedata.category(text[size - 1])[0] in "LNM" or text[size - 1] in "_+#"):
        size -= 1
    return text[:size], text[size:]


def _completions(legs: Retrievers, head: str, last: str, limit: int) -> list[Completion]:
    """The text with its last word completed, by how many passages have the longer word."""
    begun = prefix_terms(last)
    if len(begun) != 1:  # none, or an identifier of several words
        return []
    longer = [(word, count) for word, count in legs.keyword.vocabulary(begun[0]) if word != begun[0] and count]
    longer.sort(key=_by_count)
    # The vocabulary keeps words of deleted texts until a compaction, and counts them.
    live = ((word, min(count, standing(legs.keyword, word))) for word, count in longer[: limit + _MOST_DELETED])
    shown = sorted(islice((entry for entry in live if entry[1]), limit), key=_by_count)
    return [Completion(text=head + word, kind="word", count=count) for word, count in shown]


def _by_count(entry: tuple[str, int]) -> tuple[int, int, str]:
    word, count = entry
    return -count, len(word), word


def _titles(legs: Retrievers, head: str, last: str, limit: int) -> list[Completion]:
    """The titles that have all the words, the last one perhaps longer, each once."""
    words: list[Term | Prefix] = [Term(word, "title") for word in phrase_terms(head)]
    words += [Prefix(last, "title")] if len(last) >= _SHORTEST_BEGINNING else []
    if not words:
        return []
    hits = legs.keyword.search(All(tuple(words)), Filters(), limit * _TITLES_READ).hits
    titles: dict[str, str] = {}
    for chunk in legs.store.chunks([cid for cid, _ in hits]).values():
        titles.setdefault(chunk.resource.title, chunk.resource.rid)
    return [Completion(text=title, kind="title", rid=rid) for title, rid in titles.items() if title][:limit]


def _corrected(legs: Retrievers, text: str) -> str:
    """The text with every unknown word corrected."""
    question = understand(SearchRequest(query=text), Plan(), legs.store)
    meant = misspelled(legs, question) if question.asked else []
    return meant[0].query if meant else text
