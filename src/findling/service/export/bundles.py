"""Bundles of workspaces: exported for another machine or another time, and imported again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from findling.domain.errors import (
    CorruptError,
    FindlingError,
    InvalidValueError,
    MissingExtraError,
    ModelError,
    NotFoundError,
    NotIndexedError,
    ReadOnlyError,
)
from findling.domain.permissions import VIEWER
from findling.domain.strangers import check_trust
from findling.domain.values import counted
from findling.pipelines.content.memories import MEMORY
from findling.pipelines.content.memory_history import changed_resource, with_states_of
from findling.pipelines.export.bundle_vetting import VettedBundle
from findling.pipelines.export.bundles import Facts, export_store
from findling.pipelines.export.copying import fill_store
from findling.pipelines.indexing.embedding_run import note_read
from findling.service.engine.engine import Engine
from findling.service.export.bundle_places import check_same_files, open_target, settle_root
from findling.service.index.model_choice import ModelTable, Readers, instant_embedder
from findling.service.settings.settings import Settings, get_row
from findling.service.workspace.manifest import preprocessing_of, quota_of
from findling.service.workspace.quotas import Allowance
from findling.service.workspace.scope import is_below
from findling.service.workspace.workspace import existing_path
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.bundle_writer import check_target
from findling.stores.bundle.jsonl_records import Record
from findling.stores.bundle.truth_records import MaySee
from findling.text.analysis.analysis import FINGERPRINT

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.domain.resources import Document, Resource
    from findling.models.ports import Embedder

IMPORTING = "importing"
"""Name of the meta value with the identity of a bundle during its import; empty after it."""

_LISTED = 100
"""Changes that an error names; all of them would be as long as the bundle."""

_GROUPS = ("chunk.", "keyword.", "search.", "semantic.")
"""Settings that answers depend on."""

_LEFT_OUT = ("search.refresh", *(f"semantic.{name}" for name in ("base_url", "cpu_share", "refine", "threads")))
"""Settings among them that decide on time and place of work, not on its result."""


@dataclass(frozen=True, kw_only=True)
class ExportReport:
    """The counts of an export: resources, chunks, vectors, …, and bytes."""

    target: Path
    counts: Mapping[str, int]
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """The workspace of an import: its folder, and its root (None without files here).

    `changed` resources differ from those before. `differing` settings have two values: that of the bundle and the one
    here. `left_out` lists content that was not imported, by the name of the trust that would import it, or by none.
    `replaced` are resources that a merge has changed or superseded.
    """

    home: Path
    root: Path | None
    changed: int
    counts: Mapping[str, int]
    differing: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()


def export_bundle(
    engine: Engine,
    target: Path | str,
    *,
    vectors: bool = True,
    principals: Iterable[str] | None = None,
    force: bool = False,
    created_at: float | None = None,
) -> ExportReport:
    """Write all content of the workspace to a folder, or to an archive when the target ends in `.zip`.

    An engine for a folder of it gives the files of that folder alone. `principals` limit it to what they may see.
    `created_at` of the manifest is given, or the variable SOURCE_DATE_EPOCH, or now. Raises NotIndexedError,
    NotFoundError, InvalidValueError or LockedError.
    """
    target = Path(target)
    writer = engine.writer
    engine.refuse_personal()
    if not writer.exists:
        raise NotIndexedError(f"{engine.root} is not indexed", hint=f"findling index {engine.root}")
    check_target(target, force)
    with ExitStack() as lock:
        # A bundle holds one state of the workspace; without a lock, a change meanwhile is an error.
        with suppress(ReadOnlyError):
            lock.enter_context(writer.files.writing())
        store = writer.store
        facts = Facts(
            _now() if created_at is None else created_at,
            _model(store, writer.settings),
            preprocessing_of(writer.settings)._asdict(),
            _telling(writer.settings),
            store.get_meta("root") or "",
        )
        may_see = _limits_of(engine, principals)
        manifest = export_store(
            store, target, facts, vectors=vectors, glossary=not engine.scope, may_see=may_see, force=force
        )
    files = [target] if target.is_file() else list(target.iterdir())
    return ExportReport(target=target, counts=manifest["counts"], size_bytes=sum(one.stat().st_size for one in files))


def import_bundle(
    source: Path | str,
    *,
    workspace: str = "",
    root: Path | str | None = None,
    merge: bool = False,
    replaces: bool = False,
    trust: Iterable[str] = (),
    settings: Settings | None = None,
) -> ImportReport:
    """Import a bundle into the workspace with this name, or that of the indexed folder.

    A bundle brings content, which its owner alone may see. `trust` imports more of it: `rights`, `root`, `survey`.
    `root` is the present path of the indexed folder. `merge` adds to a workspace with content; what it would change
    needs `replaces`. The whole bundle is checked first; after a kill the workspace is marked as incomplete, and the
    same import completes it. Raises as
    `Bundle.open` and `Bundle.verify` do, and CorruptError, InvalidValueError, PathNotFoundError, UsageError.
    """
    trusted = check_trust(trust)
    with Bundle.open(source) as bundle:
        bundle.verify()
        content = VettedBundle(bundle, trusted, merges=merge)
        tree = None if root is None else existing_path(root)
        with open_target(bundle, workspace, tree, settings, trusted) as engine:
            return _Import(content, engine, tree, replaces=replaces).run(merge)


def sight_of(engine: Engine, principals: Iterable[str]) -> MaySee:
    """A predicate: whether these principals may see a resource now. Raises InvalidValueError for a wrong principal."""
    rights = engine.permissions.rights(principals)
    return lambda resource: rights.may_see(resource.rid, resource.path, resource.visibility)


def _limits_of(engine: Engine, principals: Iterable[str] | None) -> MaySee | None:
    """The predicate for the resources to export, if not all are. Raises NotFoundError where none is."""
    may_see = None if principals is None else sight_of(engine, principals)
    may_see = _in_folder(engine.scope, may_see) if engine.scope else may_see
    if may_see is not None and not any(map(may_see, engine.writer.store.resources())):
        if principals is None:
            raise NotFoundError(f"there is nothing to export in {engine.asked}", hint="findling ls")
        raise NotFoundError("there is nothing to export: these may see nothing", hint="findling permissions list")
    return may_see


def _in_folder(folder: str, may_see: MaySee | None) -> MaySee:
    """The predicate for the files of a folder; what has no path is in none."""
    return lambda one: bool(one.path) and is_below(one.path, folder) and (may_see is None or may_see(one))


_Admit = Callable[[list["Document"]], list["Document"]]


class _Import:
    """One import of a bundle into an opened workspace."""

    def __init__(self, content: VettedBundle, engine: Engine, tree: Path | None, *, replaces: bool) -> None:
        self._content, self._bundle = content, content.bundle
        self._engine, self._files = engine, engine.writer.files
        self._tree = tree
        self._trust = content.trust
        self._replaces = replaces
        self._replaced: tuple[str, ...] = ()

    def run(self, merge: bool) -> ImportReport:
        """Write all of it, or nothing when it is refused."""
        engine, writer, bundle = self._engine, self._engine.writer, self._bundle
        with self._files.writing():
            store = self._files.store
            is_new = not store.counts()["resources"] or store.get_meta(IMPORTING) == f"new {bundle.identity}"
            if not is_new and not merge:
                message = f"the workspace in {engine.home} holds {counted(store.counts()['resources'], 'resource')}"
                raise InvalidValueError(message, hint="--merge to add to them, or another --workspace")
            _check_widths(self._content, store, writer.settings)
            admit = self._begin_new(store) if is_new else self._begin_merge(store)
            changed = fill_store(self._content, store, is_new=is_new, admit=admit)
            # Passages with vectors were read at their origin.
            for model in store.models() if not merge else ():
                for reader in Readers(writer.settings, ModelTable()).at(store):
                    covered, chunks = store.coverage(model, reader.share)
                    if covered >= chunks:
                        note_read(store, model, reader.share, store.seq())
            if is_new:
                self._files.rebuild_leg()
        with writer.writing():
            pass  # every leg catches up
        if not is_new:
            engine.glossary.import_rows(list(bundle.read("glossary.jsonl", dict)))
        with self._files.writing():
            self._files.store.set_meta(IMPORTING, "")
            now_at = self._files.store.get_meta("root")
        return ImportReport(
            home=engine.home,
            root=Path(now_at) if now_at else None,
            changed=changed,
            counts=self._content.counts,
            differing=_differing(bundle, writer.settings),
            left_out=self._left_out(),
            replaced=self._replaced,
        )

    def _begin_new(self, store: TruthStore) -> _Admit:
        engine, counts = self._engine, self._content.counts
        store.set_meta(IMPORTING, f"new {self._bundle.identity}")
        settle_root(self._bundle, engine, store, self._tree, self._trust)
        if not store.counts()["resources"]:
            room = Allowance(store, engine.home, quota_of(engine.home, engine.writer.settings, store))
            room.require(resources=counts.get("resources", 0), text=counts.get("characters", 0))
        return self._closed

    def _begin_merge(self, store: TruthStore) -> _Admit:
        engine = self._engine
        check_same_files(self._bundle, store.get_meta("root") or "", self._tree, self._trust)
        changes = dict(self._changes(store))
        self._replaced = tuple(changes)
        if changes and not self._replaces:
            listed = "; ".join(islice(changes.values(), _LISTED))
            more = f"; and {len(changes) - _LISTED:,} more" if len(changes) > _LISTED else ""
            message = f"the bundle would change {counted(len(changes), 'resource')} of {engine.home}: {listed}{more}"
            raise InvalidValueError(message, hint="--replace to take what is in the bundle")
        store.set_meta(IMPORTING, f"merge {self._bundle.identity}")
        allowance = Allowance(store, engine.home, quota_of(engine.home, engine.writer.settings, store))

        def admit(documents: list[Document]) -> list[Document]:
            allowance.check(documents)
            return self._closed([self._as_here(store, document) for document in documents])

        return admit

    def _changes(self, store: TruthStore) -> Iterator[tuple[str, str]]:
        """The resources here that the bundle would change or supersede, each with the change in words."""
        for document in self._content.documents():
            rid, text = document.resource.rid, document.text
            known = store.document(rid)
            if known is not None and known.text != text:
                yield rid, f"{rid}, {_short(known.text)}, to {_short(text)}"
            elif known is not None and _told(known.resource) != _told(document.resource):
                yield rid, f"what {rid} says of itself"
            earlier = document.resource.fields.get("supersedes", "")
            before = "" if known is None else known.resource.fields.get("supersedes", "")
            if earlier != before and (old := store.document(earlier)) is not None:
                yield earlier, f"{earlier}, {_short(old.text)}, superseded by {rid}, {_short(text)}"

    def _as_here(self, store: TruthStore, document: Document) -> Document:
        """The document with its earlier states here, and with the list of principals if it is otherwise the same."""
        known = store.document(document.resource.rid)
        if known is None:
            return document
        here, given = known.resource, with_states_of(document.resource, known.resource)
        if document.text != known.text and here.rid.startswith(f"{MEMORY}:"):
            given = changed_resource(here, known.text, given, "import", time.time())
        listed = given if "rights" in self._trust else replace(given, visibility=here.visibility)
        return document._replace(resource=listed if (listed, document.text) == known[:2] else given)

    def _closed(self, documents: list[Document]) -> list[Document]:
        """Delete the shares of documents that the owner alone may see."""
        closed = {one.resource.rid for one in documents if one.resource.visibility == ()}
        if "rights" not in self._trust and closed:
            store = self._files.store
            shared = [one for one in store.relations() if one.relation == VIEWER and one.object in closed]
            if shared:
                store.write_relations((), shared)
        return documents

    def _left_out(self) -> dict[str, tuple[str, ...]]:
        """Content that was not imported, by the trust that would import it."""
        found: dict[str, tuple[str, ...]] = {}
        for (trust, what), number in sorted(self._content.left_out.items()):
            # A root that the caller names replaces that of the bundle.
            if trust != "root" or self._tree is None:
                found[trust] = (*found.get(trust, ()), what if number == 1 else f"{number:,} {what}")
        return found


def _told(resource: Resource) -> tuple[object, ...]:
    """The parts of a resource beside its text, without times and rights; none of a file."""
    if resource.rid.startswith("file:"):
        return ()
    fields = with_states_of(resource, replace(resource, fields={})).fields
    return resource.type, resource.title, resource.author, resource.tags, fields


def _short(text: str) -> str:
    return repr(shorten(text, 60, placeholder="…"))


def _check_widths(content: VettedBundle, store: TruthStore, settings: Settings) -> None:
    """Raise CorruptError for vectors that are not as long as those of their model here."""
    widths = content.widths()
    here = {model: len(row.vector) for model in store.models() for row in islice(store.vector_rows(model, 0), 1)}
    if widths and (chosen := _chosen(settings)) is not None and chosen.dimensions:
        here[chosen.fingerprint] = 2 * chosen.dimensions
    for model in sorted(widths.keys() & here.keys()):
        if widths[model] != here[model]:
            found, wanted = widths[model] // 2, here[model] // 2
            message = f"vectors of {model} in {content.bundle.path} have {found:,} numbers, not {wanted:,}"
            raise CorruptError(message, hint="findling export --no-vectors writes a bundle without them")


def _model(store: TruthStore, settings: Settings) -> Record | None:
    """The model that has read most, or that of the instant vectors."""
    read = store.models()
    if read:
        fingerprint = max(sorted(read), key=read.__getitem__)
        row = next(iter(store.vector_rows(fingerprint, 0)), None)
        chosen = _chosen(settings)
        name = chosen.name if chosen is not None and chosen.fingerprint == fingerprint else ""
        dim = len(row.vector) // 2 if row else 0
    elif settings["semantic.instant"]:
        instant = instant_embedder()
        name, dim, fingerprint = instant.name, instant.dimensions, instant.fingerprint
    else:
        return None
    return {"name": name, "dim": dim, "normalize": True, "fingerprint": fingerprint}


def _chosen(settings: Settings) -> Embedder | None:
    from findling.service.index.model_choice import choose_embedder

    try:
        return choose_embedder(settings)
    except (InvalidValueError, MissingExtraError, ModelError):
        return None


def _telling(settings: Settings) -> Record:
    """The settings that answers depend on and that are not at their default."""
    names, usual = [name for name in settings if name.startswith(_GROUPS) and name not in _LEFT_OUT], Settings()
    return {name: _plain(settings[name]) for name in names if settings[name] != usual[name]}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _now() -> float:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch and not epoch.isdecimal():
        raise InvalidValueError(f"SOURCE_DATE_EPOCH is {epoch!r}", hint="seconds since 1970, such as 1767225600")
    return float(epoch) if epoch else time.time()


def _differing(bundle: Bundle, settings: Settings) -> dict[str, tuple[Any, Any]]:
    recorded, here = bundle.meta().get("settings"), _telling(settings)
    there = recorded if isinstance(recorded, dict) else {}
    found: dict[str, tuple[Any, Any]] = {}
    for name in sorted({*there, *here}):
        try:
            usual = _plain(get_row(name).default)
        except FindlingError:
            continue  # a setting of another version
        if there.get(name, usual) != here.get(name, usual):
            found[name] = (there.get(name, usual), here.get(name, usual))
    analysis = (bundle.manifest.get("preprocessing") or {}).get("analysis")
    return found if analysis == FINGERPRINT else {**found, "analysis": (analysis, FINGERPRINT)}
