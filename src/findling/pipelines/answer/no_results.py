"""Honesty: corrections, notes and neighbours for a search that finds too little. None of them is a hit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import log10
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import MissingExtraError, ModelError
from findling.domain.ports import KeywordLeg
from findling.domain.queries import All, Any, Field, Filters, Node, Not, Pattern, Phrase, Term, Word
from findling.domain.resources import StoredChunk
from findling.domain.results import Degradation, Evidence, Hit, Suggestion
from findling.domain.values import counted
from findling.pipelines.answer.hits import make_hit
from findling.pipelines.answer.rankings import HighlightSpec, Ranked, Ranking
from findling.pipelines.retrieve.legs import Candidate, Found, Retrievers, alone
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, corrected, respelled, typed_words
from findling.pipelines.retrieve.vector_retrieval import Meaning, able_to_read, allowed_resources, find_by_meaning
from findling.stores.filter_columns import split_ids
from findling.text.analysis.analysis import phrase_terms
from findling.text.analysis.scripts import name_parts
from findling.text.analysis.spelling import Spellings, edits, suggest
from findling.text.analysis.stemming import is_function_word, question_language
from findling.text.query.leaves import TOO_LONG
from findling.text.query.query_mode import demands, relaxed
from findling.text.query.tree import asks_for_text, canonical, patterns_of, positive_terms

if TYPE_CHECKING:
    from findling.pipelines.retrieve.match_time import TimedPattern

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EDGES = "\"'`()[]{}<>.,;:!?…“”„«»"
_LARGE = "[1-9][0-9]{3,14}"
_MOST_COMPOUNDS = 4
_WAYS = 3
_TRIED = 8
"""Spellings of a word or an identifier that are looked up, each a search of 0.2 ms."""

_OFTEN = 20
"""Passages with a half of two words that were run together, unless it is a common word or they stand in a row.

Of 2,000 words of 6 to 8 random letters, Python's standard library corrects 2; with 1 instead of 20 passages 29.
"""

_SHORT = 4
"""Letters of a word that another one with one letter changed is no near spelling of: wann is not want."""

_LONG = 7
_SURE = 6
"""Letters from which one edit needs no support: a word of five letters is an edit away from some other word, if not
written with the same letters (`tabel`)."""


def meant_by(keyword: KeywordLeg, text: str, unknown: Collection[str]) -> dict[str, str]:
    """Word as it was typed → the word of the index that was probably meant.

    Small words of any language are no errors, nor are English words.
    """
    typed = typed_words(text)
    # A word of another language may have a long relative here, Universität and university; parst is no parts.
    least = 0 if question_language(text) == "english" else _LONG
    words = [term for term in unknown if term in typed and len(term) >= least and _may_be_wrong(term)]
    compounds = _compounds(text, unknown)
    # 1249 stands in a bill as 1,249.00.
    numbers = {term: f"{int(term):,}".replace(",", " ") for term in unknown if re.fullmatch(_LARGE, term)}
    if not (words or compounds or numbers) or keyword.size() == 0:
        return {}
    vocabulary = Spellings.of(keyword.vocabulary())
    meant = {typed[word]: other for word in words if (other := next(_nearest(keyword, word, vocabulary), ""))}
    meant |= {typed[term]: row for term, row in numbers.items() if term in typed and standing(keyword, row)}
    for compound in compounds[:_MOST_COMPOUNDS]:
        if whole := _whole(keyword, compound, unknown, vocabulary):
            meant[compound] = whole
    return meant


def standing(keyword: KeywordLeg, text: str) -> int:
    """The number of passages that have a word of the vocabulary, or two words in a row; deleted ones do not count."""
    # Phrase takes a word in its one form; the pieces of an identifier with digits in it are no phrase.
    is_whole = " " in text or phrase_terms(text) == [text]
    return keyword.search(Phrase(text) if is_whole else Term(text), Filters(), 0).total


def _nearest(keyword: KeywordLeg, word: str, vocabulary: Spellings) -> Iterator[str]:
    """The words that may be meant; the vocabulary also has those of deleted texts.

    Large vocabularies have two words for gibberish, too: such a pair stands in a row, or consists of common words.
    """
    for other in suggest(word, vocabulary, limit=_TRIED):
        is_near = len(word) > _SHORT or len(other) > len(word) or sorted(other) == sorted(word)
        if is_near and (_is_common_pair(keyword, other) or standing(keyword, other)):
            yield other


def _is_common_pair(keyword: KeywordLeg, text: str) -> bool:
    """Whether these are two words that English or the index uses often."""
    found = [(half, standing(keyword, half)) for half in text.split()]
    return len(found) == 2 and all(count >= (1 if _is_common(half) else _OFTEN) for half, count in found)


def _may_be_wrong(term: str) -> bool:
    # An English word that nobody wrote is no error of spelling: radio is not meant to be ratio, nor snark snack.
    return term.isalpha() and not is_function_word(term) and not _is_common(term)


def _is_common(term: str) -> bool:
    from findling.text.analysis.wordpieces import is_english

    return is_english(term)


def _compounds(text: str, unknown: Collection[str]) -> list[str]:
    """The identifiers of a text with a part that nobody wrote."""
    raw = dict.fromkeys(word.strip(_EDGES) for word in text.split())
    return [
        word
        for word in raw
        if len(parts := _PART.findall(word)) > 1 and any(part.lower() in unknown for part in parts) and word.isascii()
    ]


def _whole(keyword: KeywordLeg, compound: str, unknown: Collection[str], vocabulary: Spellings) -> str:
    """The identifier with its unknown parts corrected, if the index has it as a whole; empty if it has not."""
    parts = [(match.span(), match.group()) for match in _PART.finditer(compound)]
    wrong = [(span, part) for span, part in parts if part.lower() in unknown]
    ways = [islice(_nearest(keyword, part.lower(), vocabulary), _WAYS) for _, part in wrong]
    for chosen in list(product(*ways))[:_TRIED]:
        whole, moved = compound, 0
        for ((start, end), part), other in zip(wrong, chosen, strict=True):
            cased = other.upper() if part.isupper() else other.capitalize() if part[0].isupper() else other
            whole = whole[: start + moved] + cased + whole[end + moved :]
            moved += len(cased) - len(part)
        if " " not in whole and (keyword.search(Term(whole), Filters(), 0).total or _is_defined(keyword, whole)):
            return whole
    return ""


def _is_defined(keyword: KeywordLeg, name: str) -> bool:
    """Whether a qualified name is defined in its scope, where nobody writes both in a row."""
    *scopes, last = name_parts(name)
    return bool(scopes) and any(score for _, score in keyword.definers([last], Word(scopes[-1]), Filters(), 1))


_NEAREST = 3
"""Passages that an empty answer names. For 50 words that no note has, the first of 100 notes is right 27 times by the
default model, one of three 37 times."""

_DEEPER = 10
"""Times as many neighbours as are shown are looked at: some are excluded by what the query forbids."""


def suggestions(keyword: KeywordLeg, question: AnalyzedQuery, unknown: Sequence[str]) -> list[Suggestion]:
    """For each word that nobody wrote, the one of the index that was probably meant; identifiers as a whole."""

    meant = meant_by(keyword, question.text, unknown)
    query = respelled(question.request.query, meant)
    return [
        Suggestion(
            term=typed,
            suggestion=other,
            query=query,
            applied=_can_respell(question, {typed: other}) and _is_supported(keyword, question, typed, meant),
        )
        for typed, other in meant.items()
    ]


def _is_supported(keyword: KeywordLeg, question: AnalyzedQuery, typed: str, meant: Mapping[str, str]) -> bool:
    """Whether a correction is next to certain, or stands in a passage with another word of the question."""
    other, term = meant[typed], "".join(phrase_terms(typed))
    is_ending = term.startswith(other) or other.startswith(term)
    is_near = is_ending or edits(term, other, 1) < 2
    is_sure = sorted(term) == sorted(other) or (len(term) >= _SURE and is_near)
    # Large vocabularies have a relative of any short word: 36,000 passages of code know turne, sitm and posid.
    if len(term) <= _SURE and not _is_common(other):
        is_sure = is_sure and standing(keyword, other) > log10(max(keyword.size(), 1)) - 2
    is_looked_up = not (other.isalpha() and other.islower())  # both halves, and an identifier as a whole
    if is_sure or is_looked_up:
        return True
    rest = {term for term in question.asked if term not in phrase_terms(typed)}
    words = [*rest, *(one for key, one in meant.items() if key != typed)]
    if words and keyword.search(All((Term(other), question.any_of(words))), Filters(), 0).total:
        return True
    # Where a question in another language shares no word with the texts, a long relative is all there is: Kabarett.
    is_english = question_language(question.text) == "english"
    return not is_english and not keyword.search(question.any_of(rest), Filters(), 0).total


def why_nothing(keyword: KeywordLeg, question: AnalyzedQuery, found: Found) -> tuple[str, ...]:
    """The reason why a query matches nothing: its filters, its exclusions, or words that do not stand together."""
    if question.has_patterns:
        return _lacking(patterns_of(question.tree, excluded=False))
    if question.node == Any(()):
        is_told = any(note.endswith(TOO_LONG) for note in question.notes)
        return () if is_told else ("there is no letter, digit or emoji to search for",)
    weights = question.plan.weights
    # What the profile is about, and ids that are out of question, are no filters of whoever asks.
    ids = tuple(split_ids(question.filters)[0])
    wide = Filters(where=Not(Field("rid", ids)) if ids else None)
    wide = wide if question.request.filters.type else replace(wide, type=question.filters.type)
    here = replace(wide, within=question.filters.within)
    for filters, wider, told in ((question.filters, here, "without the filters"), (here, wide, "")):
        elsewhere = keyword.search(question.node, wider, 0, weights=weights).total if filters != wider else 0
        if elsewhere:
            return (f"{_counted(elsewhere)} {told or f'outside of {here.within}'}",)
    demanded = tuple(part for part in _parts(question) if not isinstance(part, Not))
    if demanded and len(demanded) < len(_parts(question)):
        elsewhere = keyword.search(All(demanded), question.filters, 0, weights=weights).total
        if elsewhere:
            return (f"{_counted(elsewhere)} without what is excluded",)
    known = [term for term in question.asked if found.keyword.forms.get(term)]
    if question.reading == "boolean" and len(known) == len(question.asked) > 1:
        return (f"each of {', '.join(known)} occurs, but no passage has all that is asked for",)
    return ()


def nowhere(keyword: KeywordLeg, words: Iterable[str]) -> Iterator[str]:
    """Those of the words that nobody wrote, nor in another style: `getUser` where all write `get_user`."""
    for word in words:
        parts = [part.lower() for part in _NAME_PARTS.findall(word)]
        if len(parts) < 2 or not keyword.search(Phrase(" ".join(parts)), Filters(), 0).total:
            yield word


_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _lacking(patterns: Sequence[Pattern]) -> tuple[str, ...]:
    from findling.text.query.patterns import has_letters

    for pattern in patterns:
        if not has_letters(pattern):
            grep = f"findling grep {quote(pattern.text)}"
            return (f"{canonical(pattern)} matches nothing but places between letters; {grep} lists such lines",)
    return (f"nothing here has all of {', '.join(map(canonical, patterns))}",) if patterns else ()


def idle_exclusions(keyword: KeywordLeg, question: AnalyzedQuery) -> tuple[str, ...]:
    """A note for each exclusion that excludes nothing, since nothing says so; often it is misspelled."""
    return tuple(
        f"{canonical(part)} excludes nothing: nothing says so"
        for part in _parts(question)
        if isinstance(part, Not) and asks_for_text(part.node) and not keyword.search(part.node, Filters(), 0).total
    )


def neighbours(
    legs: Retrievers, ranking: Ranking, wanted: HighlightSpec, exclude: TimedPattern | None
) -> tuple[tuple[Hit, ...], Meaning]:
    """The passages that come near to the query by meaning, when nothing matches it, and what of meaning was asked.

    None contains what the query excludes. What is meant to the letter is not sent anywhere for this. A number has no
    neighbours: any table of other numbers is near to it.
    """
    question = ranking.question
    count = question.plan.related
    asked_mode = (question.request.plan or question.plan).mode
    if not count or legs.meaning is None or asked_mode == "keyword" or not question.asked or not question.text:
        return (), ranking.meaning
    if legs.keyword.unit == "page" or not any(map(str.isalpha, question.text)):
        return (), ranking.meaning
    at_hand = ranking.meaning
    if not at_hand.spaces:
        at_hand = legs.meaning()
        at_hand = at_hand._replace(spaces=tuple(space for space in at_hand.spaces if not space.embedder.host))
    spaces = able_to_read(at_hand, question.text, []).spaces
    try:
        allowed = allowed_resources(legs.store, question.filters)
        held = {term for term, forms in ranking.found.keyword.forms.items() if forms}
        near, _ = find_by_meaning(spaces, question.text, count * _DEEPER, allowed=allowed, held=held)
    except (MissingExtraError, ModelError) as error:
        return (), at_hand._replace(spaces=(), degraded=(*at_hand.degraded, Degradation.of(error)))
    close = sorted(near, key=lambda cid: (-near[cid].raw, cid))
    # An empty answer names at least what comes nearest; these are no hits.
    count = min(count, max(_NEAREST, sum(hit.worth > 0 for hit in near.values())))
    forbidden = tuple(part for part in _parts(question) if isinstance(part, Not))
    if forbidden and close:
        fitting = legs.keyword.scores(All(forbidden), close)
        close = [cid for cid in close if cid in fitting]
    stored = legs.store.chunks(close)
    seen = [(cid, chunk) for cid, chunk in stored.items() if exclude is None or not exclude.matches(chunk.text)]
    nearest = _line_finder(at_hand, question, wanted)
    entries = [_named(chunk, near[cid], rank) for rank, (cid, chunk) in enumerate(seen[:count], start=1)]
    return tuple(make_hit(entry, nearest, legs.store) for entry in entries), at_hand._replace(spaces=spaces)


def _named(chunk: StoredChunk, near: Evidence, rank: int) -> Ranked:
    """A passage that an empty answer names, with the support of its meaning, which may be too little for a hit."""
    one = near._replace(worth=near.worth or near.support or 0.0)
    return Ranked(chunk, Candidate(chunk.chunk.cid, one.worth, (alone(one, rank),)), one.worth)


class Relaxed(NamedTuple):
    """A query without its demands, and a sentence that says what was dropped."""

    query: AnalyzedQuery
    note: str


def relax(question: AnalyzedQuery) -> Relaxed | None:
    """The query without what it demands of the text; exclusions, conditions and filters hold.

    `None` when nothing was demanded, and when the plan keeps to what is demanded.
    """
    node = relaxed(question.node)
    if node is None or not question.plan.relax or question.plan.words == "all":
        return None
    dropped = canonical(All(demands(question.node)))
    looser = replace(
        question,
        tree=node,
        node=node,
        asked=positive_terms(node),
        reading="ranked",
        because=f"nothing has {dropped}, so its words rank",
    )
    return Relaxed(looser, f"nothing has {dropped}; what is relaxed below does without that demand")


def _counted(passages: int) -> str:
    return f"{counted(passages, 'passage')} {'matches' if passages == 1 else 'match'}"


def _can_respell(question: AnalyzedQuery, correction: Mapping[str, str]) -> bool:
    """Whether a word stands where another spelling of it may stand beside it; in quotes it does not."""
    return corrected(question, correction).node != question.node


def _parts(question: AnalyzedQuery) -> tuple[Node, ...]:
    return question.node.nodes if isinstance(question.node, All) else (question.node,)


def _line_finder(at_hand: Meaning, question: AnalyzedQuery, wanted: HighlightSpec) -> HighlightSpec:
    if at_hand.instant is None:
        return wanted
    from findling.pipelines.retrieve.vector_retrieval import nearness_to

    return replace(wanted, nearness=nearness_to(at_hand.instant, question.text), judged={})
