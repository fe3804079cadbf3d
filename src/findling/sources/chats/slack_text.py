"""What Slack writes between angle brackets, made readable: mentions, channels, links, dates."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

__all__ = ["Names", "readable"]


class Names(NamedTuple):
    """Id → name of users and of channels."""

    users: dict[str, str]
    channels: dict[str, str]


def readable(text: str, names: Names) -> str:
    """The text as people saw it: `<@U1>` is `@Ann`, `<https://x.org|docs>` is `docs (https://x.org)`."""
    return html.unescape(_MARK.sub(lambda mark: _written_out(mark, names), text)).strip()


_MARK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")


def _written_out(mark: re.Match[str], names: Names) -> str:
    kind, target, label = mark[1], mark[2], mark[3] or ""
    if kind == "@":
        return "@" + (names.users.get(target) or label or target)
    if kind == "#":
        return "#" + (names.channels.get(target) or label or target)
    if kind == "!":
        # `<!here>`, `<!subteam^S1|@team>`, `<!date^1392734382^{date}|Feb 18>`
        return label or "@" + target.partition("^")[0]
    address = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({target})" if label and label not in (target, address) else address
