"""From a resource and its text to a document: chunks with stable ids and exact places."""

from __future__ import annotations

from collections import defaultdict
from hashlib import blake2b

from findling.domain.resources import Chunk, Document, Fingerprint, Piece, Resource
from findling.text.chunking import chunk_text
from findling.text.lines import line_numbers

__all__ = ["make_document"]

_ID_BITS = (1 << 63) - 1
_REPEAT = 0x9E3779B97F4A7C15
"""An odd constant that spreads the ids of equal chunks within one resource."""


def make_document(
    resource: Resource, text: str, *, chunk_size: int, fingerprint: Fingerprint | None = None
) -> Document:
    """Cut the text into chunks and give each its id."""
    pieces = chunk_text(text, resource.lang, chunk_size)
    return Document(resource, text, tuple(_chunks(resource.rid, text, pieces)), fingerprint)


def _chunks(rid: str, text: str, pieces: list[Piece]) -> list[Chunk]:
    offsets = [offset for piece in pieces for offset in (piece.start, max(piece.start, piece.end - 1))]
    lines = line_numbers(text, offsets)
    resource_bits = _hash(rid, b"resource")
    heading_bits: dict[tuple[str, ...], int] = {}
    seen: defaultdict[int, int] = defaultdict(int)
    chunks = []
    for ordinal, (start, end, heading) in enumerate(pieces):
        digest = blake2b(text[start:end].encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if heading not in heading_bits:
            heading_bits[heading] = _hash("\x1f".join(heading), b"heading")
        # Three independent hash functions: an edit elsewhere in the resource leaves all of them as they were.
        bits = int.from_bytes(digest[:8], "big") ^ resource_bits ^ heading_bits[heading]
        cid = (bits + seen[bits] * _REPEAT) & _ID_BITS
        seen[bits] += 1
        first, last = lines[2 * ordinal], lines[2 * ordinal + 1]
        chunks.append(Chunk(cid, digest, ordinal, start, end, first, last, heading))
    return chunks


def _hash(text: str, purpose: bytes) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=purpose).digest(), "big")
