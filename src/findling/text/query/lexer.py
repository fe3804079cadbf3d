"""Lexer of the query language: tokens, quotes, escapes, and the intent behind their signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from findling.domain.queries import PROPERTIES, TEXT_FIELDS
from findling.text.analysis.analysis import terms
from findling.text.analysis.scripts import compiled, is_unspaced

FIELD_NAMES = tuple(one.name for one in PROPERTIES.values() if one.example)

OPENING_QUOTES = '"“„«‹「『'
QUOTES = '"“”„«»‹›「」『』'

MOST_CHARACTERS = 1_000
MOST_LEAVES = 64
"""A text beyond these was pasted: it is read as plain words."""

KEYWORD = r"AND|OR|NOT|NEAR(?:/[0-9]+)?"
KEYWORD_KINDS = frozenset({"AND", "OR", "NOT", "NEAR"})

_MEANINGFUL = frozenset(f"{QUOTES}()|*~:,-\\")
_LONGEST_QUOTE = 40

_SPECIAL = rf"[{QUOTES}()|*~:,\-]"
_ESCAPE = rf"\\{_SPECIAL}"
_IN_PARENTHESES = rf"\([^\s{QUOTES}()|]*+\)"  # f(x) and author(s) are words
_LETTERS = rf"(?:[^\s{QUOTES}()|\\]++|{_ESCAPE}|\\)"
_VALUE_LETTERS = rf"(?:[^\s{QUOTES}()|,\\]++|{_ESCAPE}|\\)"
_WORD = rf"(?:(?:AND|OR|NOT)(?=\()|{_LETTERS}++(?:{_IN_PARENTHESES}{_LETTERS}*+)*+)"
_BARE_VALUE = rf"{_VALUE_LETTERS}++(?:{_IN_PARENTHESES}{_VALUE_LETTERS}*+)*+"
_SUFFIX = r"(?:\*+|~[0-9]*)"


def _quotation(group: str) -> str:
    """The pattern of a quotation of any kind, up to its end quote or the end; `group` opens its groups."""
    return (
        rf'(?:"{group}(?:\\"|[^"])*+){group}"|\Z)|[“„]{group}(?:\\"|[^“”"])*+){group}[“”"]|\Z)'
        rf"|«{group}[^»]*+){group}»|\Z)|‹{group}[^›]*+){group}›|\Z)"
        rf"|「{group}[^」]*+){group}」|\Z)|『{group}[^』]*+){group}』|\Z))"
    )


_PHRASE = f"{_quotation('(?:')}{_SUFFIX}?+"
_VALUE = f"(?:{_PHRASE}|{_BARE_VALUE})"
_CASE = r"case(?=:(?:yes|no)(?![^\s|)]))"
_NAME = rf"(?ai:in:(?:{'|'.join(TEXT_FIELDS)})(?=:.)|{_CASE}|{'|'.join(FIELD_NAMES)})"
# A path has no sign of an expression in it, or a further slash; a comment of C and a quotient begin with a space.
REGEX = r"(?<![^\s(|\-])/(?=[^\s/])(?=[^/]*[\\^$*+?()\[\]{}|])(?:\\.|[^/\\])++(?<!\s)/[gimsuxy]{0,4}(?![^\s|)])"
_TOKEN = (
    rf"(?P<minus>(?<![^\s(|])-(?=[^\s|)\-”»›」』]))|(?P<open>\()|(?P<close>\))|(?P<pipe>\|+)|(?P<phrase>{_PHRASE})"
    rf"|(?P<regex>{REGEX})"
    rf"|(?P<field>{_NAME}:{_VALUE}(?:,{_VALUE}?+)*+)|(?P<word>{_WORD})"
)
_MISLEADING = rf"\A-|\A{_NAME}:|{_ESCAPE}|{_SUFFIX}\Z"
_CONTROL = "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]"
_UNSEEN = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"


def tokens(text: str) -> list[tuple[str, str]]:
    """The kind and the raw text of each token; a keyword is of its own kind, unless a dash makes it a word."""
    if is_plain(text) and ("/" not in text or compiled(REGEX).search(text) is None):
        return [(_kind(word), word) for word in text.split()]
    found: list[tuple[str, str]] = []
    was_minus = False
    for match in compiled(_TOKEN).finditer(text):
        kind, raw = match.lastgroup or "", match.group()
        found.append((_kind(raw) if kind == "word" and not was_minus else kind, raw))
        was_minus = kind == "minus"
    return found


def is_plain(text: str) -> bool:
    """Whether no character of the text means anything in a query."""
    return _MEANINGFUL.isdisjoint(text)


def split_field(raw: str) -> tuple[str, list[str]]:
    """The name of a field token in lower case, `in:heading` for one, and its values as they were typed."""
    match = compiled(f"({_NAME}):").match(raw)
    if match is None:
        raise ValueError(f"{raw!r} is no field")
    return match.group(1).lower(), compiled(_VALUE).findall(raw, match.end())


def split_suffix(raw: str) -> tuple[str, str]:
    """A raw word without the `*`, `~` or `~2` at its end, and that end."""
    match = compiled(rf"(?<!\\){_SUFFIX}\Z").search(raw)
    return (raw[: match.start()], match.group()) if match else (raw, "")


def unescaped(raw: str) -> str:
    """A raw word or value without its escapes, and without the backslash of `dir\\` that would escape what follows."""
    return compiled(rf"\\({_SPECIAL})").sub(r"\1", raw).rstrip("\\") if "\\" in raw else raw


def unquoted(raw: str) -> tuple[str, str, bool]:
    """Text in the quotes, the `*` or `~2` behind them, and whether the end quote was there."""
    match = compiled(_quotation("(")).match(raw)
    if match is None:
        raise ValueError(f"{raw!r} is not quoted")
    bodies, ends = match.groups()[::2], match.groups()[1::2]
    body, end = next((body, end) for body, end in zip(bodies, ends, strict=True) if body is not None)
    return compiled(r"[\s\\]+\Z").sub("", body.replace('\\"', '"')).lstrip(), raw[match.end() :], bool(end)


def quoted(text: str) -> str:
    """The text in quotes, such that `unquoted` gives it back."""
    return '"' + text.replace('"', '\\"') + '"'


def spelled(word: str, field: str = "") -> str:
    """The word written such that it is read as this very word (in the field), whatever its characters mean."""
    name = field_prefix(field)
    if _kind(word) != "word":
        return name + word.lower()
    if is_plain(word):
        return name + word
    reads_back = compiled(_BARE_VALUE if field else _WORD).fullmatch(word) and not compiled(_MISLEADING).search(word)
    return name + (word if reads_back else compiled(_SPECIAL).sub(r"\\\g<0>", word))


def field_prefix(field: str) -> str:
    """Prefix of a word or phrase that is searched in one field only."""
    is_typed = field in PROPERTIES and PROPERTIES[field].kind == "words"
    return f"{field}:" if is_typed else field and f"in:{field}:"


def visible(text: str) -> str:
    """The text without control characters, halves of characters and marks of direction."""
    return text if text.isprintable() else compiled(_UNSEEN).sub("", compiled(_CONTROL).sub(" ", text))


_SHOUTED = 6
"""Words from which on a text in capitals is shouted; fewer may be abbreviations, or `TODO OR FIXME`."""


def calmed(text: str) -> str:
    """A shouted text in lower case: no capital of it tells a name or an operator. Identifiers stay as they are."""
    words = text.split(" ") if text.isupper() else []
    # `TODO OR FIXME OR XXX OR HACK` are four words.
    if sum(_kind(word) == "word" for word in words) < _SHOUTED:
        return text
    return " ".join(word.lower() if word.translate(_UNMARKED).isalpha() else word for word in words)


def shortened(text: str) -> str:
    """The text as a note quotes it."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


def _kind(word: str) -> str:
    return word.partition("/")[0] if word[:1] in ("A", "O", "N") and compiled(KEYWORD).fullmatch(word) else "word"


def levels(read: list[tuple[str, str]]) -> int:
    """Depth of the parentheses in the tokens."""
    level = deepest = 0
    for kind, _ in read:
        if kind == "open":
            level += 1
            deepest = max(deepest, level)
        elif kind == "close":
            level = max(0, level - 1)
    return deepest


class Intent(NamedTuple):
    """Whether keywords such as AND are operators, whether quotes demand their phrase, and why not if not."""

    keywords: bool = True
    quotes: bool = True
    is_prose: bool = False
    because: str = ""


EXPRESSION = Intent()

_PROSE = 6
"""Words of a sentence, the small ones among them; fewer are a question only with a question mark."""
_ASKED = 3
_SHORT = 8
"""Words beside quotes from which on a query is no expression any more."""
_CLAUSE = 3
"""Words that stand side by side in any sentence, however many operators it seems to have."""
_UNSPACED_SENTENCE = 12
"""Letters of a run without spaces that say as much as six words."""


def intent_of(tokens: Sequence[tuple[str, str]]) -> Intent:
    """Intent of the tokens of a query."""
    kinds = {kind for kind, _ in tokens}
    has_keywords = not KEYWORD_KINDS.isdisjoint(kinds)
    unsigned = without_signs(tokens) if "minus" in kinds else tokens
    if not has_keywords and "phrase" not in kinds and len(unsigned) == len(tokens):
        return EXPRESSION
    asked = _asked(unsigned)
    quotes, runs = [raw for kind, raw in asked if kind == "phrase"], _runs(asked)
    words = [word for run in runs for word in run]
    if has_keywords and _is_in_capitals([raw for kind, raw in tokens if kind == "word"]):
        return Intent(
            False, _demands(quotes, words), False, "everything else is in capitals; it joins words in small letters"
        )
    if not _has_expression(tokens) and _is_prose(runs, sum(kind in KEYWORD_KINDS for kind, _ in tokens)):
        return Intent(False, False, True, "it is a sentence")
    if quotes and not _demands(quotes, words):
        is_long = len(words) >= _SHORT
        return Intent(True, False, False, "many words stand beside them" if is_long else "they are those of prose")
    return EXPRESSION


def without_signs(tokens: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The tokens of a sentence without the signs of numbers: `-5 degrees` excludes nothing."""
    pairs = zip(tokens, [*tokens[1:], ("end", "")], strict=True)
    return [token for token, after in pairs if token[0] != "minus" or after[0] != "word" or not after[1][0].isdigit()]


def _asked(tokens: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tokens without what a dash excludes: that is excluded, whatever its quotes."""
    asked: list[tuple[str, str]] = []
    level, last = 0, ""
    for kind, raw in tokens:
        if level or last == "minus":
            level = max(0, level + (kind == "open") - (kind == "close"))
        else:
            asked.append((kind, raw))
        last = kind
    return asked


def _runs(tokens: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The words that stand side by side between operators; a quotation is one of them, an unclosed one is its words."""
    runs: list[list[str]] = [[]]
    for kind, raw in tokens:
        if kind == "word":
            runs[-1].append(raw)
        elif kind == "phrase":
            text, _, is_closed = unquoted(raw)
            runs[-1] += [raw] if is_closed else text.split()
        elif kind in KEYWORD_KINDS or kind == "pipe":
            runs.append([])
    return runs


def _demands(quotes: Iterable[str], words: Sequence[str]) -> bool:
    is_typed = all(quote[0] == '"' for quote in quotes)
    return is_typed and len(words) < _SHORT and not any(map(_unspaced, (*words, *quotes)))


def _is_in_capitals(words: Sequence[str]) -> bool:
    """Whether all plain words are; `MAX_VALUE` is written so anyway, and so are the letters of `A OR B`."""
    # `con*`, `con~1`, `sign-in` and `node.js` are typed words as well.
    bare = (word.rstrip("*0123456789").removesuffix("~").translate(_UNMARKED) for word in words)
    plain = [letters for letters in bare if letters.isalpha()]
    return any(len(word) > 1 for word in plain) and all(map(str.isupper, plain))


def _has_expression(tokens: Iterable[tuple[str, str]]) -> bool:
    """Whether an operator stands in parentheses, which no sentence does."""
    level = 0
    for kind, _ in tokens:
        level += (kind == "open") - (kind == "close")
        if level > 0 and (kind in KEYWORD_KINDS or kind == "pipe"):
            return True
    return False


def _is_prose(runs: Sequence[Sequence[str]], keywords: int) -> bool:
    words = [word for run in runs for word in run]
    if any(_unspaced(word) >= _UNSPACED_SENTENCE for word in words):
        return True
    is_asked = bool(words) and words[-1].endswith(("?", "？", "؟"))
    if len(words) + keywords < (_ASKED if is_asked else _PROSE):
        return False
    from findling.text.analysis.stemming import is_function_word

    clauses = [run for run in runs if len(run) >= _CLAUSE]
    return any(is_function_word(term) for run in clauses for word in run for term in terms(word)[:1])


def _unspaced(word: str) -> int:
    """Number of letters of a script without spaces; Korean has spaces."""
    letters = "" if word.isascii() else word
    return sum(is_unspaced(letter) and not "\uac00" <= letter <= "\ud7af" for letter in letters)


_MARKS = "\"'`()[]{}.,;:!?…-"
_UNMARKED = str.maketrans("", "", _MARKS)
