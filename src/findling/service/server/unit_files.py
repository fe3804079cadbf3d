"""Files that start the daemon when its user logs in: a unit for systemd, a property list for launchd."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence

__all__ = ["KINDS", "SAVED_AS", "STARTED_BY", "launchd_plist", "systemd_unit"]

_LABEL = "findling.serve"

SAVED_AS = {"systemd": "~/.config/systemd/user/findling.service", "launchd": f"~/Library/LaunchAgents/{_LABEL}.plist"}
"""Paths where the system looks for them."""

KINDS = tuple(SAVED_AS)

STARTED_BY = {
    "systemd": "systemctl --user enable --now findling",
    "launchd": f"launchctl bootstrap gui/$UID {SAVED_AS['launchd']}",
}
"""Commands that start the daemon from them."""

_STOP_S = 20
"""Longest time to end: open requests are answered first."""


def systemd_unit(command: Sequence[str], environment: Mapping[str, str], about: str) -> str:
    """A unit of the user's own systemd. It needs loopback alone, so it waits for no network."""
    lines = [
        "[Unit]",
        f"Description=findling: search over {about.replace('%', '%%')}",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(map(_quoted_argument, command))}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in environment.items()),
        "Restart=on-failure",
        "RestartSec=5",
        "# It is no use to try again when the port is taken or another daemon runs.",
        "RestartPreventExitStatus=2",
        f"TimeoutStopSec={_STOP_S}",
        "KillMode=mixed",
        "NoNewPrivileges=yes",
        "UMask=0077",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "".join(f"{line}\n" for line in lines)


def launchd_plist(command: Sequence[str], environment: Mapping[str, str], log: str) -> str:
    """An agent of the user's own launchd; the daemon logs to the file `log`."""
    agent: dict[str, object] = {
        "Label": _LABEL,
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": _STOP_S,
        "StandardErrorPath": log,
        "Umask": 0o077,
    }
    if environment:
        agent["EnvironmentVariables"] = dict(environment)
    return plistlib.dumps(agent, sort_keys=False).decode()


def _quoted(text: str) -> str:
    """One word of a unit, with any characters."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{escaped}"'


def _quoted_argument(text: str) -> str:
    # Only in commands does systemd replace variables.
    quoted = _quoted(text.replace("$", "$$"))
    is_plain = quoted == f'"{text}"' and text and all(each.isalnum() or each in "/._-+:=@," for each in text)
    return text if is_plain else quoted
