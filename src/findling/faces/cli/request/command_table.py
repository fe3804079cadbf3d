"""The commands by their groups, and those of earlier versions. Plain data, which also a thin client loads."""

from __future__ import annotations

__all__ = ["COMMANDS", "GROUPS", "MOVED", "WARM"]

GROUPS = {
    "Search": {
        "search": "commands.find.search",
        "grep": "commands.find.grep",
        "glob": "commands.find.grep",
        "refs": "commands.find.relations",
        "outline": "commands.find.relations",
        "fetch": "commands.find.document",
        "similar": "commands.find.document",
        "related": "commands.find.relations",
        "suggest": "commands.find.document",
        "recall": "commands.content.memories",
        "eval": "commands.find.eval",
    },
    "Content": {
        "add": "commands.content.items",
        "sync": "commands.content.items",
        "chats": "commands.content.chats",
        "remember": "commands.content.memories",
        "memory": "commands.content.memories",
        "glossary": "commands.content.glossary",
        "export": "commands.admin.bundles",
        "import": "commands.admin.bundles",
    },
    "Index": {
        "index": "commands.index.index",
        "refine": "commands.index.index",
        "situate": "commands.index.situate",
        "status": "commands.index.status",
        "ls": "commands.index.status",
        "forget": "commands.index.maintenance",
        "compact": "commands.index.snapshots",
        "snapshot": "commands.index.snapshots",
        "doctor": "commands.index.maintenance",
    },
    "Serve": {
        "serve": "commands.admin.serve",
        "mcp": "commands.admin.mcp",
        "agents": "commands.admin.agents",
        "watch": "commands.index.watch",
        "token": "commands.admin.tokens",
    },
    "Admin": {
        "workspaces": "commands.admin.workspaces",
        "move": "commands.admin.workspaces",
        "permissions": "commands.admin.permissions",
        "models": "commands.index.models",
        "config": "commands.admin.config",
        "completion": "main",
    },
}
"""Every command and the module that holds it, as `--help` groups them."""

COMMANDS = {name: module for commands in GROUPS.values() for name, module in commands.items()}

MOVED = {
    "explain": "findling search QUERY --explain-hit ID",
    "include": "findling config add index.include PATTERN",
    "exclude": "findling config add index.exclude PATTERN",
    "repair": "findling doctor --repair",
    "version": "findling --version",
}
"""Commands of earlier versions, and what to type instead."""

WARM = ("search", "grep", "glob", "refs", "outline", "fetch", "similar", "related", "suggest", "recall", "mcp")
"""Commands that a warm process may carry out: they ask, and ask again."""
