"""What the user wants indexed and left out."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Rules"]


class Rules(NamedTuple):
    """What the user wants indexed.

    `include` holds extensions (`.log2`) and patterns, `exclude` patterns, all in gitignore syntax and relative to the
    root. An exclude wins over everything. An include wins over ignore files and over what a name says; it opens a
    directory that is otherwise skipped only when its path leads there (`build/notes/*.md`, not `.md`), and brings in
    a secret only by its exact name. Those of the includes that are `untrusted` bring in no secret at all.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    follow_symlinks: bool = False
    use_ignore_files: bool = True
    max_file_size: int = 4 << 20
    max_document_size: int = 64 << 20
    untrusted: tuple[str, ...] = ()
