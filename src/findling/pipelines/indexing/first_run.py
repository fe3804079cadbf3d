"""The beginning of a long index run: the few files that a first answer needs while a person waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from findling.domain.ports import LegIndex, TruthStore
from findling.domain.reports import IndexReport, Progress
from findling.pipelines.indexing.fanout import Legs
from findling.pipelines.indexing.freshness import UNKNOWN, IndexOptions
from findling.pipelines.indexing.index_run import Admission, Update
from findling.pipelines.indexing.reading_order import LARGEST_FIRST, Patience, first_files, is_much, look_around
from findling.pipelines.indexing.survey import Survey

FIRST_S = 1.2
"""Seconds that the files for a first answer are looked for and indexed, and the most for one document of them."""


def begin_run(
    store: TruthStore,
    leg: Callable[[], LegIndex],
    root: Path,
    options: IndexOptions,
    question: str,
    survey: Callable[[Patience], tuple[Survey, bool] | None],
    on_progress: Progress | None,
    allowance: Admission,
) -> IndexReport | None:
    """Index what a first answer to a question needs; nothing is done when all can be indexed as quickly.

    `leg` gives the keyword leg in step: vectors cost most of the time, and the next run catches up on them. `survey`
    tells what is missing, and whether that is all, or nothing where only a whole run can tell. The caller holds the
    write lock.
    """
    patience = Patience(FIRST_S)
    seen = survey(patience)
    if seen is None or (seen[1] and not is_much(seen[0].changed)):
        return None
    found = seen[0]
    # A large file that is indexed as a whole stays so until there is time to read all of it.
    fitting = [
        file for file in found.changed if file.size <= LARGEST_FIRST or found.known.get(file.path, UNKNOWN) == UNKNOWN
    ]
    few = found._replace(changed=first_files(root, fitting, question, patience), vanished=[])
    # A document that takes long is left to the next run.
    hurried = options._replace(max_seconds=min(options.max_seconds, FIRST_S))
    return Update(store, Legs(store, leg()), root, few, hurried, on_progress, allowance, patience).run()


def missing_files(
    store: TruthStore, root: Path, options: IndexOptions, parts: Sequence[str], patience: Patience
) -> tuple[Survey, bool] | None:
    """The files of a tree that were never indexed, as far as a walk comes in time, and whether these are all.

    Nothing where documents were made in another way before: only a survey tells what has to be read again.
    """
    known = store.fingerprints()
    if known and any(store.get_meta(key) != options.circumstances[key] for key in ("made_by", "formats")):
        return None
    files, is_whole = look_around(root, options, parts, patience)
    marks = {path: (mark.size, mark.changed_ns) for path, mark in known.items()}
    missing = [file for file in files if marks.get(file.path) != (file.size, file.changed_ns)]
    return Survey(missing, [], len(files) - len(missing), [], known, {}), is_whole
