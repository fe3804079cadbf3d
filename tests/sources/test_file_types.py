"""Types of files by their names."""

from __future__ import annotations

import pytest

from findling.sources.files.discovery import REASONS
from findling.sources.files.file_types import (
    EXTENSIONS,
    FALLBACK_TYPE,
    KNOWN_NAMES,
    Exclusion,
    FileType,
    classify,
    file_type,
)

KINDS = {"code", "markdown", "text", "data", "config", "document"}

TYPES = [
    ("main.py", "python", "code"),
    ("Main.PY", "python", "code"),
    ("types.d.ts", "typescript", "code"),
    ("notes.md", "markdown", "markdown"),
    ("page.mdx", "mdx", "markdown"),
    ("index.rst", "rst", "markdown"),
    ("book.adoc", "asciidoc", "markdown"),
    ("plan.org", "org", "markdown"),
    ("data.csv", "csv", "data"),
    ("nb.ipynb", "notebook", "data"),
    ("report.PDF", "pdf", "document"),
    ("letter.docx", "docx", "document"),
    ("budget.xls", "spreadsheet", "document"),
    ("talk.odp", "opendocument", "document"),
    ("inbox.mbox", "mail", "document"),
    ("backup.tar.gz", "archive", "document"),
    ("app.db", "sqlite", "document"),
    ("pyproject.toml", "toml", "config"),
    ("Makefile", "make", "code"),
    ("Dockerfile", "dockerfile", "code"),
    ("Dockerfile.dev", "dockerfile", "code"),
    ("CMakeLists.txt", "cmake", "code"),
    ("Jenkinsfile", "groovy", "code"),
    ("Justfile", "make", "code"),
    ("LICENSE", "text", "text"),
    ("LICENSE-MIT", "text", "text"),
    ("README", "text", "text"),
    ("README.md", "markdown", "markdown"),
    ("CODEOWNERS", "text", "text"),
    (".gitignore", "ignore", "config"),
    (".dockerignore", "ignore", "config"),
    (".editorconfig", "ini", "config"),
    (".env.example", "ini", "config"),
]


@pytest.mark.parametrize(("name", "lang", "kind"), TYPES)
def test_type(name: str, lang: str, kind: str) -> None:
    assert classify(name) == FileType(lang, kind)


INDEXED = (
    ".tf .proto .ipynb .mdx .dart .nix .cmake .astro .sol .hcl .json5 .srt .vtt .bib .tex .graphql .vue .svelte "
    ".zig .ex .erl .clj .hs .ml .fs .vb .pas .f90 .asm .sql .log .po .svg .xml .html .jsonl .tsv .toml .ini .kt "
    ".swift .scala .lua .r .jl .m .ps1 .bat .sh .rb .php .go .rs .java .c .cpp .h .cs .css .scss .yml .yaml .cfg "
    ".conf .txt .rst .adoc .org"
)


@pytest.mark.parametrize("extension", INDEXED.split())
def test_extension_is_indexed(extension: str) -> None:
    assert isinstance(classify("x" + extension), FileType)


EXCLUSIONS = [
    *((name, "lock-file") for name in ("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock")),
    *((name, "lock-file") for name in ("Cargo.lock", "go.sum", "composer.lock", "Gemfile.lock")),
    *(
        (name, "secret")
        for name in (".env", ".env.local", ".ENV", "prod.env", "id_rsa", "id_rsa.pub", "id_ed25519_work")
    ),
    *((name, "secret") for name in ("server.pem", "tls.key", "a.p12", "a.pfx", "a.keystore", ".netrc", ".pgpass")),
    *((name, "secret") for name in ("credentials", ".npmrc", ".git-credentials", "terraform.tfstate")),
    *((name, "minified") for name in ("jquery.min.js", "site.min.css", "app.js.map", "app.css.map")),
    *((name, "unsupported") for name in ("a.pages", "a.mobi", "a.pst", "a.hwp", "a.parquet")),
    *((name, "binary") for name in ("a.png", "a.7z", "a.mp3", "a.pyc", "a.so", "a.woff2")),
    (".DS_Store", "machine-made"),
    ("~$contract.docx", "machine-made"),
    ("strange.qqq", "unknown-type"),
    ("strange", "unknown-type"),
    (".", "unknown-type"),
]


@pytest.mark.parametrize(("name", "reason"), EXCLUSIONS)
def test_exclusion(name: str, reason: str) -> None:
    found = classify(name)
    assert isinstance(found, Exclusion)
    assert found.reason == reason


def test_unsupported_formats_are_named() -> None:
    assert classify("report.pages") == Exclusion("unsupported", "Apple iWork document")
    assert classify("report.hwp") == Exclusion("unsupported", "Hangul document")


def test_every_entry_uses_the_closed_sets_of_kinds_and_reasons() -> None:
    entries = [*EXTENSIONS.items(), *KNOWN_NAMES.items()]
    assert {entry.kind for _, entry in entries if isinstance(entry, FileType)} == KINDS
    assert {entry.reason for _, entry in entries if isinstance(entry, Exclusion)} <= REASONS.keys()
    assert all(key == key.lower() for key, _ in entries)
    assert all(key.rfind(".") == 0 for key in EXTENSIONS)


def test_a_file_that_a_rule_brought_in_is_plain_text() -> None:
    assert file_type("strange.qqq") == FALLBACK_TYPE
    assert file_type("main.py") == FileType("python", "code")
