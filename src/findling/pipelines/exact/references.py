"""Relations in code by name: lines that define, import, call or use a name, and definitions of a file.

Names are looked for as words in files of code, without comments and strings. A parser would know no more of a name, and
may crash on broken text. So no answer depends on the grammars that are installed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from findling.domain.budgets import current_budget, spending
from findling.domain.errors import InvalidValueError
from findling.domain.queries import Filters, Word
from findling.domain.reports import GrepRequest, OutlineAnswer, OutlinedDefinition, Reference, RefsAnswer
from findling.domain.resources import StoredText
from findling.domain.results import Degradation
from findling.domain.values import loose_name
from findling.pipelines.exact.grep import chosen_resources
from findling.pipelines.lookup.document_names import find_document
from findling.pipelines.retrieve.legs import Retrievers
from findling.sources.files.file_types import file_type
from findling.text.analysis.scripts import name_parts
from findling.text.chunking.bare_code import without_comments
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.defined_names import OutlineLine, named_lines, outline_lines


def outline(legs: Retrievers, name: str, below: str = "") -> OutlineAnswer:
    """The definitions of the file of a name. Raises as `find_document` does."""
    document, _ = find_document(legs.store, name, below)
    resource = document.resource
    definitions = [OutlinedDefinition(*one) for one in outline_lines(document.text, resource.lang)]
    return OutlineAnswer(path=resource.path, rid=resource.rid, lang=resource.lang, definitions=tuple(definitions))


@spending()
def references(legs: Retrievers, name: str, within: str, limit: int = 0) -> RefsAnswer:
    """All lines of code that have a name, definitions first, then by path; at most `limit` of them, if not 0.

    Of a qualified name such as `Session.send` definitions stand in the scope, and other lines have the last part.
    Raises InvalidValueError for what is no name.
    """
    *scopes, last = name_parts(name) or [""]
    if not re.fullmatch(r"[^\W\d][\w$]*[?!]?", last):
        raise InvalidValueError(f"{name!r} is no name", hint="a name such as send, Session.send or Session::send")
    asked = GrepRequest(patterns=(last,), fixed=True, words=last.isidentifier(), within=within)
    chosen, _, _ = chosen_resources(legs, asked, "")
    found, is_late = list[Reference](), False
    degraded: tuple[Degradation, ...] = ()
    for stored in legs.store.texts(chosen):
        if is_late := current_budget().is_over():
            degraded = (Degradation(what="time was over: lines may be missing", fix="ask below a folder"),)
            break
        found += _of_file(stored, last, scopes[-1] if scopes else "")
    if not found and not is_late:
        degraded = _other_style(legs, last, within)
    found.sort(key=lambda one: one.kind != "defines")
    shown = tuple(found[:limit] if limit else found)
    is_cut = is_late or len(shown) < len(found)
    return RefsAnswer(name=name, references=shown, total=len(found), is_cut=is_cut, degraded=degraded)


def is_code(path: str) -> bool:
    """Whether the file of a path may have references, by its name."""
    return bool(path) and file_type(path.rpartition("/")[2]).lang in CODE_LANGS


def _other_style(legs: Retrievers, name: str, within: str) -> tuple[Degradation, ...]:
    """The same name as others write it, if code defines it so: `get_user` for `getUser`."""
    hits = legs.keyword.definers([name], Word(name), Filters(within=within), _MOST_DEFINERS)
    stored = legs.store.chunks([cid for cid, _ in hits]).values()
    names = [line.name for one in stored for line in named_lines(one.text, one.resource.lang)]
    same = next((other for other in names if loose_name(other) == loose_name(name)), "")
    return (Degradation(what=f"{same} is {name} in another style", fix=f"findling refs {same}"),) if same else ()


def _of_file(stored: StoredText, name: str, scope: str) -> Iterator[Reference]:
    """The lines of one file that have a name; of definitions only those in the scope, if there is one."""
    if not is_code(stored.path):
        return
    lang = file_type(stored.path.rpartition("/")[2]).lang
    text = stored.text.replace("\r\n", " \n").replace("\r", "\n")
    defined = outline_lines(text, lang)
    own = {one.line: one for one in defined if one.name.rpartition(".")[2] == name}
    starts = [one.line for one in defined]
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    rows = text.split("\n")
    for number, row in enumerate(without_comments(text, lang).split("\n"), start=1):
        match = word.search(row)
        if match is None and number not in own:
            continue
        kind = "defines" if number in own else _kind(row, match.end() if match else 0)
        if kind != "defines" or not scope or scope.lower() in own[number].name.lower().split("."):
            symbol = _around(defined, starts, number)
            yield Reference(stored.path, number, kind, symbol, rows[number - 1].strip()[:_LONGEST_LINE])


def _around(defined: Sequence[OutlineLine], starts: Sequence[int], number: int) -> str:
    """The name of the innermost definition that holds a line."""
    first = bisect_right(starts, number) - 1
    return next((defined[at].name for at in range(first, -1, -1) if defined[at].end >= number), "")


_LONGEST_LINE = 300
_MOST_DEFINERS = 20
_IMPORT = re.compile(
    r"\s*+(?:import\b|from\b|use\b|pub use\b|using\b|#\s*include\b|require\b|export\b.*\bfrom\b"
    r"|(?:const|let|var|local)\b[^=]*=\s*(?:require|await import)\b)"
)
_CALL = re.compile(r"(?:::<[^()]*>|<[\w, .:]*>)?[!?]?\s?\(")


def _kind(row: str, end: int) -> str:
    if _IMPORT.match(row):
        return "imports"
    return "calls" if _CALL.match(row, end) else "uses"
