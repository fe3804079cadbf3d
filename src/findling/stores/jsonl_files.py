"""Plain files of JSON lines: written whole or not at all, for their owner's eyes alone, and read with care."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from findling.domain.errors import DiskFullError, PathNotFoundError, ReadOnlyError

__all__ = ["Record", "create_file", "encode", "file_errors"]

Record = dict[str, Any]
"""What one line holds."""


def encode(record: object) -> bytes:
    """A value as one line of JSON without its end: readable letters, or escapes where UTF-8 has no form for them."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which names of files may hold
        return json.dumps(record, separators=(",", ":")).encode()


def create_file(path: Path) -> int:
    """A new file of mode 0600, in the place of whatever a killed process has left there; returns its descriptor."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn what the file system raises about a path into our errors; nothing else is touched."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"no space left for {path}; what was committed is kept", hint="free some space and do it again"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise ReadOnlyError(f"{path} cannot be written", hint="check who owns it and its folder") from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise PathNotFoundError(f"the folder of {path} is not there", hint="create it first") from error
        raise
