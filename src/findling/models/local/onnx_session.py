"""A model file opened with onnxruntime: the tokens of one text in, one array out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.domain.errors import MissingExtraError, ModelError
from findling.domain.strangers import silence_telemetry
from findling.models.local.int8_graph import to_int8_arithmetic

__all__ = ["OnnxSession", "Row", "open_session"]


class Row(NamedTuple):
    """The tokens of one text or pair; those from `second` on, if it is set, belong to the second text of a pair."""

    ids: Sequence[int]
    second: int = 0


class OnnxSession:
    """An open model. Any number of threads may `run` it at once; each run takes one core.

    A run reads one row, without padding: scales of 8-bit arithmetic span all that is read in a run, and even sums of
    floats are added up in another order. What a text gives must not depend on its company, which may be secret.
    """

    def __init__(self, session: Any, outputs: Sequence[str]) -> None:
        self._session = session
        self._inputs = [given.name for given in session.get_inputs()]
        available = [given.name for given in session.get_outputs()]
        self._output = next((name for name in outputs if name in available), available[0])

    def run(self, row: Row) -> NDArray[np.float32]:
        """What the model says to a row.

        Raises ModelError when the model takes inputs that it is not known how to fill, or fails.
        """
        ids = np.array([row.ids], dtype=np.int64)
        types = np.zeros_like(ids)
        if row.second:
            types[0, row.second :] = 1
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        try:
            result = self._session.run([self._output], {name: feed[name] for name in self._inputs})[0]
        except KeyError as error:
            raise ModelError(f"the model wants an input that findling does not know: {error}") from error
        except Exception as error:  # onnxruntime's errors share no base class below Exception
            raise ModelError(f"the model failed: {error}", hint="findling models test") from error
        return np.asarray(result[0], dtype=np.float32)


def open_session(model: Path, outputs: Sequence[str], prepared: Path | None = None) -> OnnxSession:
    """Open a model file; the first of `outputs` that it has is the one that is read.

    A model with stored 8-bit weights is opened in the form that calculates with them, which is kept as the file
    `prepared`. Raises MissingExtraError without onnxruntime, ModelError for a file that is no model.
    """
    silence_telemetry()
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("local models need onnxruntime", hint="pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Without this a thread that waits keeps its core busy.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _adds_products_exactly():
        options.add_session_config_entry("session.x64quantprecision", "1")
    # Texts differ in length, so a plan of memory for one shape is of no use to the next.
    options.enable_mem_pattern = False
    for last_try in (False, True):
        try:
            source = _prepared(model, prepared)
            session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
            break
        except Exception as error:  # onnxruntime's errors share no base class below Exception
            if last_try or prepared is None or not prepared.is_file():
                raise ModelError(f"{model} cannot be opened: {error}", hint="findling models list") from error
            # A power cut may have left half of it; the model itself is what counts.
            prepared.unlink(missing_ok=True)
    return OnnxSession(session, outputs)


def _adds_products_exactly() -> bool:
    """Whether the processor adds 8-bit products without overflow: all do but x86 without the VNNI instructions.

    Where this cannot be told, onnxruntime is made to use the sums that never overflow, at half the speed.
    """
    import platform

    if platform.machine().lower() not in ("x86_64", "amd64", "i386", "i686"):
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False


def _prepared(model: Path, prepared: Path | None) -> str | bytes:
    """The file to open, or the bytes of one where it cannot be kept."""
    if prepared is None:
        return str(model)
    if prepared.is_file():
        return str(prepared)
    faster = to_int8_arithmetic(model.read_bytes())
    if faster is None:
        return str(model)
    with suppress(OSError):  # a folder that cannot be written costs the next process the same 70 ms
        prepared.parent.mkdir(parents=True, exist_ok=True)
        fresh = prepared.with_name(f"{prepared.name}.{os.getpid()}")
        fresh.write_bytes(faster)
        fresh.replace(prepared)
    return faster
