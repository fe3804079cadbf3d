"""Conditions on resources, as the stores understand them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.domain.queries import All, Any, Field, Filters, Fuzzy, Near, Node, Not, Phrase, Prefix, Range, Term, Word
from findling.domain.resources import Resource
from findling.stores.filtering import holds, passes
from tests.counts import tries


def _lies_at(pattern: str, path: str) -> bool:
    return holds(Field("path", (pattern,)), Resource(rid="r", path=path))


def _fits(pattern: str, text: str) -> bool:
    """Whether a glob covers a text, by trying everything."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_fits(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and _fits(pattern[1:], text[1:])


def _covers(pattern: str, path: str) -> bool:
    """Whether a glob covers the path or a folder above it, from any folder on unless it is anchored."""
    parts = path.lower().split("/")
    starts = range(1) if pattern.startswith("/") else range(len(parts))
    return any(
        _fits(pattern.removeprefix("/").lower(), "/".join(parts[start:end]))
        for start in starts
        for end in range(start + 1, len(parts) + 1)
    )


globs = st.builds("{}{}{}".format, st.text("aB/*?.", max_size=4), st.sampled_from("*?"), st.text("aB/*?.", max_size=4))


@given(pattern=globs, path=st.text("aAb/.", max_size=8))
@settings(max_examples=tries(1500, short=300), deadline=None)
def test_a_glob_covers_what_brute_force_covers(pattern: str, path: str) -> None:
    assert _lies_at(pattern, path) == _covers(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*a" * 5000 + "*b", "a" * 4000, False),
        ("*a" * 2000 + "*", "a" * 4000, True),
        ("*" * 10_000 + "b", "a" * 4000, False),
        ("*" * 10_000, "a" * 4000, True),
        ("a*" * 5000 + "?", "a" * 4000 + "/b", False),
        ("*a?" * 3000 + "b", "aa" * 2000 + "c", False),
        ("/" + "*a/" * 300 + "*b", "a/" * 400 + "c", False),
    ],
)
def test_a_glob_of_ten_thousand_characters_is_no_trap(pattern: str, path: str, found: bool) -> None:
    assert _lies_at(pattern, path) is found


@pytest.mark.parametrize("wild", ["a[b]*", "a.b*", r"a\*", "a+*", "(a*", "a{2}*", "^a*", "a$*"])
def test_only_stars_and_question_marks_are_special(wild: str) -> None:
    assert _lies_at(wild, wild.replace("*", "x"))
    assert not _lies_at(wild, "ab")
    assert not _lies_at(wild, "axb")


def test_line_breaks_in_a_path_are_letters_like_any_other() -> None:
    assert _lies_at("a*b", "a\n/b")
    assert _lies_at("a?b", "a\nb")
    assert not _lies_at("a", "b\n")


@pytest.mark.parametrize(
    "node", [Word("x"), Term("x"), Phrase("x y"), Prefix("x"), Fuzzy("x"), Near("x", "y"), Not(Word("x"))]
)
def test_text_is_refused_wherever_it_stands(node: Node) -> None:
    resource = Resource(rid="r")
    for tree in (node, Not(node), Any((All(()), node)), All((Any(()), node))):
        with pytest.raises(InvalidValueError, match=r"`.*x.*` asks for text") as caught:
            holds(tree, resource)
        assert caught.value.hint
        with pytest.raises(InvalidValueError):
            passes(resource, Filters(where=tree))


def test_an_unknown_property_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidValueError, match="'is'") as caught:
        holds(Field("is", ("head",)), Resource(rid="r"))
    for name in ("path", "ext", "lang", "type", "tag", "system", "author", "rid"):
        assert name in caught.value.hint


def test_a_time_counts_in_whole_seconds_as_in_the_filters() -> None:
    resource = Resource(rid="r", updated_at=9.5)
    for after, before in ((9.0, None), (9.5, None), (None, 9.5), (None, 10.0), (9, 10), (None, None)):
        limits = Filters(after=after, before=before)
        assert holds(Range(after, before), resource) == passes(resource, limits), (after, before)
