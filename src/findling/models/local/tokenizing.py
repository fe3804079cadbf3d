"""From texts to the numbers that a model reads: by findling's own WordPiece where it fits, else by `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import MissingExtraError, ModelError
from findling.text.analysis.wordpieces import Vocabulary, WordPieces, bert_vocabulary, piece_ids

__all__ = ["TextEncoder", "load_encoder"]


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
    """What stands before, between and behind two texts."""
    plain = [place for place, special in enumerate(is_special) if not special]
    gaps = [place for place in range(plain[0], plain[-1]) if is_special[place]]
    return tuple(ids[: plain[0]]), tuple(ids[place] for place in gaps), tuple(ids[plain[-1] + 1 :])
