"""`findling status` and `findling ls`: what the index holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from findling.domain.reports import told_changes
from findling.domain.values import counted
from findling.faces.cli.commands.index.index import count_reasons
from findling.faces.cli.output.json_output import skipped_entries, write_json, write_list
from findling.faces.cli.output.progress import format_pace, format_size
from findling.faces.cli.output.terminal import show_controls, write, write_names
from findling.faces.cli.request.options import as_option, json_option, path_argument, resolve
from findling.faces.cli.request.place import GivenPlace, at_workspace

if TYPE_CHECKING:
    from findling.domain.reports import Status
    from findling.service.server.watch_list import WatchAccount
    from findling.service.settings.settings import Settings

_TOLD: Mapping[str, type | tuple[type, ...]] = {
    "pid": int,
    "address": str,
    "started_at": (int, float),
    "ready": bool,
    "total_queries": int,
    "avg_latency_ms": (int, float),
    "p99_latency_ms": (int, float),
}
"""Facts of a daemon that are shown."""


@click.command()
@path_argument
@click.option(
    "--list",
    "which",
    type=click.Choice(("skipped", "failed", "watched")),
    help="Instead: what was left out, or could not be read, and why; or all watched folders with their watchers.",
)
@json_option
@at_workspace
def status(place: GivenPlace, which: str | None, as_json: bool) -> int:
    """Say what the index of PATH holds and how fresh it is."""
    if which == "watched":
        return _list_watched(as_json)
    with place.opened() as engine:
        state = engine.status()
        left_out = {"skipped": engine.skipped, "failed": engine.failed}[which]() if which else []
        url, beside = engine.writer.files.backend.url, [show_controls(one.label) for one in engine.above()]
    daemon = None if which and not as_json else _ask_daemon(place.settings)
    if as_json:
        listed = {f"{which}_paths": skipped_entries(left_out)} if which else {}
        write_json({**vars(state), **listed, "daemon": daemon})
    elif which:
        write_names("\t".join(filter(None, (entry.path, entry.reason, entry.detail))) for entry in left_out)
    else:
        told = f"asked too:   items of {' and '.join(beside)}\n" if beside else ""
        write(_describe(state, "" if url.startswith("file:") else f"{url}, here ", daemon) + told)
    return 0


@click.command()
@path_argument
@json_option
@as_option
@at_workspace
def ls(place: GivenPlace, as_json: bool, as_: tuple[str, ...]) -> int:
    """List the resources that are indexed at PATH and below it."""
    with place.opened() as engine:
        resources = list(engine.ls(principals=as_ or None))
        root = engine.root
    if as_json:
        write_json({"root": root, "resources": resources})
    else:
        write_names(each.path or each.rid for each in resources)
    return 0 if resources else 1


def _describe_meaning(meaning: Mapping[str, Any]) -> str:
    parts = ["instant vectors of all chunks"] if meaning["instant"] else []
    if meaning["model"]:
        percent = meaning["read"] * 100 // meaning["of"] if meaning["of"] else 100  # 100 only when nothing is left
        pace = format_pace(meaning["speed"], meaning["seconds_left"], ", ")
        now = f", read on in the background{pace}" if meaning["refining"] else ""
        if len(meaning["readers"]) > 1:
            each = ["{model} {read:,} of {of:,}, {passages}".format_map(one) for one in meaning["readers"]]
            now += f": {'; '.join(each)}"
        host = f", at {meaning['sent_to']}" if meaning["sent_to"] else ""
        parts.append(f"{meaning['model']} has read {meaning['read']:,} of {meaning['of']:,} ({percent}%{now}{host})")
        if meaning["withheld"]:
            parts.append(f"{meaning['withheld']:,} kept private")
        elif percent < 100 and not meaning["refining"]:
            why = f"waiting for power, {meaning['waiting']}; " if meaning["waiting"] else ""
            parts.append(f"{why}findling refine reads the rest")
    if meaning["reranker"] != "none":
        parts.append(f"reranked by {meaning['reranker']}")
    return "; ".join([*parts, *meaning["problems"]]) or "words only"


def _ask_daemon(settings: Settings) -> dict[str, Any] | None:
    """Facts of the daemon of this home, if one of a known version runs."""
    from findling.service.client.daemon import ask_daemon
    from findling.service.workspace.workspace import home_folder

    answered = ask_daemon(home_folder(settings["store.home"]), "GET", "/local/status")
    if answered is None or answered[0] != 200 or not isinstance(told := answered[1], dict):
        return None
    return told if all(isinstance(told.get(name), kind) for name, kind in _TOLD.items()) else None


def _describe_daemon(daemon: Mapping[str, Any]) -> str:
    facts = [f"process {daemon['pid']} at {daemon['address']}", f"since {_moment(daemon['started_at'])}"]
    if daemon["total_queries"]:
        times = f"{daemon['avg_latency_ms']:.1f} ms on average, 99 % within {daemon['p99_latency_ms']:.1f} ms"
        facts.append(f"{counted(daemon['total_queries'], 'query', 'queries')} ({times})")
    else:
        facts.append("no queries yet" if daemon["ready"] else "getting ready")
    return ", ".join(facts)


def _describe_graph(state: Status) -> str:
    if not state.graph_seq:
        return "not built yet: the first question that names something does it"
    behind = state.seq - state.graph_seq
    return f"{counted(behind, 'change')} behind" if behind else "up to date"


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _describe(state: Status, place: str, daemon: Mapping[str, Any] | None) -> str:
    behind = state.seq - state.keyword_seq
    facts = {
        "root": state.root,
        "index": f"{place}{state.home} ({format_size(state.size_bytes)})",
        "resources": f"{state.resources:,}",
        "chunks": f"{state.chunks:,}",
        "characters": f"{state.characters:,}",
        "left out": count_reasons(state.skipped) or "nothing",
        "indexed": "never" if state.indexed_at is None else _moment(state.indexed_at),
        "keyword leg": f"{counted(behind, 'change')} behind" if behind else "up to date",
        "graph leg": _describe_graph(state),
        "meaning": _describe_meaning(state.meaning),
        "format": f"{state.format}, analyzer {state.analyzer}",
    }
    if daemon is not None:
        facts["daemon"] = _describe_daemon(daemon)
    return "".join(f"{name + ':':<13}{value}\n" for name, value in facts.items())


def _list_watched(as_json: bool) -> int:
    from findling.service.server.watch_list import watch_accounts
    from findling.service.workspace.workspace import home_folder

    accounts = watch_accounts(home_folder(resolve(".")["store.home"]))

    def row(account: WatchAccount) -> tuple[str, str, str]:
        return str(account.root), _watcher(account), _latest(account)

    return write_list(as_json, "watched", accounts, row, "nothing is watched", "findling watch add PATH")


def _watcher(account: WatchAccount) -> str:
    if account.problem:
        return account.problem.removeprefix(f"{account.root} ").removeprefix(f"{account.root}: ")
    if account.is_missing:
        return "is gone"
    if account.pid is None:
        return "nobody is watching"
    return f"watched by {account.by or 'findling'} ({account.pid})" + (", polling" if account.polls else "")


def _latest(account: WatchAccount) -> str:
    if account.taken_in_at is None or account.taken_in is None:
        return ""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(account.taken_in_at))
    taken = account.taken_in
    return f"{when}: {told_changes(taken['added'], taken['updated'], taken['removed'])}"
