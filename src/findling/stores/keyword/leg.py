"""The keyword leg: a tantivy index over the terms of every chunk, kept beside the truth and made from it.

A note beside it says which change each commit has reached, so it can never believe that it holds more than it does:
after a crash it is simply behind, and catches up from the truth. The same chunks score the same, whatever was before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import tantivy

from findling.domain.backends import Scoring
from findling.domain.budgets import current_budget
from findling.domain.errors import CorruptError
from findling.domain.ports import Change, KeywordHits
from findling.domain.queries import Filters, Node
from findling.stores.keyword.entries import entries, prepare, schema
from findling.stores.keyword.query_builder import BuiltQuery, FormsFile, KeywordQuery, among, hits_of, rid_token
from findling.stores.keyword.segment_files import (
    DamageGuard,
    LegNote,
    OpenedIndex,
    files_of,
    has_deleted,
    made_for,
    new_index,
    open_index,
    read_opstamp,
    read_state,
    write_error,
    write_note,
)
from findling.stores.keyword.term_weights import KeywordWords, LiveIndex, SegmentStatistics, place_of, scored
from findling.text.query.tree import asks_for_text

_HEAP_BYTES = 64_000_000
"""Memory of the one indexing thread; 200 MB measured no faster."""

_TABLE_FROM = 5_000
"""Entries from which on an index has a table of forms: in a smaller one the walk over a vocabulary takes 0.05 ms."""

_AT_ONCE, _UNRANKED = 1_000, 20_000
"""Hits fetched at least: an answer counts so many, and equals at its end need one order. 1,000 cost 0.2 to 0.35 ms more
than 11, a second look as much as the first one. Without words to rank by equals are the rule."""


class _Fetched(NamedTuple):
    """Hits of one state of the index, best first: scores, or times where nothing ranks, and addresses."""

    searcher: tantivy.Searcher
    hits: list[tuple[float | None, tantivy.DocAddress]]
    total: int


class IndexedLeg:
    """The part that legs in tantivy share: they differ in their fields and in what they are asked."""

    def __init__(
        self, opened: OpenedIndex, folder: Path, made_for: str, make: Callable[[], tantivy.Schema], guard: DamageGuard
    ) -> None:
        self._index, self._seq, self._files, self._opstamp = opened
        """`_seq` is the change that the open index has reached; None where there is no index of this leg on disk."""
        self._folder = folder
        self._made_for = made_for
        self._make = make
        self._reading = guard
        self._is_dirty = False
        self._writer: tantivy.IndexWriter | None = None

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._seq or 0

    def is_current(self) -> bool:
        """Whether its files are still those that were opened."""
        self._reading.look()
        return self._seq is None or self._files == files_of(self._folder)

    def size(self) -> int:
        """The number of its entries. Raises CorruptError for files that cannot be read."""
        with self._reading:
            return self._searcher().num_docs

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches."""
        if self._seq is None and self._writer is None:
            self._start_writing()
        try:
            # Without anything to commit the index stays at the commit that it is at.
            reached = self.seq() if self._is_dirty else seq
            write_note(self._folder, LegNote(self._made_for, read_opstamp(self._folder), reached, seq))
            if self._writer is not None and self._is_dirty:
                self._writer.commit()
                self._is_dirty = False
            self._files = files_of(self._folder)
            self._opstamp = read_opstamp(self._folder)
            self._index.reload()
            self._forget()
        except (ValueError, OSError) as error:
            raise self._write_error(error) from error
        self._seq = seq

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self.close()
        self._index = new_index(self._make())
        self._seq = None
        self._forget()

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            # Not when nothing is to be forgotten: it would also throw away the merge that a commit has started, and
            # an index of many small writes would be one of many small segments.
            if self._is_dirty:
                self._is_dirty = False
                # A writer that has failed, or whose folder was deleted, has nothing to roll back to.
                with suppress(ValueError):
                    writer.rollback()
            writer.wait_merging_threads()
            if self._seq is not None:
                self._written()

    def _forget(self) -> None:
        """Forget what was derived from the index, which is another one now."""

    def _begun(self, index: tantivy.Index) -> None:
        """Prepare an index for its writer."""

    def _written(self) -> None:
        """Finish what was written, once the writer is gone."""

    def _searcher(self) -> tantivy.Searcher:
        return self._index.searcher()

    def _values(self, field: str) -> set[int]:
        """Every number in a field."""
        with self._reading:
            searcher = self._searcher()
            hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs), count=False).hits
            values = searcher.fast_field_values(field, [address for _, address in hits]) if hits else []
        return {int(value) for value in values if value is not None}

    def _delete(self, field: str, value: str | int) -> None:
        # Not delete_documents_by_term: in tantivy 0.27 it silently misses unsigned values.
        query = tantivy.Query.term_query(self._index.schema, field, value, index_option="basic")
        with self._writing() as writer:
            writer.delete_documents_by_query(query)

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """The writer; when it fails, which may be long after the cause, the error says what that was."""
        writer = self._writer or self._start_writing()
        self._is_dirty = True
        try:
            yield writer
        except ValueError as error:
            raise self._write_error(error) from error

    def _start_writing(self) -> tantivy.IndexWriter:
        from findling.stores.filesystem import discard

        try:
            if self._seq is None:
                # Nothing durable that is ours: start from an empty folder, whatever lies there.
                discard(self._folder)
                self._folder.mkdir(parents=True, mode=0o700)
                self._index = new_index(self._make(), self._folder)
                self._forget()
            self._begun(self._index)
            self._writer = self._index.writer(_HEAP_BYTES, num_threads=1)
        except (ValueError, OSError) as error:
            raise self._write_error(error) from error
        return self._writer

    def _write_error(self, error: Exception) -> Exception:
        return write_error(error, self._folder, self._reading.leg)


class TantivyLeg(IndexedLeg):
    """A keyword leg in one folder. Open it with `open`; writing needs the workspace's write lock."""

    def __init__(
        self,
        opened: OpenedIndex,
        folder: Path,
        made_for: str,
        scoring: Scoring,
        unit: str,
        searcher: tantivy.Searcher | None = None,
    ) -> None:
        super().__init__(opened, folder, made_for, schema, DamageGuard(folder))
        self._fixed = searcher
        """The one state that is searched; None for the latest one of the index."""
        self._scoring = scoring
        self.unit = unit
        self._forms = FormsFile(folder, made_for)
        self._query: KeywordQuery | None = None
        self._live: LiveIndex | None = None
        self._state = 0

    @classmethod
    def open(cls, folder: Path, *, store_id: str, scoring: Scoring | None = None, unit: str = "chunk") -> TantivyLeg:
        """Open the leg in `folder`, or an empty one in memory when there is none that belongs to this store.

        Raises CorruptError when the folder holds an index that cannot be read.
        """
        owner = made_for(store_id, unit)
        return cls(open_index(folder, owner, schema, DamageGuard(folder)), folder, owner, scoring or Scoring(), unit)

    def apply(self, changes: Iterable[Change]) -> None:
        """Index changes; they become visible and durable with `commit`."""
        for change in changes:
            if self.unit == "page":
                self._delete("scope", rid_token(change.rid))
            for cid in change.dropped if self.unit != "page" else ():
                self._delete("cid", cid)
            if change.document is not None:
                prepared = prepare(change.document, change.number, unit=self.unit, added=change.added)
                if prepared.rows:
                    with self._writing() as writer:
                        for entry in entries(prepared):
                            writer.add_json(entry)
                self._forms.note(prepared.texts())

    def search(
        self, node: Node, filters: Filters, limit: int, *, weights: Mapping[str, float] | None = None
    ) -> KeywordHits:
        """The best `limit` chunks among those that pass the filters; equal scores keep one order.

        Raises CorruptError for an index that cannot be read, and InvalidValueError for what cannot be asked.
        """
        built = self._built(node, filters, weights)
        if built.query is None:
            return KeywordHits([], 0, built.ceiling, built.forms)
        with self._reading:
            hits, total = self._find(built, limit, is_ranked=asks_for_text(node))
        return KeywordHits(hits, total, built.ceiling, built.forms)

    def scores(
        self, node: Node, cids: Sequence[int], *, weights: Mapping[str, float] | None = None
    ) -> dict[int, float]:
        """The scores that a search would give some chunks. Raises as `search` does."""
        built = self._built(node, Filters(), weights)
        if built.query is None or not cids:
            return {}
        with self._reading:
            searcher, hits, total = self._fetched(built).get(True) or _Fetched(self._searcher(), [], -1)
            known = scored(searcher, hits if len(hits) == total else hits[:_AT_ONCE], cids)
            # One of five, as a rule: a second search looks up each in every segment. None where all was fetched.
            if others := [cid for cid in cids if cid not in known and len(hits) != total]:
                named = among(self._index.schema, built.query, others)
                known |= scored(searcher, searcher.search(named, len(others), count=False).hits, others)
        is_ranked = asks_for_text(node)
        return {cid: known[cid] if is_ranked else 0.0 for cid in cids if cid in known}

    def count(
        self, node: Node, filters: Filters, least: float, *, most: int, weights: Mapping[str, float] | None = None
    ) -> int:
        """The number of chunks that a search would score with at least so much, or `most`. Raises as `search` does."""
        built = self._built(node, filters, weights)
        if built.query is None:
            return 0
        with self._reading:
            return min(most, bisect_right(self._best(built, most).hits, -least, key=place_of))

    def definers(
        self, names: Iterable[str], node: Node, filters: Filters, limit: int, weights: Mapping[str, float] | None = None
    ) -> list[tuple[int, float]]:
        """The best chunks that define any of the names, with their scores. Raises as `search` does."""
        query = self._querying().defining(names, node, filters, weights)
        if query is None:
            return []
        with self._reading:
            searcher = self._searcher()
            hits = searcher.search(query, limit, count=False).hits
            addresses = [address for _, address in hits]
            turns, cids = (searcher.fast_field_values(field, addresses) for field in ("turn", "cid"))
        best = sorted(zip(map(place_of, hits), turns, cids, strict=True))
        return [(int(cid or 0), -place) for place, _, cid in best]

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """The frequency of each term."""
        words = self._querying().words
        return {term: words.frequency("body", term) for term in terms}

    def vocabulary(self, prefix: str = "") -> Iterable[tuple[str, int]]:
        """The words of all text fields that begin so, with their frequencies; without a beginning dead ones count, too.

        Raises CorruptError as `search` does.
        """
        return self._querying().words.vocabulary(prefix)

    def cids(self) -> set[int]:
        """Every chunk id the leg holds; for checks, not for searching. Raises CorruptError as `search` does."""
        return self._values("cid")

    def _written(self) -> None:
        if self.size() >= _TABLE_FROM:
            # Whoever searches a damaged index reports it.
            with suppress(CorruptError):
                self._forms.finish(
                    self._opstamp, SegmentStatistics(self._counted(), self._index.schema, self._reading).words
                )
            self._forget()

    def _find(self, built: BuiltQuery, limit: int, *, is_ranked: bool) -> tuple[list[tuple[int, float]], int]:
        """The best `limit` chunks in one order, whatever segments equals are in, and how many match."""
        usual = _AT_ONCE if is_ranked else _UNRANKED
        depth = usual if limit < usual else limit + usual
        searcher, found, total = self._best(built, depth if limit else 1, is_ranked=is_ranked)
        if not limit or not found:
            return [], total
        end = bisect_right(found, place_of(found[limit - 1]), key=place_of) if limit < len(found) else len(found)
        if end == len(found) < total:  # nobody knows where equals end
            return self._find(built, total, is_ranked=is_ranked)[0][:limit], total
        addresses = [address for _, address in found[:end]]
        turns = searcher.fast_field_values("turn", addresses)
        best = sorted(zip(map(place_of, found[:end]), turns, range(end), strict=True))[:limit]
        cids = searcher.fast_field_values("cid", [addresses[number] for _, _, number in best])
        scores = [-place if is_ranked else 0.0 for place, _, _ in best]
        return list(zip([int(cid or 0) for cid in cids], scores, strict=True)), total

    def _best(self, built: BuiltQuery, depth: int, *, is_ranked: bool = True) -> _Fetched:
        """The best hits, at least so many, and how many match; fetched once for an answer."""
        query, searcher, fetched = built.query, self._searcher(), self._fetched(built)
        assert query is not None
        if (known := fetched.get(is_ranked)) is None or len(known.hits) < min(depth, known.total):
            most = max(1, min(depth, searcher.num_docs))
            result = searcher.search(query, most, order_by_field=None if is_ranked else "updated")
            total = int(getattr(result, "count", 0) or 0)  # missing in type stubs
            # The scores alone: looking up 50,000 chunks would take ten times as long as finding them.
            known = fetched[is_ranked] = _Fetched(searcher, hits_of(result, total), total)
        return known

    def _fetched(self, built: BuiltQuery) -> dict[bool, _Fetched]:
        """The hits that were fetched for this answer, ranked or not."""
        return current_budget().once((self, id(built)), dict)

    def _built(self, node: Node, filters: Filters, weights: Mapping[str, float] | None) -> BuiltQuery:
        """The query for a tree; it is built once for an answer, which asks for it up to six times."""
        querying = self._querying()
        key = querying, node, filters, *sorted((weights or {}).items())
        return current_budget().once(key, lambda: querying.build(node, filters, weights))

    def _querying(self) -> KeywordQuery:
        if (query := self._query) is not None:
            return query
        state = self._state
        forms = self._forms.read(self._opstamp) if self._fixed is None else None
        words = KeywordWords(self._counted(), self._index.schema, self._reading, forms)
        query = KeywordQuery(self._index.schema, words, self._scoring)
        if state == self._state:  # else another thread has committed meanwhile, and it is not for those who come later
            self._query = query
        return query

    def _searcher(self) -> tantivy.Searcher:
        return self._counted().searcher

    def _counted(self) -> LiveIndex:
        """The state that is searched, in which nothing that is dead counts."""
        while (live := self._live) is None:
            state, found = self._state, LiveIndex(self._fixed or self._index.searcher())
            if self._fixed is None and self._seq is not None and has_deleted(self._folder):
                from findling.stores.keyword.merge import live_index

                found = live_index(self._folder, self._opstamp, found.searcher)
            # A compaction that ends meanwhile takes files away, or the list of what is dead in those that are open.
            if self._follows_compaction():
                continue
            if state != self._state:
                return found
            self._live = found
        return live

    def _follows_compaction(self) -> bool:
        """Whether other files of the same change had taken the place of those that were open; now they are."""
        with suppress(OSError, ValueError):
            if self._fixed is None and not self.is_current():
                files, state = files_of(self._folder), read_state(self._folder)
                if state is not None and (state.note.made_for, state.seq) == (self._made_for, self._seq):
                    self._index.reload()
                    self._files, self._opstamp = files, state.opstamp
                    return True
        return False

    def _forget(self) -> None:
        self._state += 1
        self._query = self._live = None

    def _begun(self, index: tantivy.Index) -> None:
        self._forms.begin(self._opstamp)
