"""Mode of a query: its words rank, or its tree must hold."""

from __future__ import annotations

from typing import NamedTuple

from findling.domain.queries import GROUPS, All, Any, Near, Node, Not, Phrase, Same, Term, Word
from findling.text.analysis.analysis import row_terms
from findling.text.analysis.stemming import empty_words
from findling.text.query.parser import Parsed
from findling.text.query.tree import asks_for_text, canonical


class QueryReading(NamedTuple):
    """The tree that is searched for, its `kind` (`ranked`, `boolean` or `browse`), and why it is read so.

    A ranked tree is what ranks, or `All` of that and of what has to hold besides.
    """

    node: Node
    kind: str
    because: str


def read(parsed: Parsed, words: str = "auto") -> QueryReading:
    """A query as `any` of its words, `all` that it asks for, or what it looks like (`auto`).

    Only AND demands the words beside it. A quote, OR, `*`, `~` and NEAR demand their own words, a dash excludes its
    own; plain words rank. Where the intent is prose, quotes and all else that could demand rank as well.
    """
    node, intent = parsed.node, parsed.intent
    if not asks_for_text(node):
        return QueryReading(node, "browse", "there is no word to rank by, so the latest come first")
    if words == "all":
        return QueryReading(node, "boolean", "all that is asked for has to be there, as the plan says")
    if words == "auto" and "AND" in parsed.operators:
        return QueryReading(node, "boolean", "AND asks for all of it")
    parts = _parts(node)
    limits = tuple(part for part in parts if not asks_for_text(part) or _is_limited(part))
    asked = [part for part in parts if part not in limits]
    ranks = {part for part in asked if intent.is_prose or _ranks(part, quotes=not intent.quotes)}
    demanded = tuple(part for part in asked if part not in ranks)
    if not ranks:
        return QueryReading(node, "boolean", "nothing is asked for but what has to be there")
    # Demanded words rank, too, so nothing else has to be there. A word that stands twice counts twice.
    loose = [one for part in asked if part in ranks for one in _to_rank(part, True)]
    words_to_rank = (*loose, *dict.fromkeys(one for part in demanded for one in _to_rank(part, False)))
    said = [one.text for one in words_to_rank if isinstance(one, Word)]
    if len(said) == len(words_to_rank) > 1 and all(empty_words(said)):
        # The Who, to be or not to be: such words say something in their order alone.
        words_to_rank += (Phrase(" ".join(said)),)
    ranked = words_to_rank[0] if len(words_to_rank) == 1 else Any(words_to_rank)
    rest = (*demanded, *limits)
    return QueryReading(All((ranked, *rest)) if rest else ranked, "ranked", _because(parsed, words, demanded))


def demands(node: Node) -> tuple[Node, ...]:
    """Demands of a tree on the text, without its conditions and its exclusions."""
    return tuple(part for part in _parts(node) if asks_for_text(part) and not _is_limited(part) and not _is_loose(part))


def relaxed(node: Node) -> Node | None:
    """The tree with its words to rank by and nothing demanded; conditions and exclusions stay as they are.

    `None` when nothing was demanded.
    """
    if not demands(node):
        return None
    parts = _parts(node)
    limits = tuple(part for part in parts if not asks_for_text(part) or _is_limited(part))
    loose: list[Node] = []
    for part in parts:
        # Demanded words rank already; a word that stands twice still counts twice.
        known = set(loose)
        loose += [] if part in limits else [one for one in _loosened(part) if one not in known]
    ranked = loose[0] if len(loose) == 1 else Any(tuple(loose))
    return All((ranked, *limits)) if limits else ranked


def _because(parsed: Parsed, words: str, demanded: tuple[Node, ...]) -> str:
    intent = parsed.intent
    if words == "any":
        why = "any of the words will do, as the plan says"
    elif demanded:
        why = f"{canonical(demanded[0])} has to be there, and plain words rank"
    elif parsed.operators & {"-", "NOT"}:
        why = "what is excluded has to be away, and plain words rank"
    else:
        why = "plain words rank; the more of them a passage has, the better"
    if intent.is_prose:
        return f"{why}; {intent.because}, so its operators and quotes are words to rank by"
    unread = [*(["operators"] if not intent.keywords else []), *(["quotes"] if not intent.quotes else [])]
    return f"{why}; {' and '.join(unread)} do not demand: {intent.because}" if unread else why


def _parts(node: Node) -> tuple[Node, ...]:
    return node.nodes if isinstance(node, All) else (node,)


def _ranks(part: Node, *, quotes: bool) -> bool:
    return isinstance(part, Term) or (quotes and isinstance(part, Phrase))


def _to_rank(part: Node, is_loose: bool) -> tuple[Node, ...]:
    """A part as what ranks; of an optional phrase also its words, each by itself."""
    if isinstance(part, Term):
        return (Word(part.text),)
    if isinstance(part, Any):
        return part.nodes
    return (*_words_of(part), part) if is_loose and isinstance(part, Phrase) else (part,)


def _words_of(phrase: Phrase) -> list[Node]:
    words = [word for word in phrase.text.split() if row_terms(word)]
    telling = [word for word, is_empty in zip(words, empty_words(words), strict=True) if not is_empty]
    return [Word(word) for word in telling or words]


def _loosened(node: Node) -> tuple[Node, ...]:
    if isinstance(node, (Term, Phrase)):
        return _to_rank(node, True)
    if isinstance(node, Near):
        return (Word(node.first), Word(node.second))
    if isinstance(node, (Any, All)) and not any(isinstance(part, Not) or _is_limited(part) for part in node.nodes):
        return tuple(one for part in node.nodes for one in _loosened(part))
    return (relaxed(node) or node,) if isinstance(node, All) else (node,)


def _is_loose(node: Node) -> bool:
    """Whether it ranks: a word, with or without aliases, or several things of which any will do."""
    if isinstance(node, Same):
        return bool(node.nodes) and _is_loose(node.nodes[0])
    return any(map(_is_loose, node.nodes)) if isinstance(node, Any) else isinstance(node, Word)


def _is_limited(node: Node) -> bool:
    """Whether all of it is asked of single fields, as a condition is."""
    if isinstance(node, GROUPS):
        return bool(node.nodes) and all(map(_is_limited, node.nodes))
    return bool(getattr(node, "field", ""))
