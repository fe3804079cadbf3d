"""`findling status` and `findling ls`: what the index holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from findling.faces.cli.commands.index import count_reasons
from findling.faces.cli.options import as_option, json_option, opened, path_argument, resolve, workspace_option
from findling.faces.cli.progress import format_size
from findling.faces.cli.terminal import write

if TYPE_CHECKING:
    from findling.domain.reports import Status

__all__ = ["ls", "status"]


@click.command()
@path_argument
@click.option("--skipped", is_flag=True, help="List what was left out, and why, instead.")
@click.option("--failed", is_flag=True, help="List what could not be read, or not all of it, and why, instead.")
@json_option
@workspace_option
def status(path: str, skipped: bool, failed: bool, as_json: bool, workspace: str | None) -> int:
    """Say what the index of PATH holds and how fresh it is."""
    if skipped and failed:
        raise click.UsageError("--skipped and --failed are two lists; ask for one of them")
    with opened(path, resolve(path, workspace=workspace)) as engine:
        state = engine.status()
        left_out = engine.skipped() if skipped else engine.failed() if failed else []
    if as_json:
        from findling.faces.cli.documents import dump, report_document

        entries = [{"path": entry.path, "reason": entry.reason, "detail": entry.detail} for entry in left_out]
        listed = {"skipped_paths": entries} if skipped else {"failed_paths": entries} if failed else {}
        write(dump(report_document({**vars(state), **listed}), indent=2))
    elif skipped or failed:
        write("".join("\t".join(filter(None, (entry.path, entry.reason, entry.detail))) + "\n" for entry in left_out))
    else:
        write(_describe(state))
    return 0


@click.command()
@path_argument
@json_option
@as_option
@workspace_option
def ls(path: str, as_json: bool, as_: tuple[str, ...], workspace: str | None) -> int:
    """List the resources that are indexed at PATH and below it."""
    with opened(path, resolve(path, workspace=workspace)) as engine:
        resources = list(engine.ls(principals=as_ or None))
        root = engine.root
    if as_json:
        from findling.faces.cli.documents import dump, report_document

        write(dump(report_document({"root": root, "resources": [vars(each) for each in resources]}), indent=2))
    else:
        write("".join(f"{each.path or each.rid}\n" for each in resources))
    return 0 if resources else 1


def _describe_meaning(meaning: Mapping[str, Any]) -> str:
    parts = ["instant vectors of all chunks"] if meaning["instant"] else []
    if meaning["model"]:
        share = meaning["read"] / meaning["of"] if meaning["of"] else 1.0
        now = ", reading now" if meaning["refining"] else ""
        host = f", at {meaning['sent_to']}" if meaning["sent_to"] else ""
        parts.append(f"{meaning['model']} has read {meaning['read']:,} of {meaning['of']:,} ({share:.0%}{now}{host})")
        if share < 1 and not meaning["refining"]:
            parts.append("findling refine reads the rest")
    if meaning["reranker"] != "none":
        parts.append(f"reranked by {meaning['reranker']}")
    return "; ".join([*parts, *meaning["problems"]]) or "words only"


def _describe(state: Status) -> str:
    behind = state.seq - state.keyword_seq
    indexed = "never" if state.indexed_at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(state.indexed_at))
    facts = {
        "root": state.root,
        "index": f"{state.home} ({format_size(state.size_bytes)})",
        "resources": f"{state.resources:,}",
        "chunks": f"{state.chunks:,}",
        "characters": f"{state.characters:,}",
        "left out": count_reasons(state.skipped) or "nothing",
        "indexed": indexed,
        "keyword leg": f"{behind:,} changes behind" if behind else "up to date",
        "meaning": _describe_meaning(state.meaning),
        "format": f"{state.format}, analyzer {state.analyzer}",
    }
    return "".join(f"{name + ':':<13}{value}\n" for name, value in facts.items())
