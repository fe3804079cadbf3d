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

from findling.domain.ports import ReadStore, VectorHits, VectorSearch
from findling.domain.queries import Filters, LegQuery
from findling.domain.resources import ALL, Resource, Share, beside
from findling.domain.results import Degradation, Evidence
from findling.domain.values import changed, record
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

_READ_AHEAD = 20
"""Chunks that a model may read during a search."""

_WISHED = 80
"""Nearest chunks that a model is to read next where some of the first 20 are unread: 10 s in the background."""


@record()
class Space:
    """One kind of vectors: the leg that holds them, what turns a query into one of them, and whose chunks they judge.

    `is_whole` says that all chunks of the share have one: a part of them is no fair sample. `languages` are those of
    its queries. `read_on` reads more during a search, where that is wanted.
    """

    leg: VectorSearch
    embedder: Embedder
    is_whole: bool = True
    share: Share = ALL
    languages: str = ""
    read_on: Callable[[Sequence[int], float, Sequence[int]], dict[int, bytes]] | None = None

    @property
    def is_refined(self) -> bool:
        """Whether a model has made its vectors."""
        return self.leg.speed == "refined"


class ModelCoverage(NamedTuple):
    """The chunks that a model is to read, how many have vectors that serve, and the languages of its queries.

    Without a name it is that of a caller who is not told how far a model has come.
    """

    name: str
    languages: str
    read: int
    chunks: int


class Meaning(NamedTuple):
    """The vectors and models at hand for a search by meaning.

    `spaces` come best first; `readings` tell how far the models have come, and `in_background` whether they go on by
    themselves. `may_send` decides which resources a reranker elsewhere may be sent; `judge` gives the one at hand,
    which is the `reranker` where a plan wants it. `instant` finds near lines of a hit. `spare` gives the spaces that
    are left when a model fails; both note what is wrong. `degraded` says what is missing.
    """

    spaces: tuple[Space, ...] = ()
    readings: tuple[ModelCoverage, ...] = ()
    may_send: Callable[[Resource], bool] = lambda resource: True
    reranker: Reranker | None = None
    instant: Embedder | None = None
    in_background: bool = True
    spare: Callable[[list[Degradation]], list[Space]] = lambda notes: []
    judge: Callable[[list[Degradation]], Reranker | None] = lambda notes: None
    degraded: tuple[Degradation, ...] = ()

    @property
    def coverage(self) -> float:
        """The share of the chunks that the models are to read which they have read."""
        chunks = sum(one.chunks for one in self.readings)
        return sum(one.read for one in self.readings) / chunks if chunks else 0.0


def may_hang(meaning: Meaning) -> bool:
    """Whether a search with these vectors asks a model, which may take any time; instant vectors are arithmetic."""
    return meaning.reranker is not None or any(space.leg.speed != "instant" for space in meaning.spaces)


def told_unread(meaning: Meaning) -> tuple[str, ...]:
    """Notes on models that have not read everything, for an answer without hits."""
    when = "in a while, or after findling refine" if meaning.in_background else "after findling refine"
    return tuple(
        # Rounded down: "100% so far" would be no reason for anything.
        f"{one.name} has read {one.read * 100 // one.chunks}% of the passages so far: ask again {when}"
        for one in meaning.readings
        if one.name and one.read < one.chunks
    )


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

    def judged(self, vectors: Mapping[int, bytes]) -> dict[int, Evidence]:
        """The evidence of vectors as a store keeps them."""
        from findling.pipelines.indexing.fanout import to_rows

        if not vectors:
            return {}
        return self.hits(dict(zip(vectors, _products(to_rows([*vectors.values()]), self.query).tolist(), strict=True)))

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

    What the others hold is judged by the vectors that are left without them, with a note on what is wrong.
    """
    refined = [space for space in meaning.spaces if space.is_refined]
    able = [space for space in refined if _reads(space.languages, text)]
    if len(able) == len(refined):
        return meaning
    left = beside(space.share for space in able if space.is_whole)
    spare = [changed(space, share=left) for space in meaning.spare(notes)] if left else []
    readings = tuple(one for one in meaning.readings if _reads(one.languages, text))
    return meaning._replace(spaces=(*able, *spare), readings=readings)


def judge_of(meaning: Meaning, text: str, notes: list[Degradation]) -> Reranker | None:
    """The judge at hand, if there is a text to judge by, in a language that it knows; a note says what is wrong."""
    judge = meaning.judge(notes) if text else None
    return judge if judge is None or _reads(judge.languages, text) else None


def _reads(languages: str, text: str) -> bool:
    if languages == "English":  # as most models: the lists of other languages are not looked at
        return not _is_foreign(text)
    from findling.text.analysis.prose_languages import reads

    return reads(languages, text)


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
        hits = space.leg.search(vector, limit, allowed=within(space.share, allowed), also=also)
        told = known if space.embedder.languages.startswith("English") else 1.0
        asked = SpaceQuery(space, vector, *_usual(hits, space), told, ACROSS if is_foreign else FOREIGN)
        queries.append(asked)
        # A chunk that is both near and asked for by name has one cosine.
        fresh = {cid: cosine for cid, cosine in (*hits.hits, *hits.scores.items()) if cid not in found}
        found |= asked.hits(fresh)
    return found, queries


def within(share: Share, allowed: Collection[int] | None) -> Collection[int] | None:
    """The numbers of a share that are allowed; `None` stands for all."""
    if allowed is None or share.numbers is None:
        return share.numbers if allowed is None else allowed
    return [number for number in allowed if number in share]


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
        """Have models read the best and the nearest chunks that they have not read, as long as the plan allows."""
        readers = [asked for asked in self._queries if asked.space.read_on is not None]
        if not query.plan.budget_ms or not readers:
            return {}
        judged = self._judged
        # Also what is not near enough: the model may see more in it.
        nearest = sorted(judged, key=lambda cid: -judged[cid].strength)[:_WISHED]
        ahead = list(dict.fromkeys([*best, *nearest]))[:_WISHED]
        unread = [cid for cid in ahead if cid not in judged or judged[cid].why == "instant"]
        now = [cid for cid in unread if cid in ahead[:_READ_AHEAD]]
        deadline = self._started + query.plan.budget_ms / 1000
        found: dict[int, Evidence] = {}
        for asked in readers if now else ():
            if (read_on := asked.space.read_on) is not None:
                found |= asked.judged(read_on(now, deadline, unread[len(now) :]))
        return found


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
