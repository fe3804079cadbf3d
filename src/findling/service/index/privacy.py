"""Privacy: the resources that may leave the machine."""

from __future__ import annotations

from collections.abc import Callable

from findling.domain.resources import Resource
from findling.service.settings.settings import Settings

__all__ = ["PRIVATE_TAG", "may_send"]

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
