"""Tables of vectors in collections of Chroma, one for each workspace and model."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from findling.domain.ports import VectorHits
from findling_chroma.clients import asking, client_at

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as ChromaCollection

__all__ = ["ChromaTable", "ChromaVectors", "open_vectors"]

_EXACT_BELOW = 5_000
"""Rows up to which all are held in memory and compared: 5 MB, and quicker than the graph of neighbours."""

_BATCH = 4_000
"""Rows of one request; Chroma takes 5,461."""

_SAMPLE = 2_000
_MOST_NUMBERS = 10_000
"""Resources that a filter names: Chroma takes 30 µs for each."""


def open_vectors(url: str, folder: Path) -> ChromaVectors:
    """The tables of the workspace in `folder`: `chroma:`, `chroma:PATH`, `chroma:http://HOST:PORT`."""
    place = url.partition(":")[2]
    if not place:
        place = str(folder / "chroma")
    elif not place.startswith(("http://", "https://")):
        place = str(Path(place).expanduser().absolute())
    return ChromaVectors(place, _digest(str(folder.absolute())))


class ChromaVectors:
    """Implements `LegStore`: collections `findling-OWNER-MODEL` at a place."""

    def __init__(self, place: str, owner: str, exact_below: int = _EXACT_BELOW) -> None:
        self.place = place
        self._prefix = f"findling-{owner}-"
        self._exact_below = exact_below

    def open(self, store_id: str, key: str = "", size: int = 0) -> ChromaTable:
        """Open the vectors of a model, empty when there are none of this store. Raises CorruptError."""
        return ChromaTable(self.place, self._name(key), f"{store_id}|{key}", size, self._exact_below)

    def state(self, store_id: str, key: str = "") -> Mapping[str, int]:
        """The state of the vectors of a model."""
        return self.open(store_id, key).state

    def discard(self, key: str | None = None) -> None:
        """Delete the table of a model, or of all."""
        with asking(self.place):
            client = client_at(self.place)
            names = [name for name in _names(client) if name.startswith(self._prefix)]
            for name in names if key is None else {self._name(key)}.intersection(names):
                client.delete_collection(name)

    def exists(self, key: str = "") -> bool:
        """Whether there is a table of a model."""
        with asking(self.place):
            return self._name(key) in set(_names(client_at(self.place)))

    def damage(self) -> list[str]:
        """Nothing: a table tells by itself."""
        return []

    def _name(self, model: str) -> str:
        return self._prefix + _digest(model)


class ChromaTable:
    """Implements `VectorTable` as one collection. The state of the last commit is the collection's metadata.

    A commit writes rows before the state. So the leg, which continues from the last state, repeats a commit that was
    interrupted. Rows without a state count as none.
    """

    def __init__(self, place: str, name: str, made_for: str, dimensions: int, exact_below: int) -> None:
        self._place, self._name, self._made_for, self._dimensions = place, name, made_for, dimensions
        self._exact_below = exact_below
        self._pending: dict[int, tuple[int, NDArray[np.float32]] | None] = {}
        self._collection: ChromaCollection | None = None
        self.state: Mapping[str, int] = {}
        with asking(place):
            self._client = client_at(place)
            found = _collection(self._client, name)
        note = (found.metadata or {}) if found is not None else {}
        fits = dimensions in (0, note.get("dimensions"))
        if note.get("made_for") == made_for and fits and note.get("state"):
            self._collection = found
            self.state = {key: int(value) for key, value in json.loads(str(note["state"])).items()}

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"Chroma, {self._place}, {self._name}"

    def __len__(self) -> int:
        return len(self._rows[0])

    def cids(self) -> set[int]:
        """The chunks that have a row."""
        return set(self._rows[0].tolist())

    def count(self, allowed: Collection[int]) -> int:
        """Number of chunks of these resources that have a vector."""
        return int(np.count_nonzero(_among(self._rows[1], allowed)))

    def add(self, cids: Sequence[int], numbers: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Add rows, or replace those of the same chunks, with the next commit. Raises ValueError for wrong shapes."""
        rows = np.asarray(vectors, np.float32)
        if rows.shape != (len(cids), self._dimensions) or len(numbers) != len(cids):
            raise ValueError(f"{len(cids)} chunks and {len(numbers)} numbers with vectors of shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("a vector holds a value that is no finite number")
        self._pending.update(zip(map(int, cids), zip(map(int, numbers), rows, strict=True), strict=True))

    def add_codes(self, cids: Sequence[int], numbers: Sequence[int], codes: Sequence[bytes]) -> None:
        """Add rows of 8-bit numbers, whose directions count; zeros are left out."""
        known = [place for place, row in enumerate(codes) if any(row)]
        data = b"".join(codes[place] for place in known)
        if len(data) != len(known) * self._dimensions:
            raise ValueError(f"{len(known)} rows of codes have {len(data)} numbers")
        rows = np.frombuffer(data, np.int8).reshape(-1, self._dimensions).astype(np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
        self.add([cids[place] for place in known], [numbers[place] for place in known], rows / lengths)

    def drop(self, cids: Iterable[int]) -> None:
        """Remove the rows of these chunks, with the next commit; chunks without one are passed over."""
        self._pending.update(dict.fromkeys(map(int, cids)))

    def commit(self, **state: int) -> None:
        """Make everything added and dropped so far visible and durable, together with these numbers."""
        with asking(self._place):
            collection = self._collection or self._made_anew()
            put = [(cid, row) for cid, row in self._pending.items() if row is not None]
            for part in _parts(put):
                collection.upsert(
                    ids=[str(cid) for cid, _ in part],
                    embeddings=np.stack([row for _, (_, row) in part]),
                    metadatas=[{"number": number} for _, (number, _) in part],
                )
            for gone in _parts([str(cid) for cid, row in self._pending.items() if row is None]):
                if there := collection.get(ids=gone, include=[])["ids"]:
                    collection.delete(ids=there)
            collection.modify(metadata=self._note(state))
        self._collection, self.state = collection, dict(state)
        self._forget()

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self.close()
        self._collection, self.state = None, {}

    def close(self) -> None:
        """Forget what was not committed; the client stays for others."""
        self._forget()

    def damaged_parts(self) -> list[str]:
        """The rows that are no unit vectors of a resource; every one is read."""
        cids, _ = self._rows
        wrong = 0
        for part in _parts(cids.tolist()):
            wrong += int(np.count_nonzero(np.abs(np.linalg.norm(self._fetched(part), axis=1) - 1) > 1e-2))
        return [f"{wrong} rows"] if wrong else []

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = False,
    ) -> VectorHits:
        """The nearest chunks among those of the allowed resources; with `exact`, each of them is compared."""
        cids, numbers = self._rows
        kept = cids if allowed is None else cids[_among(numbers, allowed)]
        vector = np.asarray(query, np.float32)
        asked = sorted(set(map(int, also)) & set(cids.tolist())) if also else []
        scores = dict(zip(asked, self._cosines(vector, asked).tolist(), strict=True))
        if not len(kept):
            return VectorHits([], scores, 0.0, 0.0, 0)
        near = None if exact or len(cids) <= self._exact_below else self._near(vector, limit, kept, allowed)
        if near is None:
            looked_at = self._cosines(vector, kept.tolist())
            near = list(zip(kept.tolist(), looked_at.tolist(), strict=True))
        else:
            even = np.linspace(0, len(kept) - 1, min(len(kept), _SAMPLE)).astype(np.int64)
            looked_at = self._cosines(vector, kept[even].tolist())
        hits = sorted(near, key=lambda hit: (-hit[1], hit[0]))[:limit]
        return VectorHits(hits, scores, float(looked_at.mean()), float(looked_at.std()), len(kept))

    def _near(
        self, vector: NDArray[np.float32], limit: int, kept: NDArray[np.int64], allowed: Collection[int] | None
    ) -> list[tuple[int, float]] | None:
        """Candidates out of the graph of neighbours; `None` where it gives too few."""
        wanted = min(limit, len(kept))
        if not wanted:
            return []
        where: dict[str, Any] = {}
        number = 2 * wanted + 16
        if allowed is not None:
            inside = np.unique(self._rows[1][_among(self._rows[1], allowed)])
            if len(inside) <= _MOST_NUMBERS:
                where = {"where": {"number": {"$in": inside.tolist()}}}
            else:
                number *= 4
        with asking(self._place):
            assert self._collection is not None
            found = self._collection.query(
                query_embeddings=vector.reshape(1, -1),
                n_results=min(number, len(self._rows[0]) if not where else len(kept)),
                include=["embeddings"],
                **where,
            )
        near, rows = [int(name) for name in found["ids"][0]], found["embeddings"]
        assert rows is not None
        cosines = _products(np.asarray(rows[0], np.float32), vector).tolist()
        inside_now = set(kept.tolist())
        hits = [hit for hit in zip(near, cosines, strict=True) if hit[0] in inside_now]
        return hits if len(hits) >= wanted else None

    def _cosines(self, vector: NDArray[np.float32], cids: Sequence[int]) -> NDArray[np.float32]:
        """The cosines of rows, in the order of these chunks, which have one."""
        if not len(cids):
            return np.empty(0, np.float32)
        if len(self._rows[0]) <= self._exact_below:
            return _products(self._all[np.searchsorted(self._rows[0], cids)], vector)
        return np.concatenate([_products(self._fetched(part), vector) for part in _parts(list(cids))])

    def _fetched(self, cids: Sequence[int]) -> NDArray[np.float32]:
        """The rows of chunks, in their order."""
        if not cids or self._collection is None:
            return np.empty((0, self._dimensions), np.float32)
        with asking(self._place):
            found = self._collection.get(ids=[str(cid) for cid in cids], include=["embeddings"])
            rows = np.asarray(found["embeddings"], np.float32)
            places = {int(name): place for place, name in enumerate(found["ids"])}
            if len(places) != len(set(cids)):
                raise ValueError(f"{len(set(cids)) - len(places)} rows are gone")
        return rows[[places[cid] for cid in cids]]

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The chunks in order, and the numbers of their resources."""
        found: dict[int, int] = {}
        if self._collection is not None:
            with asking(self._place):
                total = self._collection.count()
                for offset in range(0, total, _BATCH):
                    page = self._collection.get(include=["metadatas"], limit=_BATCH, offset=offset)
                    notes: Sequence[Mapping[str, Any]] = page["metadatas"] or []
                    numbers = [int(note["number"]) for note in notes]
                    found.update(zip(map(int, page["ids"]), numbers, strict=True))
        cids = np.array(sorted(found), np.int64)
        return cids, np.array([found[cid] for cid in cids.tolist()], np.int64)

    @cached_property
    def _all(self) -> NDArray[np.float32]:
        """All rows of a small table, in the order of their chunks."""
        cids = self._rows[0].tolist()
        return np.concatenate([np.empty((0, self._dimensions), np.float32), *map(self._fetched, _parts(cids))])

    def _forget(self) -> None:
        self._pending = {}
        self.__dict__.pop("_rows", None)
        self.__dict__.pop("_all", None)

    def _made_anew(self) -> ChromaCollection:
        if _collection(self._client, self._name) is not None:
            self._client.delete_collection(self._name)
        # Products, not cosines: Chroma would change the vectors. They have length 1.
        return self._client.create_collection(
            self._name, configuration={"hnsw": {"space": "ip"}}, metadata=self._note(None), embedding_function=None
        )

    def _note(self, state: Mapping[str, int] | None) -> dict[str, Any]:
        written = "" if state is None else json.dumps(dict(state))
        return {"made_for": self._made_for, "dimensions": self._dimensions, "state": written}


def _collection(client: ClientAPI, name: str) -> ChromaCollection | None:
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def _names(client: ClientAPI) -> list[str]:
    names: list[str] = []
    while page := client.list_collections(limit=100, offset=len(names)):
        names += [collection.name for collection in page]
    return names


def _parts(values: list[Any]) -> Iterator[list[Any]]:
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))


def _products(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    # Not BLAS, whose sums depend on the rows beside a row.
    products: NDArray[np.float32] = np.einsum("ij,j->i", rows, vector)
    return products


def _among(numbers: NDArray[np.int64], allowed: Collection[int]) -> NDArray[np.bool_]:
    return np.isin(numbers, np.fromiter(allowed, np.int64, len(allowed)))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
