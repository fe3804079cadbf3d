"""Every error a caller can meet: each has a stable `code`, a message that names the thing, and a `hint` to act on."""

from __future__ import annotations


class FindlingError(Exception):
    """Root of the tree: `except findling.FindlingError` catches everything findling raises on purpose."""

    code = "error"

    def __init_subclass__(cls) -> None:
        """Derive the code from the name: `NotFoundError` has `not-found`. A class elsewhere inherits its code."""
        if cls.__module__ == __name__:
            name = cls.__name__.removesuffix("Error")
            cls.code = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(FindlingError):
    """The request cannot be carried out as written."""


class UnknownSettingError(UsageError):
    """A setting, filter or option that does not exist."""


class InvalidValueError(UsageError):
    """A value that does not fit its setting, filter or option."""


class PathNotFoundError(UsageError):
    """A path that is not there."""


class NotFoundError(UsageError):
    """Something that is not in the index, by its name or id."""


class UntrustedSettingError(UsageError):
    """A project file sets what only its user may set."""


class WorkspaceError(FindlingError):
    """The workspace cannot be used."""


class NotIndexedError(WorkspaceError):
    """Nothing has been indexed here yet."""


class LockedError(WorkspaceError):
    """Another process is writing."""


class ReadOnlyError(WorkspaceError):
    """The workspace cannot be written."""


class DiskFullError(WorkspaceError):
    """No space left; what was committed is kept."""


class QuotaError(WorkspaceError):
    """A workspace holds as much as it may; what was committed is kept."""


class CorruptError(WorkspaceError):
    """A file of the workspace is damaged."""


class StoreDamagedError(CorruptError):
    """The truth itself is damaged, gone, or not the one it was."""


class ReplacedError(WorkspaceError):
    """Another process has rebuilt the index while it was read."""


class UnreachableError(WorkspaceError):
    """The server that holds the workspace does not answer, or has no connection left."""


class ManifestError(WorkspaceError):
    """The description of the workspace cannot be read; its content is safe."""


class FormatError(WorkspaceError):
    """The workspace was written by a newer findling."""


class WorkerError(FindlingError):
    """No process can be started to read documents in."""


class ModelError(FindlingError):
    """A model cannot be used."""


class ModelNotFoundError(ModelError):
    """No model of this name is installed."""


class ModelDamagedError(ModelError):
    """A model file is not what its card says."""


class ProviderError(ModelError):
    """A remote provider is down, refuses, or answers nonsense."""


class CallerError(FindlingError):
    """The caller may not do that, or not now."""


class TokenError(CallerError):
    """A token is missing, unknown, revoked or too old."""


class DeniedError(CallerError):
    """A token that does not allow this."""


class BusyError(CallerError):
    """More is asked than can be answered now."""


class OverdueError(FindlingError):
    """An answer took longer than it may."""


class DaemonError(FindlingError):
    """The daemon cannot be started, or does not answer as it should."""


class MissingExtraError(FindlingError):
    """An optional dependency is not installed."""
