"""Roles of files that their paths tell: tests, examples, generated code and others that few questions are about."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple


class PathRole(NamedTuple):
    """A role, the factor of its files, and the words of a question that ask for them; each word also begins others."""

    name: str
    factor: float
    asked_by: tuple[str, ...]


ROLES = {
    role.name: role
    for role in (
        PathRole("test", 0.4, ("test", "spec", "mock", "fixture", "benchmark", "assert")),
        PathRole("example", 0.4, ("example", "sample", "demo", "tutorial")),
        PathRole("vendored", 0.4, ("vendor", "third")),
        PathRole("generated", 0.4, ("generate", "protobuf")),
        PathRole("translation", 0.4, ("locale", "translation", "i18n", "language")),
        PathRole("compatibility", 0.5, ("compat", "legacy", "deprecate", "backport", "shim")),
        PathRole("type stub", 0.7, ("stub", "typing", "pyi")),
        PathRole("documentation", 0.6, ("doc", "readme", "guide", "changelog", "release", "markdown")),
    )
}
"""Factors are round numbers from one look at nine repositories, not fitted: 0.3 to 0.6 do as well as 0.4."""


def role_of(path: str, *, is_prose: bool = False) -> str:
    """The role of a file by its path, empty for the usual one; `is_prose` says that it is a document beside code."""
    folder, _, name = path.rpartition("/")
    role = _role_of_folder(folder)
    if role == "test" or _TEST_NAME.fullmatch(name):
        return "test"
    if role:
        return role
    name = name.lower()
    if name.endswith(_GENERATED):
        return "generated"
    stem = name.partition(".")[0]
    if stem in _COMPATIBILITY or stem.endswith(("_compat", "-compat", "_legacy")):
        return "compatibility"
    if name.endswith((".d.ts", ".pyi")):
        return "type stub"
    if stem in ("example", "examples"):
        return "example"
    return "documentation" if is_prose else ""


def turn_of(path: str) -> int:
    """The turn in which a file is read by its path: 0, 1 for tests and change logs, 2 for what few people write."""
    folder, _, name = path.lower().rpartition("/")
    is_log = _CHANGE_LOG.fullmatch(name) or not _CHANGE_LOGS.isdisjoint(folder.split("/"))
    return max(int(bool(is_log)), _TURNS.get(role_of(path), 0))


@lru_cache(maxsize=1024)
def _role_of_folder(path: str) -> str:
    folders = path.lower().split("/")
    if not _TEST_FOLDERS.isdisjoint(folders) or _TEST_FOLDER.search(f"{path}/"):
        return "test"
    return next((role for role, known in _FOLDERS.items() if not known.isdisjoint(folders)), "")


def asked_roles(words: Collection[str]) -> frozenset[str]:
    """The roles that a question, given its words in lower case, asks for."""
    asking = [word for word in words if word.startswith(_ASKED_BY)]  # as few questions do
    return frozenset(role.name for role in ROLES.values() if any(word.startswith(role.asked_by) for word in asking))


_ASKED_BY = tuple(word for role in ROLES.values() for word in role.asked_by)
_TEST_FOLDERS = frozenset(
    "test tests testing __tests__ spec specs testdata test_data fixtures mock mocks __mocks__ benchmark benchmarks"
    " bench benches testutil testutils".split()
)
_TEST_FOLDER = re.compile(r"(?:[a-z0-9]Tests?|[._-][Tt]ests?)/")  # src/commonTest/, Shop.Tests/
_TEST_NAME = re.compile(r"(?:[Tt]ests?|test_[^/]*|conftest|[^/]*(?:[._-](?:test|spec)|[a-z0-9]Tests?))\.[^/.]+")
_TURNS = {"test": 1, "example": 1, "type stub": 1, "vendored": 2, "generated": 2, "translation": 2}
_CHANGE_LOG = re.compile(
    r"(?:change-?log|changes|history|news|release[-_]?notes|releases|what'?s[-_]?new)[-_.v0-9x]*(?:\.(?:md|rst|txt|adoc))?"
)
_CHANGE_LOGS = frozenset("changelog changelogs changelog.d newsfragments releasenotes release-notes whatsnew".split())
_COMPATIBILITY = frozenset("compat _compat compatibility legacy deprecated backports".split())
_FOLDERS = {
    "example": frozenset("example examples sample samples demo demos docs_src tutorial tutorials".split()),
    "vendored": frozenset(
        "vendor vendored _vendor third_party third-party thirdparty node_modules site-packages"
        " bower_components typeshed".split()
    ),
    "generated": frozenset("generated __generated__ dist".split()),
    "translation": frozenset("locale locales i18n l10n lc_messages translations".split()),
    "compatibility": _COMPATIBILITY,
}
_GENERATED = tuple(
    "_pb2.py _pb2.pyi _pb2_grpc.py .pb.go .pb.cc .pb.h .g.dart .designer.cs _generated.go .gen.go".split()
)
