"""Rankings: the entries that stages hand on, their groups, and the context of steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import log
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.budgets import current_budget
from findling.domain.queries import All, Any, Node, Pattern, Same
from findling.domain.resources import Chunk, Resource, StoredChunk
from findling.domain.results import Degradation, Step, Suggestion
from findling.domain.values import record
from findling.pipelines.retrieve.legs import KEYWORD, Candidate, Found, Retrievers
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.pipelines.retrieve.vector_retrieval import Meaning, nearness_to
from findling.text.analysis.analysis import WordSpan, says_nothing, terms
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.query.tree import identifier_parts, patterns_of
from findling.text.snippets import JudgedText

if TYPE_CHECKING:
    from findling.domain.ports import ReadStore
    from findling.pipelines.retrieve.match_time import TimedPattern

_LOOK = 256
"""Candidates to look up between two looks at the budget."""

_SATURATION = 1.2


class Ranked(NamedTuple):
    """A candidate that stands up to the truth: its chunk, its score so far, and what has moved it.

    `others` are the entries that it stands for in an answer that is grouped, best first. The steps of its candidate
    come before its own if its score `follows` that of the candidate.
    """

    stored: StoredChunk
    candidate: Candidate
    score: float
    steps: tuple[Step, ...] = ()
    others: tuple[Ranked, ...] = ()
    follows: bool = False

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """All steps to its score, worded only for who reads them."""
        return (*self.candidate.steps, *self.steps) if self.follows else self.steps

    def moved(self, score: float, *steps: Step) -> Ranked:
        """The entry with another score, and with the steps that have led to it."""
        return self._replace(score=score, steps=(*self.steps, *steps))


@record()
class HighlightSpec:
    """The words to look for in every hit: the terms of the query, their forms, identifiers and their parts.

    `same` are groups of alternative terms. `around` counts the messages to show on either side of a hit. `weights` of
    terms and the `nearness` of texts to the query choose the lines that are shown, unless `patterns` match in one, or
    `definitions` of asked names have a place in the chunk. `text` is the question; `judged` are the chunks read for it.
    """

    terms: Sequence[str]
    forms: Mapping[str, str]
    identifiers: Mapping[str, set[str]]
    same: Sequence[Same] = ()
    snippet_lines: int = 3
    context: int = 0
    around: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    nearness: Callable[[Sequence[str]], Sequence[float]] | None = None
    patterns: tuple[Pattern, ...] = ()
    definitions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    text: str = ""
    judged: dict[int, tuple[list[WordSpan], JudgedText]] = field(default_factory=dict)


SMALL_WORD = 0.01
"""The weight of a small word where a word that every passage has weighs 1."""


def highlights(legs: Retrievers, question: AnalyzedQuery, found: Found, meaning: Meaning) -> HighlightSpec:
    """The words to look for in the hits of a question, with the forms that the index holds, their weights and nearness.

    Rare words weigh more, and the small words of a sentence next to nothing.
    """
    forms, seen = found.keyword.forms, dict[str, int]()
    # What was typed itself comes before what is only a form of something else.
    term_of = {form: term for term in reversed(question.asked) for form in forms.get(term, ())}
    term_of |= {term: term for term in question.asked if term in forms.get(term, ())}
    for form, count in legs.keyword.frequencies(list(term_of)).items():
        seen[term_of[form]] = seen.get(term_of[form], 0) + count
    size, is_near = legs.keyword.size(), found.strategy not in ("keyword", "browse")
    weights = {term: log(2 + size / (1 + count)) for term, count in seen.items()}
    return HighlightSpec(
        question.asked,
        term_of,
        identifier_parts(question.node),
        tuple(_alternatives(question.node)),
        context=question.request.context,
        around=question.plan.around,
        weights=weights | dict.fromkeys(seen.keys() & SENTENCE_WORDS, SMALL_WORD),
        nearness=nearness_to(meaning.instant, question.text) if meaning.instant is not None and is_near else None,
        patterns=patterns_of(question.tree, excluded=False) if question.has_patterns else (),
        definitions=found.definitions,
        text=question.text,
    )


def _alternatives(node: Node) -> Iterator[Same]:
    """The words that have other ways to say them: from the glossary, or another spelling; not what was typed so."""
    if isinstance(node, Same):
        if node.group:
            yield node
    elif isinstance(node, (Any, All)):
        for part in node.nodes:
            yield from _alternatives(part)


@record()
class Ranking:
    """The ranking of a question: the hits that stand up to the truth, and an account of the way to them.

    `page` holds those that are shown, `next_cursor` asks for the next ones. `steps` name the steps of the plan after
    the fusion, in order, each with its effect. `expansion` tells whether other words were asked, why, and which. Its
    `highlights` are the words to look for.
    """

    question: AnalyzedQuery
    ranked: list[Ranked]
    found: Found
    meaning: Meaning
    degraded: list[Degradation]
    page: Sequence[Ranked]
    highlights: HighlightSpec
    next_cursor: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()
    expansion: Mapping[str, object] = field(default_factory=dict)


class StepContext:
    """The context of the steps of one search, and their notes.

    The ranking was made of `candidates`, and `is_settled` says that more of them would not change its top. For the
    `unread` passages there was no time. `verdicts` are what a judge has said, by chunk; `is_refuted` says that it finds
    all far off; it has time until `judge_until`, once set. `now` is in seconds since the epoch, `None` the present.
    """

    def __init__(
        self, legs: Retrievers | None, question: AnalyzedQuery, meaning: Meaning, wanted: int, now: float | None = None
    ) -> None:
        self.legs, self.question, self.plan, self.meaning = legs, question, question.plan, meaning
        self.wanted, self.now, self.judge_until = wanted, now, 0.0
        self.least = question.plan.min_score
        self.verdicts: dict[int, float] = {}
        self.again(())

    def again(self, candidates: Sequence[Candidate], asked: HighlightSpec | None = None) -> StepContext:
        """The same for a new ranking; `asked` are the words to look for in passages."""
        self.candidates, self.is_settled, self.is_refuted, self.asked = candidates, True, False, asked
        self.notes: list[Degradation] = []
        self.did: list[tuple[str, str]] = []
        self.unread: list[Ranked] = []
        return self

    def top(self, moved: Sequence[Ranked]) -> tuple[Sequence[Ranked], bool]:
        """The entries that are wanted, and whether what was not fetched may be better than what has sunk among them."""
        top = moved[: reach(moved, self.plan.group, self.wanted)]
        return top, len(top) >= self.wanted and bool(top) and top[-1].score < self.candidates[-1].score

    @property
    def boosts(self) -> bool:
        """Whether the plan lifts hits for what their fields say."""
        plan = self.plan
        return plan.boosts or max(plan.exact_boost, plan.prefix_boost, plan.phrase_boost) > 1

    @property
    def reads(self) -> bool:
        """Whether a step takes passages apart into their words again."""
        return self.boosts or self.plan.diversity < 1

    @property
    def reranks(self) -> bool:
        """Whether a model reads the best passages together with the query."""
        return self.meaning.reranker is not None and bool(self.plan.rerank_depth)

    @property
    def joins(self) -> bool:
        """Whether copies are shown once; who asks for a name wants everything that holds it."""
        plan, question = self.plan, self.question
        is_list = question.reading != "ranked" or question.parts is not None or question.has_patterns
        return plan.collapse and plan.group == "none" and not is_list

    @property
    def shuffles(self) -> bool:
        """Whether something may move hits after the legs have ranked them."""
        return self.reads or self.reranks or self.plan.adaptive_k


MOST_PASSAGES = 5
"""Passages that a hit has besides its own."""


@record()
class Run:
    """Chunks of one resource that follow each other, in their order, and the best of them."""

    best: Ranked
    chunks: tuple[Chunk, ...]


def grouped(ranked: Sequence[Ranked], by: str) -> list[Ranked]:
    """The best entry of each group with the others of it, in the order of the best; `by` is that of a plan."""
    if by == "none":
        return list(ranked)
    groups: dict[str, list[Ranked]] = {}
    for entry in ranked:
        groups.setdefault(group_of(entry.stored.resource, by), []).append(entry)
    return [members[0]._replace(others=tuple(members[1:])) for members in groups.values()]


def joined_twins(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The entries with those that copy one a few places above them as others of that.

    What stands further down never changes that: a page and the next one are cut from the same ranking.
    """
    kept: list[tuple[int, Ranked]] = []
    for place, entry in enumerate(ranked):
        near = [
            at for at in range(max(len(kept) - MOST_PASSAGES, 0), len(kept)) if place - kept[at][0] <= MOST_PASSAGES
        ]
        twin = next((at for at in near if _are_twins(kept[at][1].stored, entry.stored)), None)
        if twin is None:
            kept.append((place, entry))
        else:
            first, above = kept[twin]
            kept[twin] = first, above._replace(others=(*above.others, entry))
    return [entry for _, entry in kept]


def _are_twins(one: StoredChunk, other: StoredChunk) -> bool:
    """Whether a passage copies another one: one has all words of the other, or files of one name say nearly the same.

    Their numbers agree. Two memories, messages or decisions are two, whatever they say.
    """
    short, long = (one.text, other.text) if len(one.text) <= len(other.text) else (other.text, one.text)
    if len(short) < _ALIKE * len(long) or not one.resource.type == other.resource.type == "file":
        return False
    # 1 µs instead of 100: of a copy, a few letters of the middle are there.
    if not any(short[at : at + _SAMPLE] in long for at in range(len(short) // 4, len(short), len(short) // 4 + 1)):
        return False
    paths = {one.resource.path, other.resource.path}
    is_named_alike = len(paths) == 2 and len({PurePosixPath(path).stem for path in paths}) == 1
    # 5 µs instead of 50, for nine of ten: the words of one that holds all of the other have all its letters.
    if not is_named_alike and _differ_both_ways(short.casefold(), long.casefold()):
        return False
    few, many = _words_of(short), _words_of(long)
    if len(few) < _FEWEST_WORDS or len(few.keys() & many.keys()) < _ALIKE * len(few.keys() | many.keys()):
        return False
    if is_named_alike:
        few, many = (Counter({w: n for w, n in words.items() if not w.isalpha()}) for words in (few, many))
    return few <= many or many <= few


def _differ_both_ways(one: str, other: str) -> bool:
    """Whether each text has more of some letter than the other one."""
    more = [one.count(letter) - other.count(letter) for letter in "etaoins"]
    return min(more) < 0 < max(more)


@lru_cache(maxsize=128)
def _words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))


_WORD = re.compile(r"\w+")
_ALIKE, _FEWEST_WORDS, _SAMPLE = 0.8, 10, 12
"""The share of words that twins have in common, different words that each has at least, and letters to look for."""


def group_of(resource: Resource, by: str) -> str:
    """The group of a resource: its thread if it is a chat and threads count, or itself."""
    thread = resource.fields.get("thread", "") if by == "thread" and resource.type == "chat" else ""
    return f"thread {thread}" if thread else resource.rid


def reach(ranked: Sequence[Ranked], by: str, wanted: int) -> int:
    """The number of entries from the top that make up so many groups, or all of them."""
    if by == "none":
        return min(wanted, len(ranked))
    seen: set[str] = set()
    for place, entry in enumerate(ranked):
        seen.add(group_of(entry.stored.resource, by))
        if len(seen) > wanted:
            return place
    return len(ranked)


def runs(entries: Sequence[Ranked]) -> list[Run]:
    """The entries, best first, with those joined whose chunks lie side by side."""
    place_of = {entry.stored.chunk.cid: place for place, entry in enumerate(entries)}
    found: list[list[Ranked]] = []
    for entry in sorted(entries, key=lambda entry: (entry.stored.resource.rid, entry.stored.chunk.ordinal)):
        last = found[-1][-1].stored if found else None
        if (
            last is not None
            and last.resource.rid == entry.stored.resource.rid
            and last.chunk.ordinal + 1 == entry.stored.chunk.ordinal
            # Only lines can be widened: a message beside another one is a passage of its own.
            and line_span(last.chunk)[0]
        ):
            found[-1].append(entry)
        else:
            found.append([entry])
    joined = [
        Run(min(run, key=lambda e: place_of[e.stored.chunk.cid]), tuple([e.stored.chunk for e in run])) for run in found
    ]
    return sorted(joined, key=lambda run: place_of[run.best.stored.chunk.cid])


def line_span(chunk: Chunk) -> tuple[int, int]:
    """The first and the last line of a chunk in its file; 0 in files that have no lines."""
    if not chunk.places:
        return chunk.line_start, chunk.line_end
    numbers = [place.line for place in chunk.places if place.line]
    return (numbers[0], max(numbers)) if numbers else (0, 0)


def load_chunks(
    legs: Retrievers,
    candidates: Sequence[Candidate],
    question: AnalyzedQuery,
    found: Found,
    exclude: TimedPattern | None,
    stored: dict[int, StoredChunk],
) -> list[Ranked]:
    """The candidates that the store still holds, for the caller's eyes, and that no pattern excludes.

    `stored` are those that were loaded before, and becomes all of them.
    """
    if question.reading == "browse" and exclude is None:
        candidates = _one_of_each(legs.store, candidates)
    stored |= legs.store.chunks([candidate.cid for candidate in candidates if candidate.cid not in stored])
    if legs.wishes is not None and any(candidate.cid not in stored for candidate in candidates):
        legs.wishes[KEYWORD] = True
    ranked: list[Ranked] = []
    seen: set[str] = set()
    for place, candidate in enumerate(candidates):
        if place % _LOOK == _LOOK - 1 and current_budget().is_over("what stands further down was not looked at"):
            break
        chunk = stored.get(candidate.cid)
        if chunk is None:
            continue
        if legs.keyword.unit == "page":
            chunk = best_passage(legs.store, chunk, found.keyword.forms)
        # A heading alone finds what says nothing: 107 pieces of a file of brackets stood before all others.
        is_empty = question.reading == "ranked" and says_nothing(chunk.text)
        if is_empty or (exclude is not None and exclude.matches(chunk.text)):
            continue
        if question.reading == "browse":
            # Without words every passage of a resource is as good as the others: one of them will do.
            if chunk.resource.rid in seen:
                continue
            seen.add(chunk.resource.rid)
        ranked.append(Ranked(chunk, candidate, candidate.score, follows=True))
    return ranked


def _one_of_each(store: ReadStore, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first candidates of their resources: to load 20,000 passages of 2,000 files takes 0.6 s, one of each 0.05."""
    held = store.resources_of([one.cid for one in candidates])
    first = {held[one.cid].rid: one.cid for one in reversed(candidates) if one.cid in held}
    return [one for one in candidates if one.cid in held and first[held[one.cid].rid] == one.cid]


def best_passage(store: ReadStore, stored: StoredChunk, forms: Mapping[str, tuple[str, ...]]) -> StoredChunk:
    """The chunk of the same resource that holds most of the query: many of its terms, each often enough."""
    document = store.document(stored.resource.rid)
    if document is None or len(document.chunks) < 2:
        return stored
    term_of = {form: term for term, members in forms.items() for form in members}
    best, best_score = stored, 0.0
    for chunk in document.chunks:
        text = document.text[chunk.start : chunk.end]
        counts: dict[str, int] = {}
        for word in terms(text):
            if word in term_of:
                counts[term_of[word]] = counts.get(term_of[word], 0) + 1
        score = sum(count / (count + _SATURATION) for count in counts.values())
        if score > best_score:
            best, best_score = StoredChunk(chunk, document.resource, text), score
    return best
