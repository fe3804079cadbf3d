"""Every setting, declared once, and its value with an origin, one layer over another.

Help, files, environment, command line and documentation derive from the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.errors import InvalidValueError, UnknownSettingError
from findling.domain.plans import KNOBS, Knob
from findling.domain.strangers import PROJECT_SETTINGS
from findling.domain.values import FIELDS, closest_name, fit, record, wanted

if TYPE_CHECKING:
    from findling.domain.resources import ResourceType

Value = str | int | float | bool | tuple[str, ...] | Mapping[str, float] | None


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return "FINDLING_" + name.upper().replace(".", "_")


@record()
class Setting:
    """One setting; `domain.values` lists the kinds, `domain.strangers` the settings of a project file."""

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
    choices: tuple[str, ...] = ()


def plan_row(knob: Knob) -> Setting:
    """A knob of the plan as a row of a settings file or a profile."""
    kind = "patterns" if knob.kind == "texts" else knob.kind
    bounds = (knob.choices, knob.minimum, knob.maximum, knob.optional)
    return Setting(knob.row, kind, knob.default, knob.help, *bounds)


_KINDS = {str: "text", int: "count", float: "number", bool: "switch", tuple: "patterns"}


def _row(
    name: str,
    default: Value,
    text: str,
    choices: tuple[str, ...] = (),
    *,
    kind: str = "",
    minimum: float = 0,
    maximum: float = float("inf"),
) -> Setting:
    """A row whose kind follows from its default, unless it is a size or a name."""
    return Setting(name, kind or _KINDS[type(default)], default, text, choices, minimum, maximum)


_SETTINGS = (
    _row("workspace.name", "", "Workspace to use; empty: the one that belongs to the searched folder.", kind="name"),
    _row("index.max_file_size", 4 << 20, "Files larger than this are left out.", kind="size", minimum=1),
    _row(
        "index.max_document_size", 64 << 20, "Larger PDFs, office files and mail are left out.", kind="size", minimum=1
    ),
    _row(
        "index.max_text", 16 << 20, "Characters indexed of one document; the rest is left out.", kind="size", minimum=1
    ),
    _row("index.max_seconds", 60.0, "Seconds that reading one document may compute.", minimum=0.1),
    _row(
        "index.workers", 0, "Processes that read files, or answer in a daemon; 0: by the number of cores.", maximum=64
    ),
    _row("index.hidden", False, "Index files and folders whose name starts with a dot."),
    _row("index.follow_symlinks", False, "Follow symbolic links, also out of the folder."),
    _row("index.use_ignore_files", True, "Leave out what .gitignore and .ignore name."),
    _row("index.include", (), "Patterns to index although a rule leaves them out."),
    _row("index.exclude", (), "Patterns to leave out, written as in .gitignore."),
    _row("index.batch_bytes", 8 << 20, "Text of one transaction.", kind="size", minimum=1),
    _row("chunk.preset", "default", "Chunks: default, sila, nexus, lss or STRATEGY:SIZE[/OVERLAP]:UNIT."),
    _row(
        "chunk.code", "auto", "Parser of code; auto: syntax trees where patterns fail.", ("auto", "patterns", "syntax")
    ),
    _row("permissions.unset", "owner", "Readers of what has no list: the owner, or every caller.", ("owner", "public")),
    _row("exact.url", "", "Address of a zoekt-webserver that narrows down patterns of the owner's grep; empty: none."),
    _row("compact.auto", True, "Compact in the background when it is worthwhile."),
    _row("snapshot.keep", 7, "Number of snapshots to keep; 0: all."),
    _row("snapshot.auto_bytes", 256 << 20, "Most that automatic snapshots take; 0: none.", kind="size"),
    _row("search.limit", 10, "Most hits of an answer; 0: only count."),
    _row("search.refresh", "auto", "Whether a search first indexes changed files.", ("auto", "never")),
    _row("search.context", 0, "Lines shown before and after each matching line."),
    _row("search.snippet_lines", 3, "Lines shown of each hit; 0 shows none.", minimum=0),
    _row("search.profile", "auto", "Profile of searches: auto, strict, deep, … or your own [profiles.NAME]."),
    _row("keyword.unit", "chunk", "Unit of ranking: chunks, or whole pages.", ("chunk", "page")),
    _row(
        "semantic.model", "auto", "Model for meaning: its name, folder, PROVIDER:MODEL, auto (the installed) or none."
    ),
    _row("semantic.models", (), "Models for languages, beside semantic.model: LANG:MODEL, such as zh:bge-small-zh."),
    _row("semantic.instant", True, "Give every chunk a simple vector while it is indexed."),
    _row("semantic.base_url", "", "Address of the provider of semantic.model; empty: its own."),
    _row("semantic.fast", False, "Read 3 times as fast, less exactly: by `reader`, or a chosen model in 8 bits."),
    _row("semantic.threads", 0, "Threads of a local model; 0: one for each processor core.", maximum=256),
    _row(
        "semantic.refine", "background", "Whether the model reads all passages once indexed.", ("background", "never")
    ),
    _row("semantic.cpu_share", 0.5, "Share of one core that reading in the background takes; 1: all cores.", maximum=1),
    _row("remote.timeout_s", 10.0, "Longest time of one request to a provider.", minimum=0.1),
    _row("remote.dimensions", 0, "Length of vectors to ask a provider for; 0: the model's own."),
    _row("remote.allow_private", False, "Send also what is marked private to a provider."),
    _row("privacy.private", (), "Paths never sent to a provider, as in .gitignore; nor is anything tagged private."),
    _row("rerank.model", "auto", "Judge of query and passage: as semantic.model; auto: one that was pulled, if any."),
    _row("rerank.base_url", "", "Address of the provider of rerank.model; empty: its own."),
    _row(
        "chat.model",
        "none",
        "Language model for glossary, search.expand, situate and memory.ask: PROVIDER:MODEL, or none.",
    ),
    _row("chat.fallback", (), "Language models that search.expand asks when chat.model fails, in this order."),
    _row("chat.base_url", "", "Address of the provider of chat.model; empty: its own."),
    _row(
        "memory.copies",
        "update",
        "Whether a near copy of a memory updates it, or is added beside it.",
        ("update", "add"),
    ),
    _row(
        "memory.conflicts",
        "supersede",
        "Whether a newer value of a fact supersedes the older one, or both wait for a review.",
        ("supersede", "review"),
    ),
    _row("memory.ask", False, "Ask chat.model what it thinks of memories that wait for a review."),
    _row("context.workspace", "", "Workspace of searches here; empty: that of the folder.", kind="name"),
    _row("context.path", "", "Path that is searched here unless a path or a workspace is named; empty: all paths."),
    _row("context.system", (), "Systems that searches here are limited to; empty: all."),
    _row("context.types", (), "Types that searches here are limited to, such as decision; empty: all."),
    _row("store.home", "", "Folder of the workspaces; empty: the user's data folder."),
    _row("store.url", "", "Place of the workspace to use: postgresql://USER@HOST/DATABASE#NAME; empty: none."),
    _row(
        "store.place", "home", "Place of a new index: with all others, or in the indexed folder.", ("home", "project")
    ),
    _row("store.vectors", "", "URL of vectors kept elsewhere, such as chroma:PATH of a plugin; empty: in the index."),
    _row("quota.resources", 0, "The most resources of a workspace that sets no quota itself; 0: any."),
    _row("quota.text", 0, "The most characters of text, likewise.", kind="size"),
    _row("quota.disk", 0, "The most bytes on disk, likewise.", kind="size"),
    _row("serve.use", "auto", "Whether a command that searches asks a running daemon.", ("auto", "never")),
    _row(
        "serve.auto",
        "auto",
        "Whether a search keeps a process warm for the next: in terminals (auto), in scripts, too, or never.",
        ("auto", "always", "never"),
    ),
    _row("serve.host", "127.0.0.1", "Address that the daemon listens on."),
    _row("serve.port", 3463, "Port of the daemon; 0: any that is free.", maximum=65535),
    _row("serve.names", (), "Names of hosts that requests may be for besides its own."),
    _row("serve.require_token", False, "Ask for a token on loopback, too."),
    _row(
        "serve.issuer", "", "Plugin that checks tokens of another issuer, such as supabase; empty: none.", kind="name"
    ),
    _row("serve.timeout_s", 10.0, "Longest time that the daemon looks for an answer.", minimum=0.1),
    _row("serve.cpu_s", 2.0, "CPU seconds that one request of a token may take; 0: any."),
    _row("serve.rate", 100.0, "Requests a second that one token may send; 0: any."),
    _row("watch.wait_s", 2.0, "Longest wait for more changes before indexing; a server's default: 5.", minimum=0.1),
    _row("watch.polling", "auto", "Polling of folders; auto: where no events arrive.", ("auto", "always", "never")),
    _row("mcp.write", False, "Let MCP clients remember things and have files indexed."),
    _row("mcp.personal", True, "Let MCP clients find personal memories beside those of the folder."),
    _row("mcp.max_tokens", 8000, "Most tokens, roughly, of an answer to an MCP client.", minimum=500),
    _row("mcp.savings", True, "Note the tokens of answers to MCP clients, and of the files they name; no texts."),
    _row("output.color", "auto", "Colours in the output.", ("auto", "always", "never")),
    _row("output.editor_uri", "", "Address behind a hit on a terminal, such as file://{path}#{line}; empty: none."),
    *(plan_row(knob) for knob in KNOBS.values() if knob.setting),
)
_SECTIONS = list(dict.fromkeys(row.name.partition(".")[0] for row in _SETTINGS))

SETTINGS = tuple(sorted(_SETTINGS, key=lambda row: _SECTIONS.index(row.name.partition(".")[0])))

ENVIRONMENT: tuple[EnvironmentVariable, ...] = (
    EnvironmentVariable("FINDLING_HOME", "Folder that holds the workspaces.", "store.home"),
    EnvironmentVariable("FINDLING_WORKSPACE", "Workspace to use.", "workspace.name"),
    EnvironmentVariable("FINDLING_CONFIG", "The user file to read and write instead of the usual one."),
    EnvironmentVariable("FINDLING_CORE", "`off` leaves the compiled core out, `on` is the default.", "", ("on", "off")),
)

KNOB_ROWS = {knob.row: plan_row(knob) for knob in KNOBS.values() if knob.profile and not knob.setting}
"""Knobs of the plan that are no settings: profiles and `--set` carry them, and files of earlier versions."""

REMOVED: Mapping[str, str] = {
    **{
        row: f"a profile carries it: [profiles.NAME] with {row.removeprefix('search.')} = VALUE, and search.profile ="
        f" NAME; for one search: --set {row}=VALUE"
        for row in KNOB_ROWS
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
    "items.user_folder": "findling sync --user-folder DIR",
    "exact.engine": "exact.url alone: the address of a zoekt-webserver, or empty",
    "search.legs": "legs are files of each host, and a fresh host fetches a copy of them from the database",
    "serve.refresh_s": "watch.wait_s instead",
    "serve.threads": "two questions for each core are answered at once",
    "serve.waiting": "256 questions may wait",
    "serve.cache": "512 answers are kept",
    "serve.max_body": "the owner may send 16 MB",
    "serve.idle_s": "models are released after 15 minutes without a question",
    "watch.poll_s": "folders are looked at every 2 seconds",
    "compact.free_share": "a part is rewritten when a quarter of it is unused",
    "index.max_memory": "reading one document may take 1 GB",
    "semantic.hnsw_from": "vectors are looked at by their signs first from 200,000 passages on",
}
"""Settings of earlier versions, and what there is instead."""


PROJECT_ORIGIN = "project file "
"""Start of the origin of a value from a project file."""

_BY_NAME = {setting.name: setting for setting in SETTINGS}

_ROWS = {**_BY_NAME, **KNOB_ROWS}

_SWITCHES = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}

_NOTHING = "auto"
"""None in a settings file or a flag: each query decides."""

_LONGEST_SHOWN = 200
"""Characters that an error shows of a value: a file may hold one of 64 KB."""


class Settings(Mapping[str, Any]):
    """An immutable value for every setting and knob, and the origin of each; `Settings()` holds the defaults.

    `profiles` and `types` are those that settings files declare.
    """

    __slots__ = ("_origins", "_profile_origins", "_values", "profiles", "types")

    def __init__(self) -> None:
        self._values: Mapping[str, Value] = {name: row.default for name, row in _ROWS.items()}
        self._origins: Mapping[str, str] = dict.fromkeys(_ROWS, "default")
        self._profile_origins: Mapping[str, str] = {}
        self.profiles: Mapping[str, Mapping[str, Value]] = {}
        self.types: Mapping[str, ResourceType] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def origin(self, name: str) -> str:
        """The origin of a value: `default`, `user file …`, `project file …`, `profile …`, `env …` or `flag …`."""
        return self._origins[name]

    def project_file(self, name: str) -> Path | None:
        """The project file that the value comes from, if it comes from one."""
        origin = self._origins[name]
        return Path(origin.removeprefix(PROJECT_ORIGIN)) if origin.startswith(PROJECT_ORIGIN) else None

    def profile_origin(self, name: str) -> str:
        """The file that a profile comes from. Raises KeyError for a name that `profiles` does not have."""
        return self._profile_origins[name]

    def with_profiles(self, profiles: Mapping[str, Mapping[str, Value]], origin: str) -> Settings:
        """The same settings with the profiles of one more file."""
        changed = copy(self)
        changed.profiles = {**self.profiles, **profiles}
        changed._profile_origins = {**self._profile_origins, **dict.fromkeys(profiles, origin)}
        return changed

    def with_types(self, types: Mapping[str, ResourceType]) -> Settings:
        """The same settings with the types of resources that one more file declares."""
        changed = copy(self)
        changed.types = {**self.types, **types}
        return changed

    def override(self, values: Mapping[str, object], origin: str) -> Settings:
        """The same settings with other values. Raises UnknownSettingError or InvalidValueError."""
        checked = {name: check_value(get_row(name, origin), value, origin) for name, value in values.items()}
        changed = copy(self)
        changed._values = {**self._values, **checked}
        changed._origins = {**self._origins, **dict.fromkeys(checked, origin)}
        return changed

    def override_text(self, name: str, text: str, origin: str) -> Settings:
        """The same settings with one value given as text, as in the environment or on the command line."""
        return self.override({name: parse_text(get_row(name, origin), text, origin)}, origin)


def get_row(name: str, where: str = "") -> Setting:
    """The declaration of a setting or of a knob. Raises as `get_setting` does."""
    return KNOB_ROWS.get(name) or get_setting(name, where)


def get_setting(name: str, where: str = "") -> Setting:
    """The declaration of a setting. Raises `UnknownSettingError` that names `where` and the closest name."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    lead = f"{where}: " if where else ""
    if name in REMOVED:
        raise UnknownSettingError(f"{lead}{name} is no setting any more", hint=instead_of(name, where))
    if name.startswith("profiles."):
        hint = f"write it into the table [{name.rpartition('.')[0]}] of a settings file"
    else:
        hint = closest_name(name, _ROWS if where else _BY_NAME, _way_out(name, where) or "findling config show")
    raise UnknownSettingError(f"{lead}no setting is called {name}", hint=hint)


def instead_of(name: str, where: str = "") -> str:
    """The hint instead of a setting of earlier versions, first of all where it still stands."""
    return "; ".join(filter(None, (_way_out(name, where), REMOVED[name])))


def _way_out(name: str, where: str) -> str:
    """The words to type so that it is not set there any more; none for the command line, where nothing stays."""
    if where.startswith("env "):
        return f"unset {where.removeprefix('env ')}"
    if not where.startswith(("user file ", PROJECT_ORIGIN)):
        return ""
    if ": profile " in where or name.count(".") != 1:
        return "remove it from there"
    is_project = where.startswith(PROJECT_ORIGIN)
    return f"findling config remove {f'--project {name}, in its folder' if is_project else name}"


def parse_text(setting: Setting, text: str, where: str) -> Value:
    """A value written as text: `true`, `4MB`, `*.log,*.tmp`. Raises `InvalidValueError` that names `where`."""
    text = text.strip()
    value: object = text
    try:
        if setting.kind == "switch":
            value = _SWITCHES[text.lower()]
        elif setting.kind in ("count", "number") and not (setting.optional and text == _NOTHING):
            value = int(text) if setting.kind == "count" else float(text)
        elif setting.kind == "patterns":
            value = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    except (KeyError, ValueError):
        raise _invalid(setting, text, where) from None
    return check_value(setting, value, where)


def check_value(setting: Setting, value: object, where: str) -> Value:
    """The value in its canonical form. Raises `InvalidValueError` that names `where`."""
    try:
        checked: Value = fit(setting, None if setting.optional and value == _NOTHING else value)
    except ValueError:
        raise _invalid(setting, value, where) from None
    return checked


def _invalid(setting: Setting, value: object, where: str) -> InvalidValueError:
    shown = repr(value) if setting.name != "store.url" else "this"  # it may hold a password
    shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
    message = f"{where}: {setting.name} must be {wanted(setting, _NOTHING)}, not {shown}"
    return InvalidValueError(message, hint=_way_out(setting.name, where) or "findling config show")


def flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of nested tables under dotted names; an empty table counts as a value unless it is a section."""
    for key, value in table.items():
        if isinstance(value, dict) and (value or prefix + key in _SECTIONS):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
