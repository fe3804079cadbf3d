"""Discovery of files: one predicate for the walk and for a single path, and a reason for each skipped path.

In this order, the user's rules, an ignore file, its name, type or size may speak against a path. A directory's
name alone hides nothing but the few machine-made trees listed in `file_types`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.domain.ports import SkippedPath
from findling.sources.files.file_text import UnreadableError, changed_ns, inode_of, read_bytes
from findling.sources.files.file_types import (
    KNOWN_NAMES,
    MACHINE_MADE,
    NEVER_ENTERED,
    SECRET_FOLDERS,
    USEFUL_HIDDEN_DIRECTORIES,
    Exclusion,
    classify,
    file_type,
)
from findling.sources.files.ignore_rules import IGNORE_FILES, Layer, PatternSet, ignoring_rule, layers_above, layers_of
from findling.sources.files.rule_patterns import Rules, compile_rules

REASONS = {
    "binary": "not text: an image, sound, archive or program by its name, or by its content",
    "crashed": "the parser of its format broke down on it",
    "damaged": "broken, or not what its name says",
    "empty": "a file without content",
    "encrypted": "cannot be read without a password",
    "excluded": "an exclude rule of the user matches",
    "hidden": "the name begins with a dot",
    "ignored": "an ignore file (.gitignore, .ignore, .findlingignore) says so",
    "killed": "the process that read it was ended from outside; the next run tries again",
    "lock-file": "written by a package manager",
    "machine-made": "a directory or file that programs write for themselves",
    "minified": "generated from other sources",
    "missing-library": "the library that reads its format is not installed",
    "no-text": "a document without text, such as scanned pages",
    "out-of-memory": "took more memory than a document may",
    "quota": "more than the workspace may hold",
    "read-in-part": "indexed, but not all of it: a limit or damage stood in the way",
    "secret": "may hold a key or a password",
    "special": "a pipe, socket or device",
    "symlink": "a symbolic link that is not followed",
    "too-large": "larger than the limit",
    "too-slow": "took more time than a document may",
    "undecodable": "the name or the content breaks its own encoding",
    "unknown-type": "no known text format has this name; an include rule adds it",
    "unreadable": "the system refused to open or list it",
    "unsupported": "a document format, or a variant of one, that cannot be read",
}
"""Every reason a path can be skipped for, with its explanation."""

_DEFAULT_RULES = Rules()
_CACHE_TAG, _ENVIRONMENT_TAG = "CACHEDIR.TAG", "pyvenv.cfg"
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/
TELLING_NAMES = (*IGNORE_FILES, _CACHE_TAG, _ENVIRONMENT_TAG)
"""The files that bear on everything in their folder."""


class FoundFile(NamedTuple):
    """A file to index; `path` is relative to the root, with forward slashes."""

    path: str
    size: int
    changed_ns: int
    inode: int = 0


def scan(
    root: str,
    rules: Rules = _DEFAULT_RULES,
    under: str = "",
    folders: dict[str, int] | None = None,
    *,
    by_level: bool = False,
) -> Iterator[FoundFile | SkippedPath]:
    """Everything below a root in the order of paths; a skipped directory is one path that ends in a slash.

    `by_level` walks the upper folders first: a caller who stops early has seen the top of every branch.

    The root may be a single file, which then counts as included by its exact name. `under` limits the walk to one
    directory or file below the root. `folders` receives the walked directories and their times of change in
    nanoseconds, taken before each was listed. Raises `PathNotFoundError` for an absent root, `InvalidValueError` for a
    rule that matches nothing or an `under` outside of the root.
    """
    scope, top, parts = _start(root, rules, under)
    scope = scope._replace(folders=folders)
    outcome = _descend(scope, top, parts)
    return _walk(scope, outcome, by_level) if isinstance(outcome, _Directory) else iter([outcome])


def verdict(root: str, path: str, rules: Rules = _DEFAULT_RULES) -> FoundFile | SkippedPath | None:
    """Verdict of `scan` on one path: found, skipped (or in a skipped directory), `None` for a walked directory.

    Raises as `scan` does.
    """
    outcome = _descend(*_start(root, rules, path))
    return None if isinstance(outcome, _Directory) else outcome


def admits(root: str, path: str, rules: Rules = _DEFAULT_RULES) -> bool:
    """Whether names admit a file of this path, which need not exist in its folder. Raises as `scan` does."""
    scope, top, parts = _start(root, rules, path)
    parent = _descend(scope, top, parts[:-1])
    if not parts or not isinstance(parent, _Directory):
        return False
    name = parts[-1]
    rule = scope.exclude.match(parent.path + name, name, False) if scope.exclude else None
    is_excluded = rule is not None and not rule.negated
    return not is_excluded and _objection_to_file(scope, parent, parent.path + name, name) is None


class _Scope(NamedTuple):
    """The rules in compiled form, and what a walk needs to know to follow symbolic links."""

    rules: Rules
    include: PatternSet | None
    exclude: PatternSet | None
    exact_includes: frozenset[str]
    include_leads: tuple[str, ...]
    real_root: str
    visited: set[tuple[int, int]]
    folders: dict[str, int] | None = None


class _Directory(NamedTuple):
    """A directory to walk; `path` and `repository_path` end in a slash or are empty.

    `because` is set where nothing but explicit includes counts: why everything else is skipped. A `wanted` directory
    is the root or named by an include; what it holds cannot mark it as machine-made.
    """

    path: str
    absolute: str
    repository_path: str
    layers: tuple[Layer, ...]
    because: Exclusion | None = None
    wanted: bool = False


class _Entry:
    """One path with the part of `os.DirEntry` that the predicate uses. Raises `OSError` when it is not there."""

    def __init__(self, directory: str, name: str) -> None:
        self.name = name
        self.path = f"{directory}/{name}"
        self._status = os.lstat(self.path)

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._status.st_mode)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self.stat(follow_symlinks=follow_symlinks).st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self.stat(follow_symlinks=follow_symlinks).st_mode)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path) if follow_symlinks else self._status


def _start(root: str, rules: Rules, under: str) -> tuple[_Scope, _Directory, tuple[str, ...]]:
    """The compiled rules, the directory to start from, and the names that lead from there to what is asked for."""
    absolute = os.path.abspath(root)
    parts = tuple(part for part in under.split("/") if part not in ("", "."))
    if under.startswith("/") or ".." in parts:
        raise InvalidValueError(f"{under} does not lie below {root}", hint="give a path relative to the root")
    if not os.path.isdir(absolute):
        if not os.path.lexists(absolute):
            raise PathNotFoundError(f"{root} does not exist", hint="check the spelling, or the directory you are in")
        absolute, name = os.path.split(absolute)
        if parts not in ((), (name,)):
            hint = "give its directory as the root"
            raise InvalidValueError(f"{root} is a file, so nothing lies below it", hint=hint)
        parts = (name,)
        include = (*rules.include, "/" + re.sub(r"([\\*?\[ ])", r"\\\1", name))
        rules = rules._replace(include=include, untrusted=(), follow_symlinks=True, use_ignore_files=False)
    repository_path, layers = layers_above(absolute) if rules.use_ignore_files else ("", ())
    real_root = os.path.realpath(absolute) if rules.follow_symlinks else ""
    scope = _Scope(rules, *compile_rules(rules), real_root, set())
    return scope, _Directory("", absolute, repository_path, layers, wanted=True), parts


def _descend(scope: _Scope, top: _Directory, parts: tuple[str, ...]) -> _Directory | FoundFile | SkippedPath:
    """Judge every directory on the way down, then what stands at the end of it."""
    names = list(parts)
    outcome: _Directory | FoundFile | SkippedPath = top
    while isinstance(outcome, _Directory):
        directory = outcome
        try:
            telling = [name for name in TELLING_NAMES if os.path.lexists(f"{directory.absolute}/{name}")]
            outcome = _settle(scope, directory, telling)
            if not names or not isinstance(outcome, _Directory):
                return outcome
            outcome = _judge(scope, outcome, _Entry(directory.absolute, names.pop(0)))
        except OSError as error:
            return _unreadable("/".join(parts), error)
    is_on_the_way = bool(names) and isinstance(outcome, FoundFile)
    return _unreadable("/".join(parts), OSError(errno.ENOTDIR, "")) if is_on_the_way else outcome


def _walk(scope: _Scope, start: _Directory, by_level: bool) -> Iterator[FoundFile | SkippedPath]:
    try:
        stack = deque([(start, iter(_list(scope, start)[0]))])
    except OSError as error:
        yield _unreadable(start.path or "./", error)
        return
    while stack:
        directory, entries = stack[0 if by_level else -1]
        for entry in entries:
            outcome = _judge(scope, directory, entry)
            if isinstance(outcome, _Directory):
                try:
                    listing, telling = _list(scope, outcome)
                    outcome = _settle(scope, outcome, telling)
                except OSError as error:
                    outcome = _unreadable(outcome.path, error)
                if isinstance(outcome, _Directory):
                    stack.append((outcome, iter(listing)))
                    if by_level:
                        continue
                    break
            yield outcome
        else:
            _ = stack.popleft() if by_level else stack.pop()


def _list(scope: _Scope, directory: _Directory) -> tuple[list[os.DirEntry[str]], list[str]]:
    """The entries of a directory in the order of their paths, and the names that bear on all of them."""
    follow = scope.rules.follow_symlinks
    if scope.folders is not None:
        scope.folders[directory.path] = changed_ns(os.stat(directory.absolute))
    with os.scandir(directory.absolute) as found:
        entries = {entry.name + "/" if _leads_on(entry, follow) else entry.name: entry for entry in found}
    return [entries[key] for key in sorted(entries)], [name for name in TELLING_NAMES if name in entries]


def _leads_on(entry: os.DirEntry[str], follow_symlinks: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow_symlinks)
    except OSError:  # a knot of symbolic links; `_judge` reports it
        return False


def _settle(scope: _Scope, directory: _Directory, telling: list[str]) -> _Directory | SkippedPath:
    """Apply the rules that a directory holds: tags of machine-made trees, and ignore files. Raises `OSError`."""
    if scope.rules.follow_symlinks:
        status = os.stat(directory.absolute)
        if (status.st_dev, status.st_ino) in scope.visited:
            return SkippedPath(directory.path, "symlink", "the same directory was walked under another path")
        scope.visited.add((status.st_dev, status.st_ino))
    if not telling:
        return directory
    if not directory.wanted and (tag := _machine_tag(directory.absolute, telling)):
        if not _is_led_into(scope, directory.path):
            return SkippedPath(directory.path, "machine-made", tag)
        directory = directory._replace(because=Exclusion("machine-made", tag))
    if scope.rules.use_ignore_files:
        own = layers_of(directory.absolute, directory.repository_path, telling, directory.path)
        directory = directory._replace(layers=own + directory.layers)
    return directory


def _machine_tag(absolute: str, telling: Iterable[str]) -> str:
    if _ENVIRONMENT_TAG in telling:
        return _ENVIRONMENT_TAG
    if _CACHE_TAG in telling:
        try:
            data, _ = read_bytes(f"{absolute}/{_CACHE_TAG}", 1 << 16)
        except UnreadableError:
            return ""  # without its signature the name means nothing
        return _CACHE_TAG if data.startswith(_CACHE_SIGNATURE) else ""
    return ""


def _judge(scope: _Scope, parent: _Directory, entry: os.DirEntry[str] | _Entry) -> _Directory | FoundFile | SkippedPath:
    """The one predicate: a directory to walk, a file to index, or the reason why not."""
    name = entry.name
    path = parent.path + name
    follow = scope.rules.follow_symlinks
    try:
        if not name.isascii() and (shown := os.fsencode(path).decode(errors="replace")) != path:
            return SkippedPath(shown, "undecodable", "the name is not UTF-8")
        is_directory = entry.is_dir(follow_symlinks=follow)
        if scope.exclude and (rule := scope.exclude.match(path, name, is_directory)) and not rule.negated:
            return SkippedPath(path + "/" if is_directory else path, "excluded", rule.text)
        if entry.is_symlink():
            if not follow:
                return SkippedPath(path, "symlink")
            entry.stat()
            if is_directory and f"{os.path.realpath(entry.path)}/".startswith(scope.real_root.rstrip("/") + "/"):
                return SkippedPath(path + "/", "symlink", "leads to a directory inside the root")
        if is_directory:
            return _judge_directory(scope, parent, path, entry)
        if not entry.is_file(follow_symlinks=follow):
            entry.stat(follow_symlinks=follow)  # tells a file that has just vanished from a pipe
            return SkippedPath(path, "special")
        if because := _objection_to_file(scope, parent, path, name):
            return SkippedPath(path, because.reason, because.detail)
        status = entry.stat(follow_symlinks=follow)
    except OSError as error:
        return _unreadable(path, error)
    size = status.st_size
    limit = scope.rules.max_file_size
    if size > limit and file_type(name).kind == "document":
        limit = scope.rules.max_document_size
    if size > limit:
        return SkippedPath(path, "too-large", f"{size} bytes, the limit is {limit}")
    return FoundFile(path, size, changed_ns(status), inode_of(status)) if size else SkippedPath(path, "empty")


def _judge_directory(
    scope: _Scope, parent: _Directory, path: str, entry: os.DirEntry[str] | _Entry
) -> _Directory | SkippedPath:
    slashed = path + "/"
    if entry.name in NEVER_ENTERED:
        return SkippedPath(slashed, "machine-made", entry.name)
    if entry.name in SECRET_FOLDERS and not _is_named(scope, path, entry.name):
        return SkippedPath(slashed, "secret", "may hold keys and passwords")
    wanted = _is_included(scope, path, entry.name, True)
    because = None if wanted else parent.because or _objection_to_directory(scope, parent, entry)
    if because and not _is_led_into(scope, slashed):
        return SkippedPath(slashed, because.reason, because.detail)
    return _Directory(slashed, entry.path, f"{parent.repository_path}{entry.name}/", parent.layers, because, wanted)


def _objection_to_directory(scope: _Scope, parent: _Directory, entry: os.DirEntry[str] | _Entry) -> Exclusion | None:
    name = entry.name
    if name in MACHINE_MADE or name.endswith(".egg-info"):
        return Exclusion("machine-made", name)
    if parent.layers and (rule := ignoring_rule(parent.layers, parent.repository_path + name, name, True)):
        return Exclusion("ignored", rule)
    if name[0] != "." or scope.rules.hidden or name in USEFUL_HIDDEN_DIRECTORIES:
        return None
    if os.path.lexists(f"{entry.path}/{_ENVIRONMENT_TAG}"):
        return Exclusion("machine-made", _ENVIRONMENT_TAG)
    return Exclusion("hidden")


def _objection_to_file(scope: _Scope, parent: _Directory, path: str, name: str) -> Exclusion | None:
    type_or_exclusion = classify(name)
    exclusion = type_or_exclusion if isinstance(type_or_exclusion, Exclusion) else None
    is_secret = exclusion is not None and exclusion.reason == "secret"
    if scope.include and _is_included(scope, path, name, False):
        if is_secret:
            return None if _is_named(scope, path, name) else exclusion
        return exclusion if exclusion and exclusion.reason == "unsupported" else None
    if parent.because:
        return parent.because
    if parent.layers and (rule := ignoring_rule(parent.layers, parent.repository_path + name, name, False)):
        return Exclusion("ignored", rule)
    if name[0] == "." and not (is_secret or scope.rules.hidden or name.lower() in KNOWN_NAMES):
        return Exclusion("hidden")
    return exclusion


def _is_included(scope: _Scope, path: str, name: str, is_directory: bool) -> bool:
    rule = scope.include.match(path, name, is_directory) if scope.include else None
    return rule is not None and not rule.negated


def _is_named(scope: _Scope, path: str, name: str) -> bool:
    """Whether the user has included a path, or something in it, by its exact name."""
    return name in scope.exact_includes or any(
        one == path or one.startswith(path + "/") for one in scope.exact_includes
    )


def _is_led_into(scope: _Scope, slashed: str) -> bool:
    return any(lead.startswith(slashed) or slashed.startswith(lead) for lead in scope.include_leads)


def _unreadable(path: str, error: OSError) -> SkippedPath:
    return SkippedPath(path, "unreadable", os.strerror(error.errno) if error.errno else str(error))
