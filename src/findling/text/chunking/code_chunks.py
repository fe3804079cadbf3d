"""Chunks of code: whole definitions, small neighbours packed together, large ones cut at their members."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from findling.domain.resources import Piece
from findling.text.chunking.syntax import Definition, definitions
from findling.text.chunking.windows import trim, windows

__all__ = ["CODE_LANGS", "chunk_code", "grammar_of"]


class _LineGrammar(NamedTuple):
    """`definition` finds a line break, indentation and (as group 1) a signature; `attached` matches a line above it
    that belongs to it: a decorator, an attribute, a comment."""

    definition: re.Pattern[str]
    attached: re.Pattern[str]


@cache
def grammar_of(lang: str) -> _LineGrammar:
    """The grammar of a language; raises `KeyError` for one that is not in `CODE_LANGS`."""
    signature, attached = _SPECS[lang]
    return _LineGrammar(re.compile(rf"\n[ \t]*+({signature})"), re.compile(attached))


def _words(words: str) -> str:
    """Any number of these words, each followed by a space."""
    return rf"(?:(?:{words.replace(' ', '|')})[ \t]++)*+"


_NO_CALL = r"(?!(?:if|for|foreach|while|switch|catch|return|else|do|with|new|await|throw|using|lock|case|yield)\b)"
_ARGUMENTS = r"\((?:[^()\n;]++|\([^()\n;]*+\))*+\)"

_PYTHON = r"(?:def|class|async def|if(?= __name__)) \w++(?= ?[(:\[=])"

_JS_WORDS = _words("export default declare abstract async public private protected static readonly override get set")
_JS_FUNCTION = r"(?:async )?(?:function\b|\([^()\n]*+\)(?::[^=\n]++)? ?=>|[\w$]++ =>)"
_JS_TITLE = r"\"[^\"\n]*+\"|'[^'\n]*+'|`[^`\n]*+`"
_JAVASCRIPT = (
    rf"{_JS_WORDS}(?:function\b[* ]*+[\w$]*+"
    r"|(?:class|interface|enum|namespace|type) [\w$.]++(?=[^\w$.:])"
    rf"|(?:const|let|var) [\w$]++(?=(?: ?:[^=\n]++)? ?= ?{_JS_FUNCTION})"
    rf"|(?:describe|context|it|test)(?:\.\w++)?\((?:{_JS_TITLE})"
    r"|constructor(?=\()"
    rf"|{_NO_CALL}[#*]?+[\w$.]++(?= ?{_ARGUMENTS}(?: ?:[^;{{\n]++)? ?\{{|(?:: | ?= ?){_JS_FUNCTION}))"
    r"|(?<=\n)(?:export (?:const|let|var) [\w$]++|export default\b|(?:module\.)?exports\b[\w$.]*+)"
)

_GO = r"(?<=\n)(?:func (?:\([^)\n]*+\) ?)?\w++|type \w++(?: (?:struct|interface))?|(?:var|const)\b(?: \w++)?)"

_RUST_PUB = r"(?:pub(?:\([\w: ]++\))? )?+"
_RUST = (
    rf"{_RUST_PUB}(?:(?:default|async|const|unsafe|extern(?: \"[^\"\n]*+\")?) )*+fn \w++"
    rf"|{_RUST_PUB}(?:struct|enum|trait|union|mod|type) \w++"
    r"|(?:unsafe )?impl\b[^\n{]*+|macro_rules! \w++"
    rf"|(?<=\n){_RUST_PUB}(?:const|static)(?: mut)? \w++"
)

_JAVA_WORD = (
    "public protected private static final abstract synchronized native default sealed non-sealed strictfp transient"
)
_JAVA = (
    rf"{_words(_JAVA_WORD)}(?:class|interface|enum|record|@interface) \w++"
    rf"|(?:{_JAVA_WORD.replace(' ', '|')})[ \t]++[\w<>\[\],.?& \t@]++(?=\()"
    rf"|{_NO_CALL}[\w<>\[\],.?]++ \w++(?=\([^;\n]*+\n|\([^;{{\n]*+\{{)"
)

_CSHARP_WORD = (
    "public protected private internal static sealed abstract virtual override async partial readonly extern unsafe"
)
_CSHARP = (
    rf"{_words(_CSHARP_WORD)}(?:class|interface|enum|record|struct|namespace|delegate)\b[ \t]++[\w.<>]++"
    rf"|(?:{_CSHARP_WORD.replace(' ', '|')})[ \t]++[\w<>\[\],.?& \t]++(?=\(|[ \t]*+\{{|\n[ \t]*+\{{|=>)"
)

_C_BLOCK = r"(?:typedef )?(?:struct|union|enum)\b[^\n;(){=]*+(?=\{|\n)"
_C = rf"(?<=\n)(?:{_C_BLOCK}|{_NO_CALL}[A-Za-z_][\w \t*]*+(?=\([^;\n]*+\n))"
_CPP = (
    rf"(?:template ?<[^\n]*?> )?+(?:(?:class|struct|union|namespace|enum(?: class)?)\b[^\n;(){{=]*+(?=\{{|\n))"
    rf"|(?<=\n){_C_BLOCK}"
    rf"|(?<=\n){_NO_CALL}[A-Za-z_~][\w \t*&:<>,~]*+(?=\([^;\n]*+\n)"
    rf"|{_NO_CALL}[A-Za-z_][\w*&:<>,]*+[ \t]++[\w \t*&:<>,~]*+(?=\([^;\n]*+\n)"
)

_RUBY = (
    r"(?:class|module) [A-Z][\w:]*+(?: < [\w:]++)?|def [\w.]++[?!=]?"
    r"|(?:RSpec\.)?(?:describe|context|it) [\"'][^\"'\n]*+[\"']"
)
_PHP = (
    rf"{_words('abstract final public private protected static readonly')}"
    r"(?:function &?\w++|(?:class|interface|trait|enum) \w++)|(?<=\n)namespace [\w\\]++"
)
_SWIFT_WORDS = "public private fileprivate internal open static final override mutating indirect convenience required"
_SWIFT = (
    rf"{_words(_SWIFT_WORDS)}"
    r"(?:(?:class )?func [^\s(<]++|(?:class|struct|enum|protocol|extension|actor) [\w.]++|init\b[?!]?(?=[(<])|deinit\b)"
)
_KOTLIN_WORDS = (
    "public private protected internal open abstract final override suspend inline data sealed enum annotation "
    "companion operator infix tailrec inner value expect actual"
)
_KOTLIN = rf"{_words(_KOTLIN_WORDS)}(?:fun (?:<[^>\n]*+> )?[\w.`<>?]++|(?:class|interface|object) \w++|object\b)"
_SCALA = (
    rf"{_words('private protected final sealed abstract implicit override lazy case inline open')}"
    r"(?:def [^\s(\[:=]++|(?:class|object|trait|enum|given|extension) \w++|package object \w++)"
)
_DART = (
    rf"{_words('abstract base final sealed mixin interface')}(?:class|mixin|enum|extension) \w++"
    rf"|{_NO_CALL}{_words('static final external')}[\w<>\[\],.?]++ \w++(?=\([^;\n]*+\n)"
)
_CYTHON = rf"{_PYTHON}|cdef class \w++|cp?def [\w \t*\[\],.&]++(?=\()"
_OBJECTIVE_C = rf"{_C}|(?<=\n)(?:@(?:interface|implementation|protocol) \w++|[-+] ?\([^)\n]*+\) ?\w++)"
_SOLIDITY = (
    r"(?:abstract )?(?:contract|interface|library) \w++|(?:function|modifier|event|struct|enum) \w++|constructor(?=\()"
)
_ZIG = (
    rf"{_words('pub export inline extern')}fn \w++"
    r"|(?:pub )?const \w++(?= = (?:packed |extern )?(?:struct|enum|union|opaque)\b)"
)
_SHELL = r"function [\w:.-]++|[\w:.-]++ ?\(\)"
_LUA = r"(?:local )?function [\w.:]++|(?:local )?[\w.]++(?= = function\b)"
_PERL = r"(?:sub|package) [\w:]++"
_ELIXIR = r"(?:defmodule|defprotocol|defimpl|defmacrop?|defp?) [\w.]++[?!]?"
_JULIA = r"(?:function|struct|mutable struct|abstract type|module|macro) [^\s({]++"
_NIM = r"(?:proc|func|method|template|macro|iterator|converter) [\w`]++"
_GDSCRIPT = r"(?:static )?func \w++|class(?:_name)? \w++"
_R = r"[\w.]++(?= ?(?:<-|=) ?function\b)"
_LISP = r"(?<=\n)\((?:def[\w*-]*+|define[\w*-]*+|ns|cl-def\w++) \(?[^\s()]++"
_HASKELL = r"(?<=\n)(?:(?:data|newtype|class|instance|type|module) [^\n=]*+|[a-z][\w']*+(?= ::))"
_ML = r"(?<=\n)(?:let(?: rec)?|type|module|exception) [\w']++"
_ERLANG = r"(?<=\n)[a-z]\w*+(?=\([^\n]*->)"
_POWERSHELL = r"(?i:function|filter|class|enum) [\w:-]++"
_SQL = (
    r"(?<=\n)(?i:create|alter|drop|insert|update|delete|select|with|merge|grant|revoke|truncate|comment on|declare)\b"
    r"[^\n(;]*+"
)
_CSS = r"(?<=\n)[^\s{}/*;][^\n{};]*+(?=\{)"
_PROTO = r"(?:message|service|enum|rpc|extend|oneof) \w++"
_HCL = r"(?<=\n)\w++(?: \"[^\"\n]*+\")*+(?= \{)"
_GRAPHQL = r"(?<=\n)(?:extend )?(?:type|interface|enum|input|union|scalar|directive|query|mutation|fragment) @?\w++"

_HASH = r"#"
_SLASHES = r"//|/\*|\*"
_DECORATED = r"//|/\*|\*|@"
_C_ATTACHED = rf"{_SLASHES}|template\b|[\w \t*]++$"
_DASHES = r"--|/\*|\*"

_SPECS: dict[str, tuple[str, str]] = {
    "astro": (_JAVASCRIPT, _DECORATED),
    "bash": (_SHELL, _HASH),
    "c": (_C, _C_ATTACHED),
    "clojure": (_LISP, r";"),
    "cpp": (_CPP, _C_ATTACHED),
    "crystal": (_RUBY, _HASH),
    "csharp": (_CSHARP, rf"{_SLASHES}|\["),
    "css": (_CSS, rf"{_SLASHES}|.*,$"),
    "cuda": (_CPP, _C_ATTACHED),
    "cython": (_CYTHON, r"[#@]"),
    "dart": (_DART, _DECORATED),
    "elixir": (_ELIXIR, r"[#@]"),
    "erlang": (_ERLANG, r"%|-spec\b"),
    "fsharp": (_ML, r"//|\[<|\(\*"),
    "gdscript": (_GDSCRIPT, r"[#@]"),
    "glsl": (_C, _C_ATTACHED),
    "go": (_GO, _SLASHES),
    "graphql": (_GRAPHQL, r"[#\"]"),
    "groovy": (_JAVA, _DECORATED),
    "haskell": (_HASKELL, r"--|\{-"),
    "hcl": (_HCL, rf"{_SLASHES}|#"),
    "java": (_JAVA, _DECORATED),
    "javascript": (_JAVASCRIPT, _DECORATED),
    "julia": (_JULIA, r"[#@\"]"),
    "kotlin": (_KOTLIN, _DECORATED),
    "lisp": (_LISP, r";"),
    "lua": (_LUA, _DASHES),
    "nim": (_NIM, _HASH),
    "objectivec": (_OBJECTIVE_C, _C_ATTACHED),
    "ocaml": (_ML, r"\(\*"),
    "perl": (_PERL, _HASH),
    "php": (_PHP, rf"{_SLASHES}|#"),
    "powershell": (_POWERSHELL, _HASH),
    "proto": (_PROTO, _SLASHES),
    "python": (_PYTHON, r"[#@]"),
    "r": (_R, _HASH),
    "racket": (_LISP, r";"),
    "ruby": (_RUBY, _HASH),
    "rust": (_RUST, rf"{_SLASHES}|#!?\["),
    "scala": (_SCALA, _DECORATED),
    "scheme": (_LISP, r";"),
    "shell": (_SHELL, _HASH),
    "solidity": (_SOLIDITY, _SLASHES),
    "sql": (_SQL, _DASHES),
    "svelte": (_JAVASCRIPT, _DECORATED),
    "swift": (_SWIFT, _DECORATED),
    "typescript": (_JAVASCRIPT, _DECORATED),
    "vala": (_CSHARP, rf"{_SLASHES}|\["),
    "vue": (_JAVASCRIPT, _DECORATED),
    "zig": (_ZIG, _SLASHES),
}

CODE_LANGS = frozenset(_SPECS)


def chunk_code(text: str, lang: str, size: int, syntax: bool = False) -> list[Piece]:
    """Pieces that end where definitions begin; the heading path holds the enclosing scopes and what a piece defines.

    With `syntax` the definitions come from the syntax tree of the text, if it has one.
    """
    grammar = grammar_of(lang)
    if len(text) <= size:
        start, end = trim(text, 0, len(text))
        code = _Code(text, size, grammar, _definition_lines(text, grammar))
        names = [definition for definition in code.definitions if definition.level == 0]
        return [Piece(start, end, _heading(code, (), names))] if start < end else []
    found = definitions(text, lang) if syntax else None
    code = _Code(text, size, grammar, _definition_lines(text, grammar) if found is None else found)
    return _split(code, _Stretch(0, len(text), 0, len(code.definitions)), (), depth=0)


_MAX_DEPTH = 4
"""Namespace, class, method, inner function: deeper scopes name nothing that a reader looks for."""

_MAX_STEP = 80
"""Characters of one step of the heading path."""

_DECORATOR_MARKS = ("@", "#[", "[")

_CLOSING = re.compile(r"(?:\s++|[)\]}>;,]|(?:end\w*+|fi|done|esac)\b|[#@](?:end|else)\w*+|(?://|--)[^\n]*+)*+")
"""Text between a definition and the end of the one around it that makes no piece of its own."""


class _Code(NamedTuple):
    """The text and its definitions in order."""

    text: str
    size: int
    grammar: _LineGrammar
    definitions: list[Definition]


class _Stretch(NamedTuple):
    """A part of the text and the range of the definitions in it."""

    start: int
    end: int
    first: int
    last: int


def _definition_lines(text: str, grammar: _LineGrammar) -> list[Definition]:
    """Definitions by the look of their first line; deeper indentation means a deeper level, the ends are unknown."""
    found = []
    around: list[int] = []
    # The pattern runs over one more character: a match begins where its line does, its signature one too late.
    for match in grammar.definition.finditer("\n" + text):
        line = match.start()
        first, last = match.span(1)
        indent = first - line - 1
        while around and around[-1] >= indent:
            around.pop()
        found.append(Definition(line, first - 1, last - 1, -1, len(around)))
        around.append(indent)
    return found


def _split(code: _Code, stretch: _Stretch, scope: tuple[str, ...], depth: int) -> list[Piece]:
    """Pieces of a stretch that is too large for one, cut at the outermost definitions in it."""
    if stretch.first == stretch.last or depth == _MAX_DEPTH:
        return _windows(code, stretch.start, stretch.end, scope)
    pieces: list[Piece] = []
    parts = _parts(code, stretch)
    if parts[0].first == parts[0].last:
        pieces += _windows(code, parts[0].start, parts[0].end, scope)
        del parts[0]
    position = 0
    while position < len(parts):
        start = parts[position].start
        following = position
        while following < len(parts) and parts[following].end - start <= code.size:
            following += 1
        if following > position:
            names = (code.definitions[part.first] for part in parts[position:following] if part.first < part.last)
            pieces += _piece(code, start, parts[following - 1].end, _heading(code, scope, names))
        else:
            following = position + 1
            pieces += _split_part(code, parts[position], scope, depth + 1)
        position = following
    return pieces


def _parts(code: _Code, stretch: _Stretch) -> list[_Stretch]:
    """The outermost definitions with what is attached to them, and what stands between them and is worth a part."""
    text, found = code.text, code.definitions
    level = found[stretch.first].level
    members = [index for index in range(stretch.first, stretch.last) if found[index].level == level]
    # Most definitions stand below an empty line: nothing is attached and no line above has to be looked at.
    bounds = [
        start if text[(start := found[index].start) - 2] == "\n" else max(stretch.start, _attached_start(code, index))
        for index in members
    ]
    bounds.append(stretch.end)
    members.append(stretch.last)
    parts: list[_Stretch] = []
    reached = stretch.start
    for position, start in enumerate(bounds[:-1]):
        index, following = members[position : position + 2]
        end = bounds[position + 1]
        if 0 <= found[index].end < end and not _CLOSING.fullmatch(text, found[index].end, end):
            end = found[index].end
        # Only the head of a stretch may go along with a definition that is cut: it introduces what follows.
        if start > reached and (
            _stands_alone(start - reached, end - start, code.size) or (parts and end - start > code.size)
        ):
            parts.append(_Stretch(reached, start, index, index))
            reached = start
        parts.append(_Stretch(reached, end, index, following))
        reached = end
    if reached < stretch.end:
        parts.append(_Stretch(reached, stretch.end, stretch.last, stretch.last))
    return parts


def _split_part(code: _Code, part: _Stretch, scope: tuple[str, ...], depth: int) -> list[Piece]:
    """Pieces of one part that is too large, and of the statements that follow a definition on its own level."""
    if part.first == part.last:
        return _windows(code, part.start, part.end, scope)
    definition = code.definitions[part.first]
    inner_scope = _heading(code, scope, (definition,))
    inner = part._replace(first=part.first + 1)
    end = part.end
    if definition.end < 0:
        indent = definition.signature_start - definition.start
        last_signature_end = code.definitions[part.last - 1].signature_end
        after = _statements_after(indent).search(code.text, last_signature_end, end)
        end = after.start() + 2 if after else end
    return _split(code, inner._replace(end=end), inner_scope, depth) + _windows(code, end, part.end, scope)


def _stands_alone(head: int, first: int, size: int) -> bool:
    """Whether what stands above a definition is a part: not when it is small and can go along with that."""
    return head >= size // 4 or head + first > size >= first


def _windows(code: _Code, start: int, end: int, scope: tuple[str, ...]) -> list[Piece]:
    return [Piece(*span, scope) for span in windows(code.text, start, end, code.size)]


def _piece(code: _Code, start: int, end: int, heading: tuple[str, ...]) -> list[Piece]:
    start, end = trim(code.text, start, end)
    return [Piece(start, end, heading)] if start < end else []


def _heading(code: _Code, scope: tuple[str, ...], names: Iterable[Definition]) -> tuple[str, ...]:
    """The scope and, as one more step, as many signatures as fit."""
    step = ""
    for _, first, last, _, _ in names:
        signature = code.text[first:last].rstrip()
        if "  " in signature or "\t" in signature or "\n" in signature:
            signature = " ".join(signature.split())
        longer = f"{step}, {signature}" if step else signature
        if len(longer) >= _MAX_STEP:
            return (*scope, f"{step or longer[: _MAX_STEP - 1]}…")
        step = longer
    return (*scope, step) if step else scope


@cache
def _statements_after(indent: int) -> re.Pattern[str]:
    """A blank line, then a line that is not deeper than `indent` and neither closes a bracket nor is a lone label."""
    margin = rf"[ \t]{{0,{indent}}}+"
    return re.compile(rf"\n\n(?:{margin}(?:#|//)[^\n]*+\n)*+{margin}(?=[^\W\d]|[@\"'(\[])(?!\w++:\n)")


def _attached_start(code: _Code, index: int) -> int:
    """Start of the decorators, attributes and comments directly above a definition."""
    text = code.text
    start = code.definitions[index].start
    before = code.definitions[index - 1] if index else None
    floor = 0 if before is None else before.end - 1 if 0 < before.end <= start else before.start + 1
    while start > floor:
        above = text.rfind("\n", floor, start - 1) + 1
        line = text[above : start - 1]
        bare = line.strip()
        if not bare or (above == 0 and floor > 0):
            break
        if not code.grammar.attached.match(bare):
            above = _opening_line(code, floor, start, line)
            if above < 0:
                break
        start = above
    return start


def _opening_line(code: _Code, floor: int, start: int, closing: str) -> int:
    """The first line of the block comment or decorator that the line `closing` ends; -1 when it ends none."""
    bare = closing.strip()
    if bare.endswith("*/"):
        opening = code.text.rfind("/*", floor, start)
        newline = code.text.rfind("\n", floor, max(opening, 0))
        return newline + 1 if newline >= 0 else -1
    if bare[0] not in ")]}":
        return -1
    indent = closing[: len(closing) - len(closing.lstrip())]
    marks = (mark for mark in _DECORATOR_MARKS if code.grammar.attached.match(mark))
    found = max((code.text.rfind(f"\n{indent}{mark}", floor, start) for mark in marks), default=-1)
    return found + 1 if found >= 0 else -1
