"""How a query is read: its words as what to rank by, or its tree as what has to hold."""

from __future__ import annotations

from typing import NamedTuple

from findling.domain.queries import All, Any, Node, Term, Word
from findling.text.query_language import Parsed
from findling.text.query_tree import asks_for_text
from findling.text.sentences import SENTENCE_WORDS, is_sentence

__all__ = ["Reading", "read"]


class Reading(NamedTuple):
    """The tree that is searched for, its `kind` (`ranked`, `boolean` or `browse`), and why it is read so."""

    node: Node
    kind: str
    because: str


def read(parsed: Parsed, words: str = "auto") -> Reading:
    """A query as `any` of its words, `all` that it asks for, or what it looks like (`auto`)."""
    if not asks_for_text(parsed.node):
        return Reading(parsed.node, "browse", "there is no word to rank by, so the latest come first")
    if words == "all":
        node = _without_function_words(parsed.node) if is_sentence(parsed.plain) else parsed.node
        return Reading(node, "boolean", "all that is asked for has to be there, as the plan says")
    if words == "any":
        return Reading(_ranked(parsed.node), "ranked", "any of the words will do, as the plan says")
    if strict := [operator for operator in _BOOLEAN if operator in parsed.operators]:
        return Reading(parsed.node, "boolean", f"{strict[0]} asks for a boolean reading")
    light = [operator for operator in _LIGHT if operator in parsed.operators]
    if light and not is_sentence(parsed.plain):
        return Reading(parsed.node, "boolean", f"{light[0]} beside a few words asks for a boolean reading")
    if light:
        return Reading(_ranked(parsed.node), "ranked", f"the words beside {light[0]} are a sentence, and rank")
    return Reading(_ranked(parsed.node), "ranked", "plain words rank; the more of them a passage has, the better")


_BOOLEAN = ("OR", "AND", "NOT", "|", "*", "~", "NEAR")
_LIGHT = ("-", '""')


def _without_function_words(node: Node) -> Node:
    """A sentence without the words that only hold it together: no passage has to have those."""
    if not isinstance(node, All):
        return node
    kept = tuple(part for part in node.nodes if not isinstance(part, Term) or part.text.lower() not in SENTENCE_WORDS)
    if not any(map(asks_for_text, kept)):
        return node
    return kept[0] if len(kept) == 1 else All(kept)


def _ranked(node: Node) -> Node:
    """The tree with the plain words that stand side by side as words to rank by, of which any will do."""
    if not isinstance(node, All):
        return Word(node.text) if isinstance(node, Term) and not node.field else node
    words = tuple(Word(part.text) for part in node.nodes if isinstance(part, Term) and not part.field)
    rest = tuple(part for part in node.nodes if not isinstance(part, Term) or part.field)
    if not words:
        return node
    ranked = words[0] if len(words) == 1 else Any(words)
    return All((ranked, *rest)) if rest else ranked
