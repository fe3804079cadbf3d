"""Words that a text itself says mean the same: acronyms that it explains, other names that it gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from findling.text.mining.keys import glossary_key, lower_key
from findling.text.mining.noun_runs import QUOTES, clause_after, clause_before, noun_after, noun_before, noun_unspaced

_SHAPE = re.compile(r"[^\W_](?:[\w&/+-]|\.(?=\w)){1,9}\.?")
_PLURAL = re.compile(r"(?<=[A-ZÄÖÜ])['’]?s$")
_POSSESSIVE = re.compile(r"['’]s?$")
_NUMERONYM = re.compile(r"([^\W\d_])(\d{1,2})([^\W\d_])")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SMALL = frozenset(
    "a an and as at by de del der des die das du e el et for für im in into la le les los of on or the to und "
    "van vom von with y zu zum zur à".split()
)
_DETERMINERS = frozenset("a an the der die das den dem des ein eine le la les el los".split())
_SPOKEN = {"2": ("to", "two"), "4": ("for", "four"), "x": ("ex", "cross", "trans")}
"""Other readings of a letter: P2P is peer-to-peer, XML is extensible markup language."""


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def _short_form(text: str) -> str:
    """The text as an acronym in the singular, or nothing when it has not the shape of one: 2 to 10 letters and signs.

    Lower-case letters are allowed; whether they are an acronym shows when words are found for them.
    """
    if _SHAPE.fullmatch(text) is None:
        return ""
    text = _PLURAL.sub("", text.rstrip("."))
    return text if sum(map(str.isalpha, text)) > 1 else ""


def _expansion_before(short: str, text: str) -> str:
    """The words at the end of the text that a short form stands for, or nothing."""
    words = _words(text)[-_most_words(short) :]
    count = _spelled(short, words, inside=False) or _spelled(short, words, inside=True)
    return _written_out(short, text, words[len(words) - count :])


def _expansion_after(short: str, text: str, *, whole: bool) -> str:
    """The words at the beginning of the text, or with `whole` all its words, that a short form stands for."""
    words = _words(text)
    if not words or not _begins(words[0].text, short[0].lower()):
        return ""
    # Initials of more words go before letters inside of fewer: WPT is `web platform tests`, not `web platform`.
    for inside in (False, True):
        for count in range(len(words) if whole else 2, min(len(words), _most_words(short)) + 1):
            if _spelled(short, words[:count], inside=inside) == count:
                return _written_out(short, text, words[:count])
    return ""


def _words(text: str) -> list[_Word]:
    return [_Word(found.group().lower(), *found.span()) for found in _WORD.finditer(text)]


def _most_words(short: str) -> int:
    return min(len(short) + 5, 2 * len(short))


def _written_out(short: str, text: str, words: Sequence[_Word]) -> str:
    """The words as they stand in the text, unless they cannot be an expansion after all."""
    if not words or any(word.text == short.lower() for word in words):
        return ""
    # A small word at the end belongs to it only when the last letter is its own: SSO is `single sign-on`.
    if words[-1].text in _SMALL and not _begins(words[-1].text, short.lower()[-1]):
        return ""
    if words[0].text in _DETERMINERS and text[words[0].start].islower():
        return ""
    written = _POSSESSIVE.sub("", " ".join(text[words[0].start : words[-1].end].split()))
    return written if len(written) > len(short) + 1 else ""


def _spelled(short: str, words: Sequence[_Word], *, inside: bool) -> int:
    """Number of last words that spell the short form; 0 for none. `inside`: with letters from inside words."""
    lowered = short.lower()
    if inside and words and (numeronym := _NUMERONYM.fullmatch(lowered)):
        first, between, last = numeronym.groups()
        word = words[-1].text
        if len(word) == int(between) + 2 and word[0] == first and word[-1] == last:
            return 1
    # A word in small letters may be any word in parentheses: it needs the initials of three or more words.
    if (inside or len(short) < 3) and not _is_capital(short):
        return 0
    letters = "".join(filter(str.isalnum, lowered))
    return _aligned(letters, [word.text for word in words], inside=inside) or 0


def _is_capital(short: str) -> bool:
    return sum(character.isupper() or character.isdigit() for character in short) > 1


def _aligned(letters: str, words: Sequence[str], *, inside: bool) -> int | None:
    """Number of last words that give the letters: each its initial and, `inside`, any that follow it in a row."""
    if not letters:
        return 0
    if not words:
        return None
    rest, word = words[:-1], words[-1]
    for at in range(len(letters) - 1, -1, -1):
        if not _in_a_row(letters[at + 1 :], word):
            break
        if _begins(word, letters[at]):
            found = _aligned(letters[:at], rest, inside=inside)
            if found is not None:
                return found + 1
        if not inside:
            break
    if word not in _SMALL:
        return None
    found = _aligned(letters, rest, inside=inside)
    return None if found is None else found + 1


def _begins(word: str, letter: str) -> bool:
    return word.startswith((letter, *_SPOKEN.get(letter, ())))


def _in_a_row(letters: str, word: str) -> bool:
    at = 0
    for letter in letters:
        at = word.find(letter, at + 1)
        if at < 0:
            return False
    return True


LONGEST_SNIPPET = 160
_REACH = 120
"""Characters before an explanation in which the explained words are looked for."""


class SynonymCandidate(NamedTuple):
    """Two ways to say one thing, for a person to judge: `group` is the written-out one, `surface` the other.

    `source` is how it was found: `acronym`, `also`, `translation`, `variant`, `co-occurrence` or `model`; `snippet` is
    one line of where it was first seen.
    """

    surface: str
    group: str
    source: str
    snippet: str


def prose(text: str) -> str:
    """The text without code blocks, link targets and emphasis, which stand between a word and its explanation."""
    if "```" in text or "~~~" in text:
        text = _CODE_BLOCK.sub("\n\n", text)
    if "](" in text:
        text = _LINK_TARGET.sub("]", text)
    if "\\" in text:
        text = _COMMAND.sub("", text)
    for sign in "*`[]{}":
        text = text.replace(sign, "")
    return text


_MOST_PLACES = 10_000
"""Places of one text that one pattern looks at closely, 30 µs each: no text that people write has more."""


def _found(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return islice(pattern.finditer(text), _MOST_PLACES)


_CODE_BLOCK = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1", re.MULTILINE | re.DOTALL)
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")
_COMMAND = re.compile(r"\\(?:f[A-Z]|[a-z]+(?=\{))")


def acronyms(text: str) -> Iterator[SynonymCandidate]:
    """Acronyms beside what they are short for: `Time To Live (TTL)`, `TTL (time to live)`, `TTL stands for …`."""
    for found in _found(_PARENTHESES, text):
        inside = found[1].strip(QUOTES)
        before = text[max(0, found.start() - _REACH) : found.start()]
        if short := _short_form(inside):
            yield from _candidate(short, _expansion_before(short, clause_before(before)), "acronym", text, found)
        elif short := _last_short_form(before):
            yield from _candidate(short, _expansion_after(short, inside, whole=True), "acronym", text, found)
    for found in _found(_DEFINITION, text):
        yield from _explained(_capitals(found[1]), found[2], text, found)
    if any(words in text for words in _WORDS_FOR_SHORT):
        for found in _found(_STANDS_FOR, text):
            before = text[max(0, found.start() - 20) : found.start()]
            yield from _explained(_last_short_form(f"{before} "), found[1], text, found)


def _explained(short: str, after: str, text: str, found: re.Match[str]) -> Iterator[SynonymCandidate]:
    if short:
        yield from _candidate(short, _expansion_after(short, clause_after(after), whole=False), "acronym", text, found)


_PARENTHESES = re.compile(r"\((?<=\s\()([^(),;]{2,100})[),;]")
_LAST_WORD = re.compile(r"(?<![^\s\"'“„«])([^\W_][\w&/+-]{1,9})[\"'”“»]?\s$")
_DEFINITION = re.compile(r"^[ \t>•+-]*([^\W\d_a-z][\w&/+-]{1,9})[ \t]*(?::|—|–| -)[ \t]+([^\n]{5,100})", re.MULTILINE)
_WORDS_FOR_SHORT = ("stands", "short for", "steht für")
_STANDS_FOR = re.compile(r"\s(?:is\sshort\sfor|stands\sfor|steht\sfür)\s([^.;]{5,100})")


def _last_short_form(text: str) -> str:
    found = _LAST_WORD.search(text, max(0, len(text) - 16))
    return _capitals(found[1]) if found else ""


def _capitals(word: str) -> str:
    """The word as a short form; one in lower case that something is said about is just a word."""
    return _short_form(word) if sum(map(str.isupper, word)) > 1 else ""


def other_names(text: str) -> Iterator[SynonymCandidate]:
    """Pairs of names for one thing: `X (also Y)`, `X, a.k.a. Y`, `X, auch Y genannt`, `X(일명 Y)`, `X（又称Y）`."""
    for word, marker, link in _MARKERS:
        if word not in text:  # most texts have none, and this is the quickest way to tell
            continue
        for found in _found(marker, text):
            before = text[max(0, found.start() - _REACH) : found.start()]
            if linked := link.search(before):
                is_whole = found.re.groups > 0
                after = found[1] if is_whole else text[found.end() : found.end() + 80]
                yield from _named(before[: linked.start()], noun_after(after, whole=is_whole), text, found)
    if _UNSPACED.search(text):
        yield from _unspaced_names(text)


def _named(before: str, alias: str, text: str, found: re.Match[str]) -> Iterator[SynonymCandidate]:
    if (short := _short_form(alias)) and (long := _expansion_before(short, clause_before(before))):
        return _candidate(short, long, "acronym", text, found)
    return _longer_first(noun_before(before), alias, text, found)


_LINK = re.compile(r"(?:,|\(|\s(?:is|are|was|were)|\s[–—-])\s*(?:sometimes\s|often\s|commonly\s|which\sis\s)?$")
_COMMA = re.compile(r"\s*(?:,|\()\s*(?:or\s|oder\s)?$")
_SPACE = re.compile(r"\s*(?:,|\(|\s)\s*$")
_OPEN = re.compile(r"\s\($")
_SHORT_NAME = r"([^\s,;()]{2,30}(?:\s[^\s,;()]{1,30}){0,2})"
_MARKERS = [
    ("also", re.compile(r"also\s(?:known\sas|called|referred\sto\sas|termed)\s"), _LINK),
    ("(also", re.compile(rf"also:?\s{_SHORT_NAME}\)"), _OPEN),
    ("a.k.a", re.compile(r"a\.k\.a\.?:?\s"), _SPACE),
    ("aka", re.compile(r"aka\s"), _COMMA),
    ("for short", re.compile(rf"(?<=[,(])\s?(?:or\s)?{_SHORT_NAME}\sfor\sshort\b"), _COMMA),
    ("auch", re.compile(r"auch\sbekannt\sals\s"), _COMMA),
    ("auch", re.compile(r"auch\s(?:als\s)?([^,.;()]{2,60}?)\s(?:genannt|bezeichnet|bekannt)\b"), _COMMA),
    ("(auch", re.compile(rf"auch:?\s{_SHORT_NAME}\)"), _OPEN),
    ("kurz", re.compile(rf"kurz:?\s{_SHORT_NAME}[),]"), _COMMA),
    ("(engl", re.compile(rf"engl(?:\.|isch):?\s{_SHORT_NAME}[),]"), _OPEN),
]


def _unspaced_names(text: str) -> Iterator[SynonymCandidate]:
    for pattern in _UNSPACED_MARKERS:
        for found in _found(pattern, text):
            name = noun_unspaced(text[max(0, found.start() - _REACH) : found.start()])
            yield from _longer_first(name, found[1].strip(QUOTES), text, found)
    for found in _found(_TRANSLATION, text):
        name = noun_unspaced(text[max(0, found.start() - _REACH) : found.start()])
        yield from _candidate(found[1].strip(), name, "translation", text, found)


_UNSPACED = re.compile(r"[\u3040-\ud7af]")
_NAME = r"([^（()）,，、。;；:\n]{1,40}?)"
_UNSPACED_MARKERS = (
    re.compile(
        rf"[（(](?:일명|약칭|又称|又稱|也称为|也称|也稱|亦称|简称|簡稱|別名|通称|略称)[\s:：、]*{_NAME}\s*[)）]"
    ),
    re.compile(rf"[（(]{_NAME}\s*とも(?:いう|言う|呼ぶ|呼ばれる)?[)）]"),
)
_TRANSLATION = re.compile(
    r"(?<=[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af」』”])\s?[（(]([A-Za-z][A-Za-z .&/+-]{1,40})[)）]"
)


def is_one_term(surface: str, other: str) -> bool:
    """Whether a glossary takes two surfaces for the same one already."""
    return glossary_key(surface) == glossary_key(other) or lower_key(surface) == lower_key(other)


def snippet_of(text: str, start: int, end: int) -> str:
    """Whole words around a place, in one line."""
    margin = max(0, LONGEST_SNIPPET - (end - start)) // 2
    first, last = max(0, start - margin), min(len(text), end + margin)
    if first and not text[first - 1].isspace():
        first = next((at for at in range(first, start) if text[at].isspace()), first)
    if last < len(text) and not text[last].isspace():
        last = next((at for at in range(last, end, -1) if text[at - 1].isspace()), last)
    return " ".join(text[first:last].split())[:LONGEST_SNIPPET]


def _longer_first(name: str, alias: str, text: str, found: re.Match[str]) -> Iterator[SynonymCandidate]:
    surface, group = (name, alias) if len(alias) > len(name) else (alias, name)
    return _candidate(surface, group, "also", text, found)


def _candidate(surface: str, group: str, source: str, text: str, found: re.Match[str]) -> Iterator[SynonymCandidate]:
    # A name may span lines, and U+2028 ends a line, too.
    surface, group = " ".join(surface.split()), " ".join(group.split())
    if surface and group and (source == "acronym" or not is_one_term(surface, group)):
        yield SynonymCandidate(surface, group, source, snippet_of(text, *found.span()))
