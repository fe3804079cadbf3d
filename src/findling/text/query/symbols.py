"""The symbols of the query language: names of fields and marks of quotation."""

from __future__ import annotations

__all__ = ["FIELD_NAMES", "OPENING_QUOTES", "QUOTES", "TEXT_FIELDS"]

FIELD_NAMES = (
    *("path", "ext", "lang", "type", "tag", "author", "title", "system"),
    *("before", "after", "date", "is", "in"),
)
TEXT_FIELDS = ("title", "heading", "body", "path", "tags", "name", "description")
"""Fields that `in:` limits words to; `in:heading:word` does so for one word."""

OPENING_QUOTES = '"“„«‹「『'
QUOTES = '"“”„«»‹›「」『』'
