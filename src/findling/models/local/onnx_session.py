"""A model file opened with onnxruntime: the tokens of one text in, one array out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from findling.domain.budgets import current_budget
from findling.domain.errors import MissingExtraError, ModelError
from findling.models.local.int8_graph import to_int8_arithmetic
from findling.models.locating import ModelFiles, keep, verified_sha256
from findling.text.analysis.wordpieces import Vocabulary, WordPieces, bert_vocabulary, piece_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TextEncoder(NamedTuple):
    """`ids` gives the first so many tokens of a text; `start`, `middle` and `end` are put around one or two texts."""

    ids: Callable[[str, int], list[int]]
    start: tuple[int, ...]
    middle: tuple[int, ...]
    end: tuple[int, ...]


def load_encoder(tokenizer_file: Path | None) -> TextEncoder:
    """The encoder that a `tokenizer.json` describes; BERT's own uncased one without a file.

    Raises ModelError for a file that is damaged, MissingExtraError for one that needs `tokenizers` when it is missing.
    """
    if tokenizer_file is None:
        return _bert_encoder(bert_vocabulary().numbers, piece_ids)
    try:
        description = json.loads(tokenizer_file.read_bytes())
        if not _is_bert_uncased(description):
            return _library_encoder(tokenizer_file)
        numbers = description["model"]["vocab"]
        if not all(type(number) is int and 0 <= number < 1 << 31 for number in numbers.values()):
            raise ValueError("its vocabulary holds what is no number of a token")
        if numbers == bert_vocabulary().numbers:
            return _bert_encoder(numbers, piece_ids)
        return _bert_encoder(numbers, WordPieces(Vocabulary(numbers, description["model"]["unk_token"])).ids)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{tokenizer_file} cannot be read: {error!r}", hint="findling models pull NAME") from error


def _bert_encoder(numbers: Mapping[str, int], ids: Callable[[str, int], list[int]]) -> TextEncoder:
    end = (numbers["[SEP]"],)
    return TextEncoder(ids, (numbers["[CLS]"],), end, end)


def _is_bert_uncased(description: dict[str, Any]) -> bool:
    """Whether the file describes exactly what `findling.text.analysis.wordpieces` does."""
    model, normalizer = description["model"], description.get("normalizer") or {}
    return (
        model.get("type", "WordPiece") == "WordPiece"
        and model.get("continuing_subword_prefix", "##") == "##"
        and model.get("max_input_chars_per_word", 100) == 100
        and {"[CLS]", "[SEP]"} <= set(model["vocab"])
        and normalizer.get("type") == "BertNormalizer"
        and all(normalizer.get(step) for step in ("clean_text", "handle_chinese_chars", "lowercase"))
        and normalizer.get("strip_accents") is not False
        and (description.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
    )


def _library_encoder(tokenizer_file: Path) -> TextEncoder:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(
            f"{tokenizer_file} needs the package tokenizers", hint="pip install 'findling[models]'"
        ) from error
    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        pair = tokenizer.encode("a", "a")
    except Exception as error:  # the library raises bare Exception for every file it cannot read
        raise ModelError(f"{tokenizer_file} cannot be read: {error}", hint="findling models pull NAME") from error

    def ids(text: str, limit: int) -> list[int]:
        # A lone surrogate is no text to the library.
        readable = text.encode("utf-8", "ignore").decode()
        return list(tokenizer.encode(readable, add_special_tokens=False).ids[:limit])

    return TextEncoder(ids, *_special_tokens(pair.ids, pair.special_tokens_mask))


def _special_tokens(ids: list[int], is_special: list[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Tokens before, between and behind two texts."""
    plain = [place for place, special in enumerate(is_special) if not special]
    gaps = [place for place in range(plain[0], plain[-1]) if is_special[place]]
    return tuple(ids[: plain[0]]), tuple(ids[place] for place in gaps), tuple(ids[plain[-1] + 1 :])


class TokenRow(NamedTuple):
    """The tokens of one text or pair; those from `second` on, if it is set, belong to the second text of a pair."""

    ids: Sequence[int]
    second: int = 0


class OnnxSession:
    """An open model. Any number of threads may `run` it at once; each run takes one core.

    A run reads one row, without padding: scales of 8-bit arithmetic span a whole run, and sums of floats depend on
    their order. What a text gives must not depend on its company, which may be secret.
    """

    def __init__(self, session: Any, outputs: Sequence[str]) -> None:
        self._session = session
        self._inputs = [given.name for given in session.get_inputs()]
        available = [given.name for given in session.get_outputs()]
        self._output = next((name for name in outputs if name in available), available[0])

    def run(self, row: TokenRow) -> NDArray[np.float32]:
        """Output of the model for a row.

        Raises ModelError when the model fails, or takes an unknown input.
        """
        import numpy as np  # which the name of a model does not need

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
            raise ModelError(f"the model failed: {error}", hint="findling models use --try") from error
        return np.asarray(result[0], dtype=np.float32)


def _open_session(model: Path, outputs: Sequence[str], prepared: Path | None = None) -> OnnxSession:
    """Open a model file; the first of `outputs` that it has is the one that is read.

    A model with stored 8-bit weights is opened in the form that calculates with them, which is kept as the file
    `prepared`. Raises MissingExtraError without onnxruntime, ModelError for a file that is no model.
    """
    onnxruntime = _load_onnxruntime()
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


def _load_onnxruntime() -> Any:
    """The module, which must not report every process to its makers, as it does since 1.31. Nothing else imports it.

    The variable counts at the import: without it, a thread and a folder in the user's home are there afterwards.
    Raises MissingExtraError.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("local models need onnxruntime", hint="pip install onnxruntime") from error
    if hasattr(onnxruntime, "disable_telemetry_events"):
        onnxruntime.disable_telemetry_events()
    return onnxruntime


def _adds_products_exactly() -> bool:
    """Whether the processor adds 8-bit products without overflow: all do but x86 without the VNNI instructions.

    Where this is unknown, onnxruntime uses the sums that never overflow, at half the speed.
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
    keep(prepared, faster)  # 70 ms
    return faster


_OPEN: WeakValueDictionary[tuple[object, ...], OnnxSession] = WeakValueDictionary()
_OPENING = Lock()
"""The sessions of this process: the workspaces of a daemon share 60 MB and 0.2 s of CPU time for each model."""


class LocalModel:
    """Session and encoder of one model; `threads` 0 takes every core, `exact` keeps its arithmetic as it is stored.

    Raises ModelDamagedError when the file is not the one its card names.
    """

    def __init__(
        self, files: ModelFiles, models_home: Path, outputs: Sequence[str], *, threads: int = 0, exact: bool = False
    ) -> None:
        self.sha256 = verified_sha256(files, models_home)
        self._files = files
        self._threads = threads or os.cpu_count() or 1
        prepared = None if exact else models_home / "prepared" / f"{self.sha256[:16]}.onnx"
        self._recipe = _Recipe(self.sha256, tuple(outputs), files.model, prepared)
        self._session: OnnxSession | None = None
        self._encoder: TextEncoder | None = None
        self._lock = Lock()

    @property
    def encoder(self) -> TextEncoder:
        """Tokenizer of the model."""
        with self._lock:
            if self._encoder is None:
                self._encoder = load_encoder(self._files.tokenizer)
            return self._encoder

    def read(self, rows: Sequence[TokenRow]) -> Iterator[NDArray[np.float32]]:
        """Outputs of the model for the rows, in order.

        Each row takes one core: several rows at once lose less than one row on several cores.
        """
        session, budget = self._opened(), current_budget()

        def run(row: TokenRow) -> NDArray[np.float32]:
            started = time.thread_time()
            try:
                return session.run(row)
            finally:
                budget.charge(time.thread_time() - started)

        threads = min(self._threads, len(rows))
        if threads <= 1:
            yield from map(session.run, rows)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(run, rows)

    def close(self) -> None:
        """Give the model's memory back; the next text opens it again."""
        with self._lock:
            self._session = None

    def _opened(self) -> OnnxSession:
        with self._lock:
            if self._session is None:
                self._session = _share(self._recipe)
            return self._session


class _Recipe(NamedTuple):
    """All that a session is opened from. The contents of the file count, not its path."""

    sha256: str
    outputs: tuple[str, ...]
    model: Path
    prepared: Path | None


_OPENED: dict[tuple[object, ...], _Recipe] = {}


def _share(recipe: _Recipe) -> OnnxSession:
    """The one session of a recipe in this process, opened if it has to be."""
    key = recipe.sha256, *recipe.outputs, recipe.prepared is None
    with _OPENING:
        if (session := _OPEN.get(key)) is None:
            threads = _count_threads()
            session = _OPEN[key] = _open_session(recipe.model, recipe.outputs, recipe.prepared)
            if _count_threads() == threads:
                _OPENED[key] = recipe
        return session


def _count_threads() -> int:
    """The threads of this process, those of libraries included; 0 where the system does not list them."""
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return 0


def opened_recipes() -> list[str]:
    """The sessions that this process has opened, each as JSON that `keep_open` takes in another process.

    A session that has started a thread is not among them: a process that forks could not keep it open.
    """
    return [json.dumps(recipe, default=str) for recipe in _OPENED.values()]


def keep_open(sha256: str, outputs: Sequence[str], model: str, prepared: str | None) -> OnnxSession:
    """A session that is open as long as the caller keeps it; every model of the same recipe shares it."""
    return _share(_Recipe(sha256, tuple(outputs), Path(model), Path(prepared) if prepared else None))
