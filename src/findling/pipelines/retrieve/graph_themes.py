"""Themes around a question: groups of passages that name the same things, each with its names and a summary.

They are made for each question, of what its caller sees: there is nothing to build, to keep up or to leak.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.ranking.graph_walk import Subgraph, Walked, communities
from findling.text.mining.chunk_names import chunk_names

if TYPE_CHECKING:
    from findling.domain.ports import ReadStore

_LEAST = 2
"""Passages of a theme."""

_TOLD, _NAMES, _READ = 3, 3, 5
"""Themes that an answer describes, names of each, and passages that are read for them."""

_SUMMARY = 240
"""Characters of a summary."""

_MARKS = "#*|>- "
"""Marks of headings, lists and tables in front of a sentence."""

_ENDS = ".!?。！？"
_SENTENCE = re.compile(r"[^\s.!?。！？](?:[^.!?。！？\n]|(?<=\b[^\W\d_])\.|\.(?=\w)){15,400}[.!?。！？]?")
"""A sentence; a point behind a single letter, or before one, is no end: `Washington, D.C.`, `1.5`."""


class GraphTheme(NamedTuple):
    """Passages of one theme, best first, and the share of the walk that reached them."""

    places: Sequence[int]
    share: float


def themes_of(graph: Subgraph, walked: Walked, order: Sequence[int]) -> list[GraphTheme]:
    """The themes of passages that stand in an order, those that a walk has reached most first."""
    labels, _ = communities(graph)
    groups: dict[int, list[int]] = {}
    for place in order:
        if labels[place] >= 0:
            groups.setdefault(int(labels[place]), []).append(place)
    whole = float(walked.passages.sum()) or 1.0
    shares = {label: float(walked.passages[places].sum()) / whole for label, places in groups.items()}
    ranked = sorted(groups, key=lambda label: (-round(shares[label], 9), label))
    return [GraphTheme(groups[label], shares[label]) for label in ranked if len(groups[label]) >= _LEAST]


def by_turns(*orders: Sequence[int]) -> list[int]:
    """Several orders as one: the first of each, then the second of each, and so on, nothing twice."""
    turns = chain.from_iterable(zip_longest(*orders))
    return list(dict.fromkeys(place for place in turns if place is not None))


def describe_themes(store: ReadStore, themes: Sequence[GraphTheme], cids: Sequence[int]) -> list[dict[str, Any]]:
    """The best themes in words, all of them from passages that the caller sees; `cids` are those of all places."""
    return [_described(store, theme, cids) for theme in themes[:_TOLD]]


def _described(store: ReadStore, theme: GraphTheme, cids: Sequence[int]) -> dict[str, Any]:
    wanted = [cids[place] for place in theme.places[:_READ]]
    stored = store.chunks(wanted)
    passages = [stored[cid] for cid in wanted if cid in stored]
    named, labels = Counter[str](), dict[str, str]()
    for one in passages:
        for mention in chunk_names(one.resource, one.chunk.heading, one.text):
            named[mention.key] += 1
            labels.setdefault(mention.key, mention.label)
    # Equal counts stand in the order in which they were first seen, the most telling name of the best passage first.
    names = [labels[key] for key, _ in named.most_common(_NAMES)]
    return {
        "names": names,
        "passages": len(theme.places),
        "share": round(theme.share, 3),
        "summary": summary_of([one.text for one in passages], names),
    }


def summary_of(texts: Iterable[str], names: Sequence[str]) -> str:
    """The sentence of texts that has most of these names; of equal ones one with an end, and the first."""
    sentences = [sentence for text in texts for sentence in _sentences(text)]
    best = max(sentences, key=lambda one: (sum(name in one for name in names), one[-1] in _ENDS), default="")
    return best if len(best) <= _SUMMARY else f"{best[:_SUMMARY].rstrip()}…"


def _sentences(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(match[0].split()).lstrip(_MARKS)
        if sentence:
            yield sentence
