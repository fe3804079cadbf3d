"""All lines that match a pattern: candidates, verified in their texts, complete and in the order of their paths."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from itertools import islice

from findling.domain.budgets import current_budget
from findling.domain.errors import OverdueError, ProviderError
from findling.domain.queries import Filters, Pattern
from findling.domain.reports import GrepAnswer, GrepRequest, MatchedFile
from findling.domain.resources import StoredText
from findling.domain.results import Degradation
from findling.domain.values import counted
from findling.pipelines.exact.line_matches import count_spans, inverted, matching_lines, with_context
from findling.pipelines.exact.path_globs import is_at, path_filter, path_order
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.match_time import MatchTime
from findling.pipelines.retrieve.pattern_matches import narrowed
from findling.sources.files.file_text import UnreadableError, decode, read_bytes
from findling.sources.files.file_types import file_type
from findling.text.query.line_patterns import LinePattern, compile_lines
from findling.text.query.patterns import required_trigrams

_LINES_OF_THE_FILE = frozenset({"csv", "html", "json", "notebook", "subtitles", "svg", "xml"})
"""Formats whose files have lines that people know. Their extracted text has others, so the file itself is read."""

_LARGEST_FILE = 64 << 20

_FIRST_S = 5.0
_CHARACTERS_A_SECOND = 1_000_000
"""More time for patterns than a search has, as all lines are wanted: expressions of people search 10 to 1,000 million
characters in a second of computing."""


def grep(legs: Retrievers, asked: GrepRequest, root: str = "", zoekt: str = "") -> GrepAnswer:
    """All lines that match one of the patterns, in the order of the paths; `root` is where files lie, if they do.

    `zoekt` is the address of a server that names files with matches, if one is to be asked. Raises
    InvalidValueError for what is no pattern and no glob.
    """
    pattern = compile_lines(asked.patterns, fixed=asked.fixed, ignore_case=_ignores_case(asked), words=asked.words)
    chosen, strategy, degraded = chosen_resources(legs, asked, root, zoekt)
    budget, files = current_budget(), list[MatchedFile]()
    searched, left, is_cut = 0, asked.limit, False
    budget.matching_s += _FIRST_S
    with MatchTime(*() if asked.fixed else asked.patterns) as clock:
        for stored in legs.store.texts(chosen):
            if budget.is_over() or (asked.limit and not left):
                is_cut = True
                break
            searched += 1
            budget.matching_s += len(stored.text) / _CHARACTERS_A_SECOND
            try:
                file = clock.run(_verified, pattern, asked, stored, root, left)
            except OverdueError as error:
                is_cut, late = True, f"{error.message} in {stored.path or stored.rid}; lines may be missing"
                degraded += (Degradation(what=late, fix=error.hint),)
                break
            if file is not None:
                files.append(file)
                if asked.limit:
                    left -= 1 if asked.gives == "files" else file.total
    if is_late := budget.is_over():
        # Without numbers: how many texts had to be read depends on the whole index.
        told = "time was over before all texts were searched: lines may be missing"
        degraded += (Degradation(what=told, fix="ask for a longer pattern, or below a folder"),)
    # A file that has as many lines as were left may have more of them.
    is_cut = is_cut or is_late or (asked.limit > 0 and not left and asked.gives == "lines")
    return GrepAnswer(files=tuple(files), strategy=strategy, searched=searched, is_cut=is_cut, degraded=degraded)


def _ignores_case(asked: GrepRequest) -> bool:
    if asked.case == "smart":
        return not any(letter.isupper() for pattern in asked.patterns for letter in pattern)
    return asked.case == "ignore"


def chosen_resources(
    legs: Retrievers, asked: GrepRequest, root: str, zoekt: str = ""
) -> tuple[list[int], str, tuple[Degradation, ...]]:
    """The resources to look at, in the order of their paths, the strategy that has found them, and what it lacks.

    Numbers come first, and paths of candidates alone: 16,000 paths take 30 ms, as long as all else of a rare pattern.
    """
    within, store = asked.within or "", legs.store
    numbers = list(store.matching(Filters(within=within)))
    of_files = Filters(lang=tuple(sorted(_LINES_OF_THE_FILE)), within=within)
    as_files = set(store.matching(of_files)) if root else set[int]()
    others = [one for one in numbers if one not in as_files]
    named, degraded = _named_by(zoekt, asked) if zoekt and not asked.invert else (None, ())
    if within and not numbers:
        # The same for a path that is hidden from the caller and for one that is not there.
        degraded += (Degradation(what=f"nothing of the index is at {within}", fix="check the path"),)
    if named is None:
        found, strategy = _candidates(legs, asked, others)
    else:
        found, strategy = _with_named(legs, asked, others, named)
    kept = as_files.union(found)
    accepts = path_filter(asked.globs, asked.base)
    chosen = [
        one
        for one in store.rights(among=kept if len(kept) < len(numbers) else None)
        if (accepts(one.path) and is_at(one.path, within) if one.path else not asked.globs and not within)
    ]
    # What is no file comes last, by its id.
    chosen.sort(key=lambda one: (not one.path, path_order(one.path or one.rid)))
    if direct := sum(one.number in as_files for one in chosen):
        strategy += f", {counted(direct, 'file')} read as they are"
    return [one.number for one in chosen], strategy, degraded


def _named_by(zoekt: str, asked: GrepRequest) -> tuple[set[str] | None, tuple[Degradation, ...]]:
    """The paths that Zoekt names; None where it cannot, and the reason for it."""
    from findling.pipelines.exact.zoekt import zoekt_paths

    try:
        return zoekt_paths(zoekt, asked, ignore_case=_ignores_case(asked)), ()
    except ProviderError as error:
        return None, (Degradation(what=f"{error.message}; the index of findling has answered", fix=error.hint),)


def _with_named(
    legs: Retrievers, asked: GrepRequest, numbers: list[int], named: set[str]
) -> tuple[Collection[int], str]:
    """The files that Zoekt names, and of all that it does not index the candidates of our own."""
    allowed = set(numbers)
    rights = [one for one in legs.store.rights() if one.number in allowed]
    plain = {
        one.number: one.path for one in rights if one.path and file_type(one.path.rpartition("/")[2]).kind != "document"
    }
    found, strategy = _candidates(legs, asked, [one for one in numbers if one not in plain])
    chosen = {number for number, path in plain.items() if path in named}
    return chosen.union(found), f"zoekt: {counted(len(chosen), 'file')}; for all else {strategy}"


def _verified(pattern: LinePattern, asked: GrepRequest, stored: StoredText, root: str, left: int) -> MatchedFile | None:
    """The lines of one text that match; None when there are none. `left` is how many may still be given, if not 0."""
    text, is_extract = _text_of(stored, root)
    spans = matching_lines(pattern, text, current_budget().is_over)
    if asked.invert:
        spans = inverted(spans, text)
    limits = [limit for limit in (asked.most, left if asked.gives == "lines" else 0) if limit]
    limit = 1 if asked.gives == "files" else min(limits, default=None)
    found = list(islice(spans, limit))
    if not found:
        return None
    name, count = stored.path or stored.rid, len(found)
    if asked.gives == "counts" and asked.only_matching and not asked.invert:
        count = count_spans(pattern, text, found)
    if asked.gives != "lines":
        return MatchedFile(name, stored.rid, count, (), is_extract)
    lines = with_context(pattern, text, found, asked.before, asked.after, with_spans=not asked.invert)
    return MatchedFile(name, stored.rid, count, tuple(lines), is_extract)


def _text_of(stored: StoredText, root: str) -> tuple[str, bool]:
    """The text whose lines are searched, and whether it is an extract.

    A file is read again only while it is the one that was indexed: nobody gets to see what took its place.
    """
    kind = file_type(stored.path.rpartition("/")[2])
    if kind.kind != "document" and kind.lang not in _LINES_OF_THE_FILE:
        return stored.text, False
    if root and stored.digest and kind.lang in _LINES_OF_THE_FILE:
        try:
            data, _ = read_bytes(f"{root}/{stored.path}", _LARGEST_FILE)
            if blake2b(data, digest_size=16).digest() == stored.digest:
                return decode(data)[0], False
        except UnreadableError:
            pass
    return stored.text, bool(stored.path)


def _candidates(legs: Retrievers, asked: GrepRequest, numbers: Sequence[int]) -> tuple[Collection[int], str]:
    """Those of the resources that may match, and the strategy that found them."""
    # Other lines than those that match are nearly everywhere.
    required = [required_trigrams(Pattern(one, not asked.fixed, False)) for one in asked.patterns]
    needed = [None] if asked.invert or None in required else required
    found = {number for one in needed for number in narrowed(legs, one, numbers)[0]}
    if len(found) == len(numbers):
        return numbers, f"scan of {counted(len(numbers), 'text')}"
    return found, f"exact leg: {len(found):,} of {counted(len(numbers), 'text')}"
