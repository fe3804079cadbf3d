"""Clues that the path of a file gives: words of its name and folders, its role, and the question they answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from findling.ranking.path_roles import asked_roles, role_of
from findling.ranking.resource_evidence import ResourceQuestion
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.query.asked_names import asked_names, name_words

_SAYS_NOTHING = frozenset("class code file function how implementation method used using work works".split())
"""Words of questions about code that no file is named for."""

_PACKAGES = frozenset({"__init__", "index", "init", "mod", "package-info"})
"""Files that are named after their folder."""


def resource_question(text: str) -> ResourceQuestion:
    """The part of a question that evidence about resources is compared with."""
    asked, words = asked_names(text), name_words(text)
    telling = [word for word in words if word not in SENTENCE_WORDS and word not in _SAYS_NOTHING and len(word) > 1]
    return ResourceQuestion(telling, asked.names, asked.is_all, asked_roles(words))


@lru_cache(maxsize=4096)
def told_by_path(path: str, is_prose: bool) -> tuple[Sequence[str], Sequence[str], str]:
    """The words of a file's name and of its folders, and its role."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0] or name
    if stem in _PACKAGES and folder:
        folder, _, stem = folder.rpartition("/")
    return name_words(stem), _folder_words(folder), role_of(path, is_prose=is_prose) if path else ""


_folder_words = lru_cache(maxsize=1024)(name_words)
