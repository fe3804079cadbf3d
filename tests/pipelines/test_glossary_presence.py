"""Terms of a glossary in texts."""

from __future__ import annotations

import pytest

from findling.pipelines.glossary.glossary_mining import Presence


@pytest.mark.parametrize(
    ("surface", "text"),
    [
        ("throttle", "It throttles."),
        ("rate limit", "Know the rate limits!"),
        ("rate limit", "call(rateLimit)"),
        ("rate-limit", "a RATE_LIMIT of 5"),
        ("time to live", "time to\nlive"),
        ("GitHub", "on github.com"),
        ("github", "on GitHub"),
        ("C++", "written in C++, mostly"),
        ("Café", "the cafés"),
        ("인증", "인증을"),
        ("数据库", "关系数据库系统"),
    ],
)
def test_a_term_is_found_however_it_is_written(surface: str, text: str) -> None:
    presence = Presence([surface, "elsewhere"])
    presence.look(text)
    assert presence.found == {surface}


@pytest.mark.parametrize(
    ("surface", "text"),
    [
        ("rate limit", "the limit of a rate"),
        ("rate limit", "at this rate"),
        ("rate limit", "rates limit"),
        ("author", "auth"),
        ("C++", "vitamin C"),
        ("!!!", "Oh!!!"),
        ("数据库", "数据"),
    ],
)
def test_what_is_not_there_is_not_found(surface: str, text: str) -> None:
    presence = Presence([surface])
    presence.look(text)
    assert presence.found == set()


def test_texts_add_up() -> None:
    presence = Presence(["one", "two", "three"])
    for text in ("one", "", "two one"):
        presence.look(text)
    assert presence.found == {"one", "two"}
