"""Questions about the tree of a query: what it says, what it asks for, what of it is about resources alone."""

from __future__ import annotations

import re

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
    Phrase,
    Prefix,
    Range,
    Same,
    Term,
    Word,
)
from findling.text.analysis.analysis import phrase_terms, prefix_terms, row_terms, terms, word_terms
from findling.text.query.fields import CODE_LANGUAGES
from findling.text.query.lexer import MOST_CHARACTERS, MOST_LEAVES, field_prefix, quoted, spelled
from findling.text.query.symbols import QUOTES

__all__ = [
    "asks_for_text",
    "canonical",
    "identifier_parts",
    "positive_terms",
    "positive_texts",
    "split_where",
    "typed_terms",
]


def canonical(node: Node) -> str:
    """The tree written out unambiguously: what an answer echoes as `understood_as`.

    As an expression (`intent`), `parse` reads it back as the same tree, within the limits of the language.
    """
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
    if isinstance(node, Near):
        return [*row_terms(node.first), *row_terms(node.second)]
    return []


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
    if isinstance(node, (Not, Field, Range)):
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
    """What is left of a tree without the conditions on resources that hold for all of it, and these conditions."""
    parts = node.nodes if isinstance(node, All) else (node,)
    where = [part for part in parts if _is_about_resources(part)]
    if not where:
        return node, None
    rest = tuple(part for part in parts if not _is_about_resources(part))
    return rest[0] if len(rest) == 1 else All(rest), where[0] if len(where) == 1 else All(tuple(where))


_MISLEADING = frozenset(f"{QUOTES}(),|\\")
_RAW_WORD = re.compile(r"[^\W_]+")


def _is_about_resources(node: Node) -> bool:
    if isinstance(node, CONDITIONS):
        return True
    if isinstance(node, Not):
        return _is_about_resources(node.node)
    return isinstance(node, GROUPS) and bool(node.nodes) and all(map(_is_about_resources, node.nodes))


def _all(node: All) -> str:
    text = " AND ".join(canonical(part) if isinstance(part, Range) else _inner(part) for part in node.nodes)
    if len(text) <= MOST_CHARACTERS and len(node.nodes) <= MOST_LEAVES:
        return text
    is_pasted = all(isinstance(part, Term) and not part.field for part in node.nodes)
    return " ".join(map(canonical, node.nodes)) if is_pasted else text


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
    has_parts = isinstance(node, Near) or (isinstance(node, GROUPS) and bool(node.nodes))
    return f"({canonical(node)})" if has_parts or _is_two_sided(node) else canonical(node)


def _is_two_sided(node: Node) -> bool:
    return isinstance(node, Range) and None not in (node.after, node.before)


def _value(value: str) -> str:
    is_bare = _MISLEADING.isdisjoint(value) and len(value.split()) == 1
    return value if is_bare else quoted(value)
