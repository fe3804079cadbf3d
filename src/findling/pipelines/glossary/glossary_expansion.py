"""Query expansion by the glossary: words stand for their aliases too, protected words for themselves alone.

    auth rate limit → (auth | authentication | sign-in) AND ("rate limit" | throttle | quota)

Phrases, exclusions, prefixes, fields and the like stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from findling.domain.ports import ReadStore
from findling.domain.queries import All, Any, Node, Phrase, Same, Term, Word
from findling.domain.records import GlossaryTerm
from findling.text.analysis.analysis import STOP_WORDS, row_terms
from findling.text.mining.keys import LONGEST_TERM, glossary_key, has_hangul, lower_key

ACCEPTED = ("canonical", "alias")
"""The statuses of terms that are in a group."""


class Fired(NamedTuple):
    """A group of the glossary that a query used: the typed words, and their aliases."""

    group: str
    typed: str
    aliases: tuple[str, ...]


def expand(node: Node, lookup: Lookup) -> tuple[Node, tuple[Fired, ...]]:
    """The tree with the aliases of its words beside them, and the groups they come from."""
    if lookup.empty:
        return node, ()
    fired: list[Fired] = []
    return _expanded(node, lookup, fired), tuple(dict.fromkeys(fired))


def lookup_of(store: ReadStore) -> Lookup:
    """The terms of a store, read again only after its glossary was written."""
    version = store.glossary_version()
    if version == 0:
        return _NO_TERMS
    kept = _lookups.get(store)
    if kept is None or kept[0] != version:
        # The version was read first: terms written in between are read again the next time.
        kept = _lookups[store] = version, Lookup(store.glossary())
    return kept[1]


def members(terms: Iterable[GlossaryTerm]) -> dict[str, list[GlossaryTerm]]:
    """Group → its accepted terms, the canonical one first, the others in the order of the decisions."""
    found: dict[str, list[GlossaryTerm]] = {}
    for term in terms:
        if term.status in ACCEPTED:
            found.setdefault(term.group, []).append(term)
    for group in found.values():
        group.sort(key=lambda term: (term.status != "canonical", term.decided_at or 0.0))
    return found


class Lookup:
    """The terms of a glossary by the ways to type them; `empty` when none of them is decided."""

    def __init__(self, terms: Iterable[GlossaryTerm]) -> None:
        decided = [term for term in terms if term.status not in ("pending", "rejected")]
        self._members = {name: group for name, group in members(decided).items() if len(group) > 1}
        self._groups: dict[str, dict[str, None]] = {}
        self._protected: dict[str, list[list[str]]] = {}
        for term in decided:
            if term.status == "protected":
                self._protected.setdefault(term.key, []).append(row_terms(term.surface))
            elif term.group in self._members:
                for key in _ways_to_type(term.key, term.surface):
                    self._groups.setdefault(key, {})[term.group] = None
        keys = (*self._groups, *self._protected)
        self._openings = {key.partition(" ")[0].rstrip("+#") for key in keys if " " in key}
        self.empty = not keys
        self._has_hangul = any(map(has_hangul, keys))

    def may_open(self, word: str) -> bool:
        """Whether a term of several words can begin with this one; saves most lookups."""
        if not word.isascii() or _MIXED_CASE.search(word):
            return True
        row = row_terms(word)
        return bool(row) and row[0] in self._openings

    def protects(self, text: str) -> bool:
        """Whether a typed text is a protected term, to the letter."""
        forms = self._protected.get(self._key(text)) if self._protected else None
        return forms is not None and row_terms(text) in forms

    def groups(self, text: str) -> dict[str, list[GlossaryTerm]]:
        """Group → its terms, for every group that a typed text is in."""
        key = self._key(text)
        for way in _ways_to_type(key, text) if key else ():
            if groups := self._groups.get(way):
                return {group: self._members[group] for group in groups}
        return {}

    def _key(self, text: str) -> str:
        # The analyser of Korean takes seconds to load, and here it makes no difference.
        is_foreign = has_hangul(text) and not self._has_hangul and not _LATIN.search(text)
        return "" if is_foreign else glossary_key(text)


_NO_TERMS = Lookup(())

_lookups: WeakKeyDictionary[ReadStore, tuple[int, Lookup]] = WeakKeyDictionary()
"""Reading 7,000 terms takes 60 ms, asking for the version 10 µs."""

_Leaf = Word | Term

_MIXED_CASE = re.compile("[a-z][A-Z]|[A-Z][A-Z][a-z]")
_LATIN = re.compile("[A-Za-z]")


def _ways_to_type(key: str, surface: str) -> list[str]:
    """The keys of a term as it may be typed: without stop words inside, without capitals inside (GitHub)."""
    short = key
    if key.count(" ") > 1:
        first, *inner, last = key.split()
        short = " ".join([first, *(term for term in inner if term not in STOP_WORDS), last])
    is_mixed = not surface.islower() and _MIXED_CASE.search(surface)
    return [short, lower_key(surface)] if is_mixed else [short]


def _expanded(node: Node, lookup: Lookup, fired: list[Fired]) -> Node:
    if isinstance(node, Word) or (isinstance(node, Term) and not node.field):
        return _replaced((node,), lookup, fired) or node
    # Words in a row are one term where they were typed in a row: not on the two sides of an OR.
    if isinstance(node, (All, Any)):
        parts = _parts(node.nodes, Term if isinstance(node, All) else Word, lookup, fired)
        return parts[0] if len(parts) == 1 < len(node.nodes) else type(node)(parts)
    if isinstance(node, Same) and not node.group:
        return Same(tuple(_expanded(part, lookup, fired) for part in node.nodes))
    return node


def _parts(nodes: Sequence[Node], kind: type[_Leaf], lookup: Lookup, fired: list[Fired]) -> tuple[Node, ...]:
    """The nodes with every longest run of words that is a term of the glossary as one node."""
    parts: list[Node] = []
    at = 0
    while at < len(nodes):
        run = _run(nodes[at : at + LONGEST_TERM], kind)
        longest = len(run) if run and lookup.may_open(run[0].text) else 0
        for width in range(longest, 1, -1):
            found = _replaced(run[:width], lookup, fired)
            if found is not None:
                parts.append(found)
                at += width
                break
        else:
            parts.append(_expanded(nodes[at], lookup, fired))
            at += 1
    return tuple(parts)


def _run(nodes: Sequence[Node], kind: type[_Leaf]) -> list[_Leaf]:
    run: list[_Leaf] = []
    for node in nodes:
        if not isinstance(node, kind) or (isinstance(node, Term) and node.field):
            break
        run.append(node)
    return run


def _replaced(words: Sequence[_Leaf], lookup: Lookup, fired: list[Fired]) -> Node | None:
    """The node that replaces words that are a term of the glossary; `None` for other words."""
    typed = " ".join(word.text for word in words)
    if lookup.protects(typed):
        return Phrase(typed)
    groups = lookup.groups(typed)
    if not groups:
        return None
    original = _original(words, typed, groups)
    found = [
        Fired(group, typed, tuple(term.surface for term in terms if not _finds(original, typed, term)))
        for group, terms in groups.items()
    ]
    fired += found
    aliases = dict.fromkeys(alias for each in found for alias in each.aliases)
    nodes = (Phrase(alias) if " " in alias else Term(alias) for alias in aliases)
    return Same((original, *nodes), group=", ".join(groups))


def _original(words: Sequence[_Leaf], typed: str, groups: dict[str, list[GlossaryTerm]]) -> Node:
    if len(words) == 1:
        return words[0]
    if isinstance(words[0], Word):
        return Any(tuple(words))
    # `time to live` comes without its stop word, and would stand in no text.
    key = glossary_key(typed)
    meant = [term for terms in groups.values() for term in terms if key in _ways_to_type(term.key, term.surface)]
    return Phrase(typed if not meant or any(term.key == key for term in meant) else meant[0].surface)


def _finds(original: Node, typed: str, term: GlossaryTerm) -> bool:
    """Whether a typed text finds a term of its group as well: the same row, or another form of one word."""
    if isinstance(original, Phrase):
        typed = original.text
    row, other = row_terms(typed), row_terms(term.surface)
    if row == other or typed.lower() == term.surface.lower():
        return True
    return len(row) == len(other) == 1 and glossary_key(typed) == term.key
