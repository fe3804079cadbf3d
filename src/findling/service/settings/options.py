"""From settings to what pipelines and stores take."""

from __future__ import annotations

from findling.domain.errors import InvalidValueError
from findling.pipelines.indexing.freshness import IndexOptions
from findling.service.settings.layers import Settings
from findling.sources.files.rule_patterns import Rules
from findling.text.chunking.chunk_plan import ChunkPlan, read_preset

__all__ = ["check_together", "chunk_plan", "index_options"]


def index_options(settings: Settings, *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> IndexOptions:
    """How files become documents; `include` and `exclude` add to the user's patterns.

    Raises InvalidValueError for chunk settings that do not go together.
    """
    rules = Rules(
        include=(*settings["index.include"], *include),
        exclude=(*settings["index.exclude"], *exclude),
        hidden=settings["index.hidden"],
        follow_symlinks=settings["index.follow_symlinks"],
        use_ignore_files=settings["index.use_ignore_files"],
        max_file_size=settings["index.max_file_size"],
        max_document_size=settings["index.max_document_size"],
        # What a project includes may be sent to the user's provider.
        untrusted=() if settings.project_file("index.include") is None else settings["index.include"],
    )
    return IndexOptions(
        rules,
        chunk_plan(settings),
        max_text=settings["index.max_text"],
        batch_bytes=settings["index.batch_bytes"],
        workers=settings["index.workers"],
        max_seconds=settings["index.max_seconds"],
        quota=tuple(settings[f"quota.{name}"] for name in ("resources", "text", "disk")),
    )


def check_together(settings: Settings) -> None:
    """Raises InvalidValueError for settings that are fine by themselves and do not go together."""
    chunk_plan(settings)


def chunk_plan(settings: Settings) -> ChunkPlan:
    """How texts are cut. Raises InvalidValueError, naming the origin, for a preset that is none."""
    chosen = settings["chunk.preset"]
    try:
        return read_preset(chosen)._replace(code=settings["chunk.code"])
    except ValueError as error:
        origin = settings.origin("chunk.preset")
        raise InvalidValueError(f"{origin}: chunk.preset: {error}", hint="findling config show --origin") from error
