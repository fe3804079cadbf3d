"""`findling models`: which models there are, which is in use, and how to get and try others."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import InvalidValueError, ModelError, ModelNotFoundError, UsageError
from findling.faces.cli.commands.admin.config import change_setting
from findling.faces.cli.output.progress import format_size
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.command_table import GroupWithMoves
from findling.faces.cli.request.options import json_option
from findling.models.ports import Embedder, Reranker
from findling.service.settings.settings import Settings, load_settings

if TYPE_CHECKING:
    from findling.models.catalogue import ModelCard

__all__ = ["models"]

_SETTINGS = {"embedder": "semantic.model", "reranker": "rerank.model"}


@click.group(cls=GroupWithMoves, no_args_is_help=False, moved={"test": "findling models use NAME --try"})
def models() -> None:
    """List, pull, choose and try the models that read for meaning.

    Nothing is ever fetched unless `findling models pull` is called.
    """


@models.command("list")
@json_option
def _list(as_json: bool) -> int:
    """List the models that findling knows, and which are in use."""
    settings = load_settings()
    rows = _rows(settings)
    if as_json:
        from findling.faces.cli.output.json_output import dump, report_document

        in_use = {setting: settings[setting] for setting in _SETTINGS.values()}
        write(dump(report_document({"models": rows, "settings": in_use}), indent=2))
        return 0
    for row in rows:
        mark = "*" if row["in_use"] else " "
        size = format_size(row["size"]) if row["size"] else ""
        facts = f"{row['kind']:9} {row['dimensions']:5} {size:>9}  {row['licence']:11} {row['languages']:16}"
        write(f"{mark} {row['name']:22} {facts} {row['installed'] or '-'}\n")
    for setting in _SETTINGS.values():
        note(f"{setting} = {settings[setting]} ({settings.origin(setting)})")
    return 0


@models.command("pull")
@click.argument("name")
def _pull(name: str) -> int:
    """Fetch the model NAME, or ORG/NAME, from the hub."""
    from findling.models.catalogue import CATALOGUE, ModelCard, known_card
    from findling.models.pulling import pull
    from findling.service.index.model_choice import models_home

    card = known_card(name) or (ModelCard(name, name) if name.count("/") == 1 else None)
    if card is None:
        names = ", ".join(known.name for known in CATALOGUE)
        raise ModelNotFoundError(f"no model is called {name}", hint=f"one of {names}, or ORG/NAME of the hub")
    try:
        folder = pull(card, models_home(load_settings()), on_progress=_progress if sys.stderr.isatty() else None)
    finally:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)
    note(f"{card.name} is in {folder}", f"findling models use {card.name}")
    return 0


@models.command("use")
@click.argument("name", required=False)
@click.option("--try", "tries", is_flag=True, help="Only check its file, and say how fast and well it reads.")
@json_option
def _use(name: str | None, tries: bool, as_json: bool) -> int:
    """Choose what reads for meaning, or try it.

    NAME is a model, its folder, PROVIDER:MODEL, auto or none. With --try it may be left out: the model in use.

    Local models are opened once before, so that one that does not work is not chosen.
    """
    from findling.models.locating import locate
    from findling.models.remote.providers import is_remote_spec
    from findling.service.index.model_choice import choose_embedder, models_home

    if tries:
        return _test(name, as_json)
    if name is None or as_json:
        raise UsageError("there is no model to use", hint="findling models use NAME, or findling models use --try")
    settings = load_settings()
    key, value = _SETTINGS["embedder"], name
    if name not in ("auto", "none") and not is_remote_spec(name):
        files = locate(name, models_home(settings))
        key = _SETTINGS[files.card.kind]
        # A folder is named from wherever findling is called next.
        value = str(Path(name).expanduser().absolute()) if files.origin.startswith("path ") else name
    chosen = settings.override({key: value}, "models use")
    if is_remote_spec(name):
        choose_embedder(chosen)
    elif name not in ("auto", "none"):
        _try_out(chosen, key)
    change_setting(key, value, project=False)
    return 0


def _test(name: str | None, as_json: bool) -> int:
    from findling.models.locating import locate, verified_sha256
    from findling.service.index.model_choice import find_model, models_home

    settings = load_settings()
    home = models_home(settings)
    files = locate(name, home) if name else find_model(settings, "semantic.model")
    if files is None:
        note("no local model is in use", "findling models list")
        return 1
    sha256 = verified_sha256(files, home, read_again=True)
    key = _SETTINGS[files.card.kind]
    report = {
        "name": files.card.name,
        "kind": files.card.kind,
        "origin": files.origin,
        "sha256": sha256,
        "checked": bool(files.sha256),
        **_try_out(settings.override({key: name or settings[key]}, "models use --try"), key),
    }
    if as_json:
        from findling.faces.cli.output.json_output import dump, report_document

        write(dump(report_document(report), indent=2))
    else:
        write("".join(f"{key:20} {value}\n" for key, value in report.items()))
    return 0


_QUERY = "cat sleeping on carpet"
_RELATED = "The feline dozed off upon the rug."
_UNRELATED = "Quarterly revenue rose by four per cent."
_PASSAGES = 32


def _try_out(settings: Settings, key: str) -> dict[str, Any]:
    """What a model makes of two pairs, and its speed. Raises ModelError for one that cannot tell them apart."""
    from findling.service.index.model_choice import choose_embedder, choose_reranker

    embedder = choose_embedder(settings) if key == _SETTINGS["embedder"] else None
    reranker = choose_reranker(settings) if embedder is None else None
    model: Embedder | Reranker | None = embedder or reranker
    if model is None:
        raise ModelError(f"{key} = {settings[key]} names no model", hint="findling models list")
    dimensions = 0
    if embedder is not None:
        vectors = embedder.embed([_RELATED, _UNRELATED]) @ embedder.embed([_QUERY], "query")[0]
        related, unrelated, dimensions = float(vectors[0]), float(vectors[1]), embedder.dimensions
    elif reranker is not None:
        related, unrelated = reranker.rerank(_QUERY, [_RELATED, _UNRELATED])
    if not related > unrelated:
        raise ModelError(
            f"{model.name} finds an unrelated passage closer ({unrelated:.3f}) than a related one ({related:.3f})",
            hint="check pooling and prefixes in the model's findling-model.json",
        )
    passages = [f"{number}. {_RELATED} {_UNRELATED * 6}" for number in range(_PASSAGES)]
    began = time.perf_counter()
    if embedder is not None:
        embedder.embed(passages)
    elif reranker is not None:
        reranker.rerank(_QUERY, passages)
    speed = _PASSAGES / max(time.perf_counter() - began, 1e-9)
    facts = {"dimensions": dimensions} if dimensions else {}
    return {
        **facts,
        "passages_per_second": round(speed, 1),
        "related": round(related, 3),
        "unrelated": round(unrelated, 3),
    }


def _rows(settings: Settings) -> list[dict[str, Any]]:
    from findling.models.catalogue import CATALOGUE
    from findling.service.index.model_choice import models_home

    home = models_home(settings)
    in_use = _models_in_use(settings)
    return [
        {
            "name": card.name,
            "repository": card.repository,
            "kind": card.kind,
            "dimensions": card.dimensions,
            "size": card.size,
            "licence": card.licence,
            "languages": card.languages,
            "installed": _where(card, home),
            "in_use": card.name in in_use,
        }
        for card in CATALOGUE
    ]


def _where(card: ModelCard, home: Path) -> str:
    from findling.models.locating import locate

    try:
        return locate(card.name, home).origin
    except ModelNotFoundError:
        return ""
    except ModelError as error:
        return f"damaged: {error.message}"


def _models_in_use(settings: Settings) -> set[str]:
    from findling.models.remote.providers import is_remote_spec
    from findling.service.index.model_choice import find_model

    names = set()
    for setting in _SETTINGS.values():
        if is_remote_spec(settings[setting]):
            continue
        try:
            files = find_model(settings, setting)
        except (ModelError, InvalidValueError) as error:
            note(error.message, error.hint)
        else:
            names |= {files.card.name} if files is not None else set()
    return names


def _progress(file: str, here: int, size: int) -> None:
    share = f"{here / size:4.0%} of {format_size(size)}" if size else format_size(here)
    click.echo(f"\r\x1b[K{file}  {share}", err=True, nl=False)
