"""Names in a text by rules: the things that a passage is about, and the same things in a question.

    The Journal of Ann O'Neil's lab, [[Radium (band)|the band]]  →  journal of ann oneil, radium band, radium

A key is one for all ways to write a name that make no difference: case, width, accents, hyphens, a possessive `'s`, a
leading article. No rule knows a language beyond its little words; scripts without capitals give what they quote, link
or repeat. Every expression is linear in its text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from math import log
from typing import NamedTuple

from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.analysis.stemming import listed
from findling.text.mining.keys import BARE, LONGEST_NAME, entity_key, title_forms
from findling.text.mining.marked_names import UNSPACED, marked_names, repeated_names
from findling.text.mining.noun_runs import FUNCTION_WORDS


class Mention(NamedTuple):
    """A thing that a passage names: its key, the way it is written there, its kind and its weight.

    `kind` is `title`, `heading`, `name`, `link`, `quoted`, `code`, `person`, `date` or `model`.
    """

    key: str
    label: str
    kind: str
    weight: float


MOST_MENTIONS = 48
"""Mentions of one passage; those of the least weight are left out."""

WEIGHTS = {
    "title": 3.0,
    "heading": 2.0,
    "code": 2.0,
    "link": 1.5,
    "person": 1.5,
    "quoted": 1.0,
    "name": 1.0,
    "date": 0.3,
}
"""Weight of a mention by its kind. A title says what a passage is about; a year hardly says anything."""

_LONGEST_KEY = 80


def mentions_of(
    text: str,
    title: str = "",
    headings: Sequence[str] = (),
    *,
    defines: Iterable[str] = (),
    people: Iterable[str] = (),
) -> list[Mention]:
    """The names of one passage, the heaviest first; `defines` are names that its code defines, `people` its authors."""
    found: dict[str, Mention] = {}
    for label, kind, weight in _weighed(text, title, headings, defines, people):
        key = entity_key(label)
        known = found.get(key)
        if known is None:
            if 2 <= len(key) <= _LONGEST_KEY:
                found[key] = Mention(key, label.strip(), kind, weight)
        elif known.weight < weight:
            # Weights of one key do not add up, and a name may be more than that.
            found[key] = Mention(key, known.label, known.kind if kind == "name" else kind, weight)
    return sorted(found.values(), key=_heaviest_first)[:MOST_MENTIONS]


def _weighed(
    text: str, title: str, headings: Sequence[str], defines: Iterable[str], people: Iterable[str]
) -> Iterator[tuple[str, str, float]]:
    """Label, kind and weight of every mention, those first that say most of a passage."""
    for label, share in title_forms(title):
        yield label, "title", WEIGHTS["title"] * share
    for heading in headings:
        for label, share in title_forms(heading):
            yield label, "heading", WEIGHTS["heading"] * share
    for name in defines:
        yield name, "code", WEIGHTS["code"]
    for person in people:
        yield person, "person", WEIGHTS["person"]
    for kind, label in marked_names(text):
        yield label, kind, WEIGHTS[kind]
    for label, count in _resolved(Counter(_runs(text)), [title, *headings]).items():
        yield label, "name", _counted(count)
        if " of " in label:
            for part in _inner(label):
                yield part, "name", BARE
    for heading in (title, *headings):
        for label in _title_parts(heading):
            yield label, "name", 1.0
    if not text.isascii():
        for label, count in repeated_names(text, title):
            yield label, "name", _counted(count)
    for label in dict.fromkeys(_YEAR.findall(text)):
        yield label, "date", WEIGHTS["date"]


def _counted(count: int) -> float:
    """Weight of a name that stands there so often."""
    return 1.0 if count == 1 else round(1 + log(count), 3)


def _heaviest_first(mention: Mention) -> tuple[float, int, str]:
    # Of equal weights the name of more words comes first: it says more, and a cut after ten loses nothing by it.
    return -mention.weight, -mention.key.count(" "), mention.key


# Titles


def _title_parts(title: str) -> Iterator[str]:
    """Names within a title: `Indiana` in Alcohol laws of Indiana, `Nigeria` in Baure, Nigeria."""
    for match in _run_pattern(title.isascii()).finditer(title.replace("_", " ")):
        for name in _parts(match[0]):
            if name.lower() not in _LITTLE and len(name) < len(title):
                yield name
                yield from _inner(name)


def _inner(name: str) -> list[str]:
    """Names within a name, on both sides of `of`."""
    parts = name.split(" of ")
    return [part for part in parts[len(parts) < 2 :] if part[:1].isupper() and part.lower() not in _LITTLE]


# Capitalised runs

_PARTICLES = (
    "of|de|van|von|der|den|des|du|da|di|del|della|dos|das|do|la|le|les|el|al|bin|ibn|zu|zur|af|av|ter|ten|upon|for|the|"
    "y|e|et|und|och|og|en|on|in|and"
)
_JOINING = frozenset({"and", "und", "et", "och", "og", "in", "on", "for", "en", "e", "y"})
"""Particles that join two names as often as they stand within one: they need `of` or its like before them."""

_YEAR = re.compile(r"[12](?<![\w.,/-][12])(?:(?<=1)[0-9]|0)[0-9]{2}(?![\w/-]|[.,]\d)")
_SENTENCE_END = frozenset(".!?:\n\r•*#>|。！？")


@cache
def _run_pattern(is_ascii: bool) -> re.Pattern[str]:
    """Words with capitals in a row, with particles between them."""
    if is_ascii:
        capital = "A-Z"
    else:
        # Above come scripts without capitals, and two dead ones with them.
        capital = "".join(
            re.escape(letter) for letter in map(chr, range(0xA800)) if letter.isupper() or letter.istitle()
        )
    rest = rf"(?:\.(?:[{capital}]\.)*+(?!\w)|\w*+(?:[-'’&]\w++)*+)"
    between = rf" (?:(?:{_PARTICLES}) (?:(?:{_PARTICLES}) )?)?+"
    # The look behind comes second: a search for one of a set of letters is the fastest that there is.
    first = rf"[{capital}](?<!\w[{capital}]){rest}"
    return re.compile(rf"{first}(?:{between}[{capital}]{rest}){{0,{LONGEST_NAME - 1}}}+")


def _runs(text: str) -> Iterator[str]:
    """Every name, as often as it stands there; the first word of a sentence counts when it is seen elsewhere."""
    unsure: list[str] = []
    sure: set[str] = set()
    for match in _run_pattern(text.isascii()).finditer(text):
        run = match[0]
        is_first = _begins_sentence(text, match.start())
        for part in (run,) if _PARTICLE_WORDS.isdisjoint(run.split(" ")) else _parts(run):
            name = _without_last(_without_first(part) if is_first else part)
            is_doubtful = is_first and name is part and " " not in name
            is_first = False
            if len(name) < 2 or _is_little(name):
                continue
            if is_doubtful and not _is_acronym(name):
                unsure.append(name)
            else:
                sure.add(name)
                if " " in name:
                    sure.update(name.split(" "))
                yield name
    if not unsure:
        return
    repeated, words = Counter(unsure), frozenset(text.split())
    for name in unsure:
        # A word that sentences begin with twice, and that is never in lower case, is a name rather than a habit.
        if name in sure or (repeated[name] > 1 and name.lower() not in words):
            yield name


_LITTLE = FUNCTION_WORDS | SENTENCE_WORDS | listed("beginning")
"""Words that bind, and those that sentences and chats begin with; articles begin names, as in Los Angeles."""
_CONTRACTED = re.compile(r"n['’]t$|['’]\w{1,2}$")


def _is_little(word: str) -> bool:
    """Whether a word is little, also where it is contracted: `I'm`, `Let’s`, `Don't`. `Anna's` is not."""
    lower = word.lower()
    head = _CONTRACTED.sub("", lower)
    return lower in _LITTLE or (head != lower and (head in _LITTLE or lower.endswith(("n't", "n’t"))))


def _begins_sentence(text: str, start: int) -> bool:
    """Whether a sentence, a line or an item of a list begins there."""
    place = start - 1
    while place >= 0 and start - place < 6 and text[place] in " \t\"'“”‘’()[]*_-":
        place -= 1
    return place < 0 or text[place] in _SENTENCE_END


def _is_acronym(word: str) -> bool:
    return word[1:2].isupper() or any(map(str.isdigit, word))


def _without_first(name: str) -> str:
    """The name without the little words that a sentence begins with."""
    first, _, rest = name.partition(" ")
    while rest and _is_little(first) and first not in _ROMANCE:
        name = rest
        first, _, rest = name.partition(" ")
    return name


_ROMANCE = frozenset("El La Las Le Les Lo Los".split())
"""Articles before a capital belong to a name, since these languages write nouns small: Los Angeles, La Paz."""


def _without_last(name: str) -> str:
    """The name without the first word of a sentence behind it, as in METHODS We. Good Friday stays whole."""
    first, _, last = name.rpartition(" ")
    return first if first and last.lower() in _BEGINNING else name


_BEGINNING = frozenset("the we our to in of an it they he she this that these those there at on for as with by".split())


def _parts(run: str) -> Iterator[str]:
    """The names of a run: cut at `and` and its like, unless `of` stands before as in Ministry of Trade and Industry."""
    words = run.split(" ")
    begin, is_bound = 0, False
    for place, word in enumerate(words):
        if word in _JOINING and not is_bound:
            yield " ".join(words[begin:place])
            begin = place + 1
        elif word in ("of", "for"):
            is_bound = True
    while begin < len(words) and words[begin] in _PARTICLE_WORDS:
        begin += 1
    if begin < len(words):
        yield " ".join(words[begin:])


_PARTICLE_WORDS = frozenset(_PARTICLES.split("|"))


def _resolved(names: Counter[str], titles: Sequence[str]) -> dict[str, int]:
    """Names with their counts; `Curie` beside one `Marie Curie` is hers."""
    longer: dict[str, set[str]] = {}
    for name in (*names, *titles):
        if " " not in name:
            continue
        words = name.split()
        if 1 < len(words) <= 4:
            for word in (words[0], words[-1]):
                longer.setdefault(word, set()).add(name)
    counts: dict[str, int] = {}
    for name, count in names.items():
        whole = longer.get(name, ())
        label = next(iter(whole)) if len(whole) == 1 else name
        counts[label] = counts.get(label, 0) + count
    return counts


# Questions

_LONGEST_GRAM = 5
_MOST_WORDS, _MOST_KEYS = 64, 400
_LONGEST_QUESTION, _SHOUTED_WORDS, _SHOUTED = 4_000, 6, 0.8
_MOSTLY = 0.12
"""Share of the passages that hold a plain word, or the rarest word of a phrase, that must name it. Fitted to CISI,
HotpotQA and MuSiQue, instant: NDCG@10 .404 without a graph, .388 with every phrase, .399 with 0.12, .402 with 0.3; R@5
.935 and .702 with 0.12, .920 and .700 with 0.3."""

_BETWEEN_SENTENCES = re.compile(r"(?<=[\w)][.?!])\s+(?=[A-Z])")
_QUESTION_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*+")


def asked_keys(question: str) -> list[str]:
    """Keys that a question may name, the longest first: quoted, with capitals, and words in a row.

    A word in lower case counts alone only where the question has no name in capitals. Little words stand at no end.
    """
    question = question[:_LONGEST_QUESTION]
    keys = dict.fromkeys(entity_key(label) for _, label in marked_names(question))
    words, capitals = _asked_words(question)
    has_capitals = any(capitals)
    for size in range(LONGEST_NAME, 0, -1):
        for begin in range(len(words) - size + 1):
            row = words[begin : begin + size]
            is_capital = capitals[begin] and capitals[begin + size - 1]
            if (row[0].lower() in _LITTLE and not (is_capital and size > 1)) or row[-1].lower() in _LITTLE:
                continue
            if is_capital or (size <= _LONGEST_GRAM and (size > 1 or not has_capitals)):
                keys[entity_key(" ".join(row))] = None
    for run in UNSPACED.findall(question) if not question.isascii() else ():
        keys.update(dict.fromkeys(_substrings(run)))
    keys.pop("", None)
    return sorted(list(keys)[:_MOST_KEYS], key=lambda key: (-len(key), key))


def plain_keys(question: str) -> list[str]:
    """Those of a question's keys that stand in it without a sign of a name.

    Such a word or phrase is a name only where texts mostly write it like one: see `is_mostly_name`.
    """
    words, capitals = _asked_words(question[:_LONGEST_QUESTION])
    signs = {entity_key(label) for _, label in marked_names(question[:_LONGEST_QUESTION])}
    rows = [
        (begin, begin + size)
        for size in range(1 + any(capitals), _LONGEST_GRAM + 1)
        for begin in range(len(words) - size + 1)
    ]
    plain = [
        " ".join(words[begin:end])
        for begin, end in rows
        if not (capitals[begin] and capitals[end - 1])
        and words[begin].lower() not in _LITTLE
        and words[end - 1].lower() not in _LITTLE
    ]
    return [*dict.fromkeys(key for row in plain if (key := entity_key(row)) and key not in signs)]


def is_mostly_name(named: int, held: int) -> bool:
    """Whether a word is a name: so many passages name it, and so many hold it, or its rarest word, in any case."""
    return named > _MOSTLY * held


def _asked_words(question: str) -> tuple[list[str], list[bool]]:
    """The words of a question, and which of them have a capital that tells something.

    A sentence begins with one anyway; where nearly all words have one, none tells anything: CISI gains .008 by words.
    """
    words, capitals = list[str](), list[bool]()
    for sentence in _BETWEEN_SENTENCES.split(question):
        row = [match[0] for match in _QUESTION_WORD.finditer(sentence)]
        little = [word.lower() in _LITTLE for word in row]
        has = [word[0].isupper() and (at > 0 or not (words or little[0])) for at, word in enumerate(row)]
        told = [word[0].isupper() for word, is_little in zip(row, little, strict=True) if not is_little]
        is_title = len(row) >= _SHOUTED_WORDS and sum(told) > _SHOUTED * len(told)
        words += row
        capitals += [False] * len(row) if is_title or not any(has[1:]) else has
    return words[:_MOST_WORDS], capitals[:_MOST_WORDS]


def _substrings(run: str) -> Iterator[str]:
    """All parts of a word without spaces between its names, down to two letters."""
    for size in range(len(run), 1, -1):
        for begin in range(len(run) - size + 1):
            yield entity_key(run[begin : begin + size])


def longest_keys(keys: Iterable[str], known: Collection[str]) -> list[str]:
    """Those of a question's keys that are known, without what stands in a longer one: `curie` in `marie curie`."""
    kept: list[str] = []
    for key in sorted((key for key in keys if key in known), key=lambda key: (-len(key), key)):
        if not any(_holds(longer, key) for longer in kept):
            kept.append(key)
    return kept


def _holds(longer: str, key: str) -> bool:
    return f" {key} " in f" {longer} " or (not key.isascii() and key in longer)
