"""The order in which files are indexed and read by a model, and the few that a first answer needs."""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from findling.domain.ports import SkippedPath
from findling.pipelines.indexing.freshness import IndexOptions
from findling.ranking.path_roles import turn_of
from findling.ranking.resource_evidence import Clue, ResourceRanking
from findling.sources.documents.table import FORMATS
from findling.sources.files.discovery import FoundFile, scan
from findling.sources.files.file_types import file_type
from findling.sources.files.path_clues import resource_question, told_by_path
from findling.sources.files.plain_scan import LARGEST_SCANNED, needles, scanned_files
from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.chunker import parses
from findling.text.chunking.measures import characters_of

LARGEST_FIRST = LARGEST_SCANNED
"""Bytes or characters of one file that are indexed for a first answer, from the beginning of a plain text."""

_MUCH_BYTES = 2_000_000
"""Files of so many bytes take longer to index than a person waits for a first answer."""

_FILE_BYTES = 500
"""Bytes that take as long as a file does apart from its bytes, 0.17 ms: 50,000 tiny files are 1 MB and 8 s."""

_FIRST_BYTES, _FIRST_FILES = 1_000_000, 40
"""Bytes and files that are indexed for a first answer: a quarter of a second of one core."""

_MOST_RANKED = 1_500
"""Files whose paths are judged, the strongest by their texts: 20 µs each."""

_SAMPLE_SIZE, _SAMPLE_FILES = 4_000, 120
"""Bytes of a file of the sample at most, and number of its files."""

_WALKED, _SCANNED = 0.3, 0.7
"""Shares of the time before a first answer after which the walk ends, and the scan."""

_AGES_S = (86_400.0, 7 * 86_400.0, 30 * 86_400.0, 365 * 86_400.0)
"""Ages that make a difference: a day, a week, a month, a year. Files of one age stay in the order of their paths."""

_SET_BACK = frozenset("build deps extern external gen lang migrations out packages snapshots".split())
"""Folders whose files few people write themselves, besides those whose role tells it."""

_GENERATED = (".po", ".pot", ".svg", ".snap")
_LARGE = 300_000
"""Bytes from which a text is more likely data than something that somebody has written."""

_DOCUMENTS, _NO_EDITION = ("markdown", "text"), (True, [math.inf])

_TONGUE = "(?:ar|bn|cs|da|de|el|en|es|fa|fi|fr|he|hi|hu|it|ja|ko|nl|pl|pt|ro|ru|sv|th|tr|uk|vi|zh)(?:[-_][a-z]{2,4})?"
_EDITION = re.compile(rf"(?<![^/])(?:v\d[^/]*|\d+(?:\.[\dx]+)+|version-[^/]+|{_TONGUE})/|[._]{_TONGUE}(?=\.[a-z]+$)")
"""Parts of the path of a document that tell its release or language; a year alone tells neither."""


def touched_first(files: Iterable[FoundFile], now: float | None = None) -> list[FoundFile]:
    """Files in the order in which people need them: recent ones first, and in the order of their paths.

    Tests, examples, change logs and data come after definitions and prose. Last come translations, generated and
    vendored files, large ones, and twins. A twin has the name and the size of an earlier file. So has a document in
    another language than English, or of an older release, beside the same one.
    """
    files, now_ns = list(files), (time.time() if now is None else now) * 1e9
    seen: set[tuple[str, int]] = set()
    kinds = [file_type(file.path.rpartition("/")[2]).kind for file in files]
    editions = [_edition(file.path, kind in _DOCUMENTS) for file, kind in zip(files, kinds, strict=True)]
    best: dict[str, tuple[bool, list[float]]] = {}
    for key, rank in editions:
        best[key] = max(rank, best.get(key, rank))
    keyed: list[tuple[int, int, FoundFile]] = []
    for file, kind, (key, rank) in zip(files, kinds, editions, strict=True):
        *folders, name = file.path.lower().split("/")
        twin = name, file.size
        is_last = file.size > _LARGE or twin in seen or rank < best[key]
        is_last = is_last or name.endswith(_GENERATED) or not _SET_BACK.isdisjoint(folders)
        turn = 2 if is_last else max(turn_of(file.path), int(kind == "data"))
        seen.add(twin)
        keyed.append((turn, bisect_left(_AGES_S, (now_ns - file.changed_ns) / 1e9), file))
    return [file for _, _, file in sorted(keyed, key=lambda entry: entry[:2])]


def _edition(path: str, is_document: bool) -> tuple[str, tuple[bool, list[float]]]:
    """The path of a document without release and language, and a rank: English and the latest release are the best."""
    parts = _EDITION.findall(path.lower()) if is_document else ()
    if not parts:
        return path.lower() if is_document else path, _NO_EDITION
    numbers = [float(number) for part in parts for number in re.findall(r"\d+", part)]
    is_foreign = any(re.match(r"[._]?[a-z]{2}\b(?<!en)", part) for part in parts)
    return _EDITION.sub("", path.lower()), (not is_foreign, numbers or [math.inf])


class Patience:
    """The time that a person waits for a first answer, from now on.

    It ends after so many seconds. On a busy machine or a slow disk it ends later, at most after twice as many: an
    answer from ten files is worth less than one from a thousand that comes a second later.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began, self._worked = seconds, time.monotonic(), time.thread_time()

    def is_over(self, share: float = 1.0) -> bool:
        """Whether a share of the time is over."""
        most, passed = self._seconds * share, time.monotonic() - self._began
        return passed > 2 * most or (passed > most and time.thread_time() - self._worked > most / 2)


def look_around(
    root: Path, options: IndexOptions, parts: Sequence[str], patience: Patience
) -> tuple[list[FoundFile], bool]:
    """The files below a root, the upper folders first, as far as a walk comes in time, and whether these are all.

    Reads and writes nothing.
    """
    files: list[FoundFile] = []
    for part in parts:
        for found in scan(str(root), options.rules, part, by_level=True):
            if not isinstance(found, SkippedPath):
                files.append(found)
            if patience.is_over(_WALKED):
                return files, False
    return files, True


def is_much(files: Iterable[FoundFile]) -> bool:
    """Whether it takes longer to index files than to answer from a first look at them."""
    return sum(file.size + _FILE_BYTES for file in files) > _MUCH_BYTES


def first_files(root: Path, files: Iterable[FoundFile], question: str, patience: Patience) -> list[FoundFile]:
    """The files that a first answer to a question needs: those that a plain scan for its words finds, the best first.

    Without any, those that people touched last. Some small ones from all over the tree come with them: among nothing
    but files that have its words, a word of the question would not look as rare as it is.
    """
    order = touched_first(files)
    found = scanned_files(str(root), order, needles(question), partial(patience.is_over, _SCANNED))
    chosen = _fitting(_ranked(found, question) or order, _FIRST_BYTES, _FIRST_FILES)
    small = [file for file in order if file.size <= _SAMPLE_SIZE]
    sample = small[:: max(1, len(small) // _SAMPLE_FILES)][:_SAMPLE_FILES]
    return list(dict.fromkeys([*chosen, *sample]))


def _ranked(found: Mapping[FoundFile, float], question: str) -> list[FoundFile]:
    """Files in the order of their texts and of their paths, as the whole answer judges passages of code."""
    # A file with words in its path alone has no strength: it may be a document, which only an index reads.
    files = sorted(found, key=lambda file: -(found[file] or math.inf))[:_MOST_RANKED]
    clues = [Clue(at, found[file], file.path, *told_by_path(file.path, False)) for at, file in enumerate(files)]
    return [files[at] for at, _ in ResourceRanking(clues, resource_question(question)).ranking]


def _fitting(files: Iterable[FoundFile], left: int, most: int) -> list[FoundFile]:
    """The first files, at most so many, that are not too large for what is left of the bytes.

    Of a large plain text only the beginning counts, which is what is read of it.
    """
    chosen: list[FoundFile] = []
    for file in files:
        is_plain = file_type(file.path.rpartition("/")[2]).lang not in FORMATS
        size = min(file.size, LARGEST_FIRST) if is_plain else file.size
        if size <= min(left, LARGEST_FIRST):
            chosen.append(file)
            left -= size
        if len(chosen) == most:
            break
    return chosen


def needs_process(plan: ChunkPlan, path: str, size: int) -> bool:
    """Whether a file is prepared in a process of its own: its parser may crash or never return.

    A text that is one piece is not parsed.
    """
    lang = file_type(path.rpartition("/")[2]).lang
    return (lang in FORMATS and FORMATS[lang].untrusted) or (size > characters_of(plan) and parses(plan, lang))
