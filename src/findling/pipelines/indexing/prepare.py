"""Preparing: from a file on disk to a document that is ready to store. It needs no store, so it runs anywhere."""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import NamedTuple

from findling.domain.ports import SkippedPath
from findling.domain.resources import ChunkTerms, Document, Fingerprint, Resource
from findling.pipelines.indexing.document_build import make_document
from findling.pipelines.indexing.freshness import UNKNOWN, UNSURE_NS, IndexOptions
from findling.sources.documents.table import FORMATS
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError, changed_ns, decode, inode_of, read_bytes
from findling.sources.files.file_types import file_type
from findling.stores.validation import NEVER
from findling.text.analysis.analysis import chunk_terms
from findling.text.chunking.chunk_plan import context_title, in_context
from findling.text.chunking.defined_names import defined_terms


class Job(NamedTuple):
    """The root and the options of a run; `analyse` and `embed` ask for words and instant vectors of chunks.

    With `beginning`, only so many characters of a plain text are indexed, and the next run reads all of it.
    """

    root: str
    options: IndexOptions
    analyse: bool = True
    embed: bool = False
    beginning: int = 0


class Task(NamedTuple):
    """One file to prepare; `known_digest` is that of its indexed content."""

    path: str
    size: int
    changed_ns: int
    known_digest: bytes = b""


class Prepared(NamedTuple):
    """The outcome of a file: a new document, the fingerprint of an unchanged one, or the reason for neither."""

    path: str
    bytes_read: int = 0
    document: Document | None = None
    unchanged: Fingerprint | None = None
    skipped: SkippedPath | None = None


def file_rid(path: str) -> str:
    """The resource id of a file, given its path below the workspace's root."""
    return f"file:{path}"


def prepare(job: Job, task: Task) -> Prepared:
    """Read, extract, cut and analyse one file. No content of a file raises."""
    path = task.path
    type_ = file_type(path.rpartition("/")[2])
    try:
        rules = job.options.rules
        limit = rules.max_document_size if type_.kind == "document" else rules.max_file_size
        data, status = read_bytes(f"{job.root}/{path}", limit)
        digest = blake2b(data, digest_size=16).digest()
        # A file may be written twice within one tick of the clock: NEVER has it read again.
        changed = changed_ns(status)
        settled = abs(time.time_ns() - changed) > UNSURE_NS
        fingerprint = Fingerprint(len(data), changed if settled else NEVER, digest, inode_of(status))
        if digest == task.known_digest:
            return Prepared(path, len(data), unchanged=fingerprint)
        if job.beginning and len(data) > job.beginning and type_.lang not in FORMATS:
            fingerprint = UNKNOWN
        return Prepared(path, len(data), _document(job, path, type_.lang, data, status.st_mtime, fingerprint))
    except UnreadableError as error:
        return refuse(task, error.reason, error.detail)
    except MemoryError:
        return refuse(task, "out-of-memory", "needs more memory than a document may take")
    except Exception as error:
        # A parser may fail in any way: the file fails, not the run.
        return refuse(task, "crashed", f"{type(error).__name__}: {error}"[:200])


def refuse(task: Task, reason: str, detail: str) -> Prepared:
    """The outcome of a file that gives no document."""
    return Prepared(task.path, task.size, skipped=SkippedPath(task.path, reason, detail, task.size, task.changed_ns))


def _document(job: Job, path: str, lang: str, data: bytes, mtime: float, fingerprint: Fingerprint) -> Document:
    """The document with the words and vectors that the legs need."""
    if lang in FORMATS:
        from findling.sources.documents.document_formats import extract

        extracted = extract(Source(data, path.rpartition("/")[2], job.options.max_text))
    else:
        text = decode(data)[0]
        if fingerprint == UNKNOWN:
            text = text[: text.rfind("\n", 0, job.beginning) + 1] or text[: job.beginning]
        extracted = Extracted(text=text, lang=lang)
    resource = Resource(
        rid=file_rid(path),
        path=path,
        lang=lang,
        title=extracted.title,
        author=extracted.author,
        created_at=extracted.created_at,
        updated_at=mtime if extracted.updated_at is None else extracted.updated_at,
        fields=extracted.fields,
    )
    resource, text, chunks, *_ = make_document(resource, extracted, plan=job.options.plan)
    terms: tuple[ChunkTerms, ...] = ()
    vectors: tuple[bytes, ...] = ()
    if job.analyse:
        names = defined_terms(text, lang, chunks)
        terms = tuple([chunk_terms(text, chunk, defines) for chunk, defines in zip(chunks, names, strict=True)])
    if job.embed and chunks:
        from findling.models.local.instant import instant_codes

        title = context_title(resource)
        passages = [in_context(title, heading, text[start:end]) for _, _, _, start, end, _, _, heading, _ in chunks]
        vectors = tuple(instant_codes(passages))
    return Document(resource, text, chunks, fingerprint, terms, vectors)
