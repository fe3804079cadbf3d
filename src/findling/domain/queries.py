"""The query tree and the search request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol
from typing import Any as AnyValue

from findling.domain.plans import Plan
from findling.domain.values import record

if TYPE_CHECKING:
    from findling.domain.resources import Resource
    from findling.domain.results import Degradation

TEXT_FIELDS = ("title", "heading", "body", "path", "tags", "name", "description")
"""Fields that `in:` limits words to; `in:heading:word` does so for one word."""


@record()
class Property:
    """A property of resources, and every place where it shows: a query field is one line of `PROPERTIES`.

    `attribute` of a resource holds it; that of a key that documents bring is `fields.KEY`. `kind` says which values
    that gives and how they compare (`stores.filtering`); an `alias` stands for the property that is its attribute. An
    `example` is typed and means what `help` says; without one it is no part of the query language. `takes` says which
    values there are, `meant_by` what people type instead. A resource has one value of a `single` one, so that two can
    only mean either. Values of a `facet` can be counted. Keyword legs hold a `token` for each value.
    """

    name: str
    attribute: str
    kind: str = "text"
    example: str = ""
    help: str = ""
    meant_by: str = ""
    takes: str = "a value right after the colon"
    single: bool = False
    facet: bool = False
    token: bool = True


_DAY = "a day such as 2026-01-31, 2026-01, 2026, today, yesterday, 7d, 2w, 3m, 1y or 12h"

# fmt: off
_PROPERTIES = (
    Property("type", "type", "text", "type:decision", "the type of resource", "kind", single=True, facet=True),
    Property("ext", "path", "ending", "ext:py,md", "the file's extension is one of these", "extension filetype suffix",
             "the ending of a file name such as py", single=True, facet=True),
    Property("lang", "lang", "text", "lang:python", "the language: of code, of markup, or of people as in `lang:de`",
             "language", single=True, facet=True),
    Property("language", "fields.language", "list", single=True, facet=True),
    Property("author", "author", "names", 'author:"Ada Lovelace"', "the author; `author:ada` will do",
             "by creator from writer", facet=True),
    Property("tag", "tags", "texts", "tag:urgent", "one of its tags", "label labels topic", facet=True),
    Property("system", "fields.system", "list", "system:auth", "one of the systems that it is about", facet=True),
    Property("path", "path", "path", "path:docs/api", "the path contains this; `path:/docs` begins so; "
             "`path:*.test.js` and `path:docs/*/old` are patterns", "dir filename folder directory inpath inurl",
             facet=True),
    Property("file", "path", "alias", "file:*.{py,go}", "as `path:`; braces stand for any of their parts, up to 30"),
    Property("title", "title", "words", 'title:"two words"', "the title has the word or phrase", "intitle subject"),
    Property("year", "updated_at", "time", facet=True),
    Property("after", "updated_at", "time", "after:2026-01-31", "it changed then or later", "newer since", _DAY),
    Property("before", "updated_at", "time", "before:7d", "it changed earlier", "older until", _DAY),
    Property("date", "updated_at", "time", "date:2025..2026", "it changed in this time",
             takes=f"{_DAY}, or two of them as in 2026-01..2026-03"),
    Property("is", "", "state", "is:code", "code or chats; `is:head`: what nothing replaces, `is:superseded`: the rest",
             takes="code, chat, head or superseded"),
    Property("in", "", "words", "in:heading", "all words are looked for in this field only; `in:history` also finds "
             "what was superseded, where a profile leaves it out", takes=f"{', '.join(TEXT_FIELDS)} or history"),
    Property("rid", "rid", "exact"),
    Property("here", "fields.here", "exact", token=False),
    Property("folder", "path", "folder", token=False),
)
# fmt: on

PROPERTIES = {one.name: one for one in _PROPERTIES}
"""The table that lexer, parser, stores, legs, facets, explanations, adapters, exported pages and docs follow from."""

COMPARED = [one.name for one in _PROPERTIES if one.token and one.kind not in ("alias", "state", "time", "words")]
"""The properties that every store and every keyword leg can compare with values."""

FACETS = (*[one.name for one in _PROPERTIES if one.facet], "file", "entity")
"""The properties that can be counted; `path` is the first folder, `year` that of the latest change.

`file` is all files, or ids of what is no file, each with the number of its passages that match. `entity` is the names
that the graph knows in them.
"""


HERE = "here"
"""The field for the folder that keeps a memory to itself and those below; a store lists such folders under it."""

SCOPES = ("here", "all")
"""Scopes that every face offers: the workspace that is asked, or all that the caller may see."""


SPELLING = "~"
"""The group of a word and its correction, which no entry of a glossary can have."""


@record()
class Word:
    """A word to rank by, as the user typed it: any of its terms (`node.js`: node, js) in any inflected form will do.

    Its forms are those of its `language`; where that is empty, of the languages that the index holds.
    """

    text: str
    language: str = ""


@record()
class Term:
    """A word that is meant: in any inflected form, a compound such as `node.js` or `getUser` with its parts in a row.

    `field` limits it to one text field: `title`, `heading`, `path`, `tags`, `body`; empty is any of them. `language`
    is as that of a `Word`.
    """

    text: str
    field: str = ""
    language: str = ""


@record()
class Phrase:
    """Words that must stand next to each other, in this order, as they are written. Of one word: that form only."""

    text: str
    field: str = ""


@record()
class Prefix:
    """The beginning of a word."""

    text: str
    field: str = ""


@record()
class Fuzzy:
    """A word or one spelled nearly so: at most `distance` letters added, left out, changed or swapped."""

    text: str
    distance: int = 1
    field: str = ""


@record()
class Near:
    """Two words, in any inflected form, with at most `distance` words between them, in either order, in the body."""

    first: str
    second: str
    distance: int = 10


@record()
class Pattern:
    """A text that stands in a resource letter by letter, in words or across them, or a regular expression.

    A regular expression is one of Python's `re`; `^` and `$` are the ends of lines. `whole_words` is whether no letter
    of a word stands right before or behind.
    """

    text: str
    is_regex: bool
    is_case_sensitive: bool
    whole_words: bool = False


class Required(NamedTuple):
    """Folded trigrams that follow from a pattern: of each clause one set, and of that set every trigram."""

    clauses: tuple[frozenset[frozenset[str]], ...]


@record()
class Field:
    """A resource for which the property `name` has any of the values; no text is looked at.

    `path`, `ext`, `lang`, `type`, `tag`, `system`, `author` or `rid`; `is` stands for what only the store can tell.
    `cid` names single chunks, and is no property of a resource: only a keyword leg is asked for it.
    """

    name: str
    values: tuple[str, ...]


@record()
class Range:
    """A resource that changed at or after one moment and before another; seconds since the epoch."""

    after: float | None = None
    before: float | None = None


@record()
class Not:
    """A node that must not match."""

    node: Node


@record()
class Any:
    """At least one of the nodes; the more of them match, the better the rank."""

    nodes: tuple[Node, ...]


@record()
class Same:
    """Ways to say the same thing: at least one of the nodes, and the best one counts. The first is what was typed.

    `group` names the entry of the glossary that they come from, if they do.
    """

    nodes: tuple[Node, ...]
    group: str = ""


@record()
class All:
    """Every one of the nodes."""

    nodes: tuple[Node, ...]


Node = Word | Term | Phrase | Prefix | Fuzzy | Near | Pattern | Field | Range | Not | Any | Same | All

# For `isinstance`, which rebuilds `A | B` each time: half of what parsing took.
LEAVES = (Word, Term, Phrase, Prefix, Fuzzy, Near)
CONDITIONS = (Field, Range)
GROUPS = (Any, Same, All)


def with_leaves(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with its leaves changed."""
    if isinstance(node, Not):
        return Not(with_leaves(node.node, change))
    if isinstance(node, GROUPS):
        return replace(node, nodes=tuple([with_leaves(part, change) for part in node.nodes]))
    return change(node)


def offered(default: AnyValue, help: str, mcp: str = "") -> AnyValue:
    """A filter that every face offers, with its descriptions over HTTP and MCP."""
    return field(default=default, metadata={"help": help, "mcp": mcp})


@record(kw_only=True)
class Filters:
    """Limits of an answer; legs apply every filter before they score.

    An empty tuple does not filter. `where` is a tree of `Field`, `Range`, `Not`, `Any` and `All` that has to hold
    besides. `within` is the folder that is searched: unlike `path` it passes everything that has no path.
    """

    ext: tuple[str, ...] = offered((), "Extensions, with or without the dot.")
    not_ext: tuple[str, ...] = offered((), "Extensions that are left out.")
    path: tuple[str, ...] = offered((), "Folders or files, from the root of the workspace.", "folders or files")
    type: tuple[str, ...] = offered(
        (), "Types of resources: file, chat, decision, memory, …", "file, chat, memory, decision, …"
    )
    lang: tuple[str, ...] = offered((), "Languages of texts and of code: german, markdown, python, …")
    tag: tuple[str, ...] = offered((), "Tags.")
    author: tuple[str, ...] = offered((), "Authors.")
    after: float | None = offered(
        None,
        "Changed at or after this: a date as in ISO 8601, or seconds since the epoch.",
        "changed since: 2026-01-31, 2026, 7d",
    )
    before: float | None = offered(None, "Changed before this: a date as in ISO 8601, or seconds since the epoch.")
    where: Node | None = None
    within: str = ""


OFFERED = {one.name: one for one in fields(Filters) if one.metadata}
"""The filters that every face offers."""


@record()
class LegQuery:
    """A query as a leg is asked it.

    `node` is all that is asked for; `words` the part of it that ranks, `None` where every part must hold. `text` is
    what a model reads, `terms` what to look for, and `held` those of them that the index holds.
    """

    node: Node
    words: Node | None
    filters: Filters
    text: str
    terms: Sequence[str]
    plan: Plan
    held: frozenset[str] = frozenset()


@record(kw_only=True)
class SearchRequest:
    """One question with everything that bears on its answer.

    `limit` counts hits; `exclude_pattern` is a regular expression that drops every chunk whose text it matches, before
    the answer is cut to `limit`. Without a `plan` that of the `profile` is carried out, and without one that of the
    settings; `changes` are fields of that plan with other values. `in_context` has the project file scope it.
    `within` is the part of the root that is asked, and that paths of `filters` are relative to; `None` is the part that
    was opened. `scope` is `here`, `all` for every workspace that the caller may see, `shared`, or names with commas
    between them. `cursor` is the `next_cursor` of an earlier answer to the same question, and takes the place of
    `offset`. `facets` are properties whose values are counted. `principals` is who asks, `None` for the owner of the
    workspace, who sees everything; an empty tuple is nobody and finds nothing. `quick` leaves out what takes long:
    reading on, judging, and most of a long index run; `patient` has a judge read the best hits where the plan leaves
    that open. After `timeout_s`, if that is not 0, an answer is made of what was found until then.
    """

    query: str
    limit: int = 10
    offset: int = 0
    cursor: str = ""
    facets: tuple[str, ...] = ()
    principals: tuple[str, ...] | None = None
    filters: Filters = field(default_factory=Filters)
    exclude_pattern: str | None = None
    context: int = 0
    explain: bool = False
    plan: Plan | None = None
    profile: str = ""
    changes: Mapping[str, object] = field(default_factory=dict)
    in_context: bool = True
    within: str | None = None
    quick: bool = False
    patient: bool = False
    timeout_s: float = 0.0
    scope: str = SCOPES[0]


class Variant(NamedTuple):
    """Another way to put a question: words (`lex`), a question (`vec`), or a passage that could answer it (`hyde`).

    Those come from a language model. Words without one come from the best `passages` or the `glossary`.
    """

    kind: str
    text: str


class Rephrasing(NamedTuple):
    """The variants of a question, the model that gave them, and the host that was sent the question, if any was.

    `notes` say what failed on the way; without variants they say why.
    """

    variants: tuple[Variant, ...] = ()
    by: str = ""
    sent_to: str = ""
    is_cached: bool = False
    notes: tuple[Degradation, ...] = ()


class Rephraser(Protocol):
    """A language model that puts questions in other words. It raises nothing: `notes` say what failed."""

    def rephrase(
        self, question: str, filters: Filters, about: Sequence[Resource], profile: str, patience_s: float
    ) -> Rephrasing:
        """Variants of a question within `patience_s`; `about` are the resources that it leads to, best first."""
