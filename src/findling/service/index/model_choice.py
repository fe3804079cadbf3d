"""From settings to the models that read: local ones by name or folder, those of providers by PROVIDER:MODEL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from findling.domain.errors import FindlingError, InvalidValueError, MissingExtraError, ModelError, ModelNotFoundError
from findling.domain.queries import Filters
from findling.domain.resources import ALL, Resource, Share
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
_T = TypeVar("_T")


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


CHOSEN_BY = "chosen by "
"""Meta keys that start so tell which value of the setting stands for a model whose vectors are kept."""

MODELS = "semantic.models"


class Reader(NamedTuple):
    """A model by its value of `semantic.model`, the languages it was chosen for, and its share of the resources now.

    Without languages it reads all others.
    """

    spec: str
    languages: tuple[str, ...] = ()
    share: Share = ALL

    def languages_of(self, model: Embedder) -> str:
        """The languages of questions to its model: those of the model, and those that it was chosen for."""
        return ", ".join([model.languages, *self.languages]) if model.languages else ""


def readers_of(settings: Settings) -> tuple[Reader, ...]:
    """The readers that the settings name, the one of all other languages last.

    Raises InvalidValueError for an entry of `semantic.models` that is no LANG:MODEL, or names a language again.
    """
    chosen: dict[str, str] = {}
    for entry in settings[MODELS]:
        language, model = read_entry(entry, settings.origin(MODELS))
        if language in chosen:
            told = f"{settings.origin(MODELS)}: {MODELS} names two models for {language}"
            raise InvalidValueError(told, hint=f"findling config show {MODELS}")
        chosen[language] = model
    others = str(settings["semantic.model"])
    specs = dict.fromkeys(model for model in chosen.values() if model != others)
    return (*[Reader(spec, tuple(one for one in chosen if chosen[one] == spec)) for spec in specs], Reader(others))


def read_entry(entry: str, where: str) -> tuple[str, str]:
    """The language by its name, and the model. Raises InvalidValueError for what is no LANG:MODEL."""
    from findling.text.analysis.prose_languages import known_languages, spoken

    given, _, model = (part.strip() for part in entry.partition(":"))
    if not model:
        hint = f"findling config set {MODELS} zh:bge-small-zh"
        raise InvalidValueError(f"{where}: {MODELS}: {entry!r} is no LANG:MODEL", hint=hint)
    (language,) = spoken([given]) or ("",)
    if language not in known_languages():
        told = f"{where}: {MODELS}: no language is called {given!r}"
        raise InvalidValueError(told, hint="a code or name as in lang:zh or lang:chinese")
    return language, model


def choosing(settings: Settings, model: str) -> Settings:
    """The settings with another `semantic.model`; an address belongs to the provider of the chosen one."""
    is_same = settings["semantic.model"].partition(":")[0] == model.partition(":")[0]
    values = {"semantic.model": model, "semantic.base_url": settings["semantic.base_url"] if is_same else ""}
    return settings.override(values, settings.origin(MODELS))


class Readers:
    """The readers of one workspace, each model opened when it is first asked for."""

    def __init__(self, settings: Settings, models: ModelTable) -> None:
        self._settings, self._models = settings, models
        self.embedders: dict[str, Embedder | None] = {}
        self._readers: tuple[object, tuple[Reader, ...]] = None, ()
        self._counts: dict[tuple[str, str], tuple[object, tuple[int, int]]] = {}

    def embedder(self, spec: str) -> Embedder | None:
        """The model that a value of `semantic.model` chooses. Raises as `choose_embedder` does."""
        if spec not in self.embedders:
            self.embedders[spec] = self._models.embedder(choosing(self._settings, spec))
        return self.embedders[spec]

    def at(self, store: TruthStore) -> tuple[Reader, ...]:
        """The readers that have something to read; of a resource in several languages, the first one reads all."""
        if not self._settings[MODELS]:
            return (Reader(self._settings["semantic.model"]),)
        state = store.get_meta("store_id"), store.seq()
        if self._readers[0] != state:
            readers = readers_of(self._settings)
            every = left = frozenset(store.matching(Filters()))
            found = []
            for one in readers:
                own = left.intersection(store.matching(Filters(lang=one.languages))) if one.languages else left
                left -= own
                name = ", ".join(one.languages) or "all but " + ", ".join(chain(*[each.languages for each in readers]))
                found += [one._replace(share=Share(own, every - own, name))] if own or not every else []
            self._readers = state, tuple(found)
        return self._readers[1]

    def opened(self, store: TruthStore, problems: list[FindlingError]) -> list[tuple[Reader, Embedder]]:
        """The readers with their models; `problems` says which cannot be opened."""
        tried = [(one, or_problem(problems, partial(self.embedder, one.spec))) for one in self.at(store)]
        return [(one, model) for one, model in tried if model is not None]

    def _earlier(self, fingerprint: str, chosen_by: str) -> Embedder | None:
        """The model that made some vectors: one that is open, else the one that was chosen by this value."""
        for model in self.embedders.values():
            if model is not None and model.fingerprint == fingerprint:
                return model
        if fingerprint not in self.embedders:
            self.embedders[fingerprint] = self._models.earlier(self._settings, chosen_by, fingerprint)
        return self.embedders[fingerprint]

    def whole(self, store: TruthStore) -> frozenset[str]:
        """The fingerprints of the models once each has read its share; none before that, and without chunks."""
        opened = self.opened(store, [])
        counts = [store.coverage(model.fingerprint, reader.share) for reader, model in opened]
        if len(opened) < len(self.at(store)) or any(covered < chunks or not chunks for covered, chunks in counts):
            return frozenset()
        return frozenset(model.fingerprint for _, model in opened)

    def coverage(self, store: TruthStore, model: str, share: Share) -> tuple[int, int]:
        """As the store gives it, counted again only after a change or a new vector."""
        whole = store.coverage(model)
        if share.numbers is None:
            return whole
        state, key = (self._readers[0], whole), (model, share.name)
        if key not in self._counts or self._counts[key][0] != state:
            self._counts[key] = state, store.coverage(model, share)
        return self._counts[key][1]

    def in_use(self, store: TruthStore, share: Share, chosen: Embedder) -> list[tuple[Embedder, int]]:
        """The models whose vectors serve, with the number of chunks: the chosen one alone once it has read everything.

        Until then those before it serve, too, first the one that covers most.
        """
        covered, chunks = self.coverage(store, chosen.fingerprint, share)
        serving = [(chosen, covered)]
        for fingerprint in store.coverages() if covered < chunks else ():
            others = self.coverage(store, fingerprint, share)[0]
            if others and fingerprint != chosen.fingerprint and (chosen_by := store.get_meta(CHOSEN_BY + fingerprint)):
                earlier = self._earlier(fingerprint, chosen_by)
                # A provider that is not chosen any more is sent nothing, not even a query.
                if earlier is not None and earlier.in_process:
                    serving.append((earlier, others))
        serving.sort(key=lambda one: -one[1])
        return serving[:1] if serving[0][1] >= chunks else [one for one in serving if one[1]] or serving


def or_problem(problems: list[FindlingError], get: Callable[[], _T]) -> _T | None:
    """The result of a call, or nothing where a model is missing or fails, which is noted."""
    try:
        return get()
    except (MissingExtraError, ModelError) as problem:
        problems.append(problem)
        return None
