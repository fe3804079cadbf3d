"""Random patterns, each with a text that it mostly matches, for tests against `re`."""

from __future__ import annotations

import re
from random import Random

from findling.domain.queries import Pattern

__all__ = ["ALPHABETS", "random_pattern", "random_text"]

ALPHABETS = (
    "abc_",
    "aAbB",
    "iIİı",
    "sSſß",
    "kK\u212ak",
    "σΣςs",
    "µμΜm",
    "ab. ",
    "x\ny\t",
    "ſtﬅﬆ",
    "ᲃсС0",
    "ÅåÅa",
    "(a|)",
)


def random_pattern(random: Random, letters: str, *, depth: int = 3) -> tuple[Pattern, str]:
    """A pattern over a few letters, and a text that it was made from."""
    source, example = _sequence(random, letters, depth)
    is_regex = random.random() < 0.85
    if is_regex and random.random() < 0.15:
        source = random.choice(("(?i)", "(?s)", "(?m)", "(?a)", "(?x)", "(?i)(?s)")) + source
    if not is_regex:
        source = example or letters[0]
    return Pattern(source, is_regex, random.random() < 0.5, random.random() < 0.2), example


def random_text(random: Random, letters: str, example: str) -> str:
    """A text over a few letters with the example in it, some of its letters in the other case."""
    swapped = "".join(letter.swapcase() if random.random() < 0.2 else letter for letter in example)
    before, behind = (_run(random, letters, 12) for _ in range(2))
    return random.choice((f"{before}{example}{behind}", f"{before} {swapped} {behind}", before + behind))


def _run(random: Random, letters: str, most: int) -> str:
    return "".join(random.choices(letters + " \n", k=random.randrange(most)))


def _sequence(random: Random, letters: str, depth: int) -> tuple[str, str]:
    parts = [_part(random, letters, depth) for _ in range(random.randint(1, 4))]
    return "".join(source for source, _ in parts), "".join(example for _, example in parts)


def _part(random: Random, letters: str, depth: int) -> tuple[str, str]:
    if depth == 0 or random.random() < 0.45:
        literal = "".join(random.choices(letters, k=random.randint(1, 4)))
        return re.escape(literal), literal
    # A repeat holds nothing but letters: `(a+b*)+` would take `re` for ever.
    kind = random.randrange(10)
    if kind == 0:
        member = random.choice(letters)
        return random.choice(
            (f"[{re.escape(letters)}]", ".", r"[^\d]", f"[{re.escape(member)}{re.escape(member)}z]")
        ), member
    source, example = _sequence(random, letters, 0 if kind in (2, 3, 4) else depth - 1)
    if kind == 1:
        other, _ = _sequence(random, letters, depth - 1)
        return random.choice((f"(?:{source}|{other})", f"(?:{other}|{source})", f"({source}|{other}|)")), example
    if kind == 2:
        return f"(?:{source}){random.choice(('?', '*', '??', '*?'))}", random.choice(("", example))
    if kind == 3:
        least = random.randrange(5)
        counted = random.choice((f"{{{least}}}", f"{{{least},}}", f"{{{least},{least + 2}}}"))
        return f"(?:{source}){counted}", example * least
    if kind == 4:
        return f"(?:{source})+", example * random.randint(1, 2)
    if kind == 5:
        return random.choice(
            (f"(?={source})", f"(?:{source}(?!zz))", f"(?<!zz){source}", f"{source}(?={re.escape(letters[0])}?)")
        ), example
    if kind == 6:
        return rf"\b{source}\b" if random.random() < 0.3 else f"^{source}$", f"\n{example}\n"
    if kind == 7:
        return f"(?i:{source})", example.swapcase()
    if kind == 8:
        name = f"n{random.randrange(10**9)}"
        return f"(?P<{name}>{source})(?P={name})", example * 2
    return random.choice(
        (f"(?>{source})", f"({source})?{re.escape(example)}", rf"{source}\s*", f"(?:{source})?+")
    ), example
