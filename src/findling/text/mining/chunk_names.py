"""The things that a chunk names: those of its text, its titles and its code, and their codes in a graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

from findling.domain.resources import Resource
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.defined_names import named_lines
from findling.text.mining.entities import Mention, mentions_of
from findling.text.mining.keys import entity_key

MOST_NAMES = 10
"""Names that are kept of a chunk. R@5 of MuSiQue and HotpotQA with 8 of them is 65.1 and 87.0, with 12 67.8 and 89.0,
with all of them 67.8 and 88.0; 12 take 9 % of the text."""

_MOST_BY_MODEL = 5
"""Names of a language model beside them: a graph counts up to 15 of a chunk in half a byte."""

TITLE = 3
LEVEL_WEIGHTS = (1.0, 1.7, 2.4, 3.0)
"""Weights of the levels of a mention; the last one says that the chunk is about the thing, which is its title."""

_HASH_BITS = 30

_NO_TITLES = frozenset("readme index init main changelog license notes todo".split())
"""Names of files that say nothing of their content."""


def chunk_names(resource: Resource, heading: Sequence[str], text: str) -> list[Mention]:
    """The names of a chunk, the most telling first, at most `MOST_NAMES`; titles have the kind `title`.

    Nothing but the chunk decides: neither its place in the resource nor other chunks. Behind them stand those that a
    language model has found, of the kind `model`, if the owner has asked one.
    """
    title, is_code = _title(resource), resource.lang in CODE_LANGS
    heading = [*map(_defined, heading)] if is_code else heading
    people = (resource.author,) if resource.author and resource.type != "file" else ()
    defines = [line.name for line in named_lines(text, resource.lang)] if is_code else ()
    found = mentions_of("" if is_code else text, title, heading, defines=defines, people=people)
    first = entity_key(heading[0]) if resource.path and heading else ""
    titled = [one._replace(kind="title") if one.kind == "heading" and one.key == first else one for one in found]
    kept = [one for one in titled if one.kind != "date"][:MOST_NAMES]
    if "model_names" in resource.fields:
        from findling.text.mining.model_names import mentions_by_model

        kept += mentions_by_model(resource, text, {one.key for one in kept})[:_MOST_BY_MODEL]
    return kept


def _defined(heading: str) -> str:
    """The name in a heading such as `func (c *Context) Bind`; empty for several, which the code itself names."""
    bare = "" if ", " in heading or heading.endswith("…") else _ASIDE.sub(" ", heading)
    return next((word for word in reversed(_WORD.findall(bare)) if word not in _KINDS), "")


_ASIDE = re.compile(r"<[^<>]*>|\([^()]*\)")
_WORD = re.compile(r"[^\W\d]\w*")
_KINDS = frozenset({"struct", "interface", "enum"})
"""Words that stand behind the name of a type in Go."""


def _title(resource: Resource) -> str:
    """The title of a resource, or the name of a file: notes link each other by it."""
    if not resource.path:
        return resource.title
    stem = resource.path.rpartition("/")[2].rpartition(".")[0]
    return "" if entity_key(stem) in _NO_TITLES else stem


def hash_of(key: str) -> int:
    """The number by which a graph knows a thing."""
    return crc32(key.encode("utf-8", "surrogatepass")) >> (32 - _HASH_BITS)


def level_of(mention: Mention) -> int:
    """The level of a mention, 0 to 3."""
    if mention.kind == "title":
        return TITLE
    return 0 if mention.weight < 1.5 else 1 if mention.weight < 2.2 else 2
