"""Names that code defines, line by line: functions, methods, types, modules, macros, variables at top level.

Patterns find them in every language, so the names of a text never depend on the grammars that are installed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from findling.domain.resources import Chunk
from findling.text.analysis.lines import with_plain_breaks
from findling.text.analysis.scripts import Remembered, name_terms
from findling.text.chunking.code_grammars import CODE_LANGS, JS_LANGS, dialect_of, grammar_of


class NamedLine(NamedTuple):
    """The place of a definition and its name; `scope` names the definition around it, or is empty."""

    start: int
    name: str
    scope: str
    level: int


def definition_lines(text: str, lang: str) -> list[re.Match[str]]:
    """The first lines of definitions in order, and those that only name something; see `LineGrammar` for the groups.

    Lines end with `\n`. Every match begins where its line does, and its groups one character too late. The latest text
    is remembered: the chunker asks first, and the names are wanted next.
    """
    global _latest
    known, known_lang, found = _latest
    if known is not text or known_lang != lang:
        found = list(grammar_of(lang).definition.finditer("\n" + text))
        _latest = text, lang, found
    return found


def named_lines(text: str, lang: str) -> list[NamedLine]:
    """The names that a text defines, in order of their places; none where its language is no code."""
    if lang not in CODE_LANGS or lang in _NAMELESS:
        return []
    text = with_plain_breaks(text)
    lang = dialect_of(text, lang)
    found = []
    around: list[tuple[int, str]] = []
    for match in definition_lines(text, lang):
        group = match.lastindex or 1
        first, last = match.span(group)
        indent = first - match.start()
        while around and around[-1][0] >= indent:
            around.pop()
        name, scope = _named(match, lang)
        if name:
            found.append(NamedLine(first - 1, name, scope or (around[-1][1] if around else ""), len(around)))
        elif lang == "go":
            found += _block_names(text, last - 1)
        if group == 1 and (name or scope):
            around.append((indent, name or scope))
    return found


def defined_terms(text: str, lang: str, chunks: Sequence[Chunk]) -> list[str]:
    """For each chunk the terms of the names that it defines, as the keyword leg indexes them.

    See `name_terms`; a chunk has the terms of each name once.
    """
    places, terms = _placed_terms(text, lang)
    defined = []
    reached = before = 0
    for chunk in chunks:
        first = before if chunk.start >= reached else bisect_left(places, chunk.start)
        reached = chunk.end
        before = bisect_right(places, reached, first)
        defined.append(" ".join(terms[first:before]) if first < before else "")
    return defined


class OutlineLine(NamedTuple):
    """A definition with its scopes in its name, its lines from 1 on, the definitions around it, and its first line."""

    name: str
    line: int
    end: int
    level: int
    signature: str


def outline_lines(text: str, lang: str) -> list[OutlineLine]:
    """The definitions of a whole text, each before what it holds. It ends before the next line that stands as deep."""
    text = with_plain_breaks(text)
    named = {text.count("\n", 0, one.start): one for one in named_lines(text, lang)}
    found: list[OutlineLine] = []
    around: list[tuple[int, int]] = []
    ends: dict[int, int] = {}
    last = 0
    for number, row in enumerate(text.split("\n") if named else ()):
        bare = row.lstrip()
        if not bare:
            continue
        indent = len(row) - len(bare)
        is_inner = number not in named and bare.startswith((*_CLOSINGS, "#"))
        while around and indent < around[-1][0] + (not is_inner):
            ends[around.pop()[1]] = last
        last = number + 1
        if number in named:
            _, name, scope, _ = named[number]
            outer = found[around[-1][1]].name if around else scope
            found.append(OutlineLine(f"{outer}.{name}" if outer else name, last, last, len(around), bare.rstrip()))
            around.append((indent, len(found) - 1))
    ends |= dict.fromkeys((at for _, at in around), last)
    return [one._replace(end=ends[at]) for at, one in enumerate(found)]


def enclosing_name(text: str, lang: str, heading: Sequence[str], line: int) -> str:
    """The name of the innermost definition around a line of a chunk, with its scopes: `Session.send`.

    Lines count from 0. The headings of the chunk name scopes that begin above it. Comments and decorators in front of
    a definition belong to it. Empty where nothing encloses.
    """
    if lang not in CODE_LANGS or lang in _NAMELESS:
        return ""
    text = with_plain_breaks(text)
    lang = dialect_of(text, lang)
    found = [
        (text.count("\n", 0, match.start()), *_named(match, lang))
        for match in definition_lines(text, lang)
        if match.lastindex == 1
    ]
    outer = _outer(heading, lang, {one for _, *pair in found for one in pair})
    around = _around(text, found, line, is_inner=bool(outer))
    if around and around[0][2] and around[0][2] not in outer:
        outer.append(around[0][2])
    return ".".join([*outer, *[name for _, name, _ in around]])


def _around(
    text: str, found: Sequence[tuple[int, str, str]], line: int, *, is_inner: bool
) -> list[tuple[int, str, str]]:
    """Indentation, name and scope of the definitions around a line, of those found by their lines."""
    rows = text.split("\n")
    behind = line
    while behind < len(rows) and rows[behind].lstrip().startswith(_IN_FRONT):
        behind += 1
    if any(at == behind for at, _, _ in found):
        line = behind
    around: list[tuple[int, str, str]] = []
    above = -1
    for at, name, scope in found:
        if at <= line and (name or scope):
            above, indent = at, _indent(text, rows, at, is_inner=is_inner)
            while around and around[-1][0] >= indent:
                around.pop()
            around.append((indent, name or scope, scope if name else ""))
    if around and above < line:
        is_closing = rows[line].lstrip().startswith(_CLOSINGS)
        indent = _indent(text, rows, line, is_inner=is_inner)
        while around and indent < around[-1][0] + (not is_closing):
            around.pop()
    return around


def _outer(heading: Sequence[str], lang: str, defined: Container[str]) -> list[str]:
    """The names of the definitions that the steps of a heading path are signatures of, without those in a chunk."""
    outer: list[str] = []
    for step in heading:
        name, scope = _step_name(step, lang)
        if (name or scope) and (name or scope) not in defined:
            outer += [one for one in (scope, name) if one and one not in outer]
    return outer


@lru_cache(maxsize=4096)
def _step_name(step: str, lang: str) -> tuple[str, str]:
    """The name and the scope of the one definition that a step of a heading path is the signature of."""
    signature = bare = step.rstrip("…")
    while bare != (bare := _GENERIC.sub("", bare)):
        pass
    return ("", "") if ", " in bare else name_of(signature, lang)


_GENERIC = re.compile(r"<[^<>]*+>")
_IN_FRONT = ("//", "/*", "*", "#", "@", "--", ";;", "%%")
_CLOSINGS = (")", "]", "}", "{", "end")


def _indent(text: str, rows: Sequence[str], at: int, *, is_inner: bool) -> int:
    """The indentation of a line, -1 of an empty one. An inner first one has lost its own: the least indented tell."""
    row = rows[at]
    bare = row.lstrip()
    if at or row != bare or not bare or not is_inner:
        return len(row) - len(bare) if bare else -1
    others = [(len(blank), word) for blank, word in _BEGINNINGS.findall(text)]
    least = min(others, default=(0, ""))[0]
    ends = any(indent == least and _ENDS.match(word) for indent, word in others)
    return least if ends or not least else least - 1


_BEGINNINGS = re.compile(r"\n([^\S\n]*)(\S+)")
_ENDS = re.compile(r"(?:[)\]}@#]|end\b|def\b|async\b|class\b|fn\b|pub\b|fun\b|func|public|private|protected|static)")
"""Lines that stand as deep as a definition does, not as its body."""


def _named(match: re.Match[str], lang: str) -> tuple[str, str]:
    """The name and the scope of a line of a definition; behind `module.exports =` an expression may have the name."""
    group = match.lastindex or 1
    name, scope = name_of(match[group], lang)
    if not name and lang in JS_LANGS and (behind := _EXPRESSION.match(match.string, match.end(group))):
        return behind[1], scope
    return name, scope


_EXPRESSION = re.compile(r"[^\n{;]{0,200}?\b(?:function\b[* ]*+|class )(?!extends\b)([\w$]++)")


def name_of(signature: str, lang: str) -> tuple[str, str]:
    """The name that a signature defines and the scope that it names, each empty where there is none."""
    if lang in _NAMED_BY:
        match = _NAMED_BY[lang].search(signature)
        if match:
            groups = match.groupdict("")
            return groups["name"], groups["scope"].rpartition("::")[2]
    word = signature.rstrip().rpartition(" ")[2]
    if not word.isidentifier():
        return _apart(word, signature)
    return ("", "") if word in _NO_NAMES else (word, "")


_latest: tuple[str, str, list[re.Match[str]]] = ("", "", [])

_NAMELESS = frozenset({"css"})
_NO_NAMES = frozenset(
    "__name__ class const default define deinit describe enum exports extends function impl interface module "
    "namespace object prototype self struct this type union var".split()
)
_TITLE_MARKS = ("'", '"', "`")
_PARTS = re.compile(r"[^\W\d][\w$'-]*+[?!]?")
_CPP_BLOCK = (
    r"(?:^|> |^typedef )(?:class|struct|union|namespace|enum(?: class| struct)?)\b"
    r"(?:[ \t]++(?:\w+\([^)]*+\)|\[\[[^\]]*+\]\]|[A-Z][A-Z_0-9]++(?=[ \t]\w)))*+"
    r"[ \t]++(?P<scope>(?:\w++::)*+)(?P<name>\w*+)"
)
_NAMED_BY = {
    **dict.fromkeys(("c", "cpp", "cuda", "glsl", "objectivec"), re.compile(_CPP_BLOCK)),
    **dict.fromkeys(
        ("crystal", "ruby"), re.compile(r"^(?:class|module) (?P<scope>(?:\w++::)*+)(?P<name>\w++)(?=$| <)")
    ),
    "go": re.compile(r"^(?:func (?:\((?:\w++ )?\*?(?P<scope>\w++)[^)]*+\) ?)?|(?:type|var|const) )(?P<name>\w++)"),
    "haskell": re.compile(
        r"^(?P<scope>)(?:(?:data|newtype|class|type)(?: family| instance)? (?:[^=\n]*=> )?|module )?(?P<name>[\w.]++)"
    ),
    "hcl": re.compile(r"(?P<scope>)\"(?P<name>[^\"]++)\"$"),
    "rust": re.compile(
        r"^(?:unsafe )?impl\b(?P<name>)(?:<[^{]*?>(?= ))? (?:[^{]* for )?(?:&?(?:mut )?)(?P<scope>(?:\w++::)*+\w++)"
    ),
    "sql": re.compile(
        r"(?i)^create (?P<scope>)(?:[\w ]*? )?(?:table|view|function|procedure|index|trigger|type|schema|sequence)"
        r"(?: if not exists)? (?:\w++\.)?\"?(?P<name>\w++)"
        r"|^(?:alter|drop|insert|update|delete|select|with|merge|grant|revoke|truncate|comment|declare)\b"
    ),
    "swift": re.compile(r"^(?:\w++ )*?extension (?P<name>)(?P<scope>[\w.]++)"),
}
"""Languages in which the last word of some signatures is not the name; the pattern says which one is."""


def _apart(word: str, signature: str) -> tuple[str, str]:
    """The name and the scope in `Session::send`, `M.setup`, `Foo.prototype.bar`; none in the title of a test."""
    if signature.endswith(_TITLE_MARKS) or signature.startswith("if "):
        return "", ""
    word = _GENERIC.sub("", word)
    parts = [part for part in _PARTS.findall(word) or _PARTS.findall(signature)[-1:] if part not in _NO_NAMES]
    if not parts:
        return "", ""
    return parts[-1], parts[-2] if len(parts) > 1 else ""


def _block_names(text: str, start: int) -> Iterator[NamedLine]:
    """The names in a block such as `const (`, one a line."""
    if not text.startswith(" (", start):
        return
    end = text.find("\n)", start)
    for match in re.finditer(r"\n\t(\w++)(?=[ \n,=]|\Z)", text[start : end if end >= 0 else start]):
        yield NamedLine(start + match.start(1), match[1], "", 0)


def _placed_terms(text: str, lang: str) -> tuple[list[int], list[str]]:
    """A place in the first line of each definition of a name, in order, and the terms of the names."""
    if lang in _NAMED_BY or lang not in CODE_LANGS or lang in _NAMELESS or "\r" in text:
        lines = named_lines(text, lang)
        return [line.start for line in lines], [_terms_of[line.name] for line in lines]
    found = definition_lines(text, lang)
    # Nearly every signature has its name, whatever the language: 0.4 µs instead of 2, 2,000 times a MB.
    terms = [_terms_of_signature[match[match.lastindex or 1]] for match in found]
    places = [match.end() - 1 for match in found]
    if "" in terms:
        terms = [own or _terms_of[_named(match, lang)[0]] for own, match in zip(terms, found, strict=True)]
        places = [place for place, own in zip(places, terms, strict=True) if own]
    return places, list(filter(None, terms))


def _signature_terms(signature: str) -> str:
    """The terms of the name that a signature defines, empty where there is none."""
    name = signature.rpartition(" ")[2]
    if not name.isidentifier() or name in _NO_NAMES:
        name = name_of(signature, "")[0]
    return name_terms(name) if name else ""


_MOST_REMEMBERED = 50_000
_terms_of: dict[str, str] = Remembered(lambda name: name_terms(name) if name else "", _MOST_REMEMBERED)
_terms_of_signature = Remembered(_signature_terms, _MOST_REMEMBERED)
"""Names and signatures of a tree repeat."""
