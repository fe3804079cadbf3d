"""Every error a caller can meet.

    FindlingError
    ├── UsageError                 the request cannot be carried out as written
    │   ├── UnknownSettingError    a setting, filter or option that does not exist
    │   ├── InvalidValueError      a value that does not fit its setting, filter or option
    │   ├── PathNotFoundError      a path that is not there
    │   ├── NotFoundError          something that is not in the index, by its name or id
    │   └── UntrustedSettingError  a project file sets what only its user may set
    ├── WorkspaceError             the workspace cannot be used
    │   ├── NotIndexedError        nothing has been indexed here yet
    │   ├── LockedError            another process is writing
    │   ├── ReadOnlyError          the workspace cannot be written
    │   ├── DiskFullError          no space left; what was committed is kept
    │   ├── QuotaError             the workspace holds as much as it may; what was committed is kept
    │   ├── CorruptError           a file of the workspace is damaged
    │   │   └── StoreDamagedError  that file is the truth itself: it is damaged, gone, or not the one it was
    │   ├── ReplacedError          another process has made the index anew while it was read
    │   ├── ManifestError          what says what the workspace is cannot be read; its content is safe
    │   └── FormatError            the workspace was written by a newer findling
    ├── WorkerError                no process can be started to read documents in
    ├── ModelError                 a model cannot be used
    │   ├── ModelNotFoundError     no model of this name is installed
    │   ├── ModelDamagedError      a model file is not what its card says
    │   └── ProviderError          a remote provider is down, refuses, or answers nonsense
    ├── CallerError                whoever calls may not do that, or not now
    │   ├── TokenError             a token is missing, unknown, revoked or too old
    │   ├── DeniedError            a token that does not allow this
    │   └── BusyError              more is asked than can be answered now
    ├── OverdueError               an answer took longer than it may
    ├── DaemonError                the daemon cannot be started, or does not answer as it should
    └── MissingExtraError          an optional dependency is not installed

Each carries a stable `code`, a message that names the thing, and a `hint`: the next step to take.
"""

from __future__ import annotations

__all__ = [
    "BusyError",
    "CallerError",
    "CorruptError",
    "DaemonError",
    "DeniedError",
    "DiskFullError",
    "FindlingError",
    "FormatError",
    "InvalidValueError",
    "LockedError",
    "ManifestError",
    "MissingExtraError",
    "ModelDamagedError",
    "ModelError",
    "ModelNotFoundError",
    "NotFoundError",
    "NotIndexedError",
    "OverdueError",
    "PathNotFoundError",
    "ProviderError",
    "QuotaError",
    "ReadOnlyError",
    "ReplacedError",
    "StoreDamagedError",
    "TokenError",
    "UnknownSettingError",
    "UntrustedSettingError",
    "UsageError",
    "WorkerError",
    "WorkspaceError",
]


class FindlingError(Exception):
    """Root of the tree: `except findling.FindlingError` catches everything findling raises on purpose."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(FindlingError):
    """The request cannot be carried out as written."""

    code = "usage"


class UnknownSettingError(UsageError):
    """A setting, filter or option that does not exist."""

    code = "unknown-setting"


class InvalidValueError(UsageError):
    """A value that does not fit its setting, filter or option."""

    code = "invalid-value"


class PathNotFoundError(UsageError):
    """A path that is not there."""

    code = "path-not-found"


class NotFoundError(UsageError):
    """Something that is not in the index, by its name or id."""

    code = "not-found"


class UntrustedSettingError(UsageError):
    """A project file sets what only its user may set."""

    code = "untrusted-setting"


class WorkspaceError(FindlingError):
    """The workspace cannot be used."""

    code = "workspace"


class NotIndexedError(WorkspaceError):
    """Nothing has been indexed here yet."""

    code = "not-indexed"


class LockedError(WorkspaceError):
    """Another process is writing."""

    code = "locked"


class ReadOnlyError(WorkspaceError):
    """The workspace cannot be written."""

    code = "read-only"


class DiskFullError(WorkspaceError):
    """No space left; what was committed is kept."""

    code = "disk-full"


class QuotaError(WorkspaceError):
    """A workspace holds as much as it may; what was committed is kept."""

    code = "quota"


class CorruptError(WorkspaceError):
    """A file of the workspace is damaged."""

    code = "corrupt"


class StoreDamagedError(CorruptError):
    """The truth itself is damaged, gone, or not the one it was."""

    code = "store-damaged"


class ReplacedError(WorkspaceError):
    """Another process has made the index anew while it was read."""

    code = "replaced"


class ManifestError(WorkspaceError):
    """What says what the workspace is cannot be read; its content is safe."""

    code = "manifest"


class FormatError(WorkspaceError):
    """The workspace was written by a newer findling."""

    code = "format"


class WorkerError(FindlingError):
    """No process can be started to read documents in."""

    code = "worker"


class ModelError(FindlingError):
    """A model cannot be used."""

    code = "model"


class ModelNotFoundError(ModelError):
    """No model of this name is installed."""

    code = "model-not-found"


class ModelDamagedError(ModelError):
    """A model file is not what its card says."""

    code = "model-damaged"


class ProviderError(ModelError):
    """A remote provider is down, refuses, or answers nonsense."""

    code = "provider"


class CallerError(FindlingError):
    """Whoever calls may not do that, or not now."""

    code = "caller"


class TokenError(CallerError):
    """A token is missing, unknown, revoked or too old."""

    code = "token"


class DeniedError(CallerError):
    """A token that does not allow this."""

    code = "denied"


class BusyError(CallerError):
    """More is asked than can be answered now."""

    code = "busy"


class OverdueError(FindlingError):
    """An answer took longer than it may."""

    code = "overdue"


class DaemonError(FindlingError):
    """The daemon cannot be started, or does not answer as it should."""

    code = "daemon"


class MissingExtraError(FindlingError):
    """An optional dependency is not installed."""

    code = "missing-extra"
