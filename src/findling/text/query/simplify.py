"""A query tree in its simplest form: nothing nested in its own kind, no stop words beside words.

Nothing stands in it twice but words that were said twice, since those count so often.
"""

from __future__ import annotations

from collections.abc import Iterable

from findling.domain.queries import (
    CONDITIONS,
    GROUPS,
    All,
    Field,
    Fuzzy,
    Near,
    Node,
    Not,
    Phrase,
    Prefix,
    Range,
    Same,
    Term,
)
from findling.text.analysis.analysis import STOP_WORDS, row_terms
from findling.text.query.fields import CODE_LANGUAGES, SINGLE_VALUED

__all__ = ["limited_to", "negation", "simplified", "size"]


def simplified(node: Node, notes: list[str], *, is_negated: bool = False) -> Node:
    """The simplest tree with the same meaning; what was taken to mean something else than it says is noted."""
    if isinstance(node, Not):
        inner = simplified(node.node, notes, is_negated=True)
        return simplified(inner.node, notes, is_negated=is_negated) if isinstance(inner, Not) else Not(inner)
    if not isinstance(node, GROUPS):
        return node
    kind = type(node)
    parts: list[Node] = []
    for part in node.nodes:
        plain = part if isinstance(part, Term) else simplified(part, notes, is_negated=is_negated)
        parts.extend(plain.nodes if isinstance(plain, GROUPS) and type(plain) is kind else (plain,))
    if kind is All and any(isinstance(part, CONDITIONS) for part in parts):
        parts = _merged(parts, notes)
    parts = _once(parts, repeats=kind is All and not is_negated)
    if kind is All and not is_negated:
        parts = _without_stop_words(parts)
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def negation(node: Node) -> Node:
    """What must not match; of a negation, what it negates."""
    return node.node if isinstance(node, Not) else Not(node)


def limited_to(node: Node, fields: tuple[str, ...]) -> Node:
    """The tree with every word that is asked for, and has no field of its own, looked for in these fields only."""
    if isinstance(node, GROUPS):
        return type(node)(tuple(limited_to(part, fields) for part in node.nodes))
    if not isinstance(node, (Term, Phrase, Prefix, Fuzzy)) or node.field:
        return node
    leaves = tuple(_in_field(node, field) for field in fields)
    return leaves[0] if len(leaves) == 1 else Same(leaves)


def size(node: Node) -> tuple[int, int]:
    """How many leaves a tree has, and how deep it is nested."""
    if isinstance(node, Not):
        return size(node.node)
    if not isinstance(node, GROUPS):
        return 1, 0
    sizes = [(1, 0) if isinstance(part, Term) else size(part) for part in node.nodes]
    return sum(leaves for leaves, _ in sizes), 1 + max((depth for _, depth in sizes), default=0)


def _in_field(node: Term | Phrase | Prefix | Fuzzy, field: str) -> Node:
    return Fuzzy(node.text, node.distance, field) if isinstance(node, Fuzzy) else type(node)(node.text, field)


def _merged(parts: list[Node], notes: list[str]) -> list[Node]:
    """The parts with one `Range` for all of them, and one `Field` for what a resource can have only one value of."""
    merged: dict[object, Node] = {}
    for place, part in enumerate(parts):
        key: object = place
        if isinstance(part, Range):
            key = Range
        elif isinstance(part, Field) and part.name in SINGLE_VALUED and part.values != CODE_LANGUAGES:
            key = part.name
        known = merged.get(key)
        if isinstance(known, Range) and isinstance(part, Range):
            merged[key] = _overlap(known, part)
        elif isinstance(known, Field) and isinstance(part, Field) and known != part:
            notes.append(f"a resource has only one {part.name}:, so any of its values will do")
            merged[key] = Field(part.name, tuple(dict.fromkeys(known.values + part.values)))
        else:
            merged[key] = part
    return list(merged.values())


def _overlap(one: Range, other: Range) -> Range:
    afters = [after for after in (one.after, other.after) if after is not None]
    befores = [before for before in (one.before, other.before) if before is not None]
    return Range(max(afters, default=None), min(befores, default=None))


def _once(parts: list[Node], *, repeats: bool) -> list[Node]:
    """The parts, each once; with `repeats` plain words as often as they were said."""
    seen: set[Node] = set()
    kept: list[Node] = []
    for part in parts:
        if part not in seen or (repeats and isinstance(part, Term) and not part.field):
            kept.append(part)
        seen.add(part)
    return kept


def _without_stop_words(parts: list[Node]) -> list[Node]:
    telling = [part for part in parts if not _is_stop_word(part)]
    return telling if len(telling) < len(parts) and _says_something(telling) else parts


def _says_something(nodes: Iterable[Node]) -> bool:
    return any(
        isinstance(node, (Phrase, Prefix, Fuzzy, Near))
        or (isinstance(node, Term) and not _is_stop_word(node))
        or (isinstance(node, GROUPS) and _says_something(node.nodes))
        for node in nodes
    )


def _is_stop_word(node: Node) -> bool:
    if not isinstance(node, Term) or node.field:
        return False
    text = node.text
    return text.lower() in STOP_WORDS if text.isalnum() else STOP_WORDS.issuperset(row_terms(text))
