"""From settings to what pipelines and stores take."""

from __future__ import annotations

from findling.domain.backends import Scoring
from findling.domain.errors import InvalidValueError
from findling.domain.values import FIELDS
from findling.pipelines.indexing.freshness import IndexOptions
from findling.service.settings.layers import Settings
from findling.sources.files.ignore_rules import Rules
from findling.text.chunking.chunk_plan import PRESETS, ChunkPlan, check_plan

__all__ = ["check_together", "chunk_plan", "index_options", "scoring"]


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
        max_memory=settings["index.max_memory"],
        quota=tuple(settings[f"quota.{name}"] for name in ("resources", "text", "disk")),
    )


def check_together(settings: Settings) -> None:
    """Raises InvalidValueError for settings that are fine by themselves and do not go together."""
    chunk_plan(settings)


def chunk_plan(settings: Settings) -> ChunkPlan:
    """The preset, changed by what else is set. Raises InvalidValueError for numbers that do not go together."""
    plan = PRESETS[settings["chunk.preset"]]._replace(code=settings["chunk.code"])
    if settings["chunk.strategy"] != "preset":
        plan = plan._replace(strategy=settings["chunk.strategy"])
    if settings["chunk.unit"] != "preset":
        plan = plan._replace(unit=settings["chunk.unit"])
    if settings["chunk.size"]:
        plan = plan._replace(size=settings["chunk.size"])
    if settings["chunk.overlap"] >= 0:
        plan = plan._replace(overlap=settings["chunk.overlap"])
    if plan.strategy != "overlapping":
        plan = plan._replace(overlap=0)
    try:
        check_plan(plan)
    except ValueError as error:
        names = [name for name in settings if name.startswith("chunk.") and settings.origin(name) != "default"]
        origins = ", ".join(f"{name} = {settings[name]} ({settings.origin(name)})" for name in names)
        raise InvalidValueError(f"{error}: {origins}", hint="findling config show --origin") from error
    return plan


def scoring(settings: Settings) -> Scoring:
    """How the keyword leg counts."""
    weights = {name: float(settings[f"keyword.weight_{name}"]) for name in FIELDS if name != "body"}
    return Scoring(k1=settings["keyword.k1"], b=settings["keyword.b"], weights={"body": 1.0, **weights})
