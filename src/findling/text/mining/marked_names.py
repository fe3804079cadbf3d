"""Names that need no capital: what links, quotes and addresses mark, and what Chinese, Japanese and Korean repeat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from findling.text.analysis.stemming import listed
from findling.text.mining.keys import LONGEST_NAME, without_particle

_MARKS = re.compile(
    r"\[\[(?P<wiki>[^\[\]|#\n]{1,80}+)(?:[|#][^\[\]\n]{0,80}+)?\]\]"
    r"|\[(?P<link>[^\[\]\n]{2,80})\]\("
    r"|`(?P<code>[^`\n]{2,60})`"
    r"|“(?P<curly>[^“”\n]{2,60})”|„(?P<low>[^„“”\n]{2,60})[“”]|«(?P<angle>[^«»\n]{2,60})»"
    r'|(?<![\w"])"(?P<straight>[^"\n]{2,60})"(?![\w"])'
    r"|[「『《〈](?P<corner>[^「」『』《》〈〉\n]{2,40})[」』》〉]"
    r"|(?<![\w.+-])(?P<mail>[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,4})"
    r"|(?<![\w@/])@(?P<handle>[A-Za-z]\w{1,38}+)"
)
_MARK_SIGNS = re.compile('[\\[`“„«"「『《〈@]')
_SPEAKER = re.compile(r"^(?:\[[^\]\n]{4,40}\] ?|[\d/.,:TAPM -]{5,28})?([^\W\d_][\w.' -]{1,30}): ", re.M)
_LABELS = frozenset("time date note subject from to cc question answer example warning".split())
"""Words before a colon that are nobody who speaks."""

_MARK_KINDS = {"wiki": "link", "link": "link", "code": "code", "mail": "person", "handle": "person"}


def marked_names(text: str) -> Iterator[tuple[str, str]]:
    """Kind and label of each name that a mark shows: links, quotes, code, addresses, handles, people who speak."""
    if _MARK_SIGNS.search(text):
        for match in _MARKS.finditer(text):
            kind = _MARK_KINDS.get(match.lastgroup or "", "quoted")
            label = match[match.lastgroup or 0]
            if kind != "quoted" or _is_name_like(label):
                yield kind, label
    if ": " in text:
        speakers = Counter(_SPEAKER.findall(text))
        for speaker, count in speakers.items():
            if (
                speaker[0].isupper()
                and speaker.lower() not in _LABELS
                and (count > 1 or len(speakers) > 2)
                and len(speaker.split()) <= 3
            ):
                yield "person", speaker


def _is_name_like(label: str) -> bool:
    """Whether quoted words may be a name: few, and begun like one; a script without capitals has no such sign."""
    first = next((letter for letter in label if letter.isalnum()), "")
    return bool(first) and not first.islower() and len(label.split()) <= LONGEST_NAME


_NO_NAMES = listed("units")
"""Days, months, units and currencies: capitals and backticks mark them, too."""

_WORDS = re.compile(r"[^\W\d_]+(?:['’.-]\w+)*")
_PLURAL = re.compile("['’]?s$")
_COMMAND = re.compile(r"[%=<>|;{}$\\^~?!*]|^[^\w@.]|\s-|^\W*$")


def is_told(label: str) -> bool:
    """Whether a label is worth to be told as a name: no command, and more than numbers, units, days and currencies."""
    if _COMMAND.search(label):
        return False
    words = _WORDS.findall(label.casefold())
    is_measure = any(map(str.isdigit, label))
    told = [word for word in words if _NO_NAMES.isdisjoint((word, _PLURAL.sub("", word)))]
    return any(not (is_measure and len(word) < 2) for word in told)


UNSPACED = re.compile(r"[\u30a1-\u30fa\u30fc・]{3,20}|[\u4e00-\u9fff々]{2,8}|[\uac00-\ud7a3]{2,10}")
"""Words of katakana, Chinese characters and Hangul."""


def repeated_names(text: str, title: str) -> list[tuple[str, int]]:
    """Words of scripts without capitals that a passage repeats, or that its title has, with their counts."""
    counts = Counter(_unspaced_words(text))
    return [(word, count) for word, count in counts.items() if count > 1 or word in title]


def _unspaced_words(text: str) -> Iterator[str]:
    for word in UNSPACED.findall(text):
        yield without_particle(word) if "\uac00" <= word[0] <= "\ud7a3" else word
