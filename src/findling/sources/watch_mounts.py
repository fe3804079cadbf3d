"""Which file systems do not tell of every change: those that other machines write to."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["network_file_system"]

_NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda davfs fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs gfs2 glusterfs gpfs lustre"
    " ncpfs nfs nfs4 ocfs2 orangefs prl_fs smb3 smbfs vboxsf virtiofs vmhgfs fuse.vmhgfs-fuse".split()
)
"""What Linux calls file systems whose files change on another machine, or on the host of a virtual one."""

_MOUNTS = Path("/proc/self/mountinfo")


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """What the network file system that holds a path is called; empty for another one, or where nobody can tell."""
    try:
        lines = os.fsdecode(mounts.read_bytes()).splitlines()
    except OSError:  # not Linux
        return ""
    found, longest = "", -1
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point, kind = _unescaped(fields.split(" ")[4]), rest.split(" ")[0]
        # The last of several mounts on one point is the one that is seen.
        if len(point) >= longest and path.is_relative_to(point):
            found, longest = kind, len(point)
    return found if found in _NETWORK else ""


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
