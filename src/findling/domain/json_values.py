"""JSON of files that anybody may have written or damaged."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["read_json"]


def read_json(text: str | bytes) -> Any:
    """The value that JSON stands for.

    Raises ValueError, as `json.JSONDecodeError` or `UnicodeDecodeError`, also for what nests without an end.
    """
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, lists in lists
        raise json.JSONDecodeError("it nests too deeply, or holds a number without an end", "", 0) from error
