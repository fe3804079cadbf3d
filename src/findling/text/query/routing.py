"""Routing of a query by a score over its words: no model, every decision with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from findling.domain.values import record
from findling.text.analysis.lines import is_sentence
from findling.text.analysis.stemming import listed
from findling.text.query.lexer import OPENING_QUOTES, QUOTES


def words(text: str) -> list[str]:
    """The words of a query in lower case; an identifier, a path or a pattern stays whole (`list.sort` is no `list`)."""
    found: list[str] = []
    for word in text.split():
        bare = word.strip(_EDGES)
        if bare.isalnum() or _shape_of(bare):
            found.append(bare.lower())
        else:
            found += re.findall(_LETTERS, bare.lower())
    return found


def word_count(text: str, tokens: Sequence[str]) -> int:
    """Number of words in a text, given its `words`: two characters of a script without spaces count as one."""
    return len(tokens) if text.isascii() else max(len(tokens), len(re.findall(_UNSPACED, text)) // 2)


def shapes(text: str, tokens: Sequence[str], count: int) -> dict[str, str]:
    """Shapes of the query, each with its reason; `tokens` and `count` are its `words` and `word_count`.

    Any of `identifier`, `number`, `path`, `url`, `regex`, `code`, `quoted`, `question` and `sentence`; if none,
    `keywords`, and `empty` when there is no word at all.
    """
    if not any(map(str.isalnum, text)):
        return {"empty": "no letter and no digit"}
    found = _word_shapes(text.split())
    if any(mark in text for mark in OPENING_QUOTES) and re.search(_QUOTE, text):
        found["quoted"] = "words in quotation marks"
    if _is_question(text, tokens):
        found["question"] = f"it begins with {tokens[0]}" if tokens[0] in _ASKING else "it asks"
    if is_sentence(text):
        found["sentence"] = "it is written out"
    return found or {"keywords": "words and nothing else"}


def scripts(text: str) -> list[str]:
    """The scripts of a text in the order in which they occur, by name: `latin`, `cjk`, `hangul`, `cyrillic`, …"""
    if text.isascii():
        return ["latin"] if any(map(str.isalpha, text)) else []
    starts = [(match.start(), name) for name, letters in _SCRIPTS.items() if (match := re.search(letters, text))]
    return [name for _, name in sorted(starts)]


_EDGES = f"{QUOTES}'`([{{<>}}]),;:!?…‘’？！。、，؟."
_LETTERS = r"\w+(?:['’]\w+)*"
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_QUOTE = rf"(?<!\w)[{OPENING_QUOTES}](?=[^\s{QUOTES}])"

_SCRIPTS = {
    "latin": "[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]",
    "greek": "[\u0370-\u03ff\u1f00-\u1fff]",
    "cyrillic": "[\u0400-\u052f]",
    "armenian": "[\u0531-\u058f]",
    "hebrew": "[\u05d0-\u05ea]",
    "arabic": "[\u0620-\u06ff\u0750-\u077f]",
    "indic": "[\u0900-\u0dff]",
    "thai": "[\u0e00-\u0e7f]",
    "georgian": "[\u10a0-\u10ff]",
    "hangul": "[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]",
    "cjk": "[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]",
}

_CODE = r"[\w\])]\(|\w\[|[=!]=|[-=]>|::|&&|[-+*/]=|[{};]$|^[{}]"


def _word_shapes(raw: Sequence[str]) -> dict[str, str]:
    """The shapes of single words, each with the first word that has it.

    `identifier`, `path` and `url` are for a query of nothing else: among other words they are a piece of `code` at
    most, since then the words are asked for as well. A `number` is a plain word beside anything but numbers.
    """
    bare = [word.strip(f"{QUOTES},;!?") or word for word in raw]
    given = [_shape_of(word) for word in bare]
    if set(given) != {"number"}:
        given = ["" if shape == "number" else shape for shape in given]
    found: dict[str, str] = {}
    for word, shape in zip(bare, given, strict=True):
        if "" in given and shape in ("identifier", "path", "url"):
            # covid19 and utf-8 are identifiers by themselves, and plain words in a sentence.
            shape = "" if shape == "url" or re.fullmatch(_WITH_DIGITS, word) else "code"
        if not shape and not word.isalnum() and re.search(_CODE, word):
            shape = "code"
        if shape:
            found.setdefault(shape, word)
    return found


def _shape_of(word: str) -> str:
    """Kind of a single word: `number`, `url`, `path`, `regex`, `identifier` or empty."""
    if any(map(str.isdigit, word)) and not any(map(str.isalpha, word)):
        return "number"  # 2024, 3.11.7, 12:30, $1,000
    if word.isalnum():
        return "identifier" if _may_be_identifier(word) and _is_identifier(word) else ""
    if "://" in word[:16] or word.startswith("www."):
        return "url"
    if _is_path(word):
        return "path"
    if re.search(_REGEX, word):
        return "regex"
    return "identifier" if _is_identifier(word) else ""


_REGEX = (
    r"(?<!\*)\.[*+](?!\.)"  # foo.*bar, but no **.*.py
    r"|\\[bdwsBDWS.(\[{^$|]"
    r"|\[\^?(?:\w-\w|\\\w)"  # [a-z], [^\s]
    r"|\[[^\[\]\s]{1,64}\][*+?]"
    r"|\(\?[:=!<iP]"
    r"|\{\d{1,6}(?:,\d{0,6})?\}"
    r"|^\^[\w\[\\(]"
)
_DRIVE = r"[A-Za-z]:[\\/]"
_GLOB = r"(?:\*\*?/)?\*\.\w|\w\*\.\w"
_BACKSLASHES = r"[\w.-]+(?:\\[\w.-]{2,})+"
_EXTENSION = r"\.[A-Za-z]\w{0,7}$"


def _is_path(word: str) -> bool:
    """`src/app/main.py`, `./x`, `/etc`, `notes/`, `C:\\x`, `*.md`; but neither `and/or` nor `24/7` nor `1/2/2024`."""
    if ("*." in word and re.match(_GLOB, word)) or (word[1:2] == ":" and re.match(_DRIVE, word)):
        return True
    if "\\" in word:
        return re.fullmatch(_BACKSLASHES, word) is not None and (word.count("\\") > 1 or _has_extension(word))
    if "/" not in word or any(letter in word for letter in "\"'()[]{}|^$=,;"):
        return False
    if word.startswith(("/", "./", "../", "~/")) or word.endswith("/"):
        return any(map(str.isalnum, word))
    return _has_extension(word) or (word.count("/") > 1 and any(map(str.isalpha, word)))


def _has_extension(word: str) -> bool:
    return re.search(_EXTENSION, word[-9:]) is not None


_IDENTIFIER = (
    r"(?a:[$@]?(?:"
    r"(?=[A-Za-z0-9]*[a-z0-9][A-Z])[A-Za-z][A-Za-z0-9]*"  # getUser, HashMap
    r"|(?=[A-Z]{2,}[a-z]{2})[A-Z][A-Za-z0-9]*"  # HTTPServer
    r"|(?=\w*[A-Za-z])(?:_+\w+|[A-Za-z0-9]+_\w*)"  # snake_case, MAX_VALUE, __init__
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w+)+"  # os.path
    r"|(?:::)?[A-Za-z_~]\w*(?:(?:::|->|#)~?[A-Za-z_]\w*)+"  # std::vector
    r"|[A-Za-z_]\w*(?=\(\)$)"  # open()
    r")(?:\(\))?)"
)
_WITH_DIGITS = r"(?=[0-9.-]*[A-Za-z])(?=[A-Za-z.-]*[0-9])[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*"
"""x509, utf-8, CVE-2024-3094, v1.2.3."""


def _may_be_identifier(word: str) -> bool:
    """Whether a word of letters and digits has anything that a plain one has not; it spares most words a pattern."""
    return word.isascii() and not (word[1:].islower() if word.isalpha() else word.isdigit())


def _is_identifier(word: str) -> bool:
    return bool(re.fullmatch(_IDENTIFIER, word) or re.fullmatch(_WITH_DIGITS, word))


_ASKING = listed("question")
"""Without words that mean something else in most queries: `comment` and `come`, how, and `var`, where in Swedish."""

_ASKING_IF = listed("questionIf")
"""Words that begin a question only when enough follows: `is it safe to retry`, but not `can opener`."""

_ASKING_UNSPACED = (
    "什么|什麼|为何|为什|為什|怎么|怎麼|怎样|如何|多少|哪|谁|誰|吗|嗎|なぜ|どう|いつ|どこ|どの|どれ|何が|何を|何で|ですか|ますか"
    "|무엇|뭐|왜 |왜$|어떻게|언제|어디|누가|누구|얼마|อะไร|ทำไม|อย่างไร|เมื่อไร|ที่ไหน"
)
_ASKING_ENDS = ("?", "？", "؟")


def _is_question(text: str, tokens: Sequence[str]) -> bool:
    if not tokens:
        return False
    if text.endswith(_ASKING_ENDS) and not (len(tokens) == 1 and _shape_of(text) == "regex"):
        return True
    if not text.isascii() and re.search(_ASKING_UNSPACED, text):
        return True
    first = text.split(None, 1)[0]
    # WHO guidelines: in capitals, and only itself, it is a name.
    if len(tokens) < 2 or (first.isupper() and len(first) > 1 and not text.isupper()):
        return False
    return tokens[0] in _ASKING or (tokens[0] in _ASKING_IF and len(tokens) > 3)


@record()
class Route:
    """Shapes of a query and the consequences.

    `complexity` runs from 0 to 1 and gives the `kind`. Each of `signals` is its name and the words that gave it
    (`comparison: difference, between`). `shape` holds what the query is made of, and then its scripts. `depth_factor`
    is how deep to look, as a multiple of the usual; `graph` is the walk that a graph leg is to do; `reasons` say why.
    """

    complexity: float
    kind: str
    signals: tuple[str, ...]
    shape: tuple[str, ...]
    depth_factor: float
    graph: str
    reasons: tuple[str, ...]


KINDS = (
    ("simple", 0.3, 0.8, "none"),
    ("moderate", 0.6, 1.0, "low"),
    ("complex", 0.8, 1.2, "dual"),
    ("very_complex", float("inf"), 1.5, "dual"),
)
"""Each kind of query: the complexity it stays below, its depth factor and its graph walk."""

_HOPS = "how does, how do, why does, why do, what happens when, relationship between, impact of, effect of"
SIGNALS = (
    ("comparison", 0.20, ("vs", "versus", "compare", "comparison", "difference", "between")),
    ("temporal", 0.15, ("when", "before", "after", "history", "timeline", "since", "until")),
    ("aggregation", 0.15, ("all", "every", "summary", "overview", "list", "total")),
    ("multi-hop", 0.20, tuple(_HOPS.split(", "))),
    ("complex", 0.15, ("explain", "analyze", "evaluate", "describe how")),
)
"""Each signal: what it adds to the complexity, once, and the words and phrases that give it."""


def route(query: str) -> Route:
    """Route a query, which comes without its operators."""
    text = query[:_LONGEST].strip()
    tokens = words(text)
    count = word_count(text, tokens)
    complexity, signals, reasons = _complexity(tokens, count)
    kind, _, depth_factor, graph = next(kind for kind in KINDS if complexity < kind[1])
    walk = "no graph walk" if graph == "none" else f"{graph} graph walk"
    reasons.append(f"complexity {complexity:.2f}: {kind}, depth ×{depth_factor:g}, {walk}")
    shape = shapes(text, tokens, count)
    reasons += [f"{name}: {reason}" for name, reason in shape.items()]
    return Route(complexity, kind, tuple(signals), (*shape, *scripts(text)), depth_factor, graph, tuple(reasons))


_LONGEST = 4_000
"""Characters that count: a pasted file shows at its beginning what it is, and is to cost no more than that."""

_WORDS_TO_ONE, _MOST_FOR_LENGTH = 20, 0.25


_FIRST_WORDS = frozenset(phrase.partition(" ")[0] for _, _, phrases in SIGNALS for phrase in phrases)


def _complexity(tokens: Sequence[str], count: int) -> tuple[float, list[str], list[str]]:
    """The score, its signals, and a reason for each part of it."""
    score = min(count / _WORDS_TO_ONE, _MOST_FOR_LENGTH)
    reasons = [f"{count} {'word' if count == 1 else 'words'}: +{score:.2f}"]
    signals: list[str] = []
    if _FIRST_WORDS.isdisjoint(tokens):
        return score, signals, reasons
    # Between spaces a phrase begins and ends with a whole word: `show documents` has no `how do`.
    spaced = f" {' '.join(tokens)} "
    for name, weight, phrases in SIGNALS:
        if found := [phrase for phrase in phrases if phrase in spaced and f" {phrase} " in spaced]:
            score += weight
            signals.append(f"{name}: {', '.join(found)}")
            reasons.append(f"{signals[-1]}: +{weight:.2f}")
    # Rounded, so that 0.25 + 0.20 + 0.15 is 0.6 and not a hair beside the threshold.
    return min(round(score, 6), 1.0), signals, reasons
