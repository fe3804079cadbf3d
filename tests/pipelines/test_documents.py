"""Chunk ids are stable: an edit changes the ids of what it changed and of nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from findling.domain.resources import Document, Resource
from findling.pipelines.indexing.document_build import make_document
from findling.sources.extracted import Extracted
from findling.text.chunking.chunk_plan import ChunkPlan

SECTIONS = [f"## Section {n}\n\n" + f"Words about topic {n}. " * 40 + "\n\n" for n in range(12)]


def document_of(resource: Resource, text: str) -> Document:
    return make_document(resource, Extracted(text=text, lang=resource.lang), plan=ChunkPlan(size=600))


def document(text: str, rid: str = "file:a.md") -> Document:
    return document_of(Resource(rid=rid, path=rid.removeprefix("file:"), lang="markdown"), text)


def cids(text: str, rid: str = "file:a.md") -> list[int]:
    return [chunk.cid for chunk in document(text, rid).chunks]


def test_an_edit_leaves_the_other_ids_alone() -> None:
    before = cids("".join(SECTIONS))
    changed = [*SECTIONS[:5], SECTIONS[5].replace("Words", "Phrases"), *SECTIONS[6:]]
    after = cids("".join(changed))
    assert 0 < len(set(before) ^ set(after)) <= 2 * (len(before) - 10)
    assert len(set(before) & set(after)) >= 10


def test_a_paragraph_in_front_moves_spans_and_keeps_ids() -> None:
    before = document("".join(SECTIONS))
    after = document("## New\n\n" + "Something new. " * 40 + "\n\n" + "".join(SECTIONS))
    moved = {chunk.cid: chunk for chunk in after.chunks}
    for chunk in before.chunks:
        assert moved[chunk.cid].line_start == chunk.line_start + 4
        assert moved[chunk.cid].digest == chunk.digest


def test_equal_chunks_have_ids_of_their_own_and_one_digest() -> None:
    twice = document("## Same\n\n" + "again " * 90 + "\n\n## Same\n\n" + "again " * 90 + "\n")
    assert len({chunk.cid for chunk in twice.chunks}) == len(twice.chunks) >= 2
    assert len({chunk.digest for chunk in twice.chunks}) == 1


def test_the_same_text_elsewhere_has_other_ids_and_the_same_digests() -> None:
    text = "".join(SECTIONS)
    assert set(cids(text)).isdisjoint(cids(text, rid="file:b.md"))
    assert [c.digest for c in document(text).chunks] == [c.digest for c in document(text, "file:b.md").chunks]


def test_ids_tell_a_resource_from_a_heading() -> None:
    text = "equal words\n"
    one = document_of(Resource(rid="Intro", lang="markdown"), f"# Setup\n\n{text}")
    other = document_of(Resource(rid="Setup", lang="markdown"), f"# Intro\n\n{text}")
    assert one.chunks[0].cid != other.chunks[0].cid
    same = [document_of(Resource(rid=name, lang="markdown"), f"# {name}\n\n{text}") for name in "ab"]
    assert same[0].chunks[0].cid != same[1].chunks[0].cid


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=3000))
def test_ids_fit_the_store_and_lines_fit_the_text(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for chunk in document(text).chunks:
        assert 0 <= chunk.cid < 2**63
        assert 1 <= chunk.line_start <= chunk.line_end <= len(lines)
        assert text[chunk.start : chunk.end].strip()[:10] in "\n".join(lines[chunk.line_start - 1 :]) or "\r" in text
