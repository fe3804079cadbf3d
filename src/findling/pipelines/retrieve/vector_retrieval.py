"""Finding by meaning: the nearness of chunks to a query, on one scale for the vectors of all models."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from findling.domain.ports import ReadStore, TruthStore, VectorHits, VectorSearch
from findling.domain.queries import Filters, LegQuery
from findling.domain.resources import Resource
from findling.domain.results import Degradation, Evidence
from findling.domain.values import record
from findling.ranking.evidence import ACROSS, FOREIGN, cosine_of, meaning_evidence

if TYPE_CHECKING:
    from findling.domain.ports import Vectors
    from findling.models.ports import Embedder, Reranker

_LEG = "semantic"

MOST_QUERIES = 1024
"""Queries that are kept of each model: 1.5 MB with 384 numbers a vector."""

_kept: WeakKeyDictionary[Embedder, OrderedDict[str, Vectors]] = WeakKeyDictionary()
_lock = threading.Lock()


_LEAST_BYTES = 192_000_000
"""Address space that numpy, OpenBLAS and onnxruntime map for a first question."""


def _require_memory() -> None:
    """Raise MemoryError where a limit does not leave what numpy needs: OpenBLAS would end the process."""
    if "numpy" in sys.modules or sys.platform == "win32":
        return
    import mmap
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    try:
        mmap.mmap(-1, _LEAST_BYTES).close()
    except OSError as error:
        raise MemoryError("a limit leaves too little memory for a search by meaning") from error


def query_vector(embedder: Embedder, text: str, kind: str = "query") -> Vectors:
    """The vector of a query, which must not be changed: others have it, too. Raises ModelError as the model does.

    A question may be put as a `passage` that could answer it, which some models read otherwise.
    """
    key = text if kind == "query" else f"{kind}\0{text}"
    with _lock:
        kept = _kept.setdefault(embedder, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            return kept[key]
    # Outside the lock: two threads that read the same query at once cost less than all others waiting for one.
    vector: Vectors = embedder.embed([text], kind)[0].copy()
    vector.flags.writeable = False
    with _lock:
        kept[key] = vector
        while len(kept) > MOST_QUERIES:
            kept.popitem(last=False)
    return vector


_FULL = 8.0
"""Deviations above what is usual that count as a perfect match."""

_IN_A_COLLECTION, _WIDER = 2.0, 1.7
"""Passages of one collection have something to do with each other: their cosines lie two deviations above those of
unrelated texts, and deviate 1.7 times as much. Measured on five collections."""

_PRIOR_ROWS = 60
"""Rows that a model's usual cosines weigh: a handful of chunks does not show what is unusual."""

_UNKNOWN = 0.5
"""Weight of the meaning of words that a model cuts into letters. Of 40 times 1 to 3 invented words the nearest passage
of four development sets has a cosine of .30 at most in nine of ten, and .44 at most: they would need .60."""

_READ_AT_ONCE = 4
"""Passages a model reads between two looks at the clock."""

_READ_AHEAD = 20
"""Chunks that a model may read during a search."""

_WISHED = 80
"""Nearest chunks that a model is to read next where some of the first 20 are unread: 10 s in the background."""

_FIRST_GUESS_S = 0.03
"""Less than what one passage takes on most machines: with less time than that, none is read."""


@record()
class Space:
    """One kind of vectors: the leg that holds them, and what turns a query into one of them.

    `is_whole` says that all chunks have one: a part of them is no fair sample.
    """

    leg: VectorSearch
    embedder: Embedder
    is_whole: bool = True


KeepRead = Callable[[str, Mapping[bytes, bytes], Sequence[int]], None]
"""Takes a model, its new vectors by digest, and the chunks that it should read next."""


class Meaning(NamedTuple):
    """The vectors and models at hand for a search by meaning.

    `spaces` come best first. `coverage` is the share of chunks that the model has read, and `read_on` reads more of
    them during a search, where that is wanted. `may_send` decides which resources a reranker elsewhere may be sent;
    `judge` gives the one at hand, which is the `reranker` where a plan wants it. `instant` finds near lines of a hit.
    `reader` names the model that has not read everything, `in_background` tells whether it goes on by itself. `spare`
    gives the spaces that are left when a model fails; both note what is wrong. `degraded` says what is missing.
    """

    spaces: tuple[Space, ...] = ()
    coverage: float = 0.0
    read_on: Callable[[SpaceQuery, Sequence[int], float, Sequence[int]], dict[int, Evidence]] | None = None
    may_send: Callable[[Resource], bool] = lambda resource: True
    reranker: Reranker | None = None
    instant: Embedder | None = None
    reader: str = ""
    in_background: bool = True
    spare: Callable[[list[Degradation]], list[Space]] = lambda notes: []
    judge: Callable[[list[Degradation]], Reranker | None] = lambda notes: None
    degraded: tuple[Degradation, ...] = ()


def may_hang(meaning: Meaning) -> bool:
    """Whether a search with these vectors asks a model, which may take any time; instant vectors are arithmetic."""
    return meaning.reranker is not None or any(space.leg.speed != "instant" for space in meaning.spaces)


def told_unread(meaning: Meaning) -> tuple[str, ...]:
    """A note that the model has not read everything, for an answer without hits."""
    if not meaning.reader:
        return ()
    # Rounded down: "100% so far" would be no reason for anything.
    read = f"{meaning.reader} has read {int(meaning.coverage * 100)}% of the passages so far"
    when = "in a while, or after findling refine" if meaning.in_background else "after findling refine"
    return (f"{read}: ask again {when}",)


class SpaceQuery(NamedTuple):
    """A query in one space, the cosines that are usual there, and the share that the model knows.

    Evidence that is `enough` finds a chunk by its meaning alone.
    """

    space: Space
    query: Vectors
    mean: float
    deviation: float
    known: float = 1.0
    enough: float = FOREIGN

    def hit(self, cosine: float) -> Evidence:
        """The evidence of a cosine."""
        return self.hits({0: cosine})[0]

    def hits(self, cosines: Mapping[int, float]) -> dict[int, Evidence]:
        """The evidence of the cosines of some chunks."""
        _, _, mean, deviation, known, enough = self
        # As the tuple that it is, which takes a third of the time that its own constructor takes.
        speed, usual, made = self.space.leg.speed, self.usual, tuple.__new__
        found: dict[int, Evidence] = {}
        for cid, cosine in cosines.items():
            strength = (cosine - mean) / deviation / _FULL if deviation > 0 else 0.0
            # Comparisons, not min and max: a query judges hundreds of chunks.
            strength = 0.0 if strength < 0.0 else 1.0 if strength > 1.0 else strength
            support = meaning_evidence(cosine, usual, known)
            # A chunk no nearer than foreign texts is not found by its meaning.
            worth = support if support >= enough else 0.0
            found[cid] = made(
                Evidence,
                (_LEG, cosine, strength, worth, speed, "cosine", 0, 0.0, 0.0, 0.0, support),
            )
        return found

    @property
    def usual(self) -> tuple[float, float]:
        """Mean and deviation of the cosines of unrelated texts; guessed from this query where nobody knows them."""
        known = self.space.embedder.usual_cosines
        if known is not None:
            return known
        deviation = self.deviation / _WIDER
        return self.mean - _IN_A_COLLECTION * deviation, deviation

    @property
    def least(self) -> float:
        """The cosine from which a chunk is found by its meaning alone."""
        return cosine_of(self.enough, self.usual, self.known)


def nearness_to(embedder: Embedder, query: str) -> Callable[[Sequence[str]], Sequence[float]]:
    """A function that gives the cosines of texts with the query."""
    vector = query_vector(embedder, query)

    def cosines_of(texts: Sequence[str]) -> Sequence[float]:
        cosines: list[float] = _products(embedder.embed(list(texts)), vector).tolist()
        return cosines

    return cosines_of


def _products(rows: Vectors, vector: Vectors) -> Vectors:
    """The product of each row with a vector, by one thread: `@` is BLAS, whose threads spin between two queries."""
    import numpy as np

    products: Vectors = np.einsum("ij,j->i", rows, vector)
    return products


def able_to_read(meaning: Meaning, text: str, notes: list[Degradation]) -> Meaning:
    """The meaning with the spaces that know the language of a text.

    A model that knows English only gives way to the vectors that are left without it, with a note on what is wrong.
    """
    if all(_knows_more(space) for space in meaning.spaces) or not _is_foreign(text):
        return meaning
    able = [space for space in meaning.spaces if _knows_more(space)] or [*filter(_knows_more, meaning.spare(notes))]
    return meaning._replace(spaces=tuple(able), coverage=0.0, read_on=None, reader="")


def judge_of(meaning: Meaning, text: str, notes: list[Degradation]) -> Reranker | None:
    """The judge at hand, if there is a text to judge by, in a language that it knows; a note says what is wrong."""
    judge = meaning.judge(notes) if text else None
    return None if judge is None or (judge.languages == "English" and _is_foreign(text)) else judge


def _knows_more(space: Space) -> bool:
    return space.embedder.languages != "English"


def _is_foreign(text: str) -> bool:
    from findling.text.analysis.wordpieces import is_foreign  # a search by words has no use for it

    return is_foreign(text)


def find_by_meaning(
    spaces: Sequence[Space],
    query: str,
    limit: int,
    *,
    allowed: Collection[int] | None = None,
    also: Sequence[int] = (),
    held: Container[str] = (),
    kind: str = "query",
) -> tuple[dict[int, Evidence], list[SpaceQuery]]:
    """The chunks nearest to the query, and those in `also`, each judged by the best vectors there are of it.

    The query may be of the kind `passage`. `held` are the words of it that the index holds, whatever a model knows.
    Raises ModelError when the query cannot be turned into a vector, MemoryError where a limit leaves too little of it.
    """
    from findling.text.analysis.tongue_pieces import knows_a_word
    from findling.text.analysis.wordpieces import known_share

    _require_memory()
    is_foreign = bool(spaces) and _is_foreign(query)
    # Words that an English vocabulary cuts into letters may well be words of another language.
    share = known_share(query, held) if not is_foreign else 1.0
    known = 0.0 if is_foreign and not knows_a_word(query, held) else _UNKNOWN + (1 - _UNKNOWN) * share
    found: dict[int, Evidence] = {}
    queries = []
    for space in spaces:
        vector = query_vector(space.embedder, query, kind)
        hits = space.leg.search(vector, limit, allowed=allowed, also=also)
        told = known if space.embedder.languages.startswith("English") else 1.0
        asked = SpaceQuery(space, vector, *_usual(hits, space), told, ACROSS if is_foreign else FOREIGN)
        queries.append(asked)
        # A chunk that is both near and asked for by name has one cosine.
        fresh = {cid: cosine for cid, cosine in (*hits.hits, *hits.scores.items()) if cid not in found}
        found |= asked.hits(fresh)
    return found, queries


def allowed_resources(store: ReadStore, filters: Filters) -> Collection[int] | None:
    """The numbers of the resources that pass the filters; `None` when there are none."""
    return None if filters == Filters() else frozenset(store.matching(filters))


class VectorRetriever:
    """The leg of meaning for one query: the spaces at hand, and what they have said of chunks so far."""

    name = _LEG

    def __init__(self, store: ReadStore, meaning: Meaning) -> None:
        self._store, self._meaning = store, meaning
        self._queries: list[SpaceQuery] = []
        self._judged: dict[int, Evidence] = {}
        self._started = time.monotonic()

    @property
    def least(self) -> float:
        """The cosine from which a chunk is found by its meaning alone."""
        return self._queries[0].least if self._queries else 0.0

    def search(self, query: LegQuery, limit: int, also: Sequence[int] = ()) -> dict[int, Evidence]:
        """Judge the nearest chunks, none where the plan lets meaning reorder only, and those in `also`."""
        near, self._queries = find_by_meaning(
            self._meaning.spaces,
            query.text,
            limit if query.plan.meaning_finds else 0,
            allowed=allowed_resources(self._store, query.filters),
            also=also,
            held=query.held,
        )
        self._judged |= near
        return near

    def second_look(self, query: LegQuery, best: Sequence[int]) -> dict[int, Evidence]:
        """Have the model read the best and the nearest chunks that it has not read, as long as the plan allows."""
        if not query.plan.budget_ms or self._meaning.read_on is None:
            return {}
        judged = self._judged
        # Also what is not near enough: the model may see more in it.
        nearest = sorted(judged, key=lambda cid: -judged[cid].strength)[:_WISHED]
        ahead = list(dict.fromkeys([*best, *nearest]))[:_WISHED]
        unread = [cid for cid in ahead if cid not in judged or judged[cid].why == "instant"]
        now = [cid for cid in unread if cid in ahead[:_READ_AHEAD]]
        deadline = self._started + query.plan.budget_ms / 1000
        return self._meaning.read_on(self._queries[0], now, deadline, unread[len(now) :]) if now else {}


def read_in_time(
    store: TruthStore,
    keep: KeepRead,
    asked: SpaceQuery,
    cids: Sequence[int],
    deadline: float,
    later: Sequence[int] = (),
) -> dict[int, Evidence]:
    """Judge chunks that the model has not read yet, the first ones first, as many as can be read by the deadline.

    `keep` takes the new vectors, and the chunks to be read next: those left, then those of `later`. Raises ModelError
    when the model cannot read.
    """
    from findling.pipelines.indexing.embedding_run import embed_chunks
    from findling.pipelines.indexing.fanout import to_rows

    chunks = list(store.chunks(cids).values())
    embedder = asked.space.embedder
    read: dict[bytes, bytes] = {}
    done, each_s = 0, _FIRST_GUESS_S
    while done < len(chunks) and (fits := int((deadline - time.monotonic()) / each_s)) > 0:
        # The first is timed alone; after that, as many as will fit.
        batch = chunks[done : done + min(fits, _READ_AT_ONCE if done else 1)]
        started = time.monotonic()
        read |= embed_chunks(embedder, batch)
        each_s = (time.monotonic() - started) / len(batch)
        done += len(batch)
    left = [stored.chunk.cid for stored in chunks if stored.chunk.digest not in read]
    keep(embedder.fingerprint, read, [*left, *later])
    judged = [stored for stored in chunks if stored.chunk.digest in read]
    if not judged:
        return {}
    cosines = _products(to_rows([read[stored.chunk.digest] for stored in judged]), asked.query)
    return {stored.chunk.cid: asked.hit(float(cosine)) for stored, cosine in zip(judged, cosines, strict=True)}


def _usual(hits: VectorHits, space: Space) -> tuple[float, float]:
    """Mean and deviation of cosines, as seen in these rows and, the fewer they are, as usual for the model."""
    if space.embedder.usual_cosines is None:
        return hits.mean, hits.deviation
    foreign_mean, foreign_deviation = space.embedder.usual_cosines
    usual_mean, usual_deviation = foreign_mean + _IN_A_COLLECTION * foreign_deviation, _WIDER * foreign_deviation
    rows = hits.rows if space.is_whole else 0
    total = rows + _PRIOR_ROWS
    mean = (rows * hits.mean + _PRIOR_ROWS * usual_mean) / total
    variance = (
        rows * (hits.deviation**2 + (hits.mean - mean) ** 2)
        + _PRIOR_ROWS * (usual_deviation**2 + (usual_mean - mean) ** 2)
    ) / total
    return mean, math.sqrt(variance)
