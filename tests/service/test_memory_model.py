"""A language model may be asked about memories that wait for a review; it decides nothing, and may fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.service.test_memory_truth import Desk, Open, open_desk

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer

pytest_plugins = ["tests.models.conftest"]
__all__ = ["open_desk"]


def opened(open_desk: Open, server: ProviderServer, **values: object) -> Desk:
    """Two pairs that wait, one of them private."""
    model = {"chat__model": "ollama:qwen3-cloud", "chat__base_url": f"{server.url}/v1", "memory__ask": True}
    desk = open_desk(**{**model, **values})
    for text in ("Anna likes tea.", "Anna likes coffee."):
        desk.say(text)
    for text in ("Ben likes tea.", "Ben likes rice."):
        desk.say(text, tags=["private"])
    return desk


def say(server: ProviderServer, answer: str) -> None:
    server.then(200, {"choices": [{"message": {"role": "assistant", "content": answer}}]})


def test_its_verdict_is_kept_as_its_own_and_decides_nothing(open_desk: Open, server: ProviderServer) -> None:
    desk = opened(open_desk, server)
    say(server, "1: CONTRADICTION")
    before = {rid: text for rid, (_, text) in desk.kept().items()}
    review = desk.memories.review()
    assert review.trouble is None
    private, asked = review.pairs
    assert (asked.verdict, asked.verdict_by) == ("contradiction", "ollama:qwen3-cloud")
    assert private.verdict == "", "what is private was sent"
    (received,) = server.received
    user = received.body["messages"][1]["content"]
    assert user == '1: older "Anna likes tea." newer "Anna likes coffee."'
    assert {rid: text for rid, (_, text) in desk.kept().items()} == before
    assert len(desk.recall("likes tea")) >= 2
    assert desk.memories.review().pairs == review.pairs
    assert len(server.received) == 1, "a pair with a verdict is not sent again"


def test_without_the_setting_or_a_model_nobody_is_asked(open_desk: Open, server: ProviderServer) -> None:
    desk = opened(open_desk, server, memory__ask=False)
    assert (len(desk.memories.review().pairs), desk.memories.review().trouble) == (2, None)
    unset = opened(open_desk, server, chat__model="none")
    trouble = unset.memories.review().trouble
    assert trouble is not None
    assert "no language model is chosen" in trouble.what
    assert server.received == []


@pytest.mark.parametrize("answer", ["perhaps", "", "1: MAYBE", "1: SAME\n1: BOTH", "7: SAME", "<html>"])
def test_an_answer_that_says_nothing_is_none(open_desk: Open, server: ProviderServer, answer: str) -> None:
    desk = opened(open_desk, server)
    say(server, answer)
    review = desk.memories.review()
    assert [pair.verdict for pair in review.pairs] == ["", ""]
    assert review.trouble is not None


def test_a_model_that_is_late_wrong_or_dead_leaves_the_list(open_desk: Open, server: ProviderServer) -> None:
    desk = opened(open_desk, server, remote__timeout_s=0.2)
    for fail in (
        server.then_wait,
        lambda: server.then(200, b"no JSON", times=5),
        lambda: server.then(500, {"error": {"message": "out of order"}}, times=5, Retry_After="0"),
        lambda: server.then(0, times=5),
        lambda: server.then(200, {"choices": []}, times=5),
    ):
        server.script.clear()
        fail()
        review = desk.memories.review()
        assert len(review.pairs) == 2
        assert review.trouble is not None
        assert review.trouble.what
    server.script.clear()
    say(server, "1: BOTH")
    assert [pair.verdict for pair in desk.memories.review().pairs] == ["", "both"]
