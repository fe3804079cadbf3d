"""From settings to the models that read: local ones by name or folder, those of providers by PROVIDER:MODEL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from findling.domain.errors import (
    FindlingError,
    InvalidValueError,
    MissingExtraError,
    ModelError,
    ModelNotFoundError,
)
from findling.domain.resources import Resource
from findling.models.catalogue import CATALOGUE, DEFAULT_EMBEDDER, FAST_EMBEDDER
from findling.models.locating import ModelFiles, locate
from findling.models.ports import Chat, Embedder, Reranker
from findling.models.remote.providers import is_remote_spec
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import backend_at, has_store, home_folder

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.models.ports import Embedder, Reranker

PRIVATE_TAG = "private"


def may_send(settings: Settings) -> Callable[[Resource], bool]:
    """Tells whether a resource may be sent to a provider: not when it, or its path, is marked private.

    Raises InvalidValueError for a pattern that can match nothing.
    """
    if settings["remote.allow_private"]:
        return lambda resource: True
    from findling.sources.files.rule_patterns import Rules, compile_rules

    private = compile_rules(Rules(exclude=settings["privacy.private"])).exclude

    def allowed(resource: Resource) -> bool:
        if PRIVATE_TAG in resource.tags:
            return False
        parts = resource.path.split("/")
        return private is None or not any(
            private.match("/".join(parts[: depth + 1]), part, depth + 1 < len(parts))
            for depth, part in enumerate(parts)
        )

    return allowed


def models_home(settings: Settings) -> Path:
    """The folder of the models that findling pulls and prepares: beside the workspaces, under a name none can have."""
    return home_folder(settings["store.home"]) / ".models"


def choose_embedder(settings: Settings) -> Embedder | None:
    """The embedder of `semantic.model`; `None` for `none`, and for `auto` without the model of the default install.

    Nothing is opened before the first text. Raises ModelNotFoundError, ModelDamagedError or ModelError for a local
    model that cannot be used, InvalidValueError for a provider that does not embed or a model of the wrong kind.
    """
    chosen = str(settings["semantic.model"])
    if is_remote_spec(chosen):
        from findling.models.remote.provider_models import RemoteEmbedder

        return RemoteEmbedder(
            chosen,
            base_url=settings["semantic.base_url"],
            timeout_s=settings["remote.timeout_s"],
            dimensions=settings["remote.dimensions"],
        )
    files = find_model(settings, "semantic.model")
    if files is None:
        return None
    from findling.models.local.onnx_models import OnnxEmbedder

    # MiniLM on SciFact, a development set: NDCG@10 .736 exactly, .731 with 8-bit numbers. The fast model has no others.
    is_exact = not settings["semantic.fast"] and files.card.name != FAST_EMBEDDER.name
    return OnnxEmbedder(files, models_home(settings), threads=settings["semantic.threads"], exact=is_exact)


def choose_reranker(settings: Settings) -> Reranker | None:
    """The reranker that `rerank.model` names; `None` for `none`, and for `auto` when no reranker is installed.

    Raises as `choose_embedder` does.
    """
    chosen = str(settings["rerank.model"])
    if is_remote_spec(chosen):
        from findling.models.remote.provider_models import RemoteReranker

        return RemoteReranker(chosen, base_url=settings["rerank.base_url"], timeout_s=settings["remote.timeout_s"])
    files = find_model(settings, "rerank.model")
    if files is None:
        return None
    from findling.models.local.onnx_models import OnnxReranker

    return OnnxReranker(files, models_home(settings), threads=settings["semantic.threads"])


def choose_chat(settings: Settings) -> Chat | None:
    """The language model that `chat.model` names; `None` for `none`. Raises as `choose_chats` does."""
    return next(iter(choose_chats(settings)), None)


def choose_chats(settings: Settings) -> list[Chat]:
    """The language model that `chat.model` names and those of `chat.fallback`, in order; none for `none`.

    Raises InvalidValueError for what is no PROVIDER:MODEL, or for a provider without a language model.
    """
    first = str(settings["chat.model"])
    if first in ("", "none"):
        return []
    chosen = {first: "chat.model", **{spec: "chat.fallback" for spec in settings["chat.fallback"] if spec != first}}
    for spec, name in chosen.items():
        if not is_remote_spec(spec):
            raise InvalidValueError(f"{name} {spec!r} names no provider", hint=f"findling config remove {name}")
    from findling.models.remote.provider_models import RemoteChat

    # An address belongs to one provider: its other models answer there, too.
    own, timeout_s = first.partition(":")[0], settings["remote.timeout_s"]
    addresses = {spec: settings["chat.base_url"] if spec.partition(":")[0] == own else "" for spec in chosen}
    return [RemoteChat(spec, base_url=url, timeout_s=timeout_s) for spec, url in addresses.items()]


def find_model(settings: Settings, setting: str) -> ModelFiles | None:
    """The local model that `semantic.model` or `rerank.model` stands for; `None` for `none`, or `auto` without one.

    Raises ModelNotFoundError when it is not installed, InvalidValueError when it is of the wrong kind.
    """
    chosen, home = str(settings[setting]), models_home(settings)
    kind = "embedder" if setting == "semantic.model" else "reranker"
    if chosen in ("", "none"):
        return None
    if chosen == "auto":
        return _first_installed(kind, home, settings["semantic.fast"]) if find_spec("onnxruntime") is not None else None
    files = locate(chosen, home)
    if files.card.kind != kind:
        raise InvalidValueError(
            f"{setting}: {files.card.name} is no {kind}",
            hint=f"findling config set {_SETTING_OF_KIND[files.card.kind]} {chosen}",
        )
    return files


_SETTING_OF_KIND = {"embedder": "semantic.model", "reranker": "rerank.model"}


def _first_installed(kind: str, home: Path, is_fast: bool) -> ModelFiles | None:
    """An embedder that findling brings, or any reranker that is here: another embedder is only taken when chosen."""
    cards = (
        [FAST_EMBEDDER if is_fast else DEFAULT_EMBEDDER]
        if kind == "embedder"
        else [card for card in CATALOGUE if card.kind == kind]
    )
    for card in cards:
        try:
            return locate(card.name, home)
        except ModelNotFoundError:
            continue
    return None


_Model = TypeVar("_Model")


class ModelTable:
    """Holds no model itself: one is gone when the last workspace releases it. Threads may share a table."""

    def __init__(self) -> None:
        self._in_use: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
        self._guard = threading.Lock()

    def embedder(self, settings: Settings) -> Embedder | None:
        """The embedder that `semantic.model` names. Raises as `choose_embedder` does."""

        return self._chosen(choose_embedder, settings)

    def earlier(self, settings: Settings, chosen_by: str, fingerprint: str) -> Embedder | None:
        """The model that made these vectors when this value of `semantic.model` chose one; none that is not here."""
        # `auto` follows semantic.fast, and was MiniLM for both of its values up to 0.8.
        names = [DEFAULT_EMBEDDER.name, FAST_EMBEDDER.name] if chosen_by == "auto" else [chosen_by]
        for name, is_fast in product(names, (False, True)):
            own = {"semantic.model": name, "semantic.fast": is_fast}
            with suppress(MissingExtraError, ModelError, InvalidValueError):
                model = self.embedder(settings.override(own, "vectors in use"))
                if model is not None and model.fingerprint == fingerprint:
                    return model
        return None

    def reranker(self, settings: Settings) -> Reranker | None:
        """The reranker that `rerank.model` names. Raises as `choose_reranker` does."""

        return self._chosen(choose_reranker, settings)

    def _chosen(self, choose: Callable[[Settings], _Model | None], settings: Settings) -> _Model | None:
        key = (choose, *[settings[name] for name in settings if name.startswith(_OF_MODELS)])
        with self._guard:
            model: _Model | None = self._in_use.get(key)
            if model is None and (model := choose(settings)) is not None:
                self._in_use[key] = model
            return model


_OF_MODELS = ("semantic.", "rerank.", "remote.", "store.")


@contextmanager
def lending_stores(home: Path, borrower: Path, model: str) -> Iterator[list[TruthStore]]:
    """Open the stores of the other workspaces of a home that hold vectors of a model."""
    with ExitStack() as stack:
        lenders = []
        for folder in sorted(home.glob("*/")):
            if folder != borrower and has_store(folder):
                # One that is damaged, or made by another version, has nothing to lend.
                with suppress(FindlingError):
                    store = stack.enter_context(closing(backend_at(folder).open_store(readonly=True)))
                    lenders += [store] if model in store.models() else []
        yield lenders


def borrow_vectors(lenders: Sequence[TruthStore], model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
    """The vectors that other stores hold: what one of them has had read is not read again."""
    found: dict[bytes, bytes] = {}
    for store in lenders:
        missing = [digest for digest in digests if digest not in found]
        found |= store.vectors(model, missing) if missing else {}
    return found


@cache
def instant_embedder() -> Embedder:
    """The one that needs no model."""
    from findling.models.local.instant import InstantEmbedder

    return InstantEmbedder()
