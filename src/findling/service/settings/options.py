"""From settings to the options of pipelines and stores."""

from __future__ import annotations

from findling.domain.errors import InvalidValueError
from findling.pipelines.indexing.freshness import IndexOptions
from findling.service.settings.layers import Settings
from findling.sources.files.rule_patterns import Rules
from findling.text.chunking.chunk_plan import ChunkPlan, read_preset

__all__ = ["chunk_plan", "index_options"]


def index_options(settings: Settings, *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> IndexOptions:
    """Options of an index run; `include` and `exclude` add to the user's patterns. Raises as `chunk_plan` does."""
    own = {name: settings[f"index.{name}"] for name in ("hidden", "follow_symlinks", "use_ignore_files")}
    rules = Rules(
        include=(*settings["index.include"], *include),
        exclude=(*settings["index.exclude"], *exclude),
        max_file_size=settings["index.max_file_size"],
        max_document_size=settings["index.max_document_size"],
        # What a project includes may be sent to the user's provider.
        untrusted=() if settings.project_file("index.include") is None else settings["index.include"],
        **own,
    )
    limits = {name: settings[f"index.{name}"] for name in ("max_text", "batch_bytes", "workers", "max_seconds")}
    quota = tuple(settings[f"quota.{name}"] for name in ("resources", "text", "disk"))
    return IndexOptions(rules, chunk_plan(settings), quota=quota, **limits)


def chunk_plan(settings: Settings) -> ChunkPlan:
    """The plan that cuts texts. Raises InvalidValueError, naming the origin, for a preset that is none."""
    try:
        return read_preset(settings["chunk.preset"])._replace(code=settings["chunk.code"])
    except ValueError as error:
        origin = settings.origin("chunk.preset")
        raise InvalidValueError(f"{origin}: chunk.preset: {error}", hint="findling config show --origin") from error
