"""Evidence about resources: what their names, their other passages, their definitions and their paths say of a hit.

A leg judges passages one by one. The file that a question is about often has its words in its name, defines the name
that was asked for, and has several good passages. Each part adds to the strength of a passage, which is 1 for the best
one; its path and passages of the same resource above it take a share away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log
from operator import itemgetter
from typing import NamedTuple

from findling.domain.values import counted, loose_name
from findling.ranking.path_roles import ROLES

_NAMED, _FEW = 1.0, 0.75
"""Gain of a passage whose file name is the question: as much as the best words and meaning are worth; and the power of
the share of the question's words that a name has. NDCG@10 of words and of instant vectors with the powers 0.5, 0.75, 1:

- nine development repositories: .886 .887, .882 .882, .877 .871;
- 100 questions about Python's standard library that avoid the names of its files: .742 .794, .755 .809, .763 .811, and
  .752 .805 without any evidence about resources."""

_IN_FOLDER = 0.2
_POOLED, _POOL = 0.3, 8
"""Gain of the resource whose best passages are strongest together, and how many of them count."""

_DEFINED, _MENTIONED = 1.0, 0.3
"""Gain of a definition of what was asked for: of a question that is a name, and of one that has other words as well."""

_REPEATED = 0.3
"""Factor of a passage for each one of its resource above it: the tenth passage of a file hides nine other files."""

_LEAST = 0.01
"""Strength of a passage at least, so that every gain is a factor."""


class ResourceQuestion(NamedTuple):
    """The telling words of a question in lower case, the names in it, and the roles of files that it asks for.

    `is_name` says that it is nothing but a name.
    """

    words: Sequence[str]
    names: Sequence[str] = ()
    is_name: bool = False
    roles: frozenset[str] = frozenset()


class Clue(NamedTuple):
    """One passage: its strength, the words of its file name and folders, its role, and the asked names it defines."""

    id: int
    strength: float
    resource: str
    name: Sequence[str] = ()
    folders: Sequence[str] = ()
    role: str = ""
    defines: Sequence[str] = ()


class ResourcePart(NamedTuple):
    """One part of the evidence about a resource: its factor and the reason."""

    name: str
    factor: float
    reason: str


class _Gain(NamedTuple):
    """The gain of a resource by one part, with the words that earned it."""

    name: str
    value: float
    words: Sequence[str]


_FIRST, _SECOND = itemgetter(0), itemgetter(1)


class ResourceRanking:
    """Passages with their strengths after all parts, best first, equals as they were; and the parts of each.

    `ranking` has ids with strengths. `start` is the strength of a passage before all parts.
    """

    def __init__(self, clues: Sequence[Clue], question: ResourceQuestion) -> None:
        self._question, self._clues = question, {clue.id: clue for clue in clues}
        self._held = {name: role.factor for name, role in ROLES.items() if name not in question.roles}
        best = max([clue.strength for clue in clues], default=0.0) or 1.0
        self.start = start = {clue.id: max(clue.strength / best, _LEAST) for clue in clues}
        resources: dict[str, Clue] = {}
        self._pools = pools = dict[str, list[float]]()
        for clue in clues:
            pools.setdefault(clue.resource, []).append(start[clue.id])
            resources[clue.resource] = clue
        self._gains = _resource_gains(resources, pools, question)
        shared = {
            resource: gains[0].value if len(gains) == 1 else sum([gain.value for gain in gains])
            for resource, gains in self._gains.items()
        }
        alone = []
        for clue in clues:
            item, _, resource, _, _, role, defined = clue
            strength = start[item] + shared[resource]
            if role:
                strength *= self._held.get(role, 1.0)
            alone.append((strength + self._defined(clue) if defined else strength, item, resource))
        alone.sort(key=_FIRST, reverse=True)
        self._above: dict[int, int] = {}
        seen: dict[str, int] = {}
        together = []
        for strength, item, resource in alone:
            self._above[item] = above = seen.get(resource, 0)
            seen[resource] = above + 1
            together.append((item, strength * _REPEATED**above if above else strength))
        together.sort(key=_SECOND, reverse=True)
        self.ranking = together

    def parts(self, item: int) -> tuple[ResourcePart, ...]:
        """The factors that lead from the strength of a passage before all parts to that in the ranking."""
        clue, strength = self._clues[item], self.start[item]
        parts = []
        for gain in self._gains[clue.resource]:
            parts.append(ResourcePart(gain.name, 1 + gain.value / strength, self._reason(gain, clue)))
            strength += gain.value
        if (held := self._held.get(clue.role, 1.0)) < 1:
            parts.append(ResourcePart("path", held, f"{clue.role}, which was not asked for"))
            strength *= held
        # Last, since a definition of the very name is meant wherever it stands.
        if gained := self._defined(clue):
            parts.append(ResourcePart("definition", 1 + gained / strength, f"it defines {', '.join(clue.defines)}"))
        if above := self._above[item]:
            parts.append(ResourcePart("repeated", _REPEATED**above, f"{counted(above, 'passage')} of it above"))
        return tuple(parts)

    def _defined(self, clue: Clue) -> float:
        if not clue.defines:
            return 0.0
        return _DEFINED if self._question.is_name else _MENTIONED * len(clue.defines) / len(self._question.names)

    def _reason(self, gain: _Gain, clue: Clue) -> str:
        if gain.name == "passages":
            return f"{counted(len(self._pools[clue.resource]), 'passage')} of it among the best"
        return f"it has {', '.join(gain.words)}"


@lru_cache(maxsize=4096)
def are_alike(one: str, other: str) -> bool:
    """Whether two words in lower case are forms of one word: equal, begun by the other, or alike but for their ends."""
    one, other = sorted((_singular(one), _singular(other)), key=len)
    if other.startswith(one):
        return len(one) >= 3 or one == other
    shared = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    # connection and connector, serialize and serialization; route and routing
    if shared >= 5 and shared >= len(one) - 3 and shared >= len(other) - 5:
        return True
    return shared == 4 and one[shared:] in _ENDINGS and other[shared:] in _ENDINGS


_ENDINGS = frozenset({"", "e", "ed", "er", "ing", "ion", "or"})


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _resource_gains(
    resources: Mapping[str, Clue], pools: Mapping[str, Sequence[float]], question: ResourceQuestion
) -> dict[str, list[_Gain]]:
    """By resource, the gains of its name, its folders and its passages."""
    pooled = {
        resource: sum(sorted(own, reverse=True)[:_POOL]) if len(own) > 1 else own[0] for resource, own in pools.items()
    }
    most = max(pooled.values(), default=1.0)
    gains = {resource: [_Gain("passages", _POOLED * pooled[resource] / most, ())] for resource in resources}
    if question.is_name:
        wanted = {loose_name(name) for name in question.names}
        for resource, clue in resources.items():
            if "".join(clue.name) in wanted:
                gains[resource].insert(0, _Gain("file name", _NAMED, question.names))
    else:
        for resource, gain in _gains_of_words(resources, question):
            gains[resource].append(gain)
    return gains


def _gains_of_words(resources: Mapping[str, Clue], question: ResourceQuestion) -> Iterator[tuple[str, _Gain]]:
    """The gains of names, and then of folders, that have words of a question."""
    alike = _alike(
        question.words, [clue.name for clue in resources.values()], [one.folders for one in resources.values()]
    )
    met = frozenset().union(*alike.values())
    named = {
        resource: [word for word, known in alike.items() if not known.isdisjoint(clue.name)]
        for resource, clue in resources.items()
        if not met.isdisjoint(clue.name)
    }
    # A word that many names have tells files apart no better than a small word does.
    counts = dict.fromkeys(question.words, 1)
    for found in named.values():
        for word in found:
            counts[word] += 1
    rarity = {word: log(1 + len(resources) / count) for word, count in counts.items()}
    whole = sum(rarity.values()) or 1.0
    for resource, found in named.items():
        name = resources[resource].name
        share = sum([rarity[word] for word in found]) / whole
        asked = set().union(*[alike[word] for word in found])
        covered = len(asked.intersection(name)) / len(name)
        yield resource, _Gain("file name", _NAMED * share**_FEW * covered, found)
    for resource, clue in resources.items():
        if met.isdisjoint(clue.folders):
            continue
        found = named.get(resource, [])
        if around := [word for word in alike if word not in found and not alike[word].isdisjoint(clue.folders)]:
            share = sum([rarity[word] for word in around]) / whole
            yield resource, _Gain("folder", _IN_FOLDER * share, around)


def _alike(words: Iterable[str], *known: Iterable[Iterable[str]]) -> dict[str, set[str]]:
    """By word, the known words that are alike, of those with the same beginning; words without any are left out."""
    beginnings: dict[str, set[str]] = {word[:3]: set() for word in words}
    for names in known:
        for name in names:
            for one in name:
                if (begun := beginnings.get(one[:3])) is not None:
                    begun.add(one)
    found = {word: {one for one in beginnings[word[:3]] if are_alike(word, one)} for word in words}
    return {word: them for word, them in found.items() if them}
