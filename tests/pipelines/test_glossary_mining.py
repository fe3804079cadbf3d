"""Candidates for the glossary from many documents."""

from __future__ import annotations

import pytest

from findling.domain.records import GlossaryTerm
from findling.domain.resources import Document, Resource
from findling.pipelines.glossary import glossary_mining
from findling.pipelines.glossary.glossary import propose
from findling.pipelines.glossary.glossary_mining import mine
from findling.pipelines.indexing.document_build import make_document
from findling.sources.extracted import Extracted
from findling.sources.files.file_types import EXTENSIONS, FileType
from findling.text.analysis.prose_languages import PROSE
from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.mining.synonyms import SynonymCandidate

TTL = "Records have a Time To Live (TTL)."


def document(text: str, name: str = "a.md", lang: str = "markdown", title: str = "") -> Document:
    resource = Resource(rid=f"file:{name}", path=name, lang=lang, title=title)
    return make_document(resource, Extracted(text=text, lang=lang), plan=ChunkPlan(size=600))


def documents(*texts: str) -> list[Document]:
    return [document(text, f"{number}.md") for number, text in enumerate(texts)]


def pairs(candidates: list[SynonymCandidate]) -> list[tuple[str, str, str]]:
    return [(candidate.surface, candidate.group, candidate.source) for candidate in candidates]


def test_what_a_text_says_outright_counts_from_the_first_time_on() -> None:
    (found,) = mine([document(TTL)])
    assert found == SynonymCandidate("TTL", "Time To Live", "acronym", TTL)
    assert pairs(mine([document("A throttle, also known as a rate limiter, helps.")])) == [
        ("throttle", "rate limiter", "also")
    ]


def test_the_most_certain_and_most_frequent_come_first() -> None:
    often = ["We use role-based access control (RBAC)."] * 5
    found = mine(documents("A rate limiter (also throttle) helps.", TTL, *often))
    assert pairs(found) == [
        ("RBAC", "role-based access control", "acronym"),
        ("TTL", "Time To Live", "acronym"),
        ("throttle", "rate limiter", "also"),
    ]
    assert mine(documents("A rate limiter (also throttle) helps.", TTL, *often), most=2) == found[:2]
    assert mine([], most=5) == []


def test_spellings_of_one_pair_are_one_candidate() -> None:
    found = mine(
        documents(TTL, "The time-to-live (TTL)", "a TTL (time to live)", "We use an API (app programming icon)")
    )
    assert pairs(found) == [
        ("TTL", "Time To Live", "acronym"),
        ("API", "app programming icon", "acronym"),
    ]


def test_a_resource_counts_once_however_often_it_says_it() -> None:
    one = "We use role-based access control (RBAC). " * 50
    found = mine(documents(one, TTL, TTL.replace("Records", "Entries")))
    assert [candidate.surface for candidate in found] == ["TTL", "RBAC"]


def test_the_title_is_read_too() -> None:
    assert [c.surface for c in mine([document("Nothing.", title="Time To Live (TTL)")])] == ["TTL"]


@pytest.mark.parametrize(
    "lang", ["python", "javascript", "json", "csv", "yaml", "diff", "log", "translation", "archive"]
)
def test_only_prose_is_mined(lang: str) -> None:
    assert mine([document(TTL, "a.x", lang)]) == []


@pytest.mark.parametrize("lang", ["", "text", "markdown", "rst", "html", "pdf", "docx", "mail"])
def test_prose_of_every_kind_is_mined(lang: str) -> None:
    assert len(mine([document(TTL, "a.x", lang)])) == 1


def test_the_languages_of_prose_exist() -> None:
    assert {kind.lang for kind in EXTENSIONS.values() if isinstance(kind, FileType)} >= PROSE


def test_joined_and_apart_in_three_resources_each() -> None:
    apart = [f"The file name of number {number} and its e-mail are\nlong." for number in range(3)]
    joined = [f"A filename for {number}, and an email." for number in range(3)]
    found = mine(documents(*apart, *joined))
    assert pairs(found) == [("email", "e-mail", "variant"), ("filename", "file name", "variant")]
    assert [candidate.snippet for candidate in found] == [" ".join(joined[2].split())] * 2  # the evidence is complete
    assert pairs(mine(documents(*joined, *apart))) == pairs(found)
    assert mine(documents(*apart[:2], *joined)) == []
    assert mine(documents(*apart, *joined[:2])) == []


def test_a_name_and_an_identifier_are_no_variants() -> None:
    apart = [f"Ron Korving wrote rate limit {number}." for number in range(3)]
    joined = [f"By ronkorving, see rateLimit and rate_limit and RATE_LIMIT, {number}" for number in range(3)]
    assert mine(documents(*apart, *joined)) == []


def test_one_heading_is_enough_for_two_spellings() -> None:
    (found,) = mine([document("# Rate Limit\n\nThe ratelimit is 5 a second.\n")])
    assert found[:3] == ("ratelimit", "rate limit", "variant")
    assert "Rate Limit" in found.snippet
    (found,) = mine([document("# Filename\n\nEvery file name is short.\n")])
    assert found[:3] == ("filename", "file name", "variant")
    assert mine([document("# First\n\nThe ratelimit is 5. Each rate limit counts.\n")]) == []


def test_the_end_of_a_heading_and_the_beginning_of_the_next_are_no_pair() -> None:
    assert mine([document("# Rate\n\nThe ratelimit is 5.\n\n# limit\n\nmore\n")]) == []


def test_rare_words_one_letter_apart_with_the_same_neighbours() -> None:
    british = [f"An uninitialised value and uninitialised memory, {number}." for number in range(3)]
    american = [f"An uninitialized value and uninitialized memory, {number}." for number in range(4)]
    (found,) = mine(documents(*british, *american))
    assert found[:3] == ("uninitialised", "uninitialized", "co-occurrence")
    assert found.snippet == "uninitialised and uninitialized both stand in: … memory, … value"
    assert mine(documents(*british[:2], *american)) == []
    elsewhere = [f"An uninitialized thing and uninitialized stuff, {number}." for number in range(4)]
    assert mine(documents(*british, *elsewhere)) == []


def test_words_that_are_common_or_forms_of_one_word_are_no_spellings() -> None:
    texts = [f"many encoders encode; an encoding rule, encodings rule, {number}, encoding table, encodings table"
             for number in range(4)]  # fmt: skip
    assert mine(documents(*texts)) == []
    common = [f"A contact form, contact data; a contract form, contract data, {number}." for number in range(51)]
    assert [c.surface for c in mine(documents(*common[:5]))] == ["contact"]
    assert mine(documents(*common)) == []


def test_what_is_seen_least_is_forgotten_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_mining, "_MOST_HELD", 40)
    noise = [
        f"word{chr(97 + n % 26)}{chr(97 + n // 26)}x other{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(100)
    ]
    letters = list(zip("ABCDEFGHIJ", "KLMNOPQRST", strict=True))
    once = [f"An {a}ble {b}ox{number} ({a}{b})" for number in range(10) for a, b in letters]
    kept = ["A file name here.", "A filename here.", TTL]
    found = mine(documents(*kept * 4, *noise, *once, *kept))
    assert ("filename", "file name", "variant") in pairs(found)
    assert found[0][:2] == ("TTL", "Time To Live")
    assert len(found) < 45


def test_candidates_go_into_the_queue_but_not_what_was_rejected() -> None:
    candidates = mine(documents(TTL, "A rate limiter (also throttle) helps."))
    rejected = GlossaryTerm("Time To Live", "ttl", "TTL", "rejected")
    queued = [term for term in propose([rejected], candidates).put if term.status == "pending"]
    assert [(term.surface, term.group, term.source) for term in queued] == [("throttle", "rate limiter", "also")]
