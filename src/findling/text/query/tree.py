"""Questions about the tree of a query: what it says, what it asks for, what of it is about resources alone."""

from __future__ import annotations

import re
from dataclasses import replace

from findling.domain.queries import (
    CONDITIONS,
    GROUPS,
    LEAVES,
    All,
    Any,
    Field,
    Fuzzy,
    Near,
    Node,
    Not,
    Pattern,
    Phrase,
    Prefix,
    Range,
    Same,
    Term,
    Word,
    with_leaves,
)
from findling.text.analysis.analysis import phrase_terms, prefix_terms, row_terms, terms, word_terms
from findling.text.analysis.stemming import empty_words
from findling.text.query.leaves import CODE_LANGUAGES, SINGLE_VALUED
from findling.text.query.lexer import MOST_CHARACTERS, MOST_LEAVES, QUOTES, field_prefix, quoted, spelled


def simplified(node: Node, notes: list[str], *, is_negated: bool = False, is_plain: bool = True) -> Node:
    """The simplest tree with the same meaning; what was taken to mean something else than it says is noted.

    Where `is_plain`, words that say nothing are left out; AND asks for each of its words.
    """
    if isinstance(node, Not):
        inner = simplified(node.node, notes, is_negated=True, is_plain=is_plain)
        if not isinstance(inner, Not):
            return Not(inner)
        return simplified(inner.node, notes, is_negated=is_negated, is_plain=is_plain)
    if not isinstance(node, GROUPS):
        return node
    kind = type(node)
    parts: list[Node] = []
    for part in node.nodes:
        plain = part if isinstance(part, Term) else simplified(part, notes, is_negated=is_negated, is_plain=is_plain)
        parts.extend(plain.nodes if isinstance(plain, GROUPS) and type(plain) is kind else (plain,))
    if kind is All and any(isinstance(part, CONDITIONS) for part in parts):
        parts = _merged(parts, notes)
    parts = _once(parts, repeats=kind is All and not is_negated)
    if kind is All and not is_negated and is_plain:
        parts = _without_empty_words(parts)
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def negation(node: Node) -> Node:
    """Negation of a tree; of a negation, the tree it negates."""
    return node.node if isinstance(node, Not) else Not(node)


def limited_to(node: Node, fields: tuple[str, ...]) -> Node:
    """The tree with every word that is asked for, and has no field of its own, looked for in these fields only."""
    if isinstance(node, GROUPS):
        return type(node)(tuple(limited_to(part, fields) for part in node.nodes))
    if not isinstance(node, (Term, Phrase, Prefix, Fuzzy)) or node.field:
        return node
    leaves = tuple(replace(node, field=field) for field in fields)
    return leaves[0] if len(leaves) == 1 else Same(leaves)


def spoken(node: Node, language: str) -> Node:
    """The tree with its words in a language; the tree itself where that is empty."""
    if not language:
        return node
    return with_leaves(node, lambda leaf: replace(leaf, language=language) if isinstance(leaf, (Word, Term)) else leaf)


def size(node: Node) -> tuple[int, int]:
    """Number of leaves of a tree, and its depth."""
    if isinstance(node, Not):
        return size(node.node)
    if not isinstance(node, GROUPS):
        return 1, 0
    sizes = [(1, 0) if isinstance(part, Term) else size(part) for part in node.nodes]
    return sum(leaves for leaves, _ in sizes), 1 + max((depth for _, depth in sizes), default=0)


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


def _without_empty_words(parts: list[Node]) -> list[Node]:
    """The parts without words that say nothing, unless there is nothing else."""
    plain = [part for part in parts if isinstance(part, Term) and not part.field]
    said = {
        id(part) for part, is_empty in zip(plain, empty_words([part.text for part in plain]), strict=True) if is_empty
    }
    telling = [part for part in parts if id(part) not in said]
    return telling if any(map(_says_something, telling)) else parts


def _says_something(node: Node) -> bool:
    """Whether a node has words, which conditions and exclusions have not."""
    if isinstance(node, GROUPS):
        return any(map(_says_something, node.nodes))
    return isinstance(node, (Term, Phrase, Prefix, Fuzzy, Near, Pattern))


def canonical(node: Node) -> str:
    """The tree written out unambiguously: what an answer echoes as `understood_as`.

    As an expression (`intent`), `parse` reads it back as the same tree, within the limits of the language.
    """
    patterns = patterns_of(node)
    if any(pattern.is_case_sensitive for pattern in patterns):
        return f"{_written(node)} case:yes"
    return f"{_written(node)} case:no" if not all(pattern.is_regex for pattern in patterns) else _written(node)


def patterns_of(node: Node, *, excluded: bool = True) -> tuple[Pattern, ...]:
    """The patterns in a tree, each once, with those that are excluded or without."""
    if isinstance(node, GROUPS):
        return tuple(dict.fromkeys([found for part in node.nodes for found in patterns_of(part, excluded=excluded)]))
    if isinstance(node, Not):
        return patterns_of(node.node) if excluded else ()
    return (node,) if isinstance(node, Pattern) else ()


def _written(node: Node) -> str:
    if isinstance(node, Pattern):
        return f"/{node.text}/" if node.is_regex else quoted(node.text)
    if isinstance(node, LEAVES):
        return _leaf(node)
    if isinstance(node, Field):
        if (node.name, node.values) == ("lang", CODE_LANGUAGES):
            return "is:code"
        return f"{node.name}:{','.join(map(_value, node.values))}"
    if isinstance(node, Range):
        from findling.text.query.dates import moment

        sides = (("after", node.after), ("before", node.before))
        return " AND ".join(f"{name}:{moment(at)}" for name, at in sides if at is not None)
    if isinstance(node, Not):
        return f"-{_inner(node.node)}"
    if isinstance(node, All):
        return _all(node)
    return (" OR " if isinstance(node, Any) else " | ").join(map(_inner, node.nodes)) or "()"


def positive_terms(node: Node) -> list[str]:
    """The terms that a hit may contain because of the query, in order, each once; `pre*` and `fuzzy~` as such."""
    if isinstance(node, GROUPS):
        return list(dict.fromkeys([term for part in node.nodes for term in _leaf_terms(part)]))
    return list(dict.fromkeys(_leaf_terms(node)))


def _leaf_terms(node: Node) -> list[str]:
    if isinstance(node, Word):
        return word_terms(node.text)
    if isinstance(node, Phrase):
        return phrase_terms(node.text)
    if isinstance(node, Term):
        return row_terms(node.text)
    if isinstance(node, GROUPS):
        return positive_terms(node)
    if isinstance(node, Prefix):
        words = prefix_terms(node.text)
        return [*words[:-1], f"{words[-1]}*"] if words else []
    if isinstance(node, Fuzzy):
        return [f"{word}~" for word in prefix_terms(node.text)[:1]]
    return [*row_terms(node.first), *row_terms(node.second)] if isinstance(node, Near) else []


def typed_terms(node: Node) -> list[str]:
    """The same without what was added to what was typed: of several ways to say something the first one."""
    if isinstance(node, Same):
        return typed_terms(node.nodes[0]) if node.nodes else []
    if isinstance(node, (Any, All)):
        return list(dict.fromkeys(term for part in node.nodes for term in typed_terms(part)))
    return positive_terms(node)


def positive_texts(node: Node) -> list[str]:
    """The words and phrases that are asked for, as they were typed, without what a glossary adds."""
    if isinstance(node, (Word, Term, Phrase, Prefix, Fuzzy)):
        return [node.text]
    if isinstance(node, Near):
        return [node.first, node.second]
    if isinstance(node, (Not, Field, Range, Pattern)):
        return []
    nodes = node.nodes[:1] if isinstance(node, Same) and node.group else node.nodes
    return [text for part in nodes for text in positive_texts(part)]


def asks_for_text(node: Node) -> bool:
    """Whether there is a word to find, and so something to rank by."""
    if isinstance(node, (Not, Field, Range)):
        return False
    return any(map(asks_for_text, node.nodes)) if isinstance(node, GROUPS) else True


def identifier_parts(node: Node) -> dict[str, set[str]]:
    """The identifiers that are asked for, with their parts (`tapir3`: `tapir`, `3`) but for those asked for alone."""
    forms = [(word, terms(word)) for text in positive_texts(node) for word in _RAW_WORD.findall(text)]
    alone = {form[0] for _, form in forms if len(form) == 1}
    return {form[0]: set(form[1:]) - alone for word, form in forms if len(form) > 1 and form[0] == word.lower()}


def split_where(node: Node) -> tuple[Node, Node | None]:
    """Split a tree into its demands on the text and the conditions on resources that hold for all of it."""
    parts = node.nodes if isinstance(node, All) else (node,)
    where = [part for part in parts if _is_about_resources(part)]
    if not where:
        return node, None
    rest = tuple(part for part in parts if not _is_about_resources(part))
    return rest[0] if len(rest) == 1 else All(rest), where[0] if len(where) == 1 else All(tuple(where))


_MISLEADING = frozenset(f"{QUOTES}(),|{{\\")
_RAW_WORD = re.compile(r"[^\W_]+")


def _is_about_resources(node: Node) -> bool:
    if isinstance(node, CONDITIONS):
        return not isinstance(node, Field) or node.name != "cid"
    if isinstance(node, Not):
        return _is_about_resources(node.node)
    return isinstance(node, GROUPS) and bool(node.nodes) and all(map(_is_about_resources, node.nodes))


def _all(node: All) -> str:
    text = " AND ".join(_written(part) if isinstance(part, Range) else _inner(part) for part in node.nodes)
    if len(text) <= MOST_CHARACTERS and len(node.nodes) <= MOST_LEAVES:
        return text
    is_pasted = all(isinstance(part, Term) and not part.field for part in node.nodes)
    return " ".join(map(_written, node.nodes)) if is_pasted else text


def _leaf(node: Word | Term | Phrase | Prefix | Fuzzy | Near) -> str:
    if isinstance(node, Near):
        return f"{spelled(node.first)} NEAR/{node.distance} {spelled(node.second)}"
    if isinstance(node, Word):
        return spelled(node.text)
    if isinstance(node, Term):
        return spelled(node.text, node.field)
    if isinstance(node, Fuzzy):
        return f"{spelled(node.text, node.field)}~{node.distance}"
    if isinstance(node, Phrase):
        return field_prefix(node.field) + quoted(node.text)
    bare = spelled(node.text)
    is_bare = bare == node.text and " " not in bare and "," not in bare
    return f"{field_prefix(node.field)}{bare if is_bare else quoted(node.text)}*"


def _inner(node: Node) -> str:
    """A node inside another one, in parentheses where it has parts of its own."""
    is_two_sided = isinstance(node, Range) and None not in (node.after, node.before)
    has_parts = is_two_sided or isinstance(node, Near) or (isinstance(node, GROUPS) and bool(node.nodes))
    return f"({_written(node)})" if has_parts else _written(node)


def _value(value: str) -> str:
    is_bare = _MISLEADING.isdisjoint(value) and len(value.split()) == 1
    return value if is_bare else quoted(value)
