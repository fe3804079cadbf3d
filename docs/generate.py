"""Write docs/reference from the code, a page for each kind of thing that stands there.

`python docs/generate.py` writes the pages; `--check` writes nothing and exits with 1 when a page differs from the code.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from generate_servers import mcp_page, routes_page
from generate_types import json_page, library_page, modules_page
from markdown_tables import code, codes, table

from findling.domain.errors import FindlingError
from findling.domain.queries import FACETS, OFFERED, PROPERTIES
from findling.domain.strangers import LOWERED
from findling.faces.cli.main import cli
from findling.models.remote.providers import providers
from findling.service.settings.setting_list import KNOB_ROWS
from findling.service.settings.settings import ENVIRONMENT, PROJECT_FILE, SETTINGS, Setting
from findling.sources.documents.table import FORMATS
from findling.sources.files import file_types
from findling.sources.files.discovery import REASONS

__all__ = ["PAGES", "main"]

FOLDER = Path(__file__).resolve().parent / "reference"
NOTICE = "<!-- Written by docs/generate.py; change the code and run `make docs`. -->"


def main(args: list[str]) -> int:
    """Write or check every page; the exit code."""
    if args not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    differing = []
    for name, make in PAGES.items():
        text = f"{NOTICE}\n\n" + "\n".join(make()).rstrip("\n") + "\n"
        page = FOLDER / name
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        differing.append(name)
        if not args:
            FOLDER.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8", newline="\n")
    verb = "out of date, run `make docs`" if args else "written"
    print(f"{verb}: {', '.join(differing)}" if differing else "all pages are up to date")
    return 1 if differing and args else 0


# Commands


def commands_page() -> Iterator[str]:
    """Every command with its options."""
    yield "# Commands"
    yield ""
    yield "Every command takes `-h` and `--help`. A first word that is no command is a query: `findling QUERY [PATH]`"
    yield "is short for `findling search QUERY [PATH]` and takes the same options."
    yield ""
    yield "Exit codes: 0 found or done, 1 nothing found (or a problem that `findling doctor` reports), 2 error,"
    yield "130 interrupted."
    yield ""
    yield from _command(cli, "findling", 2)


def _command(command: click.Command, name: str, depth: int) -> Iterator[str]:
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    options = [param for param in command.params if isinstance(param, click.Option)]
    pieces = ["[OPTIONS]"] if options else []
    pieces += ["COMMAND"] if isinstance(command, click.Group) else []
    yield f"{'#' * depth} {name}"
    yield ""
    yield f"Usage: `{' '.join([name, *pieces, *map(_argument, arguments)])}`"
    yield ""
    yield from _paragraphs(command.help or "")
    if options:
        yield from table(("option", "meaning"), ((_option(option), option.help or "") for option in options))
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None, f"{name} lists {inner} but does not have it"
            yield from _command(found, f"{name} {inner}", depth if command is cli else depth + 1)


def _argument(argument: click.Argument) -> str:
    if argument.metavar:
        return argument.metavar
    word = "|".join(argument.type.choices) if isinstance(argument.type, click.Choice) else str(argument.name).upper()
    word += "..." if argument.nargs == -1 else ""
    return word if argument.required else f"[{word}]"


def _option(option: click.Option) -> str:
    value = option.metavar or ("" if option.is_flag else option.type.name.upper())
    if isinstance(option.type, click.Choice):
        value = "|".join(option.type.choices)
    *rest, last = option.opts
    return ", ".join([*map(code, rest), code(f"{last} {value}".strip())])


def _paragraphs(help_text: str) -> Iterator[str]:
    """Help as markdown; click marks a paragraph that keeps its lines with \\b."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield from ("```text", inspect.cleandoc(paragraph.removeprefix("\b")), "```", "")
        else:
            yield from (" ".join(paragraph.split()), "")


# Settings


def settings_page() -> Iterator[str]:
    """Every setting and every environment variable."""
    yield "# Settings"
    yield ""
    yield "A later one wins: default, user file, project file, environment variable, command-line option."
    yield "`findling config show` prints every value with its origin, `findling config show --path` the files."
    yield f"Both files are TOML; the project file is the nearest `{PROJECT_FILE}` at or above the searched folder, up"
    yield "to the top of its repository. An unknown setting or a value that does not fit is an error, never ignored."
    yield ""
    yield "A project file may come from a stranger: it sets what is searched, cut, ranked and shown, and lowers limits."
    yield "One that sets a setting marked *user only*, raises a limit above your own, or cuts chunks below 50, is"
    yield "refused with `untrusted-setting`. It has at most 64 KB, and includes no secret."
    yield "A *switch* is true or false, a *size* a number of bytes or a text such as `4MB`, *patterns*"
    yield "are a list, in a variable separated by commas."
    yield ""
    rows = (
        (code(setting.name), code(setting.variable), _kind(setting), _default(setting), _meaning(setting))
        for setting in SETTINGS
    )
    yield from table(("setting", "variable", "type", "default", "meaning"), rows)
    yield "## Knobs of profiles"
    yield ""
    yield 'A [profile](../query-language.md#profiles) carries them: `[profiles.NAME]` with `fusion = "rrf"`, without'
    yield '`search.` in front, and `search.profile = "NAME"`. For one search: `--set search.fusion=rrf`. A file or a'
    yield "variable of an earlier version that sets one still counts, and the command line says what to type instead."
    yield ""
    knobs = ((code(one.name), _kind(one), _default(one), _meaning(one)) for one in KNOB_ROWS.values())
    yield from table(("knob", "type", "default", "meaning"), knobs)
    yield "## Other environment variables"
    yield ""
    yield "An empty variable counts as not set; a `FINDLING_*` that stands in neither table is an error."
    yield ""
    names = [(variable.name, _short_for(variable.setting) + variable.help) for variable in ENVIRONMENT]
    rows_of_others = ((code(name), meaning) for name, meaning in [*names, *SHARED_VARIABLES.items()])
    yield from table(("variable", "meaning"), rows_of_others)


SHARED_VARIABLES = {
    "NO_COLOR": "Not empty: no colours, unless `output.color` is `always`.",
    "FORCE_COLOR": "Not empty: colours also where there is no terminal, unless `NO_COLOR` is set.",
    "CI": "Not empty, `0` or `false`: a search neither asks nor starts a warm process unless `serve.auto` is `always`.",
    "TERM": "`dumb`: neither colours nor a progress bar.",
    "XDG_CONFIG_HOME": "Where the user file lies on Linux, below `findling/`; `~/.config` when not set.",
    "XDG_DATA_HOME": "Where the workspaces lie on Linux, below `findling/`; `~/.local/share` when not set.",
    **{
        provider.key_variable: f"Key for {provider.name}." for provider in providers().values() if provider.key_variable
    },
    "ORT_DISABLE_TELEMETRY": "Set by findling itself: onnxruntime must not report to its maker.",
    "SOURCE_DATE_EPOCH": "The time that an export notes as its own, in seconds since the epoch, for equal files.",
    "HTTPS_PROXY": "Proxy on the way to a provider or a hub, but for the hosts in `NO_PROXY`.",
    "HF_ENDPOINT": "Hub that `findling models pull` fetches from; `https://huggingface.co` when not set.",
    "HF_HUB_CACHE": "The hub's cache, where models that other programs fetched are found.",
    "HF_HOME": "Folder of that cache, `hub/`, when `HF_HUB_CACHE` is not set; `~/.cache/huggingface` without either.",
    "XDG_CACHE_HOME": "What stands for `~/.cache` there.",
    "FASTEMBED_CACHE_PATH": "Cache of fastembed, whose models are found, too.",
}
"""Variables that findling heeds and that belong to no one program."""


def _kind(setting: Setting) -> str:
    if setting.choices:
        return " or ".join(map(code, setting.choices))
    low = f" ≥ {_amount(setting.minimum)}" if setting.kind in ("count", "size", "number") else ""
    high = f", ≤ {setting.maximum:g}" if setting.maximum != float("inf") else ""
    return setting.kind + low + high


def _amount(number: float) -> str:
    return f"{number / (1 << 20):g}MB" if number >= 1 << 20 else f"{number:g}"


def _default(setting: Setting) -> str:
    if setting.default in ("", ()):
        return "empty"
    if setting.kind == "size" and isinstance(setting.default, int) and setting.default % (1 << 20) == 0:
        return code(f"{setting.default >> 20}MB")
    return code(str(setting.default).lower())


def _meaning(setting: Setting) -> str:
    told = " *User only.*" if setting.user_only else " *A project can only lower it.*" * (setting.name in LOWERED)
    return setting.help + told


def _short_for(setting: str) -> str:
    return f"Short for `{setting}`. " if setting else ""


# Errors


def errors_page() -> Iterator[str]:
    """The whole tree of errors."""
    yield "# Errors"
    yield ""
    yield "Everything findling raises on purpose is a `FindlingError` with a `code` that never changes its meaning, a"
    yield "`message` that names the thing, and a `hint`: the next step. The command line prints message and hint on"
    yield "stderr and ends with exit code 2. The classes stand in `findling.domain.errors`."
    yield ""
    rows = (
        (code(kind.code), code(kind.__name__), code(kind.__base__.__name__), inspect.getdoc(kind) or "")
        for kind in _family(FindlingError)
        if kind.__base__ is not None
    )
    yield from table(("code", "class", "a kind of", "meaning"), rows)


def _family(kind: type[FindlingError]) -> Iterator[type[FindlingError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _family(inner)


# Skip reasons and file types


def skip_reasons_page() -> Iterator[str]:
    """Why paths are left out, and which names are known."""
    yield "# What is indexed, and what is left out"
    yield ""
    yield "`findling status --list skipped` lists every path that was left out, with its reason;"
    yield "`findling index --dry-run` says beforehand what an indexing run would take."
    yield ""
    yield "## Reasons"
    yield ""
    yield from table(("reason", "meaning"), ((code(name), meaning) for name, meaning in REASONS.items()))
    for title, kind in KINDS.items():
        yield f"## {title}"
        yield ""
        rows = [(code(lang), codes(names)) for lang, names in _names_by(_lang_of_kind(kind))]
        yield from table(("language", "extensions and names"), rows)
    yield "## Known by name, and left out"
    yield ""
    yield "An include rule brings in any of these but documents that cannot be read yet; a secret only by its exact"
    yield "name."
    yield ""
    rows = [(code(reason), codes(names)) for reason, names in _names_by(_reason)]
    yield from table(("reason", "extensions and names"), rows)
    yield "## Folders"
    yield ""
    folders = (
        ("never entered, whatever a rule says", file_types.NEVER_ENTERED),
        ("machine-made", file_types.MACHINE_MADE),
        ("entered although hidden", file_types.USEFUL_HIDDEN_DIRECTORIES),
    )
    yield from table(("folders", "names"), ((title, codes(sorted(names))) for title, names in folders))
    yield "Folders that end in `.egg-info` or hold a `pyvenv.cfg` or a signed `CACHEDIR.TAG` are machine-made, too."


KINDS = {"Prose with headings": "markdown", "Code": "code", "Text": "text", "Data": "data", "Configuration": "config"}

Meaning = file_types.FileType | file_types.Exclusion


def _names_by(key: Callable[[Meaning], str | None]) -> list[tuple[str, list[str]]]:
    groups: dict[str, set[str]] = {}
    for name, meaning in (*file_types.EXTENSIONS.items(), *file_types.KNOWN_NAMES.items()):
        group = key(meaning)
        if group is not None:
            groups.setdefault(group, set()).add(name)
    return [(group, sorted(groups[group])) for group in sorted(groups)]


def _lang_of_kind(kind: str) -> Callable[[Meaning], str | None]:
    return lambda meaning: meaning.lang if isinstance(meaning, file_types.FileType) and meaning.kind == kind else None


def _reason(meaning: Meaning) -> str | None:
    return meaning.reason if isinstance(meaning, file_types.Exclusion) else None


# Formats


def formats_page() -> Iterator[str]:
    """What is read of every format besides plain text, and how a hit says where it stands."""
    yield "# Formats"
    yield ""
    yield "Text, code, markdown and configuration files are read as they are, and hits in them have line numbers."
    yield "These formats are read by an extractor each. What a document says about itself, its title, author, language"
    yield "and times, goes into its resource. An extractor is chosen by content where the content is clear, else by"
    yield "name: a page saved as `.doc` is read as a page."
    yield ""
    yield "A hit says where it stands: the line of the file, or what is named in the last column. In documents that"
    yield "have neither, it gives the path and the headings above it. Numbers in sheets are those that are stored: a"
    yield "cell that shows 12.5 % holds 0.125, and a formula is read as the value that the program left in the file."
    yield ""
    rows = (
        (format_.title, _extensions(lang), format_.gives, format_.places or "–") for lang, format_ in FORMATS.items()
    )
    yield from table(("format", "files", "what is read", "a hit says"), sorted(rows))
    yield ""
    documents = ", ".join(sorted(FORMATS[lang].title for lang in FORMATS if _extensions(lang, kind="document")))
    yield f"Files of these formats may be as large as `index.max_document_size` says: {documents}."
    yield "All others, CSV and HTML among them, are text and may be as large as `index.max_file_size`."
    yield ""
    yield "All but CSV, JSON, notebooks and subtitles are parsed in worker processes that have limits of time and"
    yield "memory, `index.max_seconds` and `index.max_memory` in [Settings](settings.md). A package that unpacks to"
    yield "more than 64 MB in one part or 256 MB in all is refused as too large, and of no document more than"
    yield "`index.max_text` characters are taken. What could not be read, or not all of it, is listed with its"
    yield "[reason](skip-reasons.md) by `findling status --list failed`, and tried again when the file or the limits"
    yield "change, or when a later version of findling reads the format in another way."


def _extensions(lang: str, kind: str = "") -> str:
    types = sorted(file_types.EXTENSIONS.items())
    return codes(extension for extension, type_ in types if _is_of(type_, lang, kind))


def _is_of(type_: file_types.FileType | file_types.Exclusion, lang: str, kind: str) -> bool:
    return isinstance(type_, file_types.FileType) and type_.lang == lang and kind in ("", type_.kind)


# Query fields


def query_fields_page() -> Iterator[str]:
    """Every field of the query language, and what facets and filters are called."""
    yield "# Query fields"
    yield ""
    yield "Conditions of [the query language](../query-language.md#conditions). A *facet* can be counted. A *filter* is"
    yield "also an option, a parameter of requests and an argument of tools."
    yield ""
    typed = [one for one in PROPERTIES.values() if one.example]
    rows = ((code(one.example), one.help, codes(_uses(one.name))) for one in typed)
    yield from table(("you type", "it holds for what", "also"), rows)
    yield f"Facets: {codes(FACETS)}. Filters: {codes(OFFERED)}."


def _uses(name: str) -> Iterator[str]:
    yield from ["facet"] if name in FACETS and PROPERTIES[name].facet else []
    yield from ["filter"] if name in OFFERED else []


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands.md": commands_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "query-fields.md": query_fields_page,
    "skip-reasons.md": skip_reasons_page,
    "formats.md": formats_page,
    "library.md": library_page,
    "json.md": json_page,
    "routes.md": routes_page,
    "mcp-tools.md": mcp_page,
    "modules.md": modules_page,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
