"""What a model reads of a chunk: the title of the whole and the headings above it come first."""

from __future__ import annotations

from collections.abc import Sequence

from findling.domain.resources import Resource

__all__ = ["HEADED", "passage"]

HEADED = frozenset({"asciidoc", "latex", "markdown", "mdx", "org", "rst"})
"""Languages whose first heading is the title of the whole."""


def passage(resource: Resource, heading: Sequence[str], text: str) -> str:
    """The text of a chunk with its context.

    Nothing in it depends on where a file lies, so that a move changes nothing. The title of a marked-up file is its
    first heading: it stands above the chunks it belongs to already, and the others must not change with it.
    """
    title = "" if resource.path and resource.lang in HEADED else resource.title
    context = dict.fromkeys(line for line in (title, *heading) if line)
    return "\n".join((*context, text))
