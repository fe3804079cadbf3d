"""Novelty: evidence that stands in boilerplate counts less, and so does a passage that says next to nothing.

Boilerplate is a block of a passage that looks like it, and whose longest line stands in several passages in sight.
Words of it that were asked for count half: a licence head is seldom what somebody wants.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from math import fsum, inf, log2
from typing import NamedTuple

from findling.domain.budgets import current_budget
from findling.domain.ports import KeywordLeg
from findling.domain.queries import Filters, Phrase
from findling.domain.results import Step
from findling.domain.values import counted
from findling.pipelines.answer.rankings import Ranked, StepContext
from findling.text.analysis.analysis import matching_spans, terms
from findling.text.query.leaves import CODE_LANGUAGES

_SHARE = 0.5
"""Worth of words in boilerplate."""

_EMPTY = 0.7
"""Factor of a passage that says nothing but its headings, or the same again and again. A passage that is nothing but
the title may be the whole resource: to lower those, too, costs cacm .010 NDCG@10."""

_BRIEF = 200
"""Characters of a passage that may say nothing but its headings."""

_LOW, _FEW = 2.0, 24
"""Bits a word below which a text says the same again and again; fewer words than so many cannot."""

_SHORT = 30
"""Characters of a line in a list of links."""

_OFTEN, _QUOTED = 4, 2
"""Passages that the longest line of a block must stand in; of a quotation the original is enough."""

_MOST_BLOCKS = 4
"""Blocks of a passage that are looked for elsewhere: each takes 0.2 ms."""

_LEAST_WORDS, _MOST_WORDS = 4, 12
"""Words of a line that are looked for: shorter ones stand everywhere, longer ones cost more and tell no more."""

_MARKS = re.compile(r"^[\s>|#*/;%!.\"'-]+")
_QUOTE = re.compile(r"^\s*(?:>(?!>>)\s?|[A-Z]{1,3}>)")
_ASKS = re.compile(r"licen[cs]|copyright|warrant|\b(?:mit|gpl|apache|bsd|author|signature|footer|header|quot|disclaim)")


class _Block(NamedTuple):
    """A stretch of a passage without an empty line."""

    start: int
    end: int
    text: str


def hold_back(
    ranking: list[Ranked], context: StepContext, suspects: Container[int], cues: Sequence[str]
) -> list[Ranked]:
    """The ranking with suspects lowered as far as their evidence is boilerplate; `cues` are words that it has."""
    legs = context.legs
    if legs is None or _ASKS.search(context.question.text.lower()):
        return ranking
    forms = {*(context.asked.forms if context.asked else ()), *context.question.asked}
    moved = []
    for entry in ranking:
        is_suspect = entry.stored.chunk.cid in suspects
        is_looked_at = is_suspect and not current_budget().is_over("what stands everywhere was not held back")
        if is_looked_at and (step := _step(entry, legs.keyword, forms, cues)) is not None:
            entry = entry.moved(entry.score * step.factor, step)
        moved.append(entry)
    moved.sort(key=lambda entry: -entry.score)
    _, is_cut = context.top(moved)
    context.is_settled &= not is_cut
    return moved


def _step(entry: Ranked, keyword: KeywordLeg, forms: set[str], cues: Sequence[str]) -> Step | None:
    """The reason to lower a candidate, and by how much."""
    chunk, resource, text = entry.stored
    if not _is_telling(text, chunk.heading):
        return Step(name="novelty", factor=_EMPTY, reason="it says nothing but its headings")
    if (entropy := _entropy(text)) < _LOW:
        return Step(name="novelty", factor=_EMPTY, reason=f"it says the same again: {entropy:.1f} bits a word")
    likely = [block for block in _blocks(text) if _is_likely(block.text, cues, resource.lang)][:_MOST_BLOCKS]
    places = [start for start, _, _ in matching_spans(text, forms)] if likely else []
    # Those that hold asked words first: to look for a line elsewhere takes 0.2 ms, and mostly none of them does.
    telling = [block for block in likely if not places or any(block.start <= place < block.end for place in places)]
    if not any(_times(block, keyword) for block in telling):
        return None
    common = [(block, count) for block in likely if (count := _times(block, keyword))]
    share = _share(text, places, [block for block, _ in common])
    if share <= 0:
        return None
    most = max(count for _, count in common)
    why = f"{share:.0%} of its evidence stands in lines that {counted(most, 'passage')} have"
    return Step(name="novelty", factor=1 - (1 - _SHARE) * share, reason=why)


def _is_likely(block: str, cues: Sequence[str], lang: str) -> bool:
    """Whether a block looks like boilerplate: by its words, as a quotation, or as a list of short lines."""
    if _is_quoted(block) or any(map(block.lower().__contains__, cues)):
        return True
    return len(block) < _SHORT * block.count("\n") and lang not in CODE_LANGUAGES and not re.search("[={]", block)


def _entropy(text: str) -> float:
    """Bits that a word of a text tells, infinite for enough; that of a text of 50 different words is 5.6."""
    counts = Counter(terms(text))
    total = sum(counts.values())
    # Few bits a word need a word that comes often: one of four for two bits.
    if total < _FEW or max(counts.values()) * 2**_LOW <= total:
        return inf
    return fsum(count / total * log2(total / count) for count in counts.values())


def _is_telling(text: str, headings: Sequence[str]) -> bool:
    """Whether a passage has a word that its headings lack; one without headings is what it is."""
    if len(text) > _BRIEF or not headings:
        return True
    said = set(terms(" ".join(headings)))
    return any(term not in said for term in terms(text))


def _blocks(text: str) -> Iterator[_Block]:
    for found in re.finditer(r"(?:^[^\n]*\w[^\n]*(?:\n|\Z))+", text, re.MULTILINE):
        yield _Block(found.start(), found.end(), found.group())


def _is_quoted(block: str) -> bool:
    lines = block.splitlines() if ">" in block else []
    return 2 * sum(_QUOTE.match(line) is not None for line in lines) > len(lines)


def _times(block: _Block, keyword: KeywordLeg) -> int:
    """The number of passages in sight with the longest line of a block, or with its short lines, if they are many."""
    lines = [_MARKS.sub("", line) for line in block.text.splitlines()]
    words = max(lines, key=len).split()
    words = (words if len(words) >= _LEAST_WORDS else " ".join(lines).split())[:_MOST_WORDS]
    if len(words) < _LEAST_WORDS:
        return 0
    wanted = " ".join(words)
    # Once an answer: it may be ranked several times, and one head stands in many passages.
    count = current_budget().once(
        ("novelty", wanted), lambda: keyword.search(Phrase(wanted, "body"), Filters(), 0).total
    )
    return count if count >= (_QUOTED if _is_quoted(block.text) else _OFTEN) else 0


def _share(text: str, places: Sequence[int], common: Sequence[_Block]) -> float:
    """The share of the asked words of a passage that stands in some blocks; of its text where it has no such word."""
    if not places:
        return sum(block.end - block.start for block in common) / max(len(text), 1)
    return sum(any(block.start <= place < block.end for block in common) for place in places) / len(places)
