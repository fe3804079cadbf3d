"""Definitions in code, language by language: one pattern over the first line of each."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class LineGrammar(NamedTuple):
    """`definition` finds a line break, indentation and (as group 1) a signature.

    Group 2 is what only names something: a constant, a macro, an alias. `attached` matches a line above a definition
    that belongs to it: a decorator, an attribute, a comment.
    """

    definition: re.Pattern[str]
    attached: re.Pattern[str]


@cache
def grammar_of(lang: str) -> LineGrammar:
    """The grammar of a language; raises `KeyError` for one that is not in `CODE_LANGS`."""
    signature, attached = _SPECS[lang]
    return LineGrammar(re.compile(rf"\n[ \t]*+(?:({signature})|({_NAMING.get(lang, '(?!)')}))"), re.compile(attached))


def dialect_of(text: str, lang: str) -> str:
    """The language that a text is cut by: a header of C++ has the name of one of C.

    Read as C, the headers of googletest take 3.5 times as long to parse and give a third of the definitions.
    """
    return "cpp" if lang == "c" and re.search(_CPP_MARK, text) else lang


_CPP_MARK = r"\n[ \t]*+(?:template ?<|namespace [\w:]*+ ?\{|class \w++|(?:public|private|protected):|using namespace )"


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
_RUST_PUB = r"(?:pub(?:\([\w: ]++\))? )?+"
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
_SWIFT_WORDS = "public private fileprivate internal open static final override mutating indirect convenience required"
_KOTLIN_WORDS = (
    "public private protected internal open abstract final override suspend inline data sealed enum annotation "
    "companion operator infix tailrec inner value expect actual"
)
_SHELL = r"function [\w:.-]++|[\w:.-]++ ?\(\)"
_LISP = r"(?<=\n)\((?:def[\w*-]*+|define[\w*-]*+|ns|cl-def\w++) \(?[^\s()]++"
_ML = r"(?<=\n)(?:let(?: rec)?|type|module|exception) [\w']++"
_HASH = r"#"
_SLASHES = r"//|/\*|\*"
_DECORATED = r"//|/\*|\*|@"
_C_ATTACHED = rf"{_SLASHES}|template\b|[\w \t*]++$"
_DASHES = r"--|/\*|\*"

JS_LANGS = frozenset({"astro", "javascript", "svelte", "typescript", "vue"})

_SPECS: dict[str, tuple[str, str]] = {
    "css": (r"(?<=\n)[^\s{}/*;][^\n{};]*+(?=\{)", rf"{_SLASHES}|.*,$"),
    **dict.fromkeys(("cpp", "cuda"), (_CPP, _C_ATTACHED)),
    "cython": (rf"{_PYTHON}|cdef class \w++|cp?def [\w \t*\[\],.&]++(?=\()", r"[#@]"),
    "dart": (
        rf"{_words('abstract base final sealed mixin interface')}(?:class|mixin|enum|extension) \w++"
        rf"|{_NO_CALL}{_words('static final external')}[\w<>\[\],.?]++ \w++(?=\([^;\n]*+\n)",
        _DECORATED,
    ),
    "elixir": (r"(?:defmodule|defprotocol|defimpl|defmacrop?|defp?) [\w.]++[?!]?", r"[#@]"),
    "erlang": (r"(?<=\n)[a-z]\w*+(?=\([^\n]*->)", r"%|-spec\b"),
    "fsharp": (_ML, r"//|\[<|\(\*"),
    "gdscript": (r"(?:static )?func \w++|class(?:_name)? \w++", r"[#@]"),
    **dict.fromkeys(("c", "glsl"), (_C, _C_ATTACHED)),
    "go": (
        r"(?<=\n)(?:func (?:\([^)\n]*+\) ?)?\w++|type \w++(?: (?:struct|interface))?|(?:var|const)\b(?: \w++)?)",
        _SLASHES,
    ),
    "graphql": (
        r"(?<=\n)(?:extend )?(?:type|interface|enum|input|union|scalar|directive|query|mutation|fragment) @?\w++",
        r"[#\"]",
    ),
    "haskell": (r"(?<=\n)(?:(?:data|newtype|class|instance|type|module) [^\n=]*+|[a-z][\w']*+(?= ::))", r"--|\{-"),
    "hcl": (r"(?<=\n)\w++(?: \"[^\"\n]*+\")*+(?= \{)", rf"{_SLASHES}|#"),
    **dict.fromkeys(("groovy", "java"), (_JAVA, _DECORATED)),
    **dict.fromkeys(JS_LANGS, (_JAVASCRIPT, _DECORATED)),
    "julia": (r"(?:function|struct|mutable struct|abstract type|module|macro) [^\s({]++", r"[#@\"]"),
    "kotlin": (
        rf"{_words(_KOTLIN_WORDS)}(?:fun (?:<[^>\n]*+> )?[\w.`<>?]++|(?:class|interface|object) \w++|object\b)",
        _DECORATED,
    ),
    **dict.fromkeys(("clojure", "lisp", "racket", "scheme"), (_LISP, r";")),
    "lua": (r"(?:local )?function [\w.:]++|(?:local )?[\w.]++(?= = function\b)", _DASHES),
    "nim": (r"(?:proc|func|method|template|macro|iterator|converter) [\w`]++", _HASH),
    "objectivec": (
        rf"{_C}|(?<=\n)(?:@(?:interface|implementation|protocol) \w++|[-+] ?\([^)\n]*+\) ?\w++)",
        _C_ATTACHED,
    ),
    "ocaml": (_ML, r"\(\*"),
    "perl": (r"(?:sub|package) [\w:]++", _HASH),
    "php": (
        rf"{_words('abstract final public private protected static readonly')}"
        r"(?:function &?\w++|(?:class|interface|trait|enum) \w++)|(?<=\n)namespace [\w\\]++",
        rf"{_SLASHES}|#",
    ),
    "powershell": (r"(?i:function|filter|class|enum) [\w:-]++", _HASH),
    "proto": (r"(?:message|service|enum|rpc|extend|oneof) \w++", _SLASHES),
    "python": (_PYTHON, r"[#@]"),
    "r": (r"[\w.]++(?= ?(?:<-|=) ?function\b)", _HASH),
    **dict.fromkeys(("crystal", "ruby"), (_RUBY, _HASH)),
    "rust": (
        rf"{_RUST_PUB}(?:(?:default|async|const|unsafe|extern(?: \"[^\"\n]*+\")?) )*+fn \w++"
        rf"|{_RUST_PUB}(?:struct|enum|trait|union|mod|type) \w++"
        r"|(?:unsafe )?impl\b[^\n{]*+|macro_rules! \w++"
        rf"|(?<=\n){_RUST_PUB}(?:const|static)(?: mut)? \w++",
        rf"{_SLASHES}|#!?\[",
    ),
    "scala": (
        rf"{_words('private protected final sealed abstract implicit override lazy case inline open')}"
        r"(?:def [^\s(\[:=]++|(?:class|object|trait|enum|given|extension) \w++|package object \w++)",
        _DECORATED,
    ),
    **dict.fromkeys(("bash", "shell"), (_SHELL, _HASH)),
    "solidity": (
        r"(?:abstract )?(?:contract|interface|library) \w++|(?:function|modifier|event|struct|enum) \w++"
        r"|constructor(?=\()",
        _SLASHES,
    ),
    "sql": (
        r"(?<=\n)(?i:create|alter|drop|insert|update|delete|select|with|merge|grant|revoke|truncate|comment on"
        r"|declare)\b[^\n(;]*+",
        _DASHES,
    ),
    "swift": (
        rf"{_words(_SWIFT_WORDS)}(?:(?:class )?func [^\s(<]++|(?:class|struct|enum|protocol|extension|actor) [\w.]++"
        r"|init\b[?!]?(?=[(<])|deinit\b)",
        _DECORATED,
    ),
    **dict.fromkeys(("csharp", "vala"), (_CSHARP, rf"{_SLASHES}|\[")),
    "zig": (
        rf"{_words('pub export inline extern')}fn \w++"
        r"|(?:pub )?const \w++(?= = (?:packed |extern )?(?:struct|enum|union|opaque)\b)",
        _SLASHES,
    ),
}

_NO_IMPORT = r"(?!.{0,40}?\b(?:require|import)\b)"
_C_DEFINE = r"#[ \t]*+define[ \t]++\w++"
_C_ALIAS = rf"(?<=\n)(?:typedef\b[^\n;{{}}]*?\w(?=;)|\}}[ \t]*+\w++(?=;))|{_C_DEFINE}"
_C_ONE_LINE = rf"(?<=\n){_NO_CALL}[A-Za-z_][\w \t*]*+(?=\([^;\n]*\)[ \t]*+\{{)"
_C_GLOBAL = r"(?<=\n)(?:(?:static|const|extern)[ \t]++)++[\w \t*]++(?=(?:\[[^\]\n]*+\])*+[ \t]*+=)"
_CPP_ONE_LINE = rf"{_NO_CALL}[A-Za-z_][\w*&:<>,]*+[ \t]++[\w \t*&:<>,~]*+(?=\([^;\n{{]*\{{)"
_CPP_CONSTANT = r"(?:(?:static|inline|constexpr|const|extern)[ \t]++)++[\w \t*&:<>,]++(?=(?:\[[^\]\n]*+\])*+[={])"
_JS_MEMBER = (
    r"(?:(?:abstract|async|public|private|protected|static|override|get|set)[ \t]++)++[\w$#]++(?=[(<])"
    rf"|{_NO_CALL}[\w$]++(?=<[^()\n]*+>\([^\n]*+\n)"
)
_JS_NAMING = rf"(?<=\n)(?:declare )?(?:const|let|var) [\w$]++{_NO_IMPORT}|{_JS_MEMBER}"
_PY_NAMING = r"(?<=\n)[^\W\d]\w*+(?=(?: ?: ?[^=\n]++)? ?= ?[^=])"
_RUBY_NAMING = r"[A-Z]\w*+(?= ++(?:\|\|)?= )|(?:alias(?:_method)?|attr_\w++) :?\w++[?!]?"

_NAMING: dict[str, str] = {
    **dict.fromkeys(JS_LANGS, _JS_NAMING),
    **dict.fromkeys(("bash", "shell"), r"(?<=\n)(?:export |readonly |declare (?:-\w++ )?)?[A-Za-z_]\w*+(?==)"),
    **dict.fromkeys(("c", "glsl", "objectivec"), rf"{_C_ALIAS}|{_C_ONE_LINE}|{_C_GLOBAL}"),
    **dict.fromkeys(("cpp", "cuda"), rf"{_C_ALIAS}|using \w++(?= =)|{_CPP_CONSTANT}|{_CPP_ONE_LINE}"),
    **dict.fromkeys(("crystal", "ruby"), _RUBY_NAMING),
    **dict.fromkeys(("csharp", "vala"), rf"(?:{_CSHARP_WORD.replace(' ', '|')})[ \t]++[\w<>\[\],.?& \t]++(?=[=;])"),
    **dict.fromkeys(("cython", "python"), _PY_NAMING),
    **dict.fromkeys(
        ("groovy", "java"),
        rf"(?:{_JAVA_WORD.replace(' ', '|')})[ \t]++[\w<>\[\],.?& \t@]++(?=[=;])"
        r"|(?:<[^()\n;=]*?>|[A-Z]\w*+<[^()\n;=]*?>) (?:[\w<>\[\],.?]++ )?\w++(?=\()"
        rf"|{_NO_CALL}(?!assert\b)[\w<>\[\],.?]++ \w++(?=\([^;\n]*\)(?: throws [\w., ]++)?;)",
    ),
    "julia": r"const \w++(?= ?=)|(?<=\n)[\w!]++(?=\([^\n]*\) = )",
    "kotlin": rf"(?<=\n){_words(_KOTLIN_WORDS)}(?:const )?(?:val|var) [\w.]++|const val \w++|typealias \w++",
    "lua": rf"(?<=\n)(?:local )?[\w.]++(?= ++= ){_NO_IMPORT}",
    "perl": r"(?<=\n)our [$@%]\w++|use constant \w++",
    "php": rf"{_words('public private protected final static')}const (?:\w++ )?\w++(?= ?=)|define\([\"']\w++",
    "r": r"(?<=\n)[\w.]++(?= ?<- )",
    "rust": rf"{_RUST_PUB}(?:const|static)(?: mut)? \w++(?=:)",
    "scala": r"(?:(?:implicit|lazy|final|private) )++val \w++|type [A-Z]\w*+",
    "swift": rf"(?<=\n){_words(_SWIFT_WORDS)}(?:let|var) \w++|static (?:let|var) \w++|typealias \w++",
}
"""Lines that name something and at which no chunk ends."""

CODE_LANGS = frozenset(_SPECS)
