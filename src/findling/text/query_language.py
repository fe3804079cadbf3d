"""What a person types, as a tree: words to rank by, "phrases" that must stand as written, -exclusions.

Nothing a person types is an error: an unclosed quote runs to the end, a lone dash is a word without terms.
"""

from __future__ import annotations

import re

from findling.domain.queries import All, Any, Node, Not, Phrase, Word
from findling.text.analysis import STOP_WORDS, phrase_terms, terms

__all__ = ["canonical", "identifier_parts", "parse", "positive_terms", "positive_texts"]

_TOKEN = re.compile(r'(?P<minus>(?<!\S)-(?=[^\s-]))?(?:"(?P<phrase>[^"]*)(?:"|$)|(?P<word>[^\s"]+))')


def parse(text: str) -> Node:
    """The tree of a query: at least one of its words, all of its phrases, none of its exclusions.

    Stop words are left out as long as another word is there.
    """
    words: list[Node] = []
    required: list[Node] = []
    excluded: list[Node] = []
    for token in _TOKEN.finditer(text):
        is_phrase = token["word"] is None
        value = token["phrase"] if is_phrase else token["word"]
        if not terms(value):
            continue
        if token["minus"]:
            excluded.append(Not(_leaf(value, is_phrase)))
        else:
            (required if is_phrase else words).append(_leaf(value, is_phrase))
    meaningful = [word for word in words if isinstance(word, Word) and not STOP_WORDS.issuperset(terms(word.text))]
    words = list(meaningful) or ([] if required else words)
    nodes = [*([Any(tuple(dict.fromkeys(words)))] if words else []), *required, *excluded]
    return nodes[0] if len(nodes) == 1 else All(tuple(nodes))


def canonical(node: Node) -> str:
    """The tree written out again, unambiguously: what the answer echoes as `understood_as`."""
    if isinstance(node, Word):
        return node.text
    if isinstance(node, Phrase):
        return f'"{node.text}"'
    if isinstance(node, Not):
        return f"-{canonical(node.node)}"
    if isinstance(node, Any):
        inner = " OR ".join(map(canonical, node.nodes))
        return inner if len(node.nodes) == 1 else f"({inner})"
    return " ".join(map(canonical, node.nodes))


def positive_terms(node: Node) -> list[str]:
    """The terms that a hit may contain because of the query, in order, each once."""
    if isinstance(node, Word | Phrase):
        return list(dict.fromkeys(phrase_terms(node.text)))
    if isinstance(node, Not):
        return []
    return list(dict.fromkeys(term for part in node.nodes for term in positive_terms(part)))


def identifier_parts(node: Node) -> dict[str, set[str]]:
    """The identifiers that are asked for, with their parts (`tapir3`: `tapir`, `3`) but for those asked for alone."""
    forms = [(word, terms(word)) for text in positive_texts(node) for word in _RAW_WORD.findall(text)]
    alone = {form[0] for _, form in forms if len(form) == 1}
    return {form[0]: set(form[1:]) - alone for word, form in forms if len(form) > 1 and form[0] == word.lower()}


def positive_texts(node: Node) -> list[str]:
    """The words and phrases that are asked for, as they were typed."""
    if isinstance(node, Word | Phrase):
        return [node.text]
    return [] if isinstance(node, Not) else [text for part in node.nodes for text in positive_texts(part)]


_RAW_WORD = re.compile(r"[^\W_]+")


def _leaf(value: str, is_phrase: bool) -> Word | Phrase:
    return Phrase(value) if is_phrase else Word(value)
