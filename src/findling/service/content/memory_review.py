"""Memories that may not hold together: listed for a decision, with a language model's opinion perhaps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from findling.domain.errors import InvalidValueError, ModelError
from findling.domain.queries import HERE, Filters
from findling.domain.resources import Resource
from findling.domain.results import Degradation
from findling.pipelines.content.memories import MEMORY
from findling.pipelines.content.memory_history import verdicts_of
from findling.pipelines.content.memory_judge import Neighbour, ask_model, conflicting_pairs
from findling.pipelines.content.memory_times import lasting
from findling.service.content.memory_truth import Principals, sight_of
from findling.service.index.writing import WorkspaceWriter


@dataclass(frozen=True, kw_only=True)
class MemoryPair:
    """Two memories that may not hold together. `verdict` is a language model's, which decides nothing.

    `workspace` holds both; `here` is the folder of it that keeps them, if one does.
    """

    newer: str
    older: str
    newer_text: str
    older_text: str
    verdict: str = ""
    verdict_by: str = ""
    workspace: str = ""
    here: str = ""


@dataclass(frozen=True, kw_only=True)
class MemoryReview:
    """The pairs that wait for a decision, newest first; `trouble` is what kept a language model from helping."""

    pairs: tuple[MemoryPair, ...]
    trouble: Degradation | None = None


def review_memories(writer: WorkspaceWriter, now: float, principals: Principals = None) -> MemoryReview:
    """The pairs of memories of one workspace that may not hold together and wait for a decision.

    With `memory.ask`, a language model says what it thinks of pairs that nobody has asked it about.
    """
    if not writer.exists:
        return MemoryReview(pairs=())
    pairs, trouble = _pairs(writer, now, principals), None
    if writer.settings["memory.ask"] and principals is None and any(not one.verdict for one in pairs):
        trouble = _ask(writer, [one for one in pairs if not one.verdict])
        pairs = _pairs(writer, now, principals)
    return MemoryReview(pairs=tuple(reversed(pairs)), trouble=trouble)


def _pairs(writer: WorkspaceWriter, now: float, principals: Principals) -> list[MemoryPair]:
    store = writer.store
    may_see = sight_of(writer, principals)
    numbers = list(store.matching(Filters(type=(MEMORY,))))
    rids = [one.rid for one in store.texts(numbers) if may_see(one.rid, one.visibility)]
    gone = store.successors(rids)
    documents = {rid: found for rid in rids if rid not in gone and (found := store.document(rid)) is not None}
    held = [Neighbour(one.resource, one.text) for one in documents.values() if lasting(one.resource, None).until > now]
    found_pairs = []
    for newer, older in conflicting_pairs(held):
        said = verdicts_of(documents[newer].resource).get(older, {})
        found_pairs.append(
            MemoryPair(
                newer=newer,
                older=older,
                newer_text=documents[newer].text,
                older_text=documents[older].text,
                verdict=str(said.get("verdict", "")),
                verdict_by=str(said.get("model", "")),
                here=documents[newer].resource.fields.get(HERE, ""),
            )
        )
    return found_pairs


def _ask(writer: WorkspaceWriter, pairs: Sequence[MemoryPair]) -> Degradation | None:
    """Ask the chosen language model, keep what it says, and return what kept it from that."""
    from findling.service.index.model_choice import choose_chat, may_send

    settings, store = writer.settings, writer.store
    try:
        chat = choose_chat(settings)
        if chat is None:
            return Degradation(
                what="no language model is chosen to compare memories",
                fix="findling config set chat.model PROVIDER:MODEL",
            )
        allowed = may_send(settings)
        sent = []
        for pair in pairs:
            documents = [store.document(rid) for rid in (pair.newer, pair.older)]
            if not chat.host or all(one is not None and allowed(one.resource) for one in documents):
                sent.append(pair)
        said = ask_model(chat, [(pair.older_text, pair.newer_text) for pair in sent])
    except (ModelError, InvalidValueError) as error:
        return Degradation.of(error)
    answers = {pair: verdict for pair, verdict in zip(sent, said, strict=True) if verdict}
    if answers:
        _keep(writer, answers, chat.name)
    if len(answers) < len(sent):
        return Degradation(what=f"{chat.name} gave no clear answer on {len(sent) - len(answers)} pairs", fix="")
    return None


def _keep(writer: WorkspaceWriter, answers: Mapping[MemoryPair, str], model: str) -> None:
    with writer.writing() as put:
        changed: dict[str, tuple[Resource, str]] = {}
        for pair, verdict in answers.items():
            found = writer.store.document(pair.newer)
            if found is None:
                continue
            resource = changed.get(pair.newer, (found.resource, ""))[0]
            told = {**verdicts_of(resource), pair.older: {"verdict": verdict.lower(), "model": model}}
            fields = {**resource.fields, "verdicts": json.dumps(told, ensure_ascii=False)}
            changed[pair.newer] = replace(resource, fields=fields), found.text
        put(writer.documents(changed.values()), ())
