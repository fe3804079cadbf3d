"""Questions in other words by a language model: its fallbacks, time, cache, and the texts that may be sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from findling.domain.budgets import finished_by
from findling.domain.errors import FindlingError, OverdueError
from findling.domain.queries import GROUPS, Field, Filters, Node, Not, Rephrasing
from findling.domain.resources import Resource
from findling.domain.results import Degradation
from findling.models.ports import Chat
from findling.service.index.model_choice import choose_chats, may_send
from findling.service.settings.settings import Settings
from findling.stores.reply_cache import ReplyCache, reply_key
from findling.text.query.variants import MOST_TOKENS, SYSTEM, asked, read_reply

CACHE = "replies.sqlite"
_MOST_KEPT = 5_000
"""Replies to questions that are kept: 5 MB."""

_REST_S = 30.0
"""Seconds that a model is left alone after it did not answer in time: no question waits for it again and again."""

_AGAIN_S = 3.0
"""Seconds in which the same question is carried out again rather than asked again."""

_NEAREST = 3
"""Best hits of which none may be private: a question that leads there is about what must not leave."""


def open_rephraser(settings: Settings, folder: Path) -> ModelRephraser | None:
    """The language models that the settings name, with a cache in a folder; `None` without any.

    Raises InvalidValueError for a setting that names no language model.
    """
    chats = choose_chats(settings)
    return ModelRephraser(chats, settings, folder) if chats else None


class ModelRephraser:
    """Asks one model after the other until one gives variants; all of them share the time."""

    def __init__(self, chats: Sequence[Chat], settings: Settings, folder: Path) -> None:
        self._chats, self._settings = chats, settings
        self._cache = ReplyCache(folder / CACHE, _MOST_KEPT)
        self._rests: dict[str, float] = {}
        self._latest: tuple[object, float, Rephrasing] | None = None

    def rephrase(
        self, question: str, filters: Filters, about: Sequence[Resource], profile: str, patience_s: float
    ) -> Rephrasing:
        """Variants of a question within `patience_s`; `about` are the resources that it leads to, best first."""
        # A search is carried out again where a leg was behind: no model is asked twice for that, nor waited for.
        asked_for, latest = (question, filters, profile), self._latest
        if latest is not None and latest[0] == asked_for and time.monotonic() < latest[1]:
            return latest[2]
        given = self._rephrased(question, filters, about, profile, patience_s)
        self._latest = asked_for, time.monotonic() + _AGAIN_S, given
        return given

    def _rephrased(
        self, question: str, filters: Filters, about: Sequence[Resource], profile: str, patience_s: float
    ) -> Rephrasing:
        if profile == self._settings["search.profile"] and self._settings.project_file("search.profile") is not None:
            return _refused("the project file chose the profile, and a project sends nothing", "findling config show")
        notes: list[Degradation] = []
        chats = self._allowed(filters, about, notes)
        text, ends = asked(question), time.perf_counter() + patience_s
        for place, chat in enumerate(chats):
            key = reply_key(chat.name, SYSTEM, text)
            if (kept := self._cache.get(key)) is not None and (variants := read_reply(kept, question)):
                return Rephrasing(variants, chat.name, is_cached=True, notes=tuple(notes))
            share_s = (ends - time.perf_counter()) / (len(chats) - place)
            try:
                reply = self._ask(chat, text, share_s)
            except FindlingError as error:
                notes.append(Degradation(what=f"not expanded by {chat.name}: {error.message}", fix=error.hint))
                continue
            if variants := read_reply(reply, question):
                self._cache.put(key, reply)
                return Rephrasing(variants, chat.name, chat.host, notes=tuple(notes))
            why = "its reply has no variant of the question in it"
            notes.append(Degradation(what=f"not expanded by {chat.name}: {why}", fix="findling config set chat.model"))
        return Rephrasing(sent_to=next((chat.host for chat in chats if chat.host), ""), notes=tuple(notes))

    def _ask(self, chat: Chat, text: str, patience_s: float) -> str:
        now = time.monotonic()
        if self._rests.get(chat.name, 0.0) > now:
            raise OverdueError("it did not answer a moment ago and is left alone for some seconds", hint="ask again")
        try:
            return finished_by(
                time.perf_counter() + patience_s, lambda: chat.complete(SYSTEM, text, max_tokens=MOST_TOKENS)
            )
        except OverdueError:
            self._rests[chat.name] = now + _REST_S
            hint = "ask again, or choose a faster one: findling config set chat.model"
            raise OverdueError(f"it did not answer within {max(patience_s, 0.0):.1f} s", hint=hint) from None

    def _allowed(self, filters: Filters, about: Sequence[Resource], notes: list[Degradation]) -> Sequence[Chat]:
        """The models that may be sent a question: those of this machine, where it is about something private."""
        if not any(chat.host for chat in self._chats):
            return self._chats
        allowed = may_send(self._settings)
        limits = [Resource(rid="", path=path.strip("/")) for path in _paths(filters)]
        tags = Resource(rid="", tags=tuple(_values("tag", filters)))
        if all(map(allowed, (tags, *limits, *about[:_NEAREST]))):
            return self._chats
        why = "not sent to a provider: the question is about what is private"
        notes.append(Degradation(what=why, fix="findling config set remote.allow_private true"))
        return [chat for chat in self._chats if not chat.host]


def _refused(why: str, fix: str) -> Rephrasing:
    return Rephrasing(notes=(Degradation(what=f"no language model was asked: {why}", fix=fix),))


def _paths(filters: Filters) -> Iterator[str]:
    yield from (*filters.path, filters.within)
    yield from _values("path", filters)


def _values(name: str, filters: Filters) -> Iterator[str]:
    if name == "tag":
        yield from filters.tag
    if filters.where is not None:
        yield from _named(name, filters.where)


def _named(name: str, node: Node) -> Iterator[str]:
    """The values that a tree asks of a property; not those that it excludes."""
    if isinstance(node, Field) and node.name == name:
        yield from node.values
    elif isinstance(node, GROUPS) and not isinstance(node, Not):
        for part in node.nodes:
            yield from _named(name, part)
