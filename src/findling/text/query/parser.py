"""Parser of the query language: text in, tree out.

    conj    := item+                      all of them; AND between them is noise
    item    := ways ("OR" ways)*          any of them; OR binds tighter than standing side by side
    ways    := unary ("|" unary)*         ways to say one thing
    unary   := ("-" | "NOT")* primary     the dash right before what it excludes
    primary := "(" conj ")" | field:value | "phrase"[* | ~5] | /regex/ | word[* | ~ | ~2] | word NEAR[/5] word

Nothing a person types is an error: impossible syntax is repaired or read as words, and a note says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from findling.domain.queries import PROPERTIES, TEXT_FIELDS, All, Any, Node, Not, Same
from findling.text.analysis.analysis import row_terms
from findling.text.analysis.scripts import compiled
from findling.text.query.leaves import (
    UNCLOSED_QUOTE,
    Remarks,
    condition,
    exact_leaf,
    in_braces,
    near_leaf,
    nearest_field,
    phrase_leaf,
    plain_word,
    regex_leaf,
    term_leaf,
    too_long,
    word_leaf,
    words_of_path,
)
from findling.text.query.lexer import (
    EXPRESSION,
    FIELD_NAMES,
    KEYWORD_KINDS,
    MOST_CHARACTERS,
    MOST_LEAVES,
    OPENING_QUOTES,
    QUOTES,
    Intent,
    calmed,
    field_prefix,
    intent_of,
    levels,
    quoted,
    shortened,
    split_field,
    tokens,
    unescaped,
    unquoted,
    visible,
    without_signs,
)
from findling.text.query.tree import limited_to, negation, simplified, size

_ALIASES = {one.name: one.attribute for one in PROPERTIES.values() if one.kind == "alias"}

MOST_LEVELS = 20
"""Deeper nesting counts as plain words."""

MOST_PASTED = 512
"""Terms of a pasted text that are searched: 20,000 of them took a keyword leg 2.3 s."""


class Parsed(NamedTuple):
    """A query as it was understood.

    `operators` are those in use: OR, AND, NOT, -, |, (), "", *, ~, NEAR, and names of fields such as `path:`. `notes`
    name the repairs and the parts read as plain words. `history` is whether `in:history` was asked for. `plain` are the
    words to be found as they were typed, stop words included. `intent` is what operators and quotes are meant as.
    """

    node: Node
    operators: frozenset[str]
    notes: tuple[str, ...] = ()
    history: bool = False
    plain: str = ""
    intent: Intent = EXPRESSION


def parse(text: str, *, now: float | None = None, intent: Intent | None = None) -> Parsed:
    """The tree of a query; a text without any term gives `Any(())`, which nothing matches, an empty one `All(())`.

    `now` is what relative dates are reckoned from. Without an `intent` the text tells how it is meant.
    """
    typed, text = text.strip(), visible(text)
    if intent is None:  # an expression is written by the program: `A AND B AND "C" AND D` is no shout
        text = calmed(text)
    if not text or text.isspace():
        return Parsed(Any(()) if typed else All(()), frozenset())
    if "\n" in typed:
        return _pasted(text, "a text of several lines is read as plain words")
    if text.lstrip().startswith("/") and (words := words_of_path(text.strip())):
        read = f"{shortened(text.strip())} may be a path and is read as the words {', '.join(words)}"
        note = f"{read}; a regular expression has signs such as .* and \\/ for a slash"
        return _pasted(" ".join(words), note)
    # The quotes of `open("x")` are no wish for a phrase.
    if '("' in text and re.search(r'\w\("[^\s"]', text):
        return _pasted(text, "a piece of code is read as plain words")
    if len(text) > MOST_CHARACTERS:
        return _pasted(text, f"a query of more than {MOST_CHARACTERS:,} characters is read as plain words")
    parser = _Parser(text, now, intent)
    if parser.levels > 2 * MOST_LEVELS:
        return _pasted(text, f"parentheses more than {MOST_LEVELS} deep are read as plain words")
    parsed = parser.parsed()
    leaves, levels = size(parsed.node)
    if leaves > MOST_LEAVES:
        return _pasted(text, f"a query of more than {MOST_LEAVES} words is read as plain words")
    if levels > MOST_LEVELS:
        return _pasted(text, f"parentheses more than {MOST_LEVELS} deep are read as plain words")
    return parsed


_BEGINNINGS = frozenset({"minus", "open", "phrase", "field", "regex", "word", "NOT"})
_ENDINGS = frozenset({"close", "phrase", "field", "regex", "word"})
_JOINTS = frozenset({"AND", "OR", "pipe"})

_PASTED_WORD = rf"[^\s{QUOTES}()|*~:\\]+"
_UNKNOWN_FIELD = r"[A-Za-z]{2,20}:(?=[^\s:/\\0-9])"
_MOST_REPEATS = 8
"""A word of a pasted text is said so often at most: a page says some of its words a hundred times."""


def _pasted(text: str, note: str) -> Parsed:
    notes, nodes, room = [note], dict[Node, int](), MOST_PASTED
    for word, times in Counter(compiled(_PASTED_WORD).findall(text)).items():
        # One word of a script without spaces may be a whole page.
        leaf = term_leaf(word.lstrip("-")[:MOST_CHARACTERS])
        if leaf is None:
            notes += too_long(word) if len(notes) == 1 else []  # one such note will do
        else:
            if room <= 0 and leaf not in nodes:
                notes.append(f"of a pasted text the first {MOST_PASTED} words are searched")
                break
            room -= 0 if leaf in nodes else len(row_terms(leaf.text))
            nodes[leaf] = min(nodes.get(leaf, 0) + times, _MOST_REPEATS)
    said = tuple(leaf for leaf, times in nodes.items() for _ in range(times))
    node = simplified(All(said), []) if said else Any(())
    return Parsed(node, frozenset(), tuple(notes), plain=text[:MOST_CHARACTERS])  # enough to tell a sentence


class _Parser:
    """One reading of the tokens of a query from left to right."""

    def __init__(self, text: str, now: float | None, intent: Intent | None) -> None:
        typed = tokens(text)
        self._intent = intent or intent_of(typed)
        self._remarks = Remarks(set(), [])
        if not self._intent.keywords:
            typed = self._as_words(typed)
        self._tokens = [*typed, ("end", "")]
        self._at = 0
        self._now = now
        self._fields: dict[str, None] = {}
        self._history = False
        self._case = next(
            (raw.lower()[5:] for kind, raw in typed if kind == "field" and raw[:5].lower() == "case:"), ""
        )
        self._plain: list[str] = []
        self.levels = levels(self._tokens) if "(" in text else 0

    def parsed(self) -> Parsed:
        notes = self._remarks.notes
        node = self._conjunction(0)
        if node is None:
            node = self._without_leaves()
        else:
            is_plain = "AND" not in self._remarks.operators
            node = simplified(node, notes, is_plain=is_plain)
            if self._fields:
                if "NEAR" in self._remarks.operators:
                    notes.append("NEAR looks into bodies only, whatever in: says")
                node = simplified(limited_to(node, tuple(self._fields)), notes, is_plain=is_plain)
        operators = frozenset(self._remarks.operators)
        plain = " ".join(self._plain)
        return Parsed(node, operators, tuple(dict.fromkeys(notes)), self._history, plain, self._intent)

    def _as_words(self, typed: list[tuple[str, str]]) -> list[tuple[str, str]]:
        keywords = dict.fromkeys(raw for kind, raw in typed if kind in KEYWORD_KINDS)
        if keywords:
            are = "is read as a word" if len(keywords) == 1 else "are read as words"
            self._remarks.notes.append(f"{' and '.join(keywords)} {are}: {self._intent.because}")
        kept = without_signs(typed) if self._intent.is_prose else typed
        return [("word" if kind in KEYWORD_KINDS else kind, raw) for kind, raw in kept]

    def _without_leaves(self) -> Node:
        """A query of nothing but keywords is these words; of nothing but `in:` it is about everything."""
        kinds = {kind for kind, _ in self._tokens}
        if "field" in kinds:
            return Any(()) if kinds & {"word", "phrase"} else All(())
        words = [term_leaf(raw) for kind, raw in self._tokens if kind in KEYWORD_KINDS]
        if words:
            self._remarks.notes.clear()
        return simplified(_joined(All, words) or Any(()), [])

    def _conjunction(self, level: int) -> Node | None:
        nodes: list[Node | None] = []
        ways = partial(self._joint, "pipe", Same, self._unary)
        while (kind := self._kind()) != "end" and not (kind == "close" and level):
            nodes.append(self._joint("OR", Any, ways, level) if kind in _BEGINNINGS else self._word_between(kind))
        return _joined(All, nodes)

    def _word_between(self, kind: str) -> Node | None:
        """Treat AND, NEAR, a joint or an end where nothing begins."""
        raw = self._tokens[self._at][1]
        before = self._tokens[self._at - 1][0] if self._at else "end"
        self._at += 1
        if kind == "AND" and before in (*_ENDINGS, "AND") and self._kind() in _BEGINNINGS:
            self._remarks.operators.add("AND")
            return None
        if kind == "NEAR" and before in _ENDINGS and self._kind() in _BEGINNINGS:
            self._remarks.notes.append(f"{raw} stands between two single words or else is read as a word")
            return term_leaf(raw)
        if kind == "close":
            self._remarks.notes.append("a ) without its ( is left out")
        else:
            self._remarks.notes.append(f"{raw} joins nothing here and is left out")
        return None

    def _joint(
        self, joint: str, kind: type[Any | Same], operand: Callable[[int], Node | None], level: int
    ) -> Node | None:
        start = self._at
        first = operand(level)
        if self._kind() != joint:
            return first
        nodes = [first]
        while self._kind() == joint and self._skip_to_operand():
            nodes.append(operand(level))
        if len(nodes) > 1:
            self._remarks.operators.add("|" if joint == "pipe" else joint)
            if any(token[0] == "open" for token in self._tokens[start : self._at]):
                self._remarks.operators.add("()")
            if any(isinstance(node, Not) for node in nodes) and None not in nodes:
                self._remarks.notes.append("an exclusion as one of several alternatives finds nearly everything")
        return _joined(kind, nodes)

    def _skip_to_operand(self) -> bool:
        """Go from a joint to what it joins, over joints that are there twice; stay when there is nothing to join."""
        at = self._at + 1
        while self._tokens[at][0] in _JOINTS:
            at += 1
        if self._tokens[at][0] not in _BEGINNINGS:
            return False
        for _, raw in self._tokens[self._at + 1 : at]:
            self._remarks.notes.append(f"{raw} joins nothing here and is left out")
        self._at = at
        return True

    def _unary(self, level: int) -> Node | None:
        is_negative = False
        used = set()
        while (kind := self._kind()) in ("minus", "NOT"):
            if kind == "NOT" and self._tokens[self._at + 1][0] not in _BEGINNINGS:
                return self._word_between(kind)
            used.add("-" if kind == "minus" else kind)
            is_negative = not is_negative
            self._at += 1
        if kind == "open" and used:
            used.add("()")
        raw, said = self._tokens[self._at][1], len(self._plain)
        node = self._primary(kind, level, is_negative)
        if is_negative:
            del self._plain[said:]
        if node is None:
            self._remarks.notes.extend(too_long(raw))
            return None
        if kind == "field":
            used.discard("-")  # a condition: whether a query is a sentence is for its words to say
        self._remarks.operators.update(used)
        return negation(node) if is_negative else node

    def _primary(self, kind: str, level: int, is_negative: bool) -> Node | None:
        raw = self._tokens[self._at][1]
        self._at += 1
        if kind == "open":
            return self._group(level)
        # Only expressions and quotes have a case, so that `/word/` is no path beside it.
        is_meant = kind == "word" and self._case == "yes" and re.fullmatch(r"/[^/]+/[gimsuxy]{0,4}", raw)
        if (kind == "regex" or is_meant) and (found := regex_leaf(raw, self._case == "yes", self._remarks)) is not None:
            return found
        if kind == "phrase" and self._case:
            return exact_leaf(raw, self._case == "yes", self._remarks)
        if kind == "phrase":
            if self._intent.quotes or is_negative:
                return phrase_leaf(raw, "", self._remarks)
            self._plain.append(unquoted(raw)[0])
            # It only ranks, so it is no operator.
            return phrase_leaf(raw, "", Remarks(set(), self._remarks.notes))
        if kind == "field":
            return self._field(raw, is_negative)
        if self._kind() == "NEAR" and (node := self._near(raw)) is not None:
            return node
        if not is_negative:
            self._plain.append(raw)
        if ":" in raw:
            self._remark_on_field(raw)
        return word_leaf(raw, "", self._remarks)

    def _group(self, level: int) -> Node | None:
        node = self._conjunction(level + 1)
        if self._kind() == "close":
            self._at += 1
        else:
            self._remarks.notes.append("a ( without its ) lasts to the end")
        return node

    def _near(self, raw: str) -> Node | None:
        words, distances = [plain_word(raw)], []
        at = self._at
        while self._tokens[at][0] == "NEAR" and self._tokens[at + 1][0] == "word":
            word = plain_word(self._tokens[at + 1][1])
            if not word or not words[0]:
                break
            words.append(word)
            distances.append(self._tokens[at][1].partition("/")[2])
            at += 2
        if not distances:
            return None
        self._at = at
        self._remarks.operators.add("NEAR")
        return near_leaf(words, distances)

    def _field(self, raw: str, is_negative: bool) -> Node | None:
        name, values = split_field(raw)
        if name == "case":
            self._remarks.operators.add("case:")
            return None
        name = _ALIASES.get(name, name)
        text_field = name.removeprefix("in:") if name != "in" else ""
        if text_field in TEXT_FIELDS and (name != text_field or PROPERTIES[name].kind == "words"):
            self._remarks.operators.add(field_prefix(text_field).partition(":")[0] + ":")
            remarks = Remarks(set(), self._remarks.notes)
            leaves = [
                (phrase_leaf if (value[0] in OPENING_QUOTES) else word_leaf)(value, text_field, remarks)
                for value in values
            ]
            return _joined(Any, leaves)
        if "{" in raw and name in PROPERTIES and PROPERTIES[name].kind == "path":
            values = in_braces(values)
        plain = [*filter(None, map(self._value, values))]
        if name == "in" and plain and {*TEXT_FIELDS, "history"}.issuperset(map(str.lower, plain)):
            self._limit(plain, is_negative)
            return None
        node = condition(name, plain, self._now) if name != "in" else None
        if node is not None:
            self._remarks.operators.add(f"{name}:")
            return node
        self._remarks.notes.append(f"{shortened(raw)} is read as words: {name}: takes {PROPERTIES[name].takes}")
        if any(value[0] in OPENING_QUOTES for value in values):
            return phrase_leaf(quoted(" ".join([name, *plain])), "", self._remarks)
        return term_leaf(unescaped(raw))

    def _value(self, raw: str) -> str:
        if raw[0] not in OPENING_QUOTES:
            return unescaped(raw)
        text, _, is_closed = unquoted(raw)
        if not is_closed:
            self._remarks.notes.append(UNCLOSED_QUOTE)
        return text

    def _limit(self, values: list[str], is_negative: bool) -> None:
        self._remarks.operators.add("in:")
        if is_negative:
            self._remarks.notes.append("in: says where to look and cannot be excluded, so it is left out")
            return
        for value in map(str.lower, values):
            if value == "history":
                self._history = True
            else:
                self._fields[value] = None

    def _remark_on_field(self, raw: str) -> None:
        name, typed = raw.partition(":")[0], shortened(raw)
        if name.lower() in FIELD_NAMES:
            name = name.lower()
            self._remarks.notes.append(f"{typed} is read as a word: {name}: takes {PROPERTIES[name].takes}")
        elif compiled(_UNKNOWN_FIELD).match(raw) and (near := nearest_field(name)):
            self._remarks.notes.append(f"{typed} is read as words: there is no field {name}:, but {near}:")

    def _kind(self) -> str:
        return self._tokens[self._at][0]


def _joined(kind: type[All | Any | Same], nodes: Sequence[Node | None]) -> Node | None:
    """The nodes that say something as one node, if there are any."""
    known = [node for node in nodes if node is not None]
    return None if not known else known[0] if len(known) == 1 else kind(tuple(known))
