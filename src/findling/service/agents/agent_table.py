"""The agents whose settings can be written: one row each, from which everything else follows."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SCOPES = ("user", "project")


class AgentFiles(NamedTuple):
    """The files of an agent in one scope: settings, of which the first that exists counts, and instructions."""

    settings: tuple[str, ...]
    instructions: str = ""


class Agent(NamedTuple):
    """An agent: the files of each scope, the keys above an entry, its shape, and signs of its presence.

    `folder` stands for the folder of the project in an entry for all of them: nothing where servers are started in it,
    a variable of the agent, or None where the entry must name one folder.
    """

    title: str
    user: AgentFiles
    project: AgentFiles | None
    signs: tuple[str, ...]
    keys: tuple[str, ...] = ("mcpServers",)
    shape: Mapping[str, Any] = {"command": "{program}", "args": "{arguments}"}
    format: str = "json"
    folder: str | None = ""

    def files(self, scope: str) -> AgentFiles | None:
        """The files of a scope, None for one that the agent does not know."""
        return self.user if scope == "user" else self.project


_VSCODE = "{app}/Code/User"
_WORKSPACE = "${workspaceFolder}"
_XDG = "${XDG_CONFIG_HOME:-~/.config}"

AGENTS: Mapping[str, Agent] = {
    "claude": Agent(
        "Claude Code",
        AgentFiles(("${CLAUDE_CONFIG_DIR:-~}/.claude.json",), "${CLAUDE_CONFIG_DIR:-~/.claude}/CLAUDE.md"),
        AgentFiles((".mcp.json",), "CLAUDE.md"),
        ("claude", "~/.claude", "~/.claude.json"),
    ),
    "claude-desktop": Agent(
        "Claude Desktop",
        AgentFiles(("{app}/Claude/claude_desktop_config.json",)),
        None,
        ("{app}/Claude",),
        folder=None,
    ),
    "codex": Agent(
        "Codex",
        AgentFiles(("${CODEX_HOME:-~/.codex}/config.toml",), "${CODEX_HOME:-~/.codex}/AGENTS.md"),
        AgentFiles((".codex/config.toml",), "AGENTS.md"),
        ("codex", "${CODEX_HOME:-~/.codex}"),
        keys=("mcp_servers",),
        format="toml",
    ),
    "cursor": Agent(
        "Cursor",
        AgentFiles(("~/.cursor/mcp.json",)),
        AgentFiles((".cursor/mcp.json",), "AGENTS.md"),
        ("cursor", "~/.cursor"),
        folder=_WORKSPACE,
    ),
    "vscode": Agent(
        "VS Code",
        AgentFiles((f"{_VSCODE}/mcp.json",)),
        AgentFiles((".vscode/mcp.json",), ".github/copilot-instructions.md"),
        ("code", _VSCODE),
        keys=("servers",),
        shape={"type": "stdio", "command": "{program}", "args": "{arguments}"},
        folder=_WORKSPACE,
    ),
    "windsurf": Agent(
        "Windsurf",
        AgentFiles(("~/.codeium/windsurf/mcp_config.json",), "~/.codeium/windsurf/memories/global_rules.md"),
        None,
        ("windsurf", "~/.codeium/windsurf"),
        folder=None,
    ),
    "zed": Agent(
        "Zed",
        AgentFiles(("{config}/zed/settings.json",), "{config}/zed/AGENTS.md"),
        None,
        ("zed", "{config}/zed"),
        keys=("context_servers",),
        shape={"command": "{program}", "args": "{arguments}", "env": {}},
    ),
    "gemini": Agent(
        "Gemini CLI",
        AgentFiles(("~/.gemini/settings.json",), "~/.gemini/GEMINI.md"),
        AgentFiles((".gemini/settings.json",), "GEMINI.md"),
        ("gemini", "~/.gemini"),
    ),
    "opencode": Agent(
        "OpenCode",
        AgentFiles((f"{_XDG}/opencode/opencode.json", f"{_XDG}/opencode/opencode.jsonc"), f"{_XDG}/opencode/AGENTS.md"),
        AgentFiles(("opencode.json", "opencode.jsonc"), "AGENTS.md"),
        ("opencode", f"{_XDG}/opencode"),
        keys=("mcp",),
        shape={"type": "local", "command": "{command}", "enabled": True},
    ),
    "cline": Agent(
        "Cline",
        AgentFiles(("~/.cline/data/settings/cline_mcp_settings.json",), "~/.cline/rules/findling.md"),
        None,
        ("cline", "~/.cline"),
        folder=None,
    ),
    "roo": Agent(
        "Roo Code",
        AgentFiles(
            (f"{_VSCODE}/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",),
            "~/.roo/rules/findling.md",
        ),
        AgentFiles((".roo/mcp.json",), "AGENTS.md"),
        (f"{_VSCODE}/globalStorage/rooveterinaryinc.roo-cline",),
        folder=None,
    ),
    "continue": Agent(
        "Continue",
        AgentFiles(("~/.continue/mcpServers/findling.json",), "~/.continue/rules/findling.md"),
        AgentFiles((".continue/mcpServers/findling.json",), ".continue/rules/findling.md"),
        ("cn", "~/.continue"),
    ),
    "goose": Agent(
        "Goose",
        AgentFiles(("{goose}/config.yaml",), "{goose}/.goosehints"),
        None,
        ("goose", "{goose}"),
        keys=("extensions",),
        shape={
            "name": "findling",
            "description": "Search of the project's files, chats and decisions",
            "type": "stdio",
            "cmd": "{program}",
            "args": "{arguments}",
            "enabled": True,
            "timeout": 300,
        },
        format="yaml",
    ),
    "amp": Agent(
        "Amp",
        AgentFiles(("~/.config/amp/settings.json", "~/.config/amp/settings.jsonc"), "~/.config/amp/AGENTS.md"),
        AgentFiles((".amp/settings.json", ".amp/settings.jsonc"), "AGENTS.md"),
        ("amp", "~/.config/amp"),
        keys=("amp.mcpServers",),
    ),
    "kiro": Agent(
        "Kiro",
        AgentFiles(("~/.kiro/settings/mcp.json",), "~/.kiro/steering/findling.md"),
        AgentFiles((".kiro/settings/mcp.json",), ".kiro/steering/findling.md"),
        ("kiro", "kiro-cli", "~/.kiro"),
        folder=None,
    ),
    "qwen": Agent(
        "Qwen Code",
        AgentFiles(("~/.qwen/settings.json",), "~/.qwen/QWEN.md"),
        AgentFiles((".qwen/settings.json",), "QWEN.md"),
        ("qwen", "~/.qwen"),
    ),
    "junie": Agent(
        "JetBrains Junie",
        AgentFiles(("~/.junie/mcp/mcp.json",)),
        AgentFiles((".junie/mcp/mcp.json",), ".junie/AGENTS.md"),
        ("junie", "~/.junie"),
        folder=None,
    ),
    "copilot": Agent(
        "Copilot CLI",
        AgentFiles(
            ("${COPILOT_HOME:-~/.copilot}/mcp-config.json",), "${COPILOT_HOME:-~/.copilot}/copilot-instructions.md"
        ),
        AgentFiles((".github/mcp.json",), ".github/copilot-instructions.md"),
        ("copilot", "${COPILOT_HOME:-~/.copilot}"),
        shape={"type": "local", "command": "{program}", "args": "{arguments}", "tools": ["*"]},
    ),
}

_FOLDERS = {
    "win32": {"app": "${APPDATA:-~/AppData/Roaming}", "config": "${APPDATA:-~/AppData/Roaming}"},
    "darwin": {"app": "~/Library/Application Support", "config": _XDG},
    "linux": {"app": _XDG, "config": _XDG},
}
"""For each platform, where applications keep settings, and where tools for the shell do."""


def place(written: str, root: Path, platform: str = sys.platform) -> Path:
    """A path of the table on this machine; one that is relative lies in the folder of the project."""
    folders = _FOLDERS.get(platform, _FOLDERS["linux"])
    goose = f"{folders['config']}/Block/goose/config" if platform == "win32" else f"{folders['config']}/goose"
    filled = written.replace("{goose}", goose)
    for name, folder in folders.items():
        filled = filled.replace(f"{{{name}}}", folder)
    filled = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: os.environ.get(found[1]) or found[2], filled)
    return root / Path(filled).expanduser()


def agents_folder(home: Path) -> Path:
    """The folder in a home for what concerns agents; no workspace can be called so."""
    return home / ".agents"


def places(name: str) -> str:
    """The files that may hold the entry of an agent, in words."""
    agent = AGENTS[name]
    where = str(place(agent.user.settings[0], Path("/")))
    short = where.replace(str(Path.home()), "~", 1)
    return f"{short}, or {agent.project.settings[0]} of the project" if agent.project else short


def seen_here(agent: Agent) -> bool:
    """Whether an agent is on this machine: its program, or a folder of its own."""
    return any(
        place(sign, Path("/")).exists() if sign[0] in "{$~" else shutil.which(sign) is not None for sign in agent.signs
    )


def entry_of(agent: Agent, command: Sequence[str]) -> dict[str, Any]:
    """The entry under which an agent starts a command."""
    parts = {"{program}": command[0], "{arguments}": list(command[1:]), "{command}": list(command)}
    return {name: parts.get(each, each) if isinstance(each, str) else each for name, each in agent.shape.items()}


def is_own_entry(entry: object) -> bool:
    """Whether an entry starts the MCP server of findling, from whichever folder it was installed in."""
    if not isinstance(entry, dict):
        return False
    parts = [entry.get(name) for name in ("command", "cmd", "args")]
    words = [str(word) for part in parts for word in (part if isinstance(part, list) else [part]) if word is not None]
    is_program = bool(words) and re.fullmatch(r"findling(?:\.exe)?", re.split(r"[\\/]", words[0])[-1], re.IGNORECASE)
    is_module = words[1:4] == ["-P", "-m", "findling"]
    rest = words[1:] if is_program else words[4:] if is_module else []
    return rest[:1] == ["mcp"]
