"""Moves of the truth of a workspace between this host and a server, checked by questions to both.

The file with the URL in the workspace's folder decides which truth counts: a kill leaves the old or new one.
A move that was stopped continues where it was.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, LockedError, WorkspaceError
from findling.domain.ports import TruthStore
from findling.domain.results import SearchAnswer
from findling.domain.strangers import BUNDLE_KEPT
from findling.pipelines.export.copying import CopyProgress, copy_truth, finish_copy
from findling.pipelines.indexing.embedding_run import READ_UP_TO
from findling.service.engine.engine import Engine
from findling.service.index.embeddings import WANTED
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings
from findling.service.workspace.backends import is_same_place, shown_url
from findling.service.workspace.host_files import follow_files
from findling.service.workspace.manifest import own_quota, share_quota, write_manifest
from findling.service.workspace.quotas import Quota
from findling.service.workspace.scope import OWN
from findling.service.workspace.store_url import gone_workspace, name_at
from findling.service.workspace.truth_moves import prepare_move, switch_truth, tidy_move
from findling.service.workspace.workspace import PROJECT_FOLDER, backend_at, place_of, workspace_in
from findling.service.workspace.workspaces import find_workspace
from findling.stores.lock import taken

QUESTIONS = 200
"""Questions whose answers must be the same before and after."""

_KEPT = (*BUNDLE_KEPT, "indexed_at", "root", "parts", "found", "situated", "manifest", "exact", "graph")
"""The small values that do not depend on the numbers of changes."""

_PATIENCE_S = 60.0
"""The patience with a reader in the background, which ends after its batch."""


class MoveReport(NamedTuple):
    """The workspace after a move: its folder, the place of its truth, and how many answers were compared."""

    folder: Path
    place: str
    is_moved: bool
    resources: int = 0
    asked: int = 0


def move_truth(
    text: str, to: str, *, home: Path, settings: Settings, on_progress: CopyProgress | None = None
) -> MoveReport:
    """Move the truth of a workspace to the `home` or to the URL of a server.

    The source stays until every answer is the same. Raises NotFoundError, InvalidValueError, LockedError, and
    WorkspaceError when an answer differs.
    """
    found = find_workspace(text, home)
    url = "" if to == "home" else to
    if found.folder.name == PROJECT_FOLDER:
        raise InvalidValueError(
            f"the index of {text} lies in its project", hint=f"findling workspaces set {text} --to home"
        )
    if url:
        name_at(url)
    draft = home / f".moving-{found.key}"
    here = place_of(found.folder)
    if (not url and not here) or (url and here and is_same_place(here, url)):
        tidy_move(found.folder, draft)
        return MoveReport(found.folder, shown_url(here) or "home", is_moved=False)
    if here and not backend_at(found.folder).exists():
        raise gone_workspace(found.folder)
    prepare_move(found.folder, draft, url)
    own = settings.override({"search.refresh": "never", "semantic.refine": "never", "workspace.name": ""}, "move")
    with Engine(workspace_in(found.folder), own, reach=OWN) as source, _still(source):
        truth = source.writer.store
        _copy(truth, source.home, draft, url, settings["keyword.unit"], on_progress)
        questions = list(islice(questions_about(truth), QUESTIONS))
        with Engine(workspace_in(draft), own, reach=OWN) as target:
            _compare(source, target, questions)
        with closing(backend_at(draft).open_store()) as store:
            finish_copy(truth, store, is_used=False)
        resources = truth.counts()["resources"]
        source.opened.close()
        switch_truth(found.folder, draft, url)
    tidy_move(found.folder, draft)
    return MoveReport(found.folder, shown_url(url) or "home", True, resources, len(questions))


def _copy(truth: TruthStore, folder: Path, draft: Path, url: str, unit: str, on_progress: CopyProgress | None) -> None:
    """Copy a truth, with what its workspace keeps beside it. Raises InvalidValueError where the place holds another."""
    files = OpenedWorkspace(draft, unit=unit)
    with closing(files), files.writing():
        if not copy_truth(truth, files.store, _KEPT, on_progress):
            raise InvalidValueError(
                f"{shown_url(url) or draft} holds other content already", hint="name another workspace behind #"
            )
        # Which models have read everything: the number of that change is another one.
        for model in truth.models():
            seq, _, share = (truth.get_meta(READ_UP_TO + model) or "").partition(" ")
            if seq == str(truth.seq()):
                files.store.set_meta(READ_UP_TO + model, f"{files.store.seq()} {share}".strip())
        # Kept by the truth that hosts share, and in the file of one that they do not.
        quota = own_quota(folder, truth)
        share_quota(draft, files.store, quota or Quota())
        write_manifest(folder, quota=quota)
        if url and files.store.get_meta("root"):
            follow_files(folder, files.store)


def questions_about(store: TruthStore) -> Iterator[str]:
    """Questions that the content of a store answers: titles, words, and phrases, the same ones each time."""
    chance = random.Random(7)
    numbers = [right.number for right in store.rights()]
    chance.shuffle(numbers)
    asked: set[str] = set()
    # As many rounds as a small workspace needs; every round takes other words.
    for turn in range(2 * QUESTIONS):
        for text in store.texts(numbers[turn % max(len(numbers), 1) :][:QUESTIONS]):
            for question in _questions(text.text, chance):
                if question not in asked:
                    asked.add(question)
                    yield question


def _questions(text: str, chance: random.Random) -> Iterator[str]:
    words = re.findall(r"\w{2,30}", text[:100_000])
    if not words:
        return
    start = chance.randrange(len(words))
    yield chance.choice(words)
    yield " ".join(chance.choices(words, k=3))
    yield '"' + " ".join(words[start : start + 3]) + '"'
    yield " ".join(words[:6])


@contextmanager
def _still(source: Engine) -> Iterator[None]:
    """Keep writers and the model away from a workspace."""
    files = source.writer.files
    refine = files.backend.lock("refine")
    with taken(files.backend.lock(WANTED), 0.0):  # another one that wants the passages may hold it as well
        is_ours = refine.acquire(_PATIENCE_S)
    if not is_ours:
        raise LockedError("another process is having the passages read", hint="findling refine --stop")
    try:
        with files.writing():
            yield
    finally:
        refine.release()


def _compare(source: Engine, target: Engine, questions: list[str]) -> None:
    """Raise WorkspaceError when an answer differs."""
    after = [_shown(target.search(question, refresh=False)) for question in questions]
    if _same(source, questions, after) == len(questions):
        return
    # A leg that counts deleted chunks until it is compacted scores a little differently.
    source.repair()
    same = _same(source, questions, after)
    if same < len(questions):
        raise WorkspaceError(
            f"the answer to {questions[same]!r} is another one, after {same} that are the same; nothing has moved",
            hint="findling doctor, then the same command again",
        )


def _same(source: Engine, questions: list[str], after: list[object]) -> int:
    """The number of questions whose answers are the same, up to the first that is not."""
    pairs = zip((_shown(source.search(question, refresh=False)) for question in questions), after, strict=True)
    return next((number for number, (one, other) in enumerate(pairs) if one != other), len(questions))


def _shown(answer: SearchAnswer) -> object:
    return answer.total, [(hit.id, round(hit.score, 5), hit.line, hit.lines) for hit in answer.hits]
