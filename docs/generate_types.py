"""The reference pages that describe the Python side: the public library, answers as JSON, the modules."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from markdown_tables import code, codes, table

import findling
from findling.domain.permissions import Relation
from findling.domain.plans import KNOBS
from findling.domain.ports import SkippedPath
from findling.domain.reports import Check, IndexProgress, IndexReport, RelatedAnswer, Status
from findling.domain.resources import Resource
from findling.domain.results import (
    AliasMatch,
    Completion,
    Degradation,
    Explanation,
    Hit,
    LegVerdict,
    Line,
    Passage,
    Receipt,
    ScorePart,
    SearchAnswer,
    Step,
    Suggestion,
    TermMatch,
    ThemesAnswer,
)
from findling.faces.cli.output.json_output import answer_document, answer_stream
from findling.pipelines.content.memories import Memory, RecallAnswer, Recalled
from findling.pipelines.indexing.embedding_run import RefineProgress, RefineReport
from findling.service.content.chats import ChatReport, WorkspaceChats
from findling.service.content.glossary import WorkspaceGlossary
from findling.service.content.items import ItemReport, WorkspaceItems
from findling.service.content.memories import WorkspaceMemories
from findling.service.index.documents import FetchedDocument, LinkedResource
from findling.service.index.permissions import WorkspacePermissions
from findling.service.upkeep.compaction import CompactReport
from findling.service.upkeep.snapshots import RestoreReport, WorkspaceSnapshots
from findling.service.workspace import scope
from findling.stores.local.snapshot_files import Snapshot

__all__ = ["json_page", "library_page", "modules_page"]

MEANINGS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("fields.toml").read_text(encoding="utf-8"))
"""Class → field → what the field means; the plan says it in its own table."""

MEANINGS["Plan"] = {knob.name: knob.help for knob in KNOBS.values()}

EXAMPLE = """\
import findling

with findling.open("notes") as engine:
    answer = engine.search("session expiry", limit=5)
    for hit in answer:
        print(hit.path, hit.line_start, hit.score)"""

LAYERS = ("faces", "service", "pipelines", "stores", "models", "sources", "ranking", "text", "domain")
"""The packages from the top down, in the order of the arrows."""

PARTS = (
    *(WorkspaceItems, WorkspaceChats, WorkspaceMemories, WorkspaceGlossary, WorkspacePermissions, WorkspaceSnapshots),
    *(ItemReport, ChatReport, Memory, Recalled, RecallAnswer, Relation, Snapshot, RestoreReport, CompactReport),
    *(FetchedDocument, LinkedResource, Completion),
)
"""What the parts of an engine are and give back."""

SHOWN_ROOT = Path("/home/me/project")


def library_page() -> Iterator[str]:
    """Every public name."""
    yield "# Library"
    yield ""
    yield "```python"
    yield EXAMPLE
    yield "```"
    yield ""
    yield "These names are public; everything else may change without notice."
    yield ""
    for name in findling.__all__:
        thing = getattr(findling, name)
        if inspect.isclass(thing):
            yield from _class(thing, 2, name)
        else:
            yield from (f"## {name}", "", f"`findling.{_signature(thing, name)}`", "", *_doc(thing))
    yield "## What the engine also hands out"
    yield ""
    for kind in (*PARTS, Status, Check, SkippedPath, IndexProgress, RefineProgress, RefineReport):
        yield from _class(kind, 3)


def modules_page() -> Iterator[str]:
    """Every module in the words of its own docstring."""
    yield "# Modules"
    yield ""
    package = Path(findling.__file__).parent
    for folder in LAYERS:
        yield from (f"## {folder}", "", _first_paragraph(package / folder / "__init__.py"), "")
        modules = [path for path in sorted((package / folder).rglob("*.py")) if path.name != "__init__.py"]
        rows = [(code(path.relative_to(package).as_posix()), _first_paragraph(path)) for path in modules]
        yield from table(("module", "holds"), rows) if rows else ("Empty so far.", "")


def json_page() -> Iterator[str]:
    """What `--json` and `--format jsonl` print."""
    yield "# JSON"
    yield ""
    yield "`findling search QUERY --json` prints one document; with `--queries` a list of them. `schema` comes first"
    yield "and rises when a key changes its meaning or goes away; new keys may come at any time. Paths are relative to"
    yield "`root`. `SearchAnswer.to_dict` gives the same without `root`."
    yield ""
    yield from ("```json", _compact(answer_document(SAMPLE, SHOWN_ROOT)), "```", "")
    yield "`--format jsonl` prints a line of kind `hit` for each hit and a line of kind `summary` for each query:"
    yield ""
    for piece in answer_stream(SAMPLE, SHOWN_ROOT):
        yield f"- `{piece['kind']}`: {codes(piece)}"
    yield ""
    kinds = (SearchAnswer, Hit, Passage, Receipt, ScorePart, Step, TermMatch, AliasMatch, Line, Degradation, Suggestion)
    for kind in (*kinds, Explanation, LegVerdict):
        yield from (f"## {kind.__name__}", "", *_doc(kind), *_fields(kind, JSON_TYPES.__getitem__))
    yield "## Other commands"
    yield ""
    yield "Each of these documents starts with `schema`, too."
    yield ""
    left_out = "`path`, `reason`, `detail`"
    rows = {
        "findling index --json": f"`root`, {codes(_names(IndexReport))}",
        "findling index --dry-run --json": f"`root`, `paths`, `skipped`: a list of {left_out}",
        "findling refine --json": codes(_names(RefineReport)),
        "findling status --json": codes(_names(Status)),
        "findling status --list skipped --json": f"the same, and `skipped_paths`: a list of {left_out}",
        "findling ls --json": f"`root`, `resources`: a list of {codes(_names(Resource))}",
        "findling search QUERY --explain-hit ID --json": "an Explanation, see above",
        "findling fetch ID --json": codes(_names(FetchedDocument)),
        "findling similar ID --json": "an answer, see above",
        "findling related A [B] --json": f"`root`, {codes(_names(RelatedAnswer))}",
        "findling related --json": f"`root`, {codes(_names(ThemesAnswer))}",
        "findling suggest TEXT --json": f"`text`, `suggestions`: a list of {codes(_names(Completion))}",
        "findling glossary list --json": "`groups`, `protected`",
        "findling glossary list pending --json": "`pending`: a list of terms",
        "findling models list --json": "`models`: a list, `settings`: the two settings that name a model → value",
        "findling models use --try --json": "`name`, `kind`, `origin`, `sha256`, `checked`, speed and two scores",
        "findling doctor --json": f"`checks`: a list of {codes(_names(Check))}",
        "findling config show --json": "`settings`: name → `value`, `origin`",
        "findling eval --json": "`plan`, `settings`, `collections` with their runs and queries, `comparisons`",
    }
    yield from table(("command", "keys"), ((code(command), keys) for command, keys in rows.items()))


SAMPLE = SearchAnswer(
    query="session expiry",
    understood_as="session OR expiry",
    hits=(
        Hit(
            id="4f1c9a0be2d37786",
            rid="file:docs/login.md",
            path="docs/login.md",
            type="file",
            title="Login",
            heading=("Login", "Cookies"),
            line=14,
            line_start=12,
            line_end=18,
            score=0.6102,
            lines=(Line(number=14, text="All sessions end after a day.", spans=((4, 12),)),),
            receipt=Receipt(
                keyword_rank=1,
                keyword_score=9.1204,
                vector_rank=2,
                vector_score=0.5127,
                speed="refined",
                words=0.6102,
                meaning=0.6012,
                fused_score=0.6102,
                final_score=0.6102,
                parts=(
                    ScorePart(leg="keyword", rank=1, raw=9.1204, normalised=1.0, weight=0.32, value=0.32),
                    ScorePart(leg="semantic", rank=2, raw=0.5127, normalised=0.55, weight=0.68, value=0.374),
                ),
                matches=(TermMatch(term="session", field="body", forms=("sessions",), count=1, spans=((128, 136),)),),
                missing=("expiry",),
            ),
        ),
    ),
    total=7,
    strategy="hybrid",
    quality="excellent",
    timings_ms={"refresh": 4.12, "understand": 0.081, "open": 2.31, "search": 5.64, "assemble": 0.77},
    meaning={"speed": "refined", "model": "minilm", "coverage": 1.0, "reranker": "", "sent_to": []},
)

JSON_TYPES = {
    "Mapping[str, Any]": "object",
    "Mapping[str, Any] | None": "object or null",
    "Mapping[str, Mapping[str, int]]": "object of objects of integers",
    "Mapping[str, float]": "object of numbers",
    "Receipt": "Receipt",
    "Hit | None": "Hit or null",
    "bool": "true or false",
    "float": "number",
    "float | None": "number or null",
    "int": "integer",
    "str": "string",
    "tuple[AliasMatch, ...]": "list of AliasMatch",
    "tuple[Degradation, ...]": "list of Degradation",
    "tuple[Hit, ...]": "list of Hit",
    "tuple[Passage, ...]": "list of Passage",
    "tuple[LegVerdict, ...]": "list of LegVerdict",
    "tuple[Line, ...]": "list of Line",
    "tuple[ScorePart, ...]": "list of ScorePart",
    "tuple[Step, ...]": "list of Step",
    "tuple[Suggestion, ...]": "list of Suggestion",
    "tuple[TermMatch, ...]": "list of TermMatch",
    "tuple[str, ...]": "list of strings",
    "tuple[tuple[int, int], ...]": "list of pairs of integers",
    "tuple[tuple[str, bool], ...]": "list of pairs of a string and true or false",
}


def _compact(value: object) -> str:
    """Indented JSON with each innermost list on one line."""
    text = json.dumps(value, indent=2)
    for _ in range(2):  # once for lists of plain values, once for lists of those
        text = re.sub(r"\[\s+([^{}]*?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", text)
    return text


def _class(kind: type, depth: int, name: str = "") -> Iterator[str]:
    yield from (f"{'#' * depth} {name or kind.__name__}", "", *_doc(kind))
    if kind.__name__ in MEANINGS:
        yield from _fields(kind, code)
    own = [base for base in kind.__mro__ if base.__module__.startswith("findling.")]
    members = {name: member for base in reversed(own) for name, member in vars(base).items()}
    for name, member in members.items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        shown = name if isinstance(member, property) else _signature(member, name)
        yield from (f"- `{shown}`", "", *(f"  {line}".rstrip() for line in _doc(member)))


def _first_paragraph(module: Path) -> str:
    """The first paragraph of a module's docstring, as one line."""
    text = module.read_text(encoding="utf-8")
    beginning = re.match(r'""".*?"""', text, re.S)  # all of the 550 modules take 2 s to parse
    docstring = ast.get_docstring(ast.parse(beginning[0] if beginning else text)) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def _doc(thing: object) -> Iterator[str]:
    yield from (inspect.getdoc(thing) or "").split("\n")
    yield ""


def _signature(function: Callable[..., Any], name: str) -> str:
    signature = inspect.signature(function)
    pieces: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in pieces:
            pieces.append("*")
        if (options := re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))) is not None:
            kinds = getattr(scope, options[1]).__annotations__
            pieces += [f"{key}: {kind.__forward_arg__} = ..." for key, kind in kinds.items()]
            continue
        prefix = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        # A function has an address in its name, which differs from run to run.
        shown = "..." if callable(parameter.default) else repr(parameter.default)
        default = "" if parameter.default is parameter.empty else f" = {shown}"
        pieces.append(f"{prefix}{parameter.name}: {parameter.annotation}{default}")
    return f"{name}({', '.join(pieces)}) -> {signature.return_annotation}"


def _fields(kind: type, show_type: Callable[[str], str]) -> Iterator[str]:
    meanings = MEANINGS[kind.__name__]
    names = _names(kind)
    if set(names) != set(meanings):
        raise SystemExit(f"docs/fields.toml: {kind.__name__} differs in {', '.join(set(names) ^ set(meanings))}")
    rows = ((code(name), show_type(_annotation(kind, name)), meanings[name]) for name in names)
    yield from table(("field", "type", "meaning"), rows)


def _names(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(getattr(kind, "_fields", ()))


def _annotation(kind: type, name: str) -> str:
    annotation = inspect.get_annotations(kind)[name]
    return str(getattr(annotation, "__forward_arg__", annotation))
