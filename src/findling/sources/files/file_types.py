"""Types of files: a name gives the language and kind, or the reason to skip the file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).with_name("file_types.txt")
_KINDS = ("code", "config", "data", "document", "markdown", "text")
_SECRET_PREFIXES = (".env.", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
_MINIFIED_SUFFIXES = (".min.js", ".min.mjs", ".min.cjs", ".min.css", ".min.html", ".map")
_NAMES_WITH_VARIANTS = (
    "authors changelog containerfile copying dockerfile jenkinsfile licence license makefile notice readme vagrantfile"
)

NEVER_ENTERED = frozenset({".bzr", ".findling", ".git", ".hg", ".jj", ".pijul", ".svn", "_darcs"})
"""Directories of version control and of findling itself: no rule opens them."""

SECRET_FOLDERS = frozenset({".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kube", ".password-store", ".ssh"})
"""Directories of keys and passwords: only a path that the user names leads into them."""

MACHINE_MADE = frozenset(
    ".angular .dart_tool .direnv .eggs .gradle .hypothesis .import_linter_cache .ipynb_checkpoints .mypy_cache .next "
    ".nox .nuxt .nyc_output .parcel-cache .pnpm-store .pytest_cache .pytype .ruff_cache .sass-cache .serverless "
    ".stack-work .svelte-kit .terraform .tox .turbo __MACOSX __pycache__ __pypackages__ bower_components elm-stuff "
    "jspm_packages node_modules".split()
)
"""Directories that programs write for themselves, whatever they hold."""

USEFUL_HIDDEN_DIRECTORIES = frozenset(
    {".buildkite", ".changeset", ".ci", ".circleci", ".devcontainer", ".forgejo", ".gitea", ".github", ".gitlab"}
)
"""Directories that people write and read although their names begin with a dot."""


class FileType(NamedTuple):
    """Type of a file: `kind` is `code`, `markdown` (structured by headings), `text`, `data`, `config` or `document`.

    A document is no text file; an extractor reads it.
    """

    lang: str
    kind: str


class Exclusion(NamedTuple):
    """Why files of this name are left out; `reason` is one of `discovery.REASONS`."""

    reason: str
    detail: str = ""


FALLBACK_TYPE = FileType("text", "text")
"""The type of a file that only a rule of the user brought in."""

_SECRET = Exclusion("secret", "may hold a key or a password")
_MINIFIED = Exclusion("minified", "generated from other sources")
_OWNER_FILE = Exclusion("machine-made", "says who has a document open")
_UNKNOWN = Exclusion("unknown-type")


def _read_table() -> tuple[dict[str, FileType | Exclusion], dict[str, FileType | Exclusion]]:
    extensions: dict[str, FileType | Exclusion] = {}
    names: dict[str, FileType | Exclusion] = {}
    for section in _TABLE.read_text("utf-8").split("\n[")[1:]:
        title, *lines = section.rstrip().split("\n")
        kind, _, of_names = title.rstrip("]").partition(" ")
        for line in lines:
            meaning, _, words = line.partition(": ")
            found = FileType(meaning, kind) if kind in _KINDS else Exclusion(kind, meaning)
            (names if of_names else extensions).update(dict.fromkeys(words.split(), found))
    return extensions, names


EXTENSIONS, KNOWN_NAMES = _read_table()
"""Types by extension with its dot, and by whole name; both in lower case. No leading dot hides a known name."""

_STEMS = {name: KNOWN_NAMES[name] for name in _NAMES_WITH_VARIANTS.split()}


def classify(name: str) -> FileType | Exclusion:
    """The type of a file by its name alone, or why it is left out."""
    lower = name.lower()
    known = KNOWN_NAMES.get(lower)
    if known is not None:
        return known
    if lower.startswith(_SECRET_PREFIXES):
        return _SECRET
    if lower.startswith("~$"):
        return _OWNER_FILE
    dot = lower.rfind(".")
    if dot >= 0:
        if lower.endswith(_MINIFIED_SUFFIXES):
            return _MINIFIED
        by_extension = EXTENSIONS.get(lower[dot:])
        if by_extension is not None:
            return by_extension
    # `Dockerfile.dev`, `README.de` and `LICENSE-MIT` are what their first word says.
    return _STEMS.get(lower.replace("-", ".").partition(".")[0], _UNKNOWN)


def file_type(name: str) -> FileType:
    """The type of a file that is to be indexed."""
    found = classify(name)
    return found if isinstance(found, FileType) else FALLBACK_TYPE
