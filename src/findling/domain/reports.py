"""Reports on an index: the outcome of a run, its state, its health; and complete answers. A search needs none of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.results import Degradation, JsonAnswer
from findling.domain.values import plain, record


class IndexProgress(NamedTuple):
    """A moment of an indexing run; `total` is 0 while it is not known.

    `stage` is `scan`, `index`, `write` (a batch), `commit` (all of it) or `done`. The first moment says the `reason` of
    the run, and `path` is the folder then. `done` of `total` files are read, or could not be: `failed` of them.
    `bytes_read` of `bytes_total` are dealt with: half of a file when it is read, all of it once it is written.
    """

    stage: str
    done: int = 0
    total: int = 0
    chunks: int = 0
    failed: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    seconds: float = 0.0
    path: str = ""
    reason: str = ""

    @property
    def bytes_per_second(self) -> float:
        """The average speed of reading so far."""
        return self.bytes_read / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest at this speed; `None` before there is any."""
        speed = self.bytes_per_second
        return max(0, self.bytes_total - self.bytes_read) / speed if speed else None


Progress = Callable[[IndexProgress], None]


def told_changes(added: int, updated: int, removed: int) -> str:
    """The changes of a run in words, without those of which there are none."""
    counts = {"new": added, "changed": updated, "gone": removed}
    return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)


@record(kw_only=True)
class IndexReport:
    """The outcome of an indexing run; `skipped` counts by reason, `partial` documents that were read in part."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    partial: int = 0
    chunks: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """The number of resources that differ from before the run."""
        return self.added + self.updated + self.removed


@record(kw_only=True)
class Status:
    """The content of a workspace, and the progress of its legs.

    `meaning` is the state of vectors: instant ones, the model, its progress (`read`, `of`, `withheld`, `refining`,
    `speed`, `seconds_left`, `waiting`), the host that text is sent to, the reranker, and any problem. `graph_seq` is 0
    as long as no question has needed the graph.
    """

    root: Path
    home: Path
    resources: int
    chunks: int
    characters: int
    size_bytes: int
    seq: int
    keyword_seq: int
    indexed_at: float | None
    skipped: Mapping[str, int]
    format: int
    analyzer: str
    meaning: Mapping[str, Any] = field(default_factory=dict)
    graph_seq: int = 0


@record(kw_only=True)
class Check:
    """One finding of `check`: what was looked at, whether it is well, and what to do if not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


class ExpressionError(InvalidValueError):
    """A pattern that is no regular expression; a face has its own way to ask for plain text."""


@record(kw_only=True)
class GrepRequest:
    """A question for all lines that match one of the patterns.

    `case` is `sensitive`, `ignore`, or `smart`, which ignores it unless a pattern has a capital letter. `globs` limit
    the files, in gitignore syntax and relative to the folder `base`; one with `!` in front leaves files out. `gives` is
    `lines`, `counts` or `files`; counts are those of matches instead of lines where `only_matching` ones are asked for.
    `most` limits the lines of one file, `limit` those of the answer, or its files; 0 is no limit. `within` and
    `principals` are as those of a `SearchRequest`.
    """

    patterns: tuple[str, ...]
    fixed: bool = False
    case: str = "sensitive"
    words: bool = False
    invert: bool = False
    globs: tuple[str, ...] = ()
    base: str = ""
    only_matching: bool = False
    before: int = 0
    after: int = 0
    gives: str = "lines"
    most: int = 0
    limit: int = 0
    within: str | None = None
    principals: tuple[str, ...] | None = None


class MatchedLine(NamedTuple):
    """A line with its break, its number, and the byte of the text that it begins at.

    `spans` are the matches in it, in characters; a line around a match is no match itself and has none.
    """

    number: int
    text: str
    offset: int
    is_match: bool = True
    spans: tuple[tuple[int, int], ...] = ()


class MatchedFile(NamedTuple):
    """A file, or another resource, with the `total` of its lines that match: 1 where only files are asked for.

    `is_extract` says that its lines are those of the text that was extracted from it.
    """

    path: str
    rid: str
    total: int
    lines: tuple[MatchedLine, ...] = ()
    is_extract: bool = False


@record(kw_only=True)
class GrepAnswer(JsonAnswer):
    """All files that match, in the order of their paths.

    `strategy` says how they were found, and `searched` in how many texts; `is_cut` that the answer is not complete.
    """

    files: tuple[MatchedFile, ...] = ()
    strategy: str = ""
    searched: int = 0
    is_cut: bool = False
    degraded: tuple[Degradation, ...] = ()

    @property
    def total(self) -> int:
        """The number of lines that match."""
        return sum(file.total for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values; lines without their breaks."""
        files = [
            {
                "path": file.path,
                "total": file.total,
                "extracted": file.is_extract,
                "lines": [
                    {"number": one.number, "text": one.text.rstrip("\r\n"), "match": one.is_match, "spans": one.spans}
                    for one in file.lines
                ],
            }
            for file in self.files
        ]
        facts = {"strategy": self.strategy, "searched": self.searched, "is_cut": self.is_cut}
        return {"files": files, "total": self.total, **facts, "degraded": plain(self.degraded)}


class ListedFile(NamedTuple):
    """A file that a glob matches, with the time of its last change in seconds since the epoch."""

    path: str
    updated_at: float | None = None


@record(kw_only=True)
class GlobAnswer(JsonAnswer):
    """The indexed files that a glob matches; `total` counts those, too, that a limit leaves out."""

    files: tuple[ListedFile, ...] = ()
    total: int = 0
    degraded: tuple[Degradation, ...] = ()


class OutlinedDefinition(NamedTuple):
    """A definition of a file: its name with its scopes, its lines, the definitions around it, and its first line."""

    name: str
    line: int
    end: int
    level: int
    signature: str


@record(kw_only=True)
class OutlineAnswer(JsonAnswer):
    """The definitions of one file, each before what it holds."""

    path: str
    rid: str
    lang: str
    definitions: tuple[OutlinedDefinition, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values."""
        return {"path": self.path, "id": self.rid, "lang": self.lang, "definitions": plain(self.definitions)}


class Reference(NamedTuple):
    """A line of code with a name: `kind` is `defines`, `imports`, `calls` or `uses`; `symbol` the definition around."""

    path: str
    line: int
    kind: str
    symbol: str
    text: str


@record(kw_only=True)
class RefsAnswer(JsonAnswer):
    """All lines of code that have a name, definitions first; `total` counts those, too, that a limit leaves out."""

    name: str
    references: tuple[Reference, ...] = ()
    total: int = 0
    is_cut: bool = False
    degraded: tuple[Degradation, ...] = ()


class RelatedPassage(NamedTuple):
    """A passage that proves a relation, by the line of it that says most; its `id` is that of a hit."""

    id: str
    rid: str
    path: str
    title: str
    line: int
    place: str
    text: str


class RelatedStep(NamedTuple):
    """A step of a path: one passage names both ends, or belongs to the document that one of them is."""

    start: str
    end: str
    passage: RelatedPassage


class RelatedPath(NamedTuple):
    """A path between two things: what stands on it, in order, and the steps with their passages."""

    names: tuple[str, ...]
    score: float
    steps: tuple[RelatedStep, ...]


class RelatedName(NamedTuple):
    """A name that passages of a thing have beside it; `resources` counts the documents of these passages."""

    name: str
    score: float
    resources: int
    passage: RelatedPassage


class RelatedDocument(NamedTuple):
    """A document that names a thing, or shares names with it; `names` are those, the most telling first."""

    names: tuple[str, ...]
    score: float
    passage: RelatedPassage


@record(kw_only=True)
class RelatedAnswer(JsonAnswer):
    """The paths between two things, the strongest first; of one thing, the names and documents around it.

    `of` and `to` are written as texts write them; `unknown` are things that nothing names.
    """

    of: str
    to: str = ""
    paths: tuple[RelatedPath, ...] = ()
    names: tuple[RelatedName, ...] = ()
    documents: tuple[RelatedDocument, ...] = ()
    unknown: tuple[str, ...] = ()
    degraded: tuple[Degradation, ...] = ()

    @property
    def is_found(self) -> bool:
        """Whether there is any relation."""
        return bool(self.paths or self.names or self.documents)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values."""
        values = super().to_dict()
        for path in values["paths"]:
            path["steps"] = [{"from": one.pop("start"), "to": one.pop("end"), **one} for one in path["steps"]]
        return values
