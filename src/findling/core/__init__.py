"""The compiled core, if it was built: C for the hot loops. Python stays the reference and the fallback."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

__all__ = ["NativeCore", "core_problem", "native"]

_VERSION = "10"
"""As in `native.h`: a core that was built from other sources is not used."""


class NativeCore(Protocol):
    """The functions of the compiled core; `rest` answers for words that are not ASCII."""

    KERNELS: tuple[str, ...]
    """Those of `scan` that this processor can run, the one in use last."""
    VERSION: str

    def index_form(self, text: str, rest: Mapping[str, str]) -> str: ...

    def count_bytes(self, text: str, wanted: bytes, most: int) -> int: ...

    def code_pieces(
        self,
        text: str,
        definitions: list[Any],
        size: int,
        attached: Callable[[int], int],
        after: Callable[[int, int, int], int],
    ) -> list[tuple[int, int, tuple[str, ...]]]: ...

    def chunk_rows(
        self, text: str, pieces: list[Any], lines: list[int] | None, title: str, bits: int, repeat: int
    ) -> list[tuple[Any, ...]]: ...

    def matching_spans(
        self,
        text: str,
        wanted: Collection[str],
        rest: Callable[[str, int], Sequence[tuple[int, int, list[str]]]],
    ) -> list[tuple[int, int, list[str]]]: ...

    def sentences(self, text: str, wrapped: int, spaces: int, longest: int) -> tuple[list[int], ...]: ...

    def vocabulary(self, entries: bytes) -> object: ...

    def word_pieces(self, vocabulary: object, word: str) -> list[int]: ...

    def count_tokens(self, vocabulary: object, text: str, rest: Mapping[bytes, Sequence[int]]) -> int: ...

    def instant_sums(
        self, vocabulary: object, table: Any, offset: int, texts: Sequence[str], rest: Mapping[bytes, Sequence[int]]
    ) -> bytes: ...

    def instant_codes(
        self, vocabulary: object, table: Any, offset: int, texts: Sequence[str], rest: Mapping[bytes, Sequence[int]]
    ) -> list[bytes]: ...

    def unit_rows(self, codes: bytes, size: int) -> tuple[bytes, bytes]: ...

    def scan(self, query: Any, codes: Any, scales: Any, scale: float, out: Any, kernel: int = ...) -> None: ...

    def differing_bits(self, query: Any, signs: Any, out: Any) -> None: ...

    def trigram_form(self, folded: str) -> str: ...


def _load() -> tuple[NativeCore | None, str]:
    """The core, or the reason why there is none."""
    if os.environ.get("FINDLING_CORE") == "off":
        return None, "switched off by FINDLING_CORE=off"
    try:
        core = cast(NativeCore, import_module("findling.core._native"))
    except ImportError as error:
        reason = "it was not built" if isinstance(error, ModuleNotFoundError) else f"it cannot be loaded: {error}"
        return None, f"{reason}; install a C compiler, then findling again"
    if core.VERSION != _VERSION:
        return None, "it was built from other sources; install findling again"
    return core, ""


native, core_problem = _load()
