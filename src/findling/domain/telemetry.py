"""Keeping libraries from reporting to their makers: nothing leaves the machine unless its user has chosen that."""

from __future__ import annotations

import os

__all__ = ["silence_telemetry"]


def silence_telemetry() -> None:
    """To be called before onnxruntime is imported, which (since 1.31) otherwise notes every process and reports it."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
