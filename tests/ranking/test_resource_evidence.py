"""Evidence about resources: names, definitions, passages and paths, each as a factor that adds up."""

from __future__ import annotations

from math import prod

import pytest

from findling.ranking.path_roles import ROLES, asked_roles, role_of
from findling.ranking.resource_evidence import Clue, ResourceQuestion, ResourceRanking, are_alike

QUESTION = ResourceQuestion(("connection", "pool"))


def order(clues: list[Clue], question: ResourceQuestion = QUESTION) -> list[int]:
    return [item for item, _ in ResourceRanking(clues, question).ranking]


def test_words_in_a_file_name_lift_its_passages() -> None:
    assert order([Clue(1, 1.0, "a", ("client",)), Clue(2, 0.8, "b", ("connector",))]) == [2, 1]


def test_a_word_that_every_name_has_lifts_nobody_above_others() -> None:
    clues = [Clue(n, 1 - n / 10, f"f{n}", ("pool", other)) for n, other in enumerate(("client", "server", "connect"))]
    assert order(clues) == [2, 0, 1]


def test_folders_count_less_than_names() -> None:
    clues = [Clue(1, 1.0, "a", ("x",), ("pool",)), Clue(2, 1.0, "b", ("pool",), ("x",)), Clue(3, 1.0, "c", ("x",))]
    assert order(clues) == order(clues[::-1]) == [2, 1, 3]


def test_a_part_of_the_question_in_a_file_name_is_worth_a_part() -> None:
    clues = [Clue(1, 1.0, "a", ("client",)), Clue(2, 0.5, "b", ("pool",))]
    assert order(clues) == [1, 2]
    assert order([clues[0], clues[1]._replace(name=("connection", "pool"))]) == [2, 1]


def test_a_definition_of_the_name_comes_first_and_a_file_of_that_name_before_others() -> None:
    question = ResourceQuestion(("session",), ("Session",), is_name=True)
    clues = [Clue(1, 1.0, "a", ("client",)), Clue(2, 0.5, "b", ("session",)), Clue(3, 0.3, "c", defines=("Session",))]
    assert order(clues, question) == [2, 3, 1]
    assert order([*clues[:1], clues[2]], question) == [3, 1]
    # Part of a file name is not the name.
    assert order([Clue(1, 1.0, "a", ("client",)), Clue(2, 0.9, "b", ("session", "pool"))], question) == [1, 2]


def test_a_definition_is_first_wherever_it_stands_and_the_usual_place_before_others() -> None:
    question = ResourceQuestion(("strip",), ("strip",), is_name=True)
    clues = [Clue(1, 1.0, "a"), Clue(2, 0.5, "b", role="compatibility", defines=("strip",))]
    assert order(clues, question) == [2, 1]
    assert order([*clues, Clue(3, 0.5, "c", defines=("strip",))], question) == [3, 2, 1]


def test_several_good_passages_lift_a_resource_and_further_ones_yield() -> None:
    clues = [Clue(1, 1.0, "a"), Clue(2, 0.95, "b"), Clue(3, 0.95, "b"), Clue(4, 0.95, "b")]
    assert order(clues) == [2, 1, 3, 4]


def test_a_second_good_passage_stands_before_a_weak_one_of_another_resource() -> None:
    assert order([Clue(1, 1.0, "a"), Clue(2, 0.2, "b"), Clue(3, 1.0, "a")]) == [1, 3, 2]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_held_back_unless_it_is_asked_for(role: str) -> None:
    clues = [Clue(1, 1.0, "a", role=role), Clue(2, 0.8, "b")]
    assert order(clues) == [2, 1]
    assert order(clues, QUESTION._replace(roles=frozenset({role}))) == [1, 2]


def test_the_parts_of_every_passage_lead_to_its_strength() -> None:
    question = ResourceQuestion(("connection", "pool", "limits"), ("Pool", "acquire"))
    clues = [
        Clue(n, 1 / (n + 1), f"f{n % 5}", ("pool", f"w{n % 5}"), ("connection",), "test" if n % 3 else "", names)
        for n, names in enumerate([(), ("Pool",), (), ("Pool", "acquire")] * 5)
    ]
    ranked = ResourceRanking(clues, question)
    assert len(ranked.ranking) == len(clues)
    for item, strength in ranked.ranking:
        parts = ranked.parts(item)
        assert ranked.start[item] * prod(part.factor for part in parts) == pytest.approx(strength)
        assert all(part.reason for part in parts)
    assert {part.name for item, _ in ranked.ranking for part in ranked.parts(item)} == {
        "definition", "file name", "folder", "passages", "path", "repeated",
    }  # fmt: skip


def test_nothing_to_rank_is_no_error() -> None:
    assert order([]) == []
    assert order([Clue(1, 0.0, "a"), Clue(2, 0.0, "b")]) == [1, 2]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("connection", "connector", True),
        ("route", "router", True),
        ("routes", "routing", True),
        ("utility", "utils", True),
        ("serialize", "serialization", True),
        ("dep", "dependencies", True),
        ("go", "google", False),
        ("go", "go", True),
        ("request", "response", False),
        ("parse", "party", False),
    ],
)
def test_forms_of_a_word_are_alike(one: str, other: str, alike: bool) -> None:
    assert are_alike(one, other) is are_alike(other, one) is alike


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/app/session.py", ""),
        ("tests/app/helpers.py", "test"),
        ("src/app/test_session.py", "test"),
        ("pkg/tree_test.go", "test"),
        ("src/GsonTest.java", "test"),
        ("src/contest.py", ""),
        ("src/jvmTest/kotlin/Flow.kt", "test"),
        ("Shop.Tests/Basket.cs", "test"),
        ("src/router/tests.rs", "test"),
        ("web/src/app.spec.ts", "test"),
        ("pkg/attestation/attest.go", ""),
        ("latest/session.py", ""),
        ("examples/shop.rs", "example"),
        ("third_party/zlib/inflate.c", "vendored"),
        ("api/user_pb2.py", "generated"),
        ("app/locales/de.ts", "translation"),
        ("pkg/_compat.py", "compatibility"),
        ("lib/types.d.ts", "type stub"),
    ],
)
def test_paths_tell_roles(path: str, role: str) -> None:
    assert role_of(path) == role


def test_documents_beside_code_are_documentation() -> None:
    assert role_of("docs/routing.md", is_prose=True) == "documentation"
    assert role_of("docs/routing.md") == ""


def test_words_of_a_question_ask_for_roles() -> None:
    assert asked_roles(["how", "tests", "mock"]) == {"test"}
    assert asked_roles(["legacy", "examples"]) == {"compatibility", "example"}
    assert asked_roles(["routes"]) == frozenset()
