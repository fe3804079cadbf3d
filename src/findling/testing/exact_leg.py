"""The contract of an exact leg as tests: subclass `ExactLegSuite`, say how to make a store and a leg.

    class TestMyLeg(ExactLegSuite):
        def make_store(self) -> TruthStore:
            return MyStore(...)

        def make_leg(self) -> ExactLeg:
            return MyLeg(...)

It needs pytest and no other library.
"""

from __future__ import annotations

from abc import abstractmethod

import pytest

from findling.domain.ports import ExactLeg, TruthStore
from findling.domain.queries import Filters, Pattern, Required
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import StoreSuite, line_document
from findling.text.query.patterns import compile_pattern, required_trigrams

__all__ = ["ExactLegSuite"]

_TEXTS = {
    "plain": "The quick brown fox\njumps over the lazy dog",
    "code": "def get_backoff(self, retries):\n\treturn self._delay * 2 ** retries\n",
    "capitals": "HTTP_TIMEOUT = 30  # İSTANBUL, STRASSE",
    "letters": "Σίσυφος straße ſharp \u212aelvin ﬅ",
    "spaces": "one\ttwo three\u00a0four\x0bfive\x0csix",
    "unspaced": "数据库连接池",
    "short": "ab",
    "empty": "",
}

_PATTERNS = (
    *("quick", "UICK BRO", "fox\njumps", "get_back", r"def \w+_backoff", "(lazy|quick) (dog|cat)", "zzz"),
    *("http_timeout", "istanbul", "strasse|straße", "σίσυφος", "SHARP", "kelvin", "in ﬆ", r"two\sthree", "three.four"),
    *("据库连", "one\ttwo", "four\x0bfive", "five\x0csix", r"\bself\b", r"retur(?=n)", "quick.*dog"),
)


class ExactLegSuite(StoreSuite):
    """No resource that matches is ever missing among the candidates."""

    @abstractmethod
    def make_leg(self) -> ExactLeg:
        """Open the leg of the latest store, as it was left by the one before."""

    @pytest.mark.parametrize("source", _PATTERNS)
    def test_candidates_miss_nothing_that_matches(self, source: str) -> None:
        store, leg = self._filled()
        for is_case_sensitive in (True, False):
            pattern = Pattern(source, True, is_case_sensitive)
            matching = {rid for rid, text in _TEXTS.items() if compile_pattern(pattern).search(text)}
            found = leg.candidates(_required(pattern))
            assert matching <= _rids(store, found)
            assert list(found) == sorted(found)
            assert len(found) <= 3

    def test_only_allowed_resources_are_candidates(self) -> None:
        store, leg = self._filled()
        required = _required(Pattern("the", False, False))
        (number,) = leg.candidates(required)
        assert leg.candidates(required, {number}) == [number]
        assert leg.candidates(required, set()) == []
        assert leg.candidates(required, set(store.matching(Filters())) - {number}) == []

    def test_changes_and_deletions_are_followed(self) -> None:
        store, leg = self._filled()
        store.write([line_document("plain", ["A slow red wolf"]), line_document("new", ["quick wolf"])], ["code"])
        catch_up(store, leg)
        assert leg.seq() == store.seq()
        assert leg.size() == len(list(store.rids()))
        assert leg.numbers() == set(store.matching(Filters()))
        for source, rids in (("quick", {"new"}), ("wolf", {"plain", "new"}), ("backoff", set())):
            assert _rids(store, leg.candidates(_required(Pattern(source, False, False)))) == rids

    def test_a_commit_is_kept_and_what_was_not_committed_is_forgotten(self) -> None:
        store, leg = self._filled()
        reached = leg.seq()
        leg.apply(store.write([line_document("late", ["a late text"])]))
        leg.close()
        leg = self.make_leg()
        assert (leg.seq(), leg.size()) == (reached, len(_TEXTS))
        catch_up(store, leg)
        assert leg.size() == len(_TEXTS) + 1
        leg.clear()
        assert (leg.seq(), leg.size()) == (0, 0)
        catch_up(store, leg)
        assert leg.numbers() == set(store.matching(Filters()))

    def _filled(self) -> tuple[TruthStore, ExactLeg]:
        store = self.make_store()
        store.write([line_document(rid, text.split("\n")) for rid, text in _TEXTS.items()])
        leg = self.make_leg()
        catch_up(store, leg)
        return store, leg


def _required(pattern: Pattern) -> Required:
    required = required_trigrams(pattern)
    assert required is not None
    return required


def _rids(store: TruthStore, numbers: object) -> set[str]:
    assert isinstance(numbers, (list, tuple))
    return {document.resource.rid for _, document in store.documents(numbers)}
