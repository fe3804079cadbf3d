"""One scale, 0 to 1, for how well a hit is supported by words and meaning, and the checks of all scores.

Half of the weight of a question's words counts 0.5, and so does a cosine seven deviations above unrelated texts.
Python's standard library cannot answer 200 questions: one in twenty has a passage above 0.39 by words or 0.44 by
meaning; half of those it answers have 0.59 and 0.58 (bench/no_answer.py, instant vectors).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from math import log10, sqrt

LARGEST = 1e300
"""No score is larger than this, so that the distance between two scores is a number, too."""

_ROUNDING = 1e-3
"""Cosines of vectors that are kept in 16 bits come to as much as 1.0003 (64 numbers; fewer make it worse)."""


def finite(value: float, name: str) -> float:
    """The value itself. Raises ValueError for NaN, infinity, and sizes that no score has."""
    # NaN fails every comparison, so this one test refuses all three.
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{name} is {value}, not a finite number")
    return value


def positive(value: float, name: str, *, or_zero: bool = False) -> float:
    """The value itself. Raises ValueError unless it is finite and above zero, or zero where that is allowed."""
    if not 0 <= value <= LARGEST or (value == 0 and not or_zero):
        raise ValueError(f"{name} is {value}, not a positive number{' or 0' if or_zero else ''}")
    return value


def unit(value: float, name: str) -> float:
    """The value, with what rounding put outside 0 to 1 cut off. Raises ValueError when it is further outside."""
    if 0.0 <= value <= 1.0:
        return value
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise ValueError(f"{name} is {value}, not between 0 and 1")
    return min(max(value, 0.0), 1.0)


_FULL = 14.0
"""Deviations above the cosines of unrelated texts that are perfect evidence. A mean-free model (MiniLM: 0.84) seldom
reaches it. With 14, equal shares of questions without an answer reach a score by words and by meaning."""

FOREIGN = 5.0 / _FULL
"""Evidence from which a hit is found by its meaning alone. MiniLM: a cosine of 0.30. The nearest of thousands of
foreign passages reaches .22, in one of twenty cases .32; the nearest passage of a collection on the subject .53 to .70,
in one of twenty cases less than .38 to .58."""

ACROSS = 0.15
"""The same for a question in another language than English: its words are known less well, all cosines are smaller."""

_FLOOR = 0.05
"""Less is no evidence: 3 % of the weight of the question's words."""

_NEAR = 6.0 / _FULL
"""The same for a question of three words or more, of which more are asked of a collection on something else."""

_TOGETHER = {"refined": 0.55, "instant": 0.40}
"""Evidence of words and meaning together from which a passage is a hit. Questions of five development sets asked of the
sixth: 5 to 28 % have a hit with .55 (read), where nearly all had one; 0 to .6 % of the relevant passages among the best
ten are below, 9 % of second hops. Instant vectors were counted with .45: 10 to 40 %, and 0 to 3 % below; with that
anthropic-codebase lost .002 NDCG@10, with .40 nothing."""

_DECADE, _SMALL = 0.06, 100
"""Evidence that the best passage must have beyond that, for each tenfold of this number: the best of many is better by
chance. 12 collections of 232 to 11,000 passages, each asked 60 of its own questions and 66 of the others': with it
26 % of the others' have a hit instead of 43 (read: 9 instead of 21), and 2 of 720 own ones have none (read: 1)."""

_ENOUGH_WORDS = 0.38
"""Evidence of words that needs no other, whatever a model makes of them: a third of their weight, which one of
twenty of the questions above has. With .5 anthropic-codebase loses .008 NDCG@10 with instant vectors."""

_ALONE, _MOST_ALONE = 0.44, 0.22
"""Evidence that words alone need, times the root of their number: in a long question a few of them say less. The same
questions with .55 and .28: 22 to 43 % have a hit, 0 to 4 % of the relevant passages are below. Lowered to this after a
look at bench/no_answer.py, where four of 140 good questions had come back empty."""

_KNEE = 0.2
"""Share of the best hit's evidence below which a hit is a weaker match. NDCG@10 of hybrid search with instant vectors,
with the cut and without: anthropic-codebase .728 .728, hotpotqa-100 .808 .808 (.804 with 0.3), cacm .530 .532."""


def words_evidence(score: float, ceiling: float) -> float:
    """The evidence of a BM25 score, of the most that the query's words could contribute in the body.

    Half of it is 0.5. Words that no chunk contains count in the ceiling too, so that an answer which ignores half of
    the question scores low. A title or a path can lift the score above the ceiling: it approaches 1.
    """
    return score / (score + ceiling / 2) if score > 0 else 0.0


def meaning_evidence(cosine: float, usual: tuple[float, float], known: float = 1.0) -> float:
    """The evidence of a cosine, given mean and deviation of the cosines of unrelated texts.

    `known` is the share of the query that the model knows words for: unknown words are no evidence.
    """
    mean, deviation = usual
    evidence = known * (cosine - mean) / (deviation * _FULL) if deviation > 0 else 0.0
    return 0.0 if evidence < 0.0 else 1.0 if evidence > 1.0 else evidence


def cosine_of(evidence: float, usual: tuple[float, float], known: float = 1.0) -> float:
    """The cosine that is worth so much: the inverse of `meaning_evidence`; 2, out of reach, where none is."""
    mean, deviation = usual
    return min(mean + evidence * deviation * _FULL / known, 2.0) if known > 0 else 2.0


def least_evidence(best: float) -> float:
    """The evidence below which hits are weaker matches, where the best hit has `best`."""
    return max(_FLOOR, _KNEE * best)


def least_alone(asked: int) -> float:
    """The evidence that a hit by words alone must have, in a question of so many telling words."""
    return min(_ALONE / sqrt(asked), _MOST_ALONE) if asked > 2 else 0.0


def is_hit(words: float, support: float | None, speed: str, asked: int) -> bool:
    """Whether a passage answers, by the evidence of its words and the support of a model of one speed, if one judges.

    `asked` is the number of telling words of the question.
    """
    if words >= _ENOUGH_WORDS or asked < 2:
        return True
    if support is None:
        return words >= least_alone(asked)
    return words + support >= _TOGETHER[speed] or support >= (_NEAR if asked > 2 else FOREIGN)


def is_best(words: float, support: float, speed: str, asked: int, passages: int) -> bool:
    """Whether a passage would answer as the best of so many, one of which is near to anything."""
    more = _DECADE * max(log10(passages / _SMALL), 0.0)
    return words + support >= _TOGETHER[speed] + more or support >= (_NEAR if asked > 2 else FOREIGN) + more


_JUDGED_SHAPES = {"question", "sentence", "keywords"}
_JUDGE_WEIGHT = 0.4
"""Weight of a judge for prose. NDCG@10 in profile `deep` without one and with .2, .4, .6: SciFact .824 .827 .857 .823,
cranfield .405 .414 .421 .408, lihua-world .703 .715 .718 .722, anthropic-docs .800 .791 .817 .782, hotpotqa-100 .878
.884 .923 .928 (30 to 60 questions each, SciFact by instant vectors). Questions and statements want the same."""

_EARLY = 10
"""Places that seem to stand before the first one: 3 and 30 give the same within .008 at that weight."""

_FAR, _SURE = 0.0001, 0.4
"""A verdict below that of nearly all right answers, and evidence that needs no judge. bench/no_answer.py, notes and
documentation, instant: of 70 absent subjects 12 have hits, and 3 where the best verdict is above that. 2 of 140 good
questions fall below it; their file is not among the first six either."""


def judge_weight(shape: Collection[str]) -> float:
    """The weight of a judge against words and meaning, by the shapes of a question; 0 for names, code and patterns."""
    return _JUDGE_WEIGHT if _JUDGED_SHAPES.intersection(shape) else 0.0


def is_refuted(verdicts: Sequence[float], evidence: Sequence[float]) -> bool:
    """Whether a judge finds the best hits far off, and their words and meaning are no more than a hint."""
    return bool(verdicts) and max(verdicts) < _FAR and max(evidence) < _SURE


def judged_order(verdicts: Sequence[float], weight: float) -> list[int]:
    """The new order of hits, as their former places: by these and by the places that their verdicts give them.

    Places and not sizes: a judge is sure of most of what it reads, at .99 or at .01.
    """
    by_verdict = sorted(range(len(verdicts)), key=lambda place: (-verdicts[place], place))
    worth = {place: weight / (_EARLY + rank) for rank, place in enumerate(by_verdict, 1)}
    worth = {place: told + (1 - weight) / (_EARLY + place + 1) for place, told in worth.items()}
    return sorted(worth, key=lambda place: (-worth[place], place))


def least_words(evidence: float, ceiling: float) -> float:
    """The BM25 score that is worth so much: the inverse of `words_evidence`."""
    return ceiling / 2 * evidence / (1 - evidence) if evidence < 1 else float("inf")


def falling(evidence: Iterable[float]) -> Sequence[float]:
    """Scores of a ranking: the evidence of each hit, or of the weakest above it where that is less."""
    return list(accumulate(evidence, min))
