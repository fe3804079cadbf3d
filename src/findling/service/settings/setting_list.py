"""Every setting, declared once: help, files, environment, command line and documentation take it from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from findling.domain.plans import KNOBS, Knob
from findling.domain.strangers import PROJECT_SETTINGS
from findling.domain.values import FIELDS

__all__ = [
    "ENVIRONMENT",
    "REMOVED",
    "SETTINGS",
    "EnvironmentVariable",
    "Setting",
    "Value",
    "plan_row",
    "variable_of",
    "with_plan",
]

Value = str | int | float | bool | tuple[str, ...] | Mapping[str, float] | None


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return "FINDLING_" + name.upper().replace(".", "_")


class Setting(NamedTuple):
    """One setting; its kind is one of `domain.values`.

    A project file may set those that `domain.strangers` lists, and no other.
    """

    name: str
    kind: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = float("inf")
    optional: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return variable_of(self.name)

    @property
    def user_only(self) -> bool:
        """Whether a project file may not set it."""
        return self.name not in PROJECT_SETTINGS


class EnvironmentVariable(NamedTuple):
    """A variable that is not named after a setting; `setting` is the one it is short for, if any."""

    name: str
    help: str
    setting: str = ""


def plan_row(knob: Knob) -> Setting:
    """A knob of the plan as a row of a settings file or a profile."""
    kind = "patterns" if knob.kind == "texts" else knob.kind
    bounds = (knob.choices, knob.minimum, knob.maximum, knob.optional)
    return Setting(knob.row, kind, knob.default, knob.help, *bounds)


def with_plan(settings: Iterable[Setting], knobs: Iterable[Knob]) -> tuple[Setting, ...]:
    """Settings with those of the plan, section by section."""
    rows = [*settings, *(plan_row(knob) for knob in knobs if knob.setting)]
    sections = list(dict.fromkeys(row.name.partition(".")[0] for row in rows))
    return tuple(sorted(rows, key=lambda row: sections.index(row.name.partition(".")[0])))


_OTHERS: tuple[Setting, ...] = (
    Setting(
        "workspace.name",
        "name",
        "",
        "Workspace to use; empty: the one that belongs to the searched folder.",
    ),
    Setting("index.max_file_size", "size", 4194304, "Files larger than this are left out.", minimum=1),
    Setting(
        "index.max_document_size", "size", 67108864, "PDFs, office files, mail larger than this: left out.", minimum=1
    ),
    Setting(
        "index.max_text", "size", 16777216, "Characters taken of one document; what follows is left out.", minimum=1
    ),
    Setting("index.max_seconds", "number", 60.0, "Seconds that reading one document may compute.", minimum=0.1),
    Setting("index.workers", "count", 0, "Processes that read files; 0: one for each processor core.", maximum=64),
    Setting("index.hidden", "switch", False, "Index files and folders whose name starts with a dot."),
    Setting("index.follow_symlinks", "switch", False, "Follow symbolic links, also out of the folder."),
    Setting("index.use_ignore_files", "switch", True, "Leave out what .gitignore and .ignore name."),
    Setting("index.include", "patterns", (), "Patterns to index although a rule leaves them out."),
    Setting("index.exclude", "patterns", (), "Patterns to leave out, written as in .gitignore."),
    Setting("index.batch_bytes", "size", 8388608, "How much text one transaction holds.", minimum=1),
    Setting(
        "chunk.preset",
        "text",
        "default",
        "How texts are cut: default, sila, nexus, lss, or STRATEGY:SIZE[/OVERLAP]:UNIT such as semantic:900:words.",
    ),
    Setting(
        "chunk.code",
        "text",
        "auto",
        "How definitions in code are found; auto: by syntax trees where patterns go wrong.",
        ("auto", "patterns", "syntax"),
    ),
    Setting(
        "permissions.unset",
        "text",
        "owner",
        "Who may see what has no list of its own: the owner of the workspace alone, or every caller.",
        ("owner", "public"),
    ),
    Setting("compact.auto", "switch", True, "Compact in the background when it is worthwhile."),
    Setting("snapshot.keep", "count", 7, "How many snapshots are kept; 0: all."),
    Setting("snapshot.auto_bytes", "size", 256 << 20, "Most that automatic snapshots take; 0: none."),
    Setting(
        "items.user_folder",
        "text",
        "",
        "The folder of your own directives, tools and knowledge; empty: ~/.ai.",
    ),
    Setting("search.limit", "count", 10, "How many hits an answer holds at most.", minimum=1),
    Setting("search.refresh", "text", "auto", "Whether a search first takes in changed files.", ("auto", "never")),
    Setting("search.context", "count", 0, "Lines shown before and after each matching line."),
    Setting("search.snippet_lines", "count", 3, "Lines shown of each hit.", minimum=1),
    Setting(
        "search.profile",
        "text",
        "auto",
        "The profile that searches follow: auto, strict, deep, … or your own from [profiles.NAME] in a settings file.",
    ),
    Setting("keyword.unit", "text", "chunk", "What is ranked: chunks, or whole pages.", ("chunk", "page")),
    Setting(
        "semantic.model",
        "text",
        "auto",
        "What reads for meaning: a model's name, its folder, PROVIDER:MODEL, auto (what is installed) or none.",
    ),
    Setting("semantic.instant", "switch", True, "Give every chunk a simple vector while it is indexed."),
    Setting("semantic.base_url", "text", "", "Address of the provider of semantic.model; empty: its own."),
    Setting(
        "semantic.fast",
        "switch",
        False,
        "Have a model with 8-bit weights calculate with them: 2.5 times as fast, a little less exact.",
    ),
    Setting("semantic.threads", "count", 0, "Threads of a local model; 0: one for each processor core.", maximum=256),
    Setting(
        "semantic.refine",
        "text",
        "background",
        "Whether the model reads all passages in the background once they are indexed.",
        ("background", "never"),
    ),
    Setting("semantic.cpu_share", "number", 0.5, "Share of its time that reading in the background takes.", maximum=1),
    Setting("remote.timeout_s", "number", 10.0, "How long one request to a provider may take.", minimum=0.1),
    Setting("remote.dimensions", "count", 0, "Length of vectors to ask a provider for; 0: the model's own."),
    Setting("remote.allow_private", "switch", False, "Send also what is marked private to a provider."),
    Setting(
        "privacy.private",
        "patterns",
        (),
        "Paths never sent to a provider, written as in .gitignore; what has the tag private never is.",
    ),
    Setting("rerank.model", "text", "none", "What reads query and passage together: as semantic.model."),
    Setting("rerank.base_url", "text", "", "Address of the provider of rerank.model; empty: its own."),
    Setting(
        "chat.model",
        "text",
        "none",
        "What says whether two terms of the glossary mean the same: PROVIDER:MODEL, or none.",
    ),
    Setting("chat.base_url", "text", "", "Address of the provider of chat.model; empty: its own."),
    Setting(
        "context.workspace",
        "name",
        "",
        "Workspace that searches here are limited to, in a project file one that holds it; empty: that of the folder.",
    ),
    Setting(
        "context.path",
        "text",
        "",
        "Path that is searched here unless a path or a workspace is named; empty: all paths.",
    ),
    Setting("context.system", "patterns", (), "Systems that searches here are limited to; empty: all."),
    Setting("context.types", "patterns", (), "Types that searches here are limited to, such as decision; empty: all."),
    Setting("store.home", "text", "", "Folder of the workspaces; empty: the user's data folder."),
    Setting(
        "store.place",
        "text",
        "home",
        "Where a new index is put: with all others, or into the folder that it indexes.",
        ("home", "project"),
    ),
    Setting("quota.resources", "count", 0, "The most resources of a workspace that sets no quota itself; 0: any."),
    Setting("quota.text", "size", 0, "The most characters of text, likewise."),
    Setting("quota.disk", "size", 0, "The most bytes on disk, likewise."),
    Setting(
        "serve.use",
        "text",
        "auto",
        "Whether a command that searches asks a running daemon.",
        ("auto", "never"),
    ),
    Setting("serve.host", "text", "127.0.0.1", "Address that the daemon listens on."),
    Setting("serve.port", "count", 3463, "Port of the daemon; 0: any that is free.", maximum=65535),
    Setting("serve.names", "patterns", (), "Names of hosts that requests may be for besides its own."),
    Setting("serve.require_token", "switch", False, "Ask for a token on loopback, too."),
    Setting("serve.timeout_s", "number", 10.0, "How long the daemon looks for an answer.", minimum=0.1),
    Setting("serve.cpu_s", "number", 2.0, "CPU seconds that one request of a token may take; 0: any."),
    Setting("serve.rate", "number", 100.0, "Requests a second that one token may send; 0: any."),
    Setting(
        "watch.wait_s",
        "number",
        2.0,
        "How long watching waits for more changes before it indexes them; what is served: 5 unless set.",
        minimum=0.1,
    ),
    Setting(
        "watch.polling",
        "text",
        "auto",
        "Whether folders are looked at again and again: where the system cannot tell of changes, always, never.",
        ("auto", "always", "never"),
    ),
    Setting("mcp.write", "switch", False, "Let MCP clients remember things and have files indexed."),
    Setting("mcp.max_tokens", "count", 8000, "About how many tokens an answer to an MCP client may take.", minimum=500),
    Setting("output.color", "text", "auto", "When to colour the output.", ("auto", "always", "never")),
    Setting(
        "output.editor_uri",
        "text",
        "",
        "Address behind a hit on a terminal, such as file://{path}#{line}; empty: none.",
    ),
)

SETTINGS = with_plan(_OTHERS, KNOBS.values())

ENVIRONMENT: tuple[EnvironmentVariable, ...] = (
    EnvironmentVariable("FINDLING_HOME", "Folder that holds the workspaces.", "store.home"),
    EnvironmentVariable("FINDLING_WORKSPACE", "Workspace to use.", "workspace.name"),
    EnvironmentVariable("FINDLING_CONFIG", "The user file to read and write instead of the usual one."),
)

REMOVED: Mapping[str, str] = {
    **{
        knob.row: f"a profile carries it: [profiles.NAME] with {knob.name} = VALUE, and search.profile = NAME"
        for knob in KNOBS.values()
        if knob.profile and not knob.setting
    },
    "search.affinity": "a profile carries it: [profiles.NAME.affinities] with alice = 1.0, and search.profile = NAME",
    **{
        f"keyword.weight_{name}": f"a profile carries it: [profiles.NAME.weights] with {name} = VALUE"
        for name in FIELDS[1:]
    },
    **dict.fromkeys(("keyword.k1", "keyword.b"), "BM25 always counts with k1 = 1.2 and b = 0.75"),
    **dict.fromkeys(
        ("chunk.strategy", "chunk.size", "chunk.overlap", "chunk.unit"),
        "chunk.preset = STRATEGY:SIZE[/OVERLAP]:UNIT, such as overlapping:400/50:tokens",
    ),
    "serve.refresh_s": "watch.wait_s instead",
    "serve.threads": "two questions for each core are answered at once",
    "serve.waiting": "256 questions may wait",
    "serve.cache": "512 answers are kept",
    "serve.max_body": "the owner may send 16 MB",
    "serve.idle_s": "models are let go after 15 minutes without a question",
    "watch.poll_s": "folders are looked at every 2 seconds",
    "compact.free_share": "a part is rewritten when a quarter of it is unused",
    "index.max_memory": "reading one document may take 1 GB",
    "semantic.hnsw_from": "a graph is searched from 200,000 passages on",
}
"""Settings of earlier versions, and what there is instead."""
