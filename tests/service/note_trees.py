"""A folder of notes whose titles are names, indexed by words and names alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import load_settings

__all__ = ["opened_notes"]


@contextmanager
def opened_notes(folder: Path, notes: Mapping[str, str]) -> Iterator[Engine]:
    """The engine of notes by their paths, each with its name as the title."""
    root = folder / "tree"
    for title, text in notes.items():
        (root / title).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{title}.md").write_text(f"# {title.rpartition('/')[2]}\n\n{text}\n")
    own = {"store.home": str(folder / "home"), "semantic.model": "off", "semantic.instant": False}
    with open_engine(root, settings=load_settings(root).override(own, "test")) as engine:
        engine.index()
        yield engine
