"""Entries and instructions of agents: planned as changes of single files, each of which is written whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import BusyError, FindlingError, InvalidValueError, ReadOnlyError, UsageError
from findling.service.agents.agent_table import AGENTS, Agent, AgentFiles, agents_folder, entry_of, is_own_entry, place
from findling.service.agents.jsonc_text import cut_json, put_json, read_json
from findling.service.agents.text_blocks import (
    EditError,
    cut_marked,
    cut_toml,
    put_marked,
    put_toml,
    read_marked,
    read_toml,
)
from findling.service.agents.yaml_text import cut_yaml, put_yaml, read_yaml
from findling.stores.filesystem import FileErrors, make_private, write_whole
from findling.stores.lock import WriteLock

_NAME = "findling"
_BOM = b"\xef\xbb\xbf"

_FORMATS = {
    "json": (read_json, put_json, cut_json),
    "toml": (read_toml, put_toml, cut_toml),
    "yaml": (read_yaml, put_yaml, cut_yaml),
}
"""For each format, the functions that read a value at a path, put one there, and cut it out."""


Drafts = MutableMapping[Path, bytes | None]
"""Files as earlier changes of the same run leave them, which a dry run does not write."""


class FileChange(NamedTuple):
    """A file before and after, None where it is not there; `outcome` is a word for what becomes of it."""

    agent: str
    kind: str
    path: Path
    before: bytes | None
    after: bytes | None
    outcome: str

    @property
    def is_one(self) -> bool:
        """Whether anything is to be written."""
        return self.before != self.after


class AgentState(NamedTuple):
    """The state of an agent in one scope: its files, and whether our entry, another one or none is there."""

    settings: Path
    entry: str
    instructions: Path | None
    instructed: bool


@contextmanager
def installing_alone(home: Path) -> Iterator[None]:
    """Keep other processes from writing the same files. Raises LockedError."""
    make_private(agents_folder(home))
    with WriteLock(agents_folder(home) / "lock"):
        yield


def snippet(name: str, command: Sequence[str]) -> str:
    """The settings under which an agent starts a command, as text that can be pasted."""
    agent = AGENTS[name]
    _, put, _ = _FORMATS[agent.format]
    return put(None, (*agent.keys, _NAME), entry_of(agent, command))


def plan_install(
    name: str, scope: str, root: Path, command: Sequence[str], guide: str, drafts: Drafts, *, force: bool = False
) -> list[FileChange]:
    """The changes that give an agent an entry, and the guide as instructions unless that is empty.

    Raises UsageError for another's entry, InvalidValueError for a file that cannot be edited safely.
    """
    agent, files = AGENTS[name], _files(name, scope)
    path = _within(root, scope, _settings(agent, scope, root))
    _check_unicode(command)
    edit = partial(_with_entry, agent, path, entry=entry_of(agent, command), force=force)
    changes = [_planned(name, "settings", path, drafts, edit)]
    if guide and files.instructions:
        notes = _within(root, scope, _real(place(files.instructions, root)))
        changes.append(_planned(name, "instructions", notes, drafts, partial(_with_guide, guide=guide)))
    return changes


def plan_uninstall(name: str, scope: str, root: Path, drafts: Drafts, others: Collection[str] = ()) -> list[FileChange]:
    """The changes that remove our entry and instructions; those stay that one of the `others` with an entry reads.

    Raises InvalidValueError for a file that cannot be edited safely.
    """
    agent, files = AGENTS[name], _files(name, scope)
    path = _within(root, scope, _settings(agent, scope, root))
    changes = [_planned(name, "settings", path, drafts, partial(_without_entry, agent))]
    if files.instructions:
        notes = _within(root, scope, _real(place(files.instructions, root)))
        needed = any(_reads(other, scope, root, notes, drafts) for other in others)

        def without_guide(text: str | None) -> tuple[str | None, str]:
            return (text, "still used") if needed else (None if text is None else cut_marked(text), "removed")

        changes.append(_planned(name, "instructions", notes, drafts, without_guide))
    return changes


def agent_state(name: str, scope: str, root: Path) -> AgentState | None:
    """The state of an agent in a scope, None for one that it does not know. A broken file counts as unclear."""
    agent = AGENTS[name]
    files = agent.files(scope)
    if files is None:
        return None
    path, entry, instructed = _settings(agent, scope, root), "unclear", False
    notes = _real(place(files.instructions, root)) if files.instructions else None
    with suppress(EditError, FindlingError):
        entry = _whose(_entry(agent, path, {}))
    with suppress(EditError, FindlingError):
        found = _text(_read(notes, {})) if notes else None
        instructed = found is not None and read_marked(found) is not None
    return AgentState(path, entry, notes, instructed)


def carry_out(change: FileChange, root: Path) -> None:
    """Write a file whole, with the mode it has, or delete it together with folders that are then empty.

    Raises BusyError for a file that another program has changed meanwhile, ReadOnlyError for a write-protected one.
    """
    path = change.path
    if _read(path, {}) != change.before:
        raise BusyError(f"{path} was changed by another program just now", hint="run the command again")
    with FileErrors(path):
        mode = stat.S_IMODE(path.stat().st_mode) if change.before is not None else None
        if mode is not None and not mode & 0o222:
            raise ReadOnlyError(f"{path} is write-protected", hint=f"chmod u+w {path}")
        if change.after is None:
            path.unlink()
            _tidy(path.parent, root)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # What lies in a project is for everybody who may read that; what lies elsewhere may hold secrets one day.
        write_whole(path, change.after, mode=mode or (0o644 if path.is_relative_to(root) else 0o600))


def _with_entry(agent: Agent, path: Path, text: str | None, entry: dict[str, Any], *, force: bool) -> tuple[str, str]:
    """The text with our entry, and what becomes of it. Raises UsageError, EditError."""
    read, put, cut = _FORMATS[agent.format]
    keys = (*agent.keys, _NAME)
    there = None if text is None else read(text, keys)
    if text is not None and there is not None:
        given = {key for key, each in agent.shape.items() if isinstance(each, str) and each.startswith("{")}
        if is_own_entry(there) and all(there.get(key) == entry[key] for key in given):
            return text, "unchanged"
        if not force and not is_own_entry(there):
            raise UsageError(
                f"{path} has an entry {_NAME} that starts something else", hint="--force replaces it, or rename it"
            )
        if not force and {key: each for key, each in there.items() if key not in given} != {
            key: each for key, each in entry.items() if key not in given
        }:
            raise UsageError(
                f"the entry {_NAME} in {path} was changed by hand, and starts findling elsewhere",
                hint="--force replaces it",
            )
    base = text if text is None or there is None else cut(text, keys)
    after = put(base, keys, entry)
    if read(after, keys) != entry or cut(after, keys) != base:
        raise EditError(1, "an entry cannot be added without changing anything else")
    return after, "added" if there is None else "updated"


def _without_entry(agent: Agent, text: str | None) -> tuple[str | None, str]:
    """The text without our entry, and what becomes of it. Raises EditError."""
    read, _, cut = _FORMATS[agent.format]
    keys = (*agent.keys, _NAME)
    entry = None if text is None else read(text, keys)
    if text is None or entry is None:
        return text, "absent"
    if not is_own_entry(entry):
        return text, "not ours"
    after = cut(text, keys)
    if after is not None and read(after, keys) is not None:
        raise EditError(1, f"{_NAME} would still stand there")
    return after, "removed"


def _with_guide(text: str | None, guide: str) -> tuple[str, str]:
    """The text with the guide, and what becomes of it. Raises EditError."""
    after = put_marked(text, guide)
    if cut_marked(after) != (None if text is None else cut_marked(text)):
        raise EditError(1, "the instructions cannot be added without changing other lines")
    return after, "added" if text is None or read_marked(text) is None else "updated"


def _check_unicode(command: Sequence[str]) -> None:
    """Raises InvalidValueError for a path that no settings file can hold."""
    for word in command:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(f"{word!r} is not valid Unicode", hint="rename the folder") from error


def _entry(agent: Agent, path: Path, drafts: Drafts) -> Any:
    text = _text(_read(path, drafts))
    read, _, _ = _FORMATS[agent.format]
    return None if text is None else read(text, (*agent.keys, _NAME))


def _whose(entry: object) -> str:
    return "none" if entry is None else "ours" if is_own_entry(entry) else "another"


def _reads(name: str, scope: str, root: Path, notes: Path, drafts: Drafts) -> bool:
    """Whether an agent with an entry of ours reads a file of instructions."""
    files = AGENTS[name].files(scope)
    if files is None or not files.instructions or _real(place(files.instructions, root)) != notes:
        return False
    try:
        return is_own_entry(_entry(AGENTS[name], _settings(AGENTS[name], scope, root), drafts))
    except (EditError, FindlingError):
        return True  # what cannot be read may be an entry


def _files(name: str, scope: str) -> AgentFiles:
    files = AGENTS[name].files(scope)
    if files is None:
        raise UsageError(f"{AGENTS[name].title} has no settings in a project", hint="--scope user")
    return files


def _settings(agent: Agent, scope: str, root: Path) -> Path:
    """The file with the settings of an agent: the first that exists, or the first one."""
    files = agent.files(scope)
    assert files is not None, "the callers have looked"
    paths = [_real(place(written, root)) for written in files.settings]
    return next((path for path in paths if path.exists()), paths[0])


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _within(root: Path, scope: str, path: Path) -> Path:
    """The path, if it is to be written. Raises InvalidValueError where a link of a project leads out of it."""
    if scope == "project" and not path.is_relative_to(_real(root)):
        raise InvalidValueError(
            f"a link in {root} leads to {path}, outside of the project; nothing was written",
            hint="remove the link, or use --scope user",
        )
    return path


def _read(path: Path, drafts: Drafts) -> bytes | None:
    if path in drafts:
        return drafts[path]
    if not path.exists():
        return None
    if not path.is_file():
        raise InvalidValueError(f"{path} is no file", hint="move it away")
    with FileErrors(path):
        return path.read_bytes()


def _text(data: bytes | None) -> str | None:
    """The text of a file without a byte order mark. Raises EditError for what is no UTF-8."""
    if data is None:
        return None
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise EditError(data.count(b"\n", 0, error.start) + 1, "this is no UTF-8") from error


def _planned(
    name: str, kind: str, path: Path, drafts: Drafts, edit: Callable[[str | None], tuple[str | None, str]]
) -> FileChange:
    """The change of a file by an edit of its text. Raises InvalidValueError that names file, line and next step."""
    before = _read(path, drafts)
    try:
        after, outcome = edit(_text(before))
    except EditError as problem:
        raise InvalidValueError(
            f"{path}, line {problem.line}: {problem.reason}; it stays as it is",
            hint=f"correct it, or change it by hand: findling mcp --print {name}",
        ) from problem
    lead = _BOM if before is not None and before.startswith(_BOM) else b""
    data = None if after is None else lead + after.encode()
    drafts[path] = data
    is_same = data == before and outcome in ("added", "updated", "removed")
    same = "absent" if outcome == "removed" else "unchanged"
    return FileChange(name, kind, path, before, data, same if is_same else outcome)


def _tidy(folder: Path, root: Path) -> None:
    """Delete empty folders upwards, but neither a home nor the folder of the project."""
    while folder not in (root, Path.home(), folder.parent) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
