"""Models behind a provider: an embedder, a reranker and a chat that speak to OpenAI and what is modelled on it.

They send what they are given; whether a text may leave the machine is decided before it comes here. No file is read
for a key: it comes from the caller or from the environment variable of the provider.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from findling.domain.errors import OverdueError
from findling.models.remote import dialects as wire
from findling.models.remote.http_client import HttpClient, OversizeError, is_loopback, parse_address
from findling.models.remote.providers import prefixes, split_spec

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_Outcome = tuple[int, Result | None, BaseException | None]
"""The number of a batch, and its result or the error that it ended in."""

# A worker that keeps its own deadline is given this much longer before it is given up.
_GRACE_S = 0.5


def send_batches(
    batches: Sequence[Batch],
    send: Callable[[Batch, threading.Event], Result],
    *,
    max_concurrent: int,
    patience_s: float,
) -> list[Result]:
    """Send all batches and return their results in order; the first error ends the call.

    `send` must finish within `patience_s`, and should when its event is set. The workers are daemons and the wait is
    bounded here too, because looking up a host's name cannot be interrupted: it may take 30 s without a network.
    Raises OverdueError.
    """
    stop = threading.Event()
    lock = threading.Lock()
    waiting = iter(enumerate(batches))
    outcomes: SimpleQueue[_Outcome[Result]] = SimpleQueue()

    def work() -> None:
        while not stop.is_set():
            with lock:
                number, batch = next(waiting, (-1, None))
            if batch is None:
                return
            try:
                outcomes.put((number, send(batch, stop), None))
            except BaseException as error:  # raised again where the caller waits
                outcomes.put((number, None, error))
                return

    try:
        for _ in range(min(max_concurrent, len(batches))):
            threading.Thread(target=work, name="findling-provider", daemon=True).start()
        return _collected(outcomes, len(batches), patience_s)
    finally:
        stop.set()


def _collected(outcomes: SimpleQueue[_Outcome[Result]], count: int, patience_s: float) -> list[Result]:
    """The results of so many batches in order. Raises OverdueError, and the first error of a worker."""
    results: dict[int, Result] = {}
    while len(results) < count:
        try:
            number, result, error = outcomes.get(timeout=patience_s + _GRACE_S)
        except Empty:
            raise OverdueError(f"a worker took longer than {patience_s:g} s") from None
        if error is not None:
            raise error
        results[number] = result  # type: ignore[assignment]  # `None` only beside an error
    return [results[number] for number in range(count)]


def split(texts: Sequence[str], size: int) -> list[list[str]]:
    """The texts in lists of at most `size`."""
    return [list(texts[start : start + size]) for start in range(0, len(texts), size)]


Part = TypeVar("Part")
Ask = Callable[[str, object], Any]
"""Posts a body to a path and gives the JSON of the reply."""

# Reading passages is work for the background: a server without a graphics card reads two or more a second.
_SECONDS_PER_PASSAGE = 0.5
_PASSAGE_WAITS_S = 60.0


class _Remote:
    """Base of the three: a name, a host, and a way to send texts in batches.

    `spec` is `PROVIDER:MODEL`; without a model it is the provider's usual one. Raises InvalidValueError for a provider
    without the task, and for a `base_url` that is no plain web address.
    """

    task: str
    max_concurrent = 5

    def __init__(
        self, spec: str, *, base_url: str = "", timeout_s: float = 10.0, environ: Mapping[str, str] = os.environ
    ) -> None:
        provider, model = split_spec(spec, self.task)
        variable = provider.key_variable
        key = environ.get(variable, "").strip() if variable else ""
        self.name = f"{provider.name}:{model}"
        self._provider = provider
        self._model = model
        self._timeout_s = timeout_s
        self._batch = provider.batch
        self._problem = _key_problem(key, variable, wanted=not base_url)
        address = parse_address(base_url or provider.base_url)
        prefix = "Bearer " if provider.key_header == "Authorization" else ""
        headers = {**provider.headers, **({provider.key_header: f"{prefix}{key}"} if key else {})}
        self._client = HttpClient(provider.name, address, api_key=key, key_hint=_key_hint(variable), headers=headers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._client.address.netloc!r})"

    @property
    def host(self) -> str:
        """The host that texts are sent to; empty when that is this machine, from which nothing leaves."""
        host = self._client.address.host
        if not is_loopback(host):
            return host
        # Ollama passes texts for models with this mark on to its makers.
        passed_on = self._provider.name == "ollama" and self._model.endswith("cloud")
        return "ollama.com" if passed_on else ""

    @property
    def attempts(self) -> int:
        """Number of requests so far."""
        return self._client.attempts

    def _send(
        self, texts: Sequence[str], post: Callable[[list[str], Ask], Part], *, background: bool = False
    ) -> list[Part]:
        """Post the texts in parts and return the results in order.

        In the background there is time for slow servers and for waits they ask for; else all must end in time.
        """
        if self._problem is not None:
            raise self._client.failure(self._problem, hint=_key_hint(self._provider.key_variable))
        timeout_s = self._timeout_s + (_SECONDS_PER_PASSAGE * min(len(texts), self._batch) if background else 0.0)
        patience_s = 2 * timeout_s + _PASSAGE_WAITS_S if background else timeout_s

        def send(batch: list[str], stop: threading.Event) -> list[Part]:
            ends = time.monotonic() + patience_s

            def ask(path: str, body: object) -> Any:
                return self._client.post(path, body, timeout_s=timeout_s, ends=ends, stop=stop)

            return self._send_parts(batch, lambda part: post(part, ask))

        try:
            sent = send_batches(
                split(texts, self._batch), send, max_concurrent=self.max_concurrent, patience_s=patience_s
            )
        except OverdueError:
            raise self._client.overdue() from None
        except wire.MalformedReplyError as error:
            raise self._client.failure(
                f"gave a reply that cannot be used: it {error}",
                hint=f"Try again; if it stays so, check its base_url and the model {self._model!r}.",
            ) from error
        return [part for parts in sent for part in parts]

    def _send_parts(self, texts: list[str], post: Callable[[list[str]], Part]) -> list[Part]:
        """Send one batch, in halves when it proves too large; smaller batches are kept for what comes later."""
        if len(texts) > self._batch:
            return [part for texts_ in split(texts, self._batch) for part in self._send_parts(texts_, post)]
        try:
            return [post(texts)]
        except OversizeError:
            if len(texts) == 1:
                raise
            self._batch = min(self._batch, (len(texts) + 1) // 2)
            return self._send_parts(texts, post)


class RemoteEmbedder(_Remote):
    """Vectors from a provider.

    `dimensions` asks for vectors of that length; 0 leaves it to the model, and the length is then 0 until the first
    reply. A call is all or nothing, so a few batches a call lose little when a provider fails.
    """

    task = "embed"
    in_process = False  # a server reads, even one on this machine
    languages = ""  # any may be tried
    usual_cosines: tuple[float, float] | None = None  # unknown beforehand

    def __init__(
        self,
        spec: str,
        *,
        dimensions: int = 0,
        base_url: str = "",
        timeout_s: float = 10.0,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(spec, base_url=base_url, timeout_s=timeout_s, environ=environ)
        self._asked = dimensions
        self.dimensions = dimensions
        # Providers of other dialects learn the kind of a text and add their own prefix.
        self._prefixes = prefixes(self._model) if self._provider.dialect == "openai" else ("", "")

    @property
    def fingerprint(self) -> str:
        """Provider, model, host, length asked for and prefixes: what decides whether vectors can be compared."""
        query, passage = self._prefixes
        return f"{self.name}@{self._client.address.netloc};d={self._asked};q={query!r};p={passage!r}"

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        """One vector of length 1 a text, in order; `kind` is `passage` or `query`. Raises ProviderError."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        prefix = self._prefixes[0 if kind == "query" else 1]
        # Providers refuse a text without any letters to read.
        ready = [prefix + (text if text.strip() else ".") for text in texts]

        def post(batch: list[str], ask: Ask) -> Vectors:
            body = wire.embedding_request(self._provider, self._model, batch, kind, self._asked)
            return wire.embedding_vectors(self._provider, ask(self._provider.embed_path, body), len(batch))

        parts = self._send(ready, post, background=kind != "query")
        expected = self.dimensions or parts[0].shape[1]
        for part in parts:
            if part.shape[1] != expected:
                raise self._client.failure(
                    f"sent vectors of {part.shape[1]} numbers where {expected} were expected",
                    hint="Set remote.dimensions to a length that the model offers, or to 0.",
                )
        self.dimensions = expected
        return np.concatenate(parts)


class RemoteReranker(_Remote):
    """Scores of query and passage from a provider."""

    task = "rerank"
    languages = ""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in order, between 0 and 1. Raises ProviderError."""

        def post(batch: list[str], ask: Ask) -> list[float]:
            body = wire.rerank_request(self._provider, self._model, query, batch)
            return wire.rerank_scores(self._provider, ask(self._provider.rerank_path, body), len(batch))

        parts = self._send(list(texts), post)
        return wire.probabilities([score for part in parts for score in part])


class RemoteChat(_Remote):
    """Answers in words from a provider."""

    task = "chat"

    def complete(self, system: str, user: str, *, max_tokens: int = 512) -> str:
        """Answer of the model to `user` under the instructions of `system`. Raises ProviderError."""

        def post(batch: list[str], ask: Ask) -> str:
            body = wire.chat_request(self._provider, self._model, system, batch[0], max_tokens)
            return wire.chat_words(self._provider, ask(self._provider.chat_path, body))

        return self._send([user], post)[0]


def _key_problem(key: str, variable: str, *, wanted: bool) -> str | None:
    """Why no request can be made with this key, in words that do not tell it.

    At an address of the user's own choosing there may be a server that wants none.
    """
    if not key and variable and wanted:
        return f"wants a key, and {variable} is not set"
    if not (key.isascii() and key.isprintable()) or " " in key:
        return "cannot be sent the key: it holds characters that no key has"
    return None


def _key_hint(variable: str) -> str:
    return (
        f"Set the environment variable {variable} to your key." if variable else "This server wants a key of its own."
    )
