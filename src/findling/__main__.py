"""`python -m findling` is `findling`."""

from __future__ import annotations

import sys

from findling.faces.cli.main import run

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(run())
