"""Honesty: what is said when a search finds too little. Nothing of it is a hit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from findling.domain.errors import MissingExtraError, ModelError
from findling.domain.ports import KeywordLeg
from findling.domain.queries import All, Any, Filters, Not
from findling.domain.results import Hit, Suggestion
from findling.pipelines.assembling import Asked, Ranked, make_hit
from findling.pipelines.candidates import Candidate, Found, allowed_resources
from findling.pipelines.meaning import Meaning, can_read, find_by_meaning
from findling.pipelines.understanding import Question, respelled

if TYPE_CHECKING:
    from findling.pipelines.searching import Legs, Ranking

__all__ = ["neighbours", "suggestions", "why_nothing"]

_CLOSE = 0.75
"""How near a neighbour is, as a share of the cosine from which it would be found by its meaning alone. MiniLM: .22,
which the nearest of thousands of foreign passages reaches. It is shown as no match, so it may be weaker than one."""

_WORDS = re.compile(r"(?<![\w.:/-])\w+(?![\w:/-]|\.\w)")
"""Words that stand by themselves, whatever punctuation follows."""

_DEEPER = 10
"""Times as many neighbours as are shown are looked at: some are excluded by what the query forbids."""


def suggestions(keyword: KeywordLeg, question: Question, unknown: Sequence[str]) -> list[Suggestion]:
    """For each word that nobody wrote, the one of the index that was probably meant."""
    from findling.text.spelling import suggest
    from findling.text.wordpieces import bert_vocabulary

    # A part of a compound such as an identifier is none that a person has misspelled.
    typed = set(_WORDS.findall(question.text.lower()))
    words = [term for term in unknown if term in typed and term.isalpha()]
    # A common English word that nobody wrote is no error of spelling: radio is not meant to be ratio.
    words = [term for term in words if len(bert_vocabulary().pieces(term)) > 1]
    if not words or keyword.size() == 0:
        return []
    vocabulary = list(keyword.vocabulary())
    found = []
    for word in words:
        meant = suggest(word, vocabulary, limit=1)
        if meant:
            query = respelled(question.request.query, {word: meant[0]})
            found.append(Suggestion(term=word, suggestion=meant[0], query=query))
    return found


def why_nothing(keyword: KeywordLeg, question: Question, found: Found) -> tuple[str, ...]:
    """What keeps a query from matching anything: its filters, or words that do not stand together."""
    if question.node == Any(()):
        return ("there is no letter, digit or emoji to search for",)
    notes = []
    bare = Filters(principals=question.filters.principals)
    if question.filters != bare:
        elsewhere = keyword.search(question.node, bare, 1, weights=question.plan.weights).total
        if elsewhere:
            notes.append(f"{elsewhere:,} passages match without the filters")
    known = [term for term in question.asked if found.keyword.forms.get(term)]
    if not notes and question.reading == "boolean" and len(known) == len(question.asked) > 1:
        notes.append(f"each of {', '.join(known)} occurs, but no passage has all that is asked for")
    return tuple(notes)


def neighbours(legs: Legs, ranking: Ranking, wanted: Asked) -> tuple[Hit, ...]:
    """The passages that come near to the query by meaning, when nothing matches it; none contains what it excludes."""
    question = ranking.question
    count = question.plan.related
    asked_mode = (question.request.plan or question.plan).mode
    if not count or legs.meaning is None or asked_mode == "keyword" or not question.asked:
        return ()
    if legs.keyword.unit == "page":
        return ()
    at_hand = ranking.meaning if ranking.meaning.spaces else legs.meaning()
    spaces = [space for space in at_hand.spaces if can_read(space.embedder, question.text)]
    try:
        allowed = allowed_resources(legs.store, question.filters)
        near, judges = find_by_meaning(spaces, question.text, count * _DEEPER, allowed=allowed)
    except (MissingExtraError, ModelError):
        return ()  # the answer is empty without them, too, and says what fails when meaning is part of it
    least = {judge.space.leg.speed: judge.least * _CLOSE for judge in judges}
    close = [cid for cid, hit in near.items() if hit.cosine >= least[hit.speed]]
    close.sort(key=lambda cid: (-near[cid].strength, cid))
    forbidden = tuple(part for part in _parts(question) if isinstance(part, Not))
    if forbidden and close:
        fitting = legs.keyword.scores(All(forbidden), close)
        close = [cid for cid in close if cid in fitting]
    stored = legs.store.chunks(close[:count])
    entries = [
        Ranked(chunk, Candidate(cid, near[cid].strength, vector_rank=rank, vector=near[cid]), near[cid].strength)
        for rank, (cid, chunk) in enumerate(stored.items(), start=1)
    ]
    nearest = _line_finder(at_hand, question, wanted)
    return tuple(make_hit(entry, nearest, legs.store) for entry in entries)


def _parts(question: Question) -> tuple[object, ...]:
    return question.node.nodes if isinstance(question.node, All) else (question.node,)


def _line_finder(at_hand: Meaning, question: Question, wanted: Asked) -> Asked:
    if at_hand.instant is None:
        return wanted
    from findling.pipelines.meaning import nearest_line

    return wanted._replace(nearest=nearest_line(at_hand.instant, question.text))
