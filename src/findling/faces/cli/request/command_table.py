"""The commands by their groups, and those of earlier versions. Plain data, which also a thin client loads."""

from __future__ import annotations

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
        "situate": "commands.index.index",
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
        "permissions": "commands.admin.permissions",
        "models": "commands.index.models",
        "config": "commands.admin.config",
        "completion": "main",
    },
}
"""Every command and the module that holds it, as `--help` groups them."""

FREQUENT = frozenset("search grep fetch recall remember chats index status doctor agents serve config".split())
"""The commands that `--help` lists; `--help --all` lists all of them."""

COMMANDS = {name: module for commands in GROUPS.values() for name, module in commands.items()}

MOVED = {
    "explain": "findling search QUERY --explain-hit ID",
    "include": "findling config add index.include PATTERN",
    "exclude": "findling config add index.exclude PATTERN",
    "move": "findling workspaces set WORKSPACE --to URL, or --to home",
    "repair": "findling doctor --repair",
    "version": "findling --version",
}
"""Commands of earlier versions, and what to type instead."""

_ASKED = "findling search QUERY --set"

_WRITTEN = 'findling search "QUERY'

GONE = {
    "search": {
        **{
            f"--{name}": f"{_ASKED} search.{name.replace('-', '_')}=VALUE"
            for name in ("fusion", "alpha", "graph", "expand", "min-score", "words", "group")
        },
        "--no-relax": f"{_ASKED} search.relax=false, or --profile strict",
        "--history": f"{_ASKED} search.heads=false",
        "--color": f"{_ASKED} output.color=VALUE",
        "--no-daemon": f"{_ASKED} serve.use=never",
        "--jsonl": "findling search QUERY --format jsonl",
        "--all": "findling search QUERY --facet file",
        **dict.fromkeys(("-y", "--yes"), "findling index PATH --yes, then search"),
        **dict.fromkeys(("-E", "--exclude-ext"), f'{_WRITTEN} -ext:EXT"'),
        **dict.fromkeys(("-x", "--exclude-pattern"), f'{_WRITTEN} -/REGEX/", or -WORD'),
        **{f"--{name}": f'{_WRITTEN} {name}:VALUE"' for name in "lang tag author after before".split()},
    },
    "eval": {"--depth": "findling eval --set search.limit=N", "--plot": "findling eval --save FILE.svg"},
    "import": {
        f"--{name}": f"findling import --from-postgres URL --mapping {name}={'TABLE' if name == 'table' else 'COLUMN'}"
        for name in ("table", "text", "title", "time", "tags", "id", "cursor")
    },
    "refine": {"--set": "FINDLING_SETTING=VALUE findling refine, such as FINDLING_SEMANTIC_MODEL=none"},
    "glossary list": {f"--{which}": f"findling glossary list {which}" for which in ("all", "pending", "export")},
    "agents install": {"--path": "cd FOLDER, then findling agents install"},
    "export": {"--html": "findling export TARGET.html"},
    "mcp": {"--print-config": "findling mcp --print AGENT", "--print-skill": "findling mcp --print skill"},
    "serve": {"--host": "findling serve --set serve.host=ADDRESS"},
    "snapshot restore": {"--from": "findling snapshot restore ./FILE"},
    "snapshot create": {"--keep": "findling config set snapshot.keep N"},
    "status": {f"--{which}": f"findling status --list {which}" for which in ("skipped", "failed")},
    "token create": {"--owner": "findling token create NAME --as owner"},
    "config show": {"--origin": "findling config show, which says it always"},
    "workspaces create": {"--shared": "findling workspaces set NAME --shared, once it is made"},
    "workspaces set": {
        f"--quota-{what}": f"findling workspaces set NAME --quota {what}=MOST" for what in ("resources", "text", "disk")
    },
}
"""Options of earlier versions by their commands, and what to type instead."""

WARM = ("search", "grep", "glob", "refs", "outline", "fetch", "similar", "related", "suggest", "recall", "mcp")
"""Commands that a warm process may carry out: they ask, and ask again."""
