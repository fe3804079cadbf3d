"""The browser bundle: one page with its own index, which searches without a server or a network."""

from __future__ import annotations

import html
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, NotFoundError, PathNotFoundError, ReadOnlyError
from findling.domain.queries import Filters
from findling.domain.resources import Document, Resource
from findling.pipelines.export.browser_index import BrowserIndex, as_letters, constants, deflated
from findling.service.engine.engine import Engine
from findling.stores.filesystem import write_whole
from findling.stores.filtering import passes

if TYPE_CHECKING:
    from findling.pipelines.export.browser_related import Relations

MAX_PAGE_BYTES = 50_000_000
"""About 70 MB of text: SciFact's 7.8 MB make a page of 5.3 MB."""

RELATED = 5
"""Neighbours by meaning that are written for each passage."""

_GENERATOR = "findling browser bundle"
_SCRIPTS = "analysis stemming index query scoring search snippets hits page".split()
"""Parts of the one script, in this order."""

_BEGIN = '(() => {\n"use strict";'

_LETTERS_A_BYTE = 4 / 3
"""Letters of base64 for a byte."""


@dataclass(frozen=True, kw_only=True)
class BrowserReport:
    """The counts of an exported page. `related` names the vectors of related passages: refined, instant, none."""

    target: Path
    documents: int
    passages: int
    terms: int
    text_bytes: int
    bytes: int
    related: str
    seconds: float

    @property
    def bytes_per_document(self) -> int:
        """The size of the page for each document."""
        return round(self.bytes / self.documents)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {**asdict(self), "target": str(self.target), "bytes_per_document": self.bytes_per_document}


def export_html(
    engine: Engine,
    target: str | Path,
    *,
    title: str = "",
    filters: Filters | None = None,
    may_see: Callable[[Resource], bool] | None = None,
    max_bytes: int = MAX_PAGE_BYTES,
    related: int = RELATED,
) -> BrowserReport:
    """Write one page with the resources that pass the filters and `may_see`; nothing else leaves a trace.

    An engine for a folder of a workspace gives the files of that folder alone.

    Raises NotFoundError, InvalidValueError, PathNotFoundError, ReadOnlyError or DiskFullError. A failure leaves the
    target as it was.
    """
    started = time.monotonic()
    engine.refuse_personal()
    path = _checked_target(Path(target))
    index, documents = _indexed(engine, filters or Filters(), may_see, max_bytes)
    about = {"title": title or engine.asked.name or "findling", "created": time.strftime("%Y-%m-%d", time.gmtime())}
    texts = as_letters(index.texts.finished())
    _check_size(len(texts) + len(as_letters(deflated(index.packed(about)))), max_bytes)
    relations = _related(engine, documents, related)
    page = _page(about["title"], texts, as_letters(deflated(index.packed(about, relations.passages)))).encode()
    _check_size(len(page), max_bytes)
    write_whole(path, page)
    return BrowserReport(
        target=path,
        documents=len(index),
        passages=index.passages,
        terms=index.terms,
        text_bytes=sum(len(document.text.encode("utf-8", "replace")) for document in documents),
        bytes=len(page),
        related=relations.speed,
        seconds=round(time.monotonic() - started, 3),
    )


def _indexed(
    engine: Engine, filters: Filters, may_see: Callable[[Resource], bool] | None, max_bytes: int
) -> tuple[BrowserIndex, list[Document]]:
    from findling.domain.backends import Scoring

    index = BrowserIndex(Scoring())
    documents = []
    for document in _documents(engine, filters, may_see):
        index.add(document)
        documents.append(document)
        # Texts alone are a lower bound, by which a page that is too large fails early.
        _check_size(int(index.texts.size * _LETTERS_A_BYTE), max_bytes)
    if not documents:
        raise NotFoundError("there is nothing to export", hint="findling ls")
    return index, documents


def _documents(engine: Engine, filters: Filters, may_see: Callable[[Resource], bool] | None) -> Iterator[Document]:
    store = engine.writer.store
    for resource in engine.ls():
        is_part = bool(resource.path) or not engine.scope  # searches in a folder find items, too
        if is_part and passes(resource, filters) and (may_see is None or may_see(resource)):
            document = store.document(resource.rid)
            # Another process may have changed it meanwhile, and its rights with it.
            if document is not None and document.chunks and (may_see is None or may_see(document.resource)):
                yield document


def _related(engine: Engine, documents: list[Document], most: int) -> Relations:
    from findling.pipelines.export.browser_related import relate
    from findling.service.index.model_choice import instant_embedder

    instant = instant_embedder() if engine.writer.settings["semantic.instant"] else None
    return relate(documents, engine.writer.store, instant, most)


def _page(title: str, texts: str, index: str) -> str:
    script = "\n".join([_BEGIN, constants(), *(_asset(f"{name}.js") for name in _SCRIPTS), "})();"])
    style = _asset("style.css")
    policy = (
        f"default-src 'none'; script-src '{_fingerprint(script)}'; style-src '{_fingerprint(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    values = {"policy": html.escape(policy), "generator": _GENERATOR, "title": html.escape(title)}
    values |= {"style": style, "script": script, "texts": texts, "index": index}
    # In one pass: a value may look like a gap itself.
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: values[gap[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files("findling").joinpath("faces", "browser", name).read_text(encoding="utf-8")


def _fingerprint(content: str) -> str:
    """The fingerprint of a script or style in the policy; nothing else runs in the page."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise InvalidValueError(
            f"the page would be larger than {most / 1e6:,.1f} MB",
            hint="export a folder of it, raise --max-size, or export a bundle, to a folder",
        )


def _checked_target(path: Path) -> Path:
    if path.is_dir():
        raise InvalidValueError(f"{path} is a folder", hint=f"name a file, such as {path / 'search.html'}")
    if not path.absolute().parent.is_dir():
        raise PathNotFoundError(f"{path.absolute().parent} is not there", hint="create the folder first")
    try:
        with path.open("rb") as known:
            is_ours = _GENERATOR.encode() in known.read(4096)
    except FileNotFoundError:
        return path
    except OSError as error:
        raise ReadOnlyError(f"{path} cannot be read: {error.strerror}", hint="name another file") from error
    if not is_ours:
        raise InvalidValueError(f"{path} is there already and is no page of findling", hint="name another file")
    return path
