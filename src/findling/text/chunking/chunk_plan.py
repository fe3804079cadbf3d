"""Chunking options as data. A search compares them with those of its index, so this module loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from findling.domain.resources import Resource

HEADED = frozenset({"asciidoc", "latex", "markdown", "mdx", "org", "rst"})
"""Languages whose first heading is the title of the whole."""


def passage(resource: Resource, heading: Sequence[str], text: str, cid: int | None = None) -> str:
    """The text of a chunk with its context. Nothing in it depends on where a file lies: a move changes nothing.

    With its id, a chunk also has the sentence that a language model wrote about it, if one did.
    """
    if cid is not None and "situated" in resource.fields:
        from findling.text.chunking.contexts import sentence_of

        heading = (*heading, sentence_of(resource, cid))
    return in_context(context_title(resource), heading, text)


def context_title(resource: Resource) -> str:
    """The title that chunks have in front of their headings.

    The title of a marked-up file is its first heading: it stands above the chunks it belongs to already, and the
    others must not change with it.
    """
    return "" if resource.path and resource.lang in HEADED else resource.title


def in_context(title: str, heading: Sequence[str], text: str) -> str:
    """The text under a title and headings, of which equal ones count once."""
    if not heading:
        return f"{title}\n{text}" if title else text
    context = dict.fromkeys((title, *heading))
    context.pop("", None)
    return "\n".join((*context, text))


STRATEGIES = ("semantic", "fixed", "overlapping")
UNITS = ("characters", "tokens", "words")
_CODE_WAYS = ("auto", "patterns", "syntax")


def check_plan(plan: ChunkPlan) -> None:
    """Raises `ValueError` when the plan names no strategy or unit, or when nothing can be cut by its numbers."""
    if plan.strategy not in STRATEGIES:
        raise ValueError(f"chunk strategy must be one of {', '.join(STRATEGIES)}, not {plan.strategy!r}")
    if plan.unit not in UNITS:
        raise ValueError(f"chunk unit must be one of {', '.join(UNITS)}, not {plan.unit!r}")
    if plan.code not in _CODE_WAYS:
        raise ValueError(f"code must be cut by one of {', '.join(_CODE_WAYS)}, not {plan.code!r}")
    if plan.size < 1:
        raise ValueError(f"chunk size must be positive, not {plan.size}")
    if not 0 <= plan.overlap < plan.size:
        raise ValueError(f"chunk overlap must be at least 0 and below the size {plan.size}, not {plan.overlap}")


class ChunkPlan(NamedTuple):
    """Options of chunking.

    `strategy` is `semantic` (along sections, definitions and paragraphs), `fixed` (windows of one size) or
    `overlapping` (windows that share `overlap`). `unit` says what `size` and `overlap` count: `characters`, `tokens` of
    the embedding model, or `words`. `code` says how definitions are found: by `patterns`, by `syntax` trees where there
    is a grammar, or, with `auto`, by trees where patterns go wrong. The parser may crash or never return on broken
    text, so it belongs into a process of its own.
    """

    strategy: str = "semantic"
    size: int = 2400
    overlap: int = 0
    unit: str = "characters"
    code: str = "patterns"


PRESETS: dict[str, ChunkPlan] = {
    "default": ChunkPlan("semantic", 480, 0, "tokens"),
    "sila": ChunkPlan("overlapping", 512, 64, "tokens"),
    "nexus": ChunkPlan("overlapping", 1024, 128, "tokens"),
    "lss": ChunkPlan("overlapping", 220, 20, "words"),
}


def read_preset(text: str) -> ChunkPlan:
    """The plan of a preset, or of `STRATEGY:SIZE[/OVERLAP]:UNIT`. Raises ValueError for what is neither."""
    if text in PRESETS:
        return PRESETS[text]
    strategy, _, rest = text.partition(":")
    numbers, _, unit = rest.partition(":")
    size, _, overlap = numbers.partition("/")
    if not size.isdecimal() or not (overlap or "0").isdecimal() or len(numbers) > _LONGEST_NUMBERS:
        raise ValueError(f"{text!r} is none of {', '.join(PRESETS)}, and not STRATEGY:SIZE[/OVERLAP]:UNIT")
    plan = ChunkPlan(strategy, int(size), int(overlap or 0), unit)
    check_plan(plan)
    if plan.overlap and strategy != "overlapping":
        raise ValueError(f"chunks overlap with the strategy overlapping, not with {strategy}")
    return plan


_LONGEST_NUMBERS = 20
