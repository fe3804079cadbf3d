"""Questions about a passage, made of its headings and sentences: crops, claims, and what templates ask.

None of them comes from a person who asked. They need no answer: what a passage is worth to one, the teacher says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

STOP = frozenset(
    "the of to and is in a that for it as with are be this by or on an not from at you can which if its was were has "
    "have had will would may must should could their they there then than these those also into such when where while "
    "so but he she his her we our your i all any no more most some other".split()
)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(\[])")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)+")
IDENTIFIER = re.compile(r"(?<![\w-])(?:--[a-z][a-z-]{2,}|[a-z]+_[a-z_]+|[a-z]+(?:[A-Z][a-z]+)+|[a-z]+\.[a-z]+\(\))")
YEAR = re.compile(r"(?:in|since|until|by|on) (?:[A-Z][a-z]+ )?(?:\d{1,2}, )?(?:1[5-9]|20)\d\d")
WEIGHTS = {"heading": 3.0, "asked": 8.0, "template": 5.0, "crop": 4.0, "claim": 2.5, "identifier": 0.7, "two": 0.8}
KINDS = tuple(WEIGHTS)


def question(heading: str, text: str, others: list[str], rng: Random) -> tuple[str, str]:
    """The kind of a question, and the question; empty where a passage gives none."""
    makers: dict[str, Callable[[], list[str]]] = {
        "heading": lambda: headings(heading),
        "asked": lambda: questions_of(heading, text),
        "template": lambda: [*templates(heading, text, rng)],
        "crop": lambda: [crop(rng.choice(sentences(text)), rng)],
        "claim": lambda: claims(text, rng),
        "identifier": lambda: identifiers(heading, text),
        "two": lambda: two(text, others, rng),
    }
    left = dict(WEIGHTS)
    while left:
        kind = rng.choices([*left], [*left.values()])[0]
        del left[kind]
        found = [one for each in makers[kind]() if 2 <= len(one := " ".join(each.split()).strip(" ,;:.-")) < 240]
        found = [one for one in found if len(one.split()) >= (1 if kind in ("identifier", "heading") else 3)]
        if found:
            return kind, dressed(rng.choice(found), kind, rng)
    return "", ""


def dressed(text: str, kind: str, rng: Random) -> str:
    """A question as people type it: mostly without capitals, often without its mark."""
    if kind not in ("claim", "identifier") and rng.random() < 0.55:
        text = text.lower()
    if text.endswith("?"):
        return text if rng.random() < 0.6 else text[:-1]
    return f"{text}?" if kind == "template" and rng.random() < 0.4 else text


def sentences(text: str) -> list[str]:
    """The sentences of a text that have five words or more; the text itself where none has."""
    return [each for each in SENTENCE.split(text) if len(each.split()) >= 5] or [text]


def headings(heading: str) -> list[str]:
    return [heading] if heading and len(heading.split()) <= 14 else []


def questions_of(heading: str, text: str) -> list[str]:
    found = [each for each in SENTENCE.split(text) if each.endswith("?") and 4 <= len(each.split()) <= 22]
    return [heading] * 3 if heading.endswith("?") else found


def identifiers(heading: str, text: str) -> list[str]:
    found = IDENTIFIER.findall(f"x {heading} {text}")[:6]
    return found + [f"{how} {each}" for each in found for how in ("what does", "how to use", "where is")]


def crop(sentence: str, rng: Random, least: int = 3, most: int = 12) -> str:
    """3 to 12 words of a sentence, some left out, sometimes in another order."""
    words = sentence.split()
    size = min(len(words), rng.randint(least, most + 4))
    start = rng.randint(0, len(words) - size)
    kept = [word.strip(".,;:()\"'[]{}") for word in words[start : start + size]]
    drop_stop, drop = rng.choice((0.0, 0.5, 1.0)), rng.choice((0.0, 0.1, 0.25))
    chosen = [each for each in kept if each and rng.random() >= (drop_stop if each.lower() in STOP else drop)]
    chosen = (chosen if len(chosen) >= least else [each for each in kept if each])[:most]
    if rng.random() < 0.2:
        place = rng.randint(0, len(chosen))
        chosen = chosen[place:] + chosen[:place]
    return " ".join(chosen)


def claims(text: str, rng: Random) -> list[str]:
    """Whole sentences, shortened: without what stands in brackets, behind the last comma or before the first one."""
    found = []
    for each in sentences(text):
        short = re.sub(r"\s*\([^)]*\)", "", each).strip()
        if rng.random() < 0.4 and short.count(", ") > 1:
            short = short.rpartition(", ")[0]
        if rng.random() < 0.4 and ", " in short[:40]:
            short = short.partition(", ")[2]
        if rng.random() < 0.4:
            short = " ".join(word for word in short.split() if word.lower() not in STOP or rng.random() > 0.25)
        if 6 <= len(short.split()) <= 30:
            found.append(short[:1].upper() + short[1:])
    return found


def two(text: str, others: list[str], rng: Random) -> list[str]:
    """What two passages of a document say together."""
    if not others:
        return []
    one, other = (
        crop(rng.choice(sentences(text)), rng, 2, 6),
        crop(rng.choice(sentences(rng.choice(others))), rng, 2, 6),
    )
    return [f"{one} {rng.choice(('and', 'of the', 'that', 'with', ''))} {other}"]


def templates(heading: str, text: str, rng: Random) -> Iterator[str]:
    """What a person might ask about the heading, or about a sentence of some known forms."""
    if heading and len(heading.split()) <= 8 and not heading.endswith("?"):
        yield from about(heading[:1].lower() + heading[1:] if heading[1:2].islower() else heading)
    for each in rng.sample(told := sentences(text), min(3, len(told))):
        yield from about_sentence(each, rng)
    if rng.random() < 0.25:
        yield f"{rng.choice('how why what when where who which'.split())} {crop(rng.choice(told), rng, 3, 9)}"


def about(thing: str) -> Iterator[str]:
    """Questions about a heading."""
    if found := re.match(r"(\w+)ing (.+)", thing):
        stem = re.sub(r"(.)\1$", r"\1", found[1]) if not found[1].endswith(("ss", "ll")) else found[1]
        stem += "e" if re.search(r"([aiou]|[^aeiou]u)[tvzcgs]$|[bcdfgklptz]l$|at$|ur$", stem) else ""
        yield from (f"{how} {stem} {found[2]}" for how in ("how do I", "how to", "how can I", "why should I"))
    else:
        forms = "what is|what does|how does|explain|what is the use of|tell me about|why|meaning of".split("|")
        ends = {"what does": " mean", "how does": " work"}
        yield from (f"{form} {thing}{ends.get(form, '')}" for form in forms)


def about_sentence(said: str, rng: Random) -> Iterator[str]:
    """Questions that a sentence answers, by its form."""
    bare = said.rstrip(".!")
    if found := re.match(r"((?:The |An? )?[\w' -]{3,50}?) (is|are|was|were) ((?:an?|the|one of) .+)", bare):
        is_person = found[2] in ("is", "was") and NAME.fullmatch(found[1]) is not None
        yield f"{'who' if is_person else 'what'} {found[2]} {found[1]}"
        yield f"what {found[2]} {' '.join(found[3].split()[:12])}"
        if nouns := re.match(r"(?:an?|the) (\w+) (?:that|which|who) (.{8,70})", found[3]):
            yield f"which {nouns[1]} {nouns[2]}"
    if found := re.search(r"\b[Tt]o ([a-z]+ .{8,60}?)[,;]", bare):
        yield from (f"{how} {found[1]}" for how in ("how do I", "how to", "how can I"))
    if found := re.search(r"used (?:to|for) (.{8,60}?)(?:[,.;]|$)", bare):
        yield from (f"what is used to {found[1]}", f"how to {found[1]}")
    if found := re.match(r"(.{10,80}?),? because ", bare):
        yield f"why {found[1][:1].lower()}{found[1][1:]}"
    if found := re.match(r"([\w' -]{3,40}?) (can|may|must|should|will|cannot|could) (\w+ .{8,60}?)(?:[,.;]|$)", bare):
        yield from (f"{how} {found[2]} {found[1]} {found[3]}" for how in ("how", "why", "when"))
        yield f"{found[2]} {found[1]} {found[3]}"
    if found := re.search(r"\b(?:if|when) (.{8,60}?),", bare, re.IGNORECASE):
        yield from (f"{how} {found[1]}" for how in ("what happens when", "what if", "what to do if"))
    if found := YEAR.search(bare):
        yield f"when {crop(YEAR.sub('', bare), rng, 3, 10)}"
        yield f"what happened {found[0]}"
    if found := re.search(r"\b\d[\d,.]* ([a-z]{3,}(?: [a-z]+)?)", bare):
        yield f"how many {found[1]} {crop(bare, rng, 3, 7)}"
    if found := NAME.search(bare):
        rest = crop(bare.replace(found[0], ""), rng, 2, 7)
        yield from (f"who is {found[0]}", f"what did {found[0]} {rest}", f"{found[0]} {rest}")
        yield f"who {crop(bare.replace(found[0], ''), rng, 3, 9)}"
