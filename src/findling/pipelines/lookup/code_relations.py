"""Relations between files of code by names: a file uses what another one defines, or defines what it uses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

from findling.domain.budgets import current_budget
from findling.domain.ports import KeywordLeg
from findling.domain.queries import Any, Field, Filters, Not, Word
from findling.domain.resources import Document, StoredChunk
from findling.domain.results import Evidence
from findling.pipelines.retrieve.legs import Retrievers, alone
from findling.text.chunking.bare_code import without_comments
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.defined_names import named_lines

NAMES = "names"

_NAME = re.compile(r"[^\W\d]\w{2,}")
_MOST_NAMES = 200
"""Names of a file that are looked for in each direction, the most telling first."""

_PLAIN = 0.3
"""The weight of the rarest plain word: `headers` is the name of many a variable, too."""

_MOST_CHUNKS = 200
"""Chunks that are looked at in each direction: 30 ms of CPU time."""

_HALF = 1.0
"""Names of this one file alone that are half of the best evidence."""

_LEAST = 0.1
"""Evidence below which names relate nothing: a plain word that three files use has 0.03."""

_SHOWN = 3


_Named = tuple[StoredChunk, set[str]]


class SharedNames(NamedTuple):
    """A resource that shares names with the asked one: the chunk that has most of them, and the evidence."""

    stored: StoredChunk
    evidence: Evidence


def related_by_names(legs: Retrievers, document: Document, text: str) -> dict[str, SharedNames]:
    """By id, the other resources that define what a text of a document uses, or use what it defines; best first."""
    lang, rid = document.resource.lang, document.resource.rid
    if lang not in CODE_LANGS:
        return {}
    defined = Counter(one.name for one in named_lines(text, lang))
    used = Counter(_NAME.findall(without_comments(text, lang)))
    own = {one.name for one in named_lines(document.text, lang)}
    filters = Filters(lang=tuple(sorted(CODE_LANGS)), where=Not(Field("rid", (rid,))))
    wanted = _telling(legs.keyword, used.keys() - own)
    given = _telling(legs.keyword, defined.keys() - _EVERYWHERE)
    ties = [
        *_ties(_defining(legs, wanted, filters), wanted, "uses {}, defined there"),
        *_ties(_using(legs, given, filters), given, "defines {}, used there"),
    ]
    return _joined(ties)


class _Tie(NamedTuple):
    """Names that relate a resource in one direction, with their weights, and the chunk that has most of them."""

    stored: StoredChunk
    weights: Mapping[str, float]
    said: str


def _telling(keyword: KeywordLeg, names: Iterable[str]) -> dict[str, float]:
    """The most telling names, each with its weight: a name with `_` or a capital has 1, a plain word by its rarity."""
    chosen = {name: 1.0 for name in names if not name.islower() or "_" in name}
    words = [name for name in names if name not in chosen]
    frequencies, size = keyword.frequencies(words), keyword.size()
    for word in words:
        if 0 < (count := frequencies.get(word, 0)) < size:
            chosen[word] = _PLAIN * log((1 + size) / count) / log(1 + size)
    return dict(sorted(chosen.items(), key=lambda one: (-one[1], one[0]))[:_MOST_NAMES])


def _defining(legs: Retrievers, names: Mapping[str, float], filters: Filters) -> Iterator[_Named]:
    if names:
        hits = legs.keyword.definers(names, Any(tuple(map(Word, names))), filters, _MOST_CHUNKS)
        for stored in _read(legs, [cid for cid, _ in hits]):
            yield stored, {line.name for line in named_lines(stored.text, stored.resource.lang)} & names.keys()


def _using(legs: Retrievers, names: Mapping[str, float], filters: Filters) -> Iterator[_Named]:
    if names:
        hits = legs.keyword.search(Any(tuple(map(Word, names))), filters, _MOST_CHUNKS).hits
        for stored in _read(legs, [cid for cid, _ in hits]):
            lang = stored.resource.lang
            words = set(_NAME.findall(without_comments(stored.text, lang)))
            yield stored, words & names.keys() - {line.name for line in named_lines(stored.text, lang)}


def _read(legs: Retrievers, cids: Sequence[int]) -> list[StoredChunk]:
    some = current_budget().take("read", len(cids), "names relate fewer files than there are")
    stored = legs.store.chunks(cids[:some])
    return [stored[cid] for cid in cids[:some] if cid in stored]


def _ties(found: Iterable[_Named], weight: Mapping[str, float], said: str) -> Iterator[_Tie]:
    """One for each resource. A name that many resources have tells little of each."""
    by_resource: dict[str, set[str]] = {}
    best: dict[str, tuple[int, StoredChunk]] = {}
    for stored, names in found:
        rid = stored.resource.rid
        if names:
            by_resource.setdefault(rid, set()).update(names)
            best[rid] = max(best.get(rid, (0, stored)), (len(names), stored), key=lambda one: one[0])
    having = Counter(name for names in by_resource.values() for name in names)
    for rid, own in by_resource.items():
        # In order, as a set has another one in every process, and a sum of them another last digit.
        yield _Tie(best[rid][1], {name: weight[name] / having[name] for name in sorted(own)}, said)


def _joined(ties: Iterable[_Tie]) -> dict[str, SharedNames]:
    by_resource: dict[str, list[_Tie]] = {}
    for tie in ties:
        by_resource.setdefault(tie.stored.resource.rid, []).append(tie)
    sums = {rid: sum(sum(tie.weights.values()) for tie in own) for rid, own in by_resource.items()}
    found: dict[str, SharedNames] = {}
    for rank, rid in enumerate(sorted(sums, key=lambda rid: (-sums[rid], rid)), start=1):
        own = by_resource[rid]
        count = len({name for tie in own for name in tie.weights})
        worth = sums[rid] / (sums[rid] + _HALF)
        if worth < _LEAST:
            break
        why = "; ".join(tie.said.format(_listed(tie.weights)) for tie in own)
        found[rid] = SharedNames(own[0].stored, alone(Evidence(NAMES, count, worth, worth, why, "names"), rank))
    return found


def _listed(weights: Mapping[str, float]) -> str:
    names = sorted(weights, key=lambda name: (-weights[name], name))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


_EVERYWHERE = frozenset({"__all__", "__init__", "main"})
