"""The workspace at the place that `store.url` or `--store` names, and its folder on this host.

The folder holds the URL, and what this host derives from the truth. It is named after the workspace at that place.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.backends import check_escapes
from findling.domain.errors import InvalidValueError, NotFoundError
from findling.service.workspace.backends import folder_of_url, is_same_place, is_url, open_backend, shown_url
from findling.service.workspace.workspace import (
    PLACE_FILE,
    check_name,
    folder_of,
    holds_workspace,
    home_folder,
    place_of,
)

if TYPE_CHECKING:
    from findling.domain.reports import Check
    from findling.service.settings.settings import Settings

_LAYERS = ("default", "user file ", "project file ", "env ", "flag ")
"""Origins of settings; a later one is nearer to the command."""


def at_store(settings: Settings, *, creates: bool = False) -> Settings:
    """The settings with the name of the workspace at `store.url`, unless a nearer one names another workspace.

    The URL goes: it may hold a password. Raises as `connect_workspace` does.
    """
    url, origin = settings["store.url"], settings.origin("store.url")
    if not url or (settings["workspace.name"] and _nearness(settings.origin("workspace.name")) > _nearness(origin)):
        return settings
    name = connect_workspace(url, home=home_folder(settings["store.home"]), creates=creates)
    return settings.override({"workspace.name": name, "store.url": ""}, origin)


def connect_workspace(url: str, *, home: Path, creates: bool = False) -> str:
    """The name of the workspace on this host whose truth is at a URL; its folder is made if need be.

    At the place itself nothing is written yet. Raises InvalidValueError for a URL that names no workspace,
    NotFoundError when there is none and the caller does not create it, MissingExtraError.
    """
    called, known = name_at(url), _connected(url, home)
    is_noted = known is not None and place_of(known) == url
    # A URL is noted once it has led to a server: a mistyped password replaces no other.
    if not (is_noted and creates) and not open_backend(url, known or home / called).exists() and not creates:
        hint = "findling --store URL index PATH, or findling workspaces create NAME --place URL"
        raise NotFoundError(f"there is no workspace {called} at {shown_url(url)}", hint=hint)
    return known.name if known is not None and is_noted else _note_folder(called, url, home).name


def gone_workspace(folder: Path) -> NotFoundError:
    """The error for a workspace whose place holds it no longer: somebody has moved it or deleted it for all."""
    message = f"there is no workspace any more at {shown_url(place_of(folder))}"
    return NotFoundError(message, hint=f"findling workspaces drop {folder.name}, which forgets it on this host")


def examine_store(settings: Settings) -> list[Check]:
    """The checks of the place at `store.url` or of the named workspace, also of one that lets nobody in."""
    home, name = home_folder(settings["store.home"]), settings["workspace.name"] or settings["context.workspace"]
    url = settings["store.url"] or (place_of(folder_of(name, home)) if name else "")
    return list(open_backend(url, home / name_at(url)).examine()) if url else []


def name_at(url: str) -> str:
    """The name of the workspace that a URL names. Raises InvalidValueError."""
    from urllib.parse import unquote, urlsplit

    try:
        is_place = is_url(url) and folder_of_url(url) is None
        fragment = unquote(urlsplit(url).fragment) if is_place else ""
    except ValueError:  # no URL at all, such as one with half an address of IPv6
        is_place, fragment = False, ""
    if not is_place:
        message = f"{shown_url(url)} is no place of a store"
        raise InvalidValueError(message, hint="postgresql://USER@HOST/DATABASE#WORKSPACE")
    check_escapes(url)
    if not fragment.strip():
        shown = shown_url(url).partition("#")[0]
        raise InvalidValueError(f"{shown} names no workspace", hint=f"{shown}#NAME")
    return check_name(fragment)


def _connected(url: str, home: Path) -> Path | None:
    """The folder of the workspace whose truth is at a URL, if this host has one."""
    found = (path.parent for path in sorted(home.glob(f"*/{PLACE_FILE}")) if not path.parent.name.startswith("."))
    return next((folder for folder in found if is_same_place(place_of(folder), url)), None)


def _note_folder(called: str, url: str, home: Path) -> Path:
    """The folder of the workspace at a URL, which it holds from now on."""
    from findling.service.workspace import workspace_folders as folders
    from findling.service.workspace.manifest import write_manifest
    from findling.stores.filesystem import write_whole

    with folders.changing(home):
        if (known := _connected(url, home)) is not None:  # also: made by another process meanwhile
            write_whole(known / PLACE_FILE, os.fsencode(url))
            return known
        # The name may be that of another workspace of this host.
        names = (called, *(f"{called}-{number}" for number in range(2, 1000)))
        name = next(name for name in names if not holds_workspace(home / name))
        folders.make_room(home / name)
        with folders.drafted(home / name, home) as draft:
            write_whole(draft / PLACE_FILE, os.fsencode(url))
            write_manifest(draft, name=name)
        return home / name


def _nearness(origin: str) -> int:
    return next((rank for rank, layer in enumerate(_LAYERS) if origin.startswith(layer)), len(_LAYERS))
